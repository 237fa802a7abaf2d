//===- invariance_test.cpp - what the bits of a sequence's result may depend on -------------------------===//
#include "bounds/batch.h"
#include "calls/problem.h"

using namespace sluice::test;
namespace calls = sluice::calls;

namespace {

struct Bits {
  std::vector<uint16_t> o;
  std::vector<float> lse;
  bool operator==(const Bits &) const = default;
};

Bits bits_of(const Batch &batch, size_t sequence) {
  return {batch.output(sequence), batch.lse_of(sequence)};
}

calls::Problem invariant(calls::Problem problem, int32_t batch, int32_t rows, int32_t keys) {
  problem.flags |= calls::batch_invariant;
  problem.max_batch = batch;
  problem.max_q_len = rows;
  problem.max_kv_len = keys;
  return problem;
}

} // namespace

TEST_CASE("batch-invariant results do not depend on the rest of the batch", "[bounds]") {
  // Decode; a few rows that go to a decode kernel or not, depending on the group; prefill; more keys than one
  // split has.
  const std::vector<Sequence> watched = {
      {1, 2500, 11}, {1, 30, 12}, {3, 2100, 13}, {70, 90, 14}, {150, 300, 15}};
  const std::vector<Sequence> others = {{1, 2049, 21}, {40, 2300, 22}, {0, 7, 23}, {2, 16, 24}};
  for (const uint32_t mode : {calls::dense, calls::ragged, calls::paged})
    for (const int32_t group : {1, 8}) {
      const calls::Problem problem = problem_of({.mode = mode,
                                                 .group = group,
                                                 .head_dim = group == 1 ? 64 : 128,
                                                 .type = group == 1 ? SLUICE_F16 : SLUICE_BF16});
      // All sequences, in order, at bounds that just hold them.
      Batch together(invariant(problem, 5, 150, 2500), watched);
      together.run();
      // In another order and among others, at larger bounds.
      std::vector<Sequence> mixed;
      for (size_t i = watched.size(); i-- > 0;) {
        mixed.push_back(others[i % others.size()]);
        mixed.push_back(watched[i]);
      }
      Batch among(invariant(problem, 40, 200, 9000), mixed, 180, 4000);
      among.run();
      for (size_t i = 0; i < watched.size(); ++i) {
        INFO("mode " << mode << ", group " << group << ", sequence " << i);
        const Bits bits = bits_of(together, i);
        CHECK(bits == bits_of(among, mixed.size() - 1 - 2 * i));
        // Each on its own, at its own bounds.
        Batch single(invariant(problem, 1, watched[i].rows, watched[i].keys), {watched[i]});
        single.run();
        CHECK(bits == bits_of(single, 0));
      }
      together.compare_with_reference();
    }
}

TEST_CASE("fast results are the same each time", "[bounds]") {
  for (const uint32_t mode : {calls::dense, calls::ragged, calls::paged}) {
    calls::Problem problem = problem_of({.mode = mode, .group = 4, .head_dim = 64});
    problem.max_batch = 3;
    problem.max_q_len = 40;
    problem.max_kv_len = 3000;
    const PlanHandle plan = plan_of(problem);
    const std::vector<Sequence> sequences = {{1, 2900, 1}, {33, 100, 2}, {4, 1000, 3}};
    Batch first(problem, sequences);
    first.run(plan);
    for (const char *schedule : {"descending", "random"}) {
      INFO("mode " << mode << ", workgroups " << schedule);
      REQUIRE(sluice_emulator_configure("workgroup_schedule", schedule) == SLUICE_EMULATOR_OK);
      Batch again(problem, sequences);
      again.run(plan);
      REQUIRE(sluice_emulator_configure("workgroup_schedule", "ascending") == SLUICE_EMULATOR_OK);
      for (size_t i = 0; i < sequences.size(); ++i)
        CHECK(bits_of(first, i) == bits_of(again, i));
    }
  }
}
