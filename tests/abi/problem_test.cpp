//===- problem_test.cpp - questions, and every problem that is refused ----------------------------------===//
#include "fixture.h"

#include <functional>
#include <limits>
#include <set>

using namespace sluice::test;

namespace {

struct Refusal {
  std::function<void(sluice_problem &)> change;
  sluice_status status;
  const char *field;
  const char *message;
};

constexpr float not_a_number = std::numeric_limits<float>::quiet_NaN();

#define SLUICE_SET(field, value) [](sluice_problem &problem) { problem.field = value; }
#define SLUICE_FLAG(flag) [](sluice_problem &problem) { problem.flags |= flag; }
#define SLUICE_PAGED(...)                                                                                    \
  [](sluice_problem &problem) {                                                                              \
    make_paged(problem);                                                                                     \
    __VA_ARGS__;                                                                                             \
  }

const Refusal refusals[] = {
    {SLUICE_FLAG(1u << 20), SLUICE_NEWER_STRUCT, "flags",
     "flags has unknown bits 0x100000: the library is older"},
    {SLUICE_FLAG(1u << 31), SLUICE_NEWER_STRUCT, "flags", "bits 0x80000000"},
    {SLUICE_SET(mode, SLUICE_MODE_RAGGED), SLUICE_UNSUPPORTED, "mode",
     "mode is 1; nearest supported: SLUICE_MODE_DENSE"},
    {SLUICE_PAGED(), SLUICE_UNSUPPORTED, "mode", "mode is 2; nearest supported: SLUICE_MODE_DENSE"},
    {SLUICE_SET(mode, 3), SLUICE_NEWER_STRUCT, "mode",
     "mode is 3; the last value that this version knows is SLUICE_MODE_PAGED (2)"},
    {SLUICE_SET(q_type, 0), SLUICE_INVALID_ARGUMENT, "q_type", "q_type is missing"},
    {SLUICE_SET(k_type, 0), SLUICE_INVALID_ARGUMENT, "k_type", "k_type is missing"},
    {SLUICE_SET(v_type, 0), SLUICE_INVALID_ARGUMENT, "v_type", "v_type is missing"},
    {SLUICE_SET(o_type, 0), SLUICE_INVALID_ARGUMENT, "o_type", "o_type is missing"},
    {SLUICE_SET(q_type, 99), SLUICE_NEWER_STRUCT, "q_type",
     "q_type is 99; the last value that this version knows is SLUICE_Q4_0 (11)"},
    {SLUICE_SET(q_type, SLUICE_F32), SLUICE_UNSUPPORTED, "q_type", "q_type is f32; nearest supported:"},
    {SLUICE_SET(q_type, SLUICE_E4M3FNUZ), SLUICE_UNSUPPORTED, "q_type",
     "q_type is e4m3fnuz; nearest supported:"},
    {SLUICE_SET(k_type, SLUICE_E4M3FN), SLUICE_UNSUPPORTED, "k_type",
     "k_type is e4m3fn; nearest supported: f16"},
    {SLUICE_SET(v_type, SLUICE_BF16), SLUICE_UNSUPPORTED, "v_type", "v_type is bf16; nearest supported: f16"},
    {SLUICE_SET(o_type, SLUICE_BF16), SLUICE_UNSUPPORTED, "o_type", "o_type is bf16; nearest supported: f16"},
    {SLUICE_SET(o_type, SLUICE_E4M3FN), SLUICE_UNSUPPORTED, "o_type",
     "o_type is e4m3fn; nearest supported: f16"},
    {SLUICE_SET(o_type, SLUICE_Q8_0), SLUICE_UNSUPPORTED, "o_type", "o_type is q8_0; nearest supported: f16"},
    {SLUICE_SET(q_type, SLUICE_Q8_0), SLUICE_UNSUPPORTED, "q_type",
     "q_type is q8_0, which only K and V can have; nearest supported: f16"},
    {SLUICE_SET(k_type, SLUICE_Q8_0), SLUICE_UNSUPPORTED, "k_type", "k_type is q8_0; nearest supported: f16"},
    {[](sluice_problem &problem) {
       problem.k_type = problem.v_type = SLUICE_Q4_0;
       problem.head_dim_qk = 80;
     },
     SLUICE_INVALID_ARGUMENT, "head_dim_qk", "head_dim_qk is 80; it must be a multiple of 32 for q4_0"},
    {[](sluice_problem &problem) {
       problem.v_type = SLUICE_U4;
       problem.v_scale_kind = SLUICE_SCALE_PER_GROUP;
     },
     SLUICE_INVALID_ARGUMENT, "scale_group", "scale_group is 0; it must be 32 or 64"},
    {SLUICE_SET(q_heads, 0), SLUICE_INVALID_ARGUMENT, "q_heads", "q_heads is 0; it must be at least 1"},
    {SLUICE_SET(q_heads, -8), SLUICE_INVALID_ARGUMENT, "q_heads", "q_heads is -8"},
    {SLUICE_SET(kv_heads, 0), SLUICE_INVALID_ARGUMENT, "kv_heads", "kv_heads is 0"},
    {SLUICE_SET(kv_heads, -2), SLUICE_INVALID_ARGUMENT, "kv_heads", "kv_heads is -2"},
    {SLUICE_SET(kv_heads, 3), SLUICE_INVALID_ARGUMENT, "q_heads",
     "q_heads is 8; it must be a multiple of kv_heads, which is 3"},
    {SLUICE_SET(kv_heads, 16), SLUICE_INVALID_ARGUMENT, "q_heads", "multiple of kv_heads, which is 16"},
    {SLUICE_SET(q_heads, 32770), SLUICE_UNSUPPORTED, "q_heads", "q_heads is 32770; nearest supported: 32768"},
    {SLUICE_SET(head_dim_qk, 0), SLUICE_INVALID_ARGUMENT, "head_dim_qk", "head_dim_qk is 0"},
    {SLUICE_SET(head_dim_v, -1), SLUICE_INVALID_ARGUMENT, "head_dim_v", "head_dim_v is -1"},
    {SLUICE_SET(head_dim_qk, 83), SLUICE_UNSUPPORTED, "head_dim_qk",
     "head_dim_qk is 83 without SLUICE_PADDED_ROWS; nearest supported: 88"},
    {SLUICE_SET(head_dim_qk, 192), SLUICE_UNSUPPORTED, "head_dim_qk",
     "head_dim_qk is 192; nearest supported: 128"},
    {SLUICE_SET(head_dim_v, 61), SLUICE_UNSUPPORTED, "head_dim_v",
     "head_dim_v is 61 without SLUICE_PADDED_ROWS; nearest supported: 64"},
    {SLUICE_SET(head_dim_v, 192), SLUICE_UNSUPPORTED, "head_dim_v",
     "head_dim_v is 192; nearest supported: 128"},
    {SLUICE_SET(max_batch, -1), SLUICE_INVALID_ARGUMENT, "max_batch", "max_batch is -1"},
    {SLUICE_SET(max_q_len, -1), SLUICE_INVALID_ARGUMENT, "max_q_len", "max_q_len is -1"},
    {SLUICE_SET(max_kv_len, -1), SLUICE_INVALID_ARGUMENT, "max_kv_len", "max_kv_len is -1"},
    {SLUICE_SET(max_q_tokens, -1), SLUICE_INVALID_ARGUMENT, "max_q_tokens", "max_q_tokens is -1"},
    {SLUICE_SET(mask_alignment, 2), SLUICE_UNSUPPORTED, "mask_alignment",
     "nearest supported: SLUICE_TOP_LEFT"},
    {SLUICE_SET(window_left, 5), SLUICE_INVALID_ARGUMENT, "window_left",
     "window_left is 5, but flags lacks SLUICE_HAS_WINDOW_LEFT"},
    {SLUICE_SET(window_right, -1), SLUICE_INVALID_ARGUMENT, "window_right",
     "window_right is -1, but flags lacks"},
    {SLUICE_FLAG(SLUICE_HAS_WINDOW_LEFT), SLUICE_UNSUPPORTED, "flags",
     "SLUICE_HAS_WINDOW_LEFT (window_left 0); nearest supported: no window"},
    {[](sluice_problem &problem) {
       problem.flags = SLUICE_HAS_WINDOW_RIGHT;
       problem.window_right = 3;
     },
     SLUICE_UNSUPPORTED, "flags", "SLUICE_HAS_WINDOW_RIGHT (window_right 3); nearest supported: no window"},
    {SLUICE_FLAG(SLUICE_HAS_WINDOW_RIGHT), SLUICE_INVALID_ARGUMENT, "flags",
     "flags has SLUICE_CAUSAL and SLUICE_HAS_WINDOW_RIGHT"},
    {[](sluice_problem &problem) {
       problem.flags = SLUICE_HAS_WINDOW_RIGHT;
       problem.window_right = -1;
     },
     SLUICE_INVALID_ARGUMENT, "window_right", "window_right is -1; it must be at least 0"},
    {[](sluice_problem &problem) {
       problem.flags |= SLUICE_HAS_WINDOW_LEFT;
       problem.window_left = -1;
     },
     SLUICE_INVALID_ARGUMENT, "window_left", "window_left is -1; it must be at least 0"},
    {SLUICE_SET(sink_tokens, 4), SLUICE_INVALID_ARGUMENT, "sink_tokens",
     "sink_tokens is 4, but flags lacks SLUICE_HAS_WINDOW_LEFT"},
    {[](sluice_problem &problem) {
       problem.flags |= SLUICE_HAS_WINDOW_LEFT;
       problem.sink_tokens = -1;
     },
     SLUICE_INVALID_ARGUMENT, "sink_tokens", "sink_tokens is -1"},
    {SLUICE_SET(soft_cap, 30), SLUICE_UNSUPPORTED, "soft_cap", "soft_cap is 30; nearest supported: 0"},
    {SLUICE_SET(soft_cap, -1), SLUICE_INVALID_ARGUMENT, "soft_cap", "soft_cap is -1"},
    {SLUICE_SET(soft_cap, not_a_number), SLUICE_INVALID_ARGUMENT, "soft_cap", "soft_cap is nan"},
    {SLUICE_FLAG(SLUICE_ALIBI), SLUICE_UNSUPPORTED, "flags", "flags has SLUICE_ALIBI"},
    {SLUICE_FLAG(SLUICE_SINK_LOGITS), SLUICE_UNSUPPORTED, "flags", "flags has SLUICE_SINK_LOGITS"},
    {SLUICE_SET(bias_type, SLUICE_F32), SLUICE_UNSUPPORTED, "bias_type", "nearest supported: 0 (no bias)"},
    {SLUICE_SET(bias_type, SLUICE_E4M3FN), SLUICE_INVALID_ARGUMENT, "bias_type",
     "bias_type is e4m3fn; it must be f32, f16 or bf16"},
    {SLUICE_SET(bias_type, 12), SLUICE_NEWER_STRUCT, "bias_type", "bias_type is 12; the last value"},
    {SLUICE_FLAG(SLUICE_BOOL_MASK), SLUICE_UNSUPPORTED, "flags", "flags has SLUICE_BOOL_MASK"},
    {SLUICE_SET(q_scale_kind, SLUICE_SCALE_PER_TENSOR), SLUICE_UNSUPPORTED, "q_scale_kind",
     "q_scale_kind is 1; nearest supported: SLUICE_SCALE_NONE (0)"},
    {SLUICE_SET(v_scale_kind, SLUICE_SCALE_PER_HEAD), SLUICE_UNSUPPORTED, "v_scale_kind",
     "v_scale_kind is 2; nearest supported: SLUICE_SCALE_NONE (0)"},
    {SLUICE_SET(q_scale_kind, SLUICE_SCALE_PER_TOKEN), SLUICE_UNSUPPORTED, "q_scale_kind",
     "q_scale_kind is 3; nearest supported: SLUICE_SCALE_PER_HEAD (2)"},
    {SLUICE_SET(k_scale_kind, SLUICE_SCALE_PER_TOKEN), SLUICE_UNSUPPORTED, "k_scale_kind",
     "k_scale_kind is 3; nearest supported: SLUICE_SCALE_PER_HEAD (2)"},
    {SLUICE_SET(k_scale_kind, SLUICE_SCALE_PER_PAGE), SLUICE_INVALID_ARGUMENT, "k_scale_kind",
     "k_scale_kind is SLUICE_SCALE_PER_PAGE (4), but mode is 0"},
    {SLUICE_SET(o_scale_kind, SLUICE_SCALE_PER_TENSOR), SLUICE_INVALID_ARGUMENT, "o_scale_kind",
     "o_scale_kind is 1; it must be SLUICE_SCALE_NONE (0) unless o_type is e4m3fnuz"},
    {[](sluice_problem &problem) {
       problem.o_type = SLUICE_E4M3FNUZ;
       problem.o_scale_kind = SLUICE_SCALE_PER_TOKEN;
     },
     SLUICE_UNSUPPORTED, "o_scale_kind", "o_scale_kind is 3; nearest supported: SLUICE_SCALE_PER_HEAD (2)"},
    {SLUICE_SET(scale_group, 32), SLUICE_INVALID_ARGUMENT, "scale_group",
     "scale_group is 32; it must be 0 without scales per group"},
    {SLUICE_FLAG(SLUICE_ZERO_POINTS), SLUICE_INVALID_ARGUMENT, "flags",
     "flags has SLUICE_ZERO_POINTS, but neither K nor V has scales of SLUICE_SCALE_PER_GROUP"},
    {SLUICE_SET(k_type, SLUICE_U4), SLUICE_INVALID_ARGUMENT, "k_scale_kind",
     "k_scale_kind is 0; it must be SLUICE_SCALE_PER_GROUP (5) for u4"},
    {SLUICE_SET(v_scale_kind, SLUICE_SCALE_PER_GROUP), SLUICE_INVALID_ARGUMENT, "v_scale_kind",
     "v_scale_kind is 5; it must not be SLUICE_SCALE_PER_GROUP (5) unless the type is u4"},
    {SLUICE_SET(mask_alignment, SLUICE_GIVEN_DIAGONAL), SLUICE_UNSUPPORTED, "mask_alignment",
     "mask_alignment is 2; nearest supported: SLUICE_TOP_LEFT (1)"},
    {SLUICE_FLAG(SLUICE_CAUSAL_BY_SEQUENCE), SLUICE_INVALID_ARGUMENT, "flags",
     "flags has SLUICE_CAUSAL and SLUICE_CAUSAL_BY_SEQUENCE"},
    {SLUICE_SET(flags, SLUICE_CAUSAL_BY_SEQUENCE), SLUICE_UNSUPPORTED, "flags",
     "flags has SLUICE_CAUSAL_BY_SEQUENCE"},
    {SLUICE_FLAG(SLUICE_MASK_NEW_ROWS), SLUICE_INVALID_ARGUMENT, "flags",
     "flags has SLUICE_MASK_NEW_ROWS, but lacks SLUICE_BOOL_MASK"},
    {SLUICE_FLAG(SLUICE_SPANS), SLUICE_UNSUPPORTED, "flags", "flags has SLUICE_SPANS"},
    {SLUICE_FLAG(SLUICE_BIAS_SCALE), SLUICE_INVALID_ARGUMENT, "flags",
     "flags has SLUICE_BIAS_SCALE, but bias_type is 0"},
    {SLUICE_SET(v_scale_kind, 6), SLUICE_NEWER_STRUCT, "v_scale_kind",
     "v_scale_kind is 6; the last value that this version knows is SLUICE_SCALE_PER_GROUP (5)"},
    {SLUICE_SET(page_size, 16), SLUICE_INVALID_ARGUMENT, "page_size",
     "it must be 0 unless mode is SLUICE_MODE_PAGED"},
    {SLUICE_SET(page_table_kind, SLUICE_PAGE_TABLE_CSR), SLUICE_INVALID_ARGUMENT, "page_table_kind",
     "must be 0"},
    {SLUICE_SET(k_pack, 8), SLUICE_INVALID_ARGUMENT, "k_pack", "k_pack is 8"},
    {SLUICE_FLAG(SLUICE_PAGE_INDEX_64), SLUICE_INVALID_ARGUMENT, "flags",
     "flags has SLUICE_PAGE_INDEX_64, but mode is 0"},
    {SLUICE_FLAG(SLUICE_MISSING_PAGES_HIDDEN), SLUICE_INVALID_ARGUMENT, "flags",
     "flags has SLUICE_MISSING_PAGES_HIDDEN, but mode is 0"},
    {SLUICE_PAGED(problem.page_size = 0), SLUICE_INVALID_ARGUMENT, "page_size", "page_size is 0"},
    {SLUICE_PAGED(problem.page_size = -16), SLUICE_INVALID_ARGUMENT, "page_size", "page_size is -16"},
    {SLUICE_PAGED(problem.page_table_kind = 0), SLUICE_INVALID_ARGUMENT, "page_table_kind",
     "page_table_kind is missing"},
    {SLUICE_PAGED(problem.page_table_kind = 3), SLUICE_NEWER_STRUCT, "page_table_kind",
     "page_table_kind is 3; the last value"},
    {SLUICE_PAGED(problem.k_pack = -8), SLUICE_INVALID_ARGUMENT, "k_pack", "k_pack is -8"},
    {SLUICE_PAGED(problem.k_pack = 24), SLUICE_INVALID_ARGUMENT, "k_pack",
     "k_pack is 24; it must divide head_dim_qk, which is 128"},
    {SLUICE_FLAG(SLUICE_V_IN_K), SLUICE_UNSUPPORTED, "flags", "flags has SLUICE_V_IN_K"},
    {[](sluice_problem &problem) {
       problem.flags |= SLUICE_V_IN_K;
       problem.v_type = SLUICE_BF16;
     },
     SLUICE_INVALID_ARGUMENT, "v_type", "v_type is bf16; with SLUICE_V_IN_K it must be k_type, which is f16"},
    {[](sluice_problem &problem) {
       problem.flags |= SLUICE_V_IN_K;
       problem.head_dim_v = 136;
     },
     SLUICE_INVALID_ARGUMENT, "head_dim_v",
     "head_dim_v is 136; with SLUICE_V_IN_K it must be at most head_dim_qk, which is 128"},
    {SLUICE_SET(lse_base, SLUICE_LSE_BASE_2), SLUICE_UNSUPPORTED, "lse_base",
     "lse_base is 1; nearest supported: SLUICE_LSE_BASE_E (0)"},
    {SLUICE_SET(lse_base, 2), SLUICE_NEWER_STRUCT, "lse_base",
     "lse_base is 2; the last value that this version knows is SLUICE_LSE_BASE_2 (1)"},
    {SLUICE_SET(determinism, 2), SLUICE_NEWER_STRUCT, "determinism", "SLUICE_DETERMINISM_BATCH_INVARIANT"},
    {[](sluice_problem &problem) {
       problem.determinism = SLUICE_DETERMINISM_BATCH_INVARIANT;
       problem.max_kv_len = 100;
     },
     SLUICE_INVALID_ARGUMENT, "max_batch", "max_batch is 0 (unbounded); it must be at least 1 with"},
    {[](sluice_problem &problem) {
       problem.determinism = SLUICE_DETERMINISM_BATCH_INVARIANT;
       problem.max_batch = 1;
     },
     SLUICE_INVALID_ARGUMENT, "max_kv_len", "max_kv_len is 0 (unbounded); it must be at least 1 with"},
};

} // namespace

TEST_CASE("every problem that cannot be computed is refused by name", "[problem]") {
  const ContextHandle context = target_context();
  for (const Refusal &refusal : refusals) {
    sluice_problem problem = good_problem();
    refusal.change(problem);
    Error error;
    check_refusal(sluice_query_support(context.get(), &problem, nullptr, &error), error, refusal.status,
                  refusal.field, refusal.message);
    // Sizing and planning answer the same.
    uint64_t bytes = 12345;
    CHECK(sluice_workspace_size(context.get(), &problem, &bytes, nullptr) == refusal.status);
    CHECK(bytes == 12345);
    sluice_plan *plan = reinterpret_cast<sluice_plan *>(device_memory);
    CHECK(sluice_plan_create(context.get(), &problem, &plan, nullptr) == refusal.status);
    CHECK(plan == nullptr);
  }
}

TEST_CASE("problems that the header calls supported are supported", "[problem]") {
  const ContextHandle context = target_context();
  for (const uint32_t type : {SLUICE_F16, SLUICE_BF16}) {
    for (const int32_t head_dim : {64, 128}) {
      for (const uint32_t flags :
           {0, int(SLUICE_CAUSAL), int(SLUICE_WRITE_LSE), SLUICE_CAUSAL | SLUICE_WRITE_LSE}) {
        for (const uint32_t alignment : {SLUICE_BOTTOM_RIGHT, SLUICE_TOP_LEFT}) {
          for (const int32_t kv_heads : {1, 2, 4, 8}) {
            sluice_problem problem = good_problem();
            problem.q_type = problem.k_type = problem.v_type = problem.o_type = type;
            problem.head_dim_qk = problem.head_dim_v = head_dim;
            problem.flags = flags;
            problem.mask_alignment = alignment;
            problem.kv_heads = kv_heads;
            Error error;
            sluice_support support;
            sluice_support_init(&support, sizeof support);
            const sluice_status status = sluice_query_support(context.get(), &problem, &support, &error);
            INFO(error.message);
            REQUIRE(status == SLUICE_OK);
            const std::string prefix = std::string("attn_fwd_") + (type == SLUICE_F16 ? "f16" : "bf16") +
                                       "_d" + std::to_string(head_dim) + "_";
            CHECK_THAT(support.kernel, Catch::StartsWith(prefix));
            CHECK(support.pointer_alignment == 16);
            CHECK(support.stride_multiple == 8);
            CHECK(support.workspace_alignment == 256);
            uint64_t bytes = 1;
            CHECK(sluice_workspace_size(context.get(), &problem, &bytes, nullptr) == SLUICE_OK);
            CHECK(bytes == support.workspace_bytes);
          }
        }
      }
    }
  }
}

TEST_CASE("short and small problems get low query tiles, and the plan says why", "[problem]") {
  const ContextHandle context = target_context(); // 304 compute units
  struct Case {
    int32_t batch, q_len;
    uint32_t determinism;
    uint32_t tile_q;
    const char *reason;
  };
  const Case cases[] = {
      {0, 0, SLUICE_DETERMINISM_FAST, 256, "the bounds do not require a lower one"},
      {1, 1, SLUICE_DETERMINISM_FAST, 128, "max_q_len 1 fits a query tile of 128"},
      {0, 32, SLUICE_DETERMINISM_FAST, 128, "max_q_len 32 fits a query tile of 128"},
      {0, 33, SLUICE_DETERMINISM_FAST, 256, "the bounds do not require"},
      {1, 8192, SLUICE_DETERMINISM_FAST, 128,
       "query tiles of 256 would make 256 workgroups for 304 compute units; tiles of 128 make 512"},
      {2, 8192, SLUICE_DETERMINISM_FAST, 256, "the bounds do not require"},
      {1, 256, SLUICE_DETERMINISM_FAST, 128, "would make 8 workgroups"},
      {1, 8192, SLUICE_DETERMINISM_BATCH_INVARIANT, 256, "the bounds do not require"},
      {1, 32, SLUICE_DETERMINISM_BATCH_INVARIANT, 128, "fits a query tile of 128"},
  };
  for (const Case &one : cases) {
    sluice_problem problem = good_problem();
    problem.max_batch = one.batch;
    problem.max_q_len = one.q_len;
    problem.determinism = one.determinism;
    if (one.determinism == SLUICE_DETERMINISM_BATCH_INVARIANT) problem.max_kv_len = 1000;
    const PlanHandle plan = make_plan(context, problem);
    sluice_plan_info info;
    sluice_plan_info_init(&info, sizeof info);
    REQUIRE(sluice_plan_describe(plan.get(), &info, nullptr) == SLUICE_OK);
    INFO("batch " << one.batch << ", q_len " << one.q_len << ": " << info.reason);
    CHECK(info.tile_q == one.tile_q);
    CHECK(info.tile_kv == 64);
    CHECK(info.waves == one.tile_q / 32);
    CHECK(info.block[0] == one.tile_q * 2);
    CHECK(info.block[1] == 1);
    CHECK(info.block[2] == 1);
    CHECK(info.max_grid[0] == 2); // KV heads, of 4 query heads each
    CHECK(info.max_grid[1] == (uint32_t(one.q_len) * 4 + one.tile_q - 1) / one.tile_q);
    CHECK(info.max_grid[2] == uint32_t(one.batch));
    CHECK(info.lds_bytes == 65536);
    CHECK_THAT(info.kernel, Catch::Contains("_q" + std::to_string(one.tile_q) + "_"));
    CHECK_THAT(info.reason, Catch::Contains(one.reason));
  }
}

TEST_CASE("the kernels are listed by index, in the order of their names", "[problem]") {
  const ContextHandle context = target_context();
  uint32_t count = 0;
  REQUIRE(sluice_list_kernels(context.get(), 0, nullptr, &count, nullptr) == SLUICE_OK);
  CHECK(count == 8);
  std::string previous;
  for (uint32_t i = 0; i < count; ++i) {
    sluice_kernel_info info;
    sluice_kernel_info_init(&info, sizeof info);
    REQUIRE(sluice_list_kernels(context.get(), i, &info, nullptr, nullptr) == SLUICE_OK);
    CHECK(info.name > previous);
    previous = info.name;
    CHECK(std::string(info.operation) == "attention_forward");
    CHECK(std::string(info.features) == "causal,lse");
    CHECK(std::string(info.chips) == "gfx942");
    CHECK(info.kernarg_bytes == sizeof(sluice::package::AttentionKernargs));
    CHECK(std::string(info.p_rounding) == "centred_cut");
  }
  CHECK(previous == "attn_fwd_f16_d64_q256_kv64_w8");
  sluice_kernel_info info;
  sluice_kernel_info_init(&info, sizeof info);
  Error error;
  check_refusal(sluice_list_kernels(context.get(), count, &info, nullptr, &error), error,
                SLUICE_INVALID_ARGUMENT, "index", "index is 8; there are 8 kernels");
}

TEST_CASE("null arguments of questions and plans are refused by name", "[problem]") {
  const ContextHandle context = target_context();
  const sluice_problem problem = good_problem();
  sluice_plan *plan = nullptr;
  uint64_t bytes = 0;
  Error error;
  check_refusal(sluice_query_support(nullptr, &problem, nullptr, &error), error, SLUICE_INVALID_ARGUMENT,
                "context", "context is NULL");
  check_refusal(sluice_workspace_size(nullptr, &problem, &bytes, &error), error, SLUICE_INVALID_ARGUMENT,
                "context", "context is NULL");
  check_refusal(sluice_workspace_size(context.get(), &problem, nullptr, &error), error,
                SLUICE_INVALID_ARGUMENT, "bytes", "bytes is NULL");
  check_refusal(sluice_list_kernels(nullptr, 0, nullptr, nullptr, &error), error, SLUICE_INVALID_ARGUMENT,
                "context", "context is NULL");
  check_refusal(sluice_plan_create(nullptr, &problem, &plan, &error), error, SLUICE_INVALID_ARGUMENT,
                "context", "context is NULL");
  check_refusal(sluice_plan_create(context.get(), &problem, nullptr, &error), error, SLUICE_INVALID_ARGUMENT,
                "out", "out is NULL");
  check_refusal(sluice_plan_describe(nullptr, nullptr, &error), error, SLUICE_INVALID_ARGUMENT, "plan",
                "plan is NULL");
  check_refusal(sluice_preload(nullptr, nullptr, &error), error, SLUICE_INVALID_ARGUMENT, "context",
                "context is NULL");
  sluice_plan_destroy(nullptr);
}
