//===- runner.cpp - the device, its memory, and a node's way through it --------------------------------===//

#include "runner.h"

#include <bit>
#include <cstring>

namespace ggml_sluice {

namespace {

// The two directions of hipMemcpy that are needed, with the values of hipMemcpyKind.
constexpr int host_to_device = 1;
constexpr int device_to_host = 2;

sluice::ContextDesc desc_of(const std::string &name) {
  if (name == "emulated") return sluice::ContextDesc(SLUICE_DEVICE_EMULATED);
  if (name.size() == 5 && name.starts_with("hip:") && name[4] >= '0' && name[4] <= '9')
    return sluice::ContextDesc(SLUICE_DEVICE_HIP, name[4] - '0');
  throw std::runtime_error("the device is '" + name +
                           "'; it must be 'emulated', or 'hip:N' with N from 0 to 9");
}

} // namespace

Device::Device(const std::string &name)
    : ordinal(desc_of(name).device_ordinal), bound(sluice::Context::create(desc_of(name)).value()) {}

std::string Device::message(int code) const {
  auto *const text = bound.hip<const char *(int)>("hipGetErrorString");
  return text ? text(code) : "HIP error " + std::to_string(code);
}

std::string Device::description() const {
  const sluice_device_info info = bound.device().value();
  return std::string(info.name[0] ? info.name : info.chip) + ", " + info.arch + ", through " + info.runtime;
}

void *Memory::reserve(size_t bytes) {
  if (bytes <= capacity_bytes) return data;
  release();
  const size_t wanted = std::bit_ceil(bytes);
  device.hip<void **, size_t>("hipMalloc", &data, wanted);
  capacity_bytes = wanted;
  ++device.counters.allocations;
  return data;
}

void *Memory::upload(const void *from, size_t bytes) {
  void *const to = reserve(bytes);
  if (bytes != 0) device.hip<void *, const void *, size_t, int>("hipMemcpy", to, from, bytes, host_to_device);
  return to;
}

void Memory::download(void *to, size_t bytes) const {
  device.hip<void *, const void *, size_t, int>("hipMemcpy", to, data, bytes, device_to_host);
}

void Memory::release() noexcept {
  if (data) device.context().hip<int(void *)>("hipFree")(data);
  data = nullptr;
  capacity_bytes = 0;
}

const Runner::Plan &Runner::plan_for(const Problem &problem) {
  const std::string key(reinterpret_cast<const char *>(&problem), sizeof problem);
  if (const auto found = plans.find(key); found != plans.end()) return found->second;
  sluice::Plan plan = device.context().plan(problem.linked()).value();
  ++device.counters.plans;
  const uint64_t workspace_bytes = plan.describe().value().workspace_bytes;
  return plans.emplace(key, Plan{std::move(plan), workspace_bytes}).first->second;
}

/// Rows of F32 in any order of heads become dense rows of F16 or BF16.
void *Runner::upload_q(const Attention &attention) {
  const ggml_tensor &from = *attention.q;
  const int64_t elements = from.ne[0];
  std::vector<uint16_t> rows;
  rows.resize(ggml_nelements(&from));
  uint16_t *to = rows.data();
  for (int64_t sequence = 0; sequence < from.ne[3]; ++sequence)
    for (int64_t row = 0; row < from.ne[1]; ++row)
      for (int64_t head = 0; head < from.ne[2]; ++head, to += elements) {
        const auto *const values =
            reinterpret_cast<const float *>(static_cast<const char *>(from.data) + sequence * from.nb[3] +
                                            head * from.nb[2] + row * from.nb[1]);
        if (attention.q_is_bf16())
          ggml_fp32_to_bf16_row(values, reinterpret_cast<ggml_bf16_t *>(to), elements);
        else
          ggml_fp32_to_fp16_row(values, to, elements);
      }
  return q.upload(rows.data(), rows.size() * sizeof rows[0]);
}

/// The mask as it is, or times the slope of each head.
void *Runner::upload_bias(const Attention &attention) {
  const ggml_tensor &mask = *attention.mask;
  if (!attention.has_slopes()) return bias.upload(mask.data, ggml_nbytes(&mask));
  const int64_t head_elements = mask.ne[0] * mask.ne[1];
  std::vector<float> products;
  products.reserve(mask.ne[3] * attention.q_heads() * head_elements);
  for (int64_t sequence = 0; sequence < mask.ne[3]; ++sequence)
    for (int64_t head = 0; head < attention.q_heads(); ++head) {
      const auto *const numbers = reinterpret_cast<const ggml_fp16_t *>(
          static_cast<const char *>(mask.data) + sequence * mask.nb[3] + head % mask.ne[2] * mask.nb[2]);
      const float slope = slope_of(attention, head);
      for (int64_t i = 0; i < head_elements; ++i)
        products.push_back(slope * ggml_fp16_to_fp32(numbers[i]));
    }
  return bias.upload(products.data(), products.size() * sizeof products[0]);
}

void Runner::compute(ggml_tensor &node) {
  const Attention attention(node);
  if (const std::string why = refusal(attention); !why.empty()) throw std::runtime_error(why);
  device.select();
  const Problem problem = problem_of(attention);
  const Plan &plan = plan_for(problem);

  Tensors at = tensors_of(attention);
  at.q.data = upload_q(attention);
  at.k.data = k.upload(attention.k->data, ggml_nbytes(attention.k));
  if (!attention.v_is_in_k()) at.v.data = v.upload(attention.v->data, ggml_nbytes(attention.v));
  at.o.data = o.reserve(ggml_nbytes(&node));
  sluice::Sized<sluice_scores_args> scores;
  if (attention.mask) at.bias.data = upload_bias(attention);
  scores.bias = at.bias;
  if (attention.sinks)
    scores.sinks =
        static_cast<const float *>(sinks.upload(attention.sinks->data, ggml_nbytes(attention.sinks)));

  const sluice_kv kv = sluice_make_kv(&problem.format, at.k, at.v);
  const sluice_keys keys = sluice_keys_of_equal(&kv, int32_t(attention.keys()));
  sluice_attention_args args =
      sluice_make_call(int32_t(attention.sequences()), int32_t(attention.rows()), at.q, at.o, &keys);
  args.scale = &attention.scale;
  args.scores = &scores;
  sluice::Launch launch; // on the default stream, which hipMemcpy waits for
  if (plan.workspace_bytes != 0) launch.workspace = workspace.reserve(plan.workspace_bytes);
  launch.workspace_bytes = plan.workspace_bytes;
  plan.plan.run(args, launch).value();
  o.download(node.data, ggml_nbytes(&node));
  ++device.counters.nodes;
}

} // namespace ggml_sluice
