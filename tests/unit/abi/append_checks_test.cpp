//===- append_checks_test.cpp - appends at the limit of each rule, and beyond ---------------------------===//
//
// tests/abi/cache_ops_test.cpp has appends that break a rule entirely.
//
//===----------------------------------------------------------------------------------------------------===//
#include "abi/cache_op_checks.h"
#include "calls/cache_ops.h"
#include "unit/abi/refused.h"

#include <catch2/catch.hpp>

#include <cstdint>
#include <limits>

using namespace sluice;
using test::refused;

namespace {

template <typename Element = void> Element *at(uint64_t address) {
  return reinterpret_cast<Element *>(address);
}

/// 5 rows of 2 heads by slots, pages of 16.
calls::Append by_slots() {
  calls::Append append = {};
  append.source_type = append.cache_type = SLUICE_F16;
  append.kv_heads = 2;
  append.head_dim_qk = 128;
  append.head_dim_v = 64;
  append.page_size = 16;
  append.tokens = 5;
  append.k = {at(0x1000), {0, 256, 128, 1}};
  append.v = {at(0x2000), {0, 128, 64, 1}};
  append.k_cache = {at(0x3000), {16 * 256, 256, 128, 1}};
  append.v_cache = {at(0x4000), {16 * 128, 128, 64, 1}};
  append.slots = at<const int64_t>(0x5000);
  return append;
}

/// The same into an x-packed cache of FP8: [page][head][pack][row][pack elements].
calls::Append packed(int32_t pack) {
  calls::Append append = by_slots();
  append.cache_type = SLUICE_E4M3FNUZ;
  append.k_pack = pack;
  append.k_cache.stride[0] = 2 * 128 * 16;
  append.k_cache.stride[1] = pack;
  append.k_cache.stride[2] = 128 * 16;
  append.k_cache.stride[3] = int64_t{16} * pack;
  return append;
}

std::string refusal(const calls::Append &append) {
  return refused([&] { abi::check_append(append); });
}

const std::string beyond_k = "k.stride: k would reach beyond the address space";

} // namespace

TEST_CASE("an append has rows of either 16-bit type", "[append]") {
  calls::Append append = by_slots();
  CHECK(refusal(append) == "");
  append.source_type = append.cache_type = SLUICE_BF16;
  CHECK(refusal(append) == "");
  append.cache_type = SLUICE_E4M3FNUZ;
  CHECK(refusal(append) == "");
  append.cache_type = SLUICE_E5M2FNUZ;
  CHECK(refusal(append) == "");
  append.cache_type = SLUICE_I8;
  CHECK(refusal(append) == "");
  append.cache_type = SLUICE_F32;
  CHECK(refusal(append) == "unsupported cache_type: cache_type is f32; nearest supported: bf16");
  append.source_type = SLUICE_E4M3FNUZ;
  CHECK(refusal(append) ==
        "unsupported source_type: source_type is e4m3fnuz; nearest supported: f16 or bf16");
}

TEST_CASE("rows of an append have at most 2^31 - 1 elements", "[append]") {
  calls::Append append = by_slots();
  append.kv_heads = std::numeric_limits<int32_t>::max() / 128;
  append.k.stride[1] = append.k_cache.stride[1] = int64_t{append.kv_heads} * 128;
  append.v.stride[1] = append.v_cache.stride[1] = int64_t{append.kv_heads} * 64;
  append.k_cache.stride[0] = 16 * append.k_cache.stride[1];
  append.v_cache.stride[0] = 16 * append.v_cache.stride[1];
  CHECK(refusal(append) == "");
  ++append.kv_heads;
  CHECK(refusal(append) == "unsupported kv_heads: kv_heads is 16777216, which makes rows of 2147483648 "
                           "elements; nearest supported: 16777215");
  // The same for V.
  append.head_dim_qk = 8;
  append.head_dim_v = 128;
  CHECK(refusal(append) == "unsupported kv_heads: kv_heads is 16777216, which makes rows of 2147483648 "
                           "elements; nearest supported: 16777215");
}

TEST_CASE("the rows and the rotation of a step have limits of their own", "[append]") {
  calls::Append append = by_slots();
  append.rotary = at<const float>(0x6000);
  append.positions = at<const int32_t>(0x7000);
  append.rotary_dim = 48;
  append.rotary_first = 80;
  CHECK(refusal(append) == "");
  append.rotary_dim = 40; // no multiple of 16
  CHECK(refusal(append) == "unsupported rotary_dim: rotary_dim is 40 for a kernel append_step; nearest "
                           "supported: 32");
  append.rotary_first = 0;
  CHECK(refusal(append) == "");
  append.rotary_dim = 0;
  append.rotary = nullptr;
  append.positions = nullptr;
  append.k_norm = at<const void>(0x8000);
  append.head_dim_v = 1024;
  append.v.stride[1] = append.v_cache.stride[1] = 2048;
  append.v.stride[2] = append.v_cache.stride[2] = 1024;
  append.v_cache.stride[0] = 16 * 2048;
  CHECK(refusal(append) == "");
  append.head_dim_v = 1032;
  append.v.stride[1] = append.v_cache.stride[1] = 2064;
  append.v.stride[2] = append.v_cache.stride[2] = 1032;
  append.v_cache.stride[0] = 16 * 2064;
  CHECK(refusal(append) == "unsupported head_dim_v: head_dim_v is 1032 for a kernel append_step; nearest "
                           "supported: 1024");
  append.k_norm = nullptr;
  CHECK(refusal(append) == "");
}

TEST_CASE("a rotation takes a whole row at most", "[append]") {
  calls::Append append = by_slots();
  append.rotary = at<const float>(0x6000);
  append.positions = at<const int32_t>(0x7000);
  append.rotary_dim = 128;
  CHECK(refusal(append) == "");
  append.rotary_dim = 130;
  CHECK(refusal(append) ==
        "rotary_dim: rotary_dim is 130; it must be even and at most head_dim_qk, which is 128");
  append.rotary_dim = 2;
  CHECK(refusal(append) == "");
  append.positions = nullptr;
  CHECK(refusal(append) ==
        "positions: positions is NULL; a rotation needs them where rows are placed by slots");
}

TEST_CASE("every stride of an append but the last is a multiple of 8", "[append]") {
  for (const size_t i : {size_t{1}, size_t{2}}) {
    const std::string rule = ".stride[" + std::to_string(i) + "]";
    calls::Append append = by_slots();
    append.k.stride[i] += 4;
    CHECK(refusal(append) == "k" + rule + ": k" + rule + " is " + std::to_string(append.k.stride[i]) +
                                 "; it must be a multiple of 8");
    append = by_slots();
    append.v_cache.stride[i] += 4;
    CHECK(refusal(append) == "v_cache" + rule + ": v_cache" + rule + " is " +
                                 std::to_string(append.v_cache.stride[i]) + "; it must be a multiple of 8");
  }
}

TEST_CASE("rows and caches of an append end before addresses do", "[append]") {
  // k: 5 rows of 256 elements of 2 bytes.
  calls::Append append = by_slots();
  append.k.data = at(UINT64_MAX - 5 * 256 * 2 - 15);
  CHECK(refusal(append) == "");
  append.k.data = at(UINT64_MAX - 5 * 256 * 2 + 1);
  CHECK(refusal(append) == beyond_k);
  append = by_slots();
  append.v.data = at(UINT64_MAX - 5 * 128 * 2 - 15);
  CHECK(refusal(append) == "");
  append.v.data = at(UINT64_MAX - 5 * 128 * 2 + 1);
  CHECK(refusal(append) == "v.stride: v would reach beyond the address space");
  // At least two pages.
  append = by_slots();
  append.k_cache.data = at(UINT64_MAX - 2 * 16 * 256 * 2 - 15);
  CHECK(refusal(append) == "");
  append.k_cache.data = at(UINT64_MAX - 2 * 16 * 256 * 2 + 1);
  CHECK(refusal(append) == "k_cache.stride: k_cache would reach beyond the address space");
  // An FP8 cache has elements of one byte.
  append.cache_type = SLUICE_E4M3FNUZ;
  CHECK(refusal(append) == "");
  append.k_cache.data = at(UINT64_MAX - 2 * 16 * 256 - 15);
  CHECK(refusal(append) == "");
  append.k_cache.data = at(UINT64_MAX - 2 * 16 * 256 + 1);
  CHECK(refusal(append) == "k_cache.stride: k_cache would reach beyond the address space");
}

TEST_CASE("every stride of an x-packed cache is a multiple of its pack", "[append]") {
  // Packs of 32, which does not divide the addresses of the caches.
  const calls::Append good = [] {
    calls::Append append = packed(32);
    append.k_cache.data = at(0x3010);
    append.v_cache.data = at(0x4010);
    return append;
  }();
  CHECK(refusal(good) == "");
  for (size_t i = 0; i < 4; ++i) {
    calls::Append append = good;
    append.k_cache.stride[i] += 16;
    const std::string field = "k_cache.stride[" + std::to_string(i) + "]";
    CHECK(refusal(append) == field + ": " + field + " is " + std::to_string(append.k_cache.stride[i]) +
                                 "; it must be a multiple of k_pack, which is 32");
  }
  // One pack less than the space of rows, packs, heads and pages.
  for (const size_t i : {size_t{0}, size_t{2}, size_t{3}}) {
    calls::Append append = good;
    append.k_cache.stride[i] -= 32;
    CHECK_THAT(refusal(append), Catch::StartsWith("k_cache.stride[" + std::to_string(i) + "]: ") &&
                                    Catch::EndsWith("; elements of an output would overlap"));
  }
}

TEST_CASE("a pack is a multiple of 8 that divides the row", "[append]") {
  calls::Append append = packed(128);
  CHECK(refusal(append) == "");
  append.k_pack = 256;
  CHECK(refusal(append) ==
        "k_pack: k_pack is 256; it must divide head_dim_qk, which is 128, or be 0 for no packs");
  append.k_pack = 1;
  CHECK(refusal(append) == "unsupported k_pack: k_pack is 1; nearest supported: multiples of 8");
}
