//===- page_copy_arguments_test.cpp - the kernel arguments of copies of pages and of gathers ------------===//
#include "page_copy_fixture.h"
#include "support/passed_members.h"

#include <array>
#include <limits>
#include <string>

using namespace sluice::test;
using sluice::package::PageCopyKernargs;
using sluice::package::PageSource;

namespace {

/// The kernel that a call takes.
template <typename Call> std::string kernel_of(CacheOpDevice &device, const Call &call) {
  static std::string name;
  REQUIRE(sluice_set_trace(
              device.context.get(), [](const sluice_trace_record *record, void *) { name = record->kernel; },
              nullptr, nullptr) == SLUICE_OK);
  device.copy(call);
  return name;
}

} // namespace

// K or V of a copy or a gather; the tensors' names in the call.
#define SLUICE_SIDE_PASSED(side, from, to, from_type, head_dim, from_pack, to_pack)                          \
  PASSES(c.from.data, a.side.source), PASSES(c.to.data, a.side.target),                                      \
      CACHE_STRIDES(c.from, from_type, side.source_), CACHE_STRIDES(c.to, SLUICE_F16, side.target_),         \
      PASSES(either(c.side##_scale, c.side##_scales.data), a.side.scale),                                    \
      FOLLOWS(c.side##_zeros.data, a.side.zeros),                                                            \
      FOLLOWS(c.side##_scales.stride[0], a.side.scale_page_stride),                                          \
      FOLLOWS(c.side##_scales.stride[1], a.side.scale_row_stride),                                           \
      FOLLOWS(c.side##_scale_kind == SLUICE_SCALE_PER_HEAD ? 1 : c.side##_scales.stride[2],                  \
              a.side.scale_head_stride),                                                                     \
      FOLLOWS(c.kv_heads *(head_dim / 8), a.side.chunks), FOLLOWS(head_dim / 8, a.side.head_chunks),         \
      DIVIDES_BY(head_dim / 8, side.head_), FOLLOWS(from_pack / 8, a.side.source_pack_chunks),               \
      DIVIDES_BY(from_pack / 8, side.source_pack_), FOLLOWS(to_pack / 8, a.side.target_pack_chunks),         \
      DIVIDES_BY(to_pack / 8, side.target_pack_)
#define SLUICE_PAGES_PASSED                                                                                  \
  PASSES(c.page_count, a.places.page_count), PASSES(c.page_size, a.places.page_size),                        \
      DIVIDES_BY(c.page_size, places.page_),                                                                 \
      FOLLOWS((c.flags & SLUICE_PAGE_INDEX_64) != 0, a.places.page_index_64)

TEST_CASE("a copy of pages: each member reaches its own argument", "[copies]") {
  static const Passed<sluice_page_copy, PageCopyKernargs> table[] = {
      SLUICE_SIDE_PASSED(k, k_source, k_target, c.source_type, c.head_dim_qk,
                         (c.source_k_pack != 0 ? c.source_k_pack : c.head_dim_qk),
                         (c.target_k_pack != 0 ? c.target_k_pack : c.head_dim_qk)),
      SLUICE_SIDE_PASSED(v, v_source, v_target, c.source_type, c.head_dim_v, c.head_dim_v, c.head_dim_v),
      SLUICE_PAGES_PASSED,
      PASSES(c.pairs, a.pairs),
      FOLLOWS(c.pair_count * c.page_size, a.rows),
      FOLLOWS(PageSource::pairs, a.places.page_source)};
  // From packs to other packs, and from groups of U4.
  sluice_page_copy packs = good_fp8_copy();
  packs.flags = SLUICE_PAGE_INDEX_64;
  packs.pairs = device_memory + 8;
  packs.kv_heads = 3;
  packs.page_count = 1000;
  packs.source_k_pack = 32;
  packs.target_k_pack = 64;
  packs.k_source = {device_memory, {7168, 32, 2208, 544}};
  packs.k_target = {device_memory + 32, {7680, 64, 2240, 1088}};
  packs.v_source = {device_memory + 16, {4352, 264, 80, 1}};
  packs.v_target = {device_memory + 48, {4864, 296, 88, 1}};
  packs.v_scale = packs.k_scale + 1;
  sluice_page_copy groups = packs;
  groups.flags = SLUICE_ZERO_POINTS;
  groups.source_type = SLUICE_U4;
  groups.target_type = SLUICE_F16;
  groups.source_k_pack = groups.target_k_pack = 0;
  groups.k_source.stride[1] = 832, groups.k_source.stride[2] = 192;
  groups.k_source.stride[0] = 16 * 832, groups.k_source.stride[3] = groups.k_target.stride[3] = 1;
  groups.k_target.stride[1] = 456, groups.k_target.stride[2] = 136;
  groups.v_source = {device_memory + 16, {16 * 384, 384, 128, 1}};
  groups.k_scale_kind = groups.v_scale_kind = SLUICE_SCALE_PER_GROUP;
  groups.scale_group = 32;
  groups.k_scale = groups.v_scale = nullptr;
  groups.k_scales = {device_memory + 2, {16 * 18, 18, 6, 1}};
  groups.v_scales = {device_memory + 6, {16 * 14, 14, 5, 1}};
  groups.k_zeros = {device_memory + 10, {16 * 18, 18, 6, 1}};
  groups.v_zeros = {device_memory + 14, {16 * 14, 14, 5, 1}};
  CacheOpDevice device;
  check_passed(table, {packs, groups}, [&](const sluice_page_copy &call) { return device.copy(call); });
}

TEST_CASE("a copy of pages: rows and pages", "[copies]") {
  CacheOpDevice device;
  sluice_page_copy call = good_copy();
  PageCopyKernargs out = device.copy(call);
  CHECK(out.k.scale == 0);
  CHECK(out.lanes_log2 == 5); // 8 rows in each of 6 workgroups
  CHECK(device.hip.launch.grid == std::array<unsigned, 3>{6, 1, 2});
  CHECK(out.row_step == 48);

  call.page_count = 0;
  CHECK(device.copy(call).places.page_count == uint64_t{1} << 63); // every number but a negative one
  call = good_copy();
  call.pairs = nullptr;
  call.pair_count = 0;
  out = device.copy(call);
  CHECK(out.places.page_source == uint32_t(PageSource::same_page));
  CHECK(out.rows == 9 * 16);

  // More rows than 32 bits, 304 compute units with 16 workgroups each, for K and for V.
  call.page_count = int32_t{1} << 30;
  out = device.copy(call);
  CHECK(out.rows == uint64_t{1} << 34);
  CHECK(device.hip.launch.grid == std::array<unsigned, 3>{304 * 8, 1, 2});
  CHECK(out.row_step == 304 * 8 * 8);

  call = good_copy();
  drop_v(call, call.v_source, call.v_target);
  CHECK(device.copy(call).v.source == 0);
  CHECK(device.hip.launch.grid == std::array<unsigned, 3>{6, 1, 1});
}

TEST_CASE("equal types are copied by the kernel for as many bits", "[copies]") {
  CacheOpDevice device;
  sluice_page_copy call = good_copy();
  const std::string wide = "kv_copy_f16_f16", narrow = "kv_copy_e4m3fnuz_e4m3fnuz";
  call.source_type = call.target_type = SLUICE_BF16;
  CHECK(kernel_of(device, call) == wide);
  // F32 is twice as many elements of 16 bits, in all lengths.
  call.source_type = call.target_type = SLUICE_F32;
  call.target_k_pack = 8;
  call.k_target.stride[0] = 16 * 256;
  call.k_target.stride[1] = 8;
  call.k_target.stride[3] = 16 * 8;
  CHECK(kernel_of(device, call) == wide);
  PageCopyKernargs out = device.copy(call);
  CHECK(out.k.chunks == 64);
  CHECK(out.k.head_chunks == 32);
  CHECK(out.k.source_pack_chunks == 32);
  CHECK(out.k.target_pack_chunks == 2);
  CHECK(out.k.source_page_stride == 2 * 16 * 256);
  CHECK(out.k.target_row_stride == 16);
  CHECK(out.k.target_pack_stride == 2 * 16 * 8);
  CHECK(out.v.target_page_stride == 2 * (16 * 128 + 8));
  // Bytes are half as many, if all lengths are multiples of 16.
  call = good_copy();
  call.k_target.stride[0] = 16 * 256;
  call.v_target.stride[0] = 16 * 128;
  for (const uint32_t type : {SLUICE_E4M3FNUZ, SLUICE_E4M3FN, SLUICE_E5M2FNUZ, SLUICE_E5M2}) {
    call.source_type = call.target_type = type;
    CHECK(kernel_of(device, call) == wide);
  }
  out = device.copy(call);
  CHECK(out.k.chunks == 16);
  CHECK(out.v.source_row_stride == 64);
  CHECK(out.k.target_page_stride == 8 * 256);
  call.v_target.stride[0] += 8;
  CHECK(kernel_of(device, call) == narrow);
  CHECK(device.copy(call).k.chunks == 32);
  call.v_target.stride[0] -= 8;
  call.source_k_pack = 8;
  call.k_source.stride[1] = 16;
  call.k_source.stride[3] = 16 * 16;
  CHECK(kernel_of(device, call) == narrow);
}

TEST_CASE("a gather: each member reaches its own argument", "[copies]") {
  static const Passed<sluice_gather, PageCopyKernargs> table[] = {
      SLUICE_SIDE_PASSED(k, k_cache, k_out, c.cache_type, c.head_dim_qk, c.k_pack, c.head_dim_qk),
      SLUICE_SIDE_PASSED(v, v_cache, v_out, c.cache_type, c.head_dim_v, c.head_dim_v, c.head_dim_v),
      SLUICE_PAGES_PASSED,
      PASSES(c.out_starts, a.places.starts),
      PASSES(c.kv_lengths, a.places.kv_lengths),
      PASSES(c.first_keys, a.first_keys),
      PASSES(c.page_table, a.places.page_table),
      PASSES(c.page_starts, a.places.page_starts),
      PASSES(c.tokens, a.rows),
      PASSES(c.batch, a.places.batch),
      FOLLOWS(c.page_table_kind, a.places.page_source)};
  sluice_gather spread = good_gather();
  spread.flags = SLUICE_PAGE_INDEX_64;
  spread.cache_type = SLUICE_E4M3FNUZ;
  spread.out_type = SLUICE_BF16;
  spread.kv_heads = 3;
  spread.k_pack = 32;
  spread.k_cache = {device_memory, {7168, 32, 2208, 544}};
  spread.v_cache = {device_memory + 16, {4352, 264, 80, 1}};
  spread.k_out = {device_memory + 32, {0, 448, 136, 1}};
  spread.v_out = {device_memory + 48, {0, 240, 72, 1}};
  spread.page_table_kind = SLUICE_PAGE_TABLE_CSR;
  spread.page_table = device_memory + 24;
  spread.page_table_stride = 0;
  spread.page_starts = reinterpret_cast<const int32_t *>(device_memory + 20);
  spread.first_keys = reinterpret_cast<const int32_t *>(device_memory + 28);
  spread.k_scale_kind = SLUICE_SCALE_PER_HEAD;
  spread.v_scale_kind = SLUICE_SCALE_PER_TENSOR;
  spread.k_scale = scale();
  spread.v_scale = scale() + 1;
  CacheOpDevice device;
  check_passed(table, {spread}, [&](const sluice_gather &call) { return device.copy(call); });
  CHECK(kernel_of(device, spread) == "kv_copy_e4m3fnuz_bf16");

  sluice_gather call = good_gather();
  const PageCopyKernargs out = device.copy(call);
  CHECK(out.first_keys == 0);
  CHECK(out.pairs == 0);
  CHECK(out.places.page_table_stride == 5);
  CHECK(out.places.page_table_entries == 5);
  CHECK(out.places.search_steps == 2);
  call.batch = 1;
  CHECK(device.copy(call).places.page_table_entries == std::numeric_limits<int64_t>::max());
  drop_v(call, call.v_cache, call.v_out);
  device.copy(call);
  CHECK(device.hip.launch.grid[2] == 1);
}

TEST_CASE("blocks and arrays are copied in pieces, in a launch for each kind of array", "[copies]") {
  CacheOpDevice device;
  static std::vector<std::string> seen;
  static std::vector<std::array<unsigned, 3>> grids;
  REQUIRE(sluice_set_trace(
              device.context.get(),
              [](const sluice_trace_record *record, void *) {
                seen.emplace_back(record->kernel);
                grids.push_back({record->grid[0], record->grid[1], record->grid[2]});
              },
              nullptr, nullptr) == SLUICE_OK);
  const auto launches = [&](const auto &call) {
    seen.clear();
    grids.clear();
    return device.copy(call);
  };
  const std::string pieces = "kv_copy_q8_0_q8_0";
  sluice_page_copy u4 = good_u4_copy();
  PageCopyKernargs out = launches(u4);
  CHECK(seen == std::vector(3, pieces));
  // Zero points: rows of 4 and of 2 numbers of F16; V's heads follow one another, K's do not in the target.
  CHECK(out.k.source == as_bits(u4.k_zeros.data));
  CHECK(out.v.target == as_bits(u4.v_target_zeros.data));
  CHECK(out.k.piece_bytes == 8);
  CHECK(out.k.chunks == 2);
  CHECK(out.k.head_chunks == 1);
  CHECK(out.k.source_head_stride == 8);
  CHECK(out.k.target_page_stride == 320);
  CHECK(out.k.target_row_stride == 20);
  CHECK(out.k.target_head_stride == 10);
  CHECK(out.v.piece_bytes == 8);
  CHECK(out.v.chunks == 1);
  CHECK(out.rows == 3 * 16);
  CHECK(out.pairs == as_bits(u4.pairs));
  // Numbers only.
  sluice_page_copy q8 = good_copy();
  q8.source_type = q8.target_type = SLUICE_Q8_0;
  q8.k_target.stride[0] = 16 * 256 + 32;
  q8.v_target = {device_memory + 48, {16 * 128, 128, 64, 1}};
  out = launches(q8);
  CHECK(seen == std::vector(1, pieces));
  CHECK(out.k.piece_bytes == 8); // of 136
  CHECK(out.k.chunks == 2 * 17);
  CHECK(out.k.head_chunks == 17);
  CHECK(out.k.source_row_stride == 272);
  CHECK(out.v.piece_bytes == 8); // of two heads of 68 bytes
  CHECK(out.v.chunks == 17);
  CHECK(out.v.head_chunks == 17);
  // FP8 with scales: K's per page, of which there is one for each head, V's per token.
  sluice_page_copy fp8 = good_copy();
  fp8.source_type = fp8.target_type = SLUICE_E4M3FNUZ;
  fp8.k_scale_kind = SLUICE_SCALE_PER_PAGE;
  fp8.k_scales = fp8.k_target_scales = {device_memory, {2, 55, 1, 0}};
  fp8.v_scale_kind = SLUICE_SCALE_PER_TOKEN;
  fp8.v_scales = fp8.v_target_scales = {device_memory, {32, 2, 1, 0}};
  out = launches(fp8);
  CHECK(seen == std::vector<std::string>{"kv_copy_e4m3fnuz_e4m3fnuz", pieces, pieces});
  CHECK(out.k.source == as_bits(fp8.v_scales.data));
  CHECK(out.rows == 3 * 16);
  CHECK(out.k.piece_bytes == 8);
  CHECK(grids.back()[2] == 1);
  fp8.v_scale_kind = SLUICE_SCALE_NONE;
  fp8.v_scales = fp8.v_target_scales = {};
  out = launches(fp8);
  CHECK(out.rows == 3);
  CHECK(out.places.page_size == 1);
  CHECK(out.k.source_page_stride == 8);

  // Conversions read the arrays, in one launch.
  u4.target_type = SLUICE_F16;
  u4.k_target_scales = u4.v_target_scales = u4.k_target_zeros = u4.v_target_zeros = {};
  CHECK(launches(u4).k.group_chunks_log2 == 2);
  CHECK(seen == std::vector<std::string>{"kv_copy_u4_f16"});
  u4.scale_group = 64;
  CHECK(launches(u4).v.group_chunks_log2 == 3);
  const sluice_gather i8 = good_i8_gather();
  out = launches(i8);
  CHECK(seen == std::vector<std::string>{"kv_copy_i8_f16"});
  CHECK(out.k.scale_row_stride == 2);
  CHECK(out.v.scale_page_stride == 3);
  CHECK(out.v.scale_row_stride == 0);
  CHECK(out.k.zeros == 0);
}
