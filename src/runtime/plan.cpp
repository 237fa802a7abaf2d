//===- plan.cpp - a problem with its kernels chosen and loaded ------------------------------------------===//
#include "runtime/plan.h"

#include "package/attention_launch.h"
#include "package/rounds.h"
#include "runtime/attention_arguments.h"
#include "runtime/cache_ops.h"
#include "runtime/dtype.h"
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
std::string describe(const sluice_problem &problem) {
  std::string out = text(" h", problem.q_heads, "/", problem.kv_heads);
  if (problem.mode != SLUICE_MODE_DENSE) out += problem.mode == SLUICE_MODE_PAGED ? " paged" : " ragged";
  if (problem.flags & SLUICE_CAUSAL) out += " causal";
  if (problem.flags & (SLUICE_HAS_WINDOW_LEFT | SLUICE_HAS_WINDOW_RIGHT)) out += " window";
  if (problem.flags & SLUICE_BOOL_MASK) out += " mask";
  if (problem.bias_type != 0) out += " bias";
  return out;
}

void increase(std::atomic<uint64_t> &counter) {
  counter.fetch_add(1, std::memory_order_relaxed);
}

} // namespace

Plan::Plan(std::shared_ptr<Context> context, const sluice_problem &problem)
    : shared(std::move(context)), wanted(problem), choice(choose_kernel(*shared, problem)),
      range_end(describe(problem)) {
  many = prepare(choice.many);
  few = prepare(choice.few);
  if (choice.few != nullptr) {
    if (choice.many != nullptr) many.arguments.min_rows = choice.few_rows + 1;
    few.arguments.max_rows = choice.few_rows;
    package::set_splits(few.arguments, choice.splits);
    few.arguments.split_tiles = choice.split_tiles;
    few.arguments.min_split_tiles = choice.min_split_tiles;
  }
  if (choice.merges) few.arguments.score_flags |= package::score_partial;
  if (shared->device().hip) load_kernels(*shared, choice);
  if (support::logs(LogLevel::info)) {
    support::log(LogLevel::info, text("plan: ", kernel_name(), ": ", choice.reason));
  }
  trace(SLUICE_TRACE_PLAN, main(), grid(problem.max_batch, problem.max_q_len));
}

Plan::Prepared Plan::prepare(const package::PackedKernel *kernel) {
  Prepared out;
  if (kernel == nullptr) return out;
  out.entry = &kernel->entry;
  out.name = package::format_kernel_name(kernel->entry.name);
  out.arguments = problem_arguments(kernel->entry, wanted);
  if (shared->device().hip) out.function = shared->function(*kernel);
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

void Plan::enqueue(const Prepared &prepared, const sluice_args &args, package::AttentionKernargs &kernargs,
                   void *stream) const {
  Grid groups = grid(prepared, args.batch, args.q_len);
  package::use_rounds(*prepared.entry, shared->device().compute_units, kernargs, groups);
  trace(SLUICE_TRACE_RUN, prepared, groups);
  runtime::enqueue(*shared->device().hip,
                   {prepared.function, groups, prepared.entry->threads, &kernargs, sizeof kernargs}, stream);
  increase(&prepared == &main() ? counts.main_launches : counts.other_launches);
}

void Plan::run_few(const sluice_args &args, const sluice_launch &launch) const {
  package::AttentionKernargs kernargs = few.arguments;
  fill_call(kernargs, wanted, args);
  if (!choice.merges) return enqueue(few, args, kernargs, launch.stream);

  const int32_t rows = std::min(args.q_len, choice.few_rows);
  const SplitLayout splits = split_layout(wanted, choice.splits, args.batch, rows);
  char *const workspace = static_cast<char *>(launch.workspace);
  kernargs.o = reinterpret_cast<uint64_t>(workspace);
  kernargs.o_batch_stride = splits.batch_stride;
  kernargs.o_token_stride = splits.token_stride;
  kernargs.o_head_stride = wanted.head_dim_v;
  kernargs.o_split_stride = splits.split_stride;
  kernargs.lse = kernargs.o + splits.lse_offset_bytes;
  kernargs.lse_batch_stride = splits.lse_batch_stride;
  kernargs.lse_token_stride = splits.lse_token_stride;
  kernargs.lse_head_stride = 1;
  kernargs.lse_split_stride = splits.lse_split_stride;
  enqueue(few, args, kernargs, launch.stream);

  PartsMerge merge;
  merge.partial = workspace;
  merge.partial_lse = workspace + splits.lse_offset_bytes;
  merge.o = args.o;
  merge.lse = args.lse;
  merge.sink_logits = args.sink_logits;
  merge.q_lengths = args.q_lengths;
  merge.q_starts = args.q_starts;
  merge.lse_base = wanted.lse_base;
  merge.parts = int32_t(choice.splits);
  merge.batch = args.batch;
  merge.q_rows = kernargs.q_rows;
  merge.most_rows = args.q_len;
  merge.rows_per_sequence = rows;
  merge.heads = wanted.q_heads;
  merge.head_dim_v = wanted.head_dim_v;
  merge.max_rows = choice.few_rows;
  merge_parts(*shared, *choice.merging, merge, launch.stream);
  increase(counts.merge_launches);
}

void Plan::run(const sluice_args &args, const sluice_launch &launch) const {
  // Without starts and lengths on the device every sequence has q_len rows, and one kernel computes them all.
  const bool mixed = args.q_starts != nullptr || args.q_lengths != nullptr;
  const bool has_many = args.q_len > choice.few_rows;
  const bool has_few = few.entry != nullptr && (mixed || !has_many);
  const Range range(*shared, [&](RangeText &text) {
    text << (has_many ? many : few).name;
    if (has_many && has_few) text << " + " << few.name;
    text << " b" << args.batch << " q" << args.q_len << " kv" << args.kv_len << range_end;
  });
  wait_for_dependencies(*shared->device().hip, launch);
  if (has_many) {
    package::AttentionKernargs kernargs = many.arguments;
    fill_call(kernargs, wanted, args);
    enqueue(many, args, kernargs, launch.stream);
  }
  if (has_few) run_few(args, launch);
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
