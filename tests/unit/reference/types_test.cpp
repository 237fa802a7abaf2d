//===- types_test.cpp - element types in any mixture ----------------------------------------------------===//
#include "call.h"

#include <catch2/catch.hpp>

using namespace sluice::test;

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

TEST_CASE("V in K is the beginning of its rows", "[reference][types]") {
  Call call(1, 1, 2, 1, 1, 3, 2);
  call.problem.flags |= SLUICE_V_IN_K;
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
