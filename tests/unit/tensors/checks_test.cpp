//===- checks_test.cpp - each rule of a tensor, at its limit --------------------------------------------===//
#include "tensors/checks.h"
#include "unit/abi/refused.h"

#include <catch2/catch.hpp>

#include <cstdint>
#include <limits>

using namespace sluice;
using tensors::Shape;
using test::refused;

namespace {

constexpr int64_t most = std::numeric_limits<int64_t>::max();

void *at(uint64_t address) {
  return reinterpret_cast<void *>(address);
}

std::string disjoint(const sluice_tensor &tensor, const std::array<int64_t, 4> &extent) {
  return refused([&] { tensors::check_disjoint({"o", tensor, extent, 2}); });
}

std::string reach(const sluice_tensor &tensor, const std::array<int64_t, 4> &extent,
                  uint64_t address_end = UINT64_MAX, int64_t run = 1) {
  return refused([&] { tensors::check_reach({"k", tensor, extent, 2, run}, address_end); });
}

} // namespace

TEST_CASE("a pointer is there and aligned", "[tensor]") {
  CHECK(refused([] { tensors::check_pointer("starts", at(4), 4); }) == "");
  CHECK(refused([] { tensors::check_pointer("starts", nullptr, 4); }) == "starts: starts is NULL");
  CHECK(refused([] { tensors::check_pointer("starts", at(6), 4); }) ==
        "starts: starts is 0x6; it must be aligned to 4 bytes");
  sluice_tensor tensor = {at(32), {}};
  const Shape shape = {"q", tensor, {1, 1, 1, 1}, 2};
  CHECK(refused([&] { tensors::check_pointer(shape, 16); }) == "");
  tensor.data = at(40);
  CHECK(refused([&] { tensors::check_pointer(shape, 16); }) ==
        "q.data: q.data is 0x28; it must be aligned to 16 bytes");
  tensor.data = nullptr;
  CHECK(refused([&] { tensors::check_pointer(shape, 16); }) == "q.data: q.data is NULL");
}

TEST_CASE("a far stride is refused with the nearest multiple of 8", "[tensor]") {
  const sluice_tensor tensor = {nullptr, {0, 1 << 25, 0, 0}};
  const Shape shape = {"k", tensor, {1, 1, 1, 1}, 2};
  CHECK(refused([&] { tensors::far_stride(shape, 1, 31); }) ==
        "unsupported k.stride[1]: k.stride[1] is 33554432; nearest supported: 24");
  CHECK(refused([&] { tensors::far_stride(shape, 1, 32); }) ==
        "unsupported k.stride[1]: k.stride[1] is 33554432; nearest supported: 32");
}

TEST_CASE("no stride is negative, unless it means nothing", "[tensor]") {
  for (size_t i = 0; i < 4; ++i) {
    sluice_tensor tensor = {at(16), {}};
    tensor.stride[i] = -1;
    const std::string field = "k.stride[" + std::to_string(i) + "]";
    CHECK(reach(tensor, {1, 1, 1, 1}) == "");
    CHECK(reach(tensor, {2, 2, 2, 2}) == field + ": " + field + " is -1; it must not be negative");
    tensor.stride[i] = 0;
    CHECK(reach(tensor, {9, 9, 9, 9}) == "");
  }
}

TEST_CASE("a tensor ends with its last element", "[tensor]") {
  // Elements 0 to 1 * 100 + 2 * 10 + 3 * 4 + 4 * 1 = 136, of 2 bytes: 274 bytes.
  const sluice_tensor tensor = {at(1000), {100, 10, 4, 1}};
  const std::string beyond = "k.stride: k would reach beyond the address space";
  CHECK(reach(tensor, {2, 3, 4, 5}, 1274) == "");
  CHECK(reach(tensor, {2, 3, 4, 5}, 1273) == beyond);
  // Packs of 8 elements end 7 elements later.
  CHECK(reach(tensor, {2, 3, 4, 5}, 1288, 8) == "");
  CHECK(reach(tensor, {2, 3, 4, 5}, 1287, 8) == beyond);
}

TEST_CASE("offsets neither wrap as elements, nor as bytes, nor as addresses", "[tensor]") {
  const auto wraps = [](size_t i, int64_t stride) {
    const std::string field = "k.stride[" + std::to_string(i) + "]";
    return field + ": " + field + " is " + std::to_string(stride) +
           "; the tensor would reach beyond 2^63 elements";
  };
  // As a product, and as a sum.
  CHECK(reach({at(0), {0, most / 2 + 1, 0, 0}}, {1, 3, 1, 1}) == wraps(1, most / 2 + 1));
  CHECK(reach({at(0), {most, 0, 0, 1}}, {2, 1, 1, 2}) == wraps(3, 1));
  // 2^63 elements, though the last one's index is below; 2^63 bytes; 2^64 bytes above the address.
  const std::string beyond = "k.stride: k would reach beyond the address space";
  CHECK(reach({at(0), {0, 0, 0, most}}, {1, 1, 1, 2}) == beyond);
  CHECK(reach({at(0), {0, 0, 0, most / 2}}, {1, 1, 1, 2}) == beyond);
  CHECK(reach({at(0), {0, 0, 0, most / 2 - 1}}, {1, 1, 1, 2}) == "");
  CHECK(reach({at(UINT64_MAX - 3), {0, 0, 0, 1}}, {1, 1, 1, 1}) == "");
  CHECK(reach({at(UINT64_MAX - 3), {0, 0, 0, 1}}, {1, 1, 1, 2}) == beyond);
}

TEST_CASE("elements of an output do not overlap, in any order of strides", "[tensor]") {
  const auto overlap = [](size_t i, int64_t stride) {
    const std::string field = "o.stride[" + std::to_string(i) + "]";
    return field + ": " + field + " is " + std::to_string(stride) + "; elements of an output would overlap";
  };
  CHECK(disjoint({nullptr, {60, 20, 5, 1}}, {2, 3, 4, 5}) == "");
  CHECK(disjoint({nullptr, {1, 2, 6, 24}}, {2, 3, 4, 5}) == "");
  CHECK(disjoint({nullptr, {20, 40, 1, 4}}, {2, 3, 4, 5}) == "");
  CHECK(disjoint({nullptr, {5, 1, 120, 24}}, {2, 3, 4, 5}) == "");
  // Gaps are allowed, overlaps by one are not.
  CHECK(disjoint({nullptr, {61, 20, 5, 1}}, {2, 3, 4, 5}) == "");
  CHECK(disjoint({nullptr, {59, 20, 5, 1}}, {2, 3, 4, 5}) == overlap(0, 59));
  CHECK(disjoint({nullptr, {60, 19, 5, 1}}, {2, 3, 4, 5}) == overlap(1, 19));
  CHECK(disjoint({nullptr, {60, 20, 4, 1}}, {2, 3, 4, 5}) == overlap(2, 4));
  CHECK(disjoint({nullptr, {60, 20, 5, 0}}, {2, 3, 4, 5}) == overlap(3, 0));
  CHECK(disjoint({nullptr, {1, 2, 5, 24}}, {2, 3, 4, 5}) == overlap(2, 5));
  // With a single one, its stride is never used.
  CHECK(disjoint({nullptr, {0, 20, 5, 1}}, {1, 3, 4, 5}) == "");
  CHECK(disjoint({nullptr, {15, 0, 5, 1}}, {2, 1, 3, 5}) == "");
}

TEST_CASE("unused tensors are zero", "[tensor]") {
  CHECK(refused([] { tensors::check_absent("starts", nullptr, "why"); }) == "");
  CHECK(refused([] { tensors::check_absent("starts", at(4), "why"); }) == "starts: starts is given, but why");
  sluice_tensor tensor = {};
  CHECK(refused([&] { tensors::check_absent("bias", tensor, "why"); }) == "");
  for (size_t i = 0; i < 4; ++i) {
    tensor = {};
    tensor.stride[i] = 1;
    const std::string field = "bias.stride[" + std::to_string(i) + "]";
    CHECK(refused([&] { tensors::check_absent("bias", tensor, "why"); }) ==
          field + ": " + field + " is 1; it must be 0: why");
  }
  tensor = {at(4), {}};
  CHECK(refused([&] { tensors::check_absent("bias", tensor, "why"); }) ==
        "bias.data: bias.data is given, but why");
}
