//===- mfma_portable.cpp - the arithmetic of the matrix core in plain code ------------------------------===//
//
// CDNA3 sums products of f16, bf16 and xf32 in groups (of eight; of four for xf32; or of K, if that is less):
//
//   1. the products are exact; E is their largest exponent, where a product's exponent is the sum of its
//      operands' (a subnormal counts with the smallest exponent, a zero not at all);
//   2. each product is cut toward zero at 24 fraction bits below 2^E, and those are added exactly;
//   3. M is the larger of E and the accumulator's exponent. The sum is cut toward minus infinity at 31 bits
//      below 2^M, the accumulator at 24 bits below it;
//   4. their sum is rounded to nearest even, and is the accumulator of the next group.
//
// fp8 and bf8 have groups of sixteen. Steps 1 and 2 are done separately for the even and for the odd
// elements; the two sums are rounded toward minus infinity at 24 bits below the larger E and added. In step 3
// an accumulator whose exponent is below M - 25 is ignored.
//
// xf32 is f32 without its low 13 bits. f32 and f64 are chains of fused multiply-adds in the order of k; i8
// wraps around. The products of SMFMAC are those of the elements that A stores, in their order.
//
//===----------------------------------------------------------------------------------------------------===//
#include <algorithm>
#include <bit>
#include <cmath>

#include "emulator/exec/mfma_paths.h"

namespace sluice::emulator::detail {

namespace {

constexpr uint32_t max_columns = 32;
constexpr uint32_t max_k = 64;
constexpr int32_t nothing = -4096; // the exponent of a zero: below that of any other number

//===--- Numbers ----------------------------------------------------------------------------------------===//

struct FloatFormat {
  int32_t fraction_bits;
  int32_t exponent_mask;
  int32_t bias;
  bool finite_only; // no infinities; the encoding of minus zero is the only NaN
};
constexpr FloatFormat format_of(MfmaInput input) {
  switch (input) {
  case MfmaInput::f16:
    return {10, 31, 15, false};
  case MfmaInput::bf16:
    return {7, 255, 127, false};
  case MfmaInput::fp8:
    return {3, 15, 8, true};
  case MfmaInput::bf8:
    return {2, 31, 16, true};
  default: // xf32
    return {10, 255, 127, false};
  }
}

struct Element {
  int32_t mantissa; // signed; the value is mantissa * 2^(exponent - fraction bits)
  int32_t exponent;
  bool finite;
  double value;
};

Element decode(MfmaInput input, uint32_t bits) {
  const FloatFormat format = format_of(input);
  const uint32_t width = input_bits(input);
  // The bits that xf32 drops still distinguish a NaN from an infinity.
  const bool dropped = input == MfmaInput::xf32 && (bits & 0x1fff) != 0;
  if (input == MfmaInput::xf32) bits >>= 13;
  const bool negative = (bits >> (width - 1 - (input == MfmaInput::xf32 ? 13 : 0)) & 1) != 0;
  const int32_t fraction = int32_t(bits & ((1u << format.fraction_bits) - 1));
  const int32_t field = int32_t(bits >> format.fraction_bits) & format.exponent_mask;

  Element element;
  element.finite = format.finite_only ? bits != 0x80 : field != format.exponent_mask;
  element.exponent = std::max(field, 1) - format.bias;
  element.mantissa = field != 0 ? fraction | 1 << format.fraction_bits : fraction;
  element.value = std::ldexp(double(element.mantissa), element.exponent - format.fraction_bits);
  if (!element.finite) element.value = format.finite_only || fraction != 0 || dropped ? NAN : INFINITY;
  if (negative) {
    element.mantissa = -element.mantissa;
    element.value = -element.value;
  }
  return element;
}

bool f32_finite(uint32_t bits) {
  return (bits & 0x7f800000) != 0x7f800000;
}

uint32_t f32_bits(double value) {
  return std::isnan(value) ? canonical_nan : std::bit_cast<uint32_t>(float(value));
}

/// x * 2^shift cut toward minus infinity; any shift, x below 2^40.
int64_t shift_floor(int64_t x, int32_t shift) {
  return shift >= 0 ? x << shift : x >> std::min(-shift, 63);
}

/// 2^exponent, for exponents of a normal double.
double power_of_two(int32_t exponent) {
  return std::bit_cast<double>(uint64_t(exponent + 1023) << 52);
}

//===--- Sums of a group --------------------------------------------------------------------------------===//

/// A sum in units of 2^(exponent - 24).
struct CutSum {
  int64_t sum = 0;
  int32_t exponent = nothing;
};

/// Steps 1 and 2, for every `stride`th of the `count` products.
CutSum cut_products(const Element *a, const Element *b, uint32_t count, uint32_t stride,
                    int32_t fraction_bits) {
  CutSum result;
  for (uint32_t k = 0; k < count; k += stride)
    if (a[k].mantissa != 0 && b[k].mantissa != 0)
      result.exponent = std::max(result.exponent, a[k].exponent + b[k].exponent);
  for (uint32_t k = 0; k < count; k += stride) {
    const int64_t product = int64_t(a[k].mantissa) * b[k].mantissa;
    if (product == 0) continue;
    const int32_t shift = a[k].exponent + b[k].exponent - result.exponent;
    const int64_t cut = shift_floor(std::abs(product) << (24 - fraction_bits), shift);
    result.sum += product > 0 ? cut : -cut;
  }
  return result;
}

/// Steps 3 and 4. An accumulator with an exponent below M - `reach` is ignored.
uint32_t accumulate(const CutSum &products, uint32_t c, int32_t reach) {
  int32_t c_exponent = nothing;
  int64_t c_mantissa = 0;
  if ((c & 0x7fffffff) != 0) {
    const int32_t field = (c >> 23) & 255;
    c_exponent = std::max(field, 1) - 127;
    c_mantissa = (c & 0x7fffff) | (field != 0 ? 0x800000 : 0);
    if (c >> 31) c_mantissa = -c_mantissa;
  }
  const int32_t common = std::max(products.exponent, c_exponent);
  if (common == nothing) return 0;
  if (c_exponent < common - reach) c_mantissa = 0;
  const int64_t total = shift_floor(products.sum << 7, products.exponent - common) +
                        shift_floor(c_mantissa << 1, c_exponent - common) * 128;
  return f32_bits(double(total) * power_of_two(common - 31));
}

/// The sum if an operand is not finite.
uint32_t sum_of_values(const Element *a, const Element *b, uint32_t count, uint32_t c) {
  double sum = double(std::bit_cast<float>(c));
  for (uint32_t k = 0; k < count; ++k)
    sum += a[k].value * b[k].value;
  return f32_bits(sum);
}

bool all_finite(const Element *a, const Element *b, uint32_t count, uint32_t c) {
  bool finite = f32_finite(c);
  for (uint32_t k = 0; k < count; ++k)
    finite = finite && a[k].finite && b[k].finite;
  return finite;
}

/// A group of f16, bf16 or xf32: the bits of the new accumulator.
uint32_t group_sum(MfmaInput input, const Element *a, const Element *b, uint32_t count, uint32_t c) {
  if (!all_finite(a, b, count, c)) return sum_of_values(a, b, count, c);
  const int32_t fraction_bits = 2 * format_of(input).fraction_bits;

  // A product too large for f32 counts as infinite.
  bool positive_infinity = false;
  bool negative_infinity = false;
  for (uint32_t k = 0; k < count; ++k) {
    const double product = a[k].value * b[k].value;
    positive_infinity = positive_infinity || product >= 0x1p128;
    negative_infinity = negative_infinity || product <= -0x1p128;
  }
  if (positive_infinity && negative_infinity) return canonical_nan;
  if (positive_infinity) return 0x7f800000;
  if (negative_infinity) return 0xff800000;
  constexpr int32_t any_exponent = -2 * nothing;
  return accumulate(cut_products(a, b, count, 1, fraction_bits), c, any_exponent);
}

/// A group of fp8 and bf8.
uint32_t group_sum_8_bit(const MfmaShape &shape, const Element *a, const Element *b, uint32_t count,
                         uint32_t c) {
  if (!all_finite(a, b, count, c)) return sum_of_values(a, b, count, c);
  const int32_t fraction_bits = format_of(shape.input).fraction_bits + format_of(shape.b_input).fraction_bits;
  const CutSum even = cut_products(a, b, count, 2, fraction_bits);
  const CutSum odd = cut_products(a + 1, b + 1, count - 1, 2, fraction_bits);
  CutSum both;
  both.exponent = std::max(even.exponent, odd.exponent);
  both.sum = shift_floor(even.sum, even.exponent - both.exponent) +
             shift_floor(odd.sum, odd.exponent - both.exponent);
  return accumulate(both, c, 25);
}

uint32_t group_size(const MfmaShape &shape) {
  const uint32_t largest = input_bits(shape.input) == 8     ? mfma_group_8_bit
                           : shape.input == MfmaInput::xf32 ? 4
                                                            : mfma_group;
  return std::min(shape.stored_k(), largest);
}

//===--- Shapes -----------------------------------------------------------------------------------------===//

/// The k of B that multiplies element `k` of row i of A.
uint32_t dense_k(const MfmaShape &shape, const MfmaOperands &o, uint32_t i, uint32_t k) {
  if (!shape.sparse) return k;
  const ElementPlace at = input_place(shape, a_run(shape), 0, i, k);
  return k / 2 * 4 + (o.index[at.lane] >> (o.index_shift + 2 * at.element) & 3);
}

/// Decodes the rows and columns of a block, then calls sum(row, column, count, i, j) for each element of D,
/// with the number of elements of its row and column.
template <class T, class Decode, class Sum>
void for_each_element(const MfmaShape &shape, const MfmaOperands &o, uint32_t block, Decode &&decode_element,
                      Sum &&sum) {
  const uint32_t stored = shape.stored_k();
  T columns[max_columns][max_k];
  for (uint32_t j = 0; j < shape.n; ++j)
    for (uint32_t k = 0; k < shape.k; ++k)
      columns[j][k] = decode_element(shape.b_input, o.b, input_place(shape, b_run(shape), block, j, k));
  for (uint32_t i = 0; i < shape.m; ++i) {
    T row[max_k];
    uint32_t place[max_k];
    for (uint32_t k = 0; k < stored; ++k) {
      row[k] = decode_element(shape.input, o.a, input_place(shape, a_run(shape), block, i, k));
      place[k] = dense_k(shape, o, i, k);
    }
    for (uint32_t j = 0; j < shape.n; ++j) {
      T column[max_k];
      for (uint32_t k = 0; k < stored; ++k)
        column[k] = columns[j][place[k]];
      sum(row, column, stored, i, j);
    }
  }
}

/// For the shapes with 32-bit C and D: sum(row, column, count, c) is the new element.
template <class T, class Decode, class Sum>
void for_each_word(const MfmaShape &shape, const MfmaOperands &o, Decode &&decode_element, Sum &&sum) {
  for (uint32_t block = 0; block < shape.blocks; ++block)
    for_each_element<T>(shape, o, block, decode_element,
                        [&](const T *row, const T *column, uint32_t count, uint32_t i, uint32_t j) {
                          const uint32_t at = c_row(shape, block, i) + j;
                          o.d[at] = sum(row, column, count, o.c ? o.c[at] : uint32_t(o.c_constant));
                        });
}

uint32_t bits_at(MfmaInput input, const uint32_t *registers, ElementPlace at) {
  return element_bits(registers, at, input_bits(input));
}

void grouped(const MfmaShape &shape, const MfmaOperands &o) {
  const bool eight_bit = input_bits(shape.input) == 8;
  const uint32_t size = group_size(shape);
  for_each_word<Element>(
      shape, o,
      [](MfmaInput input, const uint32_t *registers, ElementPlace at) {
        return decode(input, bits_at(input, registers, at));
      },
      [&](const Element *row, const Element *column, uint32_t count, uint32_t c) {
        for (uint32_t k = 0; k < count; k += size)
          c = eight_bit ? group_sum_8_bit(shape, row + k, column + k, size, c)
                        : group_sum(shape.input, row + k, column + k, size, c);
        return c;
      });
}

void single(const MfmaShape &shape, const MfmaOperands &o) {
  for_each_word<float>(
      shape, o,
      [](MfmaInput input, const uint32_t *registers, ElementPlace at) {
        return std::bit_cast<float>(bits_at(input, registers, at));
      },
      [&](const float *row, const float *column, uint32_t count, uint32_t c) {
        float sum = std::bit_cast<float>(c);
        for (uint32_t k = 0; k < count; ++k)
          sum = std::fma(row[k], column[k], sum);
        return std::isnan(sum) ? canonical_nan : std::bit_cast<uint32_t>(sum);
      });
}

void integer(const MfmaShape &shape, const MfmaOperands &o) {
  for_each_word<int32_t>(
      shape, o,
      [](MfmaInput input, const uint32_t *registers, ElementPlace at) {
        return int32_t(int8_t(bits_at(input, registers, at)));
      },
      [&](const int32_t *row, const int32_t *column, uint32_t count, uint32_t c) {
        for (uint32_t k = 0; k < count; ++k)
          c += uint32_t(row[k] * column[k]);
        return c;
      });
}

double double_at(const uint32_t *registers, uint32_t lane, uint32_t element) {
  const uint32_t *low = registers + 2 * element * 64 + lane;
  return std::bit_cast<double>(low[0] | uint64_t(low[64]) << 32);
}

void double_precision(const MfmaShape &shape, const MfmaOperands &o) {
  constexpr uint64_t nan = 0x7ff8000000000000;
  for (uint32_t block = 0; block < shape.blocks; ++block)
    for_each_element<double>(
        shape, o, block,
        [](MfmaInput, const uint32_t *registers, ElementPlace at) {
          return double_at(registers, at.lane, at.element);
        },
        [&](const double *row, const double *column, uint32_t count, uint32_t i, uint32_t j) {
          const uint32_t lane = shape.n * (block + shape.blocks * (i % 4)) + j;
          const uint32_t element = i / 4;
          double sum = o.c ? double_at(o.c, lane, element) : std::bit_cast<double>(o.c_constant);
          for (uint32_t k = 0; k < count; ++k)
            sum = std::fma(row[k], column[k], sum);
          const uint64_t bits = std::isnan(sum) ? nan : std::bit_cast<uint64_t>(sum);
          uint32_t *low = o.d + 2 * element * 64 + lane;
          low[0] = uint32_t(bits);
          low[64] = uint32_t(bits >> 32);
        });
}

} // namespace

uint32_t redo_element(const MfmaShape &shape, const uint32_t *a, const uint32_t *b, uint32_t block,
                      uint32_t i, uint32_t j, uint32_t group, uint32_t c) {
  Element row[mfma_group];
  Element column[mfma_group];
  const uint32_t size = group_size(shape);
  for (uint32_t t = 0; t < size; ++t) {
    const uint32_t k = group * mfma_group + t;
    row[t] = decode(shape.input, bits_at(shape.input, a, input_place(shape, a_run(shape), block, i, k)));
    column[t] = decode(shape.input, bits_at(shape.input, b, input_place(shape, b_run(shape), block, j, k)));
  }
  return group_sum(shape.input, row, column, size, c);
}

void mfma_portable(const MfmaShape &shape, const MfmaOperands &operands) {
  switch (shape.input) {
  case MfmaInput::f32:
    return single(shape, operands);
  case MfmaInput::f64:
    return double_precision(shape, operands);
  case MfmaInput::i8:
    return integer(shape, operands);
  default:
    return grouped(shape, operands);
  }
}

} // namespace sluice::emulator::detail
