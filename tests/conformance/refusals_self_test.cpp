//===- refusals_self_test.cpp - the library refuses what the kit says must be refused -------------------===//
#include "conformance/attention/scores/scores.h"

#include <catch2/catch.hpp>

using namespace sluice::conformance;

namespace {

sluice_problem dense() {
  sluice_problem problem;
  sluice_problem_init(&problem, sizeof problem);
  problem.q_type = problem.k_type = problem.v_type = problem.o_type = SLUICE_F16;
  problem.q_heads = problem.kv_heads = 1;
  problem.head_dim_qk = problem.head_dim_v = 128;
  return problem;
}

/// The field of an invalid problem; "" for one without a mistake.
std::string invalid_field(const sluice_context *context, const sluice_problem &problem) {
  sluice_error error;
  sluice_error_init(&error, sizeof error);
  const sluice_status status = sluice_query_support(context, &problem, nullptr, &error);
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
  CHECK(invalid_field(context, dense()).empty());
  size_t tried = 0;
  for (const ScoreChange *change : score_changes) {
    if (change->bad_problems == nullptr) continue;
    for (const BadProblem &bad : change->bad_problems()) {
      sluice_problem problem = dense();
      bad.spoil(problem);
      CHECK(invalid_field(context, problem) == bad.field);
      ++tried;
    }
  }
  CHECK(tried > 0);
  sluice_context_destroy(context);
}
