//===- matrix.h - MFMA as an instruction of a wave ------------------------------------------------------===//
#pragma once

#include "emulator/isa/op.h"

namespace sluice::emulator {

/// Runs the shape op.mfma.shape (an index into mfma_instructions()) on the registers of a wave.
Step run_mfma(Wave &wave, const Op &op);

} // namespace sluice::emulator
