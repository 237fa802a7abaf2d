//===- checks_test.cpp - rules that no shipped struct or kernel exercises yet ---------------------------===//
#include "abi/checks.h"
#include "abi/sized.h"
#include "support/failure.h"

#include <catch2/catch.hpp>

#include <functional>

using namespace sluice;
using support::Failure;
using support::Status;

// A struct with three versions: 8, 16 and 24 bytes.
struct versioned {
  uint32_t struct_size;
  uint32_t first;
  uint64_t second;
  uint64_t third;
};
namespace sluice::abi {
SLUICE_PUBLISHED(versioned, 8, 16);
}

namespace {

Status refusal(const std::function<void()> &call) {
  try {
    call();
  } catch (const Failure &failure) {
    return failure.status();
  }
  return Status::ok;
}

} // namespace

TEST_CASE("fields that an older caller lacks count as zero", "[sized]") {
  const versioned given = {8, 1, 2, 3};
  versioned copy = {99, 99, 99, 99};
  const versioned &oldest = abi::view(&given, "x", copy);
  CHECK(&oldest == &copy);
  CHECK(oldest.first == 1);
  CHECK(oldest.second == 0);
  CHECK(oldest.third == 0);

  copy = {99, 99, 99, 99};
  const versioned middle = {16, 1, 2, 3};
  const versioned &seen = abi::view(&middle, "x", copy);
  CHECK(seen.second == 2);
  CHECK(seen.third == 0);

  const versioned current = {24, 1, 2, 3};
  CHECK(&abi::view(&current, "x", copy) == &current);
}

TEST_CASE("a size between two versions was never published", "[sized]") {
  versioned copy;
  for (const uint32_t size : {0u, 4u, 7u, 9u, 12u, 15u, 17u, 20u, 23u, 65537u}) {
    const versioned given = {size, 0, 0, 0};
    INFO(size);
    CHECK(refusal([&] { abi::view(&given, "x", copy); }) == Status::invalid_argument);
    CHECK(refusal([&] { abi::check_output(&given, "x"); }) == Status::invalid_argument);
  }
  for (const uint32_t size : {8u, 16u, 24u, 25u, 65536u}) {
    const versioned given = {size, 0, 0, 0};
    CHECK(refusal([&] { abi::check_output(&given, "x"); }) == Status::ok);
  }
}

TEST_CASE("an older caller's struct is filled up to its size", "[sized]") {
  versioned out = {16, 0, 0, 99};
  abi::fill(&out, versioned{0, 1, 2, 3});
  CHECK(out.struct_size == 16);
  CHECK(out.first == 1);
  CHECK(out.second == 2);
  CHECK(out.third == 99);
}

TEST_CASE("text is cut to its field and always terminated", "[sized]") {
  char field[4] = {'x', 'x', 'x', 'x'};
  abi::copy_text(field, "ab");
  CHECK(std::string(field) == "ab");
  abi::copy_text(field, "abcdef");
  CHECK(std::string(field) == "abc");
  abi::copy_text(field, "");
  CHECK(field[0] == '\0');
}

TEST_CASE("a workspace is present, aligned and as large as the plan says", "[checks]") {
  alignas(256) static unsigned char memory[1024];
  sluice_launch launch = {};
  CHECK(refusal([&] { abi::check_launch(0, 256, launch); }) == Status::ok);
  CHECK(refusal([&] { abi::check_launch(1024, 256, launch); }) == Status::workspace_too_small);
  launch.workspace = memory;
  launch.workspace_bytes = 1023;
  try {
    abi::check_launch(1024, 256, launch);
    FAIL("accepted");
  } catch (const Failure &failure) {
    CHECK(failure.status() == Status::workspace_too_small);
    CHECK(failure.field() == "workspace_bytes");
    CHECK(failure.message() == "workspace_bytes is 1023; the plan needs 1024");
  }
  launch.workspace_bytes = 1024;
  CHECK(refusal([&] { abi::check_launch(1024, 256, launch); }) == Status::ok);
  CHECK(refusal([&] { abi::check_launch(1024, 512, launch); }) ==
        (reinterpret_cast<uintptr_t>(memory) % 512 == 0 ? Status::ok : Status::invalid_argument));
  launch.workspace = memory + 128;
  CHECK(refusal([&] { abi::check_launch(1024, 256, launch); }) == Status::invalid_argument);
  launch.workspace = nullptr;
  CHECK(refusal([&] { abi::check_launch(1024, 256, launch); }) == Status::invalid_argument);
}
