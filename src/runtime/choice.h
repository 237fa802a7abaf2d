//===- choice.h - which kernels serve a problem ---------------------------------------------------------===//
#pragma once

#include "runtime/context.h"

#include <sluice/sluice.h>

#include <cstdint>
#include <string>

namespace sluice::runtime {

/// The kernels of a plan. A sequence of at most `packed_rows` query rows is `packed`'s, whatever else is in
/// the batch; a longer one is `tall`'s. One of the two may be missing: then no call has sequences for it.
struct Choice {
  const package::PackedKernel *tall = nullptr;   // tiles of tokens of one query head
  const package::PackedKernel *packed = nullptr; // tiles of tokens and the query heads of a group
  int32_t packed_rows = 0;
  uint32_t parts = 1;      // workgroups of `packed` among which the keys of a row are divided ...
  uint32_t part_tiles = 0; // ... so many tiles each, or 0: evenly
  bool merges = false;     // parts go to workspace, and another kernel makes one result of them:
  const AroundKernel *merging = nullptr; // this one
  uint64_t workspace_bytes = 0;
  std::string reason; // why these, in a sentence

  /// The one that a plan is named after. Others may work beside it.
  const package::PackedKernel &main() const { return tall != nullptr ? *tall : *packed; }
};

/// What the launch of every attention kernel asks of its tensors.
inline constexpr uint32_t pointer_alignment = 16;    // bytes, of q, k, v and o
inline constexpr uint32_t stride_multiple = 8;       // elements, of q, k, v and o
inline constexpr uint32_t workspace_alignment = 256; // bytes

/// Tiles that a part has at least, where keys are divided evenly: less would be more merging than computing.
inline constexpr uint32_t min_part_tiles = 16;

/// Chooses among the context's kernels for a problem whose fields are legal. Looks at the problem and the
/// number of compute units only, so that equal problems get equal kernels.
///
/// Several tile heights exist per type and head dim. Of tall kernels the highest is the most efficient per
/// row and the choice, unless
/// - max_q_len fits a lower tile: the rest of a higher one would compute nothing; or
/// - at the problem's bounds there are fewer workgroups than compute units: lower tiles occupy more of them.
///   This looks at the batch size, so SLUICE_DETERMINISM_BATCH_INVARIANT leaves it out.
/// Of packed kernels it is the lowest that the rows of a group fill.
///
/// Where a packed kernel would have fewer workgroups than the device can run at once, the keys of each row
/// are divided. For SLUICE_DETERMINISM_BATCH_INVARIANT they always are, at places that depend on nothing
/// else.
///
/// Throws support::Failure (unsupported) naming the field and the nearest supported value.
Choice choose_kernel(const Context &context, const sluice_problem &problem);

/// Loads all that a choice names, unless it is loaded. Throws support::Failure.
void load_kernels(Context &context, const Choice &choice);

} // namespace sluice::runtime
