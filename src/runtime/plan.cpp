//===- plan.cpp - a problem with its kernels chosen and loaded ------------------------------------------===//
#include "runtime/plan.h"

#include "calls/args.h"
#include "calls/problem.h"
#include "package/attention_launch.h"
#include "package/rounds.h"
#include "runtime/attention_arguments.h"
#include "runtime/cache_ops.h"
#include "runtime/choose.h"
#include "runtime/dtype.h"
#include "runtime/problem.h"
#include "runtime/ranges.h"
#include "support/failure.h"
#include "support/log.h"

#include <algorithm>
#include <utility>

namespace sluice::runtime {

using support::LogLevel;
using support::text;

namespace {

/// The part of a problem that a profile should show beside a kernel's name and the lengths.
std::string describe(const calls::Problem &problem) {
  std::string out = text(" h", problem.q_heads, "/", problem.kv_heads);
  if (problem.mode != calls::dense) out += problem.mode == calls::paged ? " paged" : " ragged";
  if (problem.flags & calls::causal) out += " causal";
  if (problem.flags & (calls::window_left | calls::window_right)) out += " window";
  if (problem.flags & calls::mask_bits) out += " mask";
  if (problem.bias_type != 0) out += " bias";
  return out;
}

void increase(std::atomic<uint64_t> &counter) {
  counter.fetch_add(1, std::memory_order_relaxed);
}

} // namespace

Plan::Plan(std::shared_ptr<Context> context, const calls::Problem &problem)
    : shared(std::move(context)), wanted(problem), choice(choose_kernel(*shared, problem)),
      many(prepare_many()), few(prepare_few()), prefix(prepare_prefix()), range_end(describe(problem)) {
  if (shared->device().hip && choice.merging != nullptr) shared->function(*choice.merging->packed);
  if (support::logs(LogLevel::info)) {
    support::log(LogLevel::info, text("plan: ", kernel_name(), ": ", choice.reason));
  }
  trace(SLUICE_TRACE_PLAN, main(), grid(problem.max_batch, problem.max_q_len));
}

Plan::Prepared Plan::prepare(const package::PackedKernel &kernel, const calls::Problem &problem) const {
  Prepared out;
  out.entry = &kernel.entry;
  out.name = package::format_kernel_name(kernel.entry.name);
  out.arguments = problem_arguments(kernel.entry, problem);
  // Rows of both levels of a cascade are stored by their numbers, with starts.
  if (is_cascade(problem)) out.arguments.score_flags |= package::score_o_f32;
  if (shared->device().hip) out.function = shared->function(kernel);
  return out;
}

Plan::Prepared Plan::prepare_many() const {
  if (choice.own.many == nullptr) return {};
  Prepared out = prepare(*choice.own.many, wanted);
  out.launches = &Counters::main_launches;
  out.to_parts = is_cascade(wanted);
  if (choice.own.few != nullptr) out.arguments.min_rows = choice.own.few_rows + 1;
  return out;
}

Plan::Prepared Plan::prepare_few() const {
  if (choice.own.few == nullptr) return {};
  Prepared out = prepare(*choice.own.few, wanted);
  out.launches = choice.own.many == nullptr ? &Counters::main_launches : &Counters::other_launches;
  out.to_parts = choice.merging != nullptr;
  out.arguments.max_rows = choice.own.few_rows;
  set_splits(out.arguments, choice.own.splits);
  if (out.to_parts && !is_cascade(wanted)) out.arguments.score_flags |= package::score_partial;
  return out;
}

Plan::Prepared Plan::prepare_prefix() const {
  if (choice.prefix.kernel == nullptr) return {};
  Prepared out = prepare(*choice.prefix.kernel, prefix_problem(wanted));
  out.launches = &Counters::other_launches;
  out.to_parts = true;
  set_splits(out.arguments, choice.prefix.splits);
  return out;
}

Grid Plan::grid(int32_t batch, int32_t q_len) const {
  return grid(main(), batch, q_len);
}

Grid Plan::grid(const Prepared &prepared, int32_t batch, int32_t q_len) const {
  const package::AttentionKernargs &arguments = prepared.arguments;
  return package::attention_grid(prepared.entry->name, uint32_t(batch),
                                 uint32_t(std::min(q_len, arguments.max_rows)), uint32_t(wanted.q_heads),
                                 uint32_t(wanted.kv_heads), arguments.splits);
}

void Plan::trace(uint32_t event, const Prepared &prepared, const Grid &grid) const {
  if (shared->trace == nullptr) return;
  sluice_trace_record record = {};
  record.struct_size = sizeof record;
  record.event = event;
  std::copy(grid.begin(), grid.end(), record.grid);
  record.block[0] = prepared.entry->threads;
  record.block[1] = record.block[2] = 1;
  record.lds_bytes = prepared.entry->lds_bytes;
  record.waves = prepared.entry->name.waves;
  record.workspace_bytes = workspace_bytes();
  record.kernel = prepared.name.c_str();
  record.reason = choice.reason.c_str();
  shared->trace(&record, shared->trace_user);
}

void Plan::enqueue(const Prepared &prepared, const RowSet &rows, package::AttentionKernargs &kernargs,
                   void *stream) const {
  Grid groups = grid(prepared, rows.count, rows.most_rows);
  package::use_rounds(*prepared.entry, shared->device().compute_units, kernargs, groups);
  trace(SLUICE_TRACE_RUN, prepared, groups);
  runtime::enqueue(*shared->device().hip,
                   {prepared.function, groups, prepared.entry->threads, &kernargs, sizeof kernargs}, stream);
  increase(counts.*prepared.launches);
}

/// All sequences have `rows_of_sequence` rows in a part. In a cascade with starts, rows follow one another as
/// in q, as if there were one sequence.
struct Plan::Parts {
  SplitsLayout layout;
  char *workspace;
  int32_t sequences, rows_of_sequence;

  int32_t rows() const { return sequences * rows_of_sequence; }

  /// The parts from `first` on. `rows_apart`: rows from one sequence's first to the next one's; 0 if rows are
  /// found by their numbers. The merge counts a sink once, so none joins a part.
  Results from(uint32_t first, int64_t rows_apart) const {
    char *const o = workspace + first * layout.split_stride * sizeof(float);
    char *const lse = workspace + layout.lse_offset_bytes + first * layout.lse_split_stride * sizeof(float);
    return {.o = {o, {layout.row_stride * rows_apart, layout.row_stride, layout.head_stride, 1}},
            .lse = {lse, {layout.lse_row_stride * rows_apart, layout.lse_row_stride, 1, 1}},
            .sink_logits = nullptr,
            .o_split_stride = layout.split_stride,
            .lse_split_stride = layout.lse_split_stride};
  }
  Results own() const { return from(0, sequences > 1 ? rows_of_sequence : 0); }
};

Plan::Parts Plan::parts_of(const calls::Args &args, void *workspace) const {
  Parts out = {};
  out.workspace = static_cast<char *>(workspace);
  if (!is_cascade(wanted)) {
    out.sequences = args.batch;
    out.rows_of_sequence = std::min(args.q_len, choice.own.few_rows);
  } else {
    const bool has_starts = args.q_starts != nullptr;
    out.sequences = has_starts ? 1 : args.batch;
    out.rows_of_sequence = !has_starts          ? args.q_len
                           : args.q_tokens != 0 ? int32_t(args.q_tokens)
                                                : int32_t(wanted.max_q_tokens);
  }
  out.layout = splits_layout(wanted, choice.parts, int64_t{out.sequences} * out.rows_of_sequence);
  return out;
}

void Plan::run_own(const Prepared &prepared, const calls::Args &args, const Parts &parts,
                   void *stream) const {
  const Level level = own_level(wanted, args);
  const Results results = prepared.to_parts ? parts.own() : final_results(wanted, args);
  package::AttentionKernargs kernargs = prepared.arguments;
  fill_own(kernargs, wanted, args, level, results);
  enqueue(prepared, level.rows, kernargs, stream);
}

void Plan::run_prefixes(const calls::Args &args, const Parts &parts, void *stream) const {
  const Level level = prefix_level(wanted, args, parts.rows());
  package::AttentionKernargs kernargs = prefix.arguments;
  fill_prefixes(kernargs, wanted, args, level, parts.from(choice.prefix.first_split, 0));
  enqueue(prefix, level.rows, kernargs, stream);
}

void Plan::merge(const calls::Args &args, const Parts &parts, void *stream) const {
  const Results results = final_results(wanted, args);
  PartsMerge merge;
  merge.partial = parts.workspace;
  merge.partial_lse = parts.workspace + parts.layout.lse_offset_bytes;
  merge.result = {.o = results.o,
                  .lse = results.lse,
                  .sinks = results.sink_logits,
                  .o_scale = args.o_scale,
                  .o_scale_kind = wanted.o_scale_kind,
                  .to_log2 = (wanted.flags & calls::lse_log2) != 0};
  merge.q_lengths = args.q_lengths;
  merge.q_starts = args.q_starts;
  merge.parts = int32_t(choice.parts);
  merge.batch = parts.sequences;
  merge.q_rows = known_q_rows(wanted, args.q_tokens);
  merge.most_rows = args.q_len;
  merge.rows_per_sequence = parts.rows_of_sequence;
  merge.heads = wanted.q_heads;
  merge.head_dim_v = row_elements(wanted.head_dim_v);
  merge.max_rows = choice.own.few_rows;
  if (is_cascade(wanted)) {
    merge.prefix_starts = args.prefix_q_starts;
    merge.prefix_count = args.prefix_count;
    merge.searched_batch = args.q_starts != nullptr ? args.batch : 0;
    merge.own_parts = int32_t(choice.own.splits.count);
    merge.first_prefix_part = int32_t(choice.prefix.first_split);
  }
  merge_parts(*shared, *choice.merging, merge, stream);
  increase(counts.merge_launches);
}

void Plan::run(const calls::Args &args, const sluice_launch &launch) const {
  // Without starts and lengths on the device every sequence has q_len rows, and one kernel computes them all.
  const bool mixed = args.q_starts != nullptr || args.q_lengths != nullptr;
  const bool has_many = args.q_len > choice.own.few_rows;
  const bool has_few = few.entry != nullptr && (mixed || !has_many);
  const bool has_prefixes = is_cascade(wanted);
  const bool merges = has_prefixes || (choice.merging != nullptr && has_few);
  const Parts parts = merges ? parts_of(args, launch.workspace) : Parts();
  const Range range(*shared, [&](RangeText &text) {
    if (has_prefixes) text << prefix.name << " + ";
    text << (has_many ? many : few).name;
    if (has_many && has_few) text << " + " << few.name;
    text << " b" << args.batch << " q" << args.q_len << " kv" << args.kv_len;
    if (has_prefixes) text << " after " << args.prefix_count << " x " << args.prefix_len;
    text << range_end;
  });
  wait_for_dependencies(*shared->device().hip, launch);
  if (has_prefixes && args.prefix_count != 0) run_prefixes(args, parts, launch.stream);
  if (has_many) run_own(many, args, parts, launch.stream);
  if (has_few) run_own(few, args, parts, launch.stream);
  if (merges) merge(args, parts, launch.stream);
  signal(*shared->device().hip, launch);
}

void Plan::count_run(sluice_status status) const {
  increase(status == SLUICE_OK ? counts.runs : counts.refused);
}

sluice_counters Plan::counters() const {
  const auto read = [](const Counter &counter) { return counter.load(std::memory_order_relaxed); };
  sluice_counters out = {};
  out.runs = read(counts.runs);
  out.refused = read(counts.refused);
  out.main_launches = read(counts.main_launches);
  out.other_launches = read(counts.other_launches);
  out.launches = out.main_launches + out.other_launches;
  out.merge_launches = read(counts.merge_launches);
  return out;
}

} // namespace sluice::runtime
