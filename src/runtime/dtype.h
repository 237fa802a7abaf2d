//===- dtype.h - names of the element types -------------------------------------------------------------===//
#pragma once

#include <sluice/sluice.h>

#include <cstdint>
#include <string_view>

namespace sluice::runtime {

/// As in kernel names: "f16". Empty for a value that is no sluice_dtype.
constexpr std::string_view dtype_name(uint32_t type) {
  switch (type) {
  case SLUICE_F16:
    return "f16";
  case SLUICE_BF16:
    return "bf16";
  case SLUICE_F32:
    return "f32";
  case SLUICE_E4M3FNUZ:
    return "e4m3fnuz";
  case SLUICE_E4M3FN:
    return "e4m3fn";
  case SLUICE_E5M2FNUZ:
    return "e5m2fnuz";
  case SLUICE_E5M2:
    return "e5m2";
  default:
    return {};
  }
}

/// The inverse; 0 for an unknown name.
constexpr uint32_t dtype_of_name(std::string_view name) {
  for (uint32_t type = SLUICE_F16; type <= SLUICE_E5M2; ++type) {
    if (dtype_name(type) == name) return type;
  }
  return 0;
}

} // namespace sluice::runtime
