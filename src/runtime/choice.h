//===- choice.h - which kernels serve a problem ---------------------------------------------------------===//
#pragma once

#include "runtime/context.h"
#include "runtime/cost.h"

#include <sluice/sluice.h>

#include <cstdint>
#include <optional>
#include <string>

namespace sluice::runtime {

/// The kernels of a plan. A sequence of at most `few_rows` query rows is `few`'s, whatever else is in the
/// batch; a longer one is `many`'s. One of the two may be missing: then no call has sequences for it.
struct Choice {
  const package::PackedKernel *many = nullptr; // prefill, and its keys are not split
  const package::PackedKernel *few = nullptr;  // decode; prefill only if it is the only kernel of the plan
  int32_t few_rows = 0;                        // without `few` 0, without `many` no less than a call's rows
  uint32_t splits = 1;          // workgroups of `few` among which the keys of a row are divided ...
  uint32_t split_tiles = 0;     // ... so many tiles each, or 0: evenly ...
  uint32_t min_split_tiles = 1; // ... but not less than so many
  bool merges = false;          // splits go to workspace, and another kernel makes one result of them:
  const CacheOpKernel *merging = nullptr; // this one
  uint64_t workspace_bytes = 0;
  std::optional<Estimate>
      estimate;       // of main() and its merge at the problem's bounds, if it was chosen by cost
  std::string reason; // why these, in a sentence

  /// The one that a plan is named after. Others may work beside it.
  const package::PackedKernel &main() const { return many != nullptr ? *many : *few; }
};

/// What the launch of every attention kernel asks of its tensors.
inline constexpr uint32_t pointer_alignment = 16;    // bytes, of q, k, v and o
inline constexpr uint32_t stride_multiple = 8;       // elements, of q, k, v and o
inline constexpr uint32_t workspace_alignment = 256; // bytes

/// Chooses among the context's kernels for a problem whose fields are legal. Looks at the problem and the
/// number of compute units only, so that equal problems get equal kernels.
///
/// With bounds of the batch and of keys, and of rows unless prefill kernels take what is long, the choice is
/// the cheapest by estimate (cost.h) of every kernel with every number of splits that the ceiling allows; of
/// prefill ones only for one sequence or long chunks. That one takes all sequences if there is a bound of
/// rows, unless a prefill kernel without splits costs little more: then the latter takes long sequences, and
/// a decode one short ones, up to where it ceases to be cheaper, and always those whose rows and heads fill
/// no more than 16 rows.
///
/// Without these bounds, and for SLUICE_DETERMINISM_BATCH_INVARIANT, rules choose. A decode kernel takes a
/// sequence if its rows and the heads of a group fill no more than 16 rows. Of decode kernels it is the
/// lowest that the rows of a group fit. Of prefill kernels the highest is the most efficient per row and the
/// choice, unless
/// - max_q_len fits a lower tile: the rest of a higher one would compute nothing; or
/// - at the problem's bounds there are fewer workgroups than compute units: lower tiles occupy more of them.
///   This looks at the batch size, so SLUICE_DETERMINISM_BATCH_INVARIANT leaves it out.
/// For SLUICE_DETERMINISM_BATCH_INVARIANT keys are always divided, at places that depend on nothing else, and
/// without bounds never.
///
/// Throws support::Failure (unsupported) naming the field and the nearest supported value.
Choice choose_kernel(const Context &context, const sluice_problem &problem);

/// Loads all that a choice names, unless it is loaded. Throws support::Failure.
void load_kernels(Context &context, const Choice &choice);

} // namespace sluice::runtime
