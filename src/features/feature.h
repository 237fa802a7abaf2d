//===- feature.h - an optional feature of attention -----------------------------------------------------===//
//
// A feature that changes scores or says which keys a row sees is a value of this type, in the file of its
// name. all.h lists the values. The checks, the choice of a kernel, the kernel arguments, the reference and
// the tables of what is supported each ask the whole list for one part.
//
// Scales, types, lengths and pages are not here: they say what the elements of tensors are and where, for the
// keys of prefixes too.
//
//===----------------------------------------------------------------------------------------------------===//
#pragma once

#include "calls/args.h"
#include "calls/problem.h"
#include "features/need.h"
#include "package/kernargs.h"
#include "tensors/checks.h"

#include <sluice/sluice.h>

#include <cstdint>
#include <span>
#include <string_view>

namespace sluice::features {

/// How a problem asks for a feature, for a row of the tables of what is supported.
struct Question {
  const char *name = nullptr;
  const char *asked_by = nullptr;          // members of calls::Problem or calls::Args
  const char *kernel_feature = nullptr;    // of those that kernels list, or "" if they list no such feature
  void (*ask)(calls::Problem &) = nullptr; // null if only a call asks for it: all kernels must list it then
  const char *cases = nullptr; // of the conformance suite, as `sluice-conformance --case` takes them
};

/// A row of a query head, and a key of its sequence or of its prefix.
struct Place {
  int64_t sequence, q_head, row, key;
  int64_t rows, keys; // of the sequence
  int64_t diagonal;   // the key on the diagonal of the row

  /// d = j - i - shift.
  int64_t distance() const { return key - diagonal; }
};

/// A feature leaves out the parts that it does not need. Each part may rely on the checks above it.
struct Feature {
  uint32_t flags = 0; // of calls::Problem
  std::span<const Need> needs = {};
  std::span<const CallNeed> call_needs = {};
  std::span<const Question> questions = {};

  // Checks, which throw support::Failure with the field, its value and the rule. Those of a call are on the
  // path of every run: no allocation unless something is wrong.
  using CheckProblem = void (*)(const calls::Problem &);
  using CheckCall = void (*)(const calls::Problem &, const tensors::TensorRules &, const calls::Args &);
  CheckProblem check_problem = nullptr;
  CheckProblem check_with_prefix = nullptr; // of a problem with calls::prefixes
  CheckProblem check_limits = nullptr;      // of the arithmetic of kernels
  CheckCall check_call = nullptr;
  CheckCall check_sequences = nullptr; // arrays with elements for each sequence, after the scales
  void (*check_contents)(const calls::Args &) = nullptr; // of these arrays

  // Kernel arguments. Kernels with package::score_changed look for changes of scores.
  bool (*changes_scores)(const calls::Problem &) = nullptr;
  void (*fill_problem)(package::AttentionKernargs &, const calls::Problem &) = nullptr;
  void (*fill_call)(package::AttentionKernargs &, const calls::Problem &, const calls::Args &) = nullptr;

  // The reference, which shares no code with kernels.
  using Hides = bool (*)(const calls::Problem &, const calls::Args &, const Place &);
  double (*changed_score)(const calls::Problem &, const calls::Args &, const Place &, double) = nullptr;
  Hides hides_by_distance = nullptr; // from the diagonal
  Hides reveals = nullptr;           // whatever the distance is
  Hides hides = nullptr;             // whatever reveals
};

/// Refuses a flag that no executor serves together with shared prefixes.
inline void refuse_with_prefix(const calls::Problem &problem, calls::Flag flag) {
  if (!(problem.flags & flag)) return;
  const std::string_view name = calls::flag_name(flag);
  tensors::unsupported("flags", support::text("flags has ", name,
                                              " and SLUICE_ATTENTION_PREFIXES; nearest "
                                              "supported: without ",
                                              name));
}

inline uint64_t address_of(const void *pointer) {
  return reinterpret_cast<uint64_t>(pointer);
}

/// The stride of an index with this extent, for kernels: 0 if the index is always 0.
constexpr int64_t used_stride(int64_t extent, int64_t stride) {
  return extent <= 1 ? 0 : stride;
}

} // namespace sluice::features
