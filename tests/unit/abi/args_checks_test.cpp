//===- args_checks_test.cpp - calls at the limit of each rule, and beyond -------------------------------===//
//
// tests/abi/args_test.cpp has calls that break a rule entirely.
//
//===----------------------------------------------------------------------------------------------------===//
#include "abi/checks.h"
#include "calls/args.h"
#include "calls/problem.h"
#include "unit/abi/refused.h"

#include <catch2/catch.hpp>

#include <cstdint>

using namespace sluice;
using test::refused;

namespace {

constexpr uint64_t device_end = uint64_t{1} << 48;

void *at(uint64_t address) {
  return reinterpret_cast<void *>(address);
}

/// F16, 10 query heads on 2 KV heads of dim 64, with LSE; 3 sequences of 4 rows and 9 keys.
struct Call {
  // A kernel with one row per workgroup: its limits are the tightest.
  abi::TensorRules rules = {16, 8, true, 1};
  calls::Problem problem = {};
  calls::Args args = {};

  Call() {
    problem.flags = calls::write_lse;
    problem.q_type = problem.k_type = problem.v_type = problem.o_type = SLUICE_F16;
    problem.q_heads = 10;
    problem.kv_heads = 2;
    problem.head_dim_qk = problem.head_dim_v = 64;
    args.batch = 3;
    args.q_len = 4;
    args.kv_len = 9;
    args.q = {at(0x1000), {4 * 640, 640, 64, 1}};
    args.k = {at(0x2000), {9 * 128, 128, 64, 1}};
    args.v = {at(0x3000), {9 * 128, 128, 64, 1}};
    args.o = {at(0x4000), {4 * 640, 640, 64, 1}};
    args.lse = {at(0x5000), {40, 10, 1, 0}};
  }
  std::string refusal() const {
    return refused([&] { abi::check_args(problem, rules, args); });
  }
};

/// Pages of 16 rows of K in packs of 32 elements, [page][head][pack][row][32]; strides are multiples of 32.
Call packed() {
  Call call;
  call.rules.stride_multiple = 32;
  call.problem.mode = calls::paged;
  call.problem.page_size = 16;
  call.problem.page_table_kind = SLUICE_PAGE_TABLE_BLOCK;
  call.problem.k_pack = 32;
  call.args.kv_lengths = static_cast<const int32_t *>(at(0x6000));
  call.args.page_table = at(0x7000);
  call.args.page_table_stride = 1;
  call.args.k.stride[0] = 2 * 64 * 16;
  call.args.k.stride[1] = 32;
  call.args.k.stride[2] = 64 * 16;
  call.args.k.stride[3] = 32 * 16;
  call.args.v.data = at(0x3010); // after the strides of k
  return call;
}

/// Whether a tensor of this many bytes may end at this address but not after it.
void check_end(Call call, sluice_tensor calls::Args::*tensor, uint64_t bytes, uint64_t end, uint64_t step) {
  (call.args.*tensor).data = at(end - bytes);
  CHECK(call.refusal() == "");
  (call.args.*tensor).data = at(end - bytes + step);
  CHECK_THAT(call.refusal(), Catch::EndsWith(" would reach beyond the address space"));
}

} // namespace

TEST_CASE("missing extents and wrong ones get different messages", "[args]") {
  Call call;
  CHECK(call.refusal() == "");
  call.args.kv_len = 0;
  CHECK(call.refusal() == "");
  call.args.kv_len = -1;
  CHECK(call.refusal() == "kv_len: kv_len is -1; it must not be negative");
  call.args.batch = -1;
  CHECK(call.refusal() == "batch: batch is -1; it must not be negative");
}

TEST_CASE("extents reach the problem's bounds and not beyond", "[args]") {
  Call call;
  call.problem.max_batch = 3;
  call.problem.max_q_len = 4;
  call.problem.max_kv_len = 9;
  call.problem.max_q_tokens = 12;
  CHECK(call.refusal() == "");
  call.problem.max_q_tokens = 11;
  CHECK(call.refusal() == "batch: batch * q_len is 12; the problem's max_q_tokens is 11");
  call.problem.max_kv_len = 8;
  CHECK(call.refusal() == "kv_len: kv_len is 9; the problem's max_kv_len is 8");
}

TEST_CASE("a grid has at most 65535 sequences and 65535 tiles", "[args]") {
  Call call;
  call.args.batch = 65535;
  CHECK(call.refusal() == "");
  call.args.batch = 65536;
  CHECK(call.refusal() == "unsupported batch: batch is 65536; nearest supported: 65535");
  call.args.batch = 1;
  call.args.q_len = 65535 / 5; // of five heads each
  CHECK(call.refusal() == "");
  ++call.args.q_len;
  CHECK(call.refusal() == "unsupported q_len: q_len is 13108; nearest supported: 13107, which is 65535 tiles "
                          "of 1 rows");
}

TEST_CASE("q_len and kv_len together are at most 2^31 - 512", "[args]") {
  Call call;
  call.args.batch = 1;
  for (sluice_tensor *tensor : {&call.args.k, &call.args.v})
    tensor->stride[1] = 0; // an input may repeat itself
  call.args.kv_len = INT32_MAX - 511 - 4;
  CHECK(call.refusal() == "");
  ++call.args.kv_len;
  CHECK(call.refusal() ==
        "unsupported kv_len: kv_len is 2147483133 and q_len 4; nearest supported: 2147483132");
}

TEST_CASE("tensors of a device end at 2^48, those of the host at the end of addresses", "[args]") {
  const uint64_t q_bytes = 3 * 4 * 640 * 2, k_bytes = 3 * 9 * 128 * 2;
  Call call;
  check_end(call, &calls::Args::q, q_bytes, device_end, 16);
  check_end(call, &calls::Args::k, k_bytes, device_end, 16);
  check_end(call, &calls::Args::v, k_bytes, device_end, 16);
  check_end(call, &calls::Args::o, q_bytes, device_end, 16);
  call.rules = {0, 1, false, 0};
  const uint64_t host_end = UINT64_MAX - 1;
  check_end(call, &calls::Args::q, q_bytes, host_end, 2);
  check_end(call, &calls::Args::k, k_bytes, host_end, 2);
  check_end(call, &calls::Args::v, k_bytes, host_end, 2);
  check_end(call, &calls::Args::o, q_bytes, host_end, 2);
  // LSE is not read through buffers.
  check_end(call, &calls::Args::lse, 3 * 40 * 4, UINT64_MAX - 3, 4);
  call.rules = Call().rules;
  check_end(call, &calls::Args::lse, 3 * 40 * 4, UINT64_MAX - 3, 4);
}

TEST_CASE("every stride of keys in packs, and only of those, is a multiple", "[args]") {
  Call call = packed();
  CHECK(call.refusal() == "");
  for (size_t i = 0; i < 4; ++i) {
    call = packed();
    call.args.k.stride[i] += 16;
    const std::string field = "k.stride[" + std::to_string(i) + "]";
    CHECK(call.refusal() == field + ": " + field + " is " + std::to_string(call.args.k.stride[i]) +
                                "; it must be a multiple of 32");
  }
  call = packed();
  call.args.q.stride[0] += 16;
  CHECK(call.refusal() == "q.stride[0]: q.stride[0] is 2576; it must be a multiple of 32");
}

TEST_CASE("rows of K and V, and packs of K, are close enough for a kernel", "[args]") {
  Call call = packed();
  call.rules.stride_multiple = 8;
  call.args.k.stride[3] = (1 << 22) - 8;
  CHECK(call.refusal() == "");
  call.args.k.stride[3] = 1 << 22;
  CHECK(call.refusal() == "unsupported k.stride[3]: k.stride[3] is 4194304; nearest supported: 4194296");
  call.rules = {0, 1, false, 0}; // the host's
  CHECK(call.refusal() == "");
  call = Call();
  for (const bool is_v : {false, true}) {
    Call far;
    sluice_tensor &tensor = is_v ? far.args.v : far.args.k;
    tensor.stride[0] = int64_t{1} << 30;
    tensor.stride[1] = (1 << 25) - 8;
    CHECK(far.refusal() == "");
    tensor.stride[1] = 1 << 25;
    const std::string field = is_v ? "v.stride[1]" : "k.stride[1]";
    CHECK(far.refusal() ==
          "unsupported " + field + ": " + field + " is 33554432; nearest supported: 33554424");
    far.rules.tile_q = 0;
    CHECK(far.refusal() == "");
  }
  // Without packs the last stride is not a distance of packs, and may be any number of the host's.
  call.rules = {0, 1, false, 0};
  call.args.k.stride[3] = 1 << 22;
  CHECK(call.refusal() == "");
}

TEST_CASE("the last stride of LSE means nothing, that of bias is 0 or 1, that of a mask 1", "[args]") {
  Call call;
  call.args.lse.stride[3] = 2;
  CHECK(call.refusal() == "");
  call = Call();
  call.args.q_len = call.args.batch = 1;
  call.args.lse.stride[2] = 2;
  CHECK(call.refusal() == "");

  call = Call();
  call.problem.bias_type = SLUICE_F32;
  call.args.bias = {at(0x8000), {0, 36, 9, 1}};
  CHECK(call.refusal() == "");
  call.args.bias.stride[3] = 0;
  CHECK(call.refusal() == "");
  call.args.bias.stride[2] = 0;
  call.args.bias.stride[3] = 2;
  CHECK(call.refusal() == "bias.stride[3]: bias.stride[3] is 2; it must be 0 or 1");

  call = Call();
  call.problem.flags |= calls::mask_bits;
  call.args.mask = {at(0x8001), {0, 0, 2, 1}};
  CHECK(call.refusal() == "");
  call.args.mask.stride[3] = 0;
  CHECK(call.refusal() ==
        "mask.stride[3]: mask.stride[3] is 0; it must be 1: the bits of a row are contiguous");
}

TEST_CASE("bias and mask end where tensors do", "[args]") {
  // Nine keys are nine elements, or two bytes of bits; of 10 heads, 4 rows and 3 sequences.
  Call call;
  call.problem.bias_type = SLUICE_F16;
  call.args.bias = {at(0x8000), {360, 36, 9, 1}};
  check_end(call, &calls::Args::bias, 3 * 360 * 2, device_end, 2);
  call.rules = {0, 1, false, 0};
  check_end(call, &calls::Args::bias, 3 * 360 * 2, UINT64_MAX - 1, 2);
  call = Call();
  call.problem.flags |= calls::mask_bits;
  call.args.mask = {at(0x8000), {80, 8, 2, 1}};
  check_end(call, &calls::Args::mask, 3 * 80, device_end, 1);
  call.rules = {0, 1, false, 0};
  check_end(call, &calls::Args::mask, 3 * 80, UINT64_MAX, 1);
  // One byte less with one key less.
  call.args.kv_len = 8;
  check_end(call, &calls::Args::mask, 3 * 80 - 1, UINT64_MAX, 1);
}

namespace {

/// V by columns: [sequence][head][column][16] for 9 keys.
Call by_columns() {
  Call call;
  call.problem.v_pack = SLUICE_PACK_ALL;
  call.args.v.stride[0] = 2 * 64 * 16;
  call.args.v.stride[1] = 1;
  call.args.v.stride[2] = 64 * 16;
  call.args.v.stride[3] = 16;
  return call;
}

/// [page][head][pack][column][8] for pages of 16.
Call by_packs() {
  Call call = packed();
  call.rules.stride_multiple = 8;
  call.problem.v_pack = 8;
  call.args.v.stride[0] = 2 * 64 * 16;
  call.args.v.stride[1] = 64 * 8;
  call.args.v.stride[2] = 64 * 16;
  call.args.v.stride[3] = 8;
  return call;
}

} // namespace

TEST_CASE("strides of V by columns are multiples, the last one too", "[args]") {
  for (Call call : {by_columns(), by_packs()}) {
    CHECK(call.refusal() == "");
    for (const size_t i : {0, 1, 2, 3}) {
      Call other = call;
      other.args.v.stride[i] += 4;
      const std::string field = "v.stride[" + std::to_string(i) + "]";
      const bool is_token = i == 1 && call.problem.v_pack == SLUICE_PACK_ALL;
      CHECK(other.refusal() ==
            field + ": " + field + " is " + std::to_string(other.args.v.stride[i]) +
                (is_token ? "; it must be 1 with SLUICE_PACK_ALL" : "; it must be a multiple of 8"));
    }
    call.args.v.stride[3] = (1 << 23) - 8;
    CHECK(call.refusal() == "");
    call.args.v.stride[3] = 1 << 23;
    CHECK(call.refusal() == "unsupported v.stride[3]: v.stride[3] is 8388608; nearest supported: 8388600");
    call.rules.tile_q = 0; // the reference, which has no device's limits
    CHECK(call.refusal() == "");
  }
  // Rows have neighbouring columns.
  Call rows;
  rows.args.v.stride[3] = 8;
  CHECK(rows.refusal() == "v.stride[3]: v.stride[3] is 8; it must be 1");
}

TEST_CASE("V by columns ends with the last whole unit of the last column", "[args]") {
  // Three sequences: units of 9 keys are 16 elements.
  check_end(by_columns(), &calls::Args::v, (2 * 2 * 64 * 16 + 64 * 16 + 63 * 16 + 16) * 2, device_end, 16);
  Call eight = by_columns();
  eight.args.kv_len = 8;
  check_end(eight, &calls::Args::v, (2 * 2 * 64 * 16 + 64 * 16 + 63 * 16 + 8) * 2, device_end, 16);
  // One page of two packs.
  Call page = by_packs();
  page.args.page_count = 1;
  check_end(page, &calls::Args::v, (64 * 8 + 64 * 16 + 63 * 8 + 8) * 2, device_end, 16);
}

TEST_CASE("V of prefixes is by columns, too", "[args]") {
  Call call = by_columns();
  call.problem.flags |= calls::prefixes;
  call.problem.max_prefixes = 2;
  call.problem.max_prefix_len = 20;
  call.problem.max_q_tokens = 12;
  call.args.prefix_count = 2;
  call.args.prefix_len = 20;
  call.args.prefix_q_starts = static_cast<const int32_t *>(at(0x6000));
  call.args.prefix_k = {at(0x7000), {20 * 128, 128, 64, 1}};
  call.args.prefix_v = {at(0x8000), {2 * 64 * 24, 1, 64 * 24, 24}};
  CHECK(call.refusal() == "");
  call.args.prefix_v.stride[3] = 1;
  CHECK(call.refusal() == "prefix_v.stride[3]: prefix_v.stride[3] is 1; it must be a multiple of 8");
}

TEST_CASE("a stride between the heads' entries has a meaning where there are pages and several heads",
          "[args]") {
  Call call = packed();
  call.args.page_table_head_stride = 3;
  CHECK(call.refusal() == "");
  call.args.page_table_head_stride = -1;
  const std::string negative =
      "page_table_head_stride: page_table_head_stride is -1; it must not be negative";
  CHECK(call.refusal() == negative);
  call.problem.kv_heads = 1;
  CHECK(call.refusal() == "");
  Call dense;
  for (const int32_t heads : {1, 2}) {
    dense.problem.kv_heads = heads;
    dense.args.page_table_head_stride = -1;
    CHECK(dense.refusal() == negative);
    dense.args.page_table_head_stride = 3;
    CHECK(dense.refusal() == "page_table_head_stride: page_table_head_stride is 3; it must be 0: the "
                             "problem's page_size is 0");
  }
}

TEST_CASE("a table that is given is aligned, and the host counts any number of pages", "[args]") {
  Call call = packed();
  call.args.kv_len = 0;
  call.args.page_table = nullptr;
  CHECK(call.refusal() == "");
  call.args.page_table = at(0x7002);
  CHECK(call.refusal() == "page_table: page_table is 0x7002; it must be aligned to 4 bytes");
  call = packed();
  call.args.page_count = int64_t{1} << 32;
  for (sluice_tensor *tensor : {&call.args.k, &call.args.v})
    tensor->stride[0] = 0;
  CHECK(call.refusal() == "");
  call.args.page_count += 1;
  CHECK(call.refusal() == "unsupported page_count: page_count is 4294967297; nearest supported: 4294967296");
  call.rules.tile_q = 0;
  CHECK(call.refusal() == "");
}

TEST_CASE("rows that see prefixes are found by their numbers", "[args]") {
  Call call;
  call.problem.flags |= calls::prefixes;
  call.problem.max_prefixes = 1;
  call.problem.max_prefix_len = 8;
  call.problem.max_q_tokens = 12;
  call.args.prefix_count = 1;
  call.args.prefix_len = 8;
  call.args.prefix_q_starts = static_cast<const int32_t *>(at(0x6000));
  call.args.prefix_k = {at(0x7000), {0, 128, 64, 1}};
  call.args.prefix_v = {at(0x8000), {0, 128, 64, 1}};
  CHECK(call.refusal() == "");
  call.args.q.stride[0] = 5 * 640;
  const std::string apart =
      "q.stride[0]: q.stride[0] is 3200; with SLUICE_ATTENTION_PREFIXES and without q_starts "
      "it must be q_len * q.stride[1], which is 4 * 640";
  CHECK(call.refusal() == apart);
  // One sequence, and sequences of one row, are as far apart as they like.
  Call one = call;
  one.args.batch = 1;
  CHECK(one.refusal() == "");
  one = call;
  one.args.q_len = 1;
  CHECK(one.refusal() == "");
  // Starts give the numbers.
  one = call;
  one.problem.mode = calls::ragged;
  one.args.q_starts = one.args.kv_starts = static_cast<const int32_t *>(at(0x9000));
  CHECK(one.refusal() == "");
}
