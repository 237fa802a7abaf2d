//===- cache_op_arguments_test.cpp - the kernel arguments of appends and merges -------------------------===//
#include "cache_op_fixture.h"
#include "split_fixture.h"

#include "package/cache_op_kernargs.h"

using namespace sluice::test;
using sluice::package::AppendKernargs;
using sluice::package::MergeKernargs;
using sluice::package::PageSource;
using sluice::package::StepKernargs;

namespace {

/// Workgroups and arguments of the last launch.
struct Launched {
  std::array<unsigned, 3> grid = {};
  std::vector<std::byte> arguments;
} last;

using LaunchKernel = int (*)(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                             void *, void **, void **);
int launch_kernel(void *function, unsigned x, unsigned y, unsigned z, unsigned block_x, unsigned block_y,
                  unsigned block_z, unsigned lds, void *stream, void **parameters, void **extra) {
  const auto *bytes = static_cast<const std::byte *>(extra[1]);
  last = {{x, y, z}, {bytes, bytes + *static_cast<size_t *>(extra[3])}};
  return reinterpret_cast<LaunchKernel>(FakeHip::resolve("hipModuleLaunchKernel", nullptr))(
      function, x, y, z, block_x, block_y, block_z, lds, stream, parameters, extra);
}

void *resolve(const char *name, void *user) {
  if (std::string(name) == "hipModuleLaunchKernel") return reinterpret_cast<void *>(&launch_kernel);
  return FakeHip::resolve(name, user);
}

/// With kernels for every call in this file.
class Device {
public:
  AppendKernargs append(const sluice_append &call) { return run<AppendKernargs>(call, sluice_kv_append); }
  StepKernargs step(const sluice_append &call) { return run<StepKernargs>(call, sluice_kv_append); }
  MergeKernargs merge(const sluice_merge &call) { return run<MergeKernargs>(call, sluice_merge_states); }

private:
  template <typename Kernargs, typename Call, typename Run> Kernargs run(const Call &call, Run enqueue) {
    Error error;
    const sluice_status status = enqueue(context.get(), &call, nullptr, &error);
    INFO(error.message);
    REQUIRE(status == SLUICE_OK);
    REQUIRE(last.arguments.size() == sizeof(Kernargs));
    Kernargs arguments;
    std::memcpy(&arguments, last.arguments.data(), sizeof arguments);
    return arguments;
  }

  FakeHip hip;
  std::vector<std::byte> pack = [] {
    sluice::package::PackWriter writer("test", "22.1.8");
    add_fake_kernel(writer, cache_op_entry("kv_append", "f16", "f16"));
    add_fake_kernel(writer, cache_op_entry("kv_append", "f16", "e4m3fnuz"));
    add_fake_kernel(writer, cache_op_entry("append_step", "f16", "f16"));
    add_fake_kernel(writer, cache_op_entry("append_step", "f16", "e4m3fnuz"));
    for (const char *to : {"e5m2fnuz", "i8", "q4_0", "u4"})
      add_fake_kernel(writer, cache_op_entry("append_step", "f16", to));
    add_fake_kernel(writer, cache_op_entry("merge_states", "f32", "f16"));
    add_fake_kernel(writer, cache_op_entry("merge_states", "f32", "e4m3fnuz"));
    add_fake_kernel(writer, cache_op_entry("merge_states", "f16", "f16"));
    return writer.finish();
  }();
  ContextHandle context = [this] {
    sluice_context_desc desc = context_desc(SLUICE_DEVICE_HIP, pack);
    desc.hip_resolver = resolve;
    return make_context(desc);
  }();
};

uint64_t address_of(const void *pointer) {
  return reinterpret_cast<uint64_t>(pointer);
}

/// The kernel's form of the numbers: support/divisor.h.
uint32_t divided(uint32_t value, uint32_t magic, uint32_t shift) {
  return uint32_t(uint64_t{2 * value} * magic >> 32) >> shift;
}

/// lanes_log2, slots_log2, slot_place and groups_log2 of a merge.
std::array<uint32_t, 4> division(const MergeKernargs &arguments) {
  const uint32_t all = arguments.lane_division;
  return {all & 255, all >> 8 & 255, all >> 16 & 255, all >> 24};
}

/// Parts and results without gaps.
sluice_merge dense_merge(int32_t parts, int32_t tokens, int32_t heads, int32_t dim) {
  sluice_merge merge = good_merge();
  merge.parts = parts;
  merge.tokens = tokens;
  merge.heads = heads;
  merge.head_dim_v = dim;
  const int64_t rows = int64_t{tokens} * heads;
  merge.partial.stride[0] = rows * dim;
  merge.partial.stride[1] = merge.o.stride[1] = int64_t{heads} * dim;
  merge.partial.stride[2] = merge.o.stride[2] = dim;
  merge.partial_lse.stride[0] = rows;
  merge.partial_lse.stride[1] = merge.lse.stride[1] = heads;
  merge.partial_lse.stride[2] = merge.lse.stride[2] = 1;
  return merge;
}

} // namespace

TEST_CASE("an append by slots: rows, caches and the places of rows", "[cache_ops]") {
  Device device;
  const sluice_append call = good_append();
  const AppendKernargs out = device.append(call);
  CHECK(out.k_rows == address_of(call.k.data));
  CHECK(out.v_rows == address_of(call.v.data));
  CHECK(out.k_cache == address_of(call.k_cache.data));
  CHECK(out.v_cache == address_of(call.v_cache.data));
  CHECK(out.k_scale == 0);
  CHECK(out.k_token_stride == 256);
  CHECK(out.k_head_stride == 128);
  CHECK(out.v_token_stride == 128);
  CHECK(out.v_head_stride == 64);
  CHECK(out.k_cache_page_stride == 16 * 256);
  CHECK(out.k_cache_row_stride == 256);
  CHECK(out.k_cache_head_stride == 128);
  CHECK(out.v_cache_page_stride == 16 * 128);
  // Chunks of 8 elements: 16 of a head of K, 8 of V, two heads each; without packs a row is one.
  CHECK(out.k_chunks == 32);
  CHECK(out.k_head_chunks == 16);
  CHECK(out.k_pack_chunks == 16);
  CHECK(out.v_chunks == 16);
  CHECK(out.v_head_chunks == 8);
  CHECK(out.v_pack_chunks == 8);
  CHECK(divided(31, out.k_head_magic, out.k_head_shift) == 1);
  CHECK(divided(15, out.v_pack_magic, out.v_pack_shift) == 1);
  CHECK(out.slots == address_of(call.slots));
  CHECK(out.starts == 0);
  CHECK(out.page_source == uint32_t(PageSource::slots));
  CHECK(out.page_index_64 == 0);
  CHECK(out.page_size == 16);
  CHECK(out.page_magic != 0);
  CHECK(out.page_shift == 4);
  CHECK(out.tokens == 5);
  CHECK(out.page_count == uint64_t{1} << 63); // every number but a negative one
  CHECK(out.batch == 0);
  CHECK(out.search_steps == 1);
  CHECK(out.rotary_dim == 0);
  CHECK(out.rotary_pairs == 0);
  // 32 lanes for a row's chunks, 8 rows per workgroup: one workgroup for all 5 rows, for K and for V.
  CHECK(out.lanes_log2 == 5);
  CHECK(out.token_step == 8);
  CHECK(out.chunk_step == 32);
  CHECK(last.grid == std::array<unsigned, 3>{1, 1, 2});
}

TEST_CASE("an append by tables, rotated and scaled", "[cache_ops]") {
  Device device;
  sluice_append call = good_table_append();
  call.rotary_style = SLUICE_ROTARY_PAIRS;
  call.positions = reinterpret_cast<const int32_t *>(device_memory + 44);
  AppendKernargs out = device.append(call);
  CHECK(out.starts == address_of(call.starts));
  CHECK(out.kv_lengths == address_of(call.kv_lengths));
  CHECK(out.page_table == address_of(call.page_table));
  CHECK(out.page_table_stride == 7);
  CHECK(out.page_table_entries == 7);
  CHECK(out.page_source == uint32_t(PageSource::block_table));
  CHECK(out.rotary == address_of(call.rotary));
  CHECK(out.rotary_stride == 64);
  CHECK(out.rotary_dim == 64);
  CHECK(out.rotary_pairs == 1);
  CHECK(out.positions == address_of(call.positions));
  // 2^search_steps > batch + 1.
  CHECK(out.batch == 2);
  CHECK(out.search_steps == 2);
  call.batch = 3;
  CHECK(device.append(call).search_steps == 3);
  call.batch = 6;
  CHECK(device.append(call).search_steps == 3);
  for (const int64_t count : {1, 2, 100}) {
    call.page_count = count;
    CHECK(device.append(call).page_count == uint64_t(count));
  }
  // A sequence's number of entries is unknown for one sequence, and if all have the same number.
  call.batch = 1;
  CHECK(device.append(call).page_table_entries == INT64_MAX);
  call.batch = 2;
  call.page_table_stride = 1;
  CHECK(device.append(call).page_table_entries == 1);
  call.page_table_stride = 0;
  CHECK(device.append(call).page_table_entries == INT64_MAX);

  call = good_fp8_append();
  out = device.append(call);
  CHECK(out.page_source == uint32_t(PageSource::csr_table));
  CHECK(out.page_starts == address_of(call.page_starts));
  CHECK(out.page_index_64 == 1);
  CHECK(out.k_scale == address_of(call.k_scale));
  CHECK(out.v_scale == address_of(call.v_scale));
  CHECK(out.k_scale_stride == 1); // of every head separately
  CHECK(out.v_scale_stride == 0);
  CHECK(out.k_pack_chunks == 2);
  CHECK(out.k_cache_pack_stride == 16 * 16);
}

TEST_CASE("an append fills the device a few times over and loops over the rest", "[cache_ops]") {
  Device device;
  sluice_append call = good_append();
  // 304 compute units, 16 workgroups each, for K and for V; 8 rows per workgroup.
  call.tokens = 304 * 8 * 8;
  CHECK(device.append(call).token_step == 304 * 8 * 8);
  CHECK(last.grid == std::array<unsigned, 3>{304 * 8, 1, 2});
  call.tokens += 1;
  CHECK(device.append(call).token_step == 304 * 8 * 8);
  CHECK(last.grid == std::array<unsigned, 3>{304 * 8, 1, 2});
  call.flags = SLUICE_V_IN_K;
  call.head_dim_v = 0;
  call.v = call.v_cache = {};
  CHECK(device.append(call).v_rows == 0);
  CHECK(last.grid == std::array<unsigned, 3>{304 * 8 + 1, 1, 1});
  // Wide rows: 65 times 256 lanes for chunks are 64 workgroups and a second round.
  call.kv_heads = 65 * 256 / 16;
  call.k.stride[1] = call.k_cache.stride[1] = int64_t{call.kv_heads} * 128;
  call.k_cache.stride[0] = 16 * call.k_cache.stride[1];
  call.tokens = 3;
  const AppendKernargs wide = device.append(call);
  CHECK(wide.lanes_log2 == 8);
  CHECK(wide.token_step == 3);
  CHECK(wide.chunk_step == 64 * 256);
  CHECK(last.grid == std::array<unsigned, 3>{3, 64, 1});
  call.tokens = 1000; // 304 * 16 / 64 at a time
  CHECK(device.append(call).token_step == 76);
}

TEST_CASE("a step: sections of K, V and Q", "[cache_ops]") {
  Device device;
  sluice_append call = good_step();
  call.norm_epsilon = 0.25f;
  StepKernargs out = device.step(call);
  CHECK(out.k_rows == address_of(call.k.data));
  CHECK(out.k_tail == address_of(call.k_tail.data));
  CHECK(out.k_out == address_of(call.k_cache.data));
  CHECK(out.k_norm == address_of(call.k_norm));
  CHECK(out.k_scale == 0);
  CHECK(out.k_token_stride == 128);
  CHECK(out.k_head_stride == 64);
  CHECK(out.k_tail_token_stride == 64);
  CHECK(out.k_tail_head_stride == 0);
  CHECK(out.k_out_page_stride == 16 * 256);
  CHECK(out.k_out_row_stride == 256);
  CHECK(out.k_out_head_stride == 128);
  // 8 chunks of the body and 8 of the tail, all of which are rotated: 4 lanes have two of the tail, 4 two of
  // the body.
  CHECK(out.k_row_count == 10);
  CHECK(out.k_chunks == 16);
  CHECK(out.k_body_chunks == 8);
  CHECK(out.k_rotary_half == 4);
  CHECK(out.k_lane_chunks == 8);
  CHECK(out.k_lanes_log2 == 3);
  CHECK(out.k_pack_chunks == 16);
  CHECK(out.k_row_inverse == 1.0f / 64);
  CHECK(divided(9, out.k_heads_magic, out.k_heads_shift) == 4);
  CHECK(out.v_rows == address_of(call.v.data));
  CHECK(out.v_out == address_of(call.v_cache.data));
  CHECK(out.v_norm == 0);
  CHECK(out.v_chunks == 8);
  CHECK(out.v_body_chunks == 8);
  CHECK(out.v_rotary_half == 0);
  CHECK(out.v_lane_chunks == 4);
  CHECK(out.v_lanes_log2 == 2);
  // Rows of Q are whole, so their tails follow 64 elements of 2 bytes.
  CHECK(out.q_rows == address_of(call.q.data));
  CHECK(out.q_tail == address_of(call.q.data) + 128);
  CHECK(out.q_tail_token_stride == 512);
  CHECK(out.q_tail_head_stride == 128);
  CHECK(out.q_out == address_of(call.q_out.data));
  CHECK(out.q_out_page_stride == 0);
  CHECK(out.q_out_row_stride == 512);
  CHECK(out.q_heads == 4);
  CHECK(out.q_row_count == 20);
  CHECK(out.q_norm == address_of(call.q_norm));
  CHECK(out.rotary == address_of(call.rotary));
  CHECK(out.rotary_sin == address_of(call.rotary_sin));
  CHECK(out.rotary_first == 8);
  CHECK(out.rotary_type == SLUICE_BF16);
  CHECK(out.modes == sluice::package::step_norm_is_f32);
  CHECK(out.norm_epsilon == 0.25f);
  CHECK(out.page_table == address_of(call.page_table));
  CHECK(out.page_table_entries == 7);
  CHECK(out.search_steps == 2);
  // 32, 64 and 32 rows of K, V and Q per workgroup.
  CHECK(out.k_first_group == 0);
  CHECK(out.v_first_group == 1);
  CHECK(out.q_first_group == 2);
  CHECK(out.k_groups == 1);
  CHECK(out.v_groups == 1);
  CHECK(out.q_groups == 1);
  CHECK(last.grid == std::array<unsigned, 3>{3, 1, 1});

  call.q_tail = {device_memory + 112, {0, 256, 64, 1}};
  call.q.stride[1] = 256;
  call.q.stride[2] = 64;
  call.rotary_sin = nullptr;
  call.rotary_style = SLUICE_ROTARY_PAIRS;
  call.norm_type = SLUICE_F16;
  out = device.step(call);
  CHECK(out.q_tail == address_of(call.q_tail.data));
  CHECK(out.q_tail_token_stride == 256);
  CHECK(out.rotary_sin == address_of(call.rotary) + 64); // 32 cosines of 2 bytes
  CHECK(out.modes == sluice::package::step_rotary_pairs);
}

TEST_CASE("each member since ABI 1.1 makes an append a step", "[cache_ops]") {
  Device device;
  const sluice_append plain = good_table_append();
  device.append(plain);
  const auto is_step = [&](auto change) {
    sluice_append call = plain;
    change(call);
    return device.step(call);
  };
  const StepKernargs tables = is_step([](sluice_append &a) { a.rotary_type = SLUICE_F16; });
  CHECK(tables.rotary_type == SLUICE_F16);
  CHECK(tables.q_first_group == 2); // no workgroup for Q
  CHECK(last.grid[0] == 2);
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
  CHECK(one.v_first_group == 1);
  CHECK(one.q_first_group == 1);
  CHECK(last.grid[0] == 1);
  // F32 by name is what tables are anyway.
  sluice_append call = plain;
  call.rotary_type = SLUICE_F32;
  device.append(call);
  // Scales and packs.
  call = good_fp8_append();
  call.k_norm = device_memory;
  const StepKernargs out = device.step(call);
  CHECK(out.k_scale == address_of(call.k_scale));
  CHECK(out.v_scale == address_of(call.v_scale));
  CHECK(out.k_scale_head_stride == 1);
  CHECK(out.v_scale_head_stride == 0);
  CHECK(out.k_scale_page_stride == 0);
  CHECK(out.k_scale_source == 0);
  CHECK(out.k_pack_chunks == 2);
  CHECK(out.k_out_pack_stride == 16 * 16);
  CHECK(out.page_source == uint32_t(PageSource::csr_table));
}

TEST_CASE("scales per token and per page", "[cache_ops]") {
  Device device;
  sluice_append call = good_scales();
  const StepKernargs out = device.step(call);
  CHECK(out.k_scale == address_of(call.k_scales.data));
  CHECK(out.k_scale_page_stride == 32);
  CHECK(out.k_scale_row_stride == 2);
  CHECK(out.k_scale_head_stride == 1);
  CHECK(out.k_scale_source == uint32_t(sluice::package::ScaleSource::computed));
  CHECK(out.v_scale == address_of(call.v_scales.data));
  CHECK(out.v_scale_page_stride == 2);
  CHECK(out.v_scale_row_stride == 0);
  CHECK(out.v_scale_head_stride == 1);
  CHECK(out.v_scale_source == uint32_t(sluice::package::ScaleSource::page));
  // Each of the three makes an append a step.
  call = good_append();
  call.cache_type = SLUICE_E5M2FNUZ;
  CHECK(device.step(call).k_scale == 0);
  call.cache_type = SLUICE_E4M3FNUZ;
  device.append(call);
  call.v_scale_kind = SLUICE_SCALE_PER_PAGE;
  call.v_scales = good_scales().v_scales;
  device.step(call);
}

TEST_CASE("V by columns", "[cache_ops]") {
  Device device;
  sluice_append call = good_columns();
  const StepKernargs packs = device.step(call);
  CHECK(packs.modes == sluice::package::step_v_columns);
  CHECK(packs.v_pack_log2 == 3);
  CHECK(packs.v_pack_mask == 7);
  CHECK(packs.v_out_row_stride == 1024);
  CHECK(packs.v_out_head_stride == 512);
  CHECK(packs.v_out_pack_stride == 8);
  call.v_pack = SLUICE_V_PACK_ALL;
  call.v_cache.stride[1] = 1;
  call.v_cache.stride[3] = 32;
  call.v_cache.stride[2] = 64 * 32;
  const StepKernargs whole = device.step(call);
  CHECK(whole.modes == sluice::package::step_v_columns);
  CHECK(whole.v_pack_log2 == 0);
  CHECK(whole.v_pack_mask == 0);
  CHECK(whole.v_out_row_stride == 1);
  CHECK(whole.v_out_pack_stride == 32);
}

TEST_CASE("caches of blocks and of groups", "[cache_ops]") {
  Device device;
  sluice_append call = good_blocks();
  const StepKernargs blocks = device.step(call);
  // Strides in bytes: 18 for 32 elements.
  CHECK(blocks.k_out_page_stride == 16 * 256 / 32 * 18);
  CHECK(blocks.k_out_row_stride == 256 / 32 * 18);
  CHECK(blocks.v_out_head_stride == 64 / 32 * 18);
  CHECK(blocks.k_zeros == 0);
  // 4 lanes for 8 rotated chunks, and 4 for the others.
  CHECK(blocks.k_lane_chunks == 8);
  CHECK(blocks.v_lane_chunks == 4);
  CHECK(blocks.modes == 0);
  // Halves of 16 elements, and 16 elements before them, are not whole blocks.
  call.rotary_dim = 32;
  CHECK(device.step(call).modes == sluice::package::step_regroups);
  CHECK(device.step(call).k_lane_chunks == 8); // of 16 chunks, two each
  CHECK(device.step(call).v_lane_chunks == 4);
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
  CHECK(device.step(call).k_lane_chunks == 8);
  call.cache_type = SLUICE_I8;
  call.k_cache.data = call.v_cache.data = device_memory + 32;
  CHECK(device.step(call).k_lane_chunks == 6);

  call = good_groups();
  const StepKernargs groups = device.step(call);
  CHECK(groups.k_out_page_stride == 16 * 256 / 2);
  CHECK(groups.k_scale == address_of(call.k_scales.data));
  CHECK(groups.k_scale_row_stride == 8);
  CHECK(groups.v_scale_head_stride == 2);
  CHECK(groups.k_zeros == address_of(call.k_zeros.data));
  CHECK(groups.v_zeros == address_of(call.v_zeros.data));
  CHECK(groups.modes == 0);
  CHECK(groups.v_lane_chunks == 4);
  call.scale_group = 64;
  CHECK(device.step(call).modes == sluice::package::step_wide_groups);
  CHECK(device.step(call).v_lane_chunks == 8); // the lanes of a group
}

TEST_CASE("a step fills the device a few times over and loops over the rest", "[cache_ops]") {
  Device device;
  sluice_append call = good_step();
  // 304 compute units, 16 workgroups each, for each section; 32 rows of Q per workgroup, 4 rows per token.
  call.tokens = 304 * 16 * 8;
  CHECK(device.step(call).q_groups == 304 * 16);
  call.tokens += 1;
  CHECK(device.step(call).q_groups == 304 * 16);
  CHECK(device.step(call).k_groups == 304 * 8 + 1);
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

TEST_CASE("the launch of a merge is traced", "[cache_ops]") {
  FakeHip hip;
  sluice::package::PackWriter writer("test", "22.1.8");
  sluice::package::KernelEntry entry = cache_op_entry("merge_states", "f32", "f16");
  entry.lds_bytes = 4096;
  add_fake_kernel(writer, entry);
  const std::vector<std::byte> pack = writer.finish();
  sluice_context_desc desc = context_desc(SLUICE_DEVICE_HIP, pack);
  const ContextHandle context = make_context(desc);
  static uint32_t lds_bytes;
  REQUIRE(sluice_set_trace(
              context.get(), [](const sluice_trace_record *record, void *) { lds_bytes = record->lds_bytes; },
              nullptr, nullptr) == SLUICE_OK);
  const sluice_merge call = good_merge();
  REQUIRE(sluice_merge_states(context.get(), &call, nullptr, nullptr) == SLUICE_OK);
  CHECK(lds_bytes == 4096);
}

TEST_CASE("a merge: each member reaches its own argument", "[cache_ops]") {
  Device device;
  sluice_merge call = good_merge();
  call.sink_logits = reinterpret_cast<const float *>(device_memory + 100);
  call.partial.stride[0] = 1640;
  call.partial.stride[1] = 136;
  call.partial.stride[2] = 72;
  call.partial_lse.stride[0] = 31;
  call.partial_lse.stride[1] = 7;
  call.partial_lse.stride[2] = 3;
  call.o.stride[1] = 144;
  call.o.stride[2] = 80;
  call.lse.stride[1] = 9;
  call.lse.stride[2] = 4;
  const MergeKernargs out = device.merge(call);
  CHECK(out.partial == address_of(call.partial.data));
  CHECK(out.partial_lse == address_of(call.partial_lse.data));
  CHECK(out.o == address_of(call.o.data));
  CHECK(out.lse == address_of(call.lse.data));
  CHECK(out.sink_logits == address_of(call.sink_logits));
  CHECK(out.partial_part_stride == 1640);
  CHECK(out.partial_token_stride == 136);
  CHECK(out.partial_head_stride == 72);
  CHECK(out.partial_lse_part_stride == 31);
  CHECK(out.partial_lse_token_stride == 7);
  CHECK(out.partial_lse_head_stride == 3);
  CHECK(out.o_batch_stride == 0);
  CHECK(out.o_token_stride == 144);
  CHECK(out.o_head_stride == 80);
  CHECK(out.lse_batch_stride == 0);
  CHECK(out.lse_token_stride == 9);
  CHECK(out.lse_head_stride == 4);
  CHECK(out.q_starts == 0);
  CHECK(out.q_lengths == 0);
  CHECK(out.parts == 3);
  CHECK(out.rows == 10);
  CHECK(out.heads == 2);
  CHECK(out.tokens == 5);
  CHECK(out.most_tokens == 5);
  CHECK(out.max_tokens == 5);
  CHECK(out.row_chunks == 8);
  CHECK(divided(9, out.heads_magic, out.heads_shift) == 4);
  CHECK(divided(9, out.tokens_magic, out.tokens_shift) == 1);
  CHECK(out.mode == 0);
  CHECK(out.log2_per_unit == Approx(1.442695f));
  CHECK(out.unit_per_log2 == Approx(0.693147f));
  CHECK(out.unit_per_nat == 1);
  call.lse_base = SLUICE_LSE_BASE_2;
  const MergeKernargs base_2 = device.merge(call);
  CHECK(base_2.log2_per_unit == 1);
  CHECK(base_2.unit_per_log2 == 1);
  CHECK(base_2.unit_per_nat == Approx(1.442695f));
  CHECK(base_2.o_scale == 0);
  // A scale does not select code of its own.
  call.o_type = SLUICE_E4M3FNUZ;
  call.o_scale = reinterpret_cast<const float *>(device_memory + 200);
  call.o_scale_kind = SLUICE_SCALE_PER_TENSOR;
  CHECK(device.merge(call).o_scale == address_of(call.o_scale));
  CHECK(device.merge(call).mode == 0);
  call.o_scale_kind = SLUICE_SCALE_PER_HEAD;
  CHECK(device.merge(call).mode == sluice::package::merge_o_scale_heads);
}

TEST_CASE("lanes of a merge are divided among chunks, parts and rows", "[cache_ops]") {
  Device device;
  const auto divided_for = [&](int32_t parts, int32_t dim) {
    return division(device.merge(dense_merge(parts, 5, 2, dim)));
  };
  using Division = std::array<uint32_t, 4>;
  CHECK(divided_for(3, 64) == Division{3, 2, 2, 3});
  CHECK(divided_for(1, 64) == Division{3, 0, 4, 5});
  CHECK(divided_for(2, 64) == Division{3, 1, 3, 4});
  CHECK(divided_for(5, 64) == Division{3, 3, 2, 2});
  CHECK(divided_for(100, 64) == Division{3, 4, 2, 1}); // 16 slots at most
  CHECK(divided_for(3, 72) == Division{4, 2, 2, 2});
  CHECK(divided_for(3, 2048) == Division{8, 0, 4, 0}); // no lane is left for a second part
  CHECK(divided_for(3, 4096) == Division{8, 0, 4, 0});
}

TEST_CASE("a merge of few adjacent parts reads them at once", "[cache_ops]") {
  using namespace sluice::package;
  Device device;
  const auto mode = [&](const sluice_merge &call) { return device.merge(call).mode; };
  // 4 slots for 3 parts, 16 for the maximum, each with 4 parts in flight.
  CHECK(mode(dense_merge(3, 5, 2, 64)) == (merge_at_once | merge_to_plain_rows));
  CHECK(mode(dense_merge(16, 5, 2, 64)) == (merge_at_once | merge_to_plain_rows));
  CHECK(mode(dense_merge(17, 5, 2, 64)) == (merge_several_at_once | merge_to_plain_rows));
  CHECK(mode(dense_merge(64, 5, 2, 64)) == (merge_several_at_once | merge_to_plain_rows));
  CHECK(mode(dense_merge(65, 5, 2, 64)) == merge_to_plain_rows);
  CHECK(mode(dense_merge(3, 5, 2, 2048)) == (merge_several_at_once | merge_to_plain_rows));
  CHECK(mode(dense_merge(3, 5, 2, 2056)) == merge_to_plain_rows);
  // 4 MiB of F32 parts: 16 * 1024 rows of 64.
  CHECK(mode(dense_merge(16, 512, 2, 64)) == (merge_at_once | merge_to_plain_rows));
  CHECK(mode(dense_merge(16, 513, 2, 64)) == merge_to_plain_rows);
  sluice_merge narrow = dense_merge(16, 1024, 2, 64);
  narrow.partial_type = SLUICE_F16;
  CHECK(mode(narrow) == (merge_at_once | merge_to_plain_rows));
  narrow = dense_merge(16, 1025, 2, 64);
  narrow.partial_type = SLUICE_F16;
  CHECK(mode(narrow) == merge_to_plain_rows);
  // A gap anywhere.
  for (int i = 0; i < 3; ++i) {
    sluice_merge call = dense_merge(3, 5, 2, 64);
    call.partial.stride[i] += 8;
    CHECK(mode(call) == merge_to_plain_rows);
    call = dense_merge(3, 5, 2, 64);
    call.partial_lse.stride[i] += 1;
    CHECK(mode(call) == merge_to_plain_rows);
  }
  for (int i = 1; i < 3; ++i) {
    sluice_merge call = dense_merge(3, 5, 2, 64);
    call.o.stride[i] *= 2;
    if (i == 2) call.o.stride[1] *= 2;
    CHECK(mode(call) == merge_at_once);
    call = dense_merge(3, 5, 2, 64);
    call.lse.stride[i] *= 2;
    if (i == 2) call.lse.stride[1] *= 2;
    CHECK(mode(call) == merge_at_once);
  }
  sluice_merge one_head = dense_merge(3, 5, 1, 64);
  one_head.o.stride[2] += 8;
  CHECK(mode(one_head) == (merge_at_once | merge_to_plain_rows)); // such a stride means nothing
  sluice_merge without = dense_merge(3, 5, 2, 64);
  without.lse = {};
  CHECK(mode(without) == (merge_at_once | merge_to_plain_rows));
}

TEST_CASE("parts in any place, and LSEs of sequences, reach the arguments of a merge", "[cache_ops]") {
  using namespace sluice::package;
  Device device;
  const auto at = [](uint64_t bytes) {
    return reinterpret_cast<const void *>(address_of(device_memory) + bytes); // never read
  };
  const auto list = [](sluice_merge call, const auto &rows, const auto &lses) {
    call.partial_list = rows.data();
    call.partial_lse_list = lses.data();
    call.partial.data = call.partial_lse.data = nullptr;
    call.partial.stride[0] = call.partial_lse.stride[0] = 0;
    return call;
  };
  const sluice_merge dense = dense_merge(3, 6, 2, 64); // parts of 768 elements and 12 LSEs
  sluice_merge call = dense;
  call.flags = SLUICE_MERGE_INFINITY_IS_EMPTY;
  CHECK(device.merge(call).mode == (merge_specially_at_once | merge_infinity_is_empty | merge_to_plain_rows));
  call.parts = 65;
  CHECK(device.merge(call).mode == (merge_specially | merge_infinity_is_empty | merge_to_plain_rows));
  call.parts = 17; // a lane would have several
  CHECK(device.merge(call).mode == (merge_specially | merge_infinity_is_empty | merge_to_plain_rows));

  call = dense;
  call.partial.stride[0] = -768;
  const MergeKernargs backwards = device.merge(call);
  CHECK(backwards.partial_part_stride == -768);
  CHECK(backwards.mode == merge_to_plain_rows);

  // A list of parts that a stride reaches is that stride; without gaps it takes the fast way.
  std::array rows = {at(0), at(768 * 4), at(2 * 768 * 4)}, lses = {at(16), at(16 + 48), at(16 + 96)};
  MergeKernargs out = device.merge(list(dense, rows, lses));
  CHECK(out.mode == (merge_at_once | merge_to_plain_rows));
  CHECK(out.partial == address_of(at(0)));
  CHECK(out.partial_lse == address_of(at(16)));
  CHECK(out.partial_part_stride == 768);
  CHECK(out.partial_lse_part_stride == 12);
  // If only one of them is regular, both are listed.
  std::swap(lses[0], lses[1]);
  out = device.merge(list(dense, rows, lses));
  CHECK(out.mode == (merge_specially | merge_listed_parts | merge_to_plain_rows));
  CHECK(out.partial_distance_0 == 0);
  CHECK(out.partial_distance_1 == 768);
  CHECK(out.partial_distance_2 == 2 * 768);
  CHECK(out.partial_lse == address_of(at(16 + 48)));
  CHECK(out.partial_lse_distance_1 == -12);
  CHECK(out.partial_lse_distance_2 == 12);
  call = dense_merge(1, 6, 2, 64);
  CHECK(device.merge(list(call, rows, lses)).mode == merge_to_plain_rows);
  call = dense_merge(2, 6, 2, 64);
  out = device.merge(list(call, rows, lses));
  CHECK(out.mode == merge_to_plain_rows);
  CHECK(out.partial_lse_part_stride == -12);
  rows = {at(2 * 768), at(0), at(768)}; // F16
  call = dense;
  call.partial_type = SLUICE_F16;
  out = device.merge(list(call, rows, lses));
  CHECK(out.partial_distance_1 == -768);
  CHECK(out.partial_distance_2 == -384);

  // LSEs [sequence][head][token] of three sequences of two tokens.
  call = dense;
  call.sequence_tokens = 2;
  call.partial_lse.stride[1] = call.lse.stride[1] = 1;
  call.partial_lse.stride[2] = call.lse.stride[2] = 2;
  call.partial_lse_sequence_stride = call.lse_sequence_stride = 4;
  out = device.merge(call);
  CHECK(out.mode == (merge_specially | merge_lse_sequences));
  CHECK(out.partial_lse_sequence_skip == 2);
  CHECK(out.tokens == 2);
  CHECK(out.most_tokens == 2);
  CHECK(out.rows == 12);
  CHECK(out.o_batch_stride == 2 * 128);
  CHECK(out.lse_batch_stride == 4);
  // Those that are [token][head] all the same.
  call = dense;
  call.sequence_tokens = 2;
  call.partial_lse_sequence_stride = call.lse_sequence_stride = 4;
  CHECK(device.merge(call).mode == (merge_at_once | merge_to_plain_rows));
}

TEST_CASE("a merge's rows go along x, and along y if x would be too long", "[cache_ops]") {
  Device device;
  const auto grid = [&](int32_t tokens) {
    const MergeKernargs out = device.merge(dense_merge(3, tokens, 1, 64)); // 8 rows a workgroup
    CHECK(out.row_step == last.grid[0] * 8);
    CHECK(last.grid[2] == 1);
    return std::array<unsigned, 2>{last.grid[0], last.grid[1]};
  };
  CHECK(grid(1) == std::array<unsigned, 2>{1, 1});
  CHECK(grid(8) == std::array<unsigned, 2>{1, 1});
  CHECK(grid(9) == std::array<unsigned, 2>{2, 1});
  CHECK(grid(4096 * 8) == std::array<unsigned, 2>{4096, 1});
  CHECK(grid(4096 * 8 + 1) == std::array<unsigned, 2>{4096, 2});
  // One row per workgroup, and more rows than 4096 * 65535.
  const MergeKernargs many = device.merge(dense_merge(1, INT32_MAX, 1, 2048));
  CHECK(many.rows == uint32_t(INT32_MAX));
  CHECK(last.grid == std::array<unsigned, 3>{32769, 65535, 1});
}

TEST_CASE("the parts of a run are merged in the workspace", "[split]") {
  using namespace sluice::package;
  FakeHip hip;
  sluice_context_desc desc = context_desc(SLUICE_DEVICE_HIP, split_pack());
  desc.hip_resolver = resolve;
  const ContextHandle context = make_context(desc);
  sluice_problem problem = decode_problem();
  problem.flags |= SLUICE_SINK_LOGITS;
  problem.max_q_len = 4;
  problem.workspace_ceiling_bytes = 6 * 2 * 4 * 8 * (128 + 1) * 4; // splits, sequences, rows, heads
  const PlanHandle plan = make_plan(context, problem);
  sluice_args args = good_args();
  args.q_len = 3;
  args.sink_logits = reinterpret_cast<const float *>(device_memory + 100);
  // O has gaps, its splits do not.
  args.o.stride[2] = 136;
  args.o.stride[1] = 8 * 136;
  args.o.stride[0] = 3 * 8 * 136;
  sluice_launch launch = good_launch();
  launch.workspace = reinterpret_cast<void *>(uint64_t{1} << 32);
  launch.workspace_bytes = uint64_t{1} << 32;
  const auto run = [&] {
    Error error;
    const sluice_status status = sluice_run(plan.get(), &args, &launch, &error);
    INFO(error.message);
    REQUIRE(status == SLUICE_OK);
    REQUIRE(last.arguments.size() == sizeof(MergeKernargs));
    MergeKernargs arguments;
    std::memcpy(&arguments, last.arguments.data(), sizeof arguments);
    return arguments;
  };
  MergeKernargs out = run();
  const AttentionKernargs &parts = hip.attention.kernargs;
  CHECK(out.parts > 1);
  CHECK(out.parts == uint32_t(parts.splits));
  CHECK(out.partial == uint64_t{1} << 32);
  CHECK(out.partial == parts.o);
  CHECK(out.partial_lse == parts.lse);
  // F32, [split][sequence][row][head][dim], then LSE; three rows of two sequences.
  CHECK(out.partial_lse == (uint64_t{1} << 32) + uint64_t{out.parts} * 2 * 3 * 8 * 128 * 4);
  CHECK(out.partial_head_stride == 128);
  CHECK(out.partial_token_stride == 8 * 128);
  CHECK(out.partial_part_stride == 2 * 3 * 8 * 128);
  CHECK(out.partial_lse_head_stride == 1);
  CHECK(out.partial_lse_token_stride == 8);
  CHECK(out.partial_lse_part_stride == 2 * 3 * 8);
  CHECK(parts.o_head_stride == 128);
  CHECK(parts.o_token_stride == 8 * 128);
  CHECK(parts.o_batch_stride == 3 * 8 * 128);
  CHECK(parts.o_split_stride == out.partial_part_stride);
  CHECK(parts.lse_head_stride == 1);
  CHECK(parts.lse_token_stride == 8);
  CHECK(parts.lse_batch_stride == 3 * 8);
  CHECK(parts.lse_split_stride == out.partial_lse_part_stride);
  CHECK(out.o == address_of(args.o.data));
  CHECK(out.lse == address_of(args.lse.data));
  CHECK(out.o_batch_stride == args.o.stride[0]);
  CHECK(out.o_token_stride == args.o.stride[1]);
  CHECK(out.o_head_stride == args.o.stride[2]);
  CHECK(out.lse_batch_stride == args.lse.stride[0]);
  CHECK(out.sink_logits == address_of(args.sink_logits));
  CHECK(out.heads == 8);
  CHECK(out.tokens == 3);
  CHECK(out.most_tokens == 3);
  CHECK(out.q_rows == INT32_MAX);
  CHECK(out.rows == 2 * 3 * 8);
  CHECK(out.max_tokens == INT32_MAX); // no other kernel takes longer ones
  CHECK(out.row_chunks == 16);
  CHECK(out.q_starts == 0);
  CHECK(out.q_lengths == 0);
  CHECK(out.log2_per_unit == Approx(1.442695f));
  CHECK((out.mode & merge_to_plain_rows) == 0); // LSE is transposed
  // If results are laid out like their rows, nothing is skipped; if the number of rows is known only on the
  // device, some may be skipped.
  args.o.stride[2] = 128;
  args.o.stride[1] = 8 * 128;
  args.o.stride[0] = 3 * 8 * 128;
  args.lse.stride[0] = 3 * 8;
  args.lse.stride[1] = 8;
  args.lse.stride[2] = 1;
  CHECK((run().mode & merge_to_plain_rows) != 0);
  args.o.stride[0] += 8;
  CHECK((run().mode & merge_to_plain_rows) == 0);
  args.o.stride[0] -= 8;
  args.lse.stride[0] += 1;
  CHECK((run().mode & merge_to_plain_rows) == 0);
  args.lse.stride[0] -= 1;
  args.q_lengths = reinterpret_cast<const int32_t *>(device_memory);
  out = run();
  CHECK(out.q_lengths == address_of(args.q_lengths));
  CHECK((out.mode & merge_to_plain_rows) == 0);
  CHECK(out.o_scale == 0);
}

TEST_CASE("a run's merge divides FP8 results by the run's scale", "[split]") {
  using namespace sluice::package;
  FakeHip hip;
  sluice_context_desc desc = context_desc(SLUICE_DEVICE_HIP, split_pack());
  desc.hip_resolver = resolve;
  const ContextHandle context = make_context(desc);
  for (const uint32_t kind : {SLUICE_SCALE_NONE, SLUICE_SCALE_PER_TENSOR, SLUICE_SCALE_PER_HEAD}) {
    sluice_problem problem = decode_problem();
    problem.o_type = SLUICE_E4M3FNUZ;
    problem.o_scale_kind = kind;
    const PlanHandle plan = make_plan(context, problem);
    sluice_args args = good_args();
    args.q_len = 1;
    if (kind != SLUICE_SCALE_NONE) args.o_scale = reinterpret_cast<const float *>(device_memory + 200);
    sluice_launch launch = good_launch();
    launch.workspace = reinterpret_cast<void *>(uint64_t{1} << 32);
    launch.workspace_bytes = uint64_t{1} << 32;
    REQUIRE(sluice_run(plan.get(), &args, &launch, nullptr) == SLUICE_OK);
    REQUIRE(last.arguments.size() == sizeof(MergeKernargs));
    MergeKernargs out;
    std::memcpy(&out, last.arguments.data(), sizeof out);
    CHECK(out.o == address_of(args.o.data));
    CHECK(out.o_scale == address_of(args.o_scale));
    CHECK(((out.mode & merge_o_scale_heads) != 0) == (kind == SLUICE_SCALE_PER_HEAD));
    // The splits are F32.
    CHECK((hip.attention.kernargs.score_flags & score_partial) != 0);
  }
}

TEST_CASE("a run's merge has the run's base of LSE, its starts and its signal", "[split]") {
  FakeHip hip;
  sluice_context_desc desc = context_desc(SLUICE_DEVICE_HIP, split_pack());
  desc.hip_resolver = resolve;
  const ContextHandle context = make_context(desc);
  static sluice_trace_record seen;
  REQUIRE(sluice_set_trace(
              context.get(),
              [](const sluice_trace_record *record, void *) {
                if (record->event == SLUICE_TRACE_PLAN) seen = *record;
              },
              nullptr, nullptr) == SLUICE_OK);
  sluice_problem problem = decode_problem();
  problem.lse_base = SLUICE_LSE_BASE_2;
  make_paged(problem);
  const PlanHandle plan = make_plan(context, problem);
  CHECK(seen.block[0] == 64);
  CHECK(seen.block[1] == 1);
  CHECK(seen.block[2] == 1);
  CHECK(seen.workspace_bytes > 0);
  sluice_args args = good_args();
  args.q_len = 1;
  args.k.stride[0] = args.v.stride[0] = 16 * 2 * 128;
  args.q.stride[0] = args.o.stride[0] = args.lse.stride[0] = 0;
  args.lse.stride[1] = 8;
  args.lse.stride[2] = 1;
  const auto *const numbers = reinterpret_cast<const int32_t *>(device_memory);
  args.q_starts = numbers + 8;
  args.kv_lengths = numbers;
  args.page_table = numbers;
  args.page_table_stride = 8192 / 16;
  sluice_launch launch = good_launch();
  launch.workspace = reinterpret_cast<void *>(uint64_t{1} << 32);
  launch.workspace_bytes = uint64_t{1} << 32;
  launch.signal_event = FakeHip::handle(13);
  hip.forget_calls();
  Error error;
  const sluice_status status = sluice_run(plan.get(), &args, &launch, &error);
  INFO(error.message);
  REQUIRE(status == SLUICE_OK);
  CHECK(hip.call_names() ==
        std::vector<std::string>{"hipModuleLaunchKernel", "hipModuleLaunchKernel", "hipEventRecord"});
  REQUIRE(last.arguments.size() == sizeof(MergeKernargs));
  MergeKernargs out;
  std::memcpy(&out, last.arguments.data(), sizeof out);
  CHECK(out.q_starts == address_of(args.q_starts));
  CHECK(out.q_lengths == 0);
  CHECK(out.q_rows == INT32_MAX);
  CHECK((out.mode & sluice::package::merge_to_plain_rows) == 0);
  CHECK(out.log2_per_unit == 1);
  CHECK(hip.attention.kernargs.lse_per_log2 == 1);
  // A single sequence may also have fewer rows than its place; the tensor's rows bound its starts.
  args.batch = 1;
  args.q_tokens = 9;
  REQUIRE(sluice_run(plan.get(), &args, &launch, &error) == SLUICE_OK);
  std::memcpy(&out, last.arguments.data(), sizeof out);
  CHECK(out.q_rows == 9);
  CHECK((out.mode & sluice::package::merge_to_plain_rows) == 0);
}
