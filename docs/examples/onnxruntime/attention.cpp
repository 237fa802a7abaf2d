//===- attention.cpp - ONNX's Attention, of the operator sets 23 to 25 ----------------------------------===//
//
// Row i of a call sees key j <= i + offset if is_causal is set, and windows count from i + offset too. The
// offset is the keys before the call's own: those of past_key, or nonpad_kv_seqlen minus the rows, or 0.
// Where it is kv minus q length, that is Sluice's bottom-right alignment, and where it is 0 top-left.
//
//===----------------------------------------------------------------------------------------------------===//
#include "kernel.h"

#include <algorithm>
#include <cstring>
#include <optional>

namespace sluice_ort {

namespace {

using std::to_string;

enum Input { q_input, k_input, v_input, attn_mask, past_key, past_value, nonpad_kv_seqlen };
enum Output { y, present_key, present_value, qk_matmul_output };

/// Q, K, V or Y, of rank 3 or 4, as [batch, token, head, size].
struct Rows {
  int64_t batch, tokens, heads, size;
  bool heads_first; // (batch, heads, tokens, size), else (batch, tokens, heads * size)

  sluice_tensor tensor(void *data) const {
    return heads_first ? sluice::TensorView::bhsd(data, 0, batch, tokens, heads, size)
                       : sluice::TensorView::bshd(data, 0, batch, tokens, heads, size);
  }
  Shape shape() const {
    return heads_first ? Shape{batch, heads, tokens, size} : Shape{batch, tokens, heads * size};
  }
};

/// `heads` is the attribute, which 3-D inputs need; 0 is none.
Rows rows_of(const Tensor &tensor, const char *name, int64_t heads) {
  const Shape &shape = tensor.shape;
  const std::string found = std::string(name) + " has the shape " + shape_text(shape);
  require((shape.size() == 3 || shape.size() == 4) && tensor,
          found + "; it has 3 or 4 dimensions, none of them 0");
  if (shape.size() == 4) return {shape[0], shape[2], shape[1], shape[3], true};
  require(heads > 0, found + "; with 3 dimensions q_num_heads and kv_num_heads are given");
  require(shape[2] % heads == 0,
          found + "; its last dimension is a multiple of the heads, " + to_string(heads));
  return {shape[0], shape[1], heads, shape[2] / heads, false};
}

/// attn_mask as Sluice takes it: a bit per key, or a matrix that is added to the scores.
class Mask {
public:
  /// `wanted` is (batch, heads, rows, keys); dimensions of the mask may be 1 or missing in front. Keys that
  /// it lacks at the end, as it may since operator set 24, are hidden.
  Mask(const Tensor &given, const Shape &wanted, bool may_be_shorter);
  void set(HostCall &call) const;

private:
  void pack_bits(const Tensor &given, int64_t keys);
  void pad_bias(const Tensor &given, int64_t keys);

  bool is_bits;
  Shape shape;                // of what follows
  std::vector<uint8_t> bytes; // bits, or a padded bias
  const void *data;           // those, or the tensor itself
};

Mask::Mask(const Tensor &given, const Shape &wanted, bool may_be_shorter)
    : is_bits(given.type == ONNX_TENSOR_ELEMENT_DATA_TYPE_BOOL), shape(given.shape), data(given.data) {
  bool fits = given && !shape.empty() && shape.size() <= wanted.size();
  if (fits) shape.insert(shape.begin(), wanted.size() - shape.size(), 1);
  for (size_t i = 0; fits && i < 3; ++i)
    fits = shape[i] == 1 || shape[i] == wanted[i];
  const int64_t keys = wanted[3];
  fits = fits && (shape[3] == keys || (may_be_shorter && shape[3] < keys));
  require(fits, "attn_mask has the shape " + shape_text(given.shape) + "; it is " + shape_text(wanted) +
                    ", with all but the last dimension repeated where it is 1" +
                    (may_be_shorter ? " and fewer keys allowed" : ""));
  if (is_bits)
    pack_bits(given, keys);
  else if (shape[3] < keys)
    pad_bias(given, keys);
}

void Mask::pack_bits(const Tensor &given, int64_t keys) {
  const int64_t row_bytes = (keys + 7) / 8, given_keys = shape[3], rows = elements_of(shape) / given_keys;
  bytes.resize(rows * row_bytes);
  const auto *from = given.as<const uint8_t>();
  for (int64_t row = 0; row < rows; ++row)
    for (int64_t key = 0; key < given_keys; ++key)
      if (from[row * given_keys + key]) bytes[row * row_bytes + key / 8] |= uint8_t(1 << key % 8);
  shape[3] = row_bytes;
  data = bytes.data();
}

void Mask::pad_bias(const Tensor &given, int64_t keys) {
  const uint32_t type = bias_type(given.type, "attn_mask");
  const size_t size = sluice::element_bytes(type);
  const uint32_t hidden = type == SLUICE_F32 ? 0xff800000 : type == SLUICE_F16 ? 0xfc00 : 0xff80; // -infinity
  const int64_t given_keys = shape[3], rows = elements_of(shape) / given_keys;
  bytes.resize(rows * keys * size);
  for (int64_t row = 0; row < rows; ++row) {
    uint8_t *const to = &bytes[row * keys * size];
    std::copy_n(given.as<const uint8_t>() + row * given_keys * size, given_keys * size, to);
    for (int64_t key = given_keys; key < keys; ++key)
      std::memcpy(to + key * size, &hidden, size); // its low bytes come first
  }
  shape[3] = keys;
  data = bytes.data();
}

void Mask::set(HostCall &call) const {
  const sluice_tensor tensor = repeated(const_cast<void *>(data), shape);
  if (is_bits) {
    call.args.mask = tensor;
    call.mask_bytes = elements_of(shape);
  } else {
    call.args.bias = tensor;
    call.bias_bytes = elements_of(shape) * sluice::element_bytes(call.problem.bias_type);
  }
}

/// What a call's tensors say, checked.
struct Step {
  Rows q{}, k{}, v{};
  int64_t past_keys = 0;
  Tensor past_k, past_v;
  std::vector<int32_t> lengths; // nonpad_kv_seqlen; empty without

  int64_t keys() const { return past_keys + k.tokens; }
};

Step checked_step(const Call &call, int64_t q_heads, int64_t kv_heads) {
  Step step;
  step.q = rows_of(call.input(q_input), "Q", q_heads);
  step.k = rows_of(call.input(k_input), "K", kv_heads);
  step.v = rows_of(call.input(v_input), "V", kv_heads);
  const Rows &q = step.q, &k = step.k, &v = step.v;
  require(k.heads_first == q.heads_first && v.heads_first == q.heads_first,
          "Q, K and V have different numbers of dimensions; all have 3 or all have 4");
  require(k.batch == q.batch && v.batch == q.batch && v.tokens == k.tokens && v.heads == k.heads &&
              k.size == q.size && q.heads % k.heads == 0,
          "Q, K and V have the shapes " + shape_text(q.shape()) + ", " + shape_text(k.shape()) + " and " +
              shape_text(v.shape()) +
              "; they have the same batch, K and V the same length and heads, Q and K the " +
              "same head size, and Q a multiple of K's heads");
  step.past_k = call.input(past_key);
  step.past_v = call.input(past_value);
  if (!step.past_k.shape.empty()) {
    const Shape &shape = step.past_k.shape;
    step.past_keys = shape.size() == 4 ? shape[2] : 0;
    const Shape wanted_k = {k.batch, k.heads, step.past_keys, k.size};
    const Shape wanted_v = {v.batch, v.heads, step.past_keys, v.size};
    require(shape == wanted_k && step.past_v.shape == wanted_v,
            "past_key and past_value have the shapes " + shape_text(shape) + " and " +
                shape_text(step.past_v.shape) + "; they are " + shape_text(wanted_k) + " and " +
                shape_text(wanted_v));
  }
  const Tensor lengths = call.input(nonpad_kv_seqlen);
  if (lengths.shape.empty()) return step;
  require(lengths.shape == Shape{q.batch},
          "nonpad_kv_seqlen has the shape " + shape_text(lengths.shape) + "; it is " + shape_text({q.batch}));
  for (int64_t b = 0; b < q.batch; ++b) {
    const int64_t length = lengths.as<const int64_t>()[b];
    require(length >= 0 && length <= k.tokens, "nonpad_kv_seqlen[" + to_string(b) + "] is " +
                                                   to_string(length) + "; it is not negative and at most " +
                                                   to_string(k.tokens) + ", the length of K");
    step.lengths.push_back(int32_t(length));
  }
  return step;
}

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
  sluice::Problem problem_of(const Rows &q, const Rows &k, const Rows &v) const;
  void align(sluice::Problem &problem, const Step &step) const;

  Device &device;
  ScoreAttributes score;
  int64_t q_heads, kv_heads;         // 0 if the shapes say so
  int64_t window_left, window_right; // -1 is all
  bool causal, joins_caches, mask_may_be_shorter;
  uint32_t type, mask_flag = 0, mask_type = 0;
};

Attention::Attention(const Node &node, Device &device)
    : device(device), score(score_attributes(node)), q_heads(node.integer("q_num_heads", 0)),
      kv_heads(node.integer("kv_num_heads", 0)), window_left(node.integer("left_window_size", -1)),
      window_right(node.integer("right_window_size", -1)), causal(node.integer("is_causal", 0) != 0),
      joins_caches(node.has_input(past_key) || node.has_output(present_key) ||
                   node.has_output(present_value)),
      mask_may_be_shorter(node.since_version() >= 24), type(half_type(node.input_type(q_input), "Q")) {
  for (const auto &[input, name] : {std::pair(k_input, "K"), std::pair(v_input, "V")})
    require(node.input_type(input) == node.input_type(q_input),
            std::string(name) + " is " + type_name(node.input_type(input)) + "; it is of Q's type, " +
                type_name(node.input_type(q_input)));
  require(!node.has_output(qk_matmul_output), "qk_matmul_output is asked for; this output is not supported");
  // Softmax is computed in F32, which is at least as precise as every type but this.
  require(node.integer("softmax_precision", 1) != ONNX_TENSOR_ELEMENT_DATA_TYPE_DOUBLE,
          "softmax_precision is 11 (double); Sluice computes in float (1)");
  require(node.has_input(past_key) == node.has_input(past_value),
          "past_key and past_value are given both or not at all");
  require(!node.has_input(nonpad_kv_seqlen) || !joins_caches,
          "nonpad_kv_seqlen is given; then past_key, past_value, present_key and present_value are not");
  if (node.has_input(attn_mask)) {
    if (node.input_type(attn_mask) == ONNX_TENSOR_ELEMENT_DATA_TYPE_BOOL)
      mask_flag = SLUICE_BOOL_MASK;
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

sluice::Problem Attention::problem_of(const Rows &q, const Rows &k, const Rows &v) const {
  sluice::Problem problem = plain_problem(type, q.heads, k.heads, q.size, v.size);
  problem.soft_cap = score.soft_cap;
  problem.flags = mask_flag;
  problem.bias_type = mask_type;
  if (causal) problem.flags |= SLUICE_CAUSAL; // a window to the right hides nothing more then
  if (!causal && window_right >= 0) {
    problem.flags |= SLUICE_HAS_WINDOW_RIGHT;
    problem.window_right = int32_t(std::min<int64_t>(window_right, INT32_MAX));
  }
  if (window_left >= 0) {
    problem.flags |= SLUICE_HAS_WINDOW_LEFT;
    problem.window_left = int32_t(std::min<int64_t>(window_left, INT32_MAX));
  }
  return problem;
}

void Attention::align(sluice::Problem &problem, const Step &step) const {
  const bool aligned = causal || window_left >= 0 || window_right >= 0;
  if (!aligned || !step.lengths.empty() || step.k.tokens == step.q.tokens)
    return; // bottom-right, the default
  require(step.past_keys == 0, "K has the length " + to_string(step.k.tokens) +
                                   "; with is_causal or a window and " + "past_key it is that of Q, " +
                                   to_string(step.q.tokens));
  problem.mask_alignment = SLUICE_TOP_LEFT;
}

void Attention::compute(const Call &call) const {
  const Step step = checked_step(call, q_heads, kv_heads);
  const Rows &q = step.q;
  HostCall host;
  host.problem = problem_of(q, step.k, step.v);
  align(host.problem, step);
  sluice::Args &args = host.args;
  std::optional<Mask> mask;
  if (mask_flag || mask_type) {
    mask.emplace(call.input(attn_mask), Shape{q.batch, q.heads, q.tokens, step.keys()}, mask_may_be_shorter);
    mask->set(host);
  }

  std::vector<uint16_t> own_k, own_v; // of a model that does not ask for present_key and present_value
  const auto keys = [&](Input input, const Rows &rows, const Tensor &past, Output output,
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
    join(past, step.past_keys, rows, data, joined);
    strides = cache_tensor(shape, step.keys());
    return cache_rows(joined, shape, step.keys());
  };
  host.k = keys(k_input, step.k, step.past_k, present_key, own_k, args.k);
  host.v = keys(v_input, step.v, step.past_v, present_value, own_v, args.v);

  const Rows o = {q.batch, q.tokens, q.heads, step.v.size, q.heads_first};
  args.q = q.tensor(call.input(q_input).data);
  args.o = o.tensor(call.output(y, o.shape()).data);
  host.q_bytes = elements_of(q.shape()) * sizeof(uint16_t);
  host.o_bytes = elements_of(o.shape()) * sizeof(uint16_t);
  args.batch = sluice::detail::count_of(q.batch);
  args.q_len = sluice::detail::count_of(q.tokens);
  args.kv_len = sluice::detail::count_of(step.keys());
  args.scale = score.scale;
  if (!step.lengths.empty()) args.kv_lengths = step.lengths.data();
  device.run(host);
}

} // namespace

std::unique_ptr<Kernel> make_attention(const Node &node, Device &device) {
  return std::make_unique<Attention>(node, device);
}

} // namespace sluice_ort
