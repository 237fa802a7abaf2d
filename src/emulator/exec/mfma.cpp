//===- mfma.cpp - matrix fused multiply-add, shape by shape ---------------------------------------------===//
//
// The table of shapes, the maps between lanes and matrix elements, and the plain form of the arithmetic.
// CDNA3 sums f16 and bf16 products in groups of eight (or K, if that is less):
//
//   1. the products are exact; E is their largest exponent, where a product's exponent is the sum of its
//      operands' (a subnormal counts with the smallest exponent, a zero not at all);
//   2. each product is cut toward zero at 24 fraction bits below 2^E, and those are added exactly;
//   3. M is the larger of E and the accumulator's exponent. The sum is cut toward minus infinity at 31 bits
//      below 2^M, the accumulator at 24 bits below it;
//   4. their sum is rounded to nearest even, and is the accumulator of the next group.
//
// f32 is a chain of fused multiply-adds in the order of k.
//
//===----------------------------------------------------------------------------------------------------===//
#include "emulator/exec/mfma.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "emulator/exec/mfma_paths.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace sluice::emulator {

namespace {

constexpr MfmaInstruction instruction_table[] = {
    // mnemonic                      m   n   k  blocks input          passes
    {"v_mfma_f32_32x32x1_2b_f32", {32, 32, 1, 2, MfmaInput::f32, 16}},
    {"v_mfma_f32_16x16x1_4b_f32", {16, 16, 1, 4, MfmaInput::f32, 8}},
    {"v_mfma_f32_4x4x1_16b_f32", {4, 4, 1, 16, MfmaInput::f32, 2}},
    {"v_mfma_f32_32x32x2_f32", {32, 32, 2, 1, MfmaInput::f32, 16}},
    {"v_mfma_f32_16x16x4_f32", {16, 16, 4, 1, MfmaInput::f32, 8}},
    {"v_mfma_f32_32x32x4_2b_f16", {32, 32, 4, 2, MfmaInput::f16, 16}},
    {"v_mfma_f32_16x16x4_4b_f16", {16, 16, 4, 4, MfmaInput::f16, 8}},
    {"v_mfma_f32_4x4x4_16b_f16", {4, 4, 4, 16, MfmaInput::f16, 2}},
    {"v_mfma_f32_32x32x8_f16", {32, 32, 8, 1, MfmaInput::f16, 8}},
    {"v_mfma_f32_16x16x16_f16", {16, 16, 16, 1, MfmaInput::f16, 4}},
    {"v_mfma_f32_32x32x4_2b_bf16", {32, 32, 4, 2, MfmaInput::bf16, 16}},
    {"v_mfma_f32_16x16x4_4b_bf16", {16, 16, 4, 4, MfmaInput::bf16, 8}},
    {"v_mfma_f32_4x4x4_16b_bf16", {4, 4, 4, 16, MfmaInput::bf16, 2}},
    {"v_mfma_f32_32x32x8_bf16", {32, 32, 8, 1, MfmaInput::bf16, 8}},
    {"v_mfma_f32_16x16x16_bf16", {16, 16, 16, 1, MfmaInput::bf16, 4}},
};

/// One spelling for all of a mnemonic's: lower case, without the separators, block counts and endings that
/// differ between assembler dialects ("f32_32x32x8bf16").
std::string plain_spelling(std::string_view mnemonic) {
  constexpr std::string_view prefix = "v_mfma_f32_";
  std::string text;
  for (char c : mnemonic)
    text += char(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
  if (!text.starts_with(prefix)) return {};
  if (text.ends_with("_e64")) text.resize(text.size() - 4);
  const bool deep = text.ends_with("_1k");
  if (deep) text.resize(text.size() - 3);
  std::string plain = text.substr(prefix.size());
  // Without "_1k", the older spelling of a bf16 shape is an instruction of half the depth, of gfx90a.
  if (!deep && plain.find('_') == std::string::npos && plain.ends_with("bf16")) return {};
  // "32x32x4_2b_f16" and "32x32x8_f16": the block count follows from the three extents.
  if (const size_t first = plain.find('_'); first != std::string::npos) {
    const size_t last = plain.rfind('_');
    plain = plain.substr(0, first) + plain.substr(last + 1);
  }
  return plain;
}

struct Half {
  int32_t mantissa; // signed; the value is mantissa * 2^(exponent - fraction bits)
  int16_t exponent;
  uint16_t bits;
  bool finite;
};

Half decode(MfmaInput input, uint16_t bits) {
  const bool f16 = input == MfmaInput::f16;
  const int32_t fraction_bits = f16 ? 10 : 7;
  const int32_t exponent_mask = f16 ? 31 : 255;
  const int32_t bias = f16 ? 15 : 127;
  const int32_t field = (bits >> fraction_bits) & exponent_mask;
  int32_t mantissa = bits & ((1 << fraction_bits) - 1);
  if (field != 0) mantissa |= 1 << fraction_bits;
  return {bits >> 15 ? -mantissa : mantissa, int16_t(std::max(field, 1) - bias), bits,
          field != exponent_mask};
}

double value_of(MfmaInput input, const Half &half) {
  if (input == MfmaInput::bf16) return double(std::bit_cast<float>(uint32_t(half.bits) << 16));
  if (!half.finite) return (half.bits & 0x3ff) != 0 ? NAN : half.bits >> 15 ? -INFINITY : INFINITY;
  return std::ldexp(double(half.mantissa), half.exponent - 10);
}

bool f32_finite(uint32_t bits) {
  return (bits & 0x7f800000) != 0x7f800000;
}

uint32_t f32_bits(double value) {
  return std::isnan(value) ? detail::canonical_nan : std::bit_cast<uint32_t>(float(value));
}

/// x * 2^shift cut toward minus infinity; any shift, x below 2^40.
int64_t shift_floor(int64_t x, int32_t shift) {
  return shift >= 0 ? x << shift : x >> std::min(-shift, 63);
}

/// 2^exponent, for exponents of a normal double.
double power_of_two(int32_t exponent) {
  return std::bit_cast<double>(uint64_t(exponent + 1023) << 52);
}

uint32_t group_size(const MfmaShape &shape) {
  return std::min<uint32_t>(shape.k, detail::mfma_group);
}

/// The elements of one row of A or column of B that one group takes.
struct GroupElements {
  Half element[detail::mfma_group];
};

/// `index` is the row (column); in a group the elements' runs of four lie `extent` lanes apart.
GroupElements group_elements(const MfmaShape &shape, const uint32_t *registers, uint32_t block,
                             uint32_t index, uint32_t group) {
  GroupElements elements;
  for (uint32_t t = 0; t < group_size(shape); ++t) {
    const uint32_t k = group * detail::mfma_group + t;
    elements.element[t] =
        decode(shape.input, detail::half_element(registers, index + shape.m * (block + k / 4), k % 4));
  }
  return elements;
}

/// Steps 1 to 4 for one element: the products of `count` elements of A and B, and the accumulator so far
/// (bits of an f32). Returns the bits of the new accumulator.
uint32_t group_sum(MfmaInput input, const GroupElements &a, const GroupElements &b, uint32_t count,
                   uint32_t c) {
  constexpr int32_t nothing = -4096; // the exponent of a zero: below every other
  const int32_t product_fraction_bits = input == MfmaInput::f16 ? 20 : 14;
  int32_t mantissas[detail::mfma_group];
  int32_t exponents[detail::mfma_group];
  int32_t largest = nothing;
  bool finite = f32_finite(c);
  for (uint32_t k = 0; k < count; ++k) {
    const Half &x = a.element[k];
    const Half &y = b.element[k];
    finite = finite && x.finite && y.finite;
    mantissas[k] = x.mantissa * y.mantissa;
    exponents[k] = x.exponent + y.exponent;
    if (mantissas[k] != 0) largest = std::max(largest, exponents[k]);
  }
  const double c_value = double(std::bit_cast<float>(c));
  if (!finite) {
    double sum = c_value;
    for (uint32_t k = 0; k < count; ++k)
      sum += value_of(input, a.element[k]) * value_of(input, b.element[k]);
    return f32_bits(sum);
  }

  // A product that no f32 can hold counts as infinite (bf16 only).
  bool positive_infinity = false;
  bool negative_infinity = false;
  int64_t sum = 0;
  for (uint32_t k = 0; k < count; ++k) {
    if (mantissas[k] == 0) continue;
    const int64_t magnitude = std::abs(int64_t(mantissas[k]));
    if (exponents[k] >= 127 && magnitude >> (product_fraction_bits + 128 - std::min(exponents[k], 142)) != 0)
      (mantissas[k] > 0 ? positive_infinity : negative_infinity) = true;
    const int64_t cut = shift_floor(magnitude << (24 - product_fraction_bits), exponents[k] - largest);
    sum += mantissas[k] > 0 ? cut : -cut;
  }
  if (positive_infinity && negative_infinity) return detail::canonical_nan;
  if (positive_infinity) return 0x7f800000;
  if (negative_infinity) return 0xff800000;

  int32_t c_exponent = nothing;
  int64_t c_mantissa = 0;
  if ((c & 0x7fffffff) != 0) {
    const int32_t field = (c >> 23) & 255;
    c_exponent = std::max(field, 1) - 127;
    c_mantissa = (c & 0x7fffff) | (field != 0 ? 0x800000 : 0);
    if (c >> 31) c_mantissa = -c_mantissa;
  }
  const int32_t common = std::max(largest, c_exponent);
  if (common == nothing) return 0;
  const int64_t total =
      shift_floor(sum << 7, largest - common) + shift_floor(c_mantissa << 1, c_exponent - common) * 128;
  return f32_bits(double(total) * power_of_two(common - 31));
}

void mfma_half_portable(const MfmaShape &shape, uint32_t *d, const uint32_t *a, const uint32_t *b,
                        const uint32_t *c, uint32_t c_constant) {
  const uint32_t groups = (shape.k + detail::mfma_group - 1) / detail::mfma_group;
  GroupElements columns[32];
  for (uint32_t block = 0; block < shape.blocks; ++block)
    for (uint32_t group = 0; group < groups; ++group) {
      for (uint32_t j = 0; j < shape.n; ++j)
        columns[j] = group_elements(shape, b, block, j, group);
      for (uint32_t i = 0; i < shape.m; ++i) {
        const GroupElements row = group_elements(shape, a, block, i, group);
        const uint32_t at = detail::c_row(shape, block, i);
        for (uint32_t j = 0; j < shape.n; ++j) {
          const uint32_t before = group > 0 ? d[at + j] : c ? c[at + j] : c_constant;
          d[at + j] = group_sum(shape.input, row, columns[j], group_size(shape), before);
        }
      }
    }
}

void mfma_single_portable(const MfmaShape &shape, uint32_t *d, const uint32_t *a, const uint32_t *b,
                          const uint32_t *c, uint32_t c_constant) {
  for (uint32_t block = 0; block < shape.blocks; ++block)
    for (uint32_t i = 0; i < shape.m; ++i) {
      const uint32_t row = detail::c_row(shape, block, i);
      for (uint32_t j = 0; j < shape.n; ++j) {
        float sum = std::bit_cast<float>(c ? c[row + j] : c_constant);
        for (uint32_t k = 0; k < shape.k; ++k)
          sum = std::fma(std::bit_cast<float>(a[i + shape.m * (block + k)]),
                         std::bit_cast<float>(b[j + shape.n * (block + k)]), sum);
        d[row + j] = std::isnan(sum) ? detail::canonical_nan : std::bit_cast<uint32_t>(sum);
      }
    }
}

bool overlap(const uint32_t *x, uint32_t x_registers, const uint32_t *y, uint32_t y_registers) {
  return x < y + y_registers * 64 && y < x + x_registers * 64;
}

/// The processor's floating-point mode, plain for the time of an instruction: a host that flushes subnormals
/// or rounds otherwise must not change the machine's results.
class PlainFloatingPoint {
public:
#if defined(__x86_64__)
  PlainFloatingPoint() : saved(_mm_getcsr()) {
    if ((saved & mode_bits) != 0) _mm_setcsr(saved & ~mode_bits);
  }
  ~PlainFloatingPoint() {
    if ((saved & mode_bits) != 0) _mm_setcsr(saved);
  }

private:
  static constexpr uint32_t mode_bits = 0xe040; // flush to zero, rounding control, denormals are zero
  uint32_t saved;
#endif
};

MfmaPath best_path() {
  for (MfmaPath path : {MfmaPath::avx512, MfmaPath::avx2})
    if (mfma_path_available(path)) return path;
  return MfmaPath::portable;
}

} // namespace

namespace detail {

uint32_t redo_element(const MfmaShape &shape, const uint32_t *a, const uint32_t *b, uint32_t block,
                      uint32_t i, uint32_t j, uint32_t group, uint32_t c) {
  return group_sum(shape.input, group_elements(shape, a, block, i, group),
                   group_elements(shape, b, block, j, group), group_size(shape), c);
}

} // namespace detail

std::span<const MfmaInstruction> mfma_instructions() {
  return instruction_table;
}

std::optional<MfmaShape> mfma_shape(std::string_view mnemonic) {
  const std::string plain = plain_spelling(mnemonic);
  if (plain.empty()) return std::nullopt;
  for (const MfmaInstruction &instruction : instruction_table)
    if (plain_spelling(instruction.mnemonic) == plain) return instruction.shape;
  return std::nullopt;
}

std::string mfma_refusal(const MfmaShape &shape, const MfmaModifiers &modifiers) {
  auto refuse = [&](const char *field, uint32_t value) {
    return std::string(field) + " = " + std::to_string(value) + " is not executed with " +
           std::to_string(shape.m) + "x" + std::to_string(shape.n) + "x" + std::to_string(shape.k) +
           ": only 0 is";
  };
  if (modifiers.cbsz != 0) return refuse("cbsz", modifiers.cbsz);
  if (modifiers.abid != 0) return refuse("abid", modifiers.abid);
  if (modifiers.blgp != 0) return refuse("blgp", modifiers.blgp);
  return {};
}

MfmaElement mfma_a_element(const MfmaShape &shape, uint32_t lane, uint32_t element) {
  const uint32_t part = lane / shape.m; // a block, or where there is one block, a run of k
  const uint32_t block = shape.blocks > 1 ? part : 0;
  const uint32_t run = shape.blocks > 1 ? 0 : part;
  return {uint16_t(block), uint16_t(lane % shape.m), uint16_t(run * shape.lane_elements() + element)};
}

MfmaElement mfma_b_element(const MfmaShape &shape, uint32_t lane, uint32_t element) {
  const MfmaElement transposed = mfma_a_element(shape, lane, element); // M equals N in every shape
  return {transposed.block, transposed.column, transposed.row};
}

MfmaElement mfma_c_element(const MfmaShape &shape, uint32_t lane, uint32_t element) {
  if (shape.m == 4) return {uint16_t(lane / 4), uint16_t(element), uint16_t(lane % 4)};
  const uint32_t block_registers = shape.m * shape.n / 64u;
  const uint32_t in_block = element % block_registers;
  const uint32_t lane_groups = 64u / shape.n;
  const uint32_t row = 4 * lane_groups * (in_block / 4) + 4 * (lane / shape.n) + in_block % 4;
  return {uint16_t(element / block_registers), uint16_t(row), uint16_t(lane % shape.n)};
}

bool mfma_path_available(MfmaPath path) {
  switch (path) {
  case MfmaPath::portable:
    return true;
#if defined(__x86_64__)
  case MfmaPath::avx2:
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("f16c");
  case MfmaPath::avx512:
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq");
#endif
  default:
    return false;
  }
}

void mfma_on_path(MfmaPath path, const MfmaShape &shape, uint32_t *d, const uint32_t *a, const uint32_t *b,
                  const uint32_t *c, uint32_t c_constant) {
  const PlainFloatingPoint plain_floating_point;
  const uint32_t registers = shape.c_registers();
  uint32_t staged[32 * 64];
  const bool stage = overlap(d, registers, a, shape.a_registers()) ||
                     overlap(d, registers, b, shape.a_registers()) ||
                     (c && c != d && overlap(d, registers, c, registers));
  uint32_t *out = stage ? staged : d;

  const bool single = shape.input == MfmaInput::f32;
  bool done = false;
#if defined(__x86_64__)
  if (shape.n >= 16 && path != MfmaPath::portable) {
    const bool wide = path == MfmaPath::avx512;
    if (single) {
      (wide ? detail::mfma_single_avx512 : detail::mfma_single_avx2)(shape, out, a, b, c, c_constant);
      done = true;
    } else {
      done = (wide ? detail::mfma_half_avx512 : detail::mfma_half_avx2)(shape, out, a, b, c, c_constant);
    }
  }
#endif
  if (!done) (single ? mfma_single_portable : mfma_half_portable)(shape, out, a, b, c, c_constant);
  if (stage) std::memcpy(d, staged, size_t(registers) * 64 * sizeof(uint32_t));
}

void mfma(const MfmaShape &shape, uint32_t *d, const uint32_t *a, const uint32_t *b, const uint32_t *c,
          uint32_t c_constant) {
  static const MfmaPath path = best_path();
  mfma_on_path(path, shape, d, a, b, c, c_constant);
}

} // namespace sluice::emulator
