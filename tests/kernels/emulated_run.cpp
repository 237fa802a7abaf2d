//===- emulated_run.cpp - attention launches on the emulator, and its reports ---------------------------===//
#include "emulated_run.h"

#include "package/dtypes.h"
#include "package/rounds.h"
#include "support/checked.h"
#include "support/fp8.h"
#include "support/half.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <iterator>
#include <new>
#include <optional>
#include <tuple>

namespace sluice::test {

using emulator::CompletionOrder;

namespace {

constexpr uint32_t score_changes = Problem::soft_cap | Problem::alibi | Problem::mask_bits |
                                   Problem::bias_f32 | Problem::bias_f16 | Problem::bias_bf16;
constexpr uint32_t any_pages = Problem::pages | Problem::wide_pages;
constexpr uint32_t any_missing_pages = Problem::missing_pages | Problem::hidden_pages;
constexpr uint32_t part_count = 2, page_rows = 24, unowned_pages = 1;

/// ggml's Q8_0 and Q4_0: an F16 scale for every 32 elements, in front of them. U4 has its scales elsewhere.
constexpr size_t block_elements = 32;
constexpr uint16_t f16_infinity = 0x7c00;

/// Bytes of a block of 32 elements; 0 for types that are not stored in blocks.
size_t block_bytes(std::string_view type) {
  const package::Dtype *const dtype = package::find_dtype(type);
  if (!dtype || !dtype->is_in_blocks()) return 0;
  return block_elements / size_t(dtype->block_elements) * size_t(dtype->block_bytes);
}

bool serves(const package::KernelName &kernel, const Problem &problem) {
  const bool has_pages = (problem.extras & any_pages) != 0,
             has_rounds = (problem.extras & Problem::rounds) != 0;
  const bool has_key_scales = (problem.extras & Problem::key_scales) != 0,
             hides_pages = (problem.extras & Problem::hidden_pages) != 0;
  const bool is_u4 = kernel.kv_dtype == "u4", has_zero_points = (problem.extras & Problem::zero_points) != 0;
  const bool takes_key_scales = !is_u4 && (!kernel.o_dtype.empty() || !kernel.kv_dtype.empty());
  const uint32_t rows_of_wave =
      kernel.is_prefill() ? package::prefill_rows_of_wave : package::decode_rows_of_wave;
  return (!kernel.form.empty() || !has_pages) && (takes_key_scales || !has_key_scales) &&
         (is_u4 || !has_zero_points) &&
         (block_bytes(kernel.kv_dtype) != 0 || (problem.extras & Problem::other_strides) == 0) &&
         (package::kernel_hides_missing_pages(rows_of_wave, kernel.tile_kv) || !hides_pages) &&
         (package::kernel_has_rounds(kernel.tile_q, kernel.tile_q / kernel.waves) || !has_rounds);
}

uint8_t e4m3fnuz_from_float(float number) {
  if (!std::isfinite(number)) return 0x80; // NaN, its only one
  const float magnitude = std::min(std::abs(number), support::e4m3fnuz_to_float(0x7f));
  uint8_t bits = 0;
  while (support::e4m3fnuz_to_float(bits) < magnitude)
    ++bits;
  return bits != 0 && number < 0 ? bits | 0x80 : bits;
}

/// Its bits are the upper half of those of twice the number in F16. Rounds towards zero.
uint8_t e5m2fnuz_from_float(float number) {
  if (!std::isfinite(number)) return 0x80; // NaN, its only one
  const auto bits = uint8_t(support::f16_from_float(2 * number) >> 8);
  return bits == 0x80 ? 0 : bits;
}

/// The byte of a number; none for other types.
std::optional<uint8_t> byte_from_float(std::string_view type, float number) {
  if (type == "e4m3fnuz") return e4m3fnuz_from_float(number);
  if (type == "e5m2fnuz") return e5m2fnuz_from_float(number);
  if (type == "i8") return uint8_t(int8_t(std::isfinite(number) ? std::lround(number) : 127));
  return std::nullopt;
}

using P = Problem;
constexpr Problem problems[] = {
    {"several tiles and a tail", 0, 70, 4 * 64 + 17, 1, 1, P::none, true, P::usual, CompletionOrder::late},
    {"causal, grouped heads, two workgroups", 1, 19, 3 * 64 + 5, 2, 1, P::bottom_right, true, P::growing,
     CompletionOrder::random},
    {"causal from the top, whole tiles", 1, 0, 4 * 64, 1, 1, P::top_left, false, P::usual,
     CompletionOrder::random},
    {"whole tiles, whose maximum stays", 1, 0, 6 * 64, 1, 1, P::none, true, P::zero_keys,
     CompletionOrder::late},
    {"odd tiles, whose maximum grows", 0, 64, 7 * 64, 1, 1, P::none, false, P::growing,
     CompletionOrder::random},
    {"two tiles and a window, V infinite", 0, 33, 2 * 64 - 1, 1, 1, P::bottom_right, true, P::infinite,
     CompletionOrder::late, P::window},
    {"a window over many tiles, V infinite", 0, 33, 6 * 64 - 1, 1, 1, P::bottom_right, true, P::infinite,
     CompletionOrder::late, P::window},
    {"one key, one query", 0, 1, 1, 1, 1, P::none, true, P::usual, CompletionOrder::late},
    {"no key", 0, 40, 0, 1, 1, P::none, true, P::usual, CompletionOrder::random},
    {"lengths, factors and sinks", 0, 70, 4 * 64 + 9, 2, 1, P::none, true, P::usual, CompletionOrder::late,
     P::lengths | P::factors | P::sinks},
    {"soft cap, ALiBi, mask, bias of F32", 0, 40, 2 * 64 + 17, 2, 1, P::none, true, P::infinite,
     CompletionOrder::late, P::soft_cap | P::alibi | P::mask_bits | P::bias_f32},
    {"bias of F16, mask", 0, 40, 2 * 64 + 17, 2, 1, P::none, false, P::infinite, CompletionOrder::late,
     P::bias_f16 | P::mask_bits},
    {"bias of BF16, mask", 0, 40, 2 * 64 + 17, 2, 1, P::none, false, P::infinite, CompletionOrder::late,
     P::bias_bf16 | P::mask_bits},
    {"bias of F32, mask, whole tiles, K and V infinite", 0, 40, 3 * 64, 1, 1, P::none, false, P::infinite,
     CompletionOrder::late, P::bias_f32 | P::mask_bits | P::infinite_keys},
    {"bias of F32, four whole tiles", 0, 40, 4 * 64, 1, 1, P::none, false, P::usual, CompletionOrder::late,
     P::bias_f32},
    {"bias of F16, mask, whole tiles, V infinite", 0, 40, 3 * 64, 1, 1, P::none, false, P::infinite,
     CompletionOrder::late, P::bias_f16 | P::mask_bits},
    {"bias of BF16, mask, whole tiles, V infinite", 0, 40, 3 * 64, 1, 1, P::none, false, P::infinite,
     CompletionOrder::late, P::bias_bf16 | P::mask_bits},
    {"only a mask, V infinite", 0, 40, 2 * 64 + 17, 2, 1, P::none, false, P::infinite, CompletionOrder::late,
     P::mask_bits},
    {"mask of part of a tile", 1, 0, 17, 1, 1, P::none, false, P::usual, CompletionOrder::late, P::mask_bits},
    {"mask of part of an odd tile", 0, 40, 64 + 32 + 17, 1, 1, P::none, false, P::usual,
     CompletionOrder::late, P::mask_bits},
    {"one bias of F32 for all keys, mask, V infinite", 0, 40, 64 + 32 + 17, 1, 1, P::none, false, P::infinite,
     CompletionOrder::late, P::bias_f32 | P::bias_of_rows | P::mask_bits},
    {"one bias of F16 for all keys, V infinite", 0, 40, 64 + 32 + 17, 1, 1, P::none, false, P::infinite,
     CompletionOrder::late, P::bias_f16 | P::bias_of_rows},
    {"one bias of BF16 for all keys, V infinite", 0, 40, 64 + 32 + 17, 1, 1, P::none, false, P::infinite,
     CompletionOrder::late, P::bias_bf16 | P::bias_of_rows},
    {"pages", 0, 70, 3 * 64 + 9, 2, 1, P::none, true, P::usual, CompletionOrder::late, P::pages},
    {"pages by 64-bit numbers", 0, 33, 2 * 64 + 9, 2, 2, P::bottom_right, true, P::usual,
     CompletionOrder::late, P::wide_pages | P::lengths},
    {"no key in pages, O of F32", 1, 0, 0, 1, 1, P::none, true, P::usual, CompletionOrder::late,
     P::pages | P::output_f32},
    {"two parts", 0, 5, 2 * 64 + 9, 4, 1, P::none, true, P::usual, CompletionOrder::late,
     P::parts | P::factors | P::sinks},
    {"few columns", 0, 5, 64 + 9, 2, 1, P::none, true, P::usual, CompletionOrder::late, P::few_columns},
    {"a round and half of one", 2, 40, 64 + 9, 1, 1, P::none, true, P::usual, CompletionOrder::late,
     P::rounds},
    {"a round and half of one, odd tiles", 2, 40, 2 * 64 + 9, 1, 1, P::none, true, P::usual,
     CompletionOrder::late, P::rounds},
    {"two parts of one tile, all rows", 1, 0, 2 * 32 - 9, 1, 1, P::none, true, P::usual,
     CompletionOrder::late, P::parts},
    {"a diagonal of the sequence, causal", 0, 70, 4 * 64 + 17, 1, 1, P::none, true, P::usual,
     CompletionOrder::late, P::sequence_diagonal},
    {"ALiBi, a diagonal of the sequence", 0, 40, 4 * 64 + 17, 2, 1, P::none, true, P::usual,
     CompletionOrder::late, P::alibi | P::sequence_diagonal},
    {"ALiBi, a diagonal of the sequence, V infinite", 0, 40, 2 * 64 + 17, 2, 1, P::none, true, P::infinite,
     CompletionOrder::late, P::alibi | P::sequence_diagonal},
    {"ALiBi, a diagonal of the sequence, whole tiles, V infinite", 0, 40, 3 * 64, 2, 1, P::none, true,
     P::infinite, CompletionOrder::late, P::alibi | P::sequence_diagonal},
    {"rows that end inside eight elements", 0, 70, 2 * 64 + 17, 2, 1, P::none, true, P::usual,
     CompletionOrder::late, P::short_rows},
    {"spans in causal rows", 0, 70, 4 * 64 + 17, 1, 1, P::bottom_right, true, P::usual, CompletionOrder::late,
     P::spans},
    {"bias of F32 and a scale, mask, V infinite", 0, 40, 2 * 64 + 17, 2, 1, P::none, false, P::infinite,
     CompletionOrder::late, P::bias_f32 | P::bias_scale | P::mask_bits},
    {"bias of F16 and a scale, whole tiles", 0, 40, 3 * 64, 2, 1, P::none, false, P::usual,
     CompletionOrder::late, P::bias_f16 | P::bias_scale},
    {"bias of BF16 and a scale", 0, 40, 2 * 64 + 17, 2, 1, P::none, false, P::usual, CompletionOrder::late,
     P::bias_bf16 | P::bias_scale},
    {"a mask of the newest keys", 0, 40, 4 * 64 + 17, 2, 1, P::none, true, P::usual, CompletionOrder::late,
     P::mask_bits | P::new_rows},
    {"O as FP8, whole tiles of rows", 1, 0, 64 + 9, 1, 1, P::none, true, P::usual, CompletionOrder::late,
     P::output_fp8},
    {"O as FP8, few columns", 0, 5, 64 + 9, 2, 1, P::none, true, P::usual, CompletionOrder::late,
     P::output_fp8 | P::few_columns},
    {"O as F32, whole tiles of rows", 1, 0, 64 + 9, 1, 1, P::none, true, P::usual, CompletionOrder::late,
     P::output_f32},
    {"scales for each key", 0, 40, 2 * 64 + 17, 2, 1, P::none, true, P::usual, CompletionOrder::late,
     P::key_scales},
    {"scales for each key, a window over many tiles, V infinite", 0, 33, 6 * 64 - 1, 1, 1, P::bottom_right,
     true, P::infinite, CompletionOrder::late, P::key_scales | P::window},
    {"scales for each key in pages", 0, 40, 2 * 64 + 17, 2, 1, P::none, true, P::usual, CompletionOrder::late,
     P::key_scales | P::pages | P::missing_pages},
    {"scales for each key in pages by 64-bit numbers", 0, 40, 2 * 64 + 17, 2, 1, P::none, true, P::usual,
     CompletionOrder::late, P::key_scales | P::wide_pages | P::missing_pages},
    {"a missing page", 0, 40, 4 * 64 + 17, 2, 1, P::none, true, P::usual, CompletionOrder::late,
     P::pages | P::missing_pages},
    {"a missing page by 64-bit numbers", 0, 40, 4 * 64 + 17, 2, 1, P::none, true, P::usual,
     CompletionOrder::late, P::wide_pages | P::missing_pages},
    {"a hidden page", 0, 40, 4 * 64 + 17, 2, 1, P::none, true, P::usual, CompletionOrder::late,
     P::pages | P::hidden_pages},
    {"a hidden page by 64-bit numbers", 0, 40, 4 * 64 + 17, 2, 1, P::none, true, P::usual,
     CompletionOrder::late, P::wide_pages | P::hidden_pages},
    {"zero points", 0, 40, 4 * 64 + 17, 2, 1, P::none, true, P::usual, CompletionOrder::late,
     P::pages | P::zero_points},
    {"zero points, V infinite", 0, 40, 2 * 64 + 17, 2, 1, P::bottom_right, true, P::infinite,
     CompletionOrder::late, P::pages | P::zero_points},
    {"other strides of V", 0, 40, 4 * 64 + 17, 2, 1, P::none, true, P::usual, CompletionOrder::late,
     P::pages | P::other_strides},
    {"other strides of V, zero points", 0, 40, 4 * 64 + 17, 2, 1, P::none, true, P::usual,
     CompletionOrder::late, P::wide_pages | P::other_strides | P::zero_points},
    {"scales for each key of scores that change, V infinite", 0, 40, 2 * 64 + 17, 2, 1, P::none, true,
     P::infinite, CompletionOrder::late, P::key_scales | P::soft_cap | P::mask_bits},
    {"rows of equal sequences see a prefix", 0, 40, 64 + 17, 2, 1, P::none, true, P::usual,
     CompletionOrder::late, P::prefix_rows},
    {"rows of sequences see a prefix", 0, 40, 64 + 17, 2, 1, P::none, true, P::usual, CompletionOrder::late,
     P::prefix_rows | P::found_rows},
};

} // namespace

std::vector<Problem> path_problems(const package::KernelName &kernel) {
  std::vector<Problem> served;
  std::copy_if(std::begin(problems), std::end(problems), std::back_inserter(served),
               [&](const Problem &problem) { return serves(kernel, problem); });
  return served;
}

AttentionRun::AttentionRun(const package::KernelEntry &kernel, const Problem &problem)
    : kernel(kernel), problem(problem), d_qk(kernel.name.head_dim_qk), d_v(kernel.name.head_dim_v),
      q_len(size_t(problem.q_tiles) * kernel.name.tile_q + problem.q_rest),
      page_count(has(any_pages) ? support::divide_up(size_t{problem.kv_len}, size_t{page_rows}) : 0),
      kv_capacity(has(any_pages) ? (page_count + unowned_pages) * page_rows : problem.kv_len) {
  const std::string_view type = kernel.name.dtype;
  const std::string_view o_type = kernel.name.o_dtype.empty() ? type : kernel.name.o_dtype;
  const size_t q_rows = q_len * problem.q_heads, kv_rows = kv_capacity * problem.kv_heads;
  const size_t results = has(Problem::parts) ? part_count : 1,
               o_words = has(Problem::parts | Problem::output_f32) ? 2 : 1;
  q = allocate(q_rows * d_qk, type);
  o = {reinterpret_cast<uint16_t *>(allocate(results * q_rows * d_v * o_words, o_type).data),
       results * q_rows * d_v * o_words};
  if (problem.lse)
    lse = {reinterpret_cast<uint16_t *>(allocate(results * q_rows * 2, o_type).data), results * q_rows * 2};
  k = allocate_keys(kv_rows, d_qk);
  v = kernel.name.form == "mla"     ? k
      : has(Problem::other_strides) ? allocate_keys(kv_capacity, problem.kv_heads * d_v + block_elements)
                                    : allocate_keys(column_rows() * problem.kv_heads, d_v);
  q.fill(1, problem.values == Problem::growing ? 0 : 2);
  if (block_bytes(kernel.name.kv_dtype) == 0) {
    v.fill(3, 2);
    k.fill(2, problem.values == Problem::zero_keys ? 0 : 2);
    shape_values();
  } else if (problem.values == Problem::infinite && kernel.name.kv_dtype != "u4") {
    const size_t bytes = block_bytes(kernel.name.kv_dtype), row_blocks = d_v / block_elements;
    for_each_infinite_row([&](size_t key) {
      for (size_t block = 0; block < row_blocks; ++block)
        std::memcpy(v.data + (key * problem.kv_heads * row_blocks + block) * bytes, &f16_infinity,
                    sizeof f16_infinity);
    });
  }
  launch = plain_launch();
  if (block_bytes(kernel.name.kv_dtype) != 0) place_blocks(launch.arguments);
  if (kernel.name.form == "mla") {
    launch.arguments.v_token_stride = launch.arguments.k_token_stride;
    launch.arguments.v_head_stride = launch.arguments.k_head_stride;
  }
  if (is_by_columns()) {
    launch.arguments.v_token_stride = 1;
    launch.arguments.v_column_stride = uint32_t(has(any_pages) ? page_rows : column_rows());
    launch.arguments.v_head_stride = int64_t{launch.arguments.v_column_stride} * d_v;
    launch.arguments.v_batch_stride = launch.arguments.v_head_stride * problem.kv_heads;
  }
  place_extras(launch.arguments);
  if (has(any_pages)) place_pages(launch.arguments);
  if (has(Problem::rounds)) package::use_rounds(kernel, 2, launch.arguments, launch.grid);
}

bool AttentionRun::is_by_columns() const {
  return kernel.name.form == "columns";
}

/// Rows of V; of a column, which has whole units of 8, or of all pages.
size_t AttentionRun::column_rows() const {
  return is_by_columns() ? support::divide_up(kv_capacity, size_t{8}) * 8 : kv_capacity;
}

/// Empty arrays still have an address.
std::byte *AttentionRun::reserve(size_t bytes) {
  void *block = memory.allocate(std::max<size_t>(bytes, 1));
  if (!block) throw std::bad_alloc();
  return static_cast<std::byte *>(block);
}

AttentionRun::Tensor AttentionRun::allocate(size_t elements, std::string_view type) {
  return {reserve(elements * (byte_from_float(type, 0) ? 1 : 2)), elements, type};
}

AttentionRun::Tensor AttentionRun::allocate_keys(size_t rows, size_t columns) {
  const std::string_view type = kernel.name.kv_dtype.empty() ? kernel.name.dtype : kernel.name.kv_dtype;
  const size_t bytes_of_block = block_bytes(type);
  if (bytes_of_block == 0) return allocate(rows * columns, type);
  const size_t blocks = rows * columns / block_elements;
  const Tensor tensor{reserve(blocks * bytes_of_block), rows * columns, type};
  for (size_t n = 0; n < blocks * bytes_of_block; ++n)
    tensor.data[n] = std::byte(uint8_t((uint32_t(n) * 2654435761u) >> 16));
  const uint16_t scale = support::f16_from_float(type == "q8_0" ? 1 / 64.0f : 0.25f);
  for (size_t n = 0; type != "u4" && n < blocks; ++n)
    std::memcpy(tensor.data + n * bytes_of_block, &scale, sizeof scale);
  return tensor;
}

template <typename Element> uint64_t AttentionRun::place(const std::vector<Element> &array) {
  std::byte *block = reserve(array.size() * sizeof(Element));
  std::memcpy(block, array.data(), array.size() * sizeof(Element));
  return reinterpret_cast<uint64_t>(block);
}

void AttentionRun::Tensor::set(size_t index, float number) const {
  if (const std::optional<uint8_t> byte = byte_from_float(type, number)) {
    data[index] = std::byte{*byte};
    return;
  }
  const uint16_t bits = type == "bf16" ? support::bf16_from_float(number) : support::f16_from_float(number);
  std::memcpy(data + index * sizeof bits, &bits, sizeof bits);
}

/// Numbers between -spread and spread.
void AttentionRun::Tensor::fill(uint32_t seed, float spread) const {
  for (size_t n = 0; n < elements; ++n) {
    const uint32_t random = (uint32_t(n) * 2654435761u + seed * 0x9e3779b9u) >> 16;
    set(n, (float(random) / 32768 - 1) * spread);
  }
}

template <typename Visit> void AttentionRun::for_each_infinite_row(Visit visit) const {
  for (size_t after = 1; after <= problem.kv_len; after += 24)
    visit(size_t(problem.kv_len) - after);
}

void AttentionRun::shape_values() {
  if (problem.values == Problem::growing) {
    // The score of a key is its number, through the first component.
    for (size_t row = 0; row < q_len * problem.q_heads; ++row)
      q.set(row * d_qk, std::sqrt(float(d_qk)));
    for (size_t row = 0; row < size_t(problem.kv_len) * problem.kv_heads; ++row)
      k.set(row * d_qk, float(row / problem.kv_heads));
  }
  if (problem.values == Problem::level) {
    for (const Tensor &tensor : {q, k})
      for (size_t n = 0; n < tensor.elements; ++n)
        tensor.set(n, 300);
    for (size_t n = 0; n < v.elements; ++n)
      v.set(n, n < v.elements / 2 ? 1 : -1);
  }
  const auto make_infinite = [&](const Tensor &tensor, size_t row_elements, size_t columns) {
    for_each_infinite_row([&](size_t key) {
      for (size_t column = 0; column < columns; ++column)
        tensor.set(key * problem.kv_heads * row_elements + column, INFINITY);
    });
  };
  if (problem.values == Problem::infinite && is_by_columns()) {
    for_each_infinite_row([&](size_t key) {
      for (size_t column = 0; column < d_v; ++column)
        v.set(column * column_rows() + key, INFINITY);
    });
  } else if (problem.values == Problem::infinite) {
    make_infinite(v, kernel.name.form == "mla" ? d_qk : d_v, d_v);
  }
  if (has(Problem::infinite_keys)) make_infinite(k, d_qk, 1);
}

/// Rows in blocks count bytes.
void AttentionRun::place_blocks(package::AttentionKernargs &args) {
  const size_t bytes = block_bytes(kernel.name.kv_dtype);
  const bool is_u4 = kernel.name.kv_dtype == "u4";
  const size_t group = has(Problem::zero_points) ? 64 : 32;
  if (group == 64) args.score_flags |= package::score_groups_of_64;
  const auto place_side = [&](size_t columns, bool is_infinite, int64_t &head, int64_t &token, int64_t &batch,
                              uint64_t &groups, uint64_t &zeros, int64_t &group_head, int64_t &group_token,
                              int64_t &group_batch) {
    head = int64_t(columns / block_elements * bytes);
    token = head * problem.kv_heads;
    batch = token * problem.kv_len;
    if (!is_u4) return;
    group_head = int64_t(columns / group);
    group_token = group_head * problem.kv_heads;
    group_batch = group_token * (has(any_pages) ? page_rows : problem.kv_len);
    const size_t count = kv_capacity * size_t(group_token);
    std::vector<uint16_t> scales(count, support::f16_from_float(0.25f));
    if (is_infinite)
      for_each_infinite_row([&](size_t key) {
        std::fill_n(scales.begin() + ptrdiff_t(key) * group_token, group_head, f16_infinity);
      });
    groups = place(scales);
    if (has(Problem::zero_points)) zeros = place(std::vector<uint16_t>(count, support::f16_from_float(7.5f)));
  };
  place_side(d_qk, false, args.k_head_stride, args.k_token_stride, args.k_batch_stride, args.k_groups,
             args.k_zeros, args.k_scales_head_stride, args.k_scales_token_stride, args.k_scales_batch_stride);
  place_side(d_v, problem.values == Problem::infinite, args.v_head_stride, args.v_token_stride,
             args.v_batch_stride, args.v_groups, args.v_zeros, args.v_scales_head_stride,
             args.v_scales_token_stride, args.v_scales_batch_stride);
  if (!has(Problem::other_strides)) return;
  // A block more after each token's heads.
  args.v_token_stride += int64_t(bytes);
  args.v_batch_stride = args.v_token_stride * problem.kv_len;
}

void AttentionRun::place_extras(package::AttentionKernargs &args) {
  const auto q_heads = problem.q_heads, kv_heads = problem.kv_heads;
  if (has(Problem::lengths)) {
    const auto rows = int32_t(q_len), keys = int32_t(problem.kv_len);
    args.q_starts = place<int32_t>({0, rows});
    args.kv_starts = place<int32_t>({0, keys});
    args.q_lengths = place<int32_t>({rows - 1});
    args.kv_lengths = place<int32_t>({keys - 1});
  }
  if (has(Problem::factors)) {
    args.q_scale = place(std::vector<float>(q_heads, 0.5f));
    args.k_scale = place(std::vector<float>(kv_heads, 1.5f));
    args.v_scale = place(std::vector<float>(kv_heads, 3));
    args.score_flags |=
        package::score_q_scale_heads | package::score_k_scale_heads | package::score_v_scale_heads;
  }
  if (has(Problem::window)) {
    args.window_left = problem.kv_len / 2 - 13;
    args.sink_tokens = 5;
  }
  if (has(Problem::sinks)) args.sink_logits = place(std::vector<float>(q_heads, 1));
  if (has(Problem::few_columns)) args.head_dim_v = 8;
  if (has(Problem::short_rows)) args.score_flags |= 3 << package::score_unused_shift;
  if (has(score_changes)) args.score_flags |= package::score_changed;
  if (has(Problem::soft_cap)) {
    args.cap_log2e = 40;
    args.two_per_cap = 2 / 28.0f;
  }
  if (has(Problem::alibi)) args.alibi_slopes = place(std::vector<float>(q_heads, 0.125f));
  if (has(Problem::mask_bits)) {
    const auto keys = has(Problem::new_rows) ? int64_t(q_len) : int64_t{problem.kv_len};
    if (has(Problem::new_rows)) args.score_flags |= package::score_mask_new_rows;
    args.mask_row_stride = support::divide_up(keys, int64_t{8});
    args.mask_head_stride = args.mask_row_stride * int64_t(q_len);
    args.mask = place(std::vector<uint8_t>(size_t(args.mask_head_stride) * q_heads, 0xb7));
  }
  if (has(Problem::bias_f32 | Problem::bias_f16 | Problem::bias_bf16)) {
    args.bias_key_stride = has(Problem::bias_of_rows) ? 0 : 1;
    args.bias_row_stride = int64_t(problem.kv_len);
    args.bias_head_stride = args.bias_row_stride * int64_t(q_len);
    const size_t elements = size_t(args.bias_head_stride) * q_heads;
    if (has(Problem::bias_f32)) {
      args.bias = place(std::vector<float>(elements, 0.25f));
    } else {
      const Tensor bias = allocate(elements, has(Problem::bias_f16) ? "f16" : "bf16");
      bias.fill(4, 1);
      args.bias = reinterpret_cast<uint64_t>(bias.data);
      args.score_flags |= has(Problem::bias_f16) ? package::score_bias_f16 : package::score_bias_bf16;
    }
  }
  if (has(Problem::bias_scale)) args.bias_scale = place(std::vector<float>(q_heads, 1.5f));
  if (has(Problem::sequence_diagonal)) {
    args.diagonals = place<int32_t>({int32_t(problem.kv_len / 2)});
    args.causal = place<int32_t>({1});
    args.score_flags |= package::score_of_sequence;
  }
  if (has(Problem::prefix_rows)) {
    const int32_t sequences = 3, rows = int32_t(q_len) / sequences;
    args.score_flags |= package::score_rows_of_sequences;
    args.span_stride = sequences;
    args.bias_row_stride = rows;
    if (has(Problem::found_rows)) args.diagonals = place<int32_t>({0, rows + 1, rows + 1, int32_t(q_len)});
    args.causal = place<int32_t>({rows - 1, 0, rows});
  }
  if (has(Problem::spans)) {
    const auto keys = int32_t(problem.kv_len);
    const std::vector<int32_t> spans{keys - 50, keys - 30, keys - 20, keys};
    args.spans = place(spans);
    args.span_stride = int64_t(spans.size());
  }
  if (has(Problem::key_scales)) {
    args.score_flags |= package::score_key_scales;
    for (auto [scales, token_stride, head_stride, batch_stride] :
         {std::tuple{&args.k_scales, &args.k_scales_token_stride, &args.k_scales_head_stride,
                     &args.k_scales_batch_stride},
          {&args.v_scales, &args.v_scales_token_stride, &args.v_scales_head_stride,
           &args.v_scales_batch_stride}}) {
      *scales = place(std::vector<float>(kv_capacity * kv_heads, 0.75f));
      *token_stride = kv_heads;
      *head_stride = 1;
      *batch_stride = int64_t(page_rows) * kv_heads;
    }
  }
  if (has(Problem::output_f32)) args.score_flags |= package::score_o_f32;
  if (has(Problem::output_fp8)) {
    args.o_scale = place(std::vector<float>(q_heads, 0.5f));
    args.score_flags |= package::score_o_fp8 | package::score_o_scale_heads;
  }
  if (has(Problem::parts)) {
    package::set_splits(args, part_count);
    args.score_flags |= package::score_partial;
    launch.grid[0] = problem.kv_heads * part_count;
    args.o_split_stride = int64_t(q_len * q_heads * d_v);
    args.lse_split_stride = int64_t(q_len * q_heads);
  }
}

/// The sequence's pages are in descending order from the last one of memory.
void AttentionRun::place_pages(package::AttentionKernargs &args) {
  package::set_page_rows(args, page_rows);
  args.k_batch_stride = args.k_token_stride * page_rows;
  if (!is_by_columns()) args.v_batch_stride = args.v_token_stride * page_rows;
  std::vector<int64_t> numbers(unowned_pages, 0);
  for (size_t page = 0; page < page_count; ++page)
    numbers.push_back(int64_t(page_count + unowned_pages - 1 - page));
  args.last_page_low = uint32_t(page_count + unowned_pages - 1);
  if (has(any_missing_pages)) numbers[unowned_pages + 1] = -1;
  if (has(Problem::hidden_pages)) args.score_flags |= package::score_pages_hidden;
  if (has(Problem::wide_pages)) {
    args.page_table = place(numbers);
    args.page_starts = place<int32_t>({unowned_pages, int32_t(numbers.size())});
    args.score_flags |= package::score_page_index_64;
  } else {
    args.page_table = place(std::vector<int32_t>(numbers.begin() + unowned_pages, numbers.end()));
    args.page_table_stride = int64_t(page_count);
  }
}

emulator::LaunchResult AttentionRun::run(const emulator::Program &program, bool stop_at_report,
                                         emulator::Tracer *tracer) {
  emulator::Options options;
  options.completion = problem.completion;
  options.threads = 1;
  options.instruction_budget = uint64_t(1) << 30; // a mutant may never end
  options.stop_at_report = stop_at_report;
  options.count_bank_conflicts = !stop_at_report;
  options.tracer = tracer;
  return run(program, options);
}

package::AttentionLaunch AttentionRun::plain_launch() const {
  const auto address = [](const void *tensor) { return reinterpret_cast<uint64_t>(tensor); };
  const package::AttentionShape shape{.batch = 1,
                                      .q_len = int32_t(q_len),
                                      .kv_len = int32_t(problem.kv_len),
                                      .q_heads = problem.q_heads,
                                      .kv_heads = problem.kv_heads,
                                      .mask = problem.mask == Problem::none ? package::AttentionShape::none
                                              : problem.mask == Problem::bottom_right
                                                  ? package::AttentionShape::bottom_right
                                                  : package::AttentionShape::top_left};
  return package::contiguous_launch(
      kernel, shape,
      {address(q.data), address(k.data), address(v.data), address(o.data()), address(lse.data())});
}

package::AttentionLaunch AttentionRun::call() {
  clear_output();
  return launch;
}

emulator::LaunchResult AttentionRun::run(const emulator::Program &program, const emulator::Options &options) {
  const package::AttentionLaunch c = call();
  return emulator::launch(program, c.kernel, c.grid, c.block, 0, c.kernarg(), memory, options);
}

/// Memory that a run does not write must not look as if it had.
void AttentionRun::clear_output() {
  std::ranges::fill(o, uint16_t(0xa5a5));
  std::ranges::fill(lse, uint16_t(0xa5a5));
}

std::vector<uint16_t> AttentionRun::output() const {
  std::vector<uint16_t> result(o.begin(), o.end());
  result.insert(result.end(), lse.begin(), lse.end());
  return result;
}

} // namespace sluice::test
