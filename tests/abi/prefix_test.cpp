//===- prefix_test.cpp - prefixes that rows share: what is refused, launched and computed ---------------===//
#include "split_fixture.h"

#include <array>
#include <cmath>
#include <functional>

using namespace sluice::test;

namespace {

struct Call {
  sluice_problem problem = decode_problem();
  sluice_args args = good_args();
};

const int32_t *array(size_t byte = 0) {
  return reinterpret_cast<const int32_t *>(device_memory + byte);
}

/// Two sequences of one row, which see one of two prefixes of at most 32 keys.
Call dense() {
  Call call;
  call.problem.flags |= SLUICE_SHARED_PREFIX;
  call.problem.max_prefixes = 2;
  call.problem.max_prefix_len = 32;
  call.problem.max_q_tokens = 4;
  call.args.q_len = 1;
  call.args.q.stride[0] = call.args.q.stride[1];
  call.args.o.stride[0] = call.args.o.stride[1];
  call.args.lse.stride[0] = 8;
  call.args.lse.stride[1] = 8;
  call.args.lse.stride[2] = 1;
  call.args.prefix_count = 2;
  call.args.prefix_len = 32;
  call.args.prefix_q_starts = array(64);
  call.args.prefix_k = {device_memory + 16, {32 * 2 * 128, 2 * 128, 128, 1}};
  call.args.prefix_v = {device_memory + 32, {32 * 2 * 128, 2 * 128, 128, 1}};
  return call;
}

Call paged() {
  Call call = dense();
  make_paged(call.problem);
  call.args.k.stride[0] = call.args.v.stride[0] = 16 * 2 * 128;
  call.args.kv_lengths = array();
  call.args.page_table = array();
  call.args.page_table_stride = 1;
  call.args.prefix_k = call.args.prefix_v = {};
  call.args.prefix_lengths = array(128);
  call.args.prefix_page_table = array(256);
  call.args.prefix_page_table_stride = 2;
  return call;
}

Call csr() {
  Call call = paged();
  call.problem.page_table_kind = SLUICE_PAGE_TABLE_CSR;
  call.args.page_table_stride = call.args.prefix_page_table_stride = 0;
  call.args.page_starts = array();
  call.args.prefix_page_starts = array(192);
  return call;
}

Call ragged() {
  Call call = dense();
  call.problem.mode = SLUICE_MODE_RAGGED;
  call.args.q_starts = call.args.kv_starts = array();
  for (sluice_tensor *tensor : {&call.args.q, &call.args.k, &call.args.v, &call.args.o, &call.args.lse})
    tensor->stride[0] = 0;
  return call;
}

Call v_in_k() {
  Call call = dense();
  call.problem.flags |= SLUICE_V_IN_K;
  call.args.v = call.args.prefix_v = {};
  return call;
}

Call without() {
  Call call = dense();
  call.problem.flags &= ~uint32_t{SLUICE_SHARED_PREFIX};
  call.problem.max_prefixes = call.problem.max_prefix_len = 0;
  call.args.prefix_count = call.args.prefix_len = 0;
  call.args.prefix_q_starts = nullptr;
  call.args.prefix_k = call.args.prefix_v = {};
  return call;
}

struct ProblemRefusal {
  std::function<void(sluice_problem &)> change;
  sluice_status status;
  const char *field;
  const char *message;
};

#define SLUICE_P(member, value) [](sluice_problem &p) { p.member = value; }
#define SLUICE_FLAG(flag) [](sluice_problem &p) { p.flags = (p.flags & ~uint32_t{SLUICE_CAUSAL}) | flag; }

const ProblemRefusal problem_refusals[] = {
    {SLUICE_P(max_prefixes, 0), SLUICE_INVALID_ARGUMENT, "max_prefixes",
     "max_prefixes is 0; it must be at least 1 with SLUICE_SHARED_PREFIX"},
    {SLUICE_P(max_prefixes, -1), SLUICE_INVALID_ARGUMENT, "max_prefixes", "max_prefixes is -1"},
    {SLUICE_P(max_prefix_len, 0), SLUICE_INVALID_ARGUMENT, "max_prefix_len", "max_prefix_len is 0"},
    {SLUICE_P(max_q_tokens, 0), SLUICE_INVALID_ARGUMENT, "max_q_tokens", "max_q_tokens is 0"},
    {SLUICE_P(flags, SLUICE_CAUSAL), SLUICE_INVALID_ARGUMENT, "max_prefixes",
     "max_prefixes is 2, but flags lacks SLUICE_SHARED_PREFIX"},
    {[](sluice_problem &p) {
       p.flags = 0;
       p.max_prefixes = 0;
     },
     SLUICE_INVALID_ARGUMENT, "max_prefix_len", "max_prefix_len is 32, but flags lacks SLUICE_SHARED_PREFIX"},
    {SLUICE_P(mask_alignment, SLUICE_TOP_LEFT), SLUICE_UNSUPPORTED, "mask_alignment",
     "nearest supported: SLUICE_BOTTOM_RIGHT (0)"},
    {SLUICE_FLAG(SLUICE_HAS_WINDOW_LEFT), SLUICE_UNSUPPORTED, "flags",
     "flags has SLUICE_HAS_WINDOW_LEFT and SLUICE_SHARED_PREFIX; nearest supported: no window"},
    {SLUICE_FLAG(SLUICE_HAS_WINDOW_RIGHT), SLUICE_UNSUPPORTED, "flags", "nearest supported: no window"},
    {SLUICE_FLAG(SLUICE_ALIBI), SLUICE_UNSUPPORTED, "flags", "nearest supported: without SLUICE_ALIBI"},
    {[](sluice_problem &problem) {
       problem.mode = SLUICE_MODE_PAGED;
       problem.page_size = 16;
       problem.page_table_kind = SLUICE_PAGE_TABLE_BLOCK;
       problem.flags |= SLUICE_MISSING_PAGES_HIDDEN;
     },
     SLUICE_UNSUPPORTED, "flags", "nearest supported: without SLUICE_MISSING_PAGES_HIDDEN"},
    {SLUICE_FLAG(SLUICE_BOOL_MASK), SLUICE_UNSUPPORTED, "flags",
     "nearest supported: without SLUICE_BOOL_MASK"},
    {SLUICE_P(bias_type, SLUICE_F16), SLUICE_UNSUPPORTED, "bias_type",
     "bias_type is f16, and flags has SLUICE_SHARED_PREFIX; nearest supported: 0 (no bias)"},
    {[](sluice_problem &p) {
       p.flags = (p.flags & ~uint32_t{SLUICE_CAUSAL}) | SLUICE_CAUSAL_BY_SEQUENCE;
       p.mask_alignment = SLUICE_TOP_LEFT;
     },
     SLUICE_UNSUPPORTED, "mask_alignment",
     "flags has SLUICE_CAUSAL_BY_SEQUENCE and SLUICE_SHARED_PREFIX; nearest supported: SLUICE_BOTTOM_RIGHT "
     "(0)"},
    {SLUICE_FLAG(SLUICE_BOOL_MASK | SLUICE_MASK_NEW_ROWS), SLUICE_UNSUPPORTED, "flags",
     "nearest supported: without SLUICE_MASK_NEW_ROWS"},
    {[](sluice_problem &p) {
       p.flags |= SLUICE_BIAS_SCALE;
       p.bias_type = SLUICE_F16;
     },
     SLUICE_UNSUPPORTED, "flags", "nearest supported: without SLUICE_BIAS_SCALE"},
    {SLUICE_P(k_scale_kind, SLUICE_SCALE_PER_TOKEN), SLUICE_UNSUPPORTED, "k_scale_kind",
     "prefixes outside of pages have no such scales; nearest supported: SLUICE_SCALE_PER_HEAD (2)"},
    {SLUICE_P(v_scale_kind, SLUICE_SCALE_PER_TOKEN), SLUICE_UNSUPPORTED, "v_scale_kind",
     "prefixes outside of pages have no such scales; nearest supported: SLUICE_SCALE_PER_HEAD (2)"},
    {[](sluice_problem &p) {
       p.k_type = p.v_type = SLUICE_U4;
       p.k_scale_kind = p.v_scale_kind = SLUICE_SCALE_PER_GROUP;
       p.scale_group = 32;
     },
     SLUICE_UNSUPPORTED, "flags",
     "prefixes outside of pages have no such scales; nearest supported: without SLUICE_SHARED_PREFIX"},
    {SLUICE_P(workspace_ceiling_bytes, 1000), SLUICE_UNSUPPORTED, "workspace_ceiling_bytes",
     "workspace_ceiling_bytes is 1000; with SLUICE_SHARED_PREFIX the nearest supported is 33024"},
    {SLUICE_P(max_q_tokens, int64_t{1} << 28), SLUICE_UNSUPPORTED, "max_q_tokens",
     "max_q_tokens is 268435456 with 8 heads; with SLUICE_SHARED_PREFIX the nearest supported is "},
};

#undef SLUICE_P
#undef SLUICE_FLAG

struct CallRefusal {
  Call (*good)();
  std::function<void(Call &)> change;
  sluice_status status;
  const char *field;
  const char *message;
};

constexpr sluice_status invalid = SLUICE_INVALID_ARGUMENT;

#define SLUICE_SET(member, value) [](Call &c) { c.args.member = value; }
#define SLUICE_ODD(type) reinterpret_cast<const type *>(device_memory + 2)

const CallRefusal call_refusals[] = {
    {dense, SLUICE_SET(prefix_count, 0), invalid, "prefix_count", "prefix_count is 0; it must be at least 1"},
    {dense, SLUICE_SET(prefix_count, -1), invalid, "prefix_count", "prefix_count is -1"},
    {dense, SLUICE_SET(prefix_count, 3), invalid, "prefix_count",
     "prefix_count is 3; the problem's max_prefixes is 2"},
    {dense, SLUICE_SET(prefix_len, -1), invalid, "prefix_len", "prefix_len is -1; it must not be negative"},
    {dense, SLUICE_SET(prefix_len, 33), invalid, "prefix_len",
     "prefix_len is 33; the problem's max_prefix_len is 32"},
    {dense, SLUICE_SET(prefix_q_starts, nullptr), invalid, "prefix_q_starts", "prefix_q_starts is NULL"},
    {dense, SLUICE_SET(prefix_q_starts, SLUICE_ODD(int32_t)), invalid, "prefix_q_starts",
     "aligned to 4 bytes"},
    {dense, SLUICE_SET(prefix_lengths, SLUICE_ODD(int32_t)), invalid, "prefix_lengths", "aligned to 4 bytes"},
    {dense, SLUICE_SET(prefix_page_table, array()), invalid, "prefix_page_table",
     "is given, but the problem's mode is not SLUICE_MODE_PAGED"},
    {dense, SLUICE_SET(prefix_page_starts, array()), invalid, "prefix_page_starts",
     "is given, but the problem's mode is not SLUICE_MODE_PAGED"},
    {dense, SLUICE_SET(prefix_page_table_stride, 2), invalid, "prefix_page_table_stride",
     "it must be 0 without SLUICE_PAGE_TABLE_BLOCK"},
    {dense, SLUICE_SET(prefix_k.data, nullptr), invalid, "prefix_k.data", "prefix_k.data is NULL"},
    {dense, SLUICE_SET(prefix_v.data, nullptr), invalid, "prefix_v.data", "prefix_v.data is NULL"},
    {dense, SLUICE_SET(prefix_k.stride[1], 4), invalid, "prefix_k.stride[1]", "it must be a multiple of 8"},
    {dense, SLUICE_SET(prefix_v.stride[3], 2), invalid, "prefix_v.stride[3]", "it must be 1"},
    {dense, SLUICE_SET(prefix_k.stride[1], int64_t{1} << 25), SLUICE_UNSUPPORTED, "prefix_k.stride[1]",
     "nearest supported: 33554424"},
    {dense, SLUICE_SET(prefix_v.stride[1], int64_t{1} << 25), SLUICE_UNSUPPORTED, "prefix_v.stride[1]",
     "nearest supported: 33554424"},
    {dense,
     [](Call &c) {
       c.problem.max_q_len = c.args.batch = c.args.q_len = 2;
       c.args.q.stride[0] = 3 * 8 * 128;
       c.args.o.stride[0] = 2 * 8 * 128;
       c.args.lse = {};
       c.problem.flags &= ~uint32_t(SLUICE_WRITE_LSE);
     },
     invalid, "q.stride[0]",
     "q.stride[0] is 3072; with SLUICE_SHARED_PREFIX and without q_starts it must be q_len * q.stride[1], "
     "which is 2 * 1024"},
    {ragged, SLUICE_SET(q_tokens, 5), invalid, "q_tokens", "q_tokens is 5; the problem's max_q_tokens is 4"},
    {ragged, SLUICE_SET(prefix_k.data, nullptr), invalid, "prefix_k.data", "prefix_k.data is NULL"},
    {v_in_k, SLUICE_SET(prefix_v.data, device_memory), invalid, "prefix_v.data",
     "the problem's flags have SLUICE_V_IN_K"},
    {paged, SLUICE_SET(prefix_lengths, nullptr), invalid, "prefix_lengths", "prefix_lengths is NULL"},
    {paged, SLUICE_SET(prefix_page_table, nullptr), invalid, "prefix_page_table",
     "prefix_page_table is NULL"},
    {paged, SLUICE_SET(prefix_page_table, SLUICE_ODD(int32_t)), invalid, "prefix_page_table",
     "aligned to 4 bytes"},
    {paged, SLUICE_SET(prefix_page_starts, array()), invalid, "prefix_page_starts",
     "the problem's page_table_kind is SLUICE_PAGE_TABLE_BLOCK"},
    {paged, SLUICE_SET(prefix_page_table_stride, -1), invalid, "prefix_page_table_stride",
     "it must not be negative"},
    {paged, SLUICE_SET(prefix_page_table_stride, 1), invalid, "prefix_page_table_stride",
     "prefix_page_table_stride is 1; it must be at least 2, the pages of 16 keys for a prefix_len of 32"},
    {paged, SLUICE_SET(prefix_k.data, device_memory), invalid, "prefix_k.data",
     "the prefixes are in the pages of k and v"},
    {paged, SLUICE_SET(prefix_v.stride[1], 8), invalid, "prefix_v.stride[1]",
     "the prefixes are in the pages of k and v"},
    {csr, SLUICE_SET(prefix_page_starts, nullptr), invalid, "prefix_page_starts",
     "prefix_page_starts is NULL"},
    {csr, SLUICE_SET(prefix_page_table_stride, 2), invalid, "prefix_page_table_stride",
     "it must be 0 without SLUICE_PAGE_TABLE_BLOCK"},
    // Nothing is accepted and ignored.
    {without, SLUICE_SET(prefix_count, 1), invalid, "prefix_count",
     "prefix_count is 1; it must be 0: the problem's flags lack SLUICE_SHARED_PREFIX"},
    {without, SLUICE_SET(prefix_len, 1), invalid, "prefix_len", "it must be 0"},
    {without, SLUICE_SET(prefix_q_starts, array()), invalid, "prefix_q_starts",
     "the problem's flags lack SLUICE_SHARED_PREFIX"},
    {without, SLUICE_SET(prefix_lengths, array()), invalid, "prefix_lengths",
     "the problem's flags lack SLUICE_SHARED_PREFIX"},
    {without, SLUICE_SET(prefix_page_table, array()), invalid, "prefix_page_table",
     "the problem's flags lack SLUICE_SHARED_PREFIX"},
    {without, SLUICE_SET(prefix_page_table_stride, 1), invalid, "prefix_page_table_stride", "it must be 0"},
    {without, SLUICE_SET(prefix_page_starts, array()), invalid, "prefix_page_starts",
     "the problem's flags lack SLUICE_SHARED_PREFIX"},
    {without, SLUICE_SET(prefix_k.data, device_memory), invalid, "prefix_k.data",
     "the problem's flags lack SLUICE_SHARED_PREFIX"},
    {without, SLUICE_SET(prefix_v.stride[0], 8), invalid, "prefix_v.stride[0]", "it must be 0"},
};

#undef SLUICE_SET
#undef SLUICE_ODD

struct Launch {
  std::string kernel;
  std::array<uint32_t, 3> grid;
  std::string reason;
};
void remember(const sluice_trace_record *record, void *user) {
  if (record->event != SLUICE_TRACE_RUN) return;
  static_cast<std::vector<Launch> *>(user)->push_back(
      {record->kernel, {record->grid[0], record->grid[1], record->grid[2]}, record->reason});
}

} // namespace

TEST_CASE("a problem with prefixes needs their bounds, and excludes what depends on all keys", "[prefix]") {
  const ContextHandle context = split_context(SLUICE_DEVICE_TARGET);
  for (const ProblemRefusal &refusal : problem_refusals) {
    sluice_problem problem = dense().problem;
    Error error;
    CHECK(sluice_query_support(context.get(), &problem, nullptr, &error) == SLUICE_OK);
    INFO(error.message);
    refusal.change(problem);
    check_refusal(sluice_query_support(context.get(), &problem, nullptr, &error), error, refusal.status,
                  refusal.field, refusal.message);
  }
}

TEST_CASE("every rule of a call with prefixes is checked in its mode", "[prefix]") {
  FakeHip hip;
  const ContextHandle context = split_context(SLUICE_DEVICE_HIP);
  const sluice_launch launch = with_workspace();
  for (const CallRefusal &refusal : call_refusals)
    check_call_refusal(hip, context, launch, refusal, refusal.status);
}

TEST_CASE("a grid has up to 65535 prefixes", "[prefix]") {
  FakeHip hip;
  const ContextHandle context = split_context(SLUICE_DEVICE_HIP);
  Call call = dense();
  call.problem.max_prefixes = 65536;
  const sluice_launch launch = with_workspace();
  call.args.prefix_count = 65535;
  CHECK(sluice_run(make_plan(context, call.problem).get(), &call.args, &launch, nullptr) == SLUICE_OK);
  call.args.prefix_count = 65536;
  Error error;
  check_refusal(sluice_run(make_plan(context, call.problem).get(), &call.args, &launch, &error), error,
                SLUICE_UNSUPPORTED, "prefix_count", "prefix_count is 65536; nearest supported: 65535");
}

TEST_CASE("each level of keys has its launch, and one merge follows", "[prefix]") {
  FakeHip hip;
  const ContextHandle context = split_context(SLUICE_DEVICE_HIP);
  std::vector<Launch> launches;
  sluice_set_trace(context.get(), remember, &launches, nullptr);
  sluice_launch launch = with_workspace();
  launch.signal_event = FakeHip::handle(13);
  for (Call (*const good)() : {dense, ragged, paged, csr}) {
    const Call call = good();
    const PlanHandle plan = make_plan(context, call.problem);
    sluice_plan_info info;
    sluice_plan_info_init(&info, sizeof info);
    REQUIRE(sluice_plan_describe(plan.get(), &info, nullptr) == SLUICE_OK);
    launches.clear();
    hip.forget_calls();
    Error error;
    const sluice_status status = sluice_run(plan.get(), &call.args, &launch, &error);
    INFO(error.message);
    REQUIRE(status == SLUICE_OK);
    REQUIRE(launches.size() == 3);
    CHECK(launches[0].grid[2] == 2); // the prefixes
    CHECK(launches[1].grid[2] == 2); // the sequences
    CHECK(launches[2].kernel == "merge_states_f32_f16");
    CHECK(launches[0].reason == info.reason);
    CHECK_THAT(info.reason, Catch::StartsWith("prefixes: attn_fwd_f16_d128_"));
    CHECK_THAT(info.reason, Catch::Contains("; own keys: "));
    CHECK(hip.count("hipModuleLaunchKernel") == 3);
    CHECK(hip.count("hipEventRecord") == 1);
    CHECK(hip.call_names().back() == "hipEventRecord");
  }
}

TEST_CASE("a prefix_len of 0 is the problem's bound", "[prefix]") {
  FakeHip hip;
  const ContextHandle context = split_context(SLUICE_DEVICE_HIP);
  Call call = paged();
  const sluice_launch launch = with_workspace();
  call.args.prefix_len = 0;
  CHECK(sluice_run(make_plan(context, call.problem).get(), &call.args, &launch, nullptr) == SLUICE_OK);
  // ... and is checked like it.
  call.args.prefix_page_table_stride = 1;
  Error error;
  check_refusal(sluice_run(make_plan(context, call.problem).get(), &call.args, &launch, &error), error,
                SLUICE_INVALID_ARGUMENT, "prefix_page_table_stride", "for a prefix_len of 32");
}

namespace {

/// Three sequences with two rows of one element each. Rows 1 to 3 see prefix 0, row 4 sees prefix 1, rows 0
/// and 5 see none.
struct HostCall {
  sluice_problem problem;
  sluice_args args;
  float q[6] = {1, 2, 3, 4, 5, 6}, o[6] = {}, lse[6] = {};
  float k[12] = {0.1f, 0.2f, 0.3f, 0.4f, 0.5f, 0.6f, 0.7f, 0.8f, 0.9f, 1, 1.1f, 1.2f};
  float v[12] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12};
  int32_t kv_lengths[3] = {2, 1, 0}, table[6] = {0, 1, 2, 3, 4, 5};
  int32_t starts[3] = {1, 4, 5}, lengths[2] = {3, 1}, prefix_table[4] = {3, 4, 5, 0},
          page_starts[3] = {0, 2, 3};

  HostCall() {
    sluice_problem_init(&problem, sizeof problem);
    problem.flags = SLUICE_SHARED_PREFIX | SLUICE_WRITE_LSE;
    problem.mode = SLUICE_MODE_PAGED;
    problem.q_type = problem.k_type = problem.v_type = problem.o_type = SLUICE_F32;
    problem.q_heads = problem.kv_heads = problem.head_dim_qk = problem.head_dim_v = 1;
    problem.page_size = 2;
    problem.page_table_kind = SLUICE_PAGE_TABLE_BLOCK;
    problem.max_prefixes = 2;
    problem.max_prefix_len = 4;
    problem.max_q_tokens = 6;
    sluice_args_init(&args, sizeof args);
    args.batch = 3;
    args.q_len = 2;
    args.kv_len = 2;
    args.scale = 1;
    args.q = {q, {2, 1, 0, 0}};
    args.k = {k, {2, 1, 0, 0}};
    args.v = {v, {2, 1, 0, 0}};
    args.o = {o, {2, 1, 0, 0}};
    args.lse = {lse, {2, 1, 0, 0}};
    args.kv_lengths = kv_lengths;
    args.page_table = table;
    args.page_table_stride = 1;
    args.prefix_count = 2;
    args.prefix_q_starts = starts;
    args.prefix_lengths = lengths;
    args.prefix_page_table = prefix_table;
    args.prefix_page_table_stride = 2;
  }
};

struct ContentRefusal {
  void (*change)(HostCall &);
  const char *field;
  const char *message;
};

const ContentRefusal content_refusals[] = {
    {[](HostCall &c) { c.starts[0] = -1; }, "prefix_q_starts[0]", "it must not be negative"},
    {[](HostCall &c) { c.starts[1] = 0; }, "prefix_q_starts[1]",
     "prefix_q_starts[1] is 0; starts must not decrease, and the previous one is 1"},
    {[](HostCall &c) { c.starts[2] = 7; }, "prefix_q_starts[2]",
     "prefix_q_starts[2] is 7; it must be at most the problem's max_q_tokens, which is 6"},
    {[](HostCall &c) {
       c.problem.max_q_tokens = 9;
       c.starts[2] = 7;
     },
     "prefix_q_starts[2]", "it must be at most batch * q_len, which is 6"},
    {[](HostCall &c) { c.lengths[0] = -1; }, "prefix_lengths[0]", "it must not be negative"},
    {[](HostCall &c) { c.lengths[1] = 5; }, "prefix_lengths[1]",
     "prefix_lengths[1] is 5; it must be at most prefix_len, which is 4"},
    {[](HostCall &c) { c.prefix_table[1] = -1; }, "prefix_page_table[1]",
     "a page number must not be negative"},
    {[](HostCall &c) {
       c.args.page_count = 6;
       c.prefix_table[2] = 6;
     },
     "prefix_page_table[2]", "it must be less than page_count, which is 6"},
    {[](HostCall &c) {
       c.problem.page_table_kind = SLUICE_PAGE_TABLE_CSR;
       c.args.page_table_stride = c.args.prefix_page_table_stride = 0;
       static constexpr int32_t own[] = {0, 1, 2, 2};
       c.args.page_starts = own;
       c.args.prefix_page_starts = c.page_starts;
       c.page_starts[1] = 1;
     },
     "prefix_page_starts[1]", "prefix 0 starts at 0 and needs 2 pages"},
};

} // namespace

TEST_CASE("the host reference checks what the arrays of prefixes hold", "[prefix]") {
  for (const ContentRefusal &refusal : content_refusals) {
    HostCall call;
    refusal.change(call);
    Error error;
    check_refusal(sluice_reference(&call.problem, &call.args, &error), error, SLUICE_INVALID_ARGUMENT,
                  refusal.field, refusal.message);
    CHECK(call.lse[0] == 0);
  }
}

TEST_CASE("a row sees the keys of its prefix, then its sequence's", "[prefix]") {
  HostCall call;
  Error error;
  const sluice_status status = sluice_reference(&call.problem, &call.args, &error);
  INFO(error.message);
  REQUIRE(status == SLUICE_OK);
  // Elements of k and v that each row sees.
  const std::vector<size_t> seen[] = {{0, 1}, {6, 7, 8, 0, 1}, {6, 7, 8, 2}, {6, 7, 8, 2}, {10}, {}};
  for (size_t row = 0; row < 6; ++row) {
    double sum = 0, weighted = 0;
    for (const size_t key : seen[row]) {
      const double weight = std::exp(double{call.q[row]} * call.k[key]);
      sum += weight;
      weighted += weight * call.v[key];
    }
    CHECK(call.o[row] == Approx(sum == 0 ? 0 : weighted / sum));
    CHECK(call.lse[row] == Approx(std::log(sum)));
  }
}

TEST_CASE("keys of prefixes in blocks follow the rules of blocks", "[prefix]") {
  const std::vector<unsigned char> blocks(64 * 18);
  const std::vector<uint16_t> rows(4 * 2 * 64);
  sluice_problem problem;
  sluice_problem_init(&problem, sizeof problem);
  problem.flags = SLUICE_SHARED_PREFIX;
  problem.q_type = problem.o_type = SLUICE_F16;
  problem.k_type = problem.v_type = SLUICE_Q4_0;
  problem.q_heads = problem.kv_heads = 2;
  problem.head_dim_qk = problem.head_dim_v = 64;
  problem.max_prefixes = 1;
  problem.max_prefix_len = 4;
  problem.max_q_tokens = 2;
  sluice_args args;
  sluice_args_init(&args, sizeof args);
  args.batch = args.q_len = 1;
  args.kv_len = 2;
  const int32_t starts[] = {0, 1};
  std::vector<uint16_t> o(2 * 64);
  args.q = {const_cast<uint16_t *>(rows.data()), {128, 128, 64, 1}};
  args.o = {o.data(), {128, 128, 64, 1}};
  args.k = args.v = {const_cast<unsigned char *>(blocks.data()), {2 * 128, 128, 64, 1}};
  args.prefix_count = 1;
  args.prefix_len = 4;
  args.prefix_q_starts = starts;
  args.prefix_k = args.prefix_v = {const_cast<unsigned char *>(blocks.data()), {4 * 128, 128, 64, 1}};
  Error error;
  const sluice_status status = sluice_reference(&problem, &args, &error);
  INFO(error.message);
  CHECK(status == SLUICE_OK);
  args.prefix_k.stride[1] = 72;
  check_refusal(sluice_reference(&problem, &args, &error), error, SLUICE_INVALID_ARGUMENT,
                "prefix_k.stride[1]", "prefix_k.stride[1] is 72; it must be a multiple of 32");
  args.prefix_k.stride[1] = 64;
  args.prefix_v.stride[2] = 16;
  check_refusal(sluice_reference(&problem, &args, &error), error, SLUICE_INVALID_ARGUMENT,
                "prefix_v.stride[2]", "it must be a multiple of 32");
}

TEST_CASE("a prefix inherits nothing of the sequences' own keys", "[prefix]") {
  FakeHip hip;
  const ContextHandle context = split_context(SLUICE_DEVICE_HIP);
  const sluice_launch launch = with_workspace();
  Call call = ragged();
  call.args.kv_tokens = 14; // fewer rows than a prefix has
  const PlanHandle plan = make_plan(context, call.problem);
  hip.forget_calls();
  REQUIRE(sluice_run(plan.get(), &call.args, &launch, nullptr) == SLUICE_OK);
  REQUIRE(hip.attention_count >= 2);
  CHECK(hip.attentions[0].kernargs.kv_len == call.args.prefix_len);
  CHECK(hip.attentions[0].kernargs.kv_rows == INT32_MAX);
  CHECK(hip.attentions[1].kernargs.kv_rows == 14);

  // All KV heads share the entries of a prefix.
  call = paged();
  call.args.page_table_head_stride = 100;
  const PlanHandle paged_plan = make_plan(context, call.problem);
  hip.forget_calls();
  REQUIRE(sluice_run(paged_plan.get(), &call.args, &launch, nullptr) == SLUICE_OK);
  CHECK(hip.attentions[0].kernargs.page_table_head_stride == 0);
  CHECK(hip.attentions[1].kernargs.page_table_head_stride == 100);
}

TEST_CASE("a call may have no prefixes, or prefixes without keys", "[prefix]") {
  FakeHip hip;
  const ContextHandle context = split_context(SLUICE_DEVICE_HIP);
  const sluice_launch launch = with_workspace();
  for (Call (*const good)() : {dense, ragged, paged, csr}) {
    Call call = good();
    call.args.flags = SLUICE_EXACT_LENGTHS;
    call.args.prefix_count = 0;
    call.args.prefix_k = call.args.prefix_v = {};
    call.args.prefix_lengths = call.args.prefix_page_starts = nullptr;
    call.args.prefix_page_table = nullptr;
    const PlanHandle plan = make_plan(context, call.problem);
    hip.forget_calls();
    Error error;
    sluice_status status = sluice_run(plan.get(), &call.args, &launch, &error);
    INFO(error.message);
    REQUIRE(status == SLUICE_OK);
    CHECK(hip.attention_count == 1);
    call = good();
    call.args.flags = SLUICE_EXACT_LENGTHS;
    call.args.prefix_len = 0;
    call.args.prefix_k = call.args.prefix_v = {};
    call.args.prefix_page_table = nullptr;
    hip.forget_calls();
    status = sluice_run(plan.get(), &call.args, &launch, &error);
    INFO(error.message);
    REQUIRE(status == SLUICE_OK);
    CHECK(hip.attention_count == 2);
    CHECK(hip.attentions[0].kernargs.kv_len == 0);
  }
}
