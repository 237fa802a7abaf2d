//===- function_versions.h - the HIP version that introduced each function ------------------------------===//
#pragma once

#include <span>
#include <string_view>

namespace sluice::emulator::hip {

struct FunctionVersion {
  std::string_view name;
  int since; // 100 * major + minor
};
/// All functions of the version map, also those that the emulator does not have.
std::span<const FunctionVersion> function_versions();

/// As 100 * major + minor, from the version map of the libraries under HIP's names; 0 for names that are not
/// in it.
int function_version(std::string_view name);

} // namespace sluice::emulator::hip
