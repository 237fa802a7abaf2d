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
  void (*ask)(AttentionCall &);
  const char *field; // of the refusal if the last feature is missing
  const char *message;
};

const Ability abilities[] = {
    {{"causal"},
     [](AttentionCall &c) { c.mask.flags |= SLUICE_MASK_CAUSAL; },
     "mask.flags",
     "mask.flags has SLUICE_MASK_CAUSAL"},
    {{"lse"},
     [](AttentionCall &c) { c.attention.lse = SLUICE_LSE_LN; },
     "lse",
     "lse is 1; nearest supported: SLUICE_LSE_NONE (0)"},
    {{"lse", "lse_base_2"},
     [](AttentionCall &c) { c.attention.lse = SLUICE_LSE_LOG2; },
     "lse",
     "lse is 2; nearest supported: SLUICE_LSE_LN (1)"},
    {{"ragged"},
     [](AttentionCall &c) { c.attention.flags = SLUICE_ATTENTION_RAGGED; },
     "flags",
     "flags has SLUICE_ATTENTION_RAGGED; nearest supported: without it"},
    {{"paged"}, make_paged, "kv.page_size", "kv.page_size is 16; nearest supported: 0 (not in pages)"},
    {{"paged", "csr"},
     [](AttentionCall &c) {
       make_paged(c);
       c.format.page_table = SLUICE_PAGE_TABLE_CSR;
     },
     "kv.page_table",
     "kv.page_table is 2; nearest supported: SLUICE_PAGE_TABLE_BLOCK (1)"},
    {{"paged", "page_index_64"},
     [](AttentionCall &c) {
       make_paged(c);
       c.format.flags |= SLUICE_KV_PAGE_INDEX_64;
     },
     "kv.flags",
     "kv.flags has SLUICE_KV_PAGE_INDEX_64; nearest supported: without it"},
    {{"paged", "k_pack"},
     [](AttentionCall &c) {
       make_paged(c);
       c.format.k.pack = 8;
     },
     "kv.k.pack",
     "kv.k.pack is 8; nearest supported: 0"},
    {{"v_in_k"},
     [](AttentionCall &c) {
       c.format.flags = SLUICE_KV_V_IN_K;
       c.format.v = {};
     },
     "kv.flags",
     "kv.flags has SLUICE_KV_V_IN_K; nearest supported: without it"},
    {{"v_pack"},
     [](AttentionCall &c) { c.format.v.pack = SLUICE_PACK_ALL; },
     "kv.v.pack",
     "kv.v.pack is 1073741824; nearest supported: 0"},
    {{"window"},
     [](AttentionCall &c) {
       c.mask.flags |= SLUICE_MASK_WINDOW_LEFT;
       c.mask.window_left = 5;
       c.mask.sink_tokens = 2;
     },
     "mask.flags",
     "mask.flags has SLUICE_MASK_WINDOW_LEFT (mask.window_left 5); nearest supported: no window"},
    {{"window"},
     [](AttentionCall &c) { c.mask.flags |= SLUICE_MASK_WINDOW_RIGHT; },
     "mask.flags",
     "mask.flags has SLUICE_MASK_WINDOW_RIGHT (mask.window_right 0); nearest supported: no window"},
    {{"mask"},
     [](AttentionCall &c) { c.mask.flags |= SLUICE_MASK_BITS; },
     "mask.flags",
     "mask.flags has SLUICE_MASK_BITS"},
    {{"soft_cap"},
     [](AttentionCall &c) { c.scores.soft_cap = 30; },
     "scores.soft_cap",
     "scores.soft_cap is 30; nearest supported: 0"},
    {{"bias"},
     [](AttentionCall &c) { c.scores.bias_type = SLUICE_BF16; },
     "scores.bias_type",
     "scores.bias_type is 2; nearest supported: 0 (no bias)"},
    {{"alibi"},
     [](AttentionCall &c) { c.scores.flags |= SLUICE_SCORES_ALIBI; },
     "scores.flags",
     "scores.flags has SLUICE_SCORES_ALIBI"},
    {{"sink_logits"},
     [](AttentionCall &c) { c.scores.flags |= SLUICE_SCORES_SINK; },
     "scores.flags",
     "scores.flags has SLUICE_SCORES_SINK"},
    {{"scales"},
     [](AttentionCall &c) { c.attention.q.scale_kind = SLUICE_SCALE_PER_TENSOR; },
     "q.scale_kind",
     "q.scale_kind is 1; nearest supported: SLUICE_SCALE_NONE (0)"},
    {{"scales"},
     [](AttentionCall &c) { c.format.k.scale_kind = SLUICE_SCALE_PER_HEAD; },
     "kv.k.scale_kind",
     "kv.k.scale_kind is 2; nearest supported: SLUICE_SCALE_NONE (0)"},
    {{"scales"},
     [](AttentionCall &c) { c.format.v.scale_kind = SLUICE_SCALE_PER_HEAD; },
     "kv.v.scale_kind",
     "kv.v.scale_kind is 2; nearest supported: SLUICE_SCALE_NONE (0)"},
    {{"key_scales"},
     [](AttentionCall &c) { c.format.k.scale_kind = SLUICE_SCALE_PER_TOKEN; },
     "kv.k.scale_kind",
     "kv.k.scale_kind is 3; nearest supported: SLUICE_SCALE_PER_HEAD (2)"},
    {{"key_scales"},
     [](AttentionCall &c) { c.format.v.scale_kind = SLUICE_SCALE_PER_TOKEN; },
     "kv.v.scale_kind",
     "kv.v.scale_kind is 3; nearest supported: SLUICE_SCALE_PER_HEAD (2)"},
    {{"mask", "mask_new_rows"},
     [](AttentionCall &c) { c.mask.flags |= SLUICE_MASK_BITS | SLUICE_MASK_BITS_OF_NEW; },
     "mask.flags",
     "mask.flags has SLUICE_MASK_BITS_OF_NEW; nearest supported: without it"},
    {{"spans"},
     [](AttentionCall &c) { c.mask.flags |= SLUICE_MASK_SPANS; },
     "mask.flags",
     "mask.flags has SLUICE_MASK_SPANS"},
    {{"causal_by_sequence"},
     [](AttentionCall &c) { c.mask.flags |= SLUICE_MASK_CAUSAL_BY_SEQUENCE; },
     "mask.flags",
     "mask.flags has SLUICE_MASK_CAUSAL_BY_SEQUENCE"},
    {{"given_diagonal"},
     [](AttentionCall &c) { c.mask.alignment = SLUICE_GIVEN_DIAGONAL; },
     "mask.alignment",
     "mask.alignment is 2; nearest supported: SLUICE_TOP_LEFT (1)"},
    {{"bias", "bias_scale"},
     [](AttentionCall &c) {
       c.scores.bias_type = SLUICE_F32;
       c.scores.flags |= SLUICE_SCORES_BIAS_SCALE;
     },
     "scores.flags",
     "scores.flags has SLUICE_SCORES_BIAS_SCALE; nearest supported: without it"},
    {{"paged", "missing_pages"},
     [](AttentionCall &c) {
       make_paged(c);
       c.mask.flags |= SLUICE_MASK_MISSING_PAGES;
     },
     "mask.flags",
     "mask.flags has SLUICE_MASK_MISSING_PAGES; nearest supported: without it"},
    {{"padded_rows"},
     [](AttentionCall &c) { c.attention.flags |= SLUICE_ATTENTION_PADDED_ROWS; },
     "flags",
     "flags has SLUICE_ATTENTION_PADDED_ROWS; nearest supported: without it"},
};

AttentionCall plain_call() {
  AttentionCall call = good_call();
  call.mask.flags = 0;
  call.attention.lse = SLUICE_LSE_NONE;
  call.args.lse = nullptr;
  return call;
}

} // namespace

TEST_CASE("a kernel serves a problem if it lists all features that the problem needs", "[features]") {
  for (const Ability &ability : abilities) {
    AttentionCall call = plain_call();
    ability.ask(call);
    INFO(ability.message);
    const auto query_with = [&](const std::vector<std::string> &features, Error &error) {
      const std::vector<std::byte> pack = test_pack(features);
      return query(make_context(context_desc(SLUICE_DEVICE_TARGET, pack)), call, &error);
    };
    Error error;
    CHECK(query_with(ability.features, error) == SLUICE_OK);
    CHECK(query_with(all_features(), error) == SLUICE_OK);
    // All features but the one that matters.
    std::vector<std::string> others = all_features();
    std::erase(others, ability.features.back());
    check_refusal(query_with(others, error), error, SLUICE_UNSUPPORTED, ability.field, ability.message);
  }
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
  AttentionCall call = plain_call();
  REQUIRE(sluice_attention_support(context.get(), &call.attention, &support, nullptr) == SLUICE_OK);
  CHECK(std::string(support.kernel) == "attn_fwd_f16_d128_q256_kv64_w8");
  call.mask.flags |= SLUICE_MASK_WINDOW_LEFT;
  REQUIRE(sluice_attention_support(context.get(), &call.attention, &support, nullptr) == SLUICE_OK);
  CHECK(std::string(support.kernel) == "attn_fwd_f16_d128_q128_kv64_w4");
}

TEST_CASE("features that only a call asks for are refused if the kernel lacks them", "[features]") {
  FakeHip hip;
  const int32_t *array = reinterpret_cast<const int32_t *>(device_memory);
  const auto run_with = [&](const std::vector<std::string> &features, const AttentionCall &call,
                            Error &error) {
    const std::vector<std::byte> pack = test_pack(features);
    const ContextHandle context = make_context(context_desc(SLUICE_DEVICE_HIP, pack));
    const PlanHandle plan = make_plan(context, call);
    hip.forget_calls();
    return run(plan, call, nullptr, &error);
  };
  Error error;
  AttentionCall call = good_call();
  SECTION("lengths of dense sequences") {
    call.args.rows.lengths = array;
    check_refusal(run_with({"causal", "lse"}, call, error), error, SLUICE_UNSUPPORTED, "rows.lengths",
                  "rows.lengths is given, but attn_fwd_f16_d128_q256_kv64_w8 does not have the feature "
                  "lengths; nearest supported: NULL");
    CHECK(hip.count("hipModuleLaunchKernel") == 0);
    call.args.rows.lengths = nullptr;
    call.keys[0].rows.lengths = array;
    check_refusal(run_with({"causal", "lse"}, call, error), error, SLUICE_UNSUPPORTED, "keys[0].rows.lengths",
                  "keys[0].rows.lengths is given, but");
    call.args.rows.lengths = array;
    CHECK(run_with({"causal", "lse", "lengths"}, call, error) == SLUICE_OK);
  }
  SECTION("starts of queries whose keys are in pages") {
    make_paged(call);
    CHECK(run_with({"causal", "lse", "paged"}, call, error) == SLUICE_OK);
    call.args.rows.starts = array;
    check_refusal(run_with({"causal", "lse", "paged"}, call, error), error, SLUICE_UNSUPPORTED, "rows.starts",
                  "does not have the feature ragged");
    CHECK(run_with({"causal", "lse", "paged", "ragged"}, call, error) == SLUICE_OK);
  }
  SECTION("slopes of sequences") {
    call.scores.flags = SLUICE_SCORES_ALIBI;
    call.scores_args.alibi_slopes = reinterpret_cast<const float *>(device_memory);
    call.scores_args.alibi_stride = 8;
    check_refusal(run_with({"causal", "lse", "alibi"}, call, error), error, SLUICE_UNSUPPORTED,
                  "scores.alibi_stride", "does not have the feature alibi_by_sequence; nearest supported: 0");
    CHECK(run_with({"causal", "lse", "alibi", "alibi_by_sequence"}, call, error) == SLUICE_OK);
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
