//===- scalar_spills.h - scalar registers that a loop saves in lanes and restores -----------------------===//
#pragma once

#include "shipped_kernels.h"

namespace sluice::test {

/// Instructions on the usual way around a kernel's main loop that save a scalar register in a lane of a
/// vector register, or restore one: v_writelane_b32, and v_readlane_b32 of a register that some
/// v_writelane_b32 of the kernel writes. A spill that only the code before and after the loop sees is not
/// among them.
size_t scalar_spills_on_usual_way(const ShippedKernel &kernel);

} // namespace sluice::test
