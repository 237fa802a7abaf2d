//===- workload.cpp - attention workloads of engines ----------------------------------------------------===//
#include "tools/bench/workload.h"

#include "calls/problem.h"
#include "tools/shared/tool_error.h"

#include <fmt/format.h>
#include <sluice/sluice.hpp>
#include <vector>

namespace sluice::tools {

namespace {

constexpr uint64_t most_bytes = uint64_t(8) << 30;

/// K and V of other types than Q, with Q and O of F16 or BF16.
struct CacheTypes {
  std::string_view name;
  uint32_t dtype, scales;
  uint32_t group = 0;
  bool zeros = false;
};
constexpr CacheTypes cache_types[] = {
    {"fp8", SLUICE_E4M3FNUZ, SLUICE_SCALE_PER_TENSOR},
    {"fp8/token", SLUICE_E4M3FNUZ, SLUICE_SCALE_PER_TOKEN},
    {"fp8/page", SLUICE_E4M3FNUZ, SLUICE_SCALE_PER_PAGE},
    {"e5m2", SLUICE_E5M2FNUZ, SLUICE_SCALE_PER_TENSOR},
    {"e5m2/token", SLUICE_E5M2FNUZ, SLUICE_SCALE_PER_TOKEN},
    {"e5m2/page", SLUICE_E5M2FNUZ, SLUICE_SCALE_PER_PAGE},
    {"i8", SLUICE_I8, SLUICE_SCALE_PER_TENSOR},
    {"i8/token", SLUICE_I8, SLUICE_SCALE_PER_TOKEN},
    {"i8/page", SLUICE_I8, SLUICE_SCALE_PER_PAGE},
    {"q8_0", SLUICE_Q8_0, SLUICE_SCALE_NONE},
    {"q4_0", SLUICE_Q4_0, SLUICE_SCALE_NONE},
    {"u4/32", SLUICE_U4, SLUICE_SCALE_PER_GROUP, 32},
    {"u4/64", SLUICE_U4, SLUICE_SCALE_PER_GROUP, 64},
    {"u4/32/zeros", SLUICE_U4, SLUICE_SCALE_PER_GROUP, 32, true},
    {"u4/64/zeros", SLUICE_U4, SLUICE_SCALE_PER_GROUP, 64, true},
};

std::vector<ElementTypes> all_types() {
  constexpr uint32_t fp8 = SLUICE_E4M3FNUZ, per_tensor = SLUICE_SCALE_PER_TENSOR;
  std::vector<ElementTypes> types = {
      {"f16", SLUICE_F16, SLUICE_F16, SLUICE_F16},
      {"bf16", SLUICE_BF16, SLUICE_BF16, SLUICE_BF16},
  };
  for (const CacheTypes &cache : cache_types)
    for (const ElementTypes &plain : {types[0], types[1]})
      types.push_back({fmt::format("{}+{}", plain.name, cache.name), plain.q, cache.dtype, plain.o,
                       cache.scales, cache.group, cache.zeros});
  const std::vector<ElementTypes> others = {
      {"fp8", fp8, fp8, SLUICE_BF16, per_tensor},
      {"fp8-f16", fp8, fp8, SLUICE_F16, per_tensor},
      {"fp8/token", fp8, fp8, SLUICE_BF16, SLUICE_SCALE_PER_TOKEN},
      {"fp8/page", fp8, fp8, SLUICE_BF16, SLUICE_SCALE_PER_PAGE},
      {"f16-f32", SLUICE_F16, SLUICE_F16, SLUICE_F32},
      {"bf16-f32", SLUICE_BF16, SLUICE_BF16, SLUICE_F32},
      {"f16+fp8-f32", SLUICE_F16, fp8, SLUICE_F32, per_tensor},
      {"bf16+fp8-f32", SLUICE_BF16, fp8, SLUICE_F32, per_tensor},
      {"fp8-f32", fp8, fp8, SLUICE_F32, per_tensor},
      {"f16-fp8", SLUICE_F16, SLUICE_F16, fp8},
      {"bf16-fp8", SLUICE_BF16, SLUICE_BF16, fp8},
      {"f16+fp8-fp8", SLUICE_F16, fp8, fp8, per_tensor},
      {"bf16+fp8-fp8", SLUICE_BF16, fp8, fp8, per_tensor},
      {"fp8-fp8", fp8, fp8, fp8, per_tensor},
  };
  types.insert(types.end(), others.begin(), others.end());
  return types;
}

uint32_t q_scales(const ElementTypes &types) {
  return types.q == SLUICE_E4M3FNUZ ? SLUICE_SCALE_PER_TENSOR : SLUICE_SCALE_NONE;
}

double bytes_of(uint64_t sequences, uint64_t rows, uint64_t heads, uint64_t dim, uint32_t dtype) {
  return double(sequences) * double(rows) * double(heads) * double(stored_bytes(dtype, dim));
}

/// Bytes of `rows` of K and V, and of the scales that are not in their blocks. `pages` matter for scales per
/// page.
double cache_bytes(const Workload &work, uint64_t rows, uint64_t pages) {
  const ElementTypes &types = work.types;
  const uint32_t columns = work.dims.qk + (work.dims.v_in_k ? 0 : work.dims.v);
  double bytes = bytes_of(1, rows, work.kv_heads, columns, types.kv);
  if (types.kv_scales == SLUICE_SCALE_PER_TOKEN) bytes += bytes_of(1, rows, work.kv_heads, 2, SLUICE_F32);
  if (types.kv_scales == SLUICE_SCALE_PER_PAGE) bytes += bytes_of(1, pages, work.kv_heads, 2, SLUICE_F32);
  if (types.kv_scales == SLUICE_SCALE_PER_GROUP)
    bytes += bytes_of(types.zeros ? 2 : 1, rows, work.kv_heads, columns / types.group, SLUICE_F16);
  return bytes;
}

double q_and_o_bytes(const Workload &work) {
  return bytes_of(work.batch, work.q_len, work.q_heads, work.dims.qk, work.types.q) +
         bytes_of(work.batch, work.q_len, work.q_heads, work.dims.v, work.types.o);
}

} // namespace

std::string_view work_kind_name(WorkKind kind) {
  static constexpr std::string_view names[] = {"prefill", "decode", "chunk", "draft"};
  return names[size_t(kind)];
}

std::span<const ElementTypes> element_types() {
  static const std::vector<ElementTypes> types = all_types();
  return types;
}

std::string to_text(const HeadDims &dims) {
  return dims.qk == dims.v ? std::to_string(dims.qk) : fmt::format("{}/{}", dims.qk, dims.v);
}

uint64_t stored_bytes(uint32_t dtype, uint64_t elements) {
  const Block block = block_of(dtype);
  return elements / block.elements * block.bytes;
}

std::string Workload::name() const {
  std::string text = fmt::format("{} {} d{}, {}/{} heads, ", work_kind_name(kind), types.name, to_text(dims),
                                 q_heads, kv_heads);
  if (kind == WorkKind::prefill)
    text += fmt::format("{} x {} tokens", batch, kv_len);
  else if (kind == WorkKind::decode)
    text += fmt::format("{} x {} keys", batch, kv_len);
  else
    text += fmt::format("{} x {} rows, {} keys", batch, q_len, kv_len);
  if (prefix_len != 0)
    text += fmt::format(" after {} shared ones{}", prefix_len, cascade ? "" : " without a cascade");
  if (page_size != 0) text += fmt::format(", pages of {}{}", page_size, shuffled_pages ? "" : " in order");
  if (sparse) text += ", sparse";
  if (causal) text += ", causal";
  return text;
}

double Workload::useful_flops() const {
  const double pairs =
      double(q_len) * (double(prefix_len) + kv_len) - (causal ? double(q_len) * q_len / 2 : 0);
  return 2.0 * (dims.qk + dims.v) * pairs * q_heads * batch;
}

double Workload::needed_bytes() const {
  return q_and_o_bytes(*this) + cache_bytes(*this, uint64_t{batch} * kv_len + prefix_len,
                                            batch * pages_per_sequence() + pages_of_prefix());
}

uint64_t Workload::pages_per_sequence() const {
  return page_size == 0 ? 0 : (uint64_t(kv_len) + page_size - 1) / page_size;
}

uint64_t Workload::pages_of_prefix() const {
  return page_size == 0 ? 0 : (uint64_t(prefix_len) + page_size - 1) / page_size;
}

uint64_t Workload::tensor_bytes() const {
  const uint64_t pages = batch * pages_per_sequence() + pages_of_prefix();
  const uint64_t rows = page_size == 0 ? uint64_t{batch} * kv_len + prefix_len : pages * page_size;
  double bytes = q_and_o_bytes(*this) + cache_bytes(*this, rows, pages);
  const uint64_t shared_entries = pages_of_prefix();
  bytes +=
      double(batch) * double(pages_per_sequence() + 1 + (cascade ? 0 : shared_entries)) * sizeof(int32_t);
  bytes += double(shared_entries) * sizeof(int32_t);
  return bytes > 1e18 ? uint64_t(1e18) : uint64_t(bytes);
}

calls::Problem Workload::problem() const {
  calls::Problem problem;
  problem.mode = page_size != 0 ? calls::paged : calls::dense;
  problem.q_type = types.q;
  problem.k_type = problem.v_type = types.kv;
  problem.o_type = types.o;
  problem.q_heads = int32_t(q_heads);
  problem.kv_heads = int32_t(kv_heads);
  problem.head_dim_qk = int32_t(dims.qk);
  problem.head_dim_v = int32_t(dims.v);
  problem.max_batch = int32_t(batch);
  problem.max_q_len = int32_t(q_len);
  problem.max_kv_len = int32_t(kv_len);
  if (causal) problem.flags |= calls::causal;
  if (dims.v_in_k) problem.flags |= calls::v_in_k;
  if (sparse) problem.flags |= calls::missing_pages;
  if (prefix_len != 0 && !cascade) problem.max_kv_len += int32_t(prefix_len);
  if (prefix_len != 0 && cascade) {
    problem.flags |= calls::prefixes;
    problem.max_prefixes = 1;
    problem.max_prefix_len = int32_t(prefix_len);
    problem.max_q_tokens = int64_t{batch} * q_len;
  }
  if (types.zeros) problem.flags |= calls::zero_points;
  problem.q_scale_kind = q_scales(types);
  problem.k_scale_kind = problem.v_scale_kind = types.kv_scales;
  problem.scale_group = int32_t(types.group);
  if (page_size != 0) {
    problem.page_size = int32_t(page_size);
    problem.page_table_kind = SLUICE_PAGE_TABLE_BLOCK;
  }
  return problem;
}

void check_size(const Workload &work) {
  const uint64_t bytes = work.tensor_bytes();
  if (bytes > most_bytes)
    throw ToolError(
        fmt::format("{} sequences of {} tokens, {} heads of queries and {} of keys have {} bytes; {} is "
                    "the most: reduce --batch, --lengths, --kv-len, --sequences, --heads or --kv-heads",
                    work.batch, work.kv_len, work.q_heads, work.kv_heads, bytes, most_bytes));
}

} // namespace sluice::tools
