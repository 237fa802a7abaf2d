//===- register_name.h - registers as people write them -------------------------------------------------===//
#pragma once

#include <cstdint>
#include <string>

namespace sluice::emulator {

/// The name of an operand number (exec/op.h): "v4", "a4", "s4", "vcc", "exec", "m0", "scc".
std::string register_name(uint16_t operand);

} // namespace sluice::emulator
