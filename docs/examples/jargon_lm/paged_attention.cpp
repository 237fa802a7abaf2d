//===- paged_attention.cpp - attention of many sequences at once, with a paged KV cache -----------------===//

#include "paged_attention.h"

#include <stdexcept>

namespace jargon {

namespace {

sluice_kv_format format_of(const PagedShape &shape) {
  const bool is_fp8 = shape.cache == CacheType::fp8;
  sluice_kv_format format =
      sluice_kv_pages(is_fp8 ? SLUICE_E4M3FNUZ : SLUICE_F16, shape.kv_heads, shape.head_dim, shape.page_size);
  if (is_fp8) format.k.scale_kind = format.v.scale_kind = SLUICE_SCALE_PER_HEAD;
  return format;
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
      device(device), shape(shape), format(format_of(shape)) {
  make_plan();
  make_caches(scales);
}

void PagedAttention::make_caches(const CacheScales &scales) {
  for (int layer = 0; layer < shape.layers; ++layer) {
    k_pool.emplace_back(device, cache_bytes());
    v_pool.emplace_back(device, cache_bytes());
    const auto pages = [&](const DeviceMemory &pool) {
      return sluice_pages_nhd(pool.data(), shape.page_size, shape.kv_heads, shape.head_dim);
    };
    caches.push_back(sluice_make_kv(&format, pages(k_pool[layer]), pages(v_pool[layer])));
    caches[layer].page_count = shape.pages;
  }
  for (const sluice_kv &cache : caches)
    keys.push_back(sluice_keys_of_pages(&cache, table.on_device(), shape.table_width(), lengths.on_device(),
                                        SLUICE_PLAN_BOUND));
  if (shape.cache == CacheType::f16) return;
  const size_t count = size_t(shape.layers) * shape.kv_heads;
  if (scales.k.size() != count || scales.v.size() != count)
    throw std::runtime_error("an FP8 cache needs " + std::to_string(count) + " scales of K and of V, not " +
                             std::to_string(scales.k.size()) + " and " + std::to_string(scales.v.size()));
  const size_t bytes = count * sizeof(float);
  device.upload(k_scales.emplace(device, bytes).data(), scales.k.data(), bytes);
  device.upload(v_scales.emplace(device, bytes).data(), scales.v.data(), bytes);
  cache_scales.resize(shape.layers);
  for (int layer = 0; layer < shape.layers; ++layer) {
    const size_t before = sizeof(float) * layer * shape.kv_heads;
    cache_scales[layer].struct_size = sizeof cache_scales[layer];
    cache_scales[layer].k.data = k_scales->bytes() + before;
    cache_scales[layer].v.data = v_scales->bytes() + before;
    caches[layer].scales = &cache_scales[layer];
  }
}

size_t PagedAttention::cache_bytes() const {
  const size_t elements = size_t(shape.pages) * shape.page_size * shape.kv_heads * shape.head_dim;
  return shape.cache == CacheType::fp8 ? elements : elements * sizeof(Half);
}

void PagedAttention::make_plan() {
  sluice_attention attention = sluice_make_attention(SLUICE_F16, shape.q_heads, &format);
  // Bottom-right alignment, the default: the last new row of each sequence sees all of its keys.
  const sluice_mask mask = sluice_causal_mask();
  attention.mask = &mask;
  attention.bounds.batch = shape.max_batch;
  attention.bounds.q_len = shape.max_rows;
  attention.bounds.kv_len = shape.max_length;
  // A text then does not depend on who else is being served.
  attention.flags = SLUICE_ATTENTION_BATCH_INVARIANT;

  sluice_plan *created = nullptr;
  sluice_error error = make_error();
  const sluice_status status = sluice_attention_plan(device.handle(), &attention, &created, &error);
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
  const sluice_append_args append = sluice_make_append_to_keys(
      &keys[layer], SLUICE_F16, rows, // those from starts[max_batch] on are skipped
      sluice_packed(k.on_device(), shape.kv_heads, shape.head_dim),
      sluice_packed(v.on_device(), shape.kv_heads, shape.head_dim), shape.max_batch, starts.on_device());
  sluice_launch launch;
  sluice_launch_init(&launch, sizeof launch);
  launch.stream = stream.handle();
  sluice_error error = make_error();
  check(sluice_cache_append(device.handle(), &append, &launch, &error), error);
}

void PagedAttention::attend(Stream &stream, int layer, int longest) {
  sluice_attention_args args =
      sluice_make_call(shape.max_batch, longest, sluice_packed(q.on_device(), shape.q_heads, shape.head_dim),
                       sluice_packed(o.on_device(), shape.q_heads, shape.head_dim), &keys[layer]);
  args.rows.starts = starts.on_device();
  sluice_launch launch;
  sluice_launch_init(&launch, sizeof launch);
  launch.stream = stream.handle();
  launch.workspace = workspace ? workspace->data() : nullptr;
  launch.workspace_bytes = workspace_bytes;
  sluice_error error = make_error();
  check(sluice_attention_run(plan.get(), &args, &launch, &error), error);
}

} // namespace jargon
