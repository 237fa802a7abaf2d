//===- feature_speed.cpp - what features cost, on the timing model --------------------------------------===//
//
//   feature_speed [PACK] [--types NAME]
//
// NAME is one combination of types, such as "BF16 with E4M3FNUZ"; without it there is a table for each.
//
// For each combination of types, head size and feature that the library supports: the modelled time of a
// problem with the feature, as a multiple of that of the plain problem. Prints a table in markdown. A problem
// far from the plain one does not use the fast kernels: the program names it and fails.
//
//===----------------------------------------------------------------------------------------------------===//
#include "calls/args.h"
#include "calls/problem.h"
#include "emulator/machine/program.h"
#include "emulator/timing/timing.h"
#include "tools/bench/launch_timing.h"
#include "tools/bench/recorded_plan.h"
#include "tools/bench/workload.h"
#include "tools/bench/workload_tensors.h"
#include "tools/shared/pack_file.h"
#include "tools/shared/tool_error.h"
#include "tools/sluice/support_questions.h"

#include <cstdio>
#include <cstring>
#include <exception>
#include <map>
#include <numeric>
#include <string>
#include <vector>

namespace {

using namespace sluice;
using namespace sluice::tools;

// A bias, which has to be read, comes closest to this limit.
constexpr double most_times = 2;

// A tile of rows for each of 8 KV heads and 80 sequences: more workgroups than compute units. A few of them
// are simulated, on several compute units: a single one finds nothing in L2 that another has read, such as a
// bias that all heads share.
constexpr uint32_t compute_units = 304;
constexpr int32_t batch = 80, q_len = 256, kv_len = 1024;
constexpr SampleSize sample = {.compute_units = 2, .workgroups = 2};
constexpr uint64_t most_bytes = uint64_t(4) << 30; // of tensors; few of them are touched

/// A call of any problem that is asked about.
class Call {
public:
  explicit Call(const calls::Problem &asked) : problem(asked), memory(most_bytes) {
    problem.max_batch = batch;
    problem.max_q_len = q_len;
    problem.max_kv_len = kv_len;
    args.scale = calls::usual_scale(problem);
    args.batch = batch;
    args.q_len = q_len;
    args.kv_len = kv_len;
    const int32_t qk = problem.head_dim_qk, v = problem.head_dim_v;
    const int32_t page_size = problem.mode == calls::paged ? problem.page_size : 0;
    const int64_t blocks = page_size == 0 ? batch : batch * pages_of(page_size);
    const int64_t rows = page_size == 0 ? kv_len : page_size;
    args.q = tensor(problem.q_type, batch, q_len, problem.q_heads, qk);
    args.o = tensor(problem.o_type, batch, q_len, problem.q_heads, v);
    args.k = tensor(problem.k_type, blocks, rows, problem.kv_heads, qk);
    if (!(problem.flags & calls::v_in_k)) args.v = tensor(problem.v_type, blocks, rows, problem.kv_heads, v);
    if (problem.mode == calls::ragged) {
      args.q_starts = starts(q_len);
      args.kv_starts = starts(kv_len);
      for (sluice_tensor *tensor : {&args.q, &args.k, &args.v, &args.o})
        tensor->stride[0] = 0;
    }
    if (page_size != 0) page(pages_of(page_size));
    change_scores();
  }

  /// The total of all launches of a run.
  uint64_t clk(const PackFile &pack) {
    RecordedPlan plan(pack, compute_units, problem);
    const uint64_t workspace_bytes = plan.info().workspace_bytes;
    void *const workspace = workspace_bytes == 0 ? nullptr : memory.allocate(workspace_bytes);
    uint64_t sum = 0;
    for (const RecordedLaunch &recorded : plan.run(args, workspace)) {
      const RecordedLaunch launch = recorded.without_rounds();
      const emulator::Program program{pack.elf(pack.kernel(launch.kernel), "gfx942")};
      const emulator::timing::TimingResult result = emulator::timing::time_launch(
          program, launch.kernel, launch.grid, launch.block, launch.dynamic_lds_bytes, launch.kernarg,
          memory.machine(), sample_of(launch.grid, sample));
      if (!result.reports.empty())
        throw ToolError(launch.kernel + ": " + emulator::to_text(result.reports.front()));
      sum += result.device_clk;
    }
    return sum;
  }

private:
  static int64_t pages_of(int32_t page_size) { return (kv_len + page_size - 1) / page_size; }

  sluice_tensor tensor(uint32_t type, int64_t sequences, int64_t tokens, int64_t heads, int64_t columns) {
    const int64_t count = sequences * tokens * heads * columns;
    return {.data = memory.allocate(stored_bytes(type, uint64_t(count))),
            .stride = {tokens * heads * columns, heads * columns, columns, 1}};
  }

  template <typename T> T *array(size_t count, T value) {
    const std::vector<T> values(count, value);
    T *const data = static_cast<T *>(memory.allocate(count * sizeof(T)));
    memory.upload(data, values.data(), count * sizeof(T));
    return data;
  }

  int32_t *starts(int32_t step) {
    int32_t *const places = array(batch + 1, 0);
    for (int32_t sequence = 0; sequence <= batch; ++sequence)
      places[sequence] = sequence * step;
    return places;
  }

  template <typename T> void fill_table(int64_t count) {
    T *const table = array(size_t(count), T{0});
    std::iota(table, table + count, T{0});
    args.page_table = table;
  }

  void page(int64_t pages) {
    if (problem.k_pack != 0) { // [page, head, pack, token, element of the pack]
      args.k.stride[1] = problem.k_pack;
      args.k.stride[3] = int64_t(problem.k_pack) * problem.page_size;
      args.k.stride[2] = int64_t(problem.head_dim_qk) * problem.page_size;
    }
    if (problem.flags & calls::page_index_64)
      fill_table<int64_t>(batch * pages);
    else
      fill_table<int32_t>(batch * pages);
    if (problem.page_table_kind == SLUICE_PAGE_TABLE_CSR)
      args.page_starts = starts(int32_t(pages));
    else
      args.page_table_stride = pages;
    args.kv_lengths = array(batch, kv_len);
  }

  void change_scores() {
    const auto heads = size_t(problem.q_heads);
    if (problem.flags & calls::write_lse) {
      args.lse = tensor(SLUICE_F32, batch, q_len, problem.q_heads, 1);
      if (problem.mode == calls::ragged) args.lse.stride[0] = 0;
    }
    if (problem.bias_type != 0) args.bias = {memory.allocate(q_len * kv_len * 4), {0, 0, kv_len, 1}};
    if (problem.flags & calls::mask_bits)
      args.mask = {array(q_len * kv_len / 8, uint8_t{0xff}), {0, 0, kv_len / 8, 1}};
    if (problem.flags & calls::alibi) args.alibi_slopes = array(heads, 0.5f);
    if (problem.flags & calls::sinks) args.sink_logits = array(heads, 0.0f);
    if (problem.q_scale_kind != SLUICE_SCALE_NONE) args.q_scale = array(heads, 1.0f);
    scale_keys(problem.k_scale_kind, args.k_scale, args.k_scales, args.k);
    scale_keys(problem.v_scale_kind, args.v_scale, args.v_scales,
               problem.flags & calls::v_in_k ? args.k : args.v);
    if (problem.o_scale_kind != SLUICE_SCALE_NONE) args.o_scale = array(heads, 1.0f);
    if (problem.flags & calls::bias_scale) args.bias_scale = array(heads, 1.0f);
    if (problem.mask_alignment == SLUICE_GIVEN_DIAGONAL) args.diagonals = array(batch, kv_len - q_len);
    if (problem.flags & calls::causal_by_sequence) args.causal = array(batch, 1);
    if (problem.flags & calls::spans) {
      // Among the rows, whose keys are the newest.
      int32_t *const spans = array(size_t(batch) * 2, 0);
      for (int32_t sequence = 0; sequence < batch; ++sequence) {
        spans[2 * sequence] = kv_len - q_len / 2;
        spans[2 * sequence + 1] = kv_len - q_len / 4;
      }
      args.spans = spans;
      args.span_count = 1;
    }
  }

  /// One for each head, or for each row of each head.
  void scale_keys(uint32_t kind, const float *&few, sluice_tensor &scales, const sluice_tensor &rows) {
    if (kind == SLUICE_SCALE_NONE) return;
    if (kind <= SLUICE_SCALE_PER_HEAD) {
      few = array(size_t(problem.q_heads), 1.0f);
      return;
    }
    const int64_t heads = problem.kv_heads,
                  tokens = problem.mode == calls::paged ? problem.page_size : kv_len;
    const bool is_per_page = kind == SLUICE_SCALE_PER_PAGE;
    const int64_t all = rows.stride[0] == 0 ? batch : (int64_t{batch} * kv_len + tokens - 1) / tokens + batch;
    scales = {array(size_t(all * tokens * heads), 1.0f),
              {rows.stride[0] == 0 ? 0 : (is_per_page ? 1 : tokens) * heads, is_per_page ? 0 : heads, 1, 0}};
  }

  calls::Problem problem;
  ModelMemory memory;
  calls::Args args;
};

int check_types(const PackFile &pack, const sluice_context *context, const Types &types,
                const std::vector<HeadSizes> &sizes) {
  int slow = 0;
  std::map<std::string, std::map<std::string, std::string>> cells;
  std::vector<std::string> columns;
  for (const HeadSizes &size : sizes) {
    const calls::Problem plain = plain_problem(types, size);
    if (!ask(context, plain).supported) continue;
    const auto plain_clk = double(Call(plain).clk(pack));
    columns.push_back(text_of(size));
    for (const Question &question : questions()) {
      if (!question.ask) continue;
      calls::Problem problem = plain;
      question.ask(problem);
      // Another call, with more keys and launches: sluice bench --shared-prefix times it.
      if (problem.flags & calls::prefixes) continue;
      // Kernels of few rows only, the first of which sluice bench --sparse times. And another type of K and V
      // or another head size is not a feature.
      if (problem.flags & calls::missing_pages || problem.v_pack != 0) continue;
      if (problem.k_type != plain.k_type || problem.head_dim_qk != plain.head_dim_qk) continue;
      if (!ask(context, problem).supported) continue;
      const double times = double(Call(problem).clk(pack)) / plain_clk;
      char text[16];
      std::snprintf(text, sizeof text, "%.2f", times);
      cells[question.name][columns.back()] = text;
      if (times <= most_times) continue;
      std::fprintf(stderr, "%s, head size %s: %s takes %.2f times as long as without; %g is the most\n",
                   text_of(types).c_str(), columns.back().c_str(), question.name, times, most_times);
      ++slow;
    }
  }
  std::printf("\n%s:\n\n| feature |", text_of(types).c_str());
  for (const std::string &column : columns)
    std::printf(" %s |", column.c_str());
  std::printf("\n| --- |");
  for (size_t column = 0; column < columns.size(); ++column)
    std::printf(" ---: |");
  std::printf("\n");
  for (const Question &question : questions()) {
    const auto row = cells.find(question.name);
    if (row == cells.end()) continue;
    std::printf("| %s |", question.name);
    for (const std::string &column : columns)
      std::printf(" %s |", row->second.contains(column) ? row->second[column].c_str() : "");
    std::printf("\n");
  }
  std::fflush(stdout);
  return slow;
}

} // namespace

int main(int argc, char **argv) try {
  std::string file, wanted;
  for (int n = 1; n < argc; ++n) {
    const std::string argument = argv[n];
    if (argument != "--types")
      file = argument;
    else if (++n < argc)
      wanted = argv[n];
  }
  const PackFile pack(file);
  const ContextHandle context = make_context("gfx942:304", pack.content());
  const std::vector<HeadSizes> sizes = kernel_head_sizes(context.get());
  int slow = 0;
  bool found = false;
  for (const Types &types : supported_types(context.get(), sizes)) {
    if (types.o == SLUICE_F32) continue; // a feature of the others
    if (!wanted.empty() && text_of(types) != wanted) continue;
    found = true;
    slow += check_types(pack, context.get(), types, sizes);
  }
  if (!found)
    throw ToolError("--types is \"" + wanted + "\"; no combination that is supported has this name");
  return slow == 0 ? 0 : 1;
} catch (const std::exception &error) {
  std::fprintf(stderr, "feature_speed: %s\n", error.what());
  return 1;
}
