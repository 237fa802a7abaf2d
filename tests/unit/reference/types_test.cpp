//===- types_test.cpp - element types in any mixture ----------------------------------------------------===//
#include "call.h"
#include "calls/problem.h"

#include <catch2/catch.hpp>

using namespace sluice::test;
namespace calls = sluice::calls;

namespace {

/// 1, 1.5 and -2 as patterns of a type, composed from its fields by hand.
struct Type {
  uint32_t type;
  uint32_t bytes;
  uint32_t one, one_and_half, minus_two;
};

const Type types[] = {
    {SLUICE_F16, 2, 0x3c00, 0x3e00, 0xc000},
    {SLUICE_BF16, 2, 0x3f80, 0x3fc0, 0xc000},
    {SLUICE_F32, 4, 0x3f800000, 0x3fc00000, 0xc0000000},
    {SLUICE_E4M3FNUZ, 1, 0x40, 0x44, 0xc8},
    {SLUICE_E4M3FN, 1, 0x38, 0x3c, 0xc0},
    {SLUICE_E5M2FNUZ, 1, 0x40, 0x42, 0xc4},
    {SLUICE_E5M2, 1, 0x3c, 0x3e, 0xc0},
};

std::vector<unsigned char> pack(const Type &type, std::initializer_list<uint32_t> patterns) {
  std::vector<unsigned char> bytes;
  for (const uint32_t pattern : patterns) {
    for (uint32_t byte = 0; byte < type.bytes; ++byte)
      bytes.push_back(static_cast<unsigned char>(pattern >> (8 * byte)));
  }
  return bytes;
}

} // namespace

TEST_CASE("Q, K and V have any type in any mixture", "[reference][types]") {
  for (const Type &q_type : types) {
    for (const Type &k_type : types) {
      for (const Type &v_type : types) {
        INFO("q " << q_type.type << ", k " << k_type.type << ", v " << v_type.type);
        Call call(1, 1, 2, 1, 1, 2, 1);
        auto q = pack(q_type, {q_type.one, q_type.minus_two});
        auto k = pack(k_type, {k_type.one_and_half, k_type.one, k_type.one, k_type.one_and_half});
        auto v = pack(v_type, {v_type.one_and_half, v_type.minus_two});
        call.problem.q_type = q_type.type;
        call.problem.k_type = k_type.type;
        call.problem.v_type = v_type.type;
        call.args.q.data = q.data();
        call.args.k.data = k.data();
        call.args.v.data = v.data();
        call.run();
        // Scores 1.5 - 2 and 1 - 3.
        const double first = std::exp(-0.5), second = std::exp(-2.0);
        CHECK(call.o[0] == Approx((1.5 * first - 2 * second) / (first + second)));
        CHECK(call.lse[0] == Approx(std::log(first + second)));
      }
    }
  }
}

namespace {

/// One row and two keys of 32 elements, with a Q of zeros: O is the mean of the rows of V.
struct BlockCall : Call {
  explicit BlockCall(uint32_t v_type) : Call(1, 1, 2, 1, 1, 32, 32) { problem.v_type = v_type; }

  /// A block for each scale, an F16 in front of the same numbers.
  void run(const std::vector<unsigned char> &row, std::initializer_list<uint32_t> scales) {
    std::vector<unsigned char> bytes;
    for (const uint32_t scale : scales) {
      bytes.insert(bytes.end(), {static_cast<unsigned char>(scale), static_cast<unsigned char>(scale >> 8)});
      bytes.insert(bytes.end(), row.begin(), row.end());
    }
    args.v.data = bytes.data();
    Call::run();
  }
};

} // namespace

TEST_CASE("ggml's blocks are a scale and numbers of 8 or 4 bits", "[reference][types]") {
  BlockCall q8_call(SLUICE_Q8_0);
  std::vector<unsigned char> row(32);
  for (int e = 0; e < 32; ++e)
    row[size_t(e)] = static_cast<unsigned char>(e < 16 ? e : e - 144); // 0 to 15, and -128 to -113
  q8_call.run(row, {0x3c00, 0x4400});                                  // 1 and 4
  for (int e = 0; e < 32; ++e)
    CHECK(q8_call.o[size_t(e)] == (e < 16 ? e : e - 144) * 2.5f);

  BlockCall q4_call(SLUICE_Q4_0);
  row.assign(16, 0);
  for (int i = 0; i < 16; ++i)
    row[size_t(i)] = static_cast<unsigned char>(i | (15 - i) << 4);
  q4_call.run(row, {0xbc00, 0x4200}); // -1 and 3
  for (int i = 0; i < 16; ++i) {
    CHECK(q4_call.o[size_t(i)] == float(i - 8));
    CHECK(q4_call.o[size_t(16 + i)] == float(7 - i));
  }
}

TEST_CASE("4-bit numbers have the scale and the zero of their group, also if only V has groups",
          "[reference][types]") {
  std::vector<unsigned char> numbers;
  for (int e = 0; e < 2 * 64; e += 2)
    numbers.push_back(static_cast<unsigned char>(e % 16 | (e + 1) % 16 << 4));
  // Both keys have two groups of 32 elements each.
  uint16_t scales[] = {0x3c00, 0x4000, 0x4200, 0x4400},
           zeros[] = {0x4800, 0x4700, 0x3c00, 0}; // 1, 2, 3, 4; 8, 7, 1, 0
  Call call(1, 1, 2, 1, 1, 32, 64);
  call.problem.v_type = SLUICE_U4;
  call.problem.v_scale_kind = SLUICE_SCALE_PER_GROUP;
  call.problem.scale_group = 32;
  call.args.v.data = numbers.data();
  call.args.v_scales = {scales, {4, 2, 2, 1}};
  call.run();
  for (int e = 0; e < 64; ++e) // a zero of 8 where none is given
    CHECK(call.o[size_t(e)] == (e % 16 - 8) * (e < 32 ? 2.0f : 3.0f));
  call.problem.flags |= calls::zero_points;
  call.args.v_zeros = {zeros, {4, 2, 2, 1}};
  call.run();
  for (int e = 0; e < 64; ++e)
    CHECK(call.o[size_t(e)] ==
          (e < 32 ? ((e % 16 - 8) + 3 * (e % 16 - 1)) / 2.0f : ((e % 16 - 7) * 2 + 4 * (e % 16)) / 2.0f));
}

TEST_CASE("V in K is the beginning of its rows", "[reference][types]") {
  Call call(1, 1, 2, 1, 1, 3, 2);
  call.problem.flags |= calls::v_in_k;
  call.args.v = {};
  call.k = {1, 2, 3, 5, 6, 7}; // scores 0
  const float v_scale = 10;
  call.run();
  CHECK(call.o == std::vector<float>{3, 4});
  call.problem.v_scale_kind = SLUICE_SCALE_PER_TENSOR;
  call.args.v_scale = &v_scale;
  call.run();
  CHECK(call.o == std::vector<float>{30, 40});
}
