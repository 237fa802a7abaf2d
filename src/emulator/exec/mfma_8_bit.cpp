//===- mfma_8_bit.cpp - MFMA sums of fp8, bf8 and i8, a row of D at a time ------------------------------===//
//
// The arithmetic of mfma_portable.cpp as plain loops over the columns, which the compiler vectorises, once
// for each instruction set. A product of two 8-bit floats is exact in f32, and so is scaling it by a power of
// two. So truncating it toward zero is a conversion to integer, and rounding a sum toward minus infinity is a
// shift.
//
//===----------------------------------------------------------------------------------------------------===//
#include <array>
#include <bit>
#include <cmath>

#include "emulator/exec/mfma_paths.h"

#if defined(__x86_64__)

#define SLUICE_INLINE __attribute__((always_inline)) inline
#define SLUICE_AVX2 __attribute__((target("avx2,fma")))
#if defined(__clang__) // its plain x86-64 has no preferred vector width
#define SLUICE_AVX512 __attribute__((target("avx512f,avx512bw,avx512vl,avx512dq")))
#else
#define SLUICE_AVX512 __attribute__((target("avx512f,avx512bw,avx512vl,avx512dq,prefer-vector-width=512")))
#endif

namespace sluice::emulator::detail {

namespace {

constexpr int32_t nothing = -300;      // the exponent of a zero, below that of every nonzero value
constexpr int32_t zero_element = -100; // of a zero element: no sum with it reaches a product's exponent
constexpr int32_t lowest_product = -30;
constexpr uint8_t nan_bits = 0x80;

struct DecodeTable {
  std::array<float, 256> value{};
  std::array<int32_t, 256> exponent{};
};

constexpr DecodeTable decode_table(int32_t fraction_bits, int32_t bias) {
  DecodeTable table;
  for (uint32_t bits = 0; bits < 256; ++bits) {
    const int32_t field = int32_t(bits & 127) >> fraction_bits;
    const int32_t fraction = int32_t(bits) & ((1 << fraction_bits) - 1);
    const int32_t mantissa = field != 0 ? fraction | 1 << fraction_bits : fraction;
    const int32_t exponent = (field != 0 ? field : 1) - bias;
    float value = float(bits < 128 ? mantissa : -mantissa);
    for (int32_t e = exponent - fraction_bits; e < 0; ++e)
      value /= 2;
    for (int32_t e = exponent - fraction_bits; e > 0; --e)
      value *= 2;
    table.value[bits] = value;
    table.exponent[bits] = mantissa != 0 ? exponent : zero_element;
  }
  return table;
}
constexpr DecodeTable fp8_table = decode_table(3, 8);
constexpr DecodeTable bf8_table = decode_table(2, 16);

constexpr uint32_t lane_elements = 8; // of A and of B, at most
constexpr uint32_t operand_elements = 64 * lane_elements;

/// The bytes of A (B), k after k: [k][row or column]. Blocks are stored one after another.
template <uint32_t n>
SLUICE_INLINE void spread_bytes(const uint32_t *registers, uint32_t elements, uint8_t *bytes) {
  for (uint32_t part = 0; part < 64 / n; ++part)
    for (uint32_t element = 0; element < elements; ++element)
      for (uint32_t j = 0; j < n; ++j)
        bytes[(part * elements + element) * n + j] =
            uint8_t(registers[element / 4 * 64 + part * n + j] >> (8 * (element % 4)));
}

struct alignas(64) FloatOperand {
  float value[operand_elements];
  int32_t exponent[operand_elements];
};

/// False if any element is a NaN.
template <uint32_t n>
SLUICE_INLINE bool decode(const uint32_t *registers, MfmaInput input, FloatOperand &operand) {
  alignas(64) uint8_t bytes[operand_elements];
  spread_bytes<n>(registers, lane_elements, bytes);
  const DecodeTable &table = input == MfmaInput::fp8 ? fp8_table : bf8_table;
  uint32_t nans = 0;
  for (uint32_t at = 0; at < operand_elements; ++at)
    nans += bytes[at] == nan_bits;
  for (uint32_t at = 0; at < operand_elements; ++at) {
    operand.value[at] = table.value[bytes[at]];
    operand.exponent[at] = table.exponent[bytes[at]];
  }
  return nans == 0;
}

SLUICE_INLINE float f32_power_of_two(int32_t exponent) {
  return std::bit_cast<float>((exponent + 127) << 23);
}
SLUICE_INLINE double f64_power_of_two(int32_t exponent) {
  return std::bit_cast<double>(int64_t(exponent + 1023) << 52);
}

/// Row i of the products k, k + 2, ... of a group, truncated below the largest exponent and added.
template <uint32_t n>
SLUICE_INLINE void cut_products(const FloatOperand &x, const FloatOperand &y, uint32_t i, uint32_t k,
                                int32_t *sum, int32_t *exponent) {
  for (uint32_t j = 0; j < n; ++j)
    exponent[j] = lowest_product - 1;
  for (uint32_t t = 0; t < mfma_group_8_bit; t += 2)
    for (uint32_t j = 0; j < n; ++j) {
      const int32_t e = x.exponent[(k + t) * n + i] + y.exponent[(k + t) * n + j];
      exponent[j] = e > exponent[j] ? e : exponent[j];
    }
  float scale[n];
  for (uint32_t j = 0; j < n; ++j) {
    scale[j] = f32_power_of_two(24 - exponent[j]);
    sum[j] = 0;
  }
  for (uint32_t t = 0; t < mfma_group_8_bit; t += 2)
    for (uint32_t j = 0; j < n; ++j)
      sum[j] += int32_t(x.value[(k + t) * n + i] * y.value[(k + t) * n + j] * scale[j]);
}

template <uint32_t n>
SLUICE_INLINE void accumulate(const int32_t *sum, const int32_t *sum_exponent, const uint32_t *c,
                              uint32_t *d) {
  for (uint32_t j = 0; j < n; ++j) {
    const uint32_t bits = c[j];
    const int32_t field = int32_t(bits >> 23 & 255);
    const int32_t raw_exponent = (field > 1 ? field : 1) - 127;
    const int32_t c_exponent = (bits & 0x7fffffff) != 0 ? raw_exponent : nothing;
    const int32_t exponent = sum_exponent[j] >= lowest_product ? sum_exponent[j] : nothing;
    const int32_t common = exponent > c_exponent ? exponent : c_exponent;
    const double products = std::floor(double(sum[j]) * f64_power_of_two(7 + exponent - common));
    const double addend = std::floor(double(std::bit_cast<float>(bits)) * f64_power_of_two(24 - common));
    const double total = products + (c_exponent < common - 25 ? 0.0 : addend * 128.0);
    const uint32_t result = std::bit_cast<uint32_t>(float(total * f64_power_of_two(common - 31)));
    const uint32_t not_finite = (bits & 0x7fffff) != 0 ? canonical_nan : bits;
    d[j] = field == 255 ? not_finite : result;
  }
}

/// False if any element is a NaN.
template <uint32_t n> SLUICE_INLINE bool float_rows(const MfmaShape &shape, const MfmaOperands &o) {
  FloatOperand x;
  FloatOperand y;
  if (!decode<n>(o.a, shape.input, x) || !decode<n>(o.b, shape.b_input, y)) return false;
  for (uint32_t i = 0; i < n; ++i) {
    const uint32_t at = c_row(shape, 0, i);
    alignas(64) uint32_t accumulator[n];
    for (uint32_t j = 0; j < n; ++j)
      accumulator[j] = o.c ? o.c[at + j] : uint32_t(o.c_constant);
    for (uint32_t k = 0; k < operand_elements / n; k += mfma_group_8_bit) {
      alignas(64) int32_t even[n], odd[n], even_exponent[n], odd_exponent[n];
      cut_products<n>(x, y, i, k, even, even_exponent);
      cut_products<n>(x, y, i, k + 1, odd, odd_exponent);
      for (uint32_t j = 0; j < n; ++j) {
        const int32_t largest = even_exponent[j] > odd_exponent[j] ? even_exponent[j] : odd_exponent[j];
        const int32_t even_shift = largest - even_exponent[j];
        const int32_t odd_shift = largest - odd_exponent[j];
        even[j] =
            (even[j] >> (even_shift < 31 ? even_shift : 31)) + (odd[j] >> (odd_shift < 31 ? odd_shift : 31));
        even_exponent[j] = largest;
      }
      accumulate<n>(even, even_exponent, accumulator, accumulator);
    }
    for (uint32_t j = 0; j < n; ++j)
      o.d[at + j] = accumulator[j];
  }
  return true;
}

/// Rows of A (columns of B) as pairs of consecutive k in one dword, the form that the processor multiplies.
struct alignas(64) IntegerOperand {
  int16_t value[operand_elements];
};

template <uint32_t n>
SLUICE_INLINE void decode(const uint32_t *registers, uint32_t elements, IntegerOperand &operand) {
  alignas(64) uint8_t bytes[operand_elements];
  spread_bytes<n>(registers, elements, bytes);
  for (uint32_t k = 0; k < 64 / n * elements; k += 2)
    for (uint32_t j = 0; j < n; ++j) {
      operand.value[k * n + 2 * j] = int8_t(bytes[k * n + j]);
      operand.value[k * n + 2 * j + 1] = int8_t(bytes[(k + 1) * n + j]);
    }
}

template <uint32_t n> SLUICE_INLINE bool integer_rows(const MfmaShape &shape, const MfmaOperands &o) {
  IntegerOperand x;
  IntegerOperand y;
  decode<n>(o.a, shape.a_elements(), x);
  decode<n>(o.b, shape.b_elements(), y);
  for (uint32_t block = 0; block < shape.blocks; ++block)
    for (uint32_t i = 0; i < n; ++i) {
      const uint32_t at = c_row(shape, block, i);
      alignas(64) int32_t sum[n] = {};
      for (uint32_t k = block * shape.k; k < (block + 1u) * shape.k; k += 2)
        for (uint32_t j = 0; j < n; ++j)
          // decode() has written the k of all blocks; the analyzer cannot multiply.
          // NOLINTNEXTLINE(clang-analyzer-core.UndefinedBinaryOperatorResult)
          sum[j] += x.value[k * n + 2 * i] * y.value[k * n + 2 * j] +
                    x.value[k * n + 2 * i + 1] * y.value[k * n + 2 * j + 1];
      for (uint32_t j = 0; j < n; ++j)
        o.d[at + j] = uint32_t(sum[j]) + (o.c ? o.c[at + j] : uint32_t(o.c_constant));
    }
  return true;
}

SLUICE_INLINE bool rows(const MfmaShape &shape, const MfmaOperands &o) {
  if (shape.input == MfmaInput::i8)
    return shape.n == 16 ? integer_rows<16>(shape, o) : integer_rows<32>(shape, o);
  return shape.n == 16 ? float_rows<16>(shape, o) : float_rows<32>(shape, o);
}

} // namespace

SLUICE_AVX2 bool mfma_8_bit_avx2(const MfmaShape &shape, const MfmaOperands &operands) {
  return rows(shape, operands);
}

SLUICE_AVX512 bool mfma_8_bit_avx512(const MfmaShape &shape, const MfmaOperands &operands) {
  return rows(shape, operands);
}

} // namespace sluice::emulator::detail
#endif
