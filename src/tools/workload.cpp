//===- workload.cpp - attention workloads of engines ----------------------------------------------------===//
#include "tools/workload.h"

#include "tools/tool_error.h"

#include <fmt/format.h>

namespace sluice::tools {

namespace {

constexpr uint64_t most_bytes = uint64_t(8) << 30;

constexpr ElementTypes all_types[] = {
    {"f16", SLUICE_F16, SLUICE_F16, SLUICE_F16},
    {"bf16", SLUICE_BF16, SLUICE_BF16, SLUICE_BF16},
    {"f16+fp8", SLUICE_F16, SLUICE_E4M3FNUZ, SLUICE_F16},
    {"bf16+fp8", SLUICE_BF16, SLUICE_E4M3FNUZ, SLUICE_BF16},
    {"fp8", SLUICE_E4M3FNUZ, SLUICE_E4M3FNUZ, SLUICE_BF16},
    {"fp8-f16", SLUICE_E4M3FNUZ, SLUICE_E4M3FNUZ, SLUICE_F16},
    {"f16-f32", SLUICE_F16, SLUICE_F16, SLUICE_F32},
    {"bf16-f32", SLUICE_BF16, SLUICE_BF16, SLUICE_F32},
    {"f16+fp8-f32", SLUICE_F16, SLUICE_E4M3FNUZ, SLUICE_F32},
    {"bf16+fp8-f32", SLUICE_BF16, SLUICE_E4M3FNUZ, SLUICE_F32},
    {"fp8-f32", SLUICE_E4M3FNUZ, SLUICE_E4M3FNUZ, SLUICE_F32},
    {"f16-fp8", SLUICE_F16, SLUICE_F16, SLUICE_E4M3FNUZ},
    {"bf16-fp8", SLUICE_BF16, SLUICE_BF16, SLUICE_E4M3FNUZ},
    {"f16+fp8-fp8", SLUICE_F16, SLUICE_E4M3FNUZ, SLUICE_E4M3FNUZ},
    {"bf16+fp8-fp8", SLUICE_BF16, SLUICE_E4M3FNUZ, SLUICE_E4M3FNUZ},
    {"fp8-fp8", SLUICE_E4M3FNUZ, SLUICE_E4M3FNUZ, SLUICE_E4M3FNUZ},
    {"f16+i8", SLUICE_F16, SLUICE_I8, SLUICE_F16},
    {"bf16+i8", SLUICE_BF16, SLUICE_I8, SLUICE_BF16},
    {"f16+fp8/token", SLUICE_F16, SLUICE_E4M3FNUZ, SLUICE_F16, true},
    {"bf16+fp8/token", SLUICE_BF16, SLUICE_E4M3FNUZ, SLUICE_BF16, true},
    {"f16+i8/token", SLUICE_F16, SLUICE_I8, SLUICE_F16, true},
    {"bf16+i8/token", SLUICE_BF16, SLUICE_I8, SLUICE_BF16, true},
};

uint32_t scale_kind_of(uint32_t dtype) {
  return has_scale(dtype) ? SLUICE_SCALE_PER_TENSOR : SLUICE_SCALE_NONE;
}

double elements(uint64_t sequences, uint64_t rows, uint64_t heads, uint64_t dim) {
  return double(sequences) * double(rows) * double(heads) * double(dim);
}

} // namespace

std::string_view work_kind_name(WorkKind kind) {
  static constexpr std::string_view names[] = {"prefill", "decode", "chunk", "draft"};
  return names[size_t(kind)];
}

std::span<const ElementTypes> element_types() {
  return all_types;
}

std::string to_text(const HeadDims &dims) {
  return dims.qk == dims.v ? std::to_string(dims.qk) : fmt::format("{}/{}", dims.qk, dims.v);
}

uint32_t element_bytes(uint32_t dtype) {
  return has_scale(dtype) ? 1 : dtype == SLUICE_F32 ? 4 : 2;
}

bool has_scale(uint32_t dtype) {
  return dtype == SLUICE_E4M3FNUZ || dtype == SLUICE_I8;
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
  const uint32_t columns = dims.qk + (dims.v_in_k ? 0 : dims.v);
  double bytes = elements(batch, kv_len, kv_heads, columns) * element_bytes(types.kv);
  bytes += elements(1, prefix_len, kv_heads, columns) * element_bytes(types.kv);
  if (types.per_token)
    bytes += (elements(batch, kv_len, kv_heads, 2) + elements(1, prefix_len, kv_heads, 2)) * sizeof(float);
  bytes += elements(batch, q_len, q_heads, dims.qk) * element_bytes(types.q);
  return bytes + elements(batch, q_len, q_heads, dims.v) * element_bytes(types.o);
}

uint64_t Workload::pages_per_sequence() const {
  return page_size == 0 ? 0 : (uint64_t(kv_len) + page_size - 1) / page_size;
}

uint64_t Workload::pages_of_prefix() const {
  return page_size == 0 ? 0 : (uint64_t(prefix_len) + page_size - 1) / page_size;
}

uint64_t Workload::tensor_bytes() const {
  const uint64_t rows = page_size == 0 ? kv_len : pages_per_sequence() * page_size;
  const uint64_t prefix_rows = page_size == 0 ? prefix_len : pages_of_prefix() * page_size;
  const uint32_t columns = dims.qk + (dims.v_in_k ? 0 : dims.v);
  double bytes = elements(batch, rows, kv_heads, columns) * element_bytes(types.kv);
  bytes += elements(1, prefix_rows, kv_heads, columns) * element_bytes(types.kv);
  if (types.per_token)
    bytes += (elements(batch, rows, kv_heads, 2) + elements(1, prefix_rows, kv_heads, 2)) * sizeof(float);
  bytes += elements(batch, q_len, q_heads, dims.qk) * element_bytes(types.q);
  bytes += elements(batch, q_len, q_heads, dims.v) * element_bytes(types.o);
  const uint64_t shared_entries = pages_of_prefix();
  bytes +=
      double(batch) * double(pages_per_sequence() + 1 + (cascade ? 0 : shared_entries)) * sizeof(int32_t);
  bytes += double(shared_entries) * sizeof(int32_t);
  return bytes > 1e18 ? uint64_t(1e18) : uint64_t(bytes);
}

sluice_problem Workload::problem() const {
  sluice_problem problem;
  sluice_problem_init(&problem, sizeof problem);
  problem.mode = page_size != 0 ? SLUICE_MODE_PAGED : SLUICE_MODE_DENSE;
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
  if (causal) problem.flags |= SLUICE_CAUSAL;
  if (dims.v_in_k) problem.flags |= SLUICE_V_IN_K;
  if (sparse) problem.flags |= SLUICE_MISSING_PAGES_HIDDEN;
  if (prefix_len != 0 && !cascade) problem.max_kv_len += int32_t(prefix_len);
  if (prefix_len != 0 && cascade) {
    problem.flags |= SLUICE_SHARED_PREFIX;
    problem.max_prefixes = 1;
    problem.max_prefix_len = int32_t(prefix_len);
    problem.max_q_tokens = int64_t{batch} * q_len;
  }
  problem.q_scale_kind = scale_kind_of(types.q);
  problem.k_scale_kind = problem.v_scale_kind =
      types.per_token ? uint32_t(SLUICE_SCALE_PER_TOKEN) : scale_kind_of(types.kv);
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
