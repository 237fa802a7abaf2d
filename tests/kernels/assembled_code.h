//===- assembled_code.h - short programs as machine code ------------------------------------------------===//
#pragma once

#include "isa/kernel_fixture.h"
#include "kernels/machine_code.h"

#include <string>
#include <string_view>

namespace sluice::test {

inline MachineCode assembled(const std::string &source) {
  return MachineCode(code_object_of(source), "slot");
}

/// The instruction with that text; `number` tells several apart, from 0.
inline size_t index_of(const MachineCode &code, std::string_view text, size_t number = 0) {
  for (size_t index = 0; index < code.instructions().size(); ++index)
    if (code.instructions()[index].text == text && number-- == 0) return index;
  throw std::runtime_error("the program has no '" + std::string(text) + "'");
}

} // namespace sluice::test
