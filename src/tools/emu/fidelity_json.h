//===- fidelity_json.h - reads the fidelity notes of a program's launches -------------------------------===//
#pragma once

#include "emulator/machine/machine.h"

#include <nlohmann/json.hpp>

namespace sluice::tools::emu {

/// What emulator::to_json has written.
emulator::FidelityNote read_fidelity_note(const nlohmann::json &text);

} // namespace sluice::tools::emu
