//===- function_versions.h - since when there is each of HIP's functions --------------------------------===//
#pragma once

#include <string_view>

namespace sluice::emulator::hip {

/// As 100 * major + minor, by the version map of the libraries under HIP's names; 0 for what is not in it.
int function_version(std::string_view name);

} // namespace sluice::emulator::hip
