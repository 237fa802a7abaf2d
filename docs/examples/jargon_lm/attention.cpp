//===- attention.cpp - attention on the device, with its KV cache ---------------------------------------===//

#include "attention.h"

#include "half.h"

#include <algorithm>

namespace jargon {

namespace {

std::vector<Half> to_halves(std::span<const float> values) {
  std::vector<Half> halves;
  halves.reserve(values.size());
  for (float value : values)
    halves.push_back(to_half(value));
  return halves;
}

} // namespace

Attention::Attention(Device &device, const AttentionShape &shape)
    : device(device), shape(shape), format(sluice_kv_tensors(SLUICE_F16, shape.kv_heads, shape.head_dim)),
      q_rows(device, sizeof(Half) * shape.max_positions * shape.q_heads * shape.head_dim),
      o_rows(device, sizeof(Half) * shape.max_positions * shape.q_heads * shape.head_dim) {
  const size_t cache_bytes = sizeof(Half) * shape.max_positions * shape.kv_heads * shape.head_dim;
  for (int layer = 0; layer < shape.layers; ++layer) {
    k_cache.emplace_back(device, cache_bytes);
    v_cache.emplace_back(device, cache_bytes);
    const auto rows = [&](const DeviceMemory &cache) {
      return sluice_bshd(cache.data(), shape.max_positions, shape.kv_heads, shape.head_dim);
    };
    caches.push_back(sluice_make_kv(&format, rows(k_cache[layer]), rows(v_cache[layer])));
  }
  prompt_plan = make_plan(shape.max_positions);
  token_plan = make_plan(1);
  if (workspace_bytes != 0) workspace.emplace(device, workspace_bytes);
}

Attention::Plan Attention::make_plan(int max_rows) {
  sluice_attention attention = sluice_make_attention(SLUICE_F16, shape.q_heads, &format);
  // Bottom-right alignment, the default: the last new row sees the whole cache.
  const sluice_mask mask = sluice_causal_mask();
  attention.mask = &mask;
  attention.bounds.batch = 1;
  attention.bounds.q_len = max_rows;
  attention.bounds.kv_len = shape.max_positions;
  // The same text for all bounds of the plan, and the same as with a paged cache.
  attention.flags = SLUICE_ATTENTION_BATCH_INVARIANT;

  sluice_plan *created = nullptr;
  sluice_error error = make_error();
  check(sluice_attention_plan(device.handle(), &attention, &created, &error), error);
  Plan plan(created);
  sluice_plan_info info;
  sluice_plan_info_init(&info, sizeof info);
  check(sluice_plan_describe(created, &info, &error), error);
  workspace_bytes = std::max<size_t>(workspace_bytes, info.workspace_bytes);
  return plan;
}

std::vector<float> Attention::run(int layer, int rows, std::span<const float> q, std::span<const float> k,
                                  std::span<const float> v) {
  const size_t new_kv_at = sizeof(Half) * positions * shape.kv_heads * shape.head_dim;
  const std::vector<Half> q_halves = to_halves(q), k_halves = to_halves(k), v_halves = to_halves(v);
  device.upload(q_rows.data(), q_halves.data(), q_halves.size() * sizeof(Half));
  device.upload(k_cache[layer].bytes() + new_kv_at, k_halves.data(), k_halves.size() * sizeof(Half));
  device.upload(v_cache[layer].bytes() + new_kv_at, v_halves.data(), v_halves.size() * sizeof(Half));

  const sluice_keys keys = sluice_keys_of_equal(&caches[layer], positions + rows);
  const sluice_attention_args args =
      sluice_make_call(1, rows, sluice_bshd(q_rows.data(), rows, shape.q_heads, shape.head_dim),
                       sluice_bshd(o_rows.data(), rows, shape.q_heads, shape.head_dim), &keys);
  sluice_launch launch; // on the default stream
  sluice_launch_init(&launch, sizeof launch);
  launch.workspace = workspace ? workspace->data() : nullptr;
  launch.workspace_bytes = workspace_bytes;
  sluice_error error = make_error();
  check(sluice_attention_run((rows == 1 ? token_plan : prompt_plan).get(), &args, &launch, &error), error);
  device.synchronise();

  std::vector<Half> o_halves(q.size());
  device.download(o_halves.data(), o_rows.data(), o_halves.size() * sizeof(Half));
  std::vector<float> o;
  o.reserve(o_halves.size());
  for (Half half : o_halves)
    o.push_back(to_float(half));
  return o;
}

} // namespace jargon
