//===- embedded_pack.h - the kernel pack inside libsluice.so --------------------------------------------===//
#pragma once

#include <cstddef>
#include <span>

namespace sluice::package {

/// The pack with which the library was built. Throws support::Failure (pack_corrupt) if it was built without
/// kernels. Only libsluice.so has this function.
std::span<const std::byte> embedded_pack();

} // namespace sluice::package
