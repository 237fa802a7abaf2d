//===- merge_checks_test.cpp - merges at the limit of each rule, and beyond -----------------------------===//
//
// tests/abi/cache_ops_test.cpp has merges that break a rule entirely.
//
//===----------------------------------------------------------------------------------------------------===//
#include "abi/cache_op_checks.h"
#include "unit/abi/refused.h"

#include <catch2/catch.hpp>

#include <array>
#include <cstdint>
#include <limits>

using namespace sluice;
using test::refused;

namespace {

constexpr int32_t most = std::numeric_limits<int32_t>::max();

void *at(uint64_t address) {
  return reinterpret_cast<void *>(address);
}

/// 3 parts of 5 tokens and 2 heads, with LSE.
sluice_merge_args good() {
  sluice_merge_args merge = {};
  merge.struct_size = sizeof merge;
  merge.parts.type = SLUICE_F32;
  merge.o_format.type = SLUICE_F16;
  merge.parts.count = 3;
  merge.tokens = 5;
  merge.heads = 2;
  merge.head_dim = 64;
  merge.lse_base = SLUICE_LSE_LN;
  merge.parts.o = {at(0x1000), {640, 128, 64, 1}};
  merge.parts.lse = {at(0x2004), {10, 2, 1, 0}};
  merge.o = {at(0x3000), {0, 128, 64, 1}};
  merge.lse = {at(0x4004), {0, 2, 1, 0}};
  return merge;
}

std::string refusal(const sluice_merge_args &merge) {
  return refused([&] { abi::check_merge(merge); });
}

/// Whether a tensor of this many bytes may end with the last address but not after it.
template <typename Data>
void check_end(sluice_merge_args merge, Data &&data_of, uint64_t bytes, uint64_t step) {
  data_of(merge).data = at(UINT64_MAX - bytes - step + 1);
  CHECK(refusal(merge) == "");
  data_of(merge).data = at(UINT64_MAX - bytes + 1);
  CHECK_THAT(refusal(merge), Catch::EndsWith(" would reach beyond the address space"));
}

} // namespace

TEST_CASE("parts of any type become F16, BF16 or F32 as the rules say", "[merge]") {
  sluice_merge_args merge = good();
  for (const uint32_t type : {SLUICE_F16, SLUICE_BF16, SLUICE_F32}) {
    merge.parts.type = SLUICE_F32;
    merge.o_format.type = type;
    CHECK(refusal(merge) == "");
    merge.parts.type = type;
    CHECK(refusal(merge) == "");
  }
  merge.parts.type = SLUICE_F32;
  merge.o_format.type = SLUICE_E4M3FNUZ;
  CHECK(refusal(merge) == "");
  merge.o_format.scale_kind = SLUICE_SCALE_PER_HEAD;
  merge.o_scale = static_cast<const float *>(at(0x5004));
  CHECK(refusal(merge) == "");
  // O has a byte for each element.
  merge.o.data = at(UINT64_MAX - (4 * 128 + 2 * 64) - 15);
  CHECK(refusal(merge) == "");
  merge.o_format.scale_kind = 0;
  merge.o_scale = nullptr;
  merge.o_format.type = SLUICE_F16;
  CHECK_THAT(refusal(merge), Catch::EndsWith(" would reach beyond the address space"));
  merge = good();
  merge.o_format.type = SLUICE_F32;
  merge.parts.type = SLUICE_BF16;
  CHECK(refusal(merge) ==
        "unsupported o_format.type: o_format.type is f32 and parts.type bf16; nearest supported: bf16");
}

TEST_CASE("as many parts, tokens and heads are merged as the header says", "[merge]") {
  sluice_merge_args merge = good();
  merge.parts.count = 65536;
  CHECK(refusal(merge) == "");
  merge.parts.count = 65537;
  CHECK(refusal(merge) == "unsupported parts.count: parts.count is 65537; nearest supported: 65536");
  merge.parts.count = merge.tokens = merge.heads = 1;
  CHECK(refusal(merge) == "");
  merge.tokens = most; // a prime
  CHECK(refusal(merge) == "");
  merge.tokens = 1 << 30;
  merge.heads = 2;
  CHECK(refusal(merge) == "unsupported tokens: tokens is 1073741824 and heads 2; nearest supported: "
                          "1073741823 tokens");
}

TEST_CASE("every base of LSE is merged", "[merge]") {
  sluice_merge_args merge = good();
  merge.lse_base = SLUICE_LSE_LOG2;
  CHECK(refusal(merge) == "");
  merge.lse_base = 3;
  CHECK(refusal(merge) == "newer_struct lse_base: lse_base is 3; the last value that this version knows is "
                          "SLUICE_LSE_LOG2 (2)");
  merge.lse_base = SLUICE_LSE_NONE;
  CHECK(refusal(merge) == "lse_base: lse_base is SLUICE_LSE_NONE (0); it must be SLUICE_LSE_LN (1) or "
                          "SLUICE_LSE_LOG2 (2)");
}

TEST_CASE("the last stride of numbers means nothing", "[merge]") {
  sluice_merge_args merge = good();
  merge.parts.lse.stride[3] = -1;
  merge.lse.stride[3] = 2;
  CHECK(refusal(merge) == "");
}

TEST_CASE("strides of rows are multiples of 8, but for the last", "[merge]") {
  for (size_t i = 0; i < 3; ++i) {
    sluice_merge_args merge = good();
    merge.parts.o.stride[i] += 4;
    const std::string field = "parts.o.stride[" + std::to_string(i) + "]";
    CHECK(refusal(merge) == field + ": " + field + " is " + std::to_string(merge.parts.o.stride[i]) +
                                "; it must be a multiple of 8");
  }
}

TEST_CASE("tensors of a merge end before addresses do", "[merge]") {
  const auto partial = [](sluice_merge_args &merge) -> sluice_tensor & { return merge.parts.o; };
  const auto partial_lse = [](sluice_merge_args &merge) -> sluice_tensor & { return merge.parts.lse; };
  const auto o = [](sluice_merge_args &merge) -> sluice_tensor & { return merge.o; };
  const auto lse = [](sluice_merge_args &merge) -> sluice_tensor & { return merge.lse; };
  sluice_merge_args merge = good();
  check_end(merge, partial, 3 * 640 * 4, 16);
  check_end(merge, partial_lse, 30 * 4, 4);
  merge.parts.lse.stride[3] = 1;
  check_end(merge, partial_lse, 30 * 4, 4);
  check_end(merge, o, 640 * 2, 16);
  check_end(merge, lse, 10 * 4, 4);
  merge.o_format.type = SLUICE_F32;
  check_end(merge, o, 640 * 4, 16);
  merge.o_format.type = merge.parts.type = SLUICE_F16;
  check_end(merge, partial, 3 * 640 * 2, 16);
}

TEST_CASE("LSE that is not wanted is all zero", "[merge]") {
  sluice_merge_args merge = good();
  merge.lse = {};
  CHECK(refusal(merge) == "");
  for (size_t i = 0; i < 4; ++i) {
    merge.lse = {};
    merge.lse.stride[i] = 1;
    const std::string field = "lse.stride[" + std::to_string(i) + "]";
    CHECK(refusal(merge) == field + ": " + field + " is 1; it must be 0 where lse.data is NULL");
  }
}

TEST_CASE("sinks are aligned to their elements and may be missing", "[merge]") {
  sluice_merge_args merge = good();
  merge.sinks = static_cast<const float *>(at(4));
  CHECK(refusal(merge) == "");
  merge.sinks = static_cast<const float *>(at(6));
  CHECK(refusal(merge) == "sinks: sinks is 0x6; it must be aligned to 4 bytes");
}

TEST_CASE("parts that follow one another backwards end before addresses do", "[merge]") {
  sluice_merge_args merge = good();
  merge.parts.o.stride[0] = -640;
  merge.parts.o.data = at(2 * 640 * 4);
  CHECK(refusal(merge) == "");
  merge.parts.o.data = at(2 * 640 * 4 - 16);
  CHECK(refusal(merge) == "parts.o.stride: parts.o would reach beyond the address space");
  check_end(merge, [](sluice_merge_args &m) -> sluice_tensor & { return m.parts.o; }, 640 * 4, 16);

  merge = good();
  merge.parts.lse.stride[0] = -10;
  merge.parts.lse.data = at(2 * 10 * 4);
  CHECK(refusal(merge) == "");
  merge.parts.lse.data = at(2 * 10 * 4 - 4);
  CHECK(refusal(merge) == "parts.lse.stride: parts.lse would reach beyond the address space");
  // The first stride of a result means nothing.
  merge = good();
  merge.o.stride[0] = merge.lse.stride[0] = -8;
  CHECK(refusal(merge) == "");
}

TEST_CASE("each listed part is a tensor of its own", "[merge]") {
  sluice_merge_args merge = good();
  std::array<const void *, 16> rows = {at(0x1000), at(0x9000), at(0x2000)}, lses = {at(4), at(8), at(12)};
  rows[15] = lses[15] = at(0x5000); // not read
  merge.parts.o_list = rows.data();
  merge.parts.lse_list = lses.data();
  merge.parts.o.data = merge.parts.lse.data = nullptr;
  merge.parts.o.stride[0] = merge.parts.lse.stride[0] = 0;
  CHECK(refusal(merge) == "");
  rows[2] = at(UINT64_MAX - 640 * 4 - 15);
  CHECK(refusal(merge) == "");
  rows[2] = at(UINT64_MAX - 640 * 4 + 1);
  CHECK(refusal(merge) == "parts.o.stride: parts.o would reach beyond the address space");
  rows[2] = at(0x2000);
  lses[0] = at(UINT64_MAX - 10 * 4 - 3);
  CHECK(refusal(merge) == "");
  lses[0] = at(UINT64_MAX - 10 * 4 + 1);
  CHECK(refusal(merge) == "parts.lse.stride: parts.lse would reach beyond the address space");
  lses[0] = at(4);
  merge.parts.count = 16;
  for (size_t part = 3; part < 16; ++part)
    rows[part] = lses[part] = at(0x5000);
  CHECK(refusal(merge) == "");
  merge.parts.count = 17;
  CHECK(refusal(merge) ==
        "unsupported parts.count: parts.count is 17 with parts.o_list; nearest supported: 16");
}

TEST_CASE("LSEs of sequences end before addresses do, and do not overlap", "[merge]") {
  sluice_merge_args merge = good();
  // 4 sequences of 3 tokens and 2 heads, [sequence][head][token].
  merge.tokens = 12;
  merge.sequence_tokens = 3;
  merge.parts.lse = {at(0x2004), {24, 1, 3, 0}};
  merge.lse = {at(0x4004), {0, 1, 3, 0}};
  merge.parts.lse_sequence_stride = merge.lse_sequence_stride = 6;
  CHECK(refusal(merge) == "");
  merge.sequence_tokens = 5;
  CHECK(refusal(merge) ==
        "sequence_tokens: sequence_tokens is 5; it must divide tokens, which is 12, or be 0 "
        "for tokens of one sequence");
  merge.sequence_tokens = 12;
  CHECK(refusal(merge) == "lse.stride[2]: lse.stride[2] is 3; elements of an output would overlap");
  merge.sequence_tokens = 3;
  check_end(merge, [](sluice_merge_args &m) -> sluice_tensor & { return m.lse; }, 24 * 4, 4);
  check_end(merge, [](sluice_merge_args &m) -> sluice_tensor & { return m.parts.lse; }, (2 * 24 + 24) * 4, 4);
  merge.lse_sequence_stride = 5;
  CHECK(refusal(merge) ==
        "lse_sequence_stride: lse_sequence_stride is 5; elements of an output would overlap");
  merge.parts.lse_sequence_stride = 0; // an input may repeat itself
  // Sequences may also be between tokens and heads.
  merge.lse = {at(0x4004), {0, 1, 12, 0}};
  merge.lse_sequence_stride = 3;
  CHECK(refusal(merge) == "");
  merge.parts.lse_sequence_stride = std::numeric_limits<int64_t>::max();
  CHECK(refusal(merge) == "parts.lse_sequence_stride: parts.lse_sequence_stride is 9223372036854775807; "
                          "parts.lse would reach beyond the address space");
}
