//===- occupancy_test.cpp - how many workgroups share a compute unit, and what limits them --------------===//
#include "package/occupancy.h"

#include <catch2/catch.hpp>

#include <string>

using sluice::package::occupancy;

namespace {

/// "workgroups per compute unit, waves per SIMD, limit".
std::string fits(uint32_t vgprs, uint32_t lds_bytes, uint32_t threads) {
  const auto [workgroups, waves, limit] = occupancy(vgprs, lds_bytes, threads);
  return std::to_string(workgroups) + ", " + std::to_string(waves) + ", " + limit;
}

} // namespace

TEST_CASE("registers are given to a lane by eights, of 512", "[occupancy]") {
  CHECK(fits(512, 0, 256) == "1, 1, vgprs");
  CHECK(fits(513, 0, 256) == "0, 0, vgprs");
  CHECK(fits(256, 0, 256) == "2, 2, vgprs");
  CHECK(fits(257, 0, 256) == "1, 1, vgprs");
  CHECK(fits(168, 0, 256) == "3, 3, vgprs");
  CHECK(fits(169, 0, 256) == "2, 2, vgprs");
  CHECK(fits(161, 0, 256) == "3, 3, vgprs");
  // If they use few, there are enough for all waves.
  CHECK(fits(64, 0, 256) == "8, 8, waves");
  CHECK(fits(65, 0, 256) == "7, 7, vgprs");
  CHECK(fits(0, 0, 256) == "8, 8, waves");
  CHECK(fits(1, 0, 256) == "8, 8, waves");
}

TEST_CASE("waves are of 64 lanes, eight on each of four SIMDs", "[occupancy]") {
  CHECK(fits(8, 0, 64) == "32, 8, waves"); // a single wave needs no barrier
  CHECK(fits(8, 0, 1) == "32, 8, waves");
  CHECK(fits(8, 0, 0) == "32, 8, waves");
  CHECK(fits(8, 0, 65) == "16, 8, waves");
  CHECK(fits(8, 0, 128) == "16, 8, waves");
  CHECK(fits(8, 0, 129) == "10, 8, waves");
  CHECK(fits(8, 0, 1024) == "2, 8, waves");
  CHECK(fits(256, 0, 192) == "2, 2, vgprs"); // six waves on four SIMDs
  CHECK(fits(512, 0, 64) == "4, 1, vgprs");
}

TEST_CASE("LDS is given in pieces of 512 bytes, of 64 KiB", "[occupancy]") {
  CHECK(fits(8, 65536, 256) == "1, 1, lds");
  CHECK(fits(8, 65537, 256) == "0, 0, lds");
  CHECK(fits(8, 32768, 256) == "2, 2, lds");
  CHECK(fits(8, 32769, 256) == "1, 1, lds");
  CHECK(fits(8, 21504, 64) == "3, 1, lds");
  CHECK(fits(8, 21505, 64) == "2, 1, lds");
  CHECK(fits(8, 1, 64) == "32, 8, waves");
  CHECK(fits(8, 2049, 64) == "25, 7, lds");
  // With five waves one SIMD has two.
  CHECK(fits(8, 12800, 64) == "5, 2, lds");
}

TEST_CASE("LDS is named before waves", "[occupancy]") {
  CHECK(fits(64, 8192, 256) == "8, 8, lds");
  CHECK(fits(128, 0, 128) == "8, 4, vgprs");
  CHECK(fits(128, 8192, 128) == "8, 4, lds");
  CHECK(fits(8, 4096, 128) == "16, 8, lds");
  CHECK(fits(64, 0, 128) == "16, 8, waves");
}
