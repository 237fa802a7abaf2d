//===- append_arguments_test.cpp - the kernel arguments of appends --------------------------------------===//
#include "cache_op_device.h"
#include "support/passed_members.h"

using namespace sluice::test;
using sluice::package::AppendKernargs;
using sluice::package::StepKernargs;

namespace {

/// By CSR, into an x-packed cache of FP8; every number is another.
AppendCall spread_append() {
  AppendCall call = good_fp8_append();
  call.cache.format.kv_heads = 3;
  call.cache.format.k.pack = 32;
  call.args.k.stride[1] = 448, call.args.k.stride[2] = 136;
  call.args.v.stride[1] = 240, call.args.v.stride[2] = 72;
  call.cache.kv.k = {call.cache.kv.k.data, {7168, 32, 2208, 544}};
  call.cache.kv.v = {call.cache.kv.v.data, {4352, 264, 80, 1}};
  call.cache.scales.v.data = device_memory + 40;
  call.rotation.stride = 67;
  call.cache.kv.page_count = 1000;
  return call;
}
/// By slots, with positions and scales of the other kinds.
AppendCall spread_slots_append() {
  AppendCall call = spread_append();
  call.cache.format.flags = 0;
  call.args.batch = 0;
  call.args.slots = good_append().args.slots;
  call.args.starts = call.args.lengths = nullptr;
  call.args.pages = {};
  call.args.positions = at_byte<int32_t>(44);
  call.rotation.style = SLUICE_ROTARY_PAIRS;
  call.cache.format.k.scale_kind = SLUICE_SCALE_PER_TENSOR;
  call.cache.format.v.scale_kind = SLUICE_SCALE_PER_HEAD;
  return call;
}

/// The kind of the page table, if the call uses it.
uint32_t page_source(const AppendCall &call) {
  return call.args.starts != nullptr ? call.cache.format.page_table : uint32_t{SLUICE_PAGE_TABLE_NONE};
}
bool has_scales_of_heads(const sluice_format &format) {
  return format.scale_kind == SLUICE_SCALE_PER_HEAD;
}

} // namespace

// K or V of an append.
#define SLUICE_SIDE_PASSED(side, head_dim, pack)                                                             \
  PASSES(c.args.side.data, a.side.rows), PASSES(c.cache.kv.side.data, a.side.cache),                         \
      PASSES(c.cache.scales.side.data, a.side.scale), PASSES(c.args.side.stride[1], a.side.token_stride),    \
      PASSES(c.args.side.stride[2], a.side.head_stride),                                                     \
      CACHE_STRIDES(c.cache.kv.side, c.cache.format.k.type, side.cache_),                                    \
      FOLLOWS(c.cache.format.kv_heads *(head_dim / 8), a.side.chunks),                                       \
      FOLLOWS(head_dim / 8, a.side.head_chunks), DIVIDES_BY(head_dim / 8, side.head_),                       \
      FOLLOWS(pack / 8, a.side.pack_chunks), DIVIDES_BY(pack / 8, side.pack_),                               \
      FOLLOWS(has_scales_of_heads(c.cache.format.side), a.side.scale_stride)

TEST_CASE("an append: each member reaches its own argument", "[cache_ops]") {
  static const Passed<AppendCall, AppendKernargs> table[] = {
      SLUICE_SIDE_PASSED(k, c.cache.format.head_dim_qk, c.cache.format.k.pack),
      SLUICE_SIDE_PASSED(v, c.cache.format.head_dim_v, c.cache.format.head_dim_v),
      PASSES(c.args.slots, a.slots),
      PASSES(c.args.starts, a.places.starts),
      PASSES(c.args.lengths, a.places.kv_lengths),
      PASSES(c.args.pages.table, a.places.page_table),
      PASSES(c.args.pages.starts, a.places.page_starts),
      PASSES(c.cache.kv.page_count, a.places.page_count),
      PASSES(c.cache.format.page_size, a.places.page_size),
      PASSES(c.args.batch, a.places.batch),
      PASSES(c.rotation.cosines, a.rotary),
      PASSES(c.args.positions, a.positions),
      PASSES(c.rotation.stride, a.rotary_stride),
      PASSES(c.args.tokens, a.tokens),
      PASSES(c.rotation.dim, a.rotary_dim),
      DIVIDES_BY(c.cache.format.page_size, places.page_),
      FOLLOWS(page_source(c), a.places.page_source),
      FOLLOWS((c.cache.format.flags & SLUICE_KV_PAGE_INDEX_64) != 0, a.places.page_index_64),
      FOLLOWS(c.rotation.style == SLUICE_ROTARY_PAIRS, a.rotary_pairs)};
  CacheOpDevice device;
  check_passed(table, {spread_append(), spread_slots_append()},
               [&](const AppendCall &call) { return device.append(call); });
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

  AppendCall call = good_table_append();
  const AppendKernargs block = device.append(call);
  CHECK(block.places.page_source == uint32_t(sluice::package::PageSource::block_table));
  CHECK(block.places.page_table_stride == 7);
  CHECK(block.places.page_table_entries == 7);
  // 2^search_steps > batch + 1.
  CHECK(device.append(call).places.search_steps == 2);
  call.args.batch = 3;
  CHECK(device.append(call).places.search_steps == 3);
  call.args.batch = 6;
  CHECK(device.append(call).places.search_steps == 3);
  for (const int64_t count : {1, 2, 100}) {
    call.cache.kv.page_count = count;
    CHECK(device.append(call).places.page_count == uint64_t(count));
  }
  // A sequence's number of entries is unknown for one sequence, and if all have the same number.
  call.args.batch = 1;
  CHECK(device.append(call).places.page_table_entries == INT64_MAX);
  call.args.batch = 2;
  call.args.pages.stride = 1;
  CHECK(device.append(call).places.page_table_entries == 1);
  call.args.pages.stride = SLUICE_SHARED;
  CHECK(device.append(call).places.page_table_entries == INT64_MAX);
}

TEST_CASE("an append fills the device a few times over and loops over the rest", "[cache_ops]") {
  CacheOpDevice device;
  AppendCall call = good_append();
  // 304 compute units, 16 workgroups each, for K and for V; 8 rows per workgroup.
  call.args.tokens = 304 * 8 * 8;
  CHECK(device.append(call).token_step == 304 * 8 * 8);
  CHECK(device.hip.launch.grid == std::array<unsigned, 3>{304 * 8, 1, 2});
  call.args.tokens += 1;
  CHECK(device.append(call).token_step == 304 * 8 * 8);
  CHECK(device.hip.launch.grid == std::array<unsigned, 3>{304 * 8, 1, 2});
  put_v_in_k(call);
  CHECK(device.append(call).v.rows == 0);
  CHECK(device.hip.launch.grid == std::array<unsigned, 3>{304 * 8 + 1, 1, 1});
  // Wide rows: 65 times 256 lanes for chunks are 64 workgroups and a second round.
  call.cache.format.kv_heads = 65 * 256 / 16;
  call.args.k.stride[1] = call.cache.kv.k.stride[1] = int64_t{call.cache.format.kv_heads} * 128;
  call.cache.kv.k.stride[0] = 16 * call.cache.kv.k.stride[1];
  call.args.tokens = 3;
  const AppendKernargs wide = device.append(call);
  CHECK(wide.lanes_log2 == 8);
  CHECK(wide.token_step == 3);
  CHECK(wide.chunk_step == 64 * 256);
  CHECK(device.hip.launch.grid == std::array<unsigned, 3>{3, 64, 1});
  call.args.tokens = 1000; // 304 * 16 / 64 at a time
  CHECK(device.append(call).token_step == 76);
}

// K, V or Q of a step.
#define SLUICE_SECTION_PASSED(section, from, to, to_type, head_count, head_dim, tail, pack)                  \
  PASSES(c.from.data, a.section.rows), PASSES(c.to.data, a.section.out),                                     \
      PASSES(c.from.stride[1], a.section.token_stride), PASSES(c.from.stride[2], a.section.head_stride),     \
      CACHE_STRIDES(c.to, to_type, section.out_), FOLLOWS(c.args.tokens *(head_count), a.section.row_count), \
      FOLLOWS(head_count, a.section.heads), DIVIDES_BY(head_count, section.heads_),                          \
      FOLLOWS(head_dim / 8, a.section.chunks), FOLLOWS((head_dim - tail) / 8, a.section.body_chunks),        \
      FOLLOWS(pack / 8, a.section.pack_chunks), DIVIDES_BY(pack / 8, section.pack_),                         \
      FOLLOWS(1.0f / float(head_dim - tail), a.section.row_inverse)
#define SLUICE_SCALES_PASSED(side)                                                                           \
  PASSES(c.cache.scales.side.data, a.side.scale), PASSES(c.cache.scales.side##_zeros.data, a.side.zeros),    \
      PASSES(c.cache.scales.side.stride[0], a.side.scale_page_stride),                                       \
      FOLLOWS(c.cache.scales.side.stride[1], a.side.scale_row_stride),                                       \
      FOLLOWS(has_scales_of_heads(c.cache.format.side) ? 1 : c.cache.scales.side.stride[2],                  \
              a.side.scale_head_stride)
#define SLUICE_TAIL_PASSED(section, from, weights)                                                           \
  PASSES(c.from.data, a.section.tail), PASSES(c.from.stride[1], a.section.tail_token_stride),                \
      PASSES(c.from.stride[2], a.section.tail_head_stride), PASSES(c.weights, a.section.norm)

TEST_CASE("a step: each member reaches its own argument", "[cache_ops]") {
  static const Passed<AppendCall, StepKernargs> table[] = {
      SLUICE_SECTION_PASSED(
          k, args.k, cache.kv.k, c.cache.format.k.type, c.cache.format.kv_heads, c.cache.format.head_dim_qk,
          c.args.tail_dim, (c.cache.format.k.pack != 0 ? c.cache.format.k.pack : c.cache.format.head_dim_qk)),
      SLUICE_SECTION_PASSED(v, args.v, cache.kv.v, c.cache.format.k.type, c.cache.format.kv_heads,
                            c.cache.format.head_dim_v, 0, c.cache.format.head_dim_v),
      SLUICE_SECTION_PASSED(q, q.q, q.out, c.args.source_type, c.q.heads, c.cache.format.head_dim_qk,
                            c.args.tail_dim, c.cache.format.head_dim_qk),
      SLUICE_SCALES_PASSED(k),
      SLUICE_SCALES_PASSED(v),
      SLUICE_TAIL_PASSED(k, args.k_tail, k_norm.weights),
      SLUICE_TAIL_PASSED(q, q.tail, q_norm.weights),
      PASSES(c.args.slots, a.slots),
      PASSES(c.cache.format.page_size, a.places.page_size),
      PASSES(c.rotation.cosines, a.rotary),
      PASSES(c.args.positions, a.positions),
      PASSES(c.rotation.stride, a.rotary_stride),
      PASSES(c.k_norm.epsilon, a.norm_epsilon)};
  // Into FP8, with tails, norms, Q elsewhere, and scales of heads and of pages.
  AppendCall fp8 = spread_slots_append();
  fp8.cache.format.k.scale_kind = SLUICE_SCALE_PER_HEAD;
  fp8.cache.format.v.scale_kind = SLUICE_SCALE_PER_PAGE;
  fp8.cache.scales.v = {device_memory + 40, {7, 0, 2, 1}};
  fp8.args.tail_dim = fp8.rotation.dim = 48;
  fp8.rotation.first = 80;
  fp8.args.k_tail = {device_memory + 80, {0, 168, 56, 1}};
  fp8.q.heads = 4;
  fp8.q.q = {device_memory + 96, {0, 512, 88, 1}};
  fp8.q.tail = {device_memory + 112, {0, 424, 104, 1}};
  fp8.q.out = {device_memory + 128, {656, 640, 144, 1}};
  fp8.q_norm.weights = device_memory + 100;
  fp8.k_norm.weights = device_memory + 104;
  fp8.q_norm.type = fp8.k_norm.type = SLUICE_F16;
  fp8.q_norm.epsilon = fp8.k_norm.epsilon = 0.25f;
  fp8.q.norm = &fp8.q_norm;
  fp8.args.k_norm = &fp8.k_norm;
  fp8.args.q = &fp8.q;
  // The same into groups of U4 with zero points.
  AppendCall groups = fp8;
  set_groups(groups.cache);
  groups.cache.format.k.pack = 0;
  groups.cache.kv.k = {fp8.cache.kv.k.data, {32768, 832, 192, 1}};
  groups.cache.kv.v = {fp8.cache.kv.v.data, {16384, 416, 128, 1}};
  groups.cache.scales.k = {device_memory + 2, {16 * 18, 18, 6, 1}};
  groups.cache.scales.v = {device_memory + 6, {16 * 14, 14, 5, 1}};
  groups.cache.scales.k_zeros = {device_memory + 10, {16 * 18, 18, 6, 1}};
  groups.cache.scales.v_zeros = {device_memory + 14, {16 * 14, 14, 5, 1}};
  CacheOpDevice device;
  check_passed(table, {fp8, groups}, [&](const AppendCall &call) { return device.step(call); });
}

TEST_CASE("a step: sections of K, V and Q", "[cache_ops]") {
  CacheOpDevice device;
  AppendCall call = good_step();
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
  CHECK(out.q.tail == as_bits(call.q.q.data) + 128);
  CHECK(out.q.tail_token_stride == 512);
  CHECK(out.q.tail_head_stride == 128);
  CHECK(out.q.rotary_half == 4);
  CHECK(out.q.lane_chunks == 8);
  CHECK(out.rotary_sin == as_bits(call.rotation.sines));
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

  call.rotation.sines = nullptr;
  call.rotation.style = SLUICE_ROTARY_PAIRS;
  call.k_norm.type = call.q_norm.type = SLUICE_F16;
  out = device.step(call);
  CHECK(out.rotary_sin == as_bits(call.rotation.cosines) + 64); // 32 cosines of 2 bytes
  CHECK(out.modes == sluice::package::step_rotary_pairs);
}

TEST_CASE("each thing that an append does beyond storing makes it a step", "[cache_ops]") {
  CacheOpDevice device;
  const AppendCall plain = good_table_append();
  device.append(plain);
  const auto is_step = [&](auto change) {
    AppendCall call = plain;
    change(call);
    return device.step(call);
  };
  const auto add_norm = [](AppendCall &a) {
    a.k_norm.type = SLUICE_F16;
    a.k_norm.weights = device_memory;
    a.args.k_norm = &a.k_norm;
  };
  const StepKernargs tables = is_step([](AppendCall &a) { a.rotation.type = SLUICE_F16; });
  CHECK(tables.rotary_type == SLUICE_F16);
  CHECK(tables.q.first_group == 2); // no workgroup for Q
  CHECK(device.hip.launch.grid[0] == 2);
  is_step([](AppendCall &a) { a.rotation.first = 8; });
  CHECK(is_step([](AppendCall &a) { a.rotation.sines = device_memory; }).rotary_type == SLUICE_F32);
  is_step(add_norm);
  is_step([](AppendCall &a) { a.args.k_tail = a.args.k, a.args.tail_dim = 8; });
  is_step([](AppendCall &a) { a.q.q = a.q.out = a.args.k, a.q.heads = 2, a.args.q = &a.q; });
  const StepKernargs one = is_step([&](AppendCall &a) {
    add_norm(a);
    put_v_in_k(a);
  });
  CHECK(one.v.first_group == 1);
  CHECK(one.q.first_group == 1);
  CHECK(device.hip.launch.grid[0] == 1);
  AppendCall call = good_fp8_append();
  add_norm(call);
  CHECK(device.step(call).k.scale_source == 0);
}

TEST_CASE("scales per token and per page", "[cache_ops]") {
  CacheOpDevice device;
  AppendCall call = good_scales();
  const StepKernargs out = device.step(call);
  CHECK(out.k.scale_source == uint32_t(sluice::package::ScaleSource::computed));
  CHECK(out.v.scale_row_stride == 0); // of a page
  CHECK(out.v.scale_source == uint32_t(sluice::package::ScaleSource::page));
  // Each of the three makes an append a step.
  call = good_append();
  set_types(call.cache, SLUICE_E5M2FNUZ);
  CHECK(device.step(call).k.scale == 0);
  set_types(call.cache, SLUICE_E4M3FNUZ);
  device.append(call);
  call.cache.format.v.scale_kind = SLUICE_SCALE_PER_PAGE;
  call.cache.scales.v = good_scales().cache.scales.v;
  device.step(call);
}

TEST_CASE("V by columns", "[cache_ops]") {
  CacheOpDevice device;
  AppendCall call = good_columns();
  const StepKernargs packs = device.step(call);
  CHECK(packs.modes == sluice::package::step_v_columns);
  CHECK(packs.v_pack_log2 == 3);
  CHECK(packs.v_pack_mask == 7);
  call.cache.format.v.pack = SLUICE_PACK_ALL;
  call.cache.kv.v.stride[1] = 1;
  call.cache.kv.v.stride[3] = 32;
  call.cache.kv.v.stride[2] = 64 * 32;
  const StepKernargs whole = device.step(call);
  CHECK(whole.modes == sluice::package::step_v_columns);
  CHECK(whole.v_pack_log2 == 0);
  CHECK(whole.v_pack_mask == 0);
}

TEST_CASE("caches of blocks and of groups", "[cache_ops]") {
  CacheOpDevice device;
  AppendCall call = good_blocks();
  const StepKernargs blocks = device.step(call);
  // Strides in bytes: 18 for 32 elements.
  CHECK(blocks.k.out_row_stride == 256 / 32 * 18);
  // 4 lanes for 8 rotated chunks, and 4 for the others.
  CHECK(blocks.k.lane_chunks == 8);
  CHECK(blocks.v.lane_chunks == 4);
  CHECK(blocks.modes == 0);
  // Halves of 16 elements, and 16 elements before them, are not whole blocks.
  call.rotation.dim = 32;
  CHECK(device.step(call).modes == sluice::package::step_regroups);
  CHECK(device.step(call).k.lane_chunks == 8); // of 16 chunks, two each
  CHECK(device.step(call).v.lane_chunks == 4);
  call.rotation.dim = 64;
  call.rotation.first = 16;
  CHECK(device.step(call).modes == sluice::package::step_regroups);
  CHECK(device.step(call).rotary_first == 2);
  call.rotation.first = 0;
  // A row of 12 chunks needs 6 lanes, but the chunks of a block are in four neighbours.
  call.args.rotation = nullptr;
  call.cache.format.head_dim_qk = 96;
  CHECK(device.step(call).k.lane_chunks == 8);
  set_types(call.cache, SLUICE_I8);
  call.cache.kv.k.data = call.cache.kv.v.data = device_memory + 32;
  CHECK(device.step(call).k.lane_chunks == 6);

  call = good_groups();
  const StepKernargs groups = device.step(call);
  CHECK(groups.modes == 0);
  CHECK(groups.v.lane_chunks == 4);
  call.cache.format.k.scale_group = call.cache.format.v.scale_group = 64;
  CHECK(device.step(call).modes == sluice::package::step_wide_groups);
  CHECK(device.step(call).v.lane_chunks == 8); // the lanes of a group
}

TEST_CASE("a step fills the device a few times over and loops over the rest", "[cache_ops]") {
  CacheOpDevice device;
  AppendCall call = good_step();
  // 304 compute units, 16 workgroups each, for each section; 32 rows of Q per workgroup, 4 rows per token.
  call.args.tokens = 304 * 16 * 8;
  CHECK(device.step(call).q.groups == 304 * 16);
  call.args.tokens += 1;
  CHECK(device.step(call).q.groups == 304 * 16);
  CHECK(device.step(call).k.groups == 304 * 8 + 1);
}

TEST_CASE("an append has at least one workgroup", "[cache_ops]") {
  FakeHip hip;
  hip.attributes[63] = 1; // compute unit
  const ContextHandle context = cache_op_context();
  AppendCall call = good_append();
  // 16 workgroups; K and V take 32 for the chunks of a token.
  call.cache.format.kv_heads = 16 * 256 / 16;
  for (sluice_tensor *rows : {&call.args.k, &call.cache.kv.k, &call.args.v, &call.cache.kv.v})
    rows->stride[1] = int64_t{call.cache.format.kv_heads} * rows->stride[2];
  call.cache.kv.k.stride[0] = 16 * call.cache.kv.k.stride[1];
  call.cache.kv.v.stride[0] = 16 * call.cache.kv.v.stride[1];
  REQUIRE(run(context, call) == SLUICE_OK);
  CHECK(hip.launch.grid[0] == 1);
  CHECK(hip.launch.grid[1] * hip.launch.grid[2] == 32);
}
