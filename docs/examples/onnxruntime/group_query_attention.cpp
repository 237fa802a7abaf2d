//===- group_query_attention.cpp - com.microsoft.GroupQueryAttention ------------------------------------===//
//
// New keys are rotated and stored after the old ones on the host, in present_key and present_value. Sluice
// then computes attention of each sequence's new rows over all its keys, aligned at the bottom right.
//
//===----------------------------------------------------------------------------------------------------===//
#include "group_query_step.h"
#include "kernel.h"

#include <algorithm>

namespace sluice_ort {

namespace {

using namespace group_query;
using std::to_string;

/// Refuses features of the operator that Sluice does not compute.
void refuse_unsupported(const Node &node) {
  for (const char *attribute : {"sliding_window_cache", "qk_output", "kv_cache_bit_width"}) {
    const int64_t found = node.integer(attribute, 0);
    require(found == 0, std::string(attribute) + " is " + to_string(found) + "; only 0 is supported");
  }
  for (const char *attribute : {"k_quant_type", "v_quant_type"}) {
    const std::string found = node.text(attribute, "NONE");
    require(found == "NONE", std::string(attribute) + " is '" + found + "'; only 'NONE' is supported");
  }
  const struct {
    Input input;
    const char *name;
  } inputs[] = {{k_scale, "k_scale"},
                {v_scale, "v_scale"},
                {q_norm_weight, "q_norm_weight"},
                {k_norm_weight, "k_norm_weight"}};
  for (const auto &[input, name] : inputs)
    require(!node.has_input(input), std::string(name) + " is given; this input is not supported");
  require(!node.has_output(output_qk), "output_qk is requested; this output is not supported");
}

class GroupQueryAttention final : public Kernel {
public:
  GroupQueryAttention(const Node &node, Device &device);
  void compute(const Call &call) const override;

private:
  Problem problem_of(int64_t head_size) const;

  Device &device;
  Layout layout;
  std::optional<float> scale;
  float soft_cap;
  int64_t window; // keys that a row sees, with its own; -1 is all
  bool causal, has_sinks, has_bias;
};

GroupQueryAttention::GroupQueryAttention(const Node &node, Device &device)
    : device(device), layout{.heads = node.integer("num_heads", 0),
                             .kv_heads = node.integer("kv_num_heads", 0),
                             .has_rotary = node.integer("do_rotary", 0) != 0,
                             .interleaved = node.integer("rotary_interleaved", 0) != 0,
                             .type = half_type(node.input_type(query), "query")},
      scale(scale_of(node)), soft_cap(soft_cap_of(node)), window(node.integer("local_window_size", -1)),
      causal(node.integer("causal", 1) != 0),
      has_sinks(node.integer("smooth_softmax", 0) > 0 || node.has_input(head_sink)),
      has_bias(node.has_input(attention_bias)) {
  if (scale == 0) scale.reset(); // ONNX Runtime's own kernels take 0 for an attribute that is not there
  refuse_unsupported(node);
  require(layout.kv_heads > 0 && layout.heads > 0 && layout.heads % layout.kv_heads == 0,
          "num_heads is " + to_string(layout.heads) + " and kv_num_heads " + to_string(layout.kv_heads) +
              "; both must be positive, and the first must be a multiple of the second");
  require(window == -1 || (window > 0 && causal),
          "local_window_size is " + to_string(window) +
              "; it must be -1, or with causal = 1 a positive number");
  require(node.has_input(key) == node.has_input(value), "key and value must be given together");
  require(node.has_input(past_key) == node.has_input(past_value),
          "past_key and past_value must be given together");
  require(!layout.has_rotary || (node.has_input(cos_cache) && node.has_input(sin_cache)),
          "do_rotary is 1; then cos_cache and sin_cache must be given");
  if (node.has_input(past_key))
    require(node.input_type(past_key) == node.input_type(query),
            "past_key is " + type_name(node.input_type(past_key)) + "; it must be of query's type, " +
                type_name(node.input_type(query)));
  const Shape shape = node.input_shape(query);
  const int64_t heads = node.has_input(key) ? layout.heads : layout.heads + 2 * layout.kv_heads;
  if (shape.size() == 3 && shape[2] > 0 && shape[2] % heads == 0)
    device.check_support(problem_of(shape[2] / heads));
}

Problem GroupQueryAttention::problem_of(int64_t head_size) const {
  Problem problem = plain_problem(layout.type, layout.heads, layout.kv_heads, head_size, head_size);
  problem.scores.soft_cap = soft_cap;
  if (causal) problem.mask.flags |= SLUICE_MASK_CAUSAL;
  if (window > 0) {
    problem.mask.flags |= SLUICE_MASK_WINDOW_LEFT;
    problem.mask.window_left = int32_t(std::min<int64_t>(window - 1, INT32_MAX)); // without the row's own key
  }
  if (has_sinks) problem.scores.flags |= SLUICE_SCORES_SINK;
  if (has_bias) problem.scores.bias_type = layout.type;
  return problem;
}

/// Fills a present cache: old keys, then new ones, then zeros. Where it is the past cache, as a caller that
/// binds inputs and outputs can have it, only the new ones are stored.
void store_rows(const Step &step, int64_t kv_heads, const NewRows &rows, const uint16_t *past,
                uint16_t *present, bool in_place, bool rotated) {
  const int64_t size = step.head_size;
  for (int64_t b = 0; b < step.batch; ++b)
    for (int64_t head = 0; head < kv_heads; ++head) {
      uint16_t *const to = present + (b * kv_heads + head) * step.capacity * size;
      if (!in_place) {
        if (past)
          std::copy_n(past + (b * kv_heads + head) * step.past_capacity * size, step.past_rows(b) * size, to);
        std::fill(to + step.keys[b] * size, to + step.capacity * size, uint16_t(0));
      }
      for (int64_t row = 0; row < step.new_rows[b]; ++row) {
        const uint16_t *const from = rows.data + (b * step.rows + row) * rows.token_stride + head * size;
        uint16_t *const stored = to + (step.past_rows(b) + row) * size;
        if (rotated)
          step.rotary.rotate(from, stored, size, step.positions[b][row]);
        else
          std::copy_n(from, size, stored);
      }
    }
}

/// Rotated rows of Q, and zeros for padding.
std::vector<uint16_t> rotated_query(const Step &step, int64_t heads) {
  std::vector<uint16_t> rotated(step.batch * step.rows * heads * step.head_size);
  for (int64_t b = 0; b < step.batch; ++b)
    for (int64_t row = 0; row < step.new_rows[b]; ++row)
      for (int64_t head = 0; head < heads; ++head)
        step.rotary.rotate(step.q + (b * step.rows + row) * step.q_token_stride + head * step.head_size,
                           &rotated[((b * step.rows + row) * heads + head) * step.head_size], step.head_size,
                           step.positions[b][row]);
  return rotated;
}

/// head_sink as F32, or the zeros that smooth_softmax means.
std::vector<float> sink_logits(const Tensor &sinks, uint32_t type, int64_t heads) {
  std::vector<float> logits(heads);
  if (!sinks.is_given()) return logits;
  require(sinks.shape == Shape{heads},
          "head_sink has the shape " + shape_text(sinks.shape) + "; it must be " + shape_text({heads}));
  for (int64_t head = 0; head < heads; ++head)
    logits[head] = to_float(type, sinks.as<const uint16_t>()[head]);
  return logits;
}

void GroupQueryAttention::compute(const Call &call) const {
  const Step step = checked_step(layout, call);
  HostCall host;
  host.problem = problem_of(step.head_size);
  sluice_attention_args &args = host.args;
  const Tensor bias = call.input(attention_bias);
  if (has_bias) {
    const int64_t total = *call.input(total_sequence_length).as<const int32_t>();
    require(bias.shape.size() == 4 && (bias.shape[0] == 1 || bias.shape[0] == step.batch) &&
                (bias.shape[1] == 1 || bias.shape[1] == layout.heads) && bias.shape[2] == step.rows &&
                bias.shape[3] == total,
            "attention_bias has the shape " + shape_text(bias.shape) + "; it must be " +
                shape_text({step.batch, layout.heads, step.rows, total}) +
                ", of which the first two may be 1");
    host.scores.bias = repeated(bias.data, bias.shape);
    host.bias_bytes = elements_of(bias.shape) * sizeof(uint16_t);
  }
  std::vector<float> sinks;
  if (has_sinks) {
    sinks = sink_logits(call.input(head_sink), layout.type, layout.heads);
    host.scores.sinks = sinks.data();
  }

  const Shape cache = {step.batch, layout.kv_heads, step.capacity, step.head_size};
  std::vector<uint16_t> own_k, own_v; // of a model that does not ask for present_key and present_value
  const Shape past_cache = {step.batch, layout.kv_heads, step.past_capacity, step.head_size};
  const auto store = [&](Output index, const char *name, std::vector<uint16_t> &own, const NewRows &rows,
                         const uint16_t *past, bool rotated) {
    const Tensor asked = call.output(index, cache);
    if (!asked) own.resize(elements_of(cache));
    uint16_t *const data = asked ? asked.as<uint16_t>() : own.data();
    const bool in_place = is_in_place(name, past_cache, past, cache, data);
    store_rows(step, layout.kv_heads, rows, past, data, in_place, rotated);
    return cache_rows(data, cache, step.longest());
  };
  host.k = store(present_key, "present_key", own_k, step.k, step.past_k, layout.has_rotary);
  host.v = store(present_value, "present_value", own_v, step.v, step.past_v, false);
  host.k_strides = host.v_strides = cache_tensor(cache, step.longest());

  const int64_t o_elements = layout.heads * step.head_size; // of a token
  const Shape result = {step.batch, step.rows, o_elements};
  std::vector<uint16_t> rotated;
  if (layout.has_rotary) rotated = rotated_query(step, layout.heads);
  const int64_t q_stride = layout.has_rotary ? o_elements : step.q_token_stride;
  args.q = {layout.has_rotary ? rotated.data() : const_cast<uint16_t *>(step.q),
            {step.rows * q_stride, q_stride, step.head_size, 1}};
  host.q_bytes = step.batch * step.rows * q_stride * sizeof(uint16_t);
  const Tensor o = call.output(output, result);
  args.o = {o.data, {step.rows * o_elements, o_elements, step.head_size, 1}};
  host.o_bytes = elements_of(result) * sizeof(uint16_t);

  args.batch = count_of(step.batch);
  args.rows.max_len = count_of(step.rows);
  if (step.is_padded()) args.rows.lengths = step.new_rows.data();
  host.keys.max_len = step.longest();
  host.keys.lengths = step.keys.data();
  host.scale = scale;
  device.run(host);
  for (int64_t b = 0; b < step.batch; ++b) // padding is not computed
    std::fill(o.as<uint16_t>() + (b * step.rows + step.new_rows[b]) * o_elements,
              o.as<uint16_t>() + (b + 1) * step.rows * o_elements, uint16_t(0));
}

} // namespace

std::unique_ptr<Kernel> make_group_query_attention(const Node &node, Device &device) {
  return std::make_unique<GroupQueryAttention>(node, device);
}

} // namespace sluice_ort
