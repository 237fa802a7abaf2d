//===- merge_arguments_test.cpp - the kernel arguments of merges ----------------------------------------===//
#include "cache_op_device.h"
#include "split_fixture.h"
#include "support/passed_members.h"

using namespace sluice::test;
using sluice::package::MergeKernargs;

namespace {

/// lanes_log2, slots_log2, slot_place and groups_log2 of a merge.
std::array<uint32_t, 4> division(const MergeKernargs &arguments) {
  const uint32_t all = arguments.lane_division;
  return {all & 255, all >> 8 & 255, all >> 16 & 255, all >> 24};
}

/// Parts and results without gaps.
sluice_merge_args dense_merge(int32_t parts, int32_t tokens, int32_t heads, int32_t dim) {
  sluice_merge_args merge = good_merge();
  merge.parts.count = parts;
  merge.tokens = tokens;
  merge.heads = heads;
  merge.head_dim = dim;
  const int64_t rows = int64_t{tokens} * heads;
  merge.parts.o.stride[0] = rows * dim;
  merge.parts.o.stride[1] = merge.o.stride[1] = int64_t{heads} * dim;
  merge.parts.o.stride[2] = merge.o.stride[2] = dim;
  merge.parts.lse.stride[0] = rows;
  merge.parts.lse.stride[1] = merge.lse.stride[1] = heads;
  merge.parts.lse.stride[2] = merge.lse.stride[2] = 1;
  return merge;
}

} // namespace

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
  const sluice_merge_args call = good_merge();
  REQUIRE(run(context, call) == SLUICE_OK);
  CHECK(lds_bytes == 4096);
}

TEST_CASE("a merge: each member reaches its own argument", "[cache_ops]") {
  static const Passed<sluice_merge_args, MergeKernargs> table[] = {
      PASSES(c.parts.o.data, a.partial),
      PASSES(c.parts.lse.data, a.partial_lse),
      PASSES(c.o.data, a.o),
      PASSES(c.lse.data, a.lse),
      PASSES(c.sinks, a.sink_logits),
      PASSES(c.parts.o.stride[0], a.partial_part_stride),
      PASSES(c.parts.o.stride[1], a.partial_token_stride),
      PASSES(c.parts.o.stride[2], a.partial_head_stride),
      PASSES(c.parts.lse.stride[0], a.partial_lse_part_stride),
      PASSES(c.parts.lse.stride[1], a.partial_lse_token_stride),
      PASSES(c.parts.lse.stride[2], a.partial_lse_head_stride),
      PASSES(c.o.stride[1], a.o_token_stride),
      PASSES(c.o.stride[2], a.o_head_stride),
      PASSES(c.lse.stride[1], a.lse_token_stride),
      PASSES(c.lse.stride[2], a.lse_head_stride),
      FOLLOWS(c.parts.count, a.parts),
      FOLLOWS(c.tokens * c.heads, a.rows),
      FOLLOWS(c.heads, a.heads),
      FOLLOWS(c.tokens, a.tokens),
      FOLLOWS(c.tokens, a.most_tokens),
      FOLLOWS(c.tokens, a.max_tokens),
      FOLLOWS(c.head_dim / 8, a.row_chunks),
      FOLLOWS(1000 / c.heads, divided(1000, a.heads_magic, a.heads_shift)),
      FOLLOWS(1000 / c.tokens, divided(1000, a.tokens_magic, a.tokens_shift))};
  CacheOpDevice device;
  sluice_merge_args call = good_merge();
  call.sinks = reinterpret_cast<const float *>(device_memory + 100);
  call.parts.o = {call.parts.o.data, {1640, 136, 72, 1}};
  call.parts.lse = {call.parts.lse.data, {31, 7, 3, 0}};
  call.o = {call.o.data, {0, 144, 80, 1}};
  call.lse = {call.lse.data, {0, 9, 4, 0}};
  check_passed(table, {call}, [&](const sluice_merge_args &one) { return device.merge(one); });
  const MergeKernargs out = device.merge(call);
  CHECK(out.o_batch_stride == 0);
  CHECK(out.lse_batch_stride == 0);
  CHECK(out.q_starts == 0);
  CHECK(out.q_lengths == 0);
  CHECK(out.mode == 0);
  CHECK(out.log2_per_unit == Approx(1.442695f));
  CHECK(out.unit_per_log2 == Approx(0.693147f));
  CHECK(out.unit_per_nat == 1);
  call.lse_base = SLUICE_LSE_LOG2;
  const MergeKernargs base_2 = device.merge(call);
  CHECK(base_2.log2_per_unit == 1);
  CHECK(base_2.unit_per_log2 == 1);
  CHECK(base_2.unit_per_nat == Approx(1.442695f));
  CHECK(base_2.o_scale == 0);
  // A scale does not select code of its own.
  call.o_format.type = SLUICE_E4M3FNUZ;
  call.o_scale = reinterpret_cast<const float *>(device_memory + 200);
  call.o_format.scale_kind = SLUICE_SCALE_PER_TENSOR;
  CHECK(device.merge(call).o_scale == as_bits(call.o_scale));
  CHECK(device.merge(call).mode == 0);
  call.o_format.scale_kind = SLUICE_SCALE_PER_HEAD;
  CHECK(device.merge(call).mode == sluice::package::merge_o_scale_heads);
}

TEST_CASE("lanes of a merge are divided among chunks, parts and rows", "[cache_ops]") {
  CacheOpDevice device;
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
  CacheOpDevice device;
  const auto mode = [&](const sluice_merge_args &call) { return device.merge(call).mode; };
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
  sluice_merge_args narrow = dense_merge(16, 1024, 2, 64);
  narrow.parts.type = SLUICE_F16;
  CHECK(mode(narrow) == (merge_at_once | merge_to_plain_rows));
  narrow = dense_merge(16, 1025, 2, 64);
  narrow.parts.type = SLUICE_F16;
  CHECK(mode(narrow) == merge_to_plain_rows);
  // A gap anywhere.
  for (int i = 0; i < 3; ++i) {
    sluice_merge_args call = dense_merge(3, 5, 2, 64);
    call.parts.o.stride[i] += 8;
    CHECK(mode(call) == merge_to_plain_rows);
    call = dense_merge(3, 5, 2, 64);
    call.parts.lse.stride[i] += 1;
    CHECK(mode(call) == merge_to_plain_rows);
  }
  for (int i = 1; i < 3; ++i) {
    sluice_merge_args call = dense_merge(3, 5, 2, 64);
    call.o.stride[i] *= 2;
    if (i == 2) call.o.stride[1] *= 2;
    CHECK(mode(call) == merge_at_once);
    call = dense_merge(3, 5, 2, 64);
    call.lse.stride[i] *= 2;
    if (i == 2) call.lse.stride[1] *= 2;
    CHECK(mode(call) == merge_at_once);
  }
  sluice_merge_args one_head = dense_merge(3, 5, 1, 64);
  one_head.o.stride[2] += 8;
  CHECK(mode(one_head) == (merge_at_once | merge_to_plain_rows)); // such a stride means nothing
  sluice_merge_args without = dense_merge(3, 5, 2, 64);
  without.lse = {};
  CHECK(mode(without) == (merge_at_once | merge_to_plain_rows));
}

TEST_CASE("parts in any place, and LSEs of sequences, reach the arguments of a merge", "[cache_ops]") {
  using namespace sluice::package;
  CacheOpDevice device;
  const auto at = [](uint64_t bytes) {
    return reinterpret_cast<const void *>(as_bits(device_memory) + bytes); // never read
  };
  const auto list = [](sluice_merge_args call, const auto &rows, const auto &lses) {
    list_parts(call, rows.data(), lses.data());
    return call;
  };
  const sluice_merge_args dense = dense_merge(3, 6, 2, 64); // parts of 768 elements and 12 LSEs
  sluice_merge_args call = dense;
  call.flags = SLUICE_MERGE_INFINITY_IS_EMPTY;
  CHECK(device.merge(call).mode == (merge_specially_at_once | merge_infinity_is_empty | merge_to_plain_rows));
  call.parts.count = 65;
  CHECK(device.merge(call).mode == (merge_specially | merge_infinity_is_empty | merge_to_plain_rows));
  call.parts.count = 17; // a lane would have several
  CHECK(device.merge(call).mode == (merge_specially | merge_infinity_is_empty | merge_to_plain_rows));

  call = dense;
  call.parts.o.stride[0] = -768;
  const MergeKernargs backwards = device.merge(call);
  CHECK(backwards.partial_part_stride == -768);
  CHECK(backwards.mode == merge_to_plain_rows);

  // A list of parts that a stride reaches is that stride; without gaps it takes the fast way.
  std::array rows = {at(0), at(768 * 4), at(2 * 768 * 4)}, lses = {at(16), at(16 + 48), at(16 + 96)};
  MergeKernargs out = device.merge(list(dense, rows, lses));
  CHECK(out.mode == (merge_at_once | merge_to_plain_rows));
  CHECK(out.partial == as_bits(at(0)));
  CHECK(out.partial_lse == as_bits(at(16)));
  CHECK(out.partial_part_stride == 768);
  CHECK(out.partial_lse_part_stride == 12);
  // If only one of them is regular, both are listed.
  std::swap(lses[0], lses[1]);
  out = device.merge(list(dense, rows, lses));
  CHECK(out.mode == (merge_specially | merge_listed_parts | merge_to_plain_rows));
  CHECK(out.partial_distance_0 == 0);
  CHECK(out.partial_distance_1 == 768);
  CHECK(out.partial_distance_2 == 2 * 768);
  CHECK(out.partial_lse == as_bits(at(16 + 48)));
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
  call.parts.type = SLUICE_F16;
  out = device.merge(list(call, rows, lses));
  CHECK(out.partial_distance_1 == -768);
  CHECK(out.partial_distance_2 == -384);

  // LSEs [sequence][head][token] of three sequences of two tokens.
  call = dense;
  call.sequence_tokens = 2;
  call.parts.lse.stride[1] = call.lse.stride[1] = 1;
  call.parts.lse.stride[2] = call.lse.stride[2] = 2;
  call.parts.lse_sequence_stride = call.lse_sequence_stride = 4;
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
  call.parts.lse_sequence_stride = call.lse_sequence_stride = 4;
  CHECK(device.merge(call).mode == (merge_at_once | merge_to_plain_rows));
}

TEST_CASE("a merge's rows go along x, and along y if x would be too long", "[cache_ops]") {
  CacheOpDevice device;
  const auto grid = [&](int32_t tokens) {
    const MergeKernargs out = device.merge(dense_merge(3, tokens, 1, 64)); // 8 rows a workgroup
    CHECK(out.row_step == device.hip.launch.grid[0] * 8);
    CHECK(device.hip.launch.grid[2] == 1);
    return std::array<unsigned, 2>{device.hip.launch.grid[0], device.hip.launch.grid[1]};
  };
  CHECK(grid(1) == std::array<unsigned, 2>{1, 1});
  CHECK(grid(8) == std::array<unsigned, 2>{1, 1});
  CHECK(grid(9) == std::array<unsigned, 2>{2, 1});
  CHECK(grid(4096 * 8) == std::array<unsigned, 2>{4096, 1});
  CHECK(grid(4096 * 8 + 1) == std::array<unsigned, 2>{4096, 2});
  // One row per workgroup, and more rows than 4096 * 65535.
  const MergeKernargs many = device.merge(dense_merge(1, INT32_MAX, 1, 2048));
  CHECK(many.rows == uint32_t(INT32_MAX));
  CHECK(device.hip.launch.grid == std::array<unsigned, 3>{32769, 65535, 1});
}

TEST_CASE("the parts of a run are merged in the workspace", "[split]") {
  using Strides = std::array<int64_t, 3>;
  using namespace sluice::package;
  FakeHip hip;
  const ContextHandle context = make_context(context_desc(SLUICE_DEVICE_HIP, split_pack()));
  AttentionCall call = decode_call();
  call.scores.flags = SLUICE_SCORES_SINK;
  call.attention.bounds.q_len = 4;
  call.attention.workspace_ceiling_bytes = 6 * 2 * 4 * 8 * (128 + 1) * 4; // splits, sequences, rows, heads
  const PlanHandle plan = make_plan(context, call);
  sluice_attention_args &args = call.args;
  args.rows.max_len = 3;
  call.scores_args.sinks = at_byte<float>(100);
  // O has gaps, its splits do not.
  args.o.stride[2] = 136;
  args.o.stride[1] = 8 * 136;
  args.o.stride[0] = 3 * 8 * 136;
  sluice_launch launch = with_workspace();
  const auto kernargs = [&] {
    Error error;
    const sluice_status status = run(plan, call, &launch, &error);
    INFO(error.message);
    REQUIRE(status == SLUICE_OK);
    return hip.launch.as<MergeKernargs>();
  };
  MergeKernargs out = kernargs();
  const AttentionKernargs &parts = hip.attention.kernargs;
  CHECK(out.parts > 1);
  CHECK(out.parts == uint32_t(parts.splits));
  CHECK(out.partial == uint64_t{1} << 32);
  CHECK(out.partial == parts.o);
  CHECK(out.partial_lse == parts.lse);
  // F32, [split][sequence][row][head][dim], then LSE; three rows of two sequences.
  CHECK(out.partial_lse == (uint64_t{1} << 32) + uint64_t{out.parts} * 2 * 3 * 8 * 128 * 4);
  const Strides part = {2 * 3 * 8 * 128, 8 * 128, 128}, part_lse = {2 * 3 * 8, 8, 1};
  CHECK(Strides{out.partial_part_stride, out.partial_token_stride, out.partial_head_stride} == part);
  CHECK(Strides{out.partial_lse_part_stride, out.partial_lse_token_stride, out.partial_lse_head_stride} ==
        part_lse);
  CHECK(Strides{parts.o_split_stride, parts.o_token_stride, parts.o_head_stride} == part);
  CHECK(parts.o_batch_stride == 3 * 8 * 128);
  CHECK(Strides{parts.lse_split_stride, parts.lse_token_stride, parts.lse_head_stride} == part_lse);
  CHECK(parts.lse_batch_stride == 3 * 8);
  CHECK(out.o == as_bits(args.o.data));
  CHECK(out.lse == as_bits(call.lse.data));
  CHECK(Strides{out.o_batch_stride, out.o_token_stride, out.o_head_stride} ==
        Strides{args.o.stride[0], args.o.stride[1], args.o.stride[2]});
  CHECK(out.lse_batch_stride == call.lse.stride[0]);
  CHECK(out.sink_logits == as_bits(call.scores_args.sinks));
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
  call.lse.stride[0] = 3 * 8;
  call.lse.stride[1] = 8;
  call.lse.stride[2] = 1;
  CHECK((kernargs().mode & merge_to_plain_rows) != 0);
  args.o.stride[0] += 8;
  CHECK((kernargs().mode & merge_to_plain_rows) == 0);
  args.o.stride[0] -= 8;
  call.lse.stride[0] += 1;
  CHECK((kernargs().mode & merge_to_plain_rows) == 0);
  call.lse.stride[0] -= 1;
  args.rows.lengths = at_byte<int32_t>(0);
  out = kernargs();
  CHECK(out.q_lengths == as_bits(args.rows.lengths));
  CHECK((out.mode & merge_to_plain_rows) == 0);
  CHECK(out.o_scale == 0);
}

TEST_CASE("a run's merge divides FP8 results by the run's scale", "[split]") {
  using namespace sluice::package;
  FakeHip hip;
  const ContextHandle context = make_context(context_desc(SLUICE_DEVICE_HIP, split_pack()));
  for (const uint32_t kind : {SLUICE_SCALE_NONE, SLUICE_SCALE_PER_TENSOR, SLUICE_SCALE_PER_HEAD}) {
    AttentionCall call = decode_call();
    call.attention.o.type = SLUICE_E4M3FNUZ;
    call.attention.o.scale_kind = kind;
    sluice_attention_args &args = call.args;
    args.rows.max_len = 1;
    if (kind != SLUICE_SCALE_NONE) args.o_scale = at_byte<float>(200);
    const sluice_launch launch = with_workspace();
    REQUIRE(run(make_plan(context, call), call, &launch) == SLUICE_OK);
    MergeKernargs out = hip.launch.as<MergeKernargs>();
    CHECK(out.o == as_bits(args.o.data));
    CHECK(out.o_scale == as_bits(args.o_scale));
    CHECK(((out.mode & merge_o_scale_heads) != 0) == (kind == SLUICE_SCALE_PER_HEAD));
    // The splits are F32.
    CHECK((hip.attention.kernargs.score_flags & score_partial) != 0);
  }
}

TEST_CASE("a run's merge has the run's base of LSE, its starts and its signal", "[split]") {
  FakeHip hip;
  const ContextHandle context = make_context(context_desc(SLUICE_DEVICE_HIP, split_pack()));
  static sluice_trace_record seen;
  REQUIRE(sluice_set_trace(
              context.get(),
              [](const sluice_trace_record *record, void *) {
                if (record->event == SLUICE_TRACE_PLAN) seen = *record;
              },
              nullptr, nullptr) == SLUICE_OK);
  AttentionCall call = decode_call();
  call.attention.lse = SLUICE_LSE_LOG2;
  make_paged(call);
  const PlanHandle plan = make_plan(context, call);
  CHECK(seen.block[0] == 64);
  CHECK(seen.block[1] == 1);
  CHECK(seen.block[2] == 1);
  CHECK(seen.workspace_bytes > 0);
  sluice_attention_args &args = call.args;
  args.rows.max_len = 1;
  args.q.stride[0] = args.o.stride[0] = call.lse.stride[0] = 0;
  call.lse.stride[1] = 8;
  call.lse.stride[2] = 1;
  args.rows.starts = at_byte<int32_t>(32);
  call.keys[0].pages.stride = 8192 / 16;
  sluice_launch launch = with_workspace();
  launch.signal_event = FakeHip::handle(13);
  hip.forget_calls();
  Error error;
  const sluice_status status = run(plan, call, &launch, &error);
  INFO(error.message);
  REQUIRE(status == SLUICE_OK);
  CHECK(hip.call_names() ==
        std::vector<std::string>{"hipModuleLaunchKernel", "hipModuleLaunchKernel", "hipEventRecord"});
  MergeKernargs out = hip.launch.as<MergeKernargs>();
  CHECK(out.q_starts == as_bits(args.rows.starts));
  CHECK(out.q_lengths == 0);
  CHECK(out.q_rows == INT32_MAX);
  CHECK((out.mode & sluice::package::merge_to_plain_rows) == 0);
  CHECK(out.log2_per_unit == 1);
  CHECK(hip.attention.kernargs.lse_per_log2 == 1);
  // A single sequence may also have fewer rows than its place; the tensor's rows bound its starts.
  args.batch = 1;
  args.rows.total = 9;
  REQUIRE(run(plan, call, &launch, &error) == SLUICE_OK);
  out = hip.launch.as<MergeKernargs>();
  CHECK(out.q_rows == 9);
  CHECK((out.mode & sluice::package::merge_to_plain_rows) == 0);
}
