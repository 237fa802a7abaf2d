//===- mfma_layout_test.cpp - names, layouts and modifiers of MFMA --------------------------------------===//
#include <algorithm>
#include <bit>
#include <catch2/catch.hpp>
#include <random>
#include <set>
#include <string>

#include "unit/emulator/mfma_layout.h"

using namespace sluice::emulator;
using namespace sluice::test;

namespace {

/// The source of an element of B when BLGP is set, by the manual's table.
uint32_t blgp_lane(uint32_t blgp, uint32_t lane) {
  const uint32_t table[8][4] = {{0, 1, 2, 3}, {0, 1, 0, 1}, {2, 3, 2, 3}, {1, 2, 3, 0},
                                {0, 0, 0, 0}, {1, 1, 1, 1}, {2, 2, 2, 2}, {3, 3, 3, 3}};
  return 16 * table[blgp][lane / 16] + lane % 16;
}

/// Words that make every element small and different from its neighbours.
void fill_small(const MfmaShape &s, Registers &in, std::mt19937 &random) {
  auto fill = [&](std::vector<uint32_t> &registers, MfmaInput input) {
    const uint32_t width = width_of(input);
    const uint32_t elements = uint32_t(registers.size() / 64) * 32 / width;
    std::fill(registers.begin(), registers.end(), 0);
    for (uint32_t lane = 0; lane < 64; ++lane)
      for (uint32_t element = 0; element < elements; ++element) {
        const uint64_t choices[] = {0, one_of(input), two_of(input), two_of(input), one_of(input)};
        put(registers, width, {lane, element}, choices[random() % 5]);
      }
  };
  fill(in.a, s.input);
  fill(in.b, s.b_input);
  fill(in.c, s.input == MfmaInput::i8 || s.input == MfmaInput::f64 ? s.input : MfmaInput::f32);
  if (s.input == MfmaInput::i8)
    for (uint32_t &word : in.c)
      word &= 3;
  draw_index(in, random);
}

} // namespace

TEST_CASE("an MFMA mnemonic names its shape", "[mfma]") {
  CHECK(mfma_instructions().size() == 46);
  for (const MfmaInstruction &instruction : mfma_instructions()) {
    INFO(instruction.mnemonic);
    CHECK(mfma_shape(instruction.mnemonic) == instruction.shape);
    CHECK(instruction.shape.m == instruction.shape.n);
    CHECK(instruction.shape.sparse == instruction.mnemonic.starts_with("v_smfmac"));
  }
  const auto flagship = mfma_shape("v_mfma_f32_32x32x8_f16");
  REQUIRE(flagship);
  CHECK(flagship->passes == 8);
  CHECK(flagship->a_registers() == 2);
  CHECK(flagship->c_registers() == 16);
  CHECK(flagship->multiply_adds() == 8192);
  const auto sparse = mfma_shape("v_smfmac_f32_16x16x64_bf8_fp8");
  REQUIRE(sparse);
  CHECK((sparse->input == MfmaInput::bf8 && sparse->b_input == MfmaInput::fp8));
  CHECK(sparse->a_registers() == 2);
  CHECK(sparse->b_registers() == 4);
  CHECK(sparse->c_registers() == 4);
  for (const char *other :
       {"", "v_mfma", "v_mfma_f32_32x32x4bf16", "v_mfma_f32_16x16x8bf16", "v_add_f32",
        "v_mfma_f32_16x16x32_f16", "v_mfma_i32_16x16x64_i8", "v_mfma_i32_32x32x8i8",
        "v_smfmac_f32_16x16x64_f16", "v_mfma_f32_32x32x4_5x_f16", "v_mfma_f32_32x32x16_fp8"})
    CHECK_FALSE(mfma_shape(other));
}

TEST_CASE("modifiers are executed where a shape defines them, and refused by name and value elsewhere",
          "[mfma]") {
  for (const MfmaInstruction &instruction : mfma_instructions()) {
    const MfmaShape &s = instruction.shape;
    const bool f64 = s.input == MfmaInput::f64;
    const bool late = width_of(s.input) == 8 && s.blocks == 1;
    for (uint8_t cbsz = 0; cbsz < 8; ++cbsz)
      for (uint8_t abid = 0; abid < 16; ++abid)
        for (uint8_t blgp = 0; blgp < 8; ++blgp) {
          bool legal;
          if (s.sparse)
            legal = cbsz < 4 && abid < (width_of(s.input) == 16 ? 4 : 2) && blgp == 0;
          else if (f64)
            legal = cbsz == 0 && abid == 0;
          else
            legal = (1 << cbsz) <= s.blocks && abid < (1 << cbsz) &&
                    (blgp == 0 || (!late && s.input != MfmaInput::xf32));
          INFO(instruction.mnemonic << " cbsz " << int(cbsz) << " abid " << int(abid) << " blgp "
                                    << int(blgp));
          REQUIRE(mfma_refusal(s, {cbsz, abid, blgp}).empty() == legal);
        }
  }
  const MfmaShape shape = *mfma_shape("v_mfma_f32_16x16x16_f16");
  CHECK(mfma_refusal(shape, {.cbsz = 2}).find("cbsz = 2") != std::string::npos);
  CHECK(mfma_refusal(shape, {.abid = 1}).find("abid = 1") != std::string::npos);
  const MfmaShape late = *mfma_shape("v_mfma_f32_16x16x8_xf32");
  CHECK(mfma_refusal(late, {.blgp = 7}).find("blgp = 7") != std::string::npos);
}

TEST_CASE("every lane and register holds the element the matrix calculator gives", "[mfma]") {
  for (const MfmaInstruction &instruction : mfma_instructions()) {
    const MfmaShape &s = instruction.shape;
    INFO(instruction.mnemonic);
    const uint32_t stored = s.sparse ? s.k / 2 : s.k;
    std::set<std::pair<uint32_t, uint32_t>> seen;
    for (uint32_t block = 0; block < s.blocks; ++block)
      for (uint32_t i = 0; i < s.m; ++i)
        for (uint32_t k = 0; k < stored; ++k) {
          const At at = a_at(s, block, i, k);
          seen.insert({at.lane, at.element});
          const MfmaElement a = mfma_a_element(s, at.lane, at.element);
          REQUIRE((a.block == block && a.row == i && a.column == k));
        }
    CHECK(seen.size() == s.a_registers() * 64 * 32 / width_of(s.input));
    seen.clear();
    for (uint32_t block = 0; block < s.blocks; ++block)
      for (uint32_t j = 0; j < s.n; ++j)
        for (uint32_t k = 0; k < s.k; ++k) {
          const At at = b_at(s, block, k, j);
          seen.insert({at.lane, at.element});
          const MfmaElement b = mfma_b_element(s, at.lane, at.element);
          REQUIRE((b.block == block && b.row == k && b.column == j));
        }
    CHECK(seen.size() == s.b_registers() * 64 * 32 / width_of(s.b_input));
    seen.clear();
    for (uint32_t block = 0; block < s.blocks; ++block)
      for (uint32_t i = 0; i < s.m; ++i)
        for (uint32_t j = 0; j < s.n; ++j) {
          const At at = c_at(s, block, i, j);
          seen.insert({at.lane, at.element});
          const MfmaElement c = mfma_c_element(s, at.lane, at.element);
          REQUIRE((c.block == block && c.row == i && c.column == j));
        }
    CHECK(seen.size() == s.c_registers() * 64 * 32 / result_width(s));
  }
}

TEST_CASE("one product lands in its one element, on every path, for every shape", "[mfma]") {
  std::mt19937 random(3);
  for (const MfmaInstruction &instruction : mfma_instructions()) {
    const MfmaShape &s = instruction.shape;
    const uint32_t sets = s.sparse ? (width_of(s.input) == 16 ? 4 : 2) : 1;
    const uint32_t stored = s.sparse ? s.k / 2 : s.k;
    for (MfmaPath path : paths()) {
      INFO(instruction.mnemonic << " path " << int(path));
      for (uint32_t block = 0; block < s.blocks; ++block)
        for (uint32_t i = 0; i < s.m; ++i)
          for (uint32_t k = 0; k < stored; ++k) {
            const uint32_t j = (i * 7 + k * 3 + block + 1) % s.n;
            Registers in(s);
            draw_index(in, random);
            const auto set = uint8_t(random() % sets);
            put(in.a, width_of(s.input), a_at(s, block, i, k), one_of(s.input));
            put(in.b, width_of(s.b_input), b_at(s, block, k_of(s, in, set, i, k), j), two_of(s.b_input));
            const std::vector<uint32_t> d = run(path, s, in, {.modifiers = {.abid = set}});
            REQUIRE(bits_at(d, result_width(s), c_at(s, block, i, j)) == two_of_result(s));
            REQUIRE(std::count(d.begin(), d.end(), 0u) == std::ptrdiff_t(d.size() - 1));
          }
    }
  }
}

TEST_CASE("CBSZ and ABID broadcast blocks of A", "[mfma]") {
  std::mt19937 random(5);
  for (const MfmaInstruction &instruction : mfma_instructions()) {
    const MfmaShape &s = instruction.shape;
    if (s.blocks == 1 || s.input == MfmaInput::f64) continue;
    Registers in(s);
    fill_small(s, in, random);
    for (uint8_t cbsz = 1; (1 << cbsz) <= s.blocks; ++cbsz)
      for (uint8_t abid = 0; abid < (1 << cbsz); ++abid) {
        Registers moved = in;
        for (uint32_t block = 0; block < s.blocks; ++block)
          for (uint32_t i = 0; i < s.m; ++i)
            for (uint32_t r = 0; r < in.a.size() / 64; ++r) {
              const uint32_t from = block / (1u << cbsz) * (1u << cbsz) + abid;
              moved.a[r * 64 + s.m * block + i] = in.a[r * 64 + s.m * from + i];
            }
        for (MfmaPath path : paths()) {
          INFO(instruction.mnemonic << " cbsz " << int(cbsz) << " abid " << int(abid) << " path "
                                    << int(path));
          require_equal(run(path, s, in, {.modifiers = {.cbsz = cbsz, .abid = abid}}), run(path, s, moved));
        }
      }
  }
}

TEST_CASE("BLGP gives lanes the B of others", "[mfma]") {
  std::mt19937 random(6);
  for (const MfmaInstruction &instruction : mfma_instructions()) {
    const MfmaShape &s = instruction.shape;
    if (s.input == MfmaInput::f64 || !mfma_refusal(s, {.blgp = 1}).empty()) continue;
    Registers in(s);
    fill_small(s, in, random);
    for (uint8_t blgp = 1; blgp < 8; ++blgp) {
      Registers moved = in;
      for (uint32_t at = 0; at < in.b.size(); ++at)
        moved.b[at] = in.b[at / 64 * 64 + blgp_lane(blgp, at % 64)];
      for (MfmaPath path : paths()) {
        INFO(instruction.mnemonic << " blgp " << int(blgp) << " path " << int(path));
        require_equal(run(path, s, in, {.modifiers = {.blgp = blgp}}), run(path, s, moved));
      }
    }
  }
}

TEST_CASE("BLGP negates A, B and C of f64", "[mfma]") {
  std::mt19937 random(8);
  for (const char *mnemonic : {"v_mfma_f64_16x16x4_f64", "v_mfma_f64_4x4x4_4b_f64"}) {
    const MfmaShape s = *mfma_shape(mnemonic);
    Registers in(s);
    fill_small(s, in, random);
    for (uint8_t blgp = 1; blgp < 8; ++blgp) {
      Registers negated = in;
      std::vector<uint32_t> *const operands[] = {&negated.a, &negated.b, &negated.c};
      for (uint32_t k = 0; k < 3; ++k)
        if ((blgp >> k & 1) != 0)
          for (size_t at = 0; at < operands[k]->size(); ++at)
            (*operands[k])[at] ^= at / 64 % 2 == 1 ? 0x80000000 : 0;
      INFO(mnemonic << " blgp " << int(blgp));
      require_equal(run(MfmaPath::portable, s, in, {.modifiers = {.blgp = blgp}}),
                    run(MfmaPath::portable, s, negated));
    }
    // A constant addend too.
    std::vector<uint32_t> d(in.c.size());
    std::fill(in.a.begin(), in.a.end(), 0);
    mfma(s, d.data(), in.a.data(), in.b.data(), nullptr, 0x4000000000000000, {.modifiers = {.blgp = 4}});
    CHECK(d[0] == 0);
    CHECK(d[64] == 0xc0000000);
  }
}

TEST_CASE("CBSZ of SMFMAC selects the first set of indices, ABID any", "[mfma]") {
  std::mt19937 random(9);
  for (const MfmaInstruction &instruction : mfma_instructions()) {
    const MfmaShape &s = instruction.shape;
    if (!s.sparse) continue;
    INFO(instruction.mnemonic);
    Registers in(s);
    fill_small(s, in, random);
    const std::vector<uint32_t> first = run(MfmaPath::portable, s, in);
    const std::vector<uint32_t> second = run(MfmaPath::portable, s, in, {.modifiers = {.abid = 1}});
    CHECK(first != second);
    for (uint8_t cbsz = 1; cbsz < 4; ++cbsz)
      CHECK(run(MfmaPath::portable, s, in, {.modifiers = {.cbsz = cbsz, .abid = 1}}) == first);

    // Each pair of the set in use must ascend; the other sets are ignored.
    const uint32_t set_bits = width_of(s.input) == 16 ? 8 : 16;
    CHECK(mfma_index_valid(s, {}, in.index.data()));
    for (uint32_t bit = 0; bit < 32; bit += 4)
      for (const uint32_t pair : {0x0u, 0x5u, 0xau, 0xfu, 0x1u, 0x2u, 0x3u, 0x6u, 0x7u, 0xbu}) {
        Registers wrong = in;
        for (uint32_t &word : wrong.index)
          word = (word & ~(15u << bit)) | pair << bit;
        for (uint8_t set = 0; set < 32 / set_bits; ++set)
          CHECK(mfma_index_valid(s, {.abid = set}, wrong.index.data()) == (bit / set_bits != set));
        CHECK(mfma_index_valid(s, {.cbsz = 1, .abid = 1}, wrong.index.data()) == (bit / set_bits != 0));
      }
    Registers one_lane = in;
    one_lane.index[63] = 0;
    CHECK_FALSE(mfma_index_valid(s, {}, one_lane.index.data()));
  }
}

TEST_CASE("operands may overlap and the accumulator may be a constant", "[mfma]") {
  std::mt19937 random(11);
  for (const MfmaInstruction &instruction : mfma_instructions()) {
    const MfmaShape &s = instruction.shape;
    const auto c_words = std::ptrdiff_t(s.c_registers() * 64);
    Registers in(s);
    fill_small(s, in, random);
    const MfmaOptions options{.index = in.index.data()};
    for (MfmaPath path : paths()) {
      INFO(instruction.mnemonic << " path " << int(path));
      const std::vector<uint32_t> want = run(path, s, in);

      std::vector<uint32_t> file = in.c; // in place
      mfma_on_path(path, s, file.data(), in.a.data(), in.b.data(), file.data(), 0, options);
      require_equal(file, want);

      file.assign(size_t(c_words) + 64, 0); // c one register above d
      std::copy(in.c.begin(), in.c.end(), file.begin() + 64);
      mfma_on_path(path, s, file.data(), in.a.data(), in.b.data(), file.data() + 64, 0, options);
      require_equal({file.begin(), file.begin() + c_words}, want);

      file.assign(size_t(c_words) + in.a.size(), 0); // a in the last registers of d
      std::copy(in.a.begin(), in.a.end(), file.begin() + (c_words - 64));
      mfma_on_path(path, s, file.data(), file.data() + (c_words - 64), in.b.data(), in.c.data(), 0, options);
      require_equal({file.begin(), file.begin() + c_words}, want);

      file.assign(size_t(c_words) + in.b.size(), 0); // b from the last register of d on
      std::copy(in.b.begin(), in.b.end(), file.begin() + (c_words - 64));
      mfma_on_path(path, s, file.data(), in.a.data(), file.data() + (c_words - 64), in.c.data(), 0, options);
      require_equal({file.begin(), file.begin() + c_words}, want);

      if (s.sparse) { // the index in a register of d
        file.assign(size_t(c_words), 0);
        std::copy(in.index.begin(), in.index.end(), file.begin());
        mfma_on_path(path, s, file.data(), in.a.data(), in.b.data(), in.c.data(), 0, {.index = file.data()});
        require_equal(file, want);
      }

      Registers constant = in;
      const uint64_t two = two_of_result(s);
      for (size_t at = 0; at < constant.c.size(); ++at)
        constant.c[at] = uint32_t(result_width(s) == 64 && at / 64 % 2 == 1 ? two >> 32 : two);
      file.assign(size_t(c_words), 0);
      mfma_on_path(path, s, file.data(), in.a.data(), in.b.data(), nullptr, two, options);
      require_equal(file, run(path, s, constant));
    }
  }
}
