//===- fixture.h - shared by the tests of the C ABI -----------------------------------------------------===//
#pragma once

#include "support/fake_hip.h"
#include "support/test_pack.h"

#include <sluice/sluice.h>

#include <catch2/catch.hpp>

#include <memory>
#include <string>
#include <vector>

namespace sluice::test {

struct ContextDeleter {
  void operator()(sluice_context *context) const { sluice_context_destroy(context); }
};
struct PlanDeleter {
  void operator()(sluice_plan *plan) const { sluice_plan_destroy(plan); }
};
using ContextHandle = std::unique_ptr<sluice_context, ContextDeleter>;
using PlanHandle = std::unique_ptr<sluice_plan, PlanDeleter>;

struct Error : sluice_error {
  Error() { sluice_error_init(this, sizeof(sluice_error)); }
};

/// Checks a refusal: its status, field and message.
inline void check_refusal(sluice_status status, const Error &error, sluice_status expected,
                          const std::string &field, const std::string &message_part) {
  INFO(sluice_status_name(status) << " [" << error.field << "] " << error.message);
  CHECK(status == expected);
  CHECK(error.code == expected);
  CHECK(error.field == field);
  CHECK_THAT(error.message, Catch::Contains(message_part));
}

inline const std::vector<std::byte> &shared_test_pack() {
  static const std::vector<std::byte> pack = test_pack();
  return pack;
}

inline sluice_context_desc context_desc(uint32_t kind) {
  sluice_context_desc desc;
  sluice_context_desc_init(&desc, sizeof desc);
  desc.kind = kind;
  if (kind == SLUICE_DEVICE_HIP) desc.hip_resolver = FakeHip::resolve;
  if (kind == SLUICE_DEVICE_TARGET) desc.target = "gfx942:304";
  desc.pack = shared_test_pack().data();
  desc.pack_bytes = shared_test_pack().size();
  return desc;
}

/// With a pack instead of the one that context_desc(kind) has.
inline sluice_context_desc context_desc(uint32_t kind, const std::vector<std::byte> &pack) {
  sluice_context_desc desc = context_desc(kind);
  desc.pack = pack.data();
  desc.pack_bytes = pack.size();
  return desc;
}

inline ContextHandle make_context(const sluice_context_desc &desc) {
  Error error;
  sluice_context *context = nullptr;
  const sluice_status status = sluice_context_create(&desc, &context, &error);
  INFO(error.message);
  REQUIRE(status == SLUICE_OK);
  REQUIRE(context != nullptr);
  return ContextHandle(context);
}

/// A context of a target: answers questions only.
inline ContextHandle target_context() {
  return make_context(context_desc(SLUICE_DEVICE_TARGET));
}
/// A context of the existing FakeHip.
inline ContextHandle fake_context() {
  return make_context(context_desc(SLUICE_DEVICE_HIP));
}

/// F16, 8 query heads on 2 KV heads of dim 128, causal, with LSE.
inline sluice_problem good_problem() {
  sluice_problem problem;
  sluice_problem_init(&problem, sizeof problem);
  problem.flags = SLUICE_CAUSAL | SLUICE_WRITE_LSE;
  problem.q_type = problem.k_type = problem.v_type = problem.o_type = SLUICE_F16;
  problem.q_heads = 8;
  problem.kv_heads = 2;
  problem.head_dim_qk = problem.head_dim_v = 128;
  return problem;
}

/// Pages of 16 rows, found through a table with a row per sequence.
inline void make_paged(sluice_problem &problem) {
  problem.mode = SLUICE_MODE_PAGED;
  problem.page_size = 16;
  problem.page_table_kind = SLUICE_PAGE_TABLE_BLOCK;
}

inline PlanHandle make_plan(const ContextHandle &context, const sluice_problem &problem) {
  Error error;
  sluice_plan *plan = nullptr;
  const sluice_status status = sluice_plan_create(context.get(), &problem, &plan, &error);
  INFO(error.message);
  REQUIRE(status == SLUICE_OK);
  return PlanHandle(plan);
}

/// Memory that is never accessed.
alignas(256) inline unsigned char device_memory[512];

/// Batch 2, 5 query rows, 7 keys, contiguous, for good_problem().
inline sluice_args good_args() {
  sluice_args args;
  sluice_args_init(&args, sizeof args);
  args.batch = 2;
  args.q_len = 5;
  args.kv_len = 7;
  args.scale = 0.25f;
  args.q = {device_memory, {5 * 8 * 128, 8 * 128, 128, 1}};
  args.k = {device_memory + 16, {7 * 2 * 128, 2 * 128, 128, 1}};
  args.v = {device_memory + 32, {7 * 2 * 128, 2 * 128, 128, 1}};
  args.o = {device_memory + 48, {5 * 8 * 128, 8 * 128, 128, 1}};
  args.lse = {device_memory + 64, {8 * 5, 1, 5, 0}};
  return args;
}

inline sluice_launch good_launch() {
  sluice_launch launch;
  sluice_launch_init(&launch, sizeof launch);
  launch.stream = FakeHip::handle(0x100);
  return launch;
}

/// Runs a good call, and then the same call after a change, which is refused before anything is launched.
template <typename Refusal>
void check_call_refusal(FakeHip &hip, const ContextHandle &context, const sluice_launch &launch,
                        const Refusal &refusal, sluice_status status) {
  auto call = refusal.good();
  Error error;
  CHECK(sluice_run(make_plan(context, call.problem).get(), &call.args, &launch, &error) == SLUICE_OK);
  INFO(error.message);
  refusal.change(call);
  const PlanHandle plan = make_plan(context, call.problem);
  hip.forget_calls();
  check_refusal(sluice_run(plan.get(), &call.args, &launch, &error), error, status, refusal.field,
                refusal.message);
  CHECK(hip.call_count == 0);
}

} // namespace sluice::test
