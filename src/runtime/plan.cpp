//===- plan.cpp - a problem with its kernels chosen and loaded ------------------------------------------===//
#include "runtime/plan.h"

#include "package/attention_launch.h"
#include "package/rounds.h"
#include "runtime/attention_arguments.h"
#include "runtime/cache_ops.h"
#include "runtime/call_rows.h"
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
  prefix = prepare(choice.prefix.kernel);
  if (choice.few != nullptr) {
    if (choice.many != nullptr) many.arguments.min_rows = choice.few_rows + 1;
    few.arguments.max_rows = choice.few_rows;
    package::set_splits(few.arguments, choice.splits);
    few.arguments.split_tiles = choice.split_tiles;
    few.arguments.min_split_tiles = choice.min_split_tiles;
  }
  if (is_cascade(wanted)) {
    // Rows of both levels are stored by their numbers, with starts.
    many.arguments.score_flags |= package::score_o_f32;
    few.arguments.score_flags |= package::score_o_f32;
    prefix.arguments.score_flags |= package::score_o_f32;
    prefix.arguments.window_right = package::kernarg_no_window; // all rows are after the prefix
    prefix.arguments.score_flags &= ~uint32_t{package::score_of_sequence};
    package::set_splits(prefix.arguments, choice.prefix.splits);
    prefix.arguments.split_tiles = choice.prefix.split_tiles;
    prefix.arguments.min_split_tiles = choice.prefix.min_split_tiles;
  } else if (choice.merges) {
    few.arguments.score_flags |= package::score_partial;
  }
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

/// All sequences have `rows_of_sequence` rows in a split. In a cascade with starts, rows follow one another
/// as in q, as if there were one sequence.
struct Plan::Splits {
  SplitsLayout layout;
  char *workspace;
  int32_t sequences, rows_of_sequence;

  /// Lets a kernel store its results in the splits from `first` on.
  void direct(package::AttentionKernargs &kernargs, const sluice_problem &problem, uint32_t first) const {
    const int64_t rows = sequences > 1 ? rows_of_sequence : 0;
    kernargs.o = reinterpret_cast<uint64_t>(workspace) + first * layout.split_stride * sizeof(float);
    kernargs.o_batch_stride = layout.row_stride * rows;
    kernargs.o_token_stride = layout.row_stride;
    kernargs.o_head_stride = row_elements(problem.head_dim_v);
    kernargs.o_split_stride = layout.split_stride;
    kernargs.lse = reinterpret_cast<uint64_t>(workspace) + layout.lse_offset_bytes +
                   first * layout.lse_split_stride * sizeof(float);
    kernargs.lse_batch_stride = layout.lse_row_stride * rows;
    kernargs.lse_token_stride = layout.lse_row_stride;
    kernargs.lse_head_stride = 1;
    kernargs.lse_split_stride = layout.lse_split_stride;
    // The merge counts it once.
    kernargs.sink_logits = 0;
  }
};

Plan::Splits Plan::splits_of(const sluice_args &args, void *workspace) const {
  Splits out = {};
  out.workspace = static_cast<char *>(workspace);
  uint32_t splits = choice.splits;
  if (!is_cascade(wanted)) {
    out.sequences = args.batch;
    out.rows_of_sequence = std::min(args.q_len, choice.few_rows);
  } else {
    splits = choice.prefix.first_split + choice.prefix.splits;
    const bool has_starts = args.q_starts != nullptr;
    out.sequences = has_starts ? 1 : args.batch;
    out.rows_of_sequence = !has_starts          ? args.q_len
                           : args.q_tokens != 0 ? int32_t(args.q_tokens)
                                                : int32_t(wanted.max_q_tokens);
  }
  out.layout = splits_layout(wanted, splits, int64_t{out.sequences} * out.rows_of_sequence);
  return out;
}

void Plan::run_prefixes(const sluice_args &args, const Splits &splits, void *stream) const {
  sluice_args call = args;
  call.batch = args.prefix_count;
  call.q_len = splits.sequences * splits.rows_of_sequence;
  call.kv_len = args.prefix_len;
  // Rows are found by their number; those of sequences of one row follow one another by stride[0].
  if (args.q_starts == nullptr && args.q_len == 1) call.q.stride[1] = args.q.stride[0];
  call.q_starts = args.prefix_q_starts;
  call.q_lengths = nullptr;
  call.kv_starts = nullptr;
  call.kv_tokens = 0; // counts rows of the sequences' own keys
  call.kv_lengths = args.prefix_lengths;
  if (wanted.mode != SLUICE_MODE_PAGED) {
    call.k = args.prefix_k;
    call.v = args.prefix_v;
  }
  call.page_table = args.prefix_page_table;
  call.page_table_stride = args.prefix_page_table_stride;
  call.page_table_head_stride = 0; // heads share the tables of prefixes
  call.page_starts = args.prefix_page_starts;
  call.q_tokens = call.q_len;
  // Diagonals, causal and spans are for the sequences' own keys.
  call.diagonals = call.causal = call.spans = nullptr;
  call.span_count = 0;
  package::AttentionKernargs kernargs = prefix.arguments;
  fill_call(kernargs, wanted, call);
  splits.direct(kernargs, wanted, choice.prefix.first_split);
  kernargs.o_batch_stride = kernargs.lse_batch_stride = 0;
  if (args.q_starts != nullptr || args.q_lengths != nullptr) {
    // There may be rows that belong to no sequence.
    kernargs.score_flags |= package::score_rows_of_sequences;
    kernargs.diagonals = reinterpret_cast<uint64_t>(args.q_starts);
    kernargs.causal = reinterpret_cast<uint64_t>(args.q_lengths);
    kernargs.span_stride = args.batch;
    kernargs.bias_row_stride = args.q_len;
  }
  enqueue(prefix, call, kernargs, stream);
}

void Plan::merge(const sluice_args &args, const Splits &splits, void *stream) const {
  PartsMerge merge;
  merge.partial = splits.workspace;
  merge.partial_lse = splits.workspace + splits.layout.lse_offset_bytes;
  merge.o = with_used_strides(args.o, q_rows(args), wanted.q_heads, row_elements(wanted.head_dim_v));
  merge.lse = with_used_strides(args.lse, q_rows(args), wanted.q_heads, 1);
  merge.sink_logits = args.sink_logits;
  merge.o_scale = args.o_scale;
  merge.o_scale_kind = wanted.o_scale_kind;
  merge.q_lengths = args.q_lengths;
  merge.q_starts = args.q_starts;
  merge.lse_base = wanted.lse_base;
  merge.parts = int32_t(choice.splits);
  merge.batch = splits.sequences;
  merge.q_rows = std::min(rows_or_unknown(args.q_tokens), rows_or_unknown(wanted.max_q_tokens));
  merge.most_rows = args.q_len;
  merge.rows_per_sequence = splits.rows_of_sequence;
  merge.heads = wanted.q_heads;
  merge.head_dim_v = row_elements(wanted.head_dim_v);
  merge.max_rows = choice.few_rows;
  if (is_cascade(wanted)) {
    merge.parts = int32_t(choice.prefix.first_split + choice.prefix.splits);
    merge.prefix_starts = args.prefix_q_starts;
    merge.prefix_count = args.prefix_count;
    merge.searched_batch = args.q_starts != nullptr ? args.batch : 0;
    merge.own_parts = int32_t(choice.splits);
    merge.first_prefix_part = int32_t(choice.prefix.first_split);
  }
  merge_parts(*shared, *choice.merging, merge, stream);
  increase(counts.merge_launches);
}

void Plan::run(const sluice_args &args, const sluice_launch &launch) const {
  // Without starts and lengths on the device every sequence has q_len rows, and one kernel computes them all.
  const bool mixed = args.q_starts != nullptr || args.q_lengths != nullptr;
  const bool has_many = args.q_len > choice.few_rows;
  const bool has_few = few.entry != nullptr && (mixed || !has_many);
  const bool cascades = is_cascade(wanted);
  const bool merges = cascades || (choice.merges && has_few);
  const Splits splits = merges ? splits_of(args, launch.workspace) : Splits();
  const Range range(*shared, [&](RangeText &text) {
    if (cascades) text << prefix.name << " + ";
    text << (has_many ? many : few).name;
    if (has_many && has_few) text << " + " << few.name;
    text << " b" << args.batch << " q" << args.q_len << " kv" << args.kv_len;
    if (cascades) text << " after " << args.prefix_count << " x " << args.prefix_len;
    text << range_end;
  });
  wait_for_dependencies(*shared->device().hip, launch);
  if (cascades && args.prefix_count != 0) run_prefixes(args, splits, launch.stream);
  const auto run_own = [&](const Prepared &prepared, bool to_splits) {
    package::AttentionKernargs kernargs = prepared.arguments;
    fill_call(kernargs, wanted, args);
    if (to_splits) splits.direct(kernargs, wanted, 0);
    enqueue(prepared, args, kernargs, launch.stream);
  };
  if (has_many) run_own(many, cascades);
  if (has_few) run_own(few, merges);
  if (merges) merge(args, splits, launch.stream);
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
