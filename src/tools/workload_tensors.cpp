//===- workload_tensors.cpp - the tensors of a workload -------------------------------------------------===//
#include "tools/workload_tensors.h"

#include "emulator/timing/constants.h"
#include "support/fp8.h"
#include "support/half.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <fmt/format.h>
#include <numeric>
#include <random>
#include <span>

namespace sluice::tools {

namespace {

constexpr uint64_t block_alignment = 256;
constexpr uint64_t pattern_elements = 1048573; // a prime: no two heads or tokens get the same numbers
constexpr uint64_t most_blocks = 24;           // of a workload

uint64_t rounded(uint64_t bytes, uint64_t alignment) {
  return (bytes + alignment - 1) / alignment * alignment;
}

/// The nearest of the e4m3fnuz values whose magnitude is below 2.
uint8_t fp8_from_float(float number) {
  static const std::vector<float> magnitudes = [] {
    std::vector<float> values;
    for (uint8_t bits = 0; support::e4m3fnuz_to_float(bits) < 2; ++bits)
      values.push_back(support::e4m3fnuz_to_float(bits));
    return values;
  }();
  const float magnitude = std::abs(number);
  auto at = std::lower_bound(magnitudes.begin(), magnitudes.end(), magnitude);
  if (at == magnitudes.end() || (at != magnitudes.begin() && magnitude - at[-1] < *at - magnitude)) --at;
  const auto bits = uint8_t(at - magnitudes.begin());
  return number < 0 && bits != 0 ? bits | 0x80 : bits; // E4M3FNUZ has no negative zero
}

std::vector<std::byte> pattern_of(uint64_t elements, uint32_t dtype, uint32_t seed) {
  std::mt19937 random(seed);
  const uint32_t size = element_bytes(dtype);
  std::vector<std::byte> pattern(std::min(elements, pattern_elements) * size);
  for (size_t i = 0; i < pattern.size(); i += size) {
    const float number = float(int32_t(random())) * 0x1p-30f;
    if (dtype == SLUICE_F32) {
      std::memcpy(&pattern[i], &number, size);
      continue;
    }
    const uint16_t bits = dtype == SLUICE_E4M3FNUZ ? fp8_from_float(number)
                          : dtype == SLUICE_I8     ? uint8_t(int8_t(number * 60))
                          : dtype == SLUICE_BF16   ? support::bf16_from_float(number)
                                                   : support::f16_from_float(number);
    std::memcpy(&pattern[i], &bits, size);
  }
  return pattern;
}

void fill(WorkMemory &memory, void *to, uint64_t elements, uint32_t dtype, uint32_t seed) {
  const uint64_t bytes = elements * element_bytes(dtype);
  const std::vector<std::byte> pattern = pattern_of(elements, dtype, seed);
  for (uint64_t at = 0; at < bytes; at += pattern.size())
    memory.upload(static_cast<char *>(to) + at, pattern.data(),
                  std::min<uint64_t>(pattern.size(), bytes - at));
}

/// A tensor without gaps, and without contents if `seed` is 0.
sluice_tensor tensor(WorkMemory &memory, std::array<uint64_t, 4> shape, uint32_t dtype, uint32_t seed) {
  const uint64_t elements = shape[0] * shape[1] * shape[2] * shape[3];
  void *const data = memory.allocate(elements * element_bytes(dtype));
  if (seed != 0) fill(memory, data, elements, dtype, seed);
  return {.data = data,
          .stride = {int64_t(shape[1] * shape[2] * shape[3]), int64_t(shape[2] * shape[3]), int64_t(shape[3]),
                     1}};
}

template <typename T> const T *array(WorkMemory &memory, const std::vector<T> &values) {
  void *const data = memory.allocate(values.size() * sizeof(T));
  memory.upload(data, values.data(), values.size() * sizeof(T));
  return static_cast<const T *>(data);
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

sluice_args make_tensors(const Workload &work, WorkMemory &memory) {
  sluice_args args;
  sluice_args_init(&args, sizeof args);
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
      const auto of_sequence = own.subspan(b * work.pages_per_sequence(), work.pages_per_sequence());
      table.insert(table.end(), of_sequence.begin(), of_sequence.end());
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
  const std::vector<float> one = {1.0f};
  if (has_scale(work.types.q)) args.q_scale = array(memory, one);
  if (work.types.per_token) {
    for (sluice_tensor *const scales : {&args.k_scales, &args.v_scales})
      *scales = tensor(memory, {kv_blocks, kv_rows, work.kv_heads, 1}, SLUICE_F32, 4);
  } else if (has_scale(work.types.kv)) {
    args.k_scale = args.v_scale = array(memory, one);
  }
  return args;
}

} // namespace sluice::tools
