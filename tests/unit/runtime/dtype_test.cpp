//===- dtype_test.cpp - names, sizes and distances of the element types ---------------------------------===//
#include "runtime/dtype.h"

#include <catch2/catch.hpp>

#include <string>

using namespace sluice::runtime;

TEST_CASE("types and names are inverses", "[dtype]") {
  const std::string names[] = {"f16",  "bf16", "f32", "e4m3fnuz", "e4m3fn", "e5m2fnuz",
                               "e5m2", "i8",   "u4",  "q8_0",     "q4_0"};
  for (uint32_t type = SLUICE_F16; type <= SLUICE_Q4_0; ++type) {
    CHECK(dtype_name(type) == names[type - 1]);
    CHECK(dtype_of_name(names[type - 1]) == type);
    CHECK(dtype_text(type) == names[type - 1]);
  }
  CHECK(dtype_name(0).empty());
  CHECK(dtype_text(12) == "12");
  CHECK(dtype_of_name("f64") == 0);
  CHECK(dtype_of_name("") == 0);
}

TEST_CASE("types have 1, 2 or 4 bytes", "[dtype]") {
  CHECK(dtype_bytes(SLUICE_F32) == 4);
  CHECK(dtype_bytes(SLUICE_F16) == 2);
  CHECK(dtype_bytes(SLUICE_BF16) == 2);
  for (const uint32_t type :
       {SLUICE_E4M3FNUZ, SLUICE_E4M3FN, SLUICE_E5M2FNUZ, SLUICE_E5M2, SLUICE_I8, SLUICE_U4})
    CHECK(dtype_bytes(type) == 1);
  for (const uint32_t type : {SLUICE_F16, SLUICE_E4M3FNUZ, SLUICE_I8})
    CHECK(!is_in_blocks(type));
  for (const uint32_t type : {SLUICE_U4, SLUICE_Q8_0, SLUICE_Q4_0})
    CHECK(is_in_blocks(type));
  CHECK(dtype_block(SLUICE_U4).bytes * 2 == dtype_block(SLUICE_U4).elements);
  CHECK(dtype_block(SLUICE_Q8_0).bytes == 34);
  CHECK(dtype_block(SLUICE_Q4_0).bytes == 18);
}

TEST_CASE("a type is nearest to itself, then to those of its size, then of its form", "[dtype]") {
  for (uint32_t type = SLUICE_F16; type <= SLUICE_Q4_0; ++type)
    CHECK(dtype_distance(type, type) == 0);
  CHECK(dtype_distance(SLUICE_F16, SLUICE_BF16) == 1);
  CHECK(dtype_distance(SLUICE_E4M3FN, SLUICE_E4M3FNUZ) == 1);
  CHECK(dtype_distance(SLUICE_E5M2, SLUICE_E5M2FNUZ) == 1);
  CHECK(dtype_distance(SLUICE_E5M2FNUZ, SLUICE_E5M2) == 1);
  CHECK(dtype_distance(SLUICE_E5M2, SLUICE_E4M3FNUZ) == 2);
  CHECK(dtype_distance(SLUICE_E4M3FN, SLUICE_E5M2FNUZ) == 2);
  CHECK(dtype_distance(SLUICE_E4M3FN, SLUICE_F16) == 5);
  CHECK(dtype_distance(SLUICE_F16, SLUICE_E4M3FN) == 5);
  CHECK(dtype_distance(SLUICE_E5M2, SLUICE_F16) == 6);
  CHECK(dtype_distance(SLUICE_F32, SLUICE_F16) == 9);
  CHECK(dtype_distance(SLUICE_F16, SLUICE_F32) == 9);
  CHECK(dtype_distance(SLUICE_F32, SLUICE_E4M3FN) == 13);
}
