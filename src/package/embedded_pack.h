//===- embedded_pack.h - the kernel pack inside libsluice.so --------------------------------------------===//
#pragma once

#include <cstddef>
#include <span>

namespace sluice::package {

/// The pack that the library was built with; empty if it was built without kernels. Only libsluice.so has it.
std::span<const std::byte> embedded_pack();

} // namespace sluice::package
