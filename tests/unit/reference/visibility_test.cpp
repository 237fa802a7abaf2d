//===- visibility_test.cpp - the keys that a row sees, counted by hand ----------------------------------===//
#include "call.h"
#include "calls/problem.h"

#include <catch2/catch.hpp>

using namespace sluice::test;
namespace calls = sluice::calls;
using Bits = std::vector<int>;

TEST_CASE("windows follow the diagonal of their alignment", "[reference][visibility]") {
  BitCall call(3, 5); // bit j of a row: it sees key j
  SECTION("left, bottom right: the diagonal is key i + 2") {
    call.problem.flags |= calls::window_left;
    call.problem.window_left = 1;
    CHECK(call.visible() == Bits{0b11110, 0b11100, 0b11000});
  }
  SECTION("left, top left: the diagonal is key i") {
    call.problem.flags |= calls::window_left;
    call.problem.window_left = 1;
    call.problem.mask_alignment = SLUICE_TOP_LEFT;
    CHECK(call.visible() == Bits{0b11111, 0b11111, 0b11110});
  }
  SECTION("right, bottom right") {
    call.problem.flags |= calls::window_right;
    call.problem.window_right = 1;
    CHECK(call.visible() == Bits{0b01111, 0b11111, 0b11111});
  }
  SECTION("right, top left") {
    call.problem.flags |= calls::window_right;
    call.problem.window_right = 1;
    call.problem.mask_alignment = SLUICE_TOP_LEFT;
    CHECK(call.visible() == Bits{0b00011, 0b00111, 0b01111});
  }
  SECTION("both sides") {
    call.problem.flags |= calls::window_left | calls::window_right;
    call.problem.window_left = 2;
    call.problem.window_right = 1;
    CHECK(call.visible() == Bits{0b01111, 0b11110, 0b11100});
  }
  SECTION("a window of width 0 is the diagonal") {
    call.problem.flags |= calls::window_left | calls::causal;
    CHECK(call.visible() == Bits{0b00100, 0b01000, 0b10000});
  }
  SECTION("a right window of 0 is the causal mask") {
    call.problem.flags |= calls::window_right;
    CHECK(call.visible() == Bits{0b00111, 0b01111, 0b11111});
  }
  SECTION("widths count only with their flag") {
    call.problem.window_left = call.problem.window_right = 0;
    CHECK(call.visible() == Bits{0b11111, 0b11111, 0b11111});
  }
  SECTION("the widest window hides nothing") {
    call.problem.flags |= calls::window_left | calls::window_right;
    call.problem.window_left = call.problem.window_right = 2147483647;
    CHECK(call.visible() == Bits{0b11111, 0b11111, 0b11111});
  }
}

TEST_CASE("sink tokens stay visible to the left of the window only", "[reference][visibility]") {
  BitCall call(3, 5);
  call.problem.flags |= calls::window_left | calls::causal;
  call.problem.sink_tokens = 2;
  CHECK(call.visible() == Bits{0b00111, 0b01011, 0b10011});
  // More rows than keys: keys that causality hides stay hidden.
  BitCall prefill(4, 2);
  prefill.problem.flags = call.problem.flags;
  prefill.problem.sink_tokens = 2;
  CHECK(prefill.visible() == Bits{0, 0, 0b01, 0b11});
}

TEST_CASE("a window may leave a row without keys", "[reference][visibility]") {
  BitCall call(4, 2);
  call.problem.flags |= calls::window_left;
  call.problem.mask_alignment = SLUICE_TOP_LEFT;
  CHECK(call.visible() == Bits{0b11, 0b10, 0, 0});
}

TEST_CASE("the alignment uses each sequence's own lengths", "[reference][visibility]") {
  Call call(2, 3, 4, 1, 1, 1, 1);
  call.causal(SLUICE_BOTTOM_RIGHT);
  for (int j = 0; j < 4; ++j)
    call.v[j] = call.v[4 + j] = float(1 << j);
  const int32_t q_lengths[] = {2, 3}, kv_lengths[] = {4, 2};
  call.args.q_lengths = q_lengths;
  call.args.kv_lengths = kv_lengths;
  call.run();
  CHECK(call.lse[0] == Approx(std::log(3.0)));
  CHECK(call.o[0] == Approx(7.0 / 3));
  CHECK(call.lse[1] == Approx(std::log(4.0)));
  CHECK(call.o[2] == untouched); // past the length
  CHECK(call.lse[2] == untouched);
  CHECK(call.o[3] == 0); // three rows, two keys
  CHECK(call.lse[3] == -infinity);
  CHECK(call.o[4] == 1);
  CHECK(call.o[5] == Approx(1.5));
}

TEST_CASE("a bit of the mask is a row and a key", "[reference][visibility]") {
  constexpr int keys = 11;
  BitCall call(2, keys);
  call.problem.flags |= calls::mask_bits;
  // Bits set after the last key do not belong to a key.
  unsigned char bytes[] = {0b10000001, 0b11111101, 0xff, 0b00000010, 0b11111000, 0xff};
  call.args.mask = {bytes, {0, 0, 3, 1}};
  CHECK(call.visible() == Bits{0b10110000001, 0b00000000010});
  SECTION("a row without a bit sees nothing") {
    bytes[3] = 0;
    CHECK(call.visible() == Bits{0b10110000001, 0});
  }
  SECTION("it only hides") {
    call.causal(SLUICE_TOP_LEFT);
    CHECK(call.visible() == Bits{0b1, 0b10});
  }
  SECTION("stride 0 is one row for all") {
    call.args.mask.stride[2] = 0;
    CHECK(call.visible() == Bits{0b10110000001, 0b10110000001});
  }
}

TEST_CASE("masks are those of their batch and query head", "[reference][visibility]") {
  Call call(2, 1, 2, 2, 1, 1, 1);
  call.problem.flags |= calls::mask_bits;
  call.v = {1, 2, 4, 8};
  unsigned char bytes[] = {1, 2, 2, 1}; // [batch][head]
  call.args.mask = {bytes, {2, 1, 0, 1}};
  call.run();
  CHECK(call.o == std::vector<float>{1, 2, 8, 4});
  call.args.mask.stride[1] = 0;
  call.run();
  CHECK(call.o == std::vector<float>{1, 1, 8, 8});
}

TEST_CASE("hidden keys and values have no influence, even if they are NaN", "[reference][visibility]") {
  BitCall call(3, 4);
  call.problem.flags |= calls::window_left | calls::window_right;
  for (const float poison : {not_a_number, infinity}) {
    call.q = {1, 1, 1};
    call.k = {poison, 0, 0, 0}; // the diagonal is keys 1, 2, 3
    call.v[0] = poison;
    call.run();
    CHECK(call.o == std::vector<float>{2, 4, 8});
    CHECK(call.lse == std::vector<float>{0, 0, 0});
  }
}
