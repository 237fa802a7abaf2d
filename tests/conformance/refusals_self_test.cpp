//===- refusals_self_test.cpp - the library refuses what the kit says must be refused -------------------===//
#include "conformance/attention/scores/scores.h"

#include <catch2/catch.hpp>

using namespace sluice::conformance;

namespace {

struct Dense : ProblemStructs {
  Dense() {
    attention.q.type = attention.o.type = kv.k.type = kv.v.type = SLUICE_F16;
    attention.q_heads = kv.kv_heads = 1;
    kv.head_dim_qk = kv.head_dim_v = 128;
  }
};

/// The field of an invalid problem; "" for one without a mistake.
std::string invalid_field(const sluice_context *context, const ProblemStructs &problem) {
  sluice_error error;
  sluice_error_init(&error, sizeof error);
  const sluice_status status = sluice_attention_support(context, &problem.attention, nullptr, &error);
  return status == SLUICE_INVALID_ARGUMENT ? error.field : "";
}

} // namespace

TEST_CASE("problems that break a rule of a change of scores are refused by the member's name") {
  sluice_context_desc desc;
  sluice_context_desc_init(&desc, sizeof desc);
  desc.kind = SLUICE_DEVICE_TARGET;
  desc.target = "gfx942:304";
  sluice_context *context = nullptr;
  REQUIRE(sluice_context_create(&desc, &context, nullptr) == SLUICE_OK);
  CHECK(invalid_field(context, Dense()).empty());
  size_t tried = 0;
  for (const ScoreChange *change : score_changes) {
    if (change->bad_problems == nullptr) continue;
    for (const BadProblem &bad : change->bad_problems()) {
      Dense problem;
      bad.spoil(problem);
      CHECK(invalid_field(context, problem) == bad.field);
      ++tried;
    }
  }
  CHECK(tried > 0);
  sluice_context_destroy(context);
}
