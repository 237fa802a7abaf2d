//===- emulated_run.h - attention launches on the emulator, and its reports -----------------------------===//
#pragma once

#include "emulator/machine/machine.h"
#include "package/attention_launch.h"
#include "package/manifest.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace sluice::test {

/// The problem, as far as it decides which paths a kernel takes. Query lengths are full tiles and a
/// remainder, so that a problem has the same number of workgroups with every kernel.
struct Problem {
  const char *name;
  uint32_t q_tiles, q_rest;
  uint32_t kv_len;
  uint32_t q_heads, kv_heads;
  enum Mask : uint8_t { none, bottom_right, top_left } mask;
  bool lse;
  enum Values : uint8_t {
    usual,     // between -2 and 2
    growing,   // scores grow with the key: the maximum changes all the time
    zero_keys, // it never changes
    infinite,  // every 24th row of V or its scales, FP8 NaN: in each tile of 32 keys, even and odd ones of 16
    level,     // all scores are the same large number, and V adds up to zero
  } values;
  emulator::CompletionOrder completion;
  /// Other features, as bits.
  enum Extra : uint32_t {
    lengths = 1 << 0,            // of the sequence, and where it starts, in device memory
    factors = 1 << 1,            // of Q, K and V, for each head
    sinks = 1 << 2,              // a logit for each head
    soft_cap = 1 << 3,           // features from here on change scores
    alibi = 1 << 4,              //
    mask_bits = 1 << 5,          //
    bias_f32 = 1 << 6,           //
    bias_f16 = 1 << 7,           //
    bias_bf16 = 1 << 8,          //
    pages = 1 << 9,              // of K and V, with 32-bit numbers
    wide_pages = 1 << 10,        // with 64-bit numbers, found by where the sequence's begin
    parts = 1 << 11,             // of the keys, with a result for each
    window = 1 << 12,            // of keys, and first keys beside it
    bias_of_rows = 1 << 13,      // one for all keys of a row
    few_columns = 1 << 14,       // of O, so that some lanes have no columns
    infinite_keys = 1 << 15,     // every 24th row of K begins with infinity, so that its scores are infinite
    output_f32 = 1 << 16,        // O as F32
    rounds = 1 << 17,            // two compute units, whose workgroups take several rounds
    sequence_diagonal = 1 << 18, // a diagonal of the sequence's own, and causal only for that
    spans = 1 << 19,             // of keys that see each other in both directions
    bias_scale = 1 << 20,        // for each head
    output_fp8 = 1 << 21,        // O as E4M3FNUZ, with a scale for each head
    new_rows = 1 << 22,          // the mask has as many keys as there are rows, the newest
    key_scales = 1 << 23,        // of K and V, for each key
    missing_pages = 1 << 24,     // the second page is not there, and its keys are zeros
    hidden_pages = 1 << 25,      // the same, and its keys are hidden
    zero_points = 1 << 26,       // of U4, for each group; groups have 64 elements
    short_rows = 1 << 27,        // that end inside eight elements
    other_strides = 1 << 28,     // of V in blocks than of K
    prefix_rows = 1 << 29,       // rows that see a prefix, and belong to three sequences or none
    found_rows = 1 << 30,        // the sequences begin at any rows
  };
  uint32_t extras = 0;
};

/// Problems that together take every path of a kernel; the first one takes most of the paths of plain
/// attention.
std::vector<Problem> path_problems(const package::KernelName &kernel);

/// A problem with its tensors in its own memory: instances may run at the same time.
class AttentionRun {
public:
  AttentionRun(const package::KernelEntry &kernel, const Problem &problem);

  /// On one thread, with every check.
  emulator::LaunchResult run(const emulator::Program &program, bool stop_at_report = false,
                             emulator::Tracer *tracer = nullptr);
  emulator::LaunchResult run(const emulator::Program &program, const emulator::Options &options);
  /// For launches of another kind, in the problem's memory.
  package::AttentionLaunch call();
  const emulator::Memory &device_memory() const { return memory; }
  /// O and, where the problem has it, LSE, as the last run left them.
  std::vector<uint16_t> output() const;

private:
  /// Elements of Q, O and the arithmetic, or of K and V in memory.
  struct Tensor {
    std::byte *data;
    size_t elements;
    std::string_view type;

    void set(size_t index, float number) const;
    void fill(uint32_t seed, float spread) const;
  };

  bool has(uint32_t extras) const { return (problem.extras & extras) != 0; }
  bool is_by_columns() const;
  size_t column_rows() const;
  std::byte *reserve(size_t bytes);
  Tensor allocate(size_t elements, std::string_view type);
  /// K or V: `rows` of `columns` numbers, or whole blocks of them.
  Tensor allocate_keys(size_t rows, size_t columns);
  /// The address of an array in device memory that lives as long as the run.
  template <typename Element> uint64_t place(const std::vector<Element> &array);
  /// Rows of V that Problem::infinite changes: the last, and every 24th before it.
  template <typename Visit> void for_each_infinite_row(Visit visit) const;
  void shape_values();
  package::AttentionLaunch plain_launch() const;
  void place_blocks(package::AttentionKernargs &args);
  void place_extras(package::AttentionKernargs &args);
  void place_pages(package::AttentionKernargs &args);
  void clear_output();

  const package::KernelEntry kernel;
  const Problem problem;
  const size_t d_qk, d_v, q_len, page_count, kv_capacity; // kv_capacity: rows of K and V that memory holds
  emulator::Memory memory;
  Tensor q, k, v;
  std::span<uint16_t> o, lse; // F32 takes two; lse is empty if the problem has no LSE
  package::AttentionLaunch launch;
};

} // namespace sluice::test
