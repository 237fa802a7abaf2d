//===- valu_avx512.cpp - the vector ALU with AVX-512 ----------------------------------------------------===//
#include <cfenv>
#include <cstdint>
#include <span>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "emulator/exec/valu/paths.h"
#include "emulator/isa/dpp.h"
#include "emulator/isa/gpr_index.h"
#include "emulator/isa/wave.h"

#if defined(__x86_64__)
#include <immintrin.h>

// The headers above are compiled for every host; only the code below may use AVX-512.
#if defined(__clang__)
#pragma clang attribute push(                                                                                \
    __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,fma,f16c,bmi,bmi2"))), apply_to = function)
#else
#pragma GCC target("avx512f,avx512bw,avx512dq,avx512vl,fma,f16c,bmi,bmi2,prefer-vector-width=512")
#endif

#define SLUICE_SIMD_NAMESPACE avx512
#define SLUICE_SIMD_LEVEL 2
#include "emulator/exec/valu/valu.inc"

#if defined(__clang__)
#pragma clang attribute pop
#endif
#endif
