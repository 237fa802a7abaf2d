//===- code_file.h - the code object of a command -------------------------------------------------------===//
#pragma once

#include "emulator/machine/machine.h"
#include "package/code_object.h"

#include <memory>
#include <string>

namespace sluice::tools::emu {

/// Reads an ELF, or extracts the one for gfx942 from an offload bundle. Throws ToolError for anything that
/// the machine could not run.
std::unique_ptr<emulator::Program> load_code(const std::string &path);

const package::CodeObject &code_object(const emulator::Program &program);

/// Finds a kernel by its symbol, or by its C++ name with or without parameters if only one kernel has it.
/// Throws ToolError with the existing names.
const package::Kernel &find_kernel(const emulator::Program &program, const std::string &name);

} // namespace sluice::tools::emu
