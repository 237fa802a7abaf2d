//===- sized_test.cpp - structs of earlier and later releases -------------------------------------------===//
#include "abi/sized.h"

#include <catch2/catch.hpp>

using namespace sluice;
using support::Failure;
using support::Status;

namespace {

/// A struct that two releases have made larger.
struct Grown {
  uint32_t struct_size, first;
  uint64_t second, third;
};

/// As a later release may have it.
struct Later {
  Grown known;
  uint64_t fourth;
};

} // namespace

namespace sluice::abi {
template <> struct Published<Grown> {
  static constexpr std::string_view name = "Grown";
  static constexpr auto sizes = std::to_array<uint32_t>({8, 16, sizeof(Grown)});
};
} // namespace sluice::abi

TEST_CASE("a struct of an earlier release has zeros where its members end", "[sized]") {
  const Grown given = {16, 1, 2, 3};
  Grown copy;
  const Grown &seen = abi::view(&given, "grown", copy);
  CHECK(&seen == &copy);
  CHECK(seen.first == 1);
  CHECK(seen.second == 2);
  CHECK(seen.third == 0);
  const Grown oldest = {8, 1, 2, 3};
  CHECK(abi::view(&oldest, "grown", copy).second == 0);
}

TEST_CASE("a struct of this release is read where it is", "[sized]") {
  const Grown given = {sizeof(Grown), 1, 2, 3};
  Grown copy;
  CHECK(&abi::view(&given, "grown", copy) == &given);
}

TEST_CASE("a struct of a later release may not set what is not known", "[sized]") {
  Later given = {{sizeof(Later), 1, 2, 3}, 0};
  Grown copy;
  CHECK(&abi::view(&given.known, "grown", copy) == &given.known);
  given.fourth = 1;
  try {
    abi::view(&given.known, "grown", copy);
    FAIL("accepted");
  } catch (const Failure &failure) {
    CHECK(failure.status() == Status::newer_struct);
    CHECK(failure.field() == "grown");
    CHECK(std::string(failure.message()) ==
          "grown sets byte 24, but this library knows Grown up to byte 24: it "
          "is older than the caller's header");
  }
}

TEST_CASE("a struct has the size of a release", "[sized]") {
  for (const uint32_t size : {0u, 4u, 12u, 23u, 65537u}) {
    const Grown given = {size, 1, 2, 3};
    Grown copy;
    CHECK_THROWS_WITH(abi::view(&given, "grown", copy),
                      Catch::Contains("sizeof(Grown) is 24 in this version"));
    CHECK(abi::init(&copy, size) == SLUICE_INVALID_ARGUMENT);
  }
}

TEST_CASE("a struct of an earlier release is filled as far as it goes", "[sized]") {
  Grown out = {16, 7, 7, 7};
  abi::fill(&out, Grown{0, 1, 2, 3});
  CHECK(out.struct_size == 16);
  CHECK(out.first == 1);
  CHECK(out.second == 2);
  CHECK(out.third == 7); // the caller's own memory
  CHECK(abi::init(&out, 8) == SLUICE_OK);
  CHECK(out.struct_size == 8);
  CHECK(out.first == 0);
  CHECK(out.second == 2);
}
