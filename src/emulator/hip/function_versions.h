//===- function_versions.h - the HIP version that introduced each function ------------------------------===//
#pragma once

#include <string_view>

namespace sluice::emulator::hip {

/// As 100 * major + minor, from the version map of the libraries under HIP's names; 0 for names that are not
/// in it.
int function_version(std::string_view name);

} // namespace sluice::emulator::hip
