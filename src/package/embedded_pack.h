//===- embedded_pack.h - the kernel pack inside libsluice.so --------------------------------------------===//
#pragma once

#include <cstddef>
#include <span>

namespace sluice::package {

/// The pack that the library was built with. Throws support::Failure (pack_corrupt) if it was built without
/// kernels. Only libsluice.so has this function.
std::span<const std::byte> embedded_pack();

} // namespace sluice::package
