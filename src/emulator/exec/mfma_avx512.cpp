//===- mfma_avx512.cpp - MFMA sums, sixteen columns at a time -------------------------------------------===//
//
// The arithmetic of mfma_portable.cpp on AVX-512. Operands are scaled so that their products are exact in
// f32, with exponents that fit in int8: an f16 by a constant, a bf16 by its row's (column's) largest exponent
// in the group. So truncating a product toward zero is a conversion to integer. The plain routine redoes
// elements outside these ranges.
//
//===----------------------------------------------------------------------------------------------------===//
#include "emulator/exec/mfma_paths.h"

#if defined(__x86_64__)
#include <immintrin.h>

#define SLUICE_AVX512 __attribute__((target("avx512f,avx512bw,avx512vl,avx512dq")))
#define SLUICE_AVX512_INLINE SLUICE_AVX512 __attribute__((always_inline)) inline

namespace sluice::emulator::detail {

namespace {

constexpr int32_t zero_exponent = -128;  // in int8: absorbs any exponent added to it
constexpr int32_t lowest_exponent = -60; // smaller ones are not distinguished
constexpr int32_t nothing = -300;        // the exponent of a zero, below that of every nonzero value
constexpr int32_t f16_base = 15;
// The last unit of a sum is 31 below the largest exponent: from here on it is no subnormal.
constexpr int32_t lowest_common = -95;
constexpr int32_t highest_common = 126;

/// A or B of one instruction: [element of the lane][lane].
struct alignas(64) Operand {
  float value[4][64];
  int8_t exponent[4][64];
  int32_t base[2][64]; // the exponents' reference, by group and row (column); bf16 only
};

SLUICE_AVX512_INLINE __m512i element_bits(const uint32_t *registers, uint32_t element, uint32_t lane) {
  const __m512i pair = _mm512_loadu_si512(registers + (element / 2) * 64 + lane);
  return element % 2 ? _mm512_srli_epi32(pair, 16) : _mm512_and_si512(pair, _mm512_set1_epi32(0xffff));
}

/// False if any element is an Inf or a NaN.
SLUICE_AVX512_INLINE bool decode_f16(const uint32_t *registers, Operand &operand) {
  const __m512i infinite = _mm512_set1_epi32(31);
  __mmask16 special = 0;
  for (uint32_t element = 0; element < 4; ++element)
    for (uint32_t lane = 0; lane < 64; lane += 16) {
      const __m512i bits = element_bits(registers, element, lane);
      const __m512i field = _mm512_and_si512(_mm512_srli_epi32(bits, 10), infinite);
      special |= _mm512_cmpeq_epi32_mask(field, infinite);
      const __mmask16 nonzero = _mm512_test_epi32_mask(bits, _mm512_set1_epi32(0x7fff));
      const __m512i exponent = _mm512_mask_sub_epi32(_mm512_set1_epi32(zero_exponent), nonzero,
                                                     _mm512_max_epi32(field, _mm512_set1_epi32(1)),
                                                     _mm512_set1_epi32(15 + f16_base));
      const __m512 value =
          _mm512_mul_ps(_mm512_cvtph_ps(_mm512_cvtepi32_epi16(bits)), _mm512_set1_ps(0x1p-15f));
      _mm512_store_ps(&operand.value[element][lane], value);
      _mm_store_si128(reinterpret_cast<__m128i *>(&operand.exponent[element][lane]),
                      _mm512_cvtepi32_epi8(exponent));
    }
  return special == 0;
}

/// `extent` is M (or N): the elements that a row has in one group are `extent` lanes apart.
SLUICE_AVX512_INLINE bool decode_bf16(const uint32_t *registers, const MfmaShape &shape, Operand &operand) {
  const uint32_t extent = shape.m;
  const uint32_t run_count = shape.blocks > 1 ? 1 : 64 / extent; // runs of four k
  const __m512i infinite = _mm512_set1_epi32(255);
  alignas(64) int32_t raw_exponent[4][64];
  __mmask16 special = 0;
  for (uint32_t element = 0; element < 4; ++element)
    for (uint32_t lane = 0; lane < 64; lane += 16) {
      const __m512i bits = element_bits(registers, element, lane);
      const __m512i field = _mm512_and_si512(_mm512_srli_epi32(bits, 7), infinite);
      special |= _mm512_cmpeq_epi32_mask(field, infinite);
      const __mmask16 nonzero = _mm512_test_epi32_mask(bits, _mm512_set1_epi32(0x7fff));
      _mm512_store_si512(&raw_exponent[element][lane],
                         _mm512_mask_sub_epi32(_mm512_set1_epi32(nothing), nonzero,
                                               _mm512_max_epi32(field, _mm512_set1_epi32(1)),
                                               _mm512_set1_epi32(127)));
    }
  if (special != 0) return false;
  for (uint32_t lane = 0; lane < 64; lane += 16) {
    const uint32_t group = run_count > 1 ? lane / extent / 2 : 0;
    const uint32_t row = run_count > 1 ? lane % extent : lane; // of the group's base
    __m512i base = _mm512_set1_epi32(nothing);
    for (uint32_t run = 0; run < (run_count > 1 ? 2u : 1u); ++run)
      for (uint32_t element = 0; element < 4; ++element) {
        const uint32_t at = run_count > 1 ? (2 * group + run) * extent + row : lane;
        base = _mm512_max_epi32(base, _mm512_load_si512(&raw_exponent[element][at]));
      }
    _mm512_store_si512(&operand.base[group][row], base);
    const __m512 down = _mm512_cvtepi32_ps(_mm512_sub_epi32(_mm512_setzero_si512(), base));
    for (uint32_t element = 0; element < 4; ++element) {
      const __m512 value = _mm512_castsi512_ps(_mm512_slli_epi32(element_bits(registers, element, lane), 16));
      _mm512_store_ps(&operand.value[element][lane], _mm512_scalef_ps(value, down));
      const __m512i raw = _mm512_load_si512(&raw_exponent[element][lane]);
      const __mmask16 nonzero = _mm512_cmpneq_epi32_mask(raw, _mm512_set1_epi32(nothing));
      const __m512i relative =
          _mm512_mask_max_epi32(_mm512_set1_epi32(zero_exponent), nonzero, _mm512_sub_epi32(raw, base),
                                _mm512_set1_epi32(lowest_exponent));
      _mm_store_si128(reinterpret_cast<__m128i *>(&operand.exponent[element][lane]),
                      _mm512_cvtepi32_epi8(relative));
    }
  }
  return true;
}

SLUICE_AVX512_INLINE __m256i low_half(__m512i x) {
  return _mm512_castsi512_si256(x);
}
SLUICE_AVX512_INLINE __m256i high_half(__m512i x) {
  return _mm512_extracti64x4_epi64(x, 1);
}

SLUICE_AVX512_INLINE __m512i kept(int32_t value) {
  __m512i vector = _mm512_set1_epi32(value);
  asm("" : "+v"(vector));
  return vector;
}

/// Vectors of one number, which a compiler would otherwise make anew for every row.
struct Numbers {
  SLUICE_AVX512_INLINE Numbers()
      : normal(kept(0x7f800000)), fraction(kept(0x7fffff)), implicit(kept(0x800000)),
        magnitude(kept(0x7fffffff)), one(kept(1)), bias(kept(127)), none(kept(nothing)),
        no_product(kept(zero_exponent)), scale_bias(kept(24 + 127)), last_unit(kept(31)),
        lowest(kept(lowest_common)), usual(kept(highest_common - lowest_common)),
        doubtful(kept(lowest_exponent)) {}

  const __m512i normal, fraction, implicit, magnitude, one, bias, none, no_product, scale_bias, last_unit,
      lowest, usual, doubtful;
};

/// 128 times the accumulator plus floor(sum * 2^(7 - down)) of eight elements, rounded to f32.
SLUICE_AVX512_INLINE __m256 total(__m256i sum, __m256i down, __m256i accumulator) {
  const __m512i products =
      _mm512_srav_epi64(_mm512_slli_epi64(_mm512_cvtepi32_epi64(sum), 7), _mm512_cvtepi32_epi64(down));
  return _mm512_cvtepi64_ps(
      _mm512_add_epi64(_mm512_slli_epi64(_mm512_cvtepi32_epi64(accumulator), 7), products));
}

/// Steps 3 and 4: adds the group's sum, in units of 2^(exponent - 24), to an accumulator with the exponent
/// c_exponent. Not for results that may be subnormal.
SLUICE_AVX512_INLINE __m512 accumulate(const Numbers &numbers, __m512i sum, __m512i exponent, __m512i c_bits,
                                       __m512i c_exponent, __m512i common) {
  const __mmask16 normal = _mm512_test_epi32_mask(c_bits, numbers.normal);
  const __m512i fraction = _mm512_and_si512(c_bits, numbers.fraction);
  __m512i mantissa = _mm512_mask_or_epi32(fraction, normal, fraction, numbers.implicit);
  mantissa = _mm512_mask_sub_epi32(mantissa, _mm512_movepi32_mask(c_bits), _mm512_setzero_si512(), mantissa);
  const __m512i accumulator =
      _mm512_srav_epi32(_mm512_slli_epi32(mantissa, 1), _mm512_sub_epi32(common, c_exponent));
  const __m512i down = _mm512_sub_epi32(common, exponent);
  const __m256 low = total(low_half(sum), low_half(down), low_half(accumulator));
  const __m256 high = total(high_half(sum), high_half(down), high_half(accumulator));
  const __m512 units = _mm512_insertf32x8(_mm512_castps256_ps512(low), high, 1);
  return _mm512_scalef_ps(units, _mm512_cvtepi32_ps(_mm512_sub_epi32(common, numbers.last_unit)));
}

/// MFMAs of square blocks; each sum takes `count` products.
template <bool is_bf16, uint32_t n, uint32_t count, uint32_t groups, uint32_t blocks> class HalfTiles {
public:
  HalfTiles(const MfmaShape &shape, uint32_t *d, const uint32_t *a, const uint32_t *b, const uint32_t *c,
            uint32_t c_constant)
      : shape(shape), d(d), a(a), b(b), c(c), c_constant(c_constant) {}

  /// False if an operand has an Inf or a NaN.
  SLUICE_AVX512 bool run() {
    if (is_bf16 ? !decode_bf16(a, shape, x) || !decode_bf16(b, shape, y)
                : !decode_f16(a, x) || !decode_f16(b, y))
      return false;
    for (uint32_t block = 0; block < blocks; ++block)
      for (uint32_t group = 0; group < groups; ++group) {
        find_exponents(block + 2 * group);
        for (uint32_t column = 0; column < n; column += 16)
          run_columns(block, group, column);
      }
    return true;
  }

private:
  /// Largest product exponent of every element, row by row. `run`: of four k, or the block.
  SLUICE_AVX512_INLINE void find_exponents(uint32_t run) {
    for (uint32_t i = 0; i < n; ++i) {
      __m256i largest = _mm256_set1_epi8(zero_exponent);
#pragma GCC unroll 8
      for (uint32_t t = 0; t < count; ++t) {
        const uint32_t lane = n * (run + t / 4);
        const int8_t *const row = &y.exponent[t % 4][lane];
        const __m256i column_exponents =
            n == 32 ? _mm256_load_si256(reinterpret_cast<const __m256i *>(row))
                    : _mm256_castsi128_si256(_mm_load_si128(reinterpret_cast<const __m128i *>(row)));
        const __m256i sum = _mm256_adds_epi8(_mm256_set1_epi8(x.exponent[t % 4][lane + i]), column_exponents);
        largest = _mm256_max_epi8(largest, sum);
      }
      if (n == 32)
        _mm256_store_si256(reinterpret_cast<__m256i *>(exponents + i * n), largest);
      else
        _mm_store_si128(reinterpret_cast<__m128i *>(exponents + i * n), _mm256_castsi256_si128(largest));
    }
  }

  /// Sixteen columns of every row.
  SLUICE_AVX512_INLINE void run_columns(uint32_t block, uint32_t group, uint32_t column) {
    constexpr auto input = is_bf16 ? MfmaInput::bf16 : MfmaInput::f16;
    constexpr MfmaShape layout{n, n, count * groups, blocks, input, input, 0, false};
    const uint32_t lane = n * (block + 2 * group);
    const uint32_t base_at = blocks > 1 ? n * block : 0;
    const Numbers numbers;
    __m512 factor[count];
#pragma GCC unroll 8
    for (uint32_t t = 0; t < count; ++t)
      factor[t] = _mm512_load_ps(&y.value[t % 4][lane + n * (t / 4) + column]);
    for (uint32_t i = 0; i < n; ++i) {
      const uint32_t at = c_row(layout, block, i) + column;
      const __m512i c_bits = group > 0 ? _mm512_loadu_si512(d + at)
                             : c       ? _mm512_loadu_si512(c + at)
                                       : _mm512_set1_epi32(int32_t(c_constant));
      const __m512i relative =
          _mm512_cvtepi8_epi32(_mm_load_si128(reinterpret_cast<const __m128i *>(exponents + i * n + column)));
      // 2^(24 - E): scales a product to integer units of its last kept bit.
      const __m512 scale =
          _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_sub_epi32(numbers.scale_bias, relative), 23));
      __m512i sum = _mm512_setzero_si512();
#pragma GCC unroll 8
      for (uint32_t t = 0; t < count; ++t) {
        const __m512 product =
            _mm512_mul_ps(_mm512_set1_ps(x.value[t % 4][lane + n * (t / 4) + i]), factor[t]);
        sum = _mm512_add_epi32(sum, _mm512_cvttps_epi32(_mm512_mul_ps(product, scale)));
      }

      const __mmask16 any_product = _mm512_cmpneq_epi32_mask(relative, numbers.no_product);
      __m512i base = _mm512_set1_epi32(2 * f16_base);
      if (is_bf16)
        base = _mm512_add_epi32(_mm512_set1_epi32(x.base[group][base_at + i]),
                                _mm512_load_si512(&y.base[group][base_at + column]));
      const __m512i exponent = _mm512_mask_add_epi32(numbers.none, any_product, relative, base);
      const __m512i field = _mm512_srli_epi32(_mm512_and_si512(c_bits, numbers.magnitude), 23);
      const __m512i c_exponent =
          _mm512_mask_sub_epi32(numbers.none, _mm512_test_epi32_mask(c_bits, numbers.magnitude),
                                _mm512_max_epi32(field, numbers.one), numbers.bias);
      const __m512i common = _mm512_max_epi32(exponent, c_exponent);
      const __m512 result = accumulate(numbers, sum, exponent, c_bits, c_exponent, common);

      __mmask16 redo = _mm512_mask_cmpneq_epi32_mask(
          _mm512_cmpgt_epu32_mask(_mm512_sub_epi32(common, numbers.lowest), numbers.usual), common,
          numbers.none);
      if (is_bf16) redo |= _mm512_mask_cmple_epi32_mask(any_product, relative, numbers.doubtful);
      _mm512_storeu_ps(d + at, result);
      if (redo != 0) [[unlikely]]
        redo_columns(redo, block, group, i, column, at, c_bits);
    }
  }

  /// Computes some of sixteen columns with the plain routine. `c_bits`: the accumulators.
  SLUICE_AVX512 void redo_columns(uint32_t columns, uint32_t block, uint32_t group, uint32_t i,
                                  uint32_t first, uint32_t at, __m512i c_bits) {
    alignas(64) uint32_t before[16];
    _mm512_store_si512(before, c_bits);
    for (uint32_t column = 0; column < 16; ++column)
      if ((columns >> column & 1) != 0)
        d[at + column] = redo_element(shape, a, b, block, i, first + column, group, before[column]);
  }

  const MfmaShape &shape;
  uint32_t *const d;
  const uint32_t *const a;
  const uint32_t *const b;
  const uint32_t *const c; // nullable
  const uint32_t c_constant;
  Operand x;
  Operand y;
  alignas(64) int8_t exponents[32 * 32];
};

template <bool is_bf16>
bool half_tiles(const MfmaShape &shape, uint32_t *d, const uint32_t *a, const uint32_t *b, const uint32_t *c,
                uint32_t c_constant) {
  if (shape.blocks == 2) return HalfTiles<is_bf16, 32, 4, 1, 2>(shape, d, a, b, c, c_constant).run();
  if (shape.blocks == 4) return HalfTiles<is_bf16, 16, 4, 1, 4>(shape, d, a, b, c, c_constant).run();
  if (shape.n == 32) return HalfTiles<is_bf16, 32, 8, 1, 1>(shape, d, a, b, c, c_constant).run();
  return HalfTiles<is_bf16, 16, 8, 2, 1>(shape, d, a, b, c, c_constant).run();
}

} // namespace

bool mfma_half_avx512(const MfmaShape &shape, uint32_t *d, const uint32_t *a, const uint32_t *b,
                      const uint32_t *c, uint32_t c_constant) {
  return (shape.input == MfmaInput::bf16 ? half_tiles<true> : half_tiles<false>)(shape, d, a, b, c,
                                                                                 c_constant);
}

SLUICE_AVX512 void mfma_single_avx512(const MfmaShape &shape, uint32_t *d, const uint32_t *a,
                                      const uint32_t *b, const uint32_t *c, uint32_t c_constant) {
  const uint32_t n = shape.n;
  for (uint32_t block = 0; block < shape.blocks; ++block)
    for (uint32_t i = 0; i < shape.m; ++i)
      for (uint32_t column = 0; column < n; column += 16) {
        const uint32_t at = c_row(shape, block, i) + column;
        __m512 sum =
            c ? _mm512_loadu_ps(c + at) : _mm512_castsi512_ps(_mm512_set1_epi32(int32_t(c_constant)));
        for (uint32_t k = 0; k < shape.k; ++k)
          sum = _mm512_fmadd_ps(
              _mm512_castsi512_ps(_mm512_set1_epi32(int32_t(a[i + n * (block + k)]))),
              _mm512_loadu_ps(reinterpret_cast<const float *>(b + n * (block + k) + column)), sum);
        const __mmask16 nan = _mm512_cmp_ps_mask(sum, sum, _CMP_UNORD_Q);
        _mm512_storeu_si512(d + at, _mm512_mask_mov_epi32(_mm512_castps_si512(sum), nan,
                                                          _mm512_set1_epi32(int32_t(canonical_nan))));
      }
}

} // namespace sluice::emulator::detail
#endif
