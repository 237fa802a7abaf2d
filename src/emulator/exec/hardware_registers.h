//===- hardware_registers.h - the hardware registers of a wave ------------------------------------------===//
#pragma once

#include "emulator/isa/wave.h"

namespace sluice::emulator {

/// s_getreg_b32.
Step get_register(Wave &w, const Op &op);
/// s_setreg; `code` is the instruction's SIMM16. Programs write only MODE.
Step set_register(Wave &w, uint32_t code, uint32_t value);

} // namespace sluice::emulator
