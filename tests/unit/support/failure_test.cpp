//===- failure_test.cpp - messages, and arithmetic that detects overflow --------------------------------===//
#include "support/checked.h"
#include "support/failure.h"

#include <catch2/catch.hpp>

#include <cstdint>
#include <limits>

using namespace sluice::support;

TEST_CASE("a message is its pieces in a row", "[failure]") {
  CHECK(text() == "");
  CHECK(text("k.stride[", uint64_t{1}, "] is ", int64_t{-5}, ',', std::string(" scale ")) ==
        "k.stride[1] is -5, scale ");
  CHECK(text(0.1, " ", 1.5f, " ", std::numeric_limits<double>::infinity()) == "0.1 1.5 inf");
  CHECK(text(std::numeric_limits<int64_t>::min(), " ", std::numeric_limits<uint64_t>::max()) ==
        "-9223372036854775808 18446744073709551615");
  CHECK(hexadecimal(0) == "0x0");
  CHECK(hexadecimal(~uint64_t{0}) == "0xffffffffffffffff");
}

TEST_CASE("a failure carries status, field, message and HIP code", "[failure]") {
  const Failure failure(Status::hip, "event", "hipEventRecord failed", 400);
  CHECK(failure.status() == Status::hip);
  CHECK(failure.field() == "event");
  CHECK(failure.message() == "hipEventRecord failed");
  CHECK(std::string(failure.what()) == "hipEventRecord failed");
  CHECK(failure.hip_code() == 400);
}

TEST_CASE("checked arithmetic gives nothing when it wraps", "[checked]") {
  constexpr int64_t largest = std::numeric_limits<int64_t>::max();
  CHECK(checked_add<int64_t>(largest - 1, 1) == largest);
  CHECK(!checked_add<int64_t>(largest, 1));
  CHECK(checked_multiply<int64_t>(largest / 2, 2) == largest - 1);
  CHECK(!checked_multiply<int64_t>(largest / 2 + 1, 2));
  CHECK(!checked_multiply<uint32_t>(65536, 65536));
}

TEST_CASE("dividing up does not wrap at the largest value", "[checked]") {
  CHECK(divide_up(0u, 7u) == 0);
  CHECK(divide_up(7u, 7u) == 1);
  CHECK(divide_up(8u, 7u) == 2);
  CHECK(divide_up(~0u, 2u) == 0x80000000);
}
