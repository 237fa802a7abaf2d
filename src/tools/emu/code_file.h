//===- code_file.h - the code object that a command works on --------------------------------------------===//
#pragma once

#include "emulator/machine/machine.h"
#include "package/code_object.h"

#include <memory>
#include <string>

namespace sluice::tools::emu {

/// Reads an ELF, or takes the one for gfx942 out of an offload bundle. Throws ToolError for anything that
/// the machine could not run.
std::unique_ptr<emulator::Program> load_code(const std::string &path);

const package::CodeObject &code_object(const emulator::Program &program);

/// By its symbol, or by its name in C++ with or without parameters if that is the name of one kernel. Throws
/// ToolError with the names that there are.
const package::Kernel &find_kernel(const emulator::Program &program, const std::string &name);

} // namespace sluice::tools::emu
