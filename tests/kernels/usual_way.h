//===- usual_way.h - the common path around a kernel's main loop ----------------------------------------===//
#pragma once

#include "shipped_kernels.h"

namespace sluice::test {

/// Of the instructions on the common path around a kernel's main loop.
struct UsualWayFigures {
  /// Those that save a scalar register in a lane of a vector register, or restore one: v_writelane_b32, and
  /// v_readlane_b32 of a register that some v_writelane_b32 of the kernel writes. Spills seen only by the
  /// code before and after the loop are not among them.
  size_t scalar_spills;

  /// For a kernel whose loop copies directly into LDS: waits for everything in flight, and so for copies that
  /// a later iteration needs. 0 for other kernels.
  size_t waits_for_all_copies;
};
UsualWayFigures usual_way_figures(const ShippedKernel &kernel);

} // namespace sluice::test
