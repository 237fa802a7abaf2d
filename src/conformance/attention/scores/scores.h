//===- scores.h - the changes of scores, each in a file of its own --------------------------------------===//
//
// A change is a member of Case, its line in the list below that, and a file of this folder with everything
// else about it: its part of a name, its cases, what a library must refuse, its numbers, memory and
// arguments, and in the oracle its effect and its rounding errors. The files of the folder above go through
// the list.
//
//===----------------------------------------------------------------------------------------------------===//
#pragma once

#include "conformance/attention/bound.h"
#include "conformance/attention/call_memory.h"
#include "conformance/attention/choices.h"
#include "conformance/attention/edges.h"
#include "conformance/attention/kernel_cases.h"
#include "conformance/attention/memory.h"
#include "conformance/attention/mutant.h"
#include "conformance/attention/sequences.h"
#include "conformance/shared/case_random.h"
#include "conformance/shared/structs.h"

#include <string>
#include <vector>

namespace sluice::conformance {

/// The score of row i of query head h of sequence b and of its key j, which is negative for a key of a
/// prefix.
struct ScorePlace {
  const Case &c;
  const Sequences &sequences;
  int b, h, i, j;

  /// In numbers for [batch][query head].
  size_t head() const { return size_t(b) * size_t(c.q_heads) + size_t(h); }
};

/// Where a change stores its numbers.
struct Storage {
  const Case &c;
  const Sequences &sequences;
  std::vector<std::vector<std::byte>> &buffers;
};

/// A problem with a mistake.
struct BadProblem {
  void (*spoil)(ProblemStructs &problem); // a right one of dense attention
  std::string field;                      // that the refusal must name
};

/// One kind of change. Only the first two functions are in all of them. Those that make no cases are called
/// only for cases with the change.
struct ScoreChange {
  bool (*is_in)(const Case &c);
  std::string (*name)(const Case &c); // its part of the name

  // Cases with it.
  void (*keep_meaningful)(Case &c) = nullptr;
  std::vector<Feature> (*choices)() = nullptr;
  std::vector<KernelFeature> (*on_kernels)() = nullptr;
  std::vector<KernelFeature> (*on_kernels_by_sequence)() = nullptr; // with numbers of sequences or new rows
  void (*join_everything)(Case &c, bool is_causal) = nullptr;       // all features together on a kernel
  void (*add_edges)(Edges &edges) = nullptr;
  std::vector<BadProblem> (*bad_problems)() = nullptr;
  std::vector<Mutant> (*defects)() = nullptr; // that its cases must notice

  // Its numbers, and the call.
  ScoreNumbers (*make_numbers)(const Case &c) = nullptr;
  ScoreBuffers (*store)(const Storage &storage, const ScoreNumbers &numbers) = nullptr;
  void (*ask)(const Case &c, ProblemStructs &problem) = nullptr;
  void (*pass)(const Case &c, const ScoreBuffers &buffers, const CallMemory &memory,
               CallStructs &call) = nullptr;

  // Its effect: it hides a key, makes another score of a score, or adds a term to it.
  bool (*hides)(const ScorePlace &place, const ScoreNumbers &numbers) = nullptr;
  double (*map)(const ScorePlace &place, const ScoreNumbers &numbers, double score) = nullptr;
  double (*term)(const ScorePlace &place, const ScoreNumbers &numbers) = nullptr;
  /// The score of one more key of each row of the query head, which has no value. At most one change has it.
  double (*extra_key)(const ScoreNumbers &numbers, int h) = nullptr;
  /// Its part of the error of a score, in u; `largest_term` is the largest magnitude of its terms.
  double (*error)(const Case &c, const RowMagnitudes &row, double largest_term) = nullptr;
  /// A score to base 2 with the change, computed as kernels may: to test that bound.
  float (*in_f32)(const ScorePlace &place, const ScoreNumbers &numbers, float score) = nullptr;

  /// Whether hiding keys is its only effect.
  bool is_mask() const { return hides && !map && !term; }
};

} // namespace sluice::conformance
