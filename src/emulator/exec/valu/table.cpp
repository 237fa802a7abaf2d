//===- table.cpp - chooses the vector ALU for this processor --------------------------------------------===//
#include "emulator/exec/valu/table.h"

#include "emulator/exec/valu/paths.h"

namespace sluice::emulator {

bool simd_path_available(SimdPath path) {
#if defined(__x86_64__)
  switch (path) {
  case SimdPath::portable:
    return true;
  case SimdPath::avx2:
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
           __builtin_cpu_supports("f16c") && __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2");
  case SimdPath::avx512:
    return simd_path_available(SimdPath::avx2) && __builtin_cpu_supports("avx512f") &&
           __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
           __builtin_cpu_supports("avx512vl");
  }
  return false;
#else
  return path == SimdPath::portable;
#endif
}

SimdPath best_simd_path() {
  for (SimdPath path : {SimdPath::avx512, SimdPath::avx2})
    if (simd_path_available(path)) return path;
  return SimdPath::portable;
}

const ValuTable &valu_table(SimdPath path) {
#if defined(__x86_64__)
  if (path == SimdPath::avx512) return avx512::table();
  if (path == SimdPath::avx2) return avx2::table();
#else
  (void)path;
#endif
  return portable::table();
}

} // namespace sluice::emulator
