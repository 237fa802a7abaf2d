//===- workload_tensors.cpp - the tensors of a workload -------------------------------------------------===//
#include "tools/bench/workload_tensors.h"

#include "calls/args.h"
#include "emulator/isa/timing_constants.h"
#include "support/fp8.h"
#include "support/half.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <fmt/format.h>
#include <numeric>
#include <random>
#include <sluice/sluice.hpp>
#include <span>
#include <tuple>

namespace sluice::tools {

namespace {

constexpr uint64_t block_alignment = 256;
// Primes: no two heads or tokens get the same numbers.
constexpr uint64_t pattern_elements = 1048573, pattern_blocks = 32749; // the latter of 32 elements
constexpr uint64_t most_blocks = 24;                                   // of a workload

uint64_t rounded(uint64_t bytes, uint64_t alignment) {
  return (bytes + alignment - 1) / alignment * alignment;
}

void put(std::byte *to, uint16_t bits) {
  std::memcpy(to, &bits, sizeof bits);
}

/// The unit of an I8 or a number of Q8_0, so that values are between -2 and 2; and of a number of 4 bits.
constexpr float unit_of_i8 = 1 / 60.0f, unit_of_4_bits = 0.25f;

/// A block of numbers between -2 and 2, if its scale is that of scale_of.
void fill_block(std::byte *to, uint32_t dtype, uint32_t block_bytes, std::mt19937 &random) {
  const auto number = [&] { return float(int32_t(random())) * 0x1p-30f; };
  const auto i8 = [&] { return std::byte(int8_t(number() / unit_of_i8)); };
  switch (dtype) {
  case SLUICE_F32: {
    const float value = number();
    std::memcpy(to, &value, sizeof value);
    return;
  }
  case SLUICE_BF16:
    return put(to, support::bf16_from_float(number()));
  case SLUICE_F16:
    return put(to, support::f16_from_float(number()));
  case SLUICE_E4M3FNUZ:
    *to = std::byte(support::e4m3fnuz_from_double(number()));
    return;
  case SLUICE_E5M2FNUZ:
    *to = std::byte(support::e5m2fnuz_from_double(number()));
    return;
  case SLUICE_I8:
    *to = i8();
    return;
  case SLUICE_Q8_0:
    put(to, support::f16_from_float(unit_of_i8));
    for (uint32_t i = 2; i < block_bytes; ++i)
      to[i] = i8();
    return;
  case SLUICE_Q4_0:
    put(to, support::f16_from_float(unit_of_4_bits));
    for (uint32_t i = 2; i < block_bytes; ++i)
      to[i] = std::byte(random());
    return;
  case SLUICE_U4:
    *to = std::byte(random());
    return;
  default:
    throw ToolError(fmt::format("no numbers for tensors of type {}", dtype));
  }
}

std::vector<std::byte> pattern_of(uint64_t elements, uint32_t dtype, uint32_t seed) {
  std::mt19937 random(seed);
  const Block block = block_of(dtype);
  if (block.elements == 0) throw ToolError(fmt::format("no numbers for tensors of type {}", dtype));
  const uint64_t most = block.elements < 32 ? pattern_elements : pattern_blocks;
  std::vector<std::byte> pattern(std::min(elements / block.elements, most) * block.bytes);
  for (size_t i = 0; i < pattern.size(); i += block.bytes)
    fill_block(&pattern[i], dtype, block.bytes, random);
  return pattern;
}

void repeat(WorkMemory &memory, void *to, uint64_t bytes, const std::vector<std::byte> &pattern) {
  for (uint64_t at = 0; at < bytes; at += pattern.size())
    memory.upload(static_cast<char *>(to) + at, pattern.data(),
                  std::min<uint64_t>(pattern.size(), bytes - at));
}

void fill(WorkMemory &memory, void *to, uint64_t elements, uint32_t dtype, uint32_t seed) {
  repeat(memory, to, stored_bytes(dtype, elements), pattern_of(elements, dtype, seed));
}

sluice_tensor without_gaps(void *data, const std::array<uint64_t, 4> &shape) {
  return {.data = data,
          .stride = {int64_t(shape[1] * shape[2] * shape[3]), int64_t(shape[2] * shape[3]), int64_t(shape[3]),
                     1}};
}

/// A tensor without gaps, and without contents if `seed` is 0.
sluice_tensor tensor(WorkMemory &memory, std::array<uint64_t, 4> shape, uint32_t dtype, uint32_t seed) {
  const uint64_t elements = shape[0] * shape[1] * shape[2] * shape[3];
  void *const data = memory.allocate(stored_bytes(dtype, elements));
  if (seed != 0) fill(memory, data, elements, dtype, seed);
  return without_gaps(data, shape);
}

/// The same with numbers from `least` to `least` + `span`, as scales and zero points are: F16 or F32.
sluice_tensor positive_tensor(WorkMemory &memory, std::array<uint64_t, 4> shape, uint32_t dtype, float least,
                              float span) {
  const uint64_t elements = shape[0] * shape[1] * shape[2] * shape[3];
  const uint32_t size = element_bytes(dtype);
  std::mt19937 random(8);
  std::vector<std::byte> pattern(std::min(elements, pattern_elements) * size);
  for (size_t i = 0; i < pattern.size(); i += size) {
    const float value = least + span * float(random()) * 0x1p-32f;
    const uint16_t half = support::f16_from_float(value);
    std::memcpy(&pattern[i], dtype == SLUICE_F32 ? static_cast<const void *>(&value) : &half, size);
  }
  void *const data = memory.allocate(elements * size);
  repeat(memory, data, elements * size, pattern);
  return without_gaps(data, shape);
}

template <typename T> const T *array(WorkMemory &memory, const std::vector<T> &values) {
  void *const data = memory.allocate(values.size() * sizeof(T));
  memory.upload(data, values.data(), values.size() * sizeof(T));
  return static_cast<const T *>(data);
}

/// The scales of K and V, which are [block][row][head] of the caches, and what is subtracted with them.
void add_kv_scales(calls::Args &args, const Workload &work, WorkMemory &memory, uint64_t kv_blocks,
                   uint64_t kv_rows) {
  const ElementTypes &types = work.types;
  const float unit = types.kv == SLUICE_I8 ? unit_of_i8 : types.kv == SLUICE_U4 ? unit_of_4_bits : 1.0f;
  switch (types.kv_scales) {
  case SLUICE_SCALE_PER_TENSOR:
    args.k_scale = args.v_scale = array(memory, std::vector<float>{unit});
    return;
  case SLUICE_SCALE_PER_TOKEN:
    for (sluice_tensor *const scales : {&args.k_scales, &args.v_scales})
      *scales =
          positive_tensor(memory, {kv_blocks, kv_rows, work.kv_heads, 1}, SLUICE_F32, unit / 2, unit / 2);
    return;
  case SLUICE_SCALE_PER_PAGE:
    for (sluice_tensor *const scales : {&args.k_scales, &args.v_scales}) {
      *scales = positive_tensor(memory, {kv_blocks, 1, work.kv_heads, 1}, SLUICE_F32, unit / 2, unit / 2);
      scales->stride[1] = 0;
    }
    return;
  case SLUICE_SCALE_PER_GROUP:
    for (const auto &[dim, scales, zeros] : {std::tuple{work.dims.qk, &args.k_scales, &args.k_zeros},
                                             std::tuple{work.dims.v, &args.v_scales, &args.v_zeros}}) {
      const std::array<uint64_t, 4> shape = {kv_blocks, kv_rows, work.kv_heads, dim / types.group};
      *scales = positive_tensor(memory, shape, SLUICE_F16, unit / 2, unit / 2);
      if (types.zeros) *zeros = positive_tensor(memory, shape, SLUICE_F16, 6, 3);
    }
    return;
  default:
    return;
  }
}

/// A page for each entry of the table, drawn without replacement or in order. The same everywhere, unlike
/// std::shuffle.
std::vector<int32_t> page_numbers(uint64_t pages, bool shuffled) {
  std::vector<int32_t> numbers(pages);
  std::iota(numbers.begin(), numbers.end(), 0);
  std::mt19937 random(4);
  if (shuffled)
    for (uint64_t left = pages; left > 1; --left)
      std::swap(numbers[left - 1], numbers[random() % left]);
  return numbers;
}

} // namespace

ModelMemory::ModelMemory(uint64_t bytes) {
  constexpr uint64_t way = emulator::timing::mall_bytes / emulator::timing::mall_ways;
  const uint64_t whole = bytes + most_blocks * block_alignment + way;
  void *const block = memory.allocate(whole);
  if (!block) throw ToolError(fmt::format("no memory for tensors of {} bytes", bytes));
  next = rounded(reinterpret_cast<uint64_t>(block), way);
  end = reinterpret_cast<uint64_t>(block) + whole;
}

ModelMemory::ModelMemory(const Workload &work, uint64_t workspace_bytes)
    : ModelMemory(work.tensor_bytes() + workspace_bytes) {}

void *ModelMemory::allocate(uint64_t bytes) {
  if (bytes > end - next) throw ToolError(fmt::format("no memory for another {} bytes of tensors", bytes));
  void *const found = reinterpret_cast<void *>(next);
  next += rounded(bytes, block_alignment);
  return found;
}

void ModelMemory::upload(void *to, const void *from, uint64_t bytes) {
  std::memcpy(to, from, bytes);
}

void *HipMemory::allocate(uint64_t bytes) {
  blocks.push_back(std::make_unique<DeviceBuffer>(context, bytes));
  return blocks.back()->data();
}

void HipMemory::upload(void *to, const void *from, uint64_t bytes) {
  copy_to_device(context, to, from, bytes);
}

void fill_partial_results(WorkMemory &memory, void *workspace, uint64_t bytes) {
  fill(memory, workspace, bytes / sizeof(float), SLUICE_F32, 5);
}

calls::Args make_tensors(const Workload &work, WorkMemory &memory) {
  calls::Args args;
  args.scale = 1 / std::sqrt(double(work.dims.qk));
  args.batch = int32_t(work.batch);
  args.q_len = int32_t(work.q_len);
  args.kv_len = int32_t(work.kv_len);
  const uint64_t pages = work.pages_per_sequence() * work.batch;
  const uint64_t prefix_pages = work.pages_of_prefix(), all_pages = pages + prefix_pages;
  const uint64_t kv_blocks = pages != 0 ? all_pages : work.batch;
  const uint64_t kv_rows = pages != 0 ? work.page_size : work.kv_len;
  args.q = tensor(memory, {work.batch, work.q_len, work.q_heads, work.dims.qk}, work.types.q, 1);
  args.k = tensor(memory, {kv_blocks, kv_rows, work.kv_heads, work.dims.qk}, work.types.kv, 2);
  if (!work.dims.v_in_k)
    args.v = tensor(memory, {kv_blocks, kv_rows, work.kv_heads, work.dims.v}, work.types.kv, 3);
  args.o = tensor(memory, {work.batch, work.q_len, work.q_heads, work.dims.v}, work.types.o, 0);
  if (pages != 0) {
    const std::vector<int32_t> numbers = page_numbers(all_pages, work.shuffled_pages);
    const std::span<const int32_t> own(numbers.data(), pages), shared(own.end(), prefix_pages);
    std::vector<int32_t> table;
    for (uint32_t b = 0; b < work.batch; ++b) {
      if (!work.cascade) table.insert(table.end(), shared.begin(), shared.end());
      const auto sequence_pages = own.subspan(b * work.pages_per_sequence(), work.pages_per_sequence());
      table.insert(table.end(), sequence_pages.begin(), sequence_pages.end());
    }
    args.page_table = array(memory, table);
    if (prefix_pages != 0 && work.cascade)
      args.prefix_page_table = array(memory, std::vector(shared.begin(), shared.end()));
    const bool tables_share = !work.cascade && prefix_pages != 0;
    args.kv_len += tables_share ? int32_t(work.prefix_len) : 0;
    args.page_table_stride = int64_t(table.size() / work.batch);
    args.kv_lengths = array(memory, std::vector<int32_t>(work.batch, args.kv_len));
  }
  if (work.prefix_len != 0 && work.cascade) {
    args.prefix_count = 1;
    args.prefix_len = int32_t(work.prefix_len);
    args.prefix_q_starts = array(memory, std::vector<int32_t>{0, int32_t(work.batch * work.q_len)});
    args.prefix_lengths = array(memory, std::vector<int32_t>{int32_t(work.prefix_len)});
    if (pages != 0) {
      args.prefix_page_table_stride = int64_t(prefix_pages);
    } else {
      args.prefix_k = tensor(memory, {1, work.prefix_len, work.kv_heads, work.dims.qk}, work.types.kv, 6);
      if (!work.dims.v_in_k)
        args.prefix_v = tensor(memory, {1, work.prefix_len, work.kv_heads, work.dims.v}, work.types.kv, 7);
    }
  }
  if (work.types.q == SLUICE_E4M3FNUZ) args.q_scale = array(memory, std::vector<float>{1.0f});
  add_kv_scales(args, work, memory, kv_blocks, kv_rows);
  return args;
}

} // namespace sluice::tools
