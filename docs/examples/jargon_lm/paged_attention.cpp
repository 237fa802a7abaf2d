//===- paged_attention.cpp - attention of many sequences at once, with a paged KV cache -----------------===//

#include "paged_attention.h"

#include <stdexcept>

namespace jargon {

namespace {

/// A [rows, heads, head_dim] tensor, or with `rows` a [page, rows, heads, head_dim] one.
sluice_tensor tensor(void *data, int rows, int heads, int head_dim) {
  const int64_t row = int64_t(heads) * head_dim;
  return {.data = data, .stride = {rows * row, row, head_dim, 1}};
}

size_t row_elements(const PagedShape &shape, int heads) {
  return size_t(shape.max_batch) * shape.max_rows * heads * shape.head_dim;
}

} // namespace

PagedAttention::PagedAttention(Device &device, const PagedShape &shape, const CacheScales &scales)
    : starts(device, shape.max_batch + 1), lengths(device, shape.max_batch),
      table(device, size_t(shape.max_batch) * shape.table_width()),
      q(device, row_elements(shape, shape.q_heads)), k(device, row_elements(shape, shape.kv_heads)),
      v(device, row_elements(shape, shape.kv_heads)), o(device, row_elements(shape, shape.q_heads)),
      device(device), shape(shape) {
  make_plan();
  for (int layer = 0; layer < shape.layers; ++layer) {
    k_pool.emplace_back(device, cache_bytes());
    v_pool.emplace_back(device, cache_bytes());
  }
  if (shape.cache == CacheType::f16) return;
  const size_t count = size_t(shape.layers) * shape.kv_heads;
  if (scales.k.size() != count || scales.v.size() != count)
    throw std::runtime_error("an FP8 cache needs " + std::to_string(count) + " scales of K and of V, not " +
                             std::to_string(scales.k.size()) + " and " + std::to_string(scales.v.size()));
  const size_t bytes = count * sizeof(float);
  device.upload(k_scales.emplace(device, bytes).data(), scales.k.data(), bytes);
  device.upload(v_scales.emplace(device, bytes).data(), scales.v.data(), bytes);
}

size_t PagedAttention::cache_bytes() const {
  const size_t elements = size_t(shape.pages) * shape.page_size * shape.kv_heads * shape.head_dim;
  return shape.cache == CacheType::fp8 ? elements : elements * sizeof(Half);
}

void PagedAttention::make_plan() {
  sluice_problem problem;
  sluice_problem_init(&problem, sizeof problem);
  problem.mode = SLUICE_MODE_PAGED;
  problem.page_table_kind = SLUICE_PAGE_TABLE_BLOCK;
  problem.page_size = shape.page_size;
  problem.q_type = problem.o_type = SLUICE_F16;
  problem.k_type = problem.v_type = shape.cache == CacheType::fp8 ? SLUICE_E4M3FNUZ : SLUICE_F16;
  if (shape.cache == CacheType::fp8) problem.k_scale_kind = problem.v_scale_kind = SLUICE_SCALE_PER_HEAD;
  problem.q_heads = shape.q_heads;
  problem.kv_heads = shape.kv_heads;
  problem.head_dim_qk = problem.head_dim_v = shape.head_dim;
  problem.max_batch = shape.max_batch;
  problem.max_q_len = shape.max_rows;
  problem.max_kv_len = shape.max_length;
  // Bottom-right alignment, the default: the last new row of each sequence sees all of its keys.
  problem.flags = SLUICE_CAUSAL;
  // A text then does not depend on who else is being served.
  problem.determinism = SLUICE_DETERMINISM_BATCH_INVARIANT;

  sluice_plan *created = nullptr;
  sluice_error error = make_error();
  const sluice_status status = sluice_plan_create(device.handle(), &problem, &created, &error);
  if (status == SLUICE_UNSUPPORTED && shape.cache == CacheType::fp8)
    throw std::runtime_error(std::string("this library cannot attend to an FP8 cache: ") + error.message);
  check(status, error);
  plan.reset(created);
  sluice_plan_info info;
  sluice_plan_info_init(&info, sizeof info);
  check(sluice_plan_describe(created, &info, &error), error);
  workspace_bytes = info.workspace_bytes;
  if (workspace_bytes != 0) workspace.emplace(device, workspace_bytes);
}

void PagedAttention::enqueue_step(Stream &stream) {
  stream.upload(starts, starts.host().size());
  stream.upload(lengths, lengths.host().size());
  stream.upload(table, table.host().size());
}

void PagedAttention::enqueue_layer(Stream &stream, int layer, int rows, int longest) {
  const size_t q_size = size_t(rows) * shape.q_heads * shape.head_dim;
  const size_t kv_size = size_t(rows) * shape.kv_heads * shape.head_dim;
  stream.upload(q, q_size);
  stream.upload(k, kv_size);
  stream.upload(v, kv_size);
  append(stream, layer, rows);
  attend(stream, layer, longest);
  stream.download(o, q_size);
}

// Row t of k and v is row t - starts[b] of its sequence b, and the lengths count the new rows: from that the
// kernel knows the position, and from the table the page.
void PagedAttention::append(Stream &stream, int layer, int rows) {
  sluice_append append;
  sluice_append_init(&append, sizeof append);
  append.source_type = SLUICE_F16;
  append.cache_type = shape.cache == CacheType::fp8 ? SLUICE_E4M3FNUZ : SLUICE_F16;
  append.kv_heads = shape.kv_heads;
  append.head_dim_qk = append.head_dim_v = shape.head_dim;
  append.page_size = shape.page_size;
  append.page_table_kind = SLUICE_PAGE_TABLE_BLOCK;
  append.tokens = rows; // those from starts[max_batch] on are skipped
  append.batch = shape.max_batch;
  append.k = tensor(k.on_device(), 0, shape.kv_heads, shape.head_dim);
  append.v = tensor(v.on_device(), 0, shape.kv_heads, shape.head_dim);
  append.k_cache = tensor(k_pool[layer].data(), shape.page_size, shape.kv_heads, shape.head_dim);
  append.v_cache = tensor(v_pool[layer].data(), shape.page_size, shape.kv_heads, shape.head_dim);
  append.starts = starts.on_device();
  append.kv_lengths = lengths.on_device();
  append.page_table = table.on_device();
  append.page_table_stride = shape.table_width();
  if (shape.cache == CacheType::fp8) {
    append.k_scale_kind = append.v_scale_kind = SLUICE_SCALE_PER_HEAD;
    append.k_scale = static_cast<const float *>(k_scales->data()) + layer * shape.kv_heads;
    append.v_scale = static_cast<const float *>(v_scales->data()) + layer * shape.kv_heads;
  }
  sluice_launch launch;
  sluice_launch_init(&launch, sizeof launch);
  launch.stream = stream.handle();
  sluice_error error = make_error();
  check(sluice_kv_append(device.handle(), &append, &launch, &error), error);
}

void PagedAttention::attend(Stream &stream, int layer, int longest) {
  sluice_args args;
  sluice_args_init(&args, sizeof args);
  args.batch = shape.max_batch;
  args.q_len = longest;
  args.kv_len = 0; // the plan's bound
  args.q = tensor(q.on_device(), 0, shape.q_heads, shape.head_dim);
  args.k = tensor(k_pool[layer].data(), shape.page_size, shape.kv_heads, shape.head_dim);
  args.v = tensor(v_pool[layer].data(), shape.page_size, shape.kv_heads, shape.head_dim);
  args.o = tensor(o.on_device(), 0, shape.q_heads, shape.head_dim);
  args.q_starts = starts.on_device();
  args.kv_lengths = lengths.on_device();
  args.page_table = table.on_device();
  args.page_table_stride = shape.table_width();
  if (shape.cache == CacheType::fp8) {
    args.k_scale = static_cast<const float *>(k_scales->data()) + layer * shape.kv_heads;
    args.v_scale = static_cast<const float *>(v_scales->data()) + layer * shape.kv_heads;
  }
  sluice_launch launch;
  sluice_launch_init(&launch, sizeof launch);
  launch.stream = stream.handle();
  launch.workspace = workspace ? workspace->data() : nullptr;
  launch.workspace_bytes = workspace_bytes;
  sluice_error error = make_error();
  check(sluice_run(plan.get(), &args, &launch, &error), error);
}

} // namespace jargon
