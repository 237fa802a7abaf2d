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

/// The side whose scales multiply or divide.
template <typename Call> const Kv &scaled(const Call &call) {
  return call.source.format.k.scale_kind != SLUICE_SCALE_NONE ? call.source : call.target;
}
int32_t pack_of(const Kv &cache) {
  return cache.format.k.pack != 0 ? cache.format.k.pack : cache.format.head_dim_qk;
}

} // namespace

// K or V of a copy or a gather.
#define SLUICE_SIDE_PASSED(side, head_dim, from_pack, to_pack)                                               \
  PASSES(c.source.kv.side.data, a.side.source), PASSES(c.target.kv.side.data, a.side.target),                \
      CACHE_STRIDES(c.source.kv.side, c.source.format.k.type, side.source_),                                 \
      CACHE_STRIDES(c.target.kv.side, SLUICE_F16, side.target_),                                             \
      PASSES(scaled(c).scales.side.data, a.side.scale),                                                      \
      FOLLOWS(c.source.scales.side##_zeros.data, a.side.zeros),                                              \
      FOLLOWS(scaled(c).scales.side.stride[0], a.side.scale_page_stride),                                    \
      FOLLOWS(scaled(c).scales.side.stride[1], a.side.scale_row_stride),                                     \
      FOLLOWS(scaled(c).format.side.scale_kind == SLUICE_SCALE_PER_HEAD ? 1                                  \
                                                                        : scaled(c).scales.side.stride[2],   \
              a.side.scale_head_stride),                                                                     \
      FOLLOWS(c.source.format.kv_heads *(c.source.format.head_dim / 8), a.side.chunks),                      \
      FOLLOWS(c.source.format.head_dim / 8, a.side.head_chunks),                                             \
      DIVIDES_BY(c.source.format.head_dim / 8, side.head_),                                                  \
      FOLLOWS(from_pack / 8, a.side.source_pack_chunks), DIVIDES_BY(from_pack / 8, side.source_pack_),       \
      FOLLOWS(to_pack / 8, a.side.target_pack_chunks), DIVIDES_BY(to_pack / 8, side.target_pack_)
#define SLUICE_SIDES_PASSED                                                                                  \
  SLUICE_SIDE_PASSED(k, head_dim_qk, pack_of(c.source), pack_of(c.target)),                                  \
      SLUICE_SIDE_PASSED(v, head_dim_v, c.source.format.head_dim_v, c.source.format.head_dim_v)
#define SLUICE_PAGES_PASSED                                                                                  \
  PASSES(c.source.kv.page_count, a.places.page_count),                                                       \
      PASSES(c.source.format.page_size, a.places.page_size),                                                 \
      DIVIDES_BY(c.source.format.page_size, places.page_)

TEST_CASE("a copy of pages: each member reaches its own argument", "[copies]") {
  static const Passed<CopyCall, PageCopyKernargs> table[] = {
      SLUICE_SIDES_PASSED,
      SLUICE_PAGES_PASSED,
      PASSES(c.args.pairs, a.pairs),
      FOLLOWS(c.args.pairs_64, a.places.page_index_64),
      FOLLOWS(c.args.pair_count * c.source.format.page_size, a.rows),
      FOLLOWS(PageSource::pairs, a.places.page_source)};
  // From packs to other packs, and from groups of U4.
  CopyCall packs = good_fp8_copy();
  packs.args.pairs_64 = 1;
  packs.args.pairs = device_memory + 8;
  for (Kv *cache : {&packs.source, &packs.target}) {
    cache->format.kv_heads = 3;
    cache->kv.page_count = 1000;
  }
  packs.source.format.k.pack = 32;
  packs.target.format.k.pack = 64;
  packs.source.kv.k = {device_memory, {7168, 32, 2208, 544}};
  packs.target.kv.k = {device_memory + 32, {7680, 64, 2240, 1088}};
  packs.source.kv.v = {device_memory + 16, {4352, 264, 80, 1}};
  packs.target.kv.v = {device_memory + 48, {4864, 296, 88, 1}};
  packs.target.scales.v.data = device_memory + 68;
  CopyCall groups = packs;
  set_groups(groups.source);
  set_types(groups.target, SLUICE_F16);
  set_scales(groups.target, SLUICE_SCALE_NONE, {}, SLUICE_SCALE_NONE, {});
  groups.source.format.k.pack = groups.target.format.k.pack = 0;
  groups.source.kv.k = {device_memory, {16 * 832, 832, 192, 1}};
  groups.target.kv.k = {device_memory + 32, {7680, 456, 136, 1}};
  groups.source.kv.v = {device_memory + 16, {16 * 384, 384, 128, 1}};
  groups.source.scales.k = {device_memory + 2, {16 * 18, 18, 6, 1}};
  groups.source.scales.v = {device_memory + 6, {16 * 14, 14, 5, 1}};
  groups.source.scales.k_zeros = {device_memory + 10, {16 * 18, 18, 6, 1}};
  groups.source.scales.v_zeros = {device_memory + 14, {16 * 14, 14, 5, 1}};
  CacheOpDevice device;
  check_passed(table, {packs, groups}, [&](const CopyCall &call) { return device.copy(call); });
}

TEST_CASE("a copy of pages: rows and pages", "[copies]") {
  CacheOpDevice device;
  CopyCall call = good_copy();
  PageCopyKernargs out = device.copy(call);
  CHECK(out.k.scale == 0);
  CHECK(out.lanes_log2 == 5); // 8 rows in each of 6 workgroups
  CHECK(device.hip.launch.grid == std::array<unsigned, 3>{6, 1, 2});
  CHECK(out.row_step == 48);

  call.source.kv.page_count = call.target.kv.page_count = 0;
  CHECK(device.copy(call).places.page_count == uint64_t{1} << 63); // every number but a negative one
  call = good_copy();
  call.args.pairs = nullptr;
  call.args.pair_count = 0;
  out = device.copy(call);
  CHECK(out.places.page_source == uint32_t(PageSource::same_page));
  CHECK(out.rows == 9 * 16);

  // More rows than 32 bits, 304 compute units with 16 workgroups each, for K and for V.
  call.source.kv.page_count = call.target.kv.page_count = int32_t{1} << 30;
  out = device.copy(call);
  CHECK(out.rows == uint64_t{1} << 34);
  CHECK(device.hip.launch.grid == std::array<unsigned, 3>{304 * 8, 1, 2});
  CHECK(out.row_step == 304 * 8 * 8);

  call = good_copy();
  drop_v(call);
  CHECK(device.copy(call).v.source == 0);
  CHECK(device.hip.launch.grid == std::array<unsigned, 3>{6, 1, 1});
}

TEST_CASE("equal types are copied by the kernel for as many bits", "[copies]") {
  CacheOpDevice device;
  CopyCall call = good_copy();
  const std::string wide = "kv_copy_f16_f16", narrow = "kv_copy_e4m3fnuz_e4m3fnuz";
  set_both_types(call, SLUICE_BF16);
  CHECK(kernel_of(device, call) == wide);
  // F32 is twice as many elements of 16 bits, in all lengths.
  set_both_types(call, SLUICE_F32);
  call.target.format.k.pack = 8;
  call.target.kv.k.stride[0] = 16 * 256;
  call.target.kv.k.stride[1] = 8;
  call.target.kv.k.stride[3] = 16 * 8;
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
  call.target.kv.k.stride[0] = 16 * 256;
  call.target.kv.v.stride[0] = 16 * 128;
  for (const uint32_t type : {SLUICE_E4M3FNUZ, SLUICE_E4M3FN, SLUICE_E5M2FNUZ, SLUICE_E5M2}) {
    set_both_types(call, type);
    CHECK(kernel_of(device, call) == wide);
  }
  out = device.copy(call);
  CHECK(out.k.chunks == 16);
  CHECK(out.v.source_row_stride == 64);
  CHECK(out.k.target_page_stride == 8 * 256);
  call.target.kv.v.stride[0] += 8;
  CHECK(kernel_of(device, call) == narrow);
  CHECK(device.copy(call).k.chunks == 32);
  call.target.kv.v.stride[0] -= 8;
  call.source.format.k.pack = 8;
  call.source.kv.k.stride[1] = 16;
  call.source.kv.k.stride[3] = 16 * 16;
  CHECK(kernel_of(device, call) == narrow);
}

TEST_CASE("a gather: each member reaches its own argument", "[copies]") {
  static const Passed<GatherCall, PageCopyKernargs> table[] = {
      SLUICE_SIDES_PASSED,
      SLUICE_PAGES_PASSED,
      PASSES(c.args.starts, a.places.starts),
      PASSES(c.args.lengths, a.places.kv_lengths),
      PASSES(c.args.first_keys, a.first_keys),
      PASSES(c.args.pages.table, a.places.page_table),
      PASSES(c.args.pages.starts, a.places.page_starts),
      PASSES(c.args.tokens, a.rows),
      PASSES(c.args.batch, a.places.batch),
      FOLLOWS((c.source.format.flags & SLUICE_KV_PAGE_INDEX_64) != 0, a.places.page_index_64),
      FOLLOWS(c.source.format.page_table, a.places.page_source)};
  GatherCall spread = good_gather();
  spread.source.format.flags = SLUICE_KV_PAGE_INDEX_64;
  set_types(spread.source, SLUICE_E4M3FNUZ);
  set_types(spread.target, SLUICE_BF16);
  spread.source.format.kv_heads = spread.target.format.kv_heads = 3;
  spread.source.format.k.pack = 32;
  spread.source.kv.k = {device_memory, {7168, 32, 2208, 544}};
  spread.source.kv.v = {device_memory + 16, {4352, 264, 80, 1}};
  spread.target.kv.k = {device_memory + 32, {0, 448, 136, 1}};
  spread.target.kv.v = {device_memory + 48, {0, 240, 72, 1}};
  spread.source.format.page_table = SLUICE_PAGE_TABLE_CSR;
  spread.args.pages = {device_memory + 24, at_byte<int32_t>(20), 0, 0};
  spread.args.first_keys = at_byte<int32_t>(28);
  set_scales(spread.source, SLUICE_SCALE_PER_HEAD, {device_memory + 64, {}}, SLUICE_SCALE_PER_TENSOR,
             {device_memory + 68, {}});
  CacheOpDevice device;
  check_passed(table, {spread}, [&](const GatherCall &call) { return device.copy(call); });
  CHECK(kernel_of(device, spread) == "kv_copy_e4m3fnuz_bf16");

  GatherCall call = good_gather();
  const PageCopyKernargs out = device.copy(call);
  CHECK(out.first_keys == 0);
  CHECK(out.pairs == 0);
  CHECK(out.places.page_table_stride == 5);
  CHECK(out.places.page_table_entries == 5);
  CHECK(out.places.search_steps == 2);
  call.args.batch = 1;
  CHECK(device.copy(call).places.page_table_entries == std::numeric_limits<int64_t>::max());
  drop_v(call);
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
  CopyCall u4 = good_u4_copy();
  PageCopyKernargs out = launches(u4);
  CHECK(seen == std::vector(3, pieces));
  // Zero points: rows of 4 and of 2 numbers of F16; V's heads follow one another, K's do not in the target.
  CHECK(out.k.source == as_bits(u4.source.scales.k_zeros.data));
  CHECK(out.v.target == as_bits(u4.target.scales.v_zeros.data));
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
  CHECK(out.pairs == as_bits(u4.args.pairs));
  // Numbers only.
  CopyCall q8 = good_copy();
  set_both_types(q8, SLUICE_Q8_0);
  q8.target.kv.k.stride[0] = 16 * 256 + 32;
  q8.target.kv.v = {device_memory + 48, {16 * 128, 128, 64, 1}};
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
  CopyCall fp8 = good_copy();
  set_both_types(fp8, SLUICE_E4M3FNUZ);
  for (Kv *cache : {&fp8.source, &fp8.target})
    set_scales(*cache, SLUICE_SCALE_PER_PAGE, {device_memory, {2, 55, 1, 0}}, SLUICE_SCALE_PER_TOKEN,
               {device_memory, {32, 2, 1, 0}});
  out = launches(fp8);
  CHECK(seen == std::vector<std::string>{"kv_copy_e4m3fnuz_e4m3fnuz", pieces, pieces});
  CHECK(out.k.source == as_bits(fp8.source.scales.v.data));
  CHECK(out.rows == 3 * 16);
  CHECK(out.k.piece_bytes == 8);
  CHECK(grids.back()[2] == 1);
  for (Kv *cache : {&fp8.source, &fp8.target})
    set_scales(*cache, SLUICE_SCALE_PER_PAGE, {device_memory, {2, 55, 1, 0}}, SLUICE_SCALE_NONE, {});
  out = launches(fp8);
  CHECK(out.rows == 3);
  CHECK(out.places.page_size == 1);
  CHECK(out.k.source_page_stride == 8);

  // Conversions read the arrays, in one launch.
  u4.target = good_copy().target;
  u4.target.kv.k.stride[0] = 16 * 256 + 32;
  CHECK(launches(u4).k.group_chunks_log2 == 2);
  CHECK(seen == std::vector<std::string>{"kv_copy_u4_f16"});
  u4.source.format.k.scale_group = u4.source.format.v.scale_group = 64;
  CHECK(launches(u4).v.group_chunks_log2 == 3);
  const GatherCall i8 = good_i8_gather();
  out = launches(i8);
  CHECK(seen == std::vector<std::string>{"kv_copy_i8_f16"});
  CHECK(out.k.scale_row_stride == 2);
  CHECK(out.v.scale_page_stride == 3);
  CHECK(out.v.scale_row_stride == 0);
  CHECK(out.k.zeros == 0);
}
