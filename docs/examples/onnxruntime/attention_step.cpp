//===- attention_step.cpp - one call of ONNX's Attention, checked ---------------------------------------===//

#include "attention_step.h"

#include "kernel.h"

namespace sluice_ort::onnx_attention {

namespace {

using std::to_string;

/// `heads` is the attribute, which 3-D inputs need; 0 if it is absent.
Rows rows_of(const Tensor &tensor, const char *name, int64_t heads) {
  const Shape &shape = tensor.shape;
  const std::string found = std::string(name) + " has the shape " + shape_text(shape);
  require(shape.size() == 3 || shape.size() == 4, found + "; it must have 3 or 4 dimensions");
  if (shape.size() == 4) {
    require(shape[1] > 0 && shape[3] > 0, found + "; it must have heads, and elements in each");
    require(heads == 0 || heads == shape[1],
            found + "; its second dimension must be the heads that an attribute names, " + to_string(heads));
    return {shape[0], shape[2], shape[1], shape[3], true};
  }
  require(heads > 0, found + "; with 3 dimensions q_num_heads and kv_num_heads must be given");
  require(shape[2] > 0 && shape[2] % heads == 0,
          found + "; its last dimension must be a multiple of the heads, " + to_string(heads));
  return {shape[0], shape[1], heads, shape[2] / heads, false};
}

} // namespace

Step checked_step(const Call &call, int64_t q_heads, int64_t kv_heads) {
  Step step;
  step.q = rows_of(call.input(q_input), "Q", q_heads);
  step.k = rows_of(call.input(k_input), "K", kv_heads);
  step.v = rows_of(call.input(v_input), "V", kv_heads);
  const Rows &q = step.q, &k = step.k, &v = step.v;
  require(k.heads_first == q.heads_first && v.heads_first == q.heads_first,
          "Q, K and V have different numbers of dimensions; all must have 3 or all 4");
  require(k.batch == q.batch && v.batch == q.batch && v.tokens == k.tokens && v.heads == k.heads &&
              k.size == q.size && q.heads % k.heads == 0,
          "Q, K and V have the shapes " + shape_text(q.shape()) + ", " + shape_text(k.shape()) + " and " +
              shape_text(v.shape()) +
              "; they must have the same batch, K and V the same length and heads, Q and K the " +
              "same head size, and Q a multiple of K's heads");
  step.past_k = call.input(past_key);
  step.past_v = call.input(past_value);
  if (step.past_k.is_given()) {
    const Shape &shape = step.past_k.shape;
    step.past_keys = shape.size() == 4 ? shape[2] : 0;
    const Shape wanted_k = {k.batch, k.heads, step.past_keys, k.size};
    const Shape wanted_v = {v.batch, v.heads, step.past_keys, v.size};
    require(shape == wanted_k && step.past_v.shape == wanted_v,
            "past_key and past_value have the shapes " + shape_text(shape) + " and " +
                shape_text(step.past_v.shape) + "; they must be " + shape_text(wanted_k) + " and " +
                shape_text(wanted_v));
  }
  const Tensor lengths = call.input(nonpad_kv_seqlen);
  if (!lengths.is_given()) return step;
  require(lengths.shape == Shape{q.batch}, "nonpad_kv_seqlen has the shape " + shape_text(lengths.shape) +
                                               "; it must be " + shape_text({q.batch}));
  for (int64_t b = 0; b < q.batch; ++b) {
    const int64_t length = lengths.as<const int64_t>()[b];
    require(length >= 0 && length <= k.tokens,
            "nonpad_kv_seqlen[" + to_string(b) + "] is " + to_string(length) +
                "; it must be at least 0 and at most " + to_string(k.tokens) + ", the length of K");
    step.lengths.push_back(int32_t(length));
  }
  return step;
}

} // namespace sluice_ort::onnx_attention
