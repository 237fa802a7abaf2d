//===- msgpack_test.cpp - the boundaries between the forms of MessagePack -------------------------------===//
#include "package/msgpack.h"

#include <catch2/catch.hpp>

#include <string>

using namespace sluice::package;
using Kind = MsgpackValue::Kind;

namespace {

/// A view of bytes that live as long as the program.
MsgpackValue read(const std::string &bytes) {
  static std::vector<std::string> kept;
  kept.reserve(1000);
  REQUIRE(kept.size() < 1000);
  const std::string &text = kept.emplace_back(bytes);
  return read_msgpack(std::as_bytes(std::span(text)));
}

std::string times(int count, const std::string &text) {
  std::string all;
  for (int i = 0; i < count; ++i)
    all += text;
  return all;
}

} // namespace

TEST_CASE("a tag's last value is of its kind, and the next one of the next", "[msgpack]") {
  CHECK(read("\x7f").kind == Kind::unsigned_integer);
  CHECK(read("\x80").kind == Kind::map);
  CHECK(read("\x80").elements.empty());
  CHECK(read('\x8f' + times(15, "\1\2")).elements.size() == 15);
  CHECK(read('\x8f' + times(15, "\1\2")).kind == Kind::map);
  CHECK(read("\x90").kind == Kind::array);
  CHECK(read('\x9f' + times(15, "\1")).kind == Kind::array);
  CHECK(read('\x9f' + times(15, "\1")).elements.size() == 15);
  CHECK(read("\xa0").kind == Kind::string);
  CHECK(read('\xbf' + times(31, "x")).text == times(31, "x"));
  CHECK(read("\xe0").kind == Kind::negative_integer);
  CHECK(int64_t(read("\xe0").integer) == -32);
  CHECK(read("\xff").kind == Kind::negative_integer);
}

TEST_CASE("a signed number is negative below 0", "[msgpack]") {
  CHECK(read({'\xd0', 0}).kind == Kind::unsigned_integer);
  CHECK(read("\xd0\xff").kind == Kind::negative_integer);
  CHECK(int64_t(read("\xd0\xff").integer) == -1);
  CHECK(read("\xd0\x7f").kind == Kind::unsigned_integer);
  CHECK(read({'\xca', 0, 0, 0, 0}).kind == Kind::real);
}

TEST_CASE("a map has two values for each entry", "[msgpack]") {
  CHECK(read("\x81\xa0\1").elements.size() == 1);
  CHECK_THROWS_WITH(read("\x82\xa0\1\xa0"), Catch::Contains("claims a map of 2 entries"));
  CHECK_THROWS_WITH(read("\x92\1"), Catch::Contains("claims an array of 2 elements"));
}

TEST_CASE("values nest 32 deep, in arrays and in keys and values of maps", "[msgpack]") {
  const std::string deeper = "MessagePack nests deeper than 32 levels";
  CHECK(read(times(32, "\x91") + "\1").kind == Kind::array);
  CHECK_THROWS_WITH(read(times(33, "\x91") + "\1"), Catch::StartsWith(deeper));
  CHECK(read(times(32, "\x81\1") + "\1").kind == Kind::map);
  CHECK_THROWS_WITH(read(times(33, "\x81\1") + "\1"), Catch::StartsWith(deeper));
  CHECK(read(times(32, "\x81") + "\1" + times(32, "\1")).kind == Kind::map);
  CHECK_THROWS_WITH(read(times(33, "\x81") + "\1" + times(33, "\1")), Catch::StartsWith(deeper));
}

TEST_CASE("only strings are found as keys", "[msgpack]") {
  const MsgpackValue map = read("\x82\xc4\1k\1\xa1k\2");
  REQUIRE(map.find("k") != nullptr);
  CHECK(map.find("k")->integer == 2);
  CHECK(map.find("") == nullptr);
}
