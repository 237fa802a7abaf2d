//===- features_test.cpp - problems and calls get exactly what kernels list -----------------------------===//
#include "fixture.h"

#include <sstream>
#include <string>
#include <vector>

using namespace sluice::test;

namespace {

/// A possible feature of a kernel, and how a problem asks for it.
struct Ability {
  std::vector<std::string> features; // all of them are needed
  void (*ask)(sluice_problem &);
  const char *field; // of the refusal if the last feature is missing
  const char *message;
};

const Ability abilities[] = {
    {{"causal"}, [](sluice_problem &p) { p.flags |= SLUICE_CAUSAL; }, "flags", "flags has SLUICE_CAUSAL"},
    {{"lse"}, [](sluice_problem &p) { p.flags |= SLUICE_WRITE_LSE; }, "flags", "flags has SLUICE_WRITE_LSE"},
    {{"lse", "lse_base_2"},
     [](sluice_problem &p) {
       p.flags |= SLUICE_WRITE_LSE;
       p.lse_base = SLUICE_LSE_BASE_2;
     },
     "lse_base",
     "lse_base is 1; nearest supported: SLUICE_LSE_BASE_E (0)"},
    {{"ragged"},
     [](sluice_problem &p) { p.mode = SLUICE_MODE_RAGGED; },
     "mode",
     "mode is 1; nearest supported: SLUICE_MODE_DENSE (0)"},
    {{"paged"}, make_paged, "mode", "mode is 2; nearest supported: SLUICE_MODE_DENSE (0)"},
    {{"paged", "csr"},
     [](sluice_problem &p) {
       make_paged(p);
       p.page_table_kind = SLUICE_PAGE_TABLE_CSR;
     },
     "page_table_kind",
     "page_table_kind is 2; nearest supported: SLUICE_PAGE_TABLE_BLOCK (1)"},
    {{"paged", "page_index_64"},
     [](sluice_problem &p) {
       make_paged(p);
       p.flags |= SLUICE_PAGE_INDEX_64;
     },
     "flags",
     "flags has SLUICE_PAGE_INDEX_64; nearest supported: without it"},
    {{"paged", "k_pack"},
     [](sluice_problem &p) {
       make_paged(p);
       p.k_pack = 8;
     },
     "k_pack",
     "k_pack is 8; nearest supported: 0"},
    {{"v_in_k"}, [](sluice_problem &p) { p.flags |= SLUICE_V_IN_K; }, "flags", "flags has SLUICE_V_IN_K"},
    {{"v_pack"},
     [](sluice_problem &p) { p.v_pack = SLUICE_V_PACK_ALL; },
     "v_pack",
     "v_pack is 1073741824; nearest supported: 0"},
    {{"window"},
     [](sluice_problem &p) {
       p.flags |= SLUICE_HAS_WINDOW_LEFT;
       p.window_left = 5;
       p.sink_tokens = 2;
     },
     "flags",
     "flags has SLUICE_HAS_WINDOW_LEFT (window_left 5); nearest supported: no window"},
    {{"window"},
     [](sluice_problem &p) { p.flags |= SLUICE_HAS_WINDOW_RIGHT; },
     "flags",
     "flags has SLUICE_HAS_WINDOW_RIGHT (window_right 0); nearest supported: no window"},
    {{"mask"}, [](sluice_problem &p) { p.flags |= SLUICE_BOOL_MASK; }, "flags", "flags has SLUICE_BOOL_MASK"},
    {{"soft_cap"},
     [](sluice_problem &p) { p.soft_cap = 30; },
     "soft_cap",
     "soft_cap is 30; nearest supported: 0"},
    {{"bias"},
     [](sluice_problem &p) { p.bias_type = SLUICE_BF16; },
     "bias_type",
     "bias_type is 2; nearest supported: 0 (no bias)"},
    {{"alibi"}, [](sluice_problem &p) { p.flags |= SLUICE_ALIBI; }, "flags", "flags has SLUICE_ALIBI"},
    {{"sink_logits"},
     [](sluice_problem &p) { p.flags |= SLUICE_SINK_LOGITS; },
     "flags",
     "flags has SLUICE_SINK_LOGITS"},
    {{"scales"},
     [](sluice_problem &p) { p.q_scale_kind = SLUICE_SCALE_PER_TENSOR; },
     "q_scale_kind",
     "q_scale_kind is 1; nearest supported: SLUICE_SCALE_NONE (0)"},
    {{"scales"},
     [](sluice_problem &p) { p.k_scale_kind = SLUICE_SCALE_PER_HEAD; },
     "k_scale_kind",
     "k_scale_kind is 2; nearest supported: SLUICE_SCALE_NONE (0)"},
    {{"scales"},
     [](sluice_problem &p) { p.v_scale_kind = SLUICE_SCALE_PER_HEAD; },
     "v_scale_kind",
     "v_scale_kind is 2; nearest supported: SLUICE_SCALE_NONE (0)"},
    {{"key_scales"},
     [](sluice_problem &p) { p.k_scale_kind = SLUICE_SCALE_PER_TOKEN; },
     "k_scale_kind",
     "k_scale_kind is 3; nearest supported: SLUICE_SCALE_PER_HEAD (2)"},
    {{"key_scales"},
     [](sluice_problem &p) { p.v_scale_kind = SLUICE_SCALE_PER_TOKEN; },
     "v_scale_kind",
     "v_scale_kind is 3; nearest supported: SLUICE_SCALE_PER_HEAD (2)"},
    {{"mask", "mask_new_rows"},
     [](sluice_problem &p) { p.flags |= SLUICE_BOOL_MASK | SLUICE_MASK_NEW_ROWS; },
     "flags",
     "flags has SLUICE_MASK_NEW_ROWS; nearest supported: without it"},
    {{"spans"}, [](sluice_problem &p) { p.flags |= SLUICE_SPANS; }, "flags", "flags has SLUICE_SPANS"},
    {{"causal_by_sequence"},
     [](sluice_problem &p) { p.flags |= SLUICE_CAUSAL_BY_SEQUENCE; },
     "flags",
     "flags has SLUICE_CAUSAL_BY_SEQUENCE"},
    {{"given_diagonal"},
     [](sluice_problem &p) { p.mask_alignment = SLUICE_GIVEN_DIAGONAL; },
     "mask_alignment",
     "mask_alignment is 2; nearest supported: SLUICE_TOP_LEFT (1)"},
    {{"bias", "bias_scale"},
     [](sluice_problem &p) {
       p.bias_type = SLUICE_F32;
       p.flags |= SLUICE_BIAS_SCALE;
     },
     "flags",
     "flags has SLUICE_BIAS_SCALE; nearest supported: without it"},
    {{"paged", "missing_pages"},
     [](sluice_problem &p) {
       make_paged(p);
       p.flags |= SLUICE_MISSING_PAGES_HIDDEN;
     },
     "flags",
     "flags has SLUICE_MISSING_PAGES_HIDDEN; nearest supported: without it"},
    {{"padded_rows"},
     [](sluice_problem &p) { p.flags |= SLUICE_PADDED_ROWS; },
     "flags",
     "flags has SLUICE_PADDED_ROWS; nearest supported: without it"},
};

sluice_problem plain_problem() {
  sluice_problem problem = good_problem();
  problem.flags = 0;
  return problem;
}

} // namespace

TEST_CASE("a kernel serves a problem if it lists all features that the problem needs", "[features]") {
  for (const Ability &ability : abilities) {
    sluice_problem problem = plain_problem();
    ability.ask(problem);
    INFO(ability.message);
    const auto query = [&](const std::vector<std::string> &features, Error &error) {
      const std::vector<std::byte> pack = test_pack(features);
      sluice_context_desc desc = context_desc(SLUICE_DEVICE_TARGET, pack);
      return sluice_query_support(make_context(desc).get(), &problem, nullptr, &error);
    };
    Error error;
    CHECK(query(ability.features, error) == SLUICE_OK);
    CHECK(query(all_features(), error) == SLUICE_OK);
    // All features but the one that matters.
    std::vector<std::string> others = all_features();
    std::erase(others, ability.features.back());
    check_refusal(query(others, error), error, SLUICE_UNSUPPORTED, ability.field, ability.message);
  }
}

TEST_CASE("a base of LSE needs no feature without an LSE", "[features]") {
  sluice_problem problem = plain_problem();
  problem.lse_base = SLUICE_LSE_BASE_2;
  CHECK(sluice_query_support(target_context().get(), &problem, nullptr, nullptr) == SLUICE_OK);
}

TEST_CASE("the kernel with the feature is chosen among those without", "[features]") {
  // Only the smaller of two tile heights supports windows: it gets the problems that need them.
  sluice::package::PackWriter writer("test", "22.1.8");
  for (const uint32_t waves : {4, 8}) {
    auto entry = kernel_entry("f16", 128, waves);
    if (waves == 4) entry.features.push_back("window");
    add_fake_kernel(writer, entry);
  }
  const std::vector<std::byte> pack = writer.finish();
  sluice_context_desc desc = context_desc(SLUICE_DEVICE_TARGET, pack);
  const ContextHandle context = make_context(desc);
  sluice_support support;
  sluice_support_init(&support, sizeof support);
  sluice_problem problem = plain_problem();
  REQUIRE(sluice_query_support(context.get(), &problem, &support, nullptr) == SLUICE_OK);
  CHECK(std::string(support.kernel) == "attn_fwd_f16_d128_q256_kv64_w8");
  problem.flags |= SLUICE_HAS_WINDOW_LEFT;
  REQUIRE(sluice_query_support(context.get(), &problem, &support, nullptr) == SLUICE_OK);
  CHECK(std::string(support.kernel) == "attn_fwd_f16_d128_q128_kv64_w4");
}

TEST_CASE("features that only a call asks for are refused if the kernel lacks them", "[features]") {
  FakeHip hip;
  const int32_t *array = reinterpret_cast<const int32_t *>(device_memory);
  const sluice_launch launch = good_launch();
  const auto run = [&](const std::vector<std::string> &features, const sluice_problem &problem,
                       const sluice_args &args, Error &error) {
    const std::vector<std::byte> pack = test_pack(features);
    sluice_context_desc desc = context_desc(SLUICE_DEVICE_HIP, pack);
    const ContextHandle context = make_context(desc);
    const PlanHandle plan = make_plan(context, problem);
    hip.forget_calls();
    return sluice_run(plan.get(), &args, &launch, &error);
  };
  Error error;
  SECTION("lengths of dense sequences") {
    sluice_args args = good_args();
    args.q_lengths = array;
    check_refusal(run({"causal", "lse"}, good_problem(), args, error), error, SLUICE_UNSUPPORTED, "q_lengths",
                  "q_lengths is given, but attn_fwd_f16_d128_q256_kv64_w8 does not have the feature lengths; "
                  "nearest supported: NULL");
    CHECK(hip.count("hipModuleLaunchKernel") == 0);
    args.q_lengths = nullptr;
    args.kv_lengths = array;
    check_refusal(run({"causal", "lse"}, good_problem(), args, error), error, SLUICE_UNSUPPORTED,
                  "kv_lengths", "kv_lengths is given, but");
    args.q_lengths = array;
    CHECK(run({"causal", "lse", "lengths"}, good_problem(), args, error) == SLUICE_OK);
  }
  SECTION("starts of queries whose keys are in pages") {
    sluice_problem problem = good_problem();
    make_paged(problem);
    sluice_args args = good_args();
    args.kv_lengths = array;
    args.page_table = array;
    CHECK(run({"causal", "lse", "paged"}, problem, args, error) == SLUICE_OK);
    args.q_starts = array;
    args.q.stride[0] = args.o.stride[0] = args.lse.stride[0] = 0;
    check_refusal(run({"causal", "lse", "paged"}, problem, args, error), error, SLUICE_UNSUPPORTED,
                  "q_starts", "does not have the feature ragged");
    CHECK(run({"causal", "lse", "paged", "ragged"}, problem, args, error) == SLUICE_OK);
  }
}

TEST_CASE("a kernel with all features lists all of them", "[features]") {
  const std::vector<std::byte> pack = test_pack(all_features());
  sluice_context_desc desc = context_desc(SLUICE_DEVICE_TARGET, pack);
  const ContextHandle context = make_context(desc);
  sluice_kernel_info info;
  sluice_kernel_info_init(&info, sizeof info);
  REQUIRE(sluice_list_kernels(context.get(), 0, &info, nullptr, nullptr) == SLUICE_OK);
  std::vector<std::string> listed;
  for (const char *names : {info.features, info.more_features}) {
    std::istringstream text(names);
    for (std::string name; std::getline(text, name, ',');)
      listed.push_back(name);
  }
  CHECK_THAT(listed, Catch::Matchers::UnorderedEquals(all_features()));
}
