//===- kernel_features_test.cpp - which missing feature of kernels a refusal names ----------------------===//
#include "calls/args.h"
#include "runtime/kernel_features.h"

#include "support/failure.h"

#include <catch2/catch.hpp>

#include <string>
#include <vector>

using namespace sluice;

TEST_CASE("a problem needs features of kernels in the same order as ever", "[features]") {
  const std::vector<std::string> wanted = {"ragged flags",
                                           "ragged flags",
                                           "lengths flags",
                                           "paged page_size",
                                           "csr page_table_kind",
                                           "page_index_64 flags",
                                           "k_pack k_pack",
                                           "v_pack v_pack",
                                           "v_in_k flags",
                                           "causal flags",
                                           "window flags",
                                           "mask flags",
                                           "soft_cap soft_cap",
                                           "bias bias_type",
                                           "alibi flags",
                                           "sink_logits flags",
                                           "scales q_scale_kind",
                                           "scales k_scale_kind",
                                           "scales v_scale_kind",
                                           "lse lse",
                                           "lse_base_2 lse",
                                           "key_scales k_scale_kind",
                                           "key_scales v_scale_kind",
                                           "mask_new_rows flags",
                                           "spans flags",
                                           "causal_by_sequence flags",
                                           "given_diagonal mask_alignment",
                                           "bias_scale flags",
                                           "missing_pages flags",
                                           "padded_rows flags"};
  auto next = wanted.begin(); // later features may come between
  for (const features::Need &need : runtime::needs()) {
    const std::string found = std::string(need.name) + " " + std::string(need.field);
    if (next != wanted.end() && found == *next) ++next;
  }
  CHECK(std::vector(next, wanted.end()).empty());
}

TEST_CASE("a call is refused for the first feature that the kernel lacks", "[features]") {
  package::KernelEntry kernel;
  const int32_t numbers[2] = {};
  calls::Args args = {};
  args.batch = 2;
  args.alibi_batch_stride = 1;
  args.q_starts = args.q_lengths = args.kv_lengths = numbers;
  for (const std::string name : {"ragged", "lengths", "alibi_by_sequence"}) {
    try {
      runtime::check_call_features(kernel, {}, args);
      FAIL("not refused");
    } catch (const support::Failure &failure) {
      CHECK_THAT(failure.message(), Catch::Contains("does not have the feature " + name + ";"));
    }
    kernel.features.push_back(name);
  }
  runtime::check_call_features(kernel, {}, args);
}
