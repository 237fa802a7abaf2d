//===- batch.h - a batch of sequences whose numbers depend only on the sequence -------------------------===//
//
// The same sequence can be put at another place, among others, or into another mode, and its results compared
// bit by bit. Lengths are on the device. Everything outside the sequences is NaN.
//
//===----------------------------------------------------------------------------------------------------===//
#pragma once

#include "cache_ops/device.h"
#include "calls/args.h"
#include "calls/problem.h"

#include <optional>
#include <vector>

namespace sluice::test {

struct DestroyPlan {
  void operator()(sluice_plan *plan) const { sluice_plan_destroy(plan); }
};
using PlanHandle = std::unique_ptr<sluice_plan, DestroyPlan>;

/// A plan of the emulated device.
PlanHandle plan_of(const calls::Problem &problem);
sluice_plan_info describe(const PlanHandle &plan);
/// Runs a call to its end, with workspace exactly as large as the plan says.
void run_with_workspace(const PlanHandle &plan, const calls::Problem &problem, const calls::Args &args);

struct ProblemShape {
  uint32_t mode = calls::dense;
  int32_t group = 1, kv_heads = 1, head_dim = 128;
  uint32_t type = SLUICE_F16;
  uint32_t flags = calls::causal;
};
/// With LSE. Pages have 16 rows, found through a block table.
calls::Problem problem_of(const ProblemShape &shape);

struct Sequence {
  int32_t rows, keys;
  uint64_t seed = 1; // of its numbers
};

class Batch {
public:
  /// `q_len` and `kv_len` are those of the call, 0 for the longest sequence's.
  Batch(const calls::Problem &problem, std::vector<Sequence> sequences, int32_t q_len = 0,
        int32_t kv_len = 0);

  /// Runs to the end, with workspace as large as the plan asks for.
  void run(const PlanHandle &plan);
  /// With a new plan.
  void run() { run(plan_of(problem)); }

  /// O of a sequence, row by row.
  std::vector<uint16_t> output(size_t sequence) const;
  std::vector<float> lse_of(size_t sequence) const;
  /// Whether all rows of all sequences match sluice_attention_reference, up to rounding.
  void compare_with_reference();

  /// Bytes of a row of one head of K or V, and their place among those of the tensor.
  size_t row_bytes(bool is_k) const;
  size_t row_place(bool is_k, size_t sequence, int32_t key, int32_t head) const;

  const calls::Problem problem;
  const std::vector<Sequence> sequences;
  calls::Args args;
  std::optional<Visible<uint16_t>> q, o; // two elements each for FP8
  std::optional<Visible<float>> lse;
  std::optional<Visible<uint8_t>> k, v;
  std::optional<Visible<int32_t>> q_lengths, kv_lengths, q_starts, kv_starts, table;

private:
  size_t key_row(size_t sequence, int32_t key) const;
  size_t row_of(size_t sequence, int32_t row) const;
  void draw_queries();
  void place_keys();
  void draw_keys(std::optional<Visible<uint8_t>> &tensor, bool is_k);
  uint16_t number(Numbers &numbers) const;

  size_t key_rows = 0;
};

} // namespace sluice::test
