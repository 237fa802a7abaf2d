//===- KernelFigures.h - the speed of machine code, for the manifest --------------------------*- C++ -*-===//
#pragma once

#include "package/manifest.h"

#include <cstddef>
#include <span>

namespace sluice {

/// Measures a kernel's machine code for gfx942 and sets the entry's vgprs and loop_*_clk. Throws
/// std::runtime_error for code that cannot be read.
void measure(package::KernelEntry &entry, std::span<const std::byte> elf);

} // namespace sluice
