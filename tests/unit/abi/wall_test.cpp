//===- wall_test.cpp - exceptions become statuses -------------------------------------------------------===//
#include "abi/wall.h"

#include <catch2/catch.hpp>

#include <stdexcept>
#include <string>

using namespace sluice;
using support::Failure;
using support::Status;

namespace {

sluice_error error_of(void (*body)(), sluice_status expected) {
  sluice_error error = {};
  error.struct_size = sizeof error;
  error.hip_code = 7; // of an earlier call
  CHECK(abi::wall(&error, body) == expected);
  CHECK(abi::wall(nullptr, body) == expected);
  return error;
}

} // namespace

TEST_CASE("an exception becomes a status and its known details", "[wall]") {
  const sluice_error failure =
      error_of([] { throw Failure(Status::hip, "field", "message", 719); }, SLUICE_HIP);
  CHECK(failure.code == SLUICE_HIP);
  CHECK(failure.hip_code == 719);
  CHECK(std::string(failure.field) == "field");
  CHECK(std::string(failure.message) == "message");
  const sluice_error memory = error_of([] { throw std::bad_alloc(); }, SLUICE_OUT_OF_MEMORY);
  CHECK(memory.hip_code == 0);
  CHECK(std::string(memory.field).empty());
  CHECK(std::string(memory.message) == "host memory ran out");
  const sluice_error other = error_of([] { throw std::runtime_error("what"); }, SLUICE_INTERNAL);
  CHECK(other.hip_code == 0);
  CHECK(std::string(other.message) == "what");
  const sluice_error unknown = error_of([] { throw 1; }, SLUICE_INTERNAL);
  CHECK(unknown.hip_code == 0);
  CHECK(std::string(unknown.message) == "an exception of unknown type");
}

TEST_CASE("an error struct is written by failures only, and only if it is one", "[wall]") {
  sluice_error error = {};
  error.struct_size = sizeof error;
  error.hip_code = 7;
  CHECK(abi::wall(&error, [] {}) == SLUICE_OK);
  CHECK(error.hip_code == 7);
  error.struct_size = sizeof error - 1;
  bool is_called = false;
  CHECK(abi::wall(&error, [&] { is_called = true; }) == SLUICE_INVALID_ARGUMENT);
  CHECK_FALSE(is_called);
  CHECK(error.hip_code == 7);
}
