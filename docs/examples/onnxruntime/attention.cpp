//===- attention.cpp - ONNX's Attention, of the operator sets 23 to 25 ----------------------------------===//
//
// Row i of a call sees key j <= i + offset if is_causal is set, and windows count from i + offset too. The
// offset is the keys before the call's own: those of past_key, or nonpad_kv_seqlen minus the rows, or 0.
// An offset of kv minus q length is Sluice's bottom-right alignment, and an offset of 0 its top-left one.
//
//===----------------------------------------------------------------------------------------------------===//
#include "attention_mask.h"
#include "attention_step.h"
#include "kernel.h"

#include <algorithm>
#include <optional>

namespace sluice_ort {

namespace {

using namespace onnx_attention;
using std::to_string;

/// Keys of past_key, then those of the call.
void join(const Tensor &past, int64_t past_keys, const Rows &rows, const void *data, uint16_t *present) {
  const auto *from = static_cast<const uint16_t *>(data);
  const sluice_tensor strides = rows.tensor(nullptr);
  for (int64_t b = 0; b < rows.batch; ++b)
    for (int64_t head = 0; head < rows.heads; ++head) {
      if (past) {
        const int64_t elements = past_keys * rows.size;
        present =
            std::copy_n(past.as<const uint16_t>() + (b * rows.heads + head) * elements, elements, present);
      }
      for (int64_t token = 0; token < rows.tokens; ++token)
        present =
            std::copy_n(from + b * strides.stride[0] + token * strides.stride[1] + head * strides.stride[2],
                        rows.size, present);
    }
}

class Attention final : public Kernel {
public:
  Attention(const Node &node, Device &device);
  void compute(const Call &call) const override;

private:
  void check_known_shapes(const Node &node) const;
  Problem problem_of(const Rows &q, const Rows &k, const Rows &v) const;
  void align(Problem &problem, const Step &step) const;

  Device &device;
  std::optional<float> scale;
  float soft_cap;
  int64_t q_heads, kv_heads;         // 0 if the shapes say so
  int64_t window_left, window_right; // -1 is all
  bool causal, joins_caches, mask_may_be_shorter;
  uint32_t type, mask_flag = 0, mask_type = 0;
};

Attention::Attention(const Node &node, Device &device)
    : device(device), scale(scale_of(node)), soft_cap(soft_cap_of(node)),
      q_heads(node.integer("q_num_heads", 0)), kv_heads(node.integer("kv_num_heads", 0)),
      window_left(node.integer("left_window_size", -1)), window_right(node.integer("right_window_size", -1)),
      causal(node.integer("is_causal", 0) != 0),
      joins_caches(node.has_input(past_key) || node.has_output(present_key) ||
                   node.has_output(present_value)),
      mask_may_be_shorter(node.since_version() >= 24), type(half_type(node.input_type(q_input), "Q")) {
  for (const auto &[input, name] : {std::pair(k_input, "K"), std::pair(v_input, "V")})
    require(node.input_type(input) == node.input_type(q_input),
            std::string(name) + " is " + type_name(node.input_type(input)) + "; it must be of Q's type, " +
                type_name(node.input_type(q_input)));
  require(!node.has_output(qk_matmul_output), "qk_matmul_output is requested; this output is not supported");
  // Softmax is computed in F32, which is at least as precise as every type but this.
  require(node.integer("softmax_precision", 1) != ONNX_TENSOR_ELEMENT_DATA_TYPE_DOUBLE,
          "softmax_precision is 11 (double); Sluice computes in float (1)");
  require(node.has_input(past_key) == node.has_input(past_value),
          "past_key and past_value must be given together");
  require(!node.has_input(nonpad_kv_seqlen) || !joins_caches,
          "nonpad_kv_seqlen is given; then past_key, past_value, present_key and present_value must not be "
          "given");
  if (node.has_input(attn_mask)) {
    if (node.input_type(attn_mask) == ONNX_TENSOR_ELEMENT_DATA_TYPE_BOOL)
      mask_flag = SLUICE_MASK_BITS;
    else
      mask_type = bias_type(node.input_type(attn_mask), "attn_mask");
  }
  check_known_shapes(node);
}

/// Asks Sluice when the session is made, if the model says how large heads are.
void Attention::check_known_shapes(const Node &node) const {
  const auto known = [&](Input input, int64_t heads) {
    const Shape shape = node.input_shape(input);
    if (shape.size() == 4) return Rows{1, 1, shape[1], shape[3], true};
    const bool divides = shape.size() == 3 && heads > 0 && shape[2] % heads == 0;
    return Rows{1, 1, heads, divides ? shape[2] / heads : 0, false};
  };
  const Rows q = known(q_input, q_heads), k = known(k_input, kv_heads), v = known(v_input, kv_heads);
  if (std::min({q.heads, q.size, k.heads, k.size, v.heads, v.size}) > 0 && q.size == k.size)
    device.check_support(problem_of(q, k, v));
}

Problem Attention::problem_of(const Rows &q, const Rows &k, const Rows &v) const {
  Problem problem = plain_problem(type, q.heads, k.heads, q.size, v.size);
  problem.scores.soft_cap = soft_cap;
  problem.mask.flags = mask_flag;
  problem.scores.bias_type = mask_type;
  if (causal) problem.mask.flags |= SLUICE_MASK_CAUSAL; // a window to the right hides nothing more then
  if (!causal && window_right >= 0) {
    problem.mask.flags |= SLUICE_MASK_WINDOW_RIGHT;
    problem.mask.window_right = int32_t(std::min<int64_t>(window_right, INT32_MAX));
  }
  if (window_left >= 0) {
    problem.mask.flags |= SLUICE_MASK_WINDOW_LEFT;
    problem.mask.window_left = int32_t(std::min<int64_t>(window_left, INT32_MAX));
  }
  return problem;
}

void Attention::align(Problem &problem, const Step &step) const {
  const bool aligned = causal || window_left >= 0 || window_right >= 0;
  if (!aligned || !step.lengths.empty() || step.k.tokens == step.q.tokens)
    return; // bottom-right, the default
  require(step.past_keys == 0, "K has the length " + to_string(step.k.tokens) +
                                   "; with is_causal or a window and " + "past_key it must be that of Q, " +
                                   to_string(step.q.tokens));
  problem.mask.alignment = SLUICE_TOP_LEFT;
}

void Attention::compute(const Call &call) const {
  const Step step = checked_step(call, q_heads, kv_heads);
  const Rows &q = step.q;
  HostCall host;
  host.problem = problem_of(q, step.k, step.v);
  align(host.problem, step);
  sluice_attention_args &args = host.args;
  std::optional<Mask> mask;
  if (mask_flag || mask_type) {
    mask.emplace(call.input(attn_mask), Shape{q.batch, q.heads, q.tokens, step.keys()}, mask_may_be_shorter);
    mask->set(host);
  }

  std::vector<uint16_t> own_k, own_v; // of a model that does not ask for present_key and present_value
  const auto keys = [&](Input input, const Rows &rows, const Tensor &past, Output output, const char *name,
                        std::vector<uint16_t> &own, sluice_tensor &strides) -> CacheRows {
    const void *const data = call.input(input).data;
    if (!joins_caches) {
      const size_t bytes = elements_of(rows.shape()) * sizeof(uint16_t);
      strides = rows.tensor(nullptr);
      return {data, 1, bytes, bytes};
    }
    const Shape shape = {rows.batch, rows.heads, step.keys(), rows.size};
    const Tensor asked = call.output(output, shape);
    if (!asked) own.resize(elements_of(shape));
    uint16_t *const joined = asked ? asked.as<uint16_t>() : own.data();
    if (!is_in_place(name, past.shape, past.data, shape, joined)) // then there are no keys to add
      join(past, step.past_keys, rows, data, joined);
    strides = cache_tensor(shape, step.keys());
    return cache_rows(joined, shape, step.keys());
  };
  host.k = keys(k_input, step.k, step.past_k, present_key, "present_key", own_k, host.k_strides);
  host.v = keys(v_input, step.v, step.past_v, present_value, "present_value", own_v, host.v_strides);

  const Rows o = {q.batch, q.tokens, q.heads, step.v.size, q.heads_first};
  args.q = q.tensor(call.input(q_input).data);
  args.o = o.tensor(call.output(y, o.shape()).data);
  host.q_bytes = elements_of(q.shape()) * sizeof(uint16_t);
  host.o_bytes = elements_of(o.shape()) * sizeof(uint16_t);
  args.batch = count_of(q.batch);
  args.rows.max_len = count_of(q.tokens);
  host.keys.max_len = count_of(step.keys());
  if (!step.lengths.empty()) host.keys.lengths = step.lengths.data();
  host.scale = scale;
  device.run(host);
}

} // namespace

std::unique_ptr<Kernel> make_attention(const Node &node, Device &device) {
  return std::make_unique<Attention>(node, device);
}

} // namespace sluice_ort
