//===- mfma_avx2.cpp - MFMA sums, eight columns at a time -----------------------------------------------===//
//
// The arithmetic of mfma_portable.cpp on AVX2, FMA and F16C. The scaling is the one that mfma_avx512.cpp
// explains.
//
//===----------------------------------------------------------------------------------------------------===//
#include "emulator/exec/mfma_paths.h"

#if defined(__x86_64__)
#include <immintrin.h>

#define SLUICE_AVX2 __attribute__((target("avx2,fma,f16c")))
#define SLUICE_AVX2_INLINE SLUICE_AVX2 __attribute__((always_inline)) inline

namespace sluice::emulator::detail {

namespace {

constexpr int32_t zero_exponent = -128;
constexpr int32_t lowest_exponent = -60;
constexpr int32_t nothing = -300;
constexpr int32_t f16_base = 15;

struct alignas(32) Operand {
  float value[4][64];
  int8_t exponent[4][64];
  int32_t base[2][64];
};

SLUICE_AVX2_INLINE __m256i load(const void *at) {
  return _mm256_loadu_si256(static_cast<const __m256i *>(at));
}
SLUICE_AVX2_INLINE void store(void *at, __m256i x) {
  _mm256_storeu_si256(static_cast<__m256i *>(at), x);
}
SLUICE_AVX2_INLINE __m128i low_half(__m256i x) {
  return _mm256_castsi256_si128(x);
}
SLUICE_AVX2_INLINE __m128i high_half(__m256i x) {
  return _mm256_extracti128_si256(x, 1);
}

/// where ? x : y; `where` is all ones or all zeros in each element.
SLUICE_AVX2_INLINE __m256i select(__m256i where, __m256i x, __m256i y) {
  return _mm256_blendv_epi8(y, x, where);
}

SLUICE_AVX2_INLINE __m256i element_bits(const uint32_t *registers, uint32_t element, uint32_t lane) {
  const __m256i pair = load(registers + (element / 2) * 64 + lane);
  return element % 2 ? _mm256_srli_epi32(pair, 16) : _mm256_and_si256(pair, _mm256_set1_epi32(0xffff));
}

SLUICE_AVX2_INLINE __m256i is_zero(__m256i bits) {
  return _mm256_cmpeq_epi32(_mm256_and_si256(bits, _mm256_set1_epi32(0x7fff)), _mm256_setzero_si256());
}

SLUICE_AVX2_INLINE void store_int8(int8_t *at, __m256i x) {
  const __m128i words = _mm_packs_epi32(low_half(x), high_half(x));
  _mm_storel_epi64(reinterpret_cast<__m128i *>(at), _mm_packs_epi16(words, words));
}

SLUICE_AVX2_INLINE bool decode_f16(const uint32_t *registers, Operand &operand) {
  const __m256i infinite = _mm256_set1_epi32(31);
  __m256i special = _mm256_setzero_si256();
  for (uint32_t element = 0; element < 4; ++element)
    for (uint32_t lane = 0; lane < 64; lane += 8) {
      const __m256i bits = element_bits(registers, element, lane);
      const __m256i field = _mm256_and_si256(_mm256_srli_epi32(bits, 10), infinite);
      special = _mm256_or_si256(special, _mm256_cmpeq_epi32(field, infinite));
      const __m256i exponent =
          _mm256_sub_epi32(_mm256_max_epi32(field, _mm256_set1_epi32(1)), _mm256_set1_epi32(15 + f16_base));
      store_int8(&operand.exponent[element][lane],
                 select(is_zero(bits), _mm256_set1_epi32(zero_exponent), exponent));
      const __m128i halves = _mm_packus_epi32(low_half(bits), high_half(bits));
      _mm256_storeu_ps(&operand.value[element][lane],
                       _mm256_mul_ps(_mm256_cvtph_ps(halves), _mm256_set1_ps(0x1p-15f)));
    }
  return _mm256_testz_si256(special, special);
}

/// 2^exponent in f32, for exponents of normal numbers.
SLUICE_AVX2_INLINE __m256 power_of_two_ps(__m256i exponent) {
  return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_add_epi32(exponent, _mm256_set1_epi32(127)), 23));
}

SLUICE_AVX2_INLINE bool decode_bf16(const uint32_t *registers, const MfmaShape &shape, Operand &operand) {
  const uint32_t extent = shape.m;
  const uint32_t run_count = shape.blocks > 1 ? 1 : 64 / extent;
  const __m256i infinite = _mm256_set1_epi32(255);
  alignas(32) int32_t raw_exponent[4][64];
  __m256i special = _mm256_setzero_si256();
  for (uint32_t element = 0; element < 4; ++element)
    for (uint32_t lane = 0; lane < 64; lane += 8) {
      const __m256i bits = element_bits(registers, element, lane);
      const __m256i field = _mm256_and_si256(_mm256_srli_epi32(bits, 7), infinite);
      special = _mm256_or_si256(special, _mm256_cmpeq_epi32(field, infinite));
      const __m256i exponent =
          _mm256_sub_epi32(_mm256_max_epi32(field, _mm256_set1_epi32(1)), _mm256_set1_epi32(127));
      store(&raw_exponent[element][lane], select(is_zero(bits), _mm256_set1_epi32(nothing), exponent));
    }
  if (!_mm256_testz_si256(special, special)) return false;
  for (uint32_t lane = 0; lane < 64; lane += 8) {
    const uint32_t group = run_count > 1 ? lane / extent / 2 : 0;
    const uint32_t row = run_count > 1 ? lane % extent : lane;
    __m256i base = _mm256_set1_epi32(nothing);
    for (uint32_t run = 0; run < (run_count > 1 ? 2u : 1u); ++run)
      for (uint32_t element = 0; element < 4; ++element) {
        const uint32_t at = run_count > 1 ? (2 * group + run) * extent + row : lane;
        base = _mm256_max_epi32(base, load(&raw_exponent[element][at]));
      }
    store(&operand.base[group][row], base);
    // Scaled by two factors, because 2^-base itself need not be a normal number. A row of zeros has no usable
    // base.
    const __m256i down =
        _mm256_sub_epi32(_mm256_setzero_si256(), _mm256_max_epi32(base, _mm256_set1_epi32(-126)));
    const __m256i half = _mm256_srai_epi32(down, 1);
    const __m256 first = power_of_two_ps(half);
    const __m256 second = power_of_two_ps(_mm256_sub_epi32(down, half));
    for (uint32_t element = 0; element < 4; ++element) {
      const __m256 value = _mm256_castsi256_ps(_mm256_slli_epi32(element_bits(registers, element, lane), 16));
      _mm256_storeu_ps(&operand.value[element][lane], _mm256_mul_ps(_mm256_mul_ps(value, first), second));
      const __m256i raw = load(&raw_exponent[element][lane]);
      const __m256i relative =
          _mm256_max_epi32(_mm256_sub_epi32(raw, base), _mm256_set1_epi32(lowest_exponent));
      store_int8(&operand.exponent[element][lane], select(_mm256_cmpeq_epi32(raw, _mm256_set1_epi32(nothing)),
                                                          _mm256_set1_epi32(zero_exponent), relative));
    }
  }
  return true;
}

SLUICE_AVX2_INLINE __m256d power_of_two_pd(__m128i exponent) {
  return _mm256_castsi256_pd(
      _mm256_slli_epi64(_mm256_cvtepi32_epi64(_mm_add_epi32(exponent, _mm_set1_epi32(1023))), 52));
}

/// floor(x * 2^shift) of four doubles.
SLUICE_AVX2_INLINE __m256d cut(__m256d x, __m128i shift) {
  return _mm256_floor_pd(_mm256_mul_pd(x, power_of_two_pd(shift)));
}

/// Steps 3 and 4 for four elements.
SLUICE_AVX2_INLINE __m128 accumulate(__m128i sum, __m128 c, __m128i exponent, __m128i common) {
  const __m128i sum_shift = _mm_add_epi32(_mm_sub_epi32(exponent, common), _mm_set1_epi32(7));
  const __m256d products = cut(_mm256_cvtepi32_pd(sum), sum_shift);
  const __m256d accumulator = cut(_mm256_cvtps_pd(c), _mm_sub_epi32(_mm_set1_epi32(24), common));
  const __m256d total = _mm256_fmadd_pd(accumulator, _mm256_set1_pd(128.0), products);
  return _mm256_cvtpd_ps(_mm256_mul_pd(total, power_of_two_pd(_mm_sub_epi32(common, _mm_set1_epi32(31)))));
}

template <bool is_bf16, uint32_t count>
SLUICE_AVX2 bool half_tiles(const MfmaShape &shape, uint32_t *d, const uint32_t *a, const uint32_t *b,
                            const uint32_t *c, uint32_t c_constant) {
  Operand x;
  Operand y;
  if (is_bf16 ? !decode_bf16(a, shape, x) || !decode_bf16(b, shape, y)
              : !decode_f16(a, x) || !decode_f16(b, y))
    return false;

  const uint32_t n = shape.n;
  const uint32_t groups = shape.k / count;
  alignas(32) int8_t exponents[32 * 32];
  for (uint32_t block = 0; block < shape.blocks; ++block)
    for (uint32_t group = 0; group < groups; ++group) {
      const uint32_t run = block + 2 * group;
      for (uint32_t i = 0; i < shape.m; ++i)
        for (uint32_t column = 0; column < n; column += 16) {
          __m128i largest = _mm_set1_epi8(zero_exponent);
#pragma GCC unroll 8
          for (uint32_t t = 0; t < count; ++t) {
            const uint32_t lane = n * (run + t / 4);
            const __m128i sum = _mm_adds_epi8(
                _mm_set1_epi8(x.exponent[t % 4][lane + i]),
                _mm_loadu_si128(reinterpret_cast<const __m128i *>(&y.exponent[t % 4][lane + column])));
            largest = _mm_max_epi8(largest, sum);
          }
          _mm_storeu_si128(reinterpret_cast<__m128i *>(exponents + i * n + column), largest);
        }

      const uint32_t base_at = shape.blocks > 1 ? n * block : 0;
      for (uint32_t column = 0; column < n; column += 8) {
        __m256 factor[count];
#pragma GCC unroll 8
        for (uint32_t t = 0; t < count; ++t)
          factor[t] = _mm256_loadu_ps(&y.value[t % 4][n * (run + t / 4) + column]);
        for (uint32_t i = 0; i < shape.m; ++i) {
          const uint32_t at = c_row(shape, block, i) + column;
          const __m256i c_bits = group > 0 ? load(d + at)
                                 : c       ? load(c + at)
                                           : _mm256_set1_epi32(int32_t(c_constant));
          const __m256i relative = _mm256_cvtepi8_epi32(
              _mm_loadl_epi64(reinterpret_cast<const __m128i *>(exponents + i * n + column)));
          const __m256 scale = power_of_two_ps(_mm256_sub_epi32(_mm256_set1_epi32(24), relative));
          __m256i sum = _mm256_setzero_si256();
#pragma GCC unroll 8
          for (uint32_t t = 0; t < count; ++t) {
            const __m256 product =
                _mm256_mul_ps(_mm256_set1_ps(x.value[t % 4][n * (run + t / 4) + i]), factor[t]);
            sum = _mm256_add_epi32(sum, _mm256_cvttps_epi32(_mm256_mul_ps(product, scale)));
          }

          const __m256i none = _mm256_set1_epi32(nothing);
          const __m256i no_product = _mm256_cmpeq_epi32(relative, _mm256_set1_epi32(zero_exponent));
          __m256i base = _mm256_set1_epi32(2 * f16_base);
          if (is_bf16)
            base = _mm256_add_epi32(_mm256_set1_epi32(x.base[group][base_at + i]),
                                    load(&y.base[group][base_at + column]));
          const __m256i exponent = select(no_product, none, _mm256_add_epi32(relative, base));
          const __m256i field = _mm256_and_si256(_mm256_srli_epi32(c_bits, 23), _mm256_set1_epi32(255));
          const __m256i c_zero = _mm256_cmpeq_epi32(_mm256_slli_epi32(c_bits, 1), _mm256_setzero_si256());
          const __m256i c_exponent =
              select(c_zero, none,
                     _mm256_sub_epi32(_mm256_max_epi32(field, _mm256_set1_epi32(1)), _mm256_set1_epi32(127)));
          const __m256i common = _mm256_max_epi32(exponent, c_exponent);
          const __m256 c_value = _mm256_castsi256_ps(c_bits);
          const __m128 low = accumulate(low_half(sum), _mm256_castps256_ps128(c_value), low_half(exponent),
                                        low_half(common));
          const __m128 high = accumulate(high_half(sum), _mm256_extractf128_ps(c_value, 1),
                                         high_half(exponent), high_half(common));
          const __m256 result = _mm256_set_m128(high, low);

          __m256i redo = _mm256_cmpeq_epi32(field, _mm256_set1_epi32(255));
          if (is_bf16) {
            const __m256i spread = _mm256_andnot_si256(
                no_product, _mm256_cmpgt_epi32(_mm256_set1_epi32(lowest_exponent + 1), relative));
            const __m256i huge = _mm256_cmpgt_epi32(exponent, _mm256_set1_epi32(126));
            redo = _mm256_or_si256(redo, _mm256_or_si256(spread, huge));
          }
          if (_mm256_testz_si256(redo, redo)) [[likely]] {
            _mm256_storeu_ps(reinterpret_cast<float *>(d + at), result);
          } else {
            const uint32_t mask = uint32_t(_mm256_movemask_ps(_mm256_castsi256_ps(redo)));
            uint32_t before[8];
            uint32_t after[8];
            store(before, c_bits);
            store(after, _mm256_castps_si256(result));
            for (uint32_t lane = 0; lane < 8; ++lane)
              if (mask >> lane & 1)
                after[lane] = redo_element(shape, a, b, block, i, column + lane, group, before[lane]);
            store(d + at, load(after));
          }
        }
      }
    }
  return true;
}

} // namespace

bool mfma_half_avx2(const MfmaShape &shape, uint32_t *d, const uint32_t *a, const uint32_t *b,
                    const uint32_t *c, uint32_t c_constant) {
  const bool is_bf16 = shape.input == MfmaInput::bf16;
  if (shape.k == 4)
    return (is_bf16 ? half_tiles<true, 4> : half_tiles<false, 4>)(shape, d, a, b, c, c_constant);
  return (is_bf16 ? half_tiles<true, 8> : half_tiles<false, 8>)(shape, d, a, b, c, c_constant);
}

SLUICE_AVX2 void mfma_single_avx2(const MfmaShape &shape, uint32_t *d, const uint32_t *a, const uint32_t *b,
                                  const uint32_t *c, uint32_t c_constant) {
  const uint32_t n = shape.n;
  for (uint32_t block = 0; block < shape.blocks; ++block)
    for (uint32_t i = 0; i < shape.m; ++i)
      for (uint32_t column = 0; column < n; column += 8) {
        const uint32_t at = c_row(shape, block, i) + column;
        __m256 sum = _mm256_castsi256_ps(c ? load(c + at) : _mm256_set1_epi32(int32_t(c_constant)));
        for (uint32_t k = 0; k < shape.k; ++k)
          sum = _mm256_fmadd_ps(_mm256_castsi256_ps(_mm256_set1_epi32(int32_t(a[i + n * (block + k)]))),
                                _mm256_castsi256_ps(load(b + n * (block + k) + column)), sum);
        const __m256 nan = _mm256_cmp_ps(sum, sum, _CMP_UNORD_Q);
        store(d + at, select(_mm256_castps_si256(nan), _mm256_set1_epi32(int32_t(canonical_nan)),
                             _mm256_castps_si256(sum)));
      }
}

} // namespace sluice::emulator::detail
#endif
