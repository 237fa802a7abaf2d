//===- append_arguments_test.cpp - the kernel arguments of appends --------------------------------------===//
#include "cache_op_device.h"
#include "support/passed_members.h"

using namespace sluice::test;
using sluice::package::AppendKernargs;
using sluice::package::StepKernargs;

namespace {

/// By CSR, into an x-packed cache of FP8; every number is another.
sluice_append spread_append() {
  sluice_append append = good_fp8_append();
  append.kv_heads = 3;
  append.k_pack = 32;
  append.k.stride[1] = 448, append.k.stride[2] = 136;
  append.v.stride[1] = 240, append.v.stride[2] = 72;
  append.k_cache = {append.k_cache.data, {7168, 32, 2208, 544}};
  append.v_cache = {append.v_cache.data, {4352, 264, 80, 1}};
  append.v_scale = reinterpret_cast<const float *>(device_memory + 40);
  append.rotary_stride = 67;
  append.page_count = 1000;
  return append;
}
/// By slots, with positions and scales of the other kinds.
sluice_append spread_slots_append() {
  sluice_append append = spread_append();
  append.flags = 0;
  append.page_table_kind = SLUICE_PAGE_TABLE_NONE;
  append.batch = 0;
  append.slots = good_append().slots;
  append.starts = append.kv_lengths = append.page_starts = nullptr;
  append.page_table = nullptr;
  append.positions = reinterpret_cast<const int32_t *>(device_memory + 44);
  append.rotary_style = SLUICE_ROTARY_PAIRS;
  append.k_scale_kind = SLUICE_SCALE_PER_TENSOR;
  append.v_scale_kind = SLUICE_SCALE_PER_HEAD;
  return append;
}

} // namespace

// K or V of an append.
#define SLUICE_SIDE_PASSED(side, head_dim, pack)                                                             \
  PASSES(c.side.data, a.side.rows), PASSES(c.side##_cache.data, a.side.cache),                               \
      PASSES(c.side##_scale, a.side.scale), PASSES(c.side.stride[1], a.side.token_stride),                   \
      PASSES(c.side.stride[2], a.side.head_stride),                                                          \
      CACHE_STRIDES(c.side##_cache, c.cache_type, side.cache_),                                              \
      FOLLOWS(c.kv_heads *(head_dim / 8), a.side.chunks), FOLLOWS(head_dim / 8, a.side.head_chunks),         \
      DIVIDES_BY(head_dim / 8, side.head_), FOLLOWS(pack / 8, a.side.pack_chunks),                           \
      DIVIDES_BY(pack / 8, side.pack_),                                                                      \
      FOLLOWS(c.side##_scale_kind == SLUICE_SCALE_PER_HEAD, a.side.scale_stride)

TEST_CASE("an append: each member reaches its own argument", "[cache_ops]") {
  static const Passed<sluice_append, AppendKernargs> table[] = {
      SLUICE_SIDE_PASSED(k, c.head_dim_qk, c.k_pack),
      SLUICE_SIDE_PASSED(v, c.head_dim_v, c.head_dim_v),
      PASSES(c.slots, a.slots),
      PASSES(c.starts, a.places.starts),
      PASSES(c.kv_lengths, a.places.kv_lengths),
      PASSES(c.page_table, a.places.page_table),
      PASSES(c.page_starts, a.places.page_starts),
      PASSES(c.page_count, a.places.page_count),
      PASSES(c.page_size, a.places.page_size),
      PASSES(c.batch, a.places.batch),
      PASSES(c.rotary, a.rotary),
      PASSES(c.positions, a.positions),
      PASSES(c.rotary_stride, a.rotary_stride),
      PASSES(c.tokens, a.tokens),
      PASSES(c.rotary_dim, a.rotary_dim),
      DIVIDES_BY(c.page_size, places.page_),
      FOLLOWS(c.page_table_kind, a.places.page_source),
      FOLLOWS((c.flags & SLUICE_PAGE_INDEX_64) != 0, a.places.page_index_64),
      FOLLOWS(c.rotary_style == SLUICE_ROTARY_PAIRS, a.rotary_pairs)};
  CacheOpDevice device;
  check_passed(table, {spread_append(), spread_slots_append()},
               [&](const sluice_append &call) { return device.append(call); });
}

TEST_CASE("an append finds rows by slots or by tables", "[cache_ops]") {
  CacheOpDevice device;
  const AppendKernargs slots = device.append(good_append());
  CHECK(slots.places.page_count == uint64_t{1} << 63); // every number but a negative one
  CHECK(slots.places.search_steps == 1);
  // Without packs a row is one.
  CHECK(slots.k.pack_chunks == 16);
  // 32 lanes for a row's chunks, 8 rows per workgroup: one workgroup for all 5 rows, for K and for V.
  CHECK(slots.lanes_log2 == 5);
  CHECK(slots.token_step == 8);
  CHECK(slots.chunk_step == 32);
  CHECK(device.hip.launch.grid == std::array<unsigned, 3>{1, 1, 2});

  sluice_append call = good_table_append();
  const AppendKernargs block = device.append(call);
  CHECK(block.places.page_source == uint32_t(sluice::package::PageSource::block_table));
  CHECK(block.places.page_table_stride == 7);
  CHECK(block.places.page_table_entries == 7);
  // 2^search_steps > batch + 1.
  CHECK(device.append(call).places.search_steps == 2);
  call.batch = 3;
  CHECK(device.append(call).places.search_steps == 3);
  call.batch = 6;
  CHECK(device.append(call).places.search_steps == 3);
  for (const int64_t count : {1, 2, 100}) {
    call.page_count = count;
    CHECK(device.append(call).places.page_count == uint64_t(count));
  }
  // A sequence's number of entries is unknown for one sequence, and if all have the same number.
  call.batch = 1;
  CHECK(device.append(call).places.page_table_entries == INT64_MAX);
  call.batch = 2;
  call.page_table_stride = 1;
  CHECK(device.append(call).places.page_table_entries == 1);
  call.page_table_stride = 0;
  CHECK(device.append(call).places.page_table_entries == INT64_MAX);
}

TEST_CASE("an append fills the device a few times over and loops over the rest", "[cache_ops]") {
  CacheOpDevice device;
  sluice_append call = good_append();
  // 304 compute units, 16 workgroups each, for K and for V; 8 rows per workgroup.
  call.tokens = 304 * 8 * 8;
  CHECK(device.append(call).token_step == 304 * 8 * 8);
  CHECK(device.hip.launch.grid == std::array<unsigned, 3>{304 * 8, 1, 2});
  call.tokens += 1;
  CHECK(device.append(call).token_step == 304 * 8 * 8);
  CHECK(device.hip.launch.grid == std::array<unsigned, 3>{304 * 8, 1, 2});
  call.flags = SLUICE_V_IN_K;
  call.head_dim_v = 0;
  call.v = call.v_cache = {};
  CHECK(device.append(call).v.rows == 0);
  CHECK(device.hip.launch.grid == std::array<unsigned, 3>{304 * 8 + 1, 1, 1});
  // Wide rows: 65 times 256 lanes for chunks are 64 workgroups and a second round.
  call.kv_heads = 65 * 256 / 16;
  call.k.stride[1] = call.k_cache.stride[1] = int64_t{call.kv_heads} * 128;
  call.k_cache.stride[0] = 16 * call.k_cache.stride[1];
  call.tokens = 3;
  const AppendKernargs wide = device.append(call);
  CHECK(wide.lanes_log2 == 8);
  CHECK(wide.token_step == 3);
  CHECK(wide.chunk_step == 64 * 256);
  CHECK(device.hip.launch.grid == std::array<unsigned, 3>{3, 64, 1});
  call.tokens = 1000; // 304 * 16 / 64 at a time
  CHECK(device.append(call).token_step == 76);
}

// K, V or Q of a step.
#define SLUICE_SECTION_PASSED(section, to, to_type, head_count, head_dim, tail, pack)                        \
  PASSES(c.section.data, a.section.rows), PASSES(c.to.data, a.section.out),                                  \
      PASSES(c.section.stride[1], a.section.token_stride),                                                   \
      PASSES(c.section.stride[2], a.section.head_stride), CACHE_STRIDES(c.to, to_type, section.out_),        \
      FOLLOWS(c.tokens *(head_count), a.section.row_count), FOLLOWS(head_count, a.section.heads),            \
      DIVIDES_BY(head_count, section.heads_), FOLLOWS(head_dim / 8, a.section.chunks),                       \
      FOLLOWS((head_dim - tail) / 8, a.section.body_chunks), FOLLOWS(pack / 8, a.section.pack_chunks),       \
      DIVIDES_BY(pack / 8, section.pack_), FOLLOWS(1.0f / float(head_dim - tail), a.section.row_inverse)
#define SLUICE_SCALES_PASSED(side)                                                                           \
  PASSES(either(c.side##_scale, c.side##_scales.data), a.side.scale),                                        \
      PASSES(c.side##_zeros.data, a.side.zeros),                                                             \
      PASSES(c.side##_scales.stride[0], a.side.scale_page_stride),                                           \
      FOLLOWS(c.side##_scales.stride[1], a.side.scale_row_stride),                                           \
      FOLLOWS(c.side##_scale_kind == SLUICE_SCALE_PER_HEAD ? 1 : c.side##_scales.stride[2],                  \
              a.side.scale_head_stride)
#define SLUICE_TAIL_PASSED(section)                                                                          \
  PASSES(c.section##_tail.data, a.section.tail),                                                             \
      PASSES(c.section##_tail.stride[1], a.section.tail_token_stride),                                       \
      PASSES(c.section##_tail.stride[2], a.section.tail_head_stride),                                        \
      PASSES(c.section##_norm, a.section.norm)

TEST_CASE("a step: each member reaches its own argument", "[cache_ops]") {
  static const Passed<sluice_append, StepKernargs> table[] = {
      SLUICE_SECTION_PASSED(k, k_cache, c.cache_type, c.kv_heads, c.head_dim_qk, c.tail_dim,
                            (c.k_pack != 0 ? c.k_pack : c.head_dim_qk)),
      SLUICE_SECTION_PASSED(v, v_cache, c.cache_type, c.kv_heads, c.head_dim_v, 0, c.head_dim_v),
      SLUICE_SECTION_PASSED(q, q_out, c.source_type, c.q_heads, c.head_dim_qk, c.tail_dim, c.head_dim_qk),
      SLUICE_SCALES_PASSED(k),
      SLUICE_SCALES_PASSED(v),
      SLUICE_TAIL_PASSED(k),
      SLUICE_TAIL_PASSED(q),
      PASSES(c.slots, a.slots),
      PASSES(c.page_size, a.places.page_size),
      PASSES(c.rotary, a.rotary),
      PASSES(c.positions, a.positions),
      PASSES(c.rotary_stride, a.rotary_stride),
      PASSES(c.norm_epsilon, a.norm_epsilon)};
  // Into FP8, with tails, norms, Q elsewhere, and scales of heads and of pages.
  sluice_append fp8 = spread_slots_append();
  fp8.k_scale_kind = SLUICE_SCALE_PER_HEAD;
  fp8.v_scale_kind = SLUICE_SCALE_PER_PAGE;
  fp8.v_scale = nullptr;
  fp8.v_scales = {device_memory + 40, {7, 0, 2, 1}};
  fp8.tail_dim = fp8.rotary_dim = 48;
  fp8.rotary_first = 80;
  fp8.k_tail = {device_memory + 80, {0, 168, 56, 1}};
  fp8.q_heads = 4;
  fp8.q = {device_memory + 96, {0, 512, 88, 1}};
  fp8.q_tail = {device_memory + 112, {0, 424, 104, 1}};
  fp8.q_out = {device_memory + 128, {656, 640, 144, 1}};
  fp8.q_norm = device_memory + 100;
  fp8.k_norm = device_memory + 104;
  fp8.norm_epsilon = 0.25f;
  // The same into groups of U4 with zero points.
  sluice_append groups = fp8;
  groups.flags = SLUICE_ZERO_POINTS;
  groups.cache_type = SLUICE_U4;
  groups.k_scale_kind = groups.v_scale_kind = SLUICE_SCALE_PER_GROUP;
  groups.k_scale = nullptr;
  groups.scale_group = 32;
  groups.k_pack = 0;
  groups.k_cache = {fp8.k_cache.data, {32768, 832, 192, 1}};
  groups.v_cache = {fp8.v_cache.data, {16384, 416, 128, 1}};
  groups.k_scales = {device_memory + 2, {16 * 18, 18, 6, 1}};
  groups.v_scales = {device_memory + 6, {16 * 14, 14, 5, 1}};
  groups.k_zeros = {device_memory + 10, {16 * 18, 18, 6, 1}};
  groups.v_zeros = {device_memory + 14, {16 * 14, 14, 5, 1}};
  CacheOpDevice device;
  check_passed(table, {fp8, groups}, [&](const sluice_append &call) { return device.step(call); });
}

TEST_CASE("a step: sections of K, V and Q", "[cache_ops]") {
  CacheOpDevice device;
  sluice_append call = good_step();
  StepKernargs out = device.step(call);
  // 8 chunks of the body and 8 of the tail, all of which are rotated: 4 lanes have two of the tail, 4 two of
  // the body.
  CHECK(out.k.rotary_half == 4);
  CHECK(out.k.lane_chunks == 8);
  CHECK(out.k.lanes_log2 == 3);
  CHECK(out.v.rotary_half == 0);
  CHECK(out.v.lane_chunks == 4);
  CHECK(out.v.lanes_log2 == 2);
  // Rows of Q are whole, so their tails follow 64 elements of 2 bytes.
  CHECK(out.q.tail == as_bits(call.q.data) + 128);
  CHECK(out.q.tail_token_stride == 512);
  CHECK(out.q.tail_head_stride == 128);
  CHECK(out.q.rotary_half == 4);
  CHECK(out.q.lane_chunks == 8);
  CHECK(out.rotary_sin == as_bits(call.rotary_sin));
  CHECK(out.rotary_first == 8);
  CHECK(out.rotary_type == SLUICE_BF16);
  CHECK(out.modes == sluice::package::step_norm_is_f32);
  CHECK(out.places.page_table_entries == 7);
  CHECK(out.places.search_steps == 2);
  // 32, 64 and 32 rows of K, V and Q per workgroup.
  CHECK(out.k.first_group == 0);
  CHECK(out.v.first_group == 1);
  CHECK(out.q.first_group == 2);
  CHECK(out.k.groups == 1);
  CHECK(out.v.groups == 1);
  CHECK(out.q.groups == 1);
  CHECK(device.hip.launch.grid == std::array<unsigned, 3>{3, 1, 1});

  call.rotary_sin = nullptr;
  call.rotary_style = SLUICE_ROTARY_PAIRS;
  call.norm_type = SLUICE_F16;
  out = device.step(call);
  CHECK(out.rotary_sin == as_bits(call.rotary) + 64); // 32 cosines of 2 bytes
  CHECK(out.modes == sluice::package::step_rotary_pairs);
}

TEST_CASE("each member since ABI 1.1 makes an append a step", "[cache_ops]") {
  CacheOpDevice device;
  const sluice_append plain = good_table_append();
  device.append(plain);
  const auto is_step = [&](auto change) {
    sluice_append call = plain;
    change(call);
    return device.step(call);
  };
  const StepKernargs tables = is_step([](sluice_append &a) { a.rotary_type = SLUICE_F16; });
  CHECK(tables.rotary_type == SLUICE_F16);
  CHECK(tables.q.first_group == 2); // no workgroup for Q
  CHECK(device.hip.launch.grid[0] == 2);
  is_step([](sluice_append &a) { a.rotary_first = 8; });
  CHECK(is_step([](sluice_append &a) { a.rotary_sin = device_memory; }).rotary_type == SLUICE_F32);
  is_step([](sluice_append &a) { a.k_norm = device_memory; });
  is_step([](sluice_append &a) { a.k_tail = a.k, a.tail_dim = 8; });
  is_step([](sluice_append &a) { a.q = a.q_out = a.k, a.q_heads = 2; });
  const StepKernargs one = is_step([](sluice_append &a) {
    a.k_norm = device_memory;
    a.flags = SLUICE_V_IN_K;
    a.head_dim_v = 0;
    a.v = a.v_cache = {};
  });
  CHECK(one.v.first_group == 1);
  CHECK(one.q.first_group == 1);
  CHECK(device.hip.launch.grid[0] == 1);
  // F32 by name is what tables are anyway.
  sluice_append call = plain;
  call.rotary_type = SLUICE_F32;
  device.append(call);
  call = good_fp8_append();
  call.k_norm = device_memory;
  CHECK(device.step(call).k.scale_source == 0);
}

TEST_CASE("scales per token and per page", "[cache_ops]") {
  CacheOpDevice device;
  sluice_append call = good_scales();
  const StepKernargs out = device.step(call);
  CHECK(out.k.scale_source == uint32_t(sluice::package::ScaleSource::computed));
  CHECK(out.v.scale_row_stride == 0); // of a page
  CHECK(out.v.scale_source == uint32_t(sluice::package::ScaleSource::page));
  // Each of the three makes an append a step.
  call = good_append();
  call.cache_type = SLUICE_E5M2FNUZ;
  CHECK(device.step(call).k.scale == 0);
  call.cache_type = SLUICE_E4M3FNUZ;
  device.append(call);
  call.v_scale_kind = SLUICE_SCALE_PER_PAGE;
  call.v_scales = good_scales().v_scales;
  device.step(call);
}

TEST_CASE("V by columns", "[cache_ops]") {
  CacheOpDevice device;
  sluice_append call = good_columns();
  const StepKernargs packs = device.step(call);
  CHECK(packs.modes == sluice::package::step_v_columns);
  CHECK(packs.v_pack_log2 == 3);
  CHECK(packs.v_pack_mask == 7);
  call.v_pack = SLUICE_V_PACK_ALL;
  call.v_cache.stride[1] = 1;
  call.v_cache.stride[3] = 32;
  call.v_cache.stride[2] = 64 * 32;
  const StepKernargs whole = device.step(call);
  CHECK(whole.modes == sluice::package::step_v_columns);
  CHECK(whole.v_pack_log2 == 0);
  CHECK(whole.v_pack_mask == 0);
}

TEST_CASE("caches of blocks and of groups", "[cache_ops]") {
  CacheOpDevice device;
  sluice_append call = good_blocks();
  const StepKernargs blocks = device.step(call);
  // Strides in bytes: 18 for 32 elements.
  CHECK(blocks.k.out_row_stride == 256 / 32 * 18);
  // 4 lanes for 8 rotated chunks, and 4 for the others.
  CHECK(blocks.k.lane_chunks == 8);
  CHECK(blocks.v.lane_chunks == 4);
  CHECK(blocks.modes == 0);
  // Halves of 16 elements, and 16 elements before them, are not whole blocks.
  call.rotary_dim = 32;
  CHECK(device.step(call).modes == sluice::package::step_regroups);
  CHECK(device.step(call).k.lane_chunks == 8); // of 16 chunks, two each
  CHECK(device.step(call).v.lane_chunks == 4);
  call.rotary_dim = 64;
  call.rotary_first = 16;
  CHECK(device.step(call).modes == sluice::package::step_regroups);
  CHECK(device.step(call).rotary_first == 2);
  call.rotary_first = 0;
  // A row of 12 chunks needs 6 lanes, but the chunks of a block are in four neighbours.
  call.rotary_dim = 0;
  call.rotary = nullptr;
  call.rotary_stride = 0;
  call.head_dim_qk = 96;
  CHECK(device.step(call).k.lane_chunks == 8);
  call.cache_type = SLUICE_I8;
  call.k_cache.data = call.v_cache.data = device_memory + 32;
  CHECK(device.step(call).k.lane_chunks == 6);

  call = good_groups();
  const StepKernargs groups = device.step(call);
  CHECK(groups.modes == 0);
  CHECK(groups.v.lane_chunks == 4);
  call.scale_group = 64;
  CHECK(device.step(call).modes == sluice::package::step_wide_groups);
  CHECK(device.step(call).v.lane_chunks == 8); // the lanes of a group
}

TEST_CASE("a step fills the device a few times over and loops over the rest", "[cache_ops]") {
  CacheOpDevice device;
  sluice_append call = good_step();
  // 304 compute units, 16 workgroups each, for each section; 32 rows of Q per workgroup, 4 rows per token.
  call.tokens = 304 * 16 * 8;
  CHECK(device.step(call).q.groups == 304 * 16);
  call.tokens += 1;
  CHECK(device.step(call).q.groups == 304 * 16);
  CHECK(device.step(call).k.groups == 304 * 8 + 1);
}

TEST_CASE("an append has at least one workgroup", "[cache_ops]") {
  FakeHip hip;
  hip.attributes[63] = 1; // compute unit
  const ContextHandle context = cache_op_context();
  sluice_append call = good_append();
  // 16 workgroups; K and V take 32 for the chunks of a token.
  call.kv_heads = 16 * 256 / 16;
  for (sluice_tensor *rows : {&call.k, &call.k_cache, &call.v, &call.v_cache})
    rows->stride[1] = int64_t{call.kv_heads} * rows->stride[2];
  call.k_cache.stride[0] = 16 * call.k_cache.stride[1];
  call.v_cache.stride[0] = 16 * call.v_cache.stride[1];
  REQUIRE(sluice_kv_append(context.get(), &call, nullptr, nullptr) == SLUICE_OK);
  CHECK(hip.launch.grid[0] == 1);
  CHECK(hip.launch.grid[1] * hip.launch.grid[2] == 32);
}
