//===- dense_cases.cpp - plain dense attention at every length ------------------------------------------===//
//
// Every length with every dtype, head size and mask; every pair of lengths under every mask; every group
// size, batch and layout together. A parameter that a part does not test rotates through its values.
//
//===----------------------------------------------------------------------------------------------------===//
#include "conformance/attention/collector.h"

#include <algorithm>
#include <array>

namespace sluice::conformance {

namespace {

constexpr std::array masks = {Mask::none, Mask::bottom_right, Mask::top_left};
constexpr std::array layouts = {Layout::bshd,   Layout::bhsd,     Layout::sbhd,     Layout::packed,
                                Layout::padded, Layout::capacity, Layout::broadcast};
constexpr std::array patterns = {Pattern::normal,  Pattern::peaked,  Pattern::rising,
                                 Pattern::falling, Pattern::uniform, Pattern::tiny};
// Around the sizes of kernels' tiles: a 16- or 32-row fragment, a KV tile of 64, a wave's or a workgroup's
// 128 and 256 rows, two of those; 1000 is not a multiple of any of them.
constexpr std::array lengths = {1,  2,   3,   15,  16,  17,  31,  32,  33,  63,  64,
                                65, 127, 128, 129, 255, 256, 257, 511, 512, 513, 1000};

/// Every length, dtype and mask, with three head sizes at a time, Q as long as KV; head sizes, heads, layouts
/// and patterns rotate.
void add_square(Collector &out) {
  constexpr size_t sizes_at_a_time = 3;
  const size_t sizes = std::min(out.head_sizes.size(), sizes_at_a_time);
  int turn = 0, size_turn = 0;
  for (int length : lengths)
    for (Dtype dtype : out.dtypes) {
      for (size_t size = 0; size < sizes; ++size)
        for (Mask mask : {Mask::none, Mask::bottom_right}) {
          const int heads = length <= 129 ? 2 : 1;
          out.add({.dtype = dtype,
                   .head_size = out.head_size(size_turn + int(size)),
                   .q_heads = heads,
                   .kv_heads = turn % 3 == 0 ? 1 : heads,
                   .q_len = length,
                   .kv_len = length,
                   .mask = mask,
                   .layout = layouts[turn % 6],
                   .pattern = Pattern::normal});
          ++turn;
        }
      size_turn += int(sizes);
    }
}

/// One query token against every length: the call of every decoding step.
void add_decode(Collector &out) {
  int turn = 0;
  for (int length : lengths) {
    out.add({.dtype = out.dtype(turn),
             .head_size = out.head_size(turn / 2),
             .q_heads = 4,
             .kv_heads = 2,
             .q_len = 1,
             .kv_len = length,
             .mask = Mask::bottom_right,
             .layout = turn % 3 == 0 ? Layout::padded : Layout::capacity});
    ++turn;
  }
}

/// Q longer and shorter than KV, all masks; if Q is longer, bottom-right leaves rows without a visible key.
void add_rectangular(Collector &out) {
  constexpr std::array<std::array<int, 2>, 19> shapes = {{{2, 1},
                                                          {3, 65},
                                                          {17, 16},
                                                          {16, 17},
                                                          {15, 129},
                                                          {33, 31},
                                                          {31, 257},
                                                          {64, 128},
                                                          {65, 63},
                                                          {127, 513},
                                                          {128, 32},
                                                          {129, 65},
                                                          {200, 1000},
                                                          {255, 17},
                                                          {257, 256},
                                                          {256, 511},
                                                          {300, 1},
                                                          {513, 127},
                                                          {1000, 63}}};
  int turn = 0;
  for (const auto &[q_len, kv_len] : shapes)
    for (Mask mask : masks) {
      out.add({.dtype = out.dtype(turn),
               .head_size = out.head_size(turn / 2),
               .q_heads = 2,
               .kv_heads = 1,
               .q_len = q_len,
               .kv_len = kv_len,
               .mask = mask,
               .layout = layouts[turn % 7]});
      ++turn;
    }
}

/// Batches, groups of query heads per KV head, and layouts.
void add_heads_and_layouts(Collector &out) {
  int turn = 0;
  for (int group : {1, 2, 4, 8})
    for (int batch : {1, 2, 3})
      for (Layout layout : layouts) {
        ++turn;
        const int kv_heads = group == 8 ? 1 : 2;
        out.add({.dtype = out.dtype(turn / 2),
                 .head_size = out.head_size(turn / 4),
                 .batch = batch,
                 .q_heads = group * kv_heads,
                 .kv_heads = kv_heads,
                 .q_len = 70,
                 .kv_len = layout == Layout::packed ? 70 : 90,
                 .mask = masks[turn % 3],
                 .layout = layout});
      }
  // Three KV heads: a shift in place of the division would be wrong.
  out.add({.batch = 2, .q_heads = 6, .kv_heads = 3, .q_len = 40, .kv_len = 50, .mask = Mask::bottom_right});
  out.add({.dtype = Dtype::bf16, .batch = 1, .q_heads = 15, .kv_heads = 3, .q_len = 5, .kv_len = 66});
}

void add_patterns(Collector &out) {
  int turn = 0;
  for (Pattern pattern : patterns)
    for (Dtype dtype : out.dtypes)
      for (HeadSizes head_size : out.head_sizes)
        for (int length : {100, 300}) {
          out.add({.dtype = dtype,
                   .head_size = head_size,
                   .q_len = length,
                   .kv_len = length,
                   .mask = masks[turn++ % 2],
                   .layout = Layout::capacity,
                   .pattern = pattern});
        }
}

void add_scales_and_outputs(Collector &out) {
  for (Dtype dtype : out.dtypes)
    for (double scale : {1.0, 0.0625, 0.3}) {
      out.add({.dtype = dtype,
               .head_size = 64,
               .q_len = 80,
               .kv_len = 100,
               .mask = Mask::bottom_right,
               .scale = scale});
      out.add({.dtype = dtype, .q_len = 80, .kv_len = 100, .mask = Mask::none, .scale = scale});
    }
  for (Dtype dtype : out.dtypes)
    for (Mask mask : masks)
      out.add(
          {.dtype = dtype, .q_len = 90, .kv_len = 70, .mask = mask, .layout = Layout::padded, .lse = false});
}

/// A chunk of a prompt for a group of query heads and many keys: here prefill kernels split keys.
void add_long_chunks(Collector &out) {
  for (Dtype dtype : out.dtypes)
    for (HeadSizes head_size : {64, 128})
      out.add({.dtype = dtype,
               .head_size = head_size,
               .q_heads = 8,
               .q_len = 200,
               .kv_len = 3000,
               .mask = head_size == 64 ? Mask::bottom_right : Mask::none});
}

/// Every pair of lengths.
void add_products(Collector &out) {
  for (int q_len : lengths)
    for (int kv_len : lengths) {
      // The largest squares once; all other lengths under every mask.
      for (Mask mask : masks) {
        if (q_len * kv_len > 256 * 512 && mask == Mask::top_left) continue;
        const int turn = q_len + 3 * kv_len + int(mask);
        out.add({.dtype = out.dtype(turn),
                 .head_size = out.head_size(turn / 2),
                 .q_heads = 2,
                 .kv_heads = 1 + turn % 2,
                 .q_len = q_len,
                 .kv_len = kv_len,
                 .mask = mask,
                 .layout = layouts[turn % 7]});
      }
    }
}

} // namespace

std::vector<Case> dense_cases(const Shapes &shapes) {
  Shapes plain = shapes;
  std::erase_if(plain.all, [](const Shapes::Shape &shape) { return shape.v_in_k; });
  if (plain.all.empty()) return {};
  Collector out(plain);
  add_square(out);
  add_decode(out);
  add_rectangular(out);
  add_heads_and_layouts(out);
  add_patterns(out);
  add_scales_and_outputs(out);
  add_long_chunks(out);
  add_products(out);
  return std::move(out.cases);
}

} // namespace sluice::conformance
