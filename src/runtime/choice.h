//===- choice.h - which kernels serve a problem ---------------------------------------------------------===//
#pragma once

#include "runtime/context.h"
#include "runtime/cost.h"

#include <sluice/sluice.h>

#include <cstdint>
#include <optional>
#include <string>

namespace sluice::runtime {

/// Whether rows see prefixes before their sequence's own keys: then each level of keys has launches of its
/// own, and their results are merged.
inline bool is_cascade(const sluice_problem &problem) {
  return (problem.flags & SLUICE_SHARED_PREFIX) != 0;
}

/// The kernel of a cascade's prefixes, with the splits of their keys as in Choice. Their splits are
/// counted from first_split on, after those of the own keys.
struct PrefixChoice {
  const package::PackedKernel *kernel = nullptr; // null without prefixes
  uint32_t splits = 1, split_tiles = 0, min_split_tiles = 1;
  uint32_t first_split = 0;
};

/// The kernels of a plan. A sequence of at most `few_rows` query rows goes to `few`, in every batch; a longer
/// one goes to `many`. One of the two may be missing: then no call has sequences for it.
struct Choice {
  const package::PackedKernel *many = nullptr; // prefill, without splits of its keys
  const package::PackedKernel *few = nullptr;  // decode; prefill only if it is the only kernel of the plan
  int32_t few_rows = 0;                        // 0 without `few`; without `many` at least a call's rows
  uint32_t splits = 1;                    // workgroups of `few` among which the keys of a row are split ...
  uint32_t split_tiles = 0;               // ... with this many tiles each, or 0: evenly ...
  uint32_t min_split_tiles = 1;           // ... but at least this many
  PrefixChoice prefix;                    // of a cascade; all else is for the sequences' own keys
  bool merges = false;                    // splits go to workspace, and another kernel merges them:
  const CacheOpKernel *merging = nullptr; // this one
  uint64_t workspace_bytes = 0;
  std::optional<Estimate> estimate; // of main() and its merge at the problem's bounds, if chosen by cost
  std::string reason;               // the reason, in a sentence

  /// The kernel after which a plan is named. Others may run beside it.
  const package::PackedKernel &main() const { return many != nullptr ? *many : *few; }
};

/// What the launch of every attention kernel requires of its tensors.
inline constexpr uint32_t pointer_alignment = 16;    // bytes, of q, k, v and o
inline constexpr uint32_t stride_multiple = 8;       // elements, of q, k, v and o
inline constexpr uint32_t workspace_alignment = 256; // bytes

/// Chooses among the context's kernels for a problem whose fields are legal. Depends only on the problem and
/// the number of compute units, so that equal problems get equal kernels.
///
/// If there are bounds of the batch and of keys, and either a bound of rows or prefill kernels for long
/// sequences, the choice is by cost: the cheapest estimate (cost.h) of every kernel with every number of
/// splits that the ceiling allows. Prefill kernels get splits only for one sequence or long chunks. With a
/// bound of rows the cheapest kernel takes all sequences, unless a prefill kernel without splits costs little
/// more: then the latter takes long sequences, and a decode kernel takes short ones, as long as it is
/// cheaper, and always those whose rows and heads fill no more than 16 rows.
///
/// Without these bounds, and for SLUICE_DETERMINISM_BATCH_INVARIANT, rules choose. A decode kernel takes a
/// sequence if its rows and the heads of a group fill no more than 16 rows; it is the lowest decode kernel
/// that holds the rows of a group. Among prefill kernels the highest is the most efficient per row and is
/// chosen, unless
/// - max_q_len fits a lower tile: the rest of a higher one would compute nothing; or
/// - at the problem's bounds there are fewer workgroups than compute units: lower tiles occupy more of them.
///   This depends on the batch size, so SLUICE_DETERMINISM_BATCH_INVARIANT excludes it.
/// The prefixes of a cascade get the cheapest kernel and splits for max_q_tokens rows, divided evenly among
/// max_prefixes; for SLUICE_DETERMINISM_BATCH_INVARIANT the highest prefill kernel.
///
/// SLUICE_DETERMINISM_BATCH_INVARIANT always splits keys, at places that depend on nothing else; otherwise
/// keys are never split without bounds.
///
/// Throws support::Failure (unsupported) naming the field and the nearest supported value.
Choice choose_kernel(const Context &context, const sluice_problem &problem);

/// Loads all kernels of a choice that are not yet loaded. Throws support::Failure.
void load_kernels(Context &context, const Choice &choice);

} // namespace sluice::runtime
