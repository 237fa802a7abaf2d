//===- plan_test.cpp - what a plan computes without a device --------------------------------------------===//
#include "runtime/plan.h"

#include "runtime/dtype.h"
#include "support/failure.h"
#include "support/fake_hip.h"

#include <catch2/catch.hpp>

#include <set>

using namespace sluice;
using namespace sluice::runtime;

TEST_CASE("the magic number divides every head by every ratio exactly", "[plan]") {
  constexpr int32_t max_q_heads = 32768;
  for (int32_t ratio = 1; ratio <= max_q_heads; ratio += ratio < 512 ? 1 : 97) {
    const uint64_t magic = kv_head_magic(ratio, 1);
    // It can only go wrong next to a multiple of the ratio.
    for (int32_t multiple = 0; multiple < max_q_heads; multiple += ratio) {
      const uint64_t first = uint64_t(multiple), last = uint64_t(multiple) + uint64_t(ratio) - 1;
      if ((first * magic) >> 31 != first / uint64_t(ratio)) FAIL("ratio " << ratio << ", head " << first);
      if ((last * magic) >> 31 != last / uint64_t(ratio)) FAIL("ratio " << ratio << ", head " << last);
    }
  }
  CHECK(kv_head_magic(8, 8) == uint32_t{1} << 31);
}

TEST_CASE("the causal shift says which keys are visible", "[plan]") {
  sluice_problem problem = {};
  CHECK(causal_shift(problem, 10, 30) == 30);
  problem.flags = SLUICE_CAUSAL;
  for (const int32_t q_len : {1, 7, 30}) {
    for (const int32_t kv_len : {1, 7, 30}) {
      problem.mask_alignment = SLUICE_BOTTOM_RIGHT;
      // The last row's last visible key is the last key.
      CHECK(q_len - 1 + causal_shift(problem, q_len, kv_len) == kv_len - 1);
      problem.mask_alignment = SLUICE_TOP_LEFT;
      CHECK(causal_shift(problem, q_len, kv_len) == 0);
    }
  }
}

TEST_CASE("every element type has a name, and a name one type", "[dtype]") {
  std::set<std::string_view> names;
  for (uint32_t type = SLUICE_F16; type <= SLUICE_E5M2; ++type) {
    CHECK(dtype_of_name(dtype_name(type)) == type);
    CHECK(names.insert(dtype_name(type)).second);
  }
  CHECK(dtype_name(0).empty());
  CHECK(dtype_name(SLUICE_E5M2 + 1).empty());
  CHECK(dtype_of_name("f64") == 0);
}

TEST_CASE("the current device is put back, also behind an exception, and left alone if it is right",
          "[device]") {
  test::FakeHip hip;
  hip.device_count = 3;
  hip.current_device = 2;
  const Device device = open_device(SLUICE_DEVICE_HIP, 1, {test::FakeHip::resolve, nullptr, "test"});
  CHECK(hip.current_device == 2);
  try {
    const CurrentDevice current(device);
    CHECK(hip.current_device == 1);
    throw 1;
  } catch (int) {
  }
  CHECK(hip.current_device == 2);

  hip.current_device = 1;
  hip.forget_calls();
  {
    const CurrentDevice current(device);
  }
  CHECK(hip.call_names() == std::vector<std::string>{"hipGetDevice"});

  hip.current_device = 0;
  hip.failing = {{"hipSetDevice", 101}};
  CHECK_THROWS_AS(CurrentDevice(device), support::Failure);
}
