//===- register_name.cpp - registers as people write them -----------------------------------------------===//
#include "emulator/check/register_name.h"

#include "emulator/isa/op.h"

namespace sluice::emulator {

std::string register_name(uint16_t operand) {
  if (operand < first_agpr) return "v" + std::to_string(operand);
  if (operand < first_sgpr) return "a" + std::to_string(operand - first_agpr);
  const uint32_t number = operand - uint32_t(first_sgpr);
  if (number == sgpr_vcc || number == sgpr_vcc + 1u) return "vcc";
  if (number == sgpr_exec || number == sgpr_exec + 1u) return "exec";
  if (number == sgpr_m0) return "m0";
  if (number == sgpr_scc) return "scc";
  if (number == sgpr_mode) return "mode";
  return "s" + std::to_string(number);
}

} // namespace sluice::emulator
