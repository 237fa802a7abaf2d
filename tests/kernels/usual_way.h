//===- usual_way.h - what a kernel's main loop does where nothing unusual happens -----------------------===//
#pragma once

#include "shipped_kernels.h"

namespace sluice::test {

/// Instructions on the usual way around a kernel's main loop that save a scalar register in a lane of a
/// vector register, or restore one: v_writelane_b32, and v_readlane_b32 of a register that some
/// v_writelane_b32 of the kernel writes. A spill that only the code before and after the loop sees is not
/// among them.
size_t scalar_spills_on_usual_way(const ShippedKernel &kernel);

/// Of a kernel whose loop copies directly into LDS: waits on the usual way around it for everything that is
/// in flight, and so for copies that a later iteration wants. 0 for other kernels.
size_t waits_for_all_copies_on_usual_way(const ShippedKernel &kernel);

} // namespace sluice::test
