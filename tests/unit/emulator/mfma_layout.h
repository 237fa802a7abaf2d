//===- mfma_layout.h - places of elements, as AMD's matrix calculator prints them -----------------------===//
#pragma once

#include <cstdint>
#include <random>
#include <vector>

#include "emulator/exec/mfma.h"

namespace sluice::test {

using emulator::MfmaInput;
using emulator::MfmaOptions;
using emulator::MfmaPath;
using emulator::MfmaShape;

struct At {
  uint32_t lane;
  uint32_t element; // of A and B: elements of their width; of C: elements of D's width
};

inline uint32_t width_of(MfmaInput input) {
  switch (input) {
  case MfmaInput::f64:
    return 64;
  case MfmaInput::f32:
  case MfmaInput::xf32:
    return 32;
  case MfmaInput::f16:
  case MfmaInput::bf16:
    return 16;
  case MfmaInput::i8:
  case MfmaInput::fp8:
  case MfmaInput::bf8:
    return 8;
  }
  return 0;
}
inline uint32_t result_width(const MfmaShape &s) {
  return s.input == MfmaInput::f64 ? 64 : 32;
}

/// Element k of row i of A; for SMFMAC the k-th that is stored.
inline At a_at(const MfmaShape &s, uint32_t block, uint32_t i, uint32_t k) {
  if (s.sparse) {
    const uint32_t lanes = 64 / s.m;
    if (width_of(s.input) == 16) return {i + s.m * (k / 4), k % 4};
    return {i + s.m * (k / 4 % lanes), 4 * (k / 4 / lanes) + k % 4};
  }
  if (s.input == MfmaInput::f64) return {i + 4 * block + 16 * k, 0};
  if (s.blocks > 1) return {i + s.m * block, k};
  const uint32_t per_lane = s.k * s.m / 64;
  return {i + s.m * (k / per_lane), k % per_lane};
}

inline At b_at(const MfmaShape &s, uint32_t block, uint32_t k, uint32_t j) {
  if (!s.sparse) return a_at(s, block, j, k); // the mirror image
  const uint32_t lanes = 64 / s.n;
  if (width_of(s.input) == 16) return {j + s.n * (k / 8), k % 8};
  return {j + s.n * (k / 8 % lanes), 8 * (k / 8 / lanes) + k % 8};
}

inline At c_at(const MfmaShape &s, uint32_t block, uint32_t i, uint32_t j) {
  if (s.input == MfmaInput::f64) return {16 * (i % 4) + 4 * block + j, i / 4};
  if (s.m == 4) return {4 * block + j, i};
  if (s.m == 16) return {16 * (i / 4) + j, 4 * block + i % 4};
  return {32 * (i / 4 % 2) + j, 16 * block + 4 * (i / 8) + i % 4};
}

/// Four bits of an index register say which two of four consecutive k of row i are stored. `four` is the
/// index of that group. The offset of the set of indices is added.
struct IndexAt {
  uint32_t lane;
  uint32_t bit;
};
inline IndexAt index_at(const MfmaShape &s, uint32_t i, uint32_t four) {
  if (width_of(s.input) == 16) return {i + s.m * (four / 2), 4 * (four % 2)};
  const uint32_t half = s.k / 8; // fours in one half of K
  return {i + s.m * (four % half / 2), 4 * (2 * (four / half) + four % 2)};
}

inline uint64_t bits_at(const std::vector<uint32_t> &registers, uint32_t width, At at) {
  if (width == 64)
    return registers[2 * at.element * 64 + at.lane] | uint64_t(registers[(2 * at.element + 1) * 64 + at.lane])
                                                          << 32;
  const uint32_t per_word = 32 / width;
  const uint32_t word = registers[at.element / per_word * 64 + at.lane];
  return word >> (at.element % per_word * width) & ((uint64_t(1) << width) - 1);
}

/// Writes into registers that are zero there.
inline void put(std::vector<uint32_t> &registers, uint32_t width, At at, uint64_t bits) {
  if (width == 64) {
    registers[2 * at.element * 64 + at.lane] = uint32_t(bits);
    registers[(2 * at.element + 1) * 64 + at.lane] = uint32_t(bits >> 32);
    return;
  }
  const uint32_t per_word = 32 / width;
  registers[at.element / per_word * 64 + at.lane] |= uint32_t(bits) << (at.element % per_word * width);
}

struct Registers {
  std::vector<uint32_t> a, b, c, index;
  explicit Registers(const MfmaShape &s)
      : a(s.m * (s.sparse ? s.k / 2 : s.k) * s.blocks * width_of(s.input) / 32),
        b(s.n * s.k * s.blocks * width_of(s.b_input) / 32), c(s.m * s.n * s.blocks * result_width(s) / 32),
        index(64, 0x44444444) {} // k 0 and 1 of each four
};

/// Any pairs of indices in ascending order, in every set.
inline void draw_index(Registers &in, std::mt19937 &random) {
  constexpr uint32_t pairs[] = {0x4, 0x8, 0xc, 0x9, 0xd, 0xe};
  for (uint32_t &word : in.index) {
    word = 0;
    for (uint32_t bit = 0; bit < 32; bit += 4)
      word |= pairs[random() % 6] << bit;
  }
}

/// The k of the `stored`-th element of row i of A.
inline uint32_t k_of(const MfmaShape &s, const Registers &in, uint32_t set, uint32_t i, uint32_t stored) {
  if (!s.sparse) return stored;
  const IndexAt at = index_at(s, i, stored / 2);
  const uint32_t set_bits = width_of(s.input) == 16 ? 8 : 16;
  return stored / 2 * 4 + (in.index[at.lane] >> (set * set_bits + at.bit + 2 * (stored % 2)) & 3);
}

inline std::vector<MfmaPath> paths() {
  std::vector<MfmaPath> available;
  for (MfmaPath path : {MfmaPath::portable, MfmaPath::avx2, MfmaPath::avx512})
    if (emulator::mfma_path_available(path)) available.push_back(path);
  return available;
}

inline std::vector<uint32_t> run(MfmaPath path, const MfmaShape &shape, const Registers &in,
                                 MfmaOptions options = {}) {
  std::vector<uint32_t> d(in.c.size(), 0xdeadbeef);
  options.index = in.index.data();
  mfma_on_path(path, shape, d.data(), in.a.data(), in.b.data(), in.c.data(), 0, options);
  return d;
}

inline void require_equal(const std::vector<uint32_t> &got, const std::vector<uint32_t> &want) {
  REQUIRE(got.size() == want.size());
  for (size_t i = 0; i < got.size(); ++i)
    if (got[i] != want[i]) {
      INFO("register " << i / 64 << " lane " << i % 64 << std::hex << ": got " << got[i] << " want "
                       << want[i]);
      REQUIRE(got[i] == want[i]);
    }
}

/// One and two of an input type, and two of the result's.
inline uint64_t one_of(MfmaInput input) {
  switch (input) {
  case MfmaInput::f16:
    return 0x3c00;
  case MfmaInput::bf16:
    return 0x3f80;
  case MfmaInput::f64:
    return 0x3ff0000000000000;
  case MfmaInput::i8:
    return 1;
  case MfmaInput::fp8:
  case MfmaInput::bf8:
    return 0x40;
  default:
    return 0x3f800000;
  }
}
inline uint64_t two_of(MfmaInput input) {
  switch (input) {
  case MfmaInput::f16:
  case MfmaInput::bf16:
    return 0x4000;
  case MfmaInput::f64:
    return 0x4000000000000000;
  case MfmaInput::i8:
    return 2;
  case MfmaInput::fp8:
    return 0x48;
  case MfmaInput::bf8:
    return 0x44;
  default:
    return 0x40000000;
  }
}
inline uint64_t two_of_result(const MfmaShape &s) {
  return s.input == MfmaInput::i8 ? 2 : two_of(s.input == MfmaInput::f64 ? s.input : MfmaInput::f32);
}

} // namespace sluice::test
