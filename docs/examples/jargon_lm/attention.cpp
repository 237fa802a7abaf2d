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

/// A dense [1, rows, heads, head_dim] tensor.
sluice_tensor dense(void *data, int heads, int head_dim) {
  // There is one sequence, so its stride is never multiplied by anything but 0.
  return {.data = data, .stride = {0, int64_t(heads) * head_dim, head_dim, 1}};
}

} // namespace

Attention::Attention(Device &device, const AttentionShape &shape)
    : device(device), shape(shape),
      q_rows(device, sizeof(Half) * shape.max_positions * shape.q_heads * shape.head_dim),
      o_rows(device, sizeof(Half) * shape.max_positions * shape.q_heads * shape.head_dim) {
  const size_t cache_bytes = sizeof(Half) * shape.max_positions * shape.kv_heads * shape.head_dim;
  for (int layer = 0; layer < shape.layers; ++layer) {
    k_cache.emplace_back(device, cache_bytes);
    v_cache.emplace_back(device, cache_bytes);
  }
  prompt_plan = make_plan(shape.max_positions);
  token_plan = make_plan(1);
  if (workspace_bytes != 0) workspace.emplace(device, workspace_bytes);
}

Attention::Plan Attention::make_plan(int max_rows) {
  sluice_problem problem;
  sluice_problem_init(&problem, sizeof problem);
  problem.q_type = problem.k_type = problem.v_type = problem.o_type = SLUICE_F16;
  problem.q_heads = shape.q_heads;
  problem.kv_heads = shape.kv_heads;
  problem.head_dim_qk = problem.head_dim_v = shape.head_dim;
  problem.max_batch = 1;
  problem.max_q_len = max_rows;
  problem.max_kv_len = shape.max_positions;
  // The same text for all bounds of the plan, and the same as with a paged cache.
  problem.determinism = SLUICE_DETERMINISM_BATCH_INVARIANT;
  // Bottom-right alignment, the default: the last new row sees the whole cache.
  problem.flags = SLUICE_CAUSAL;

  sluice_plan *created = nullptr;
  sluice_error error = make_error();
  check(sluice_plan_create(device.handle(), &problem, &created, &error), error);
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

  sluice_args args;
  sluice_args_init(&args, sizeof args);
  args.batch = 1;
  args.q_len = rows;
  args.kv_len = positions + rows;
  args.q = dense(q_rows.data(), shape.q_heads, shape.head_dim);
  args.k = dense(k_cache[layer].data(), shape.kv_heads, shape.head_dim);
  args.v = dense(v_cache[layer].data(), shape.kv_heads, shape.head_dim);
  args.o = dense(o_rows.data(), shape.q_heads, shape.head_dim);
  sluice_launch launch; // on the default stream
  sluice_launch_init(&launch, sizeof launch);
  launch.workspace = workspace ? workspace->data() : nullptr;
  launch.workspace_bytes = workspace_bytes;
  sluice_error error = make_error();
  check(sluice_run((rows == 1 ? token_plan : prompt_plan).get(), &args, &launch, &error), error);
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
