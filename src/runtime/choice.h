//===- choice.h - which kernel serves a problem ---------------------------------------------------------===//
#pragma once

#include "runtime/context.h"

#include <sluice/sluice.h>

#include <cstdint>
#include <string>

namespace sluice::runtime {

struct Choice {
  const package::PackedKernel *kernel = nullptr;
  std::string reason; // why this one, in a sentence
};

/// What the launch of every attention kernel asks of its tensors.
inline constexpr uint32_t pointer_alignment = 16;    // bytes, of q, k, v and o
inline constexpr uint32_t stride_multiple = 8;       // elements, of q, k, v and o
inline constexpr uint32_t workspace_alignment = 256; // bytes

/// Device memory a run of the chosen kernel needs. None of the kernels so far splits its keys over
/// workgroups, which is what workspace is for.
constexpr uint64_t workspace_bytes(const Choice &) {
  return 0;
}

/// Chooses among the context's kernels for a problem whose fields are legal. Looks at the problem and the
/// number of compute units only, so that equal problems get equal kernels.
///
/// Several tile heights exist per type and head dim. The highest is the most efficient per row and the
/// choice, unless
/// - max_q_len fits a lower tile: the rest of a higher one would compute nothing; or
/// - at the problem's bounds there are fewer workgroups than compute units: lower tiles occupy more of them.
/// This
///   looks at the batch size, so SLUICE_DETERMINISM_BATCH_INVARIANT leaves it out.
///
/// Throws support::Failure (unsupported) naming the field and the nearest supported value.
Choice choose_kernel(const Context &context, const sluice_problem &problem);

} // namespace sluice::runtime
