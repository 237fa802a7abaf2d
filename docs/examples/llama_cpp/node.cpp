//===- node.cpp - what a node of ggml is to Sluice -----------------------------------------------------===//

#include "node.h"

#include <bit>
#include <cmath>
#include <cstring>
#include <utility>

namespace ggml_sluice {

namespace {

// Rules of calls that do not depend on the problem, so that sluice_attention_support cannot know of them.
constexpr int64_t stride_multiple = 8; // or a block
constexpr int64_t row_stride_end = 1 << 25;
constexpr int64_t max_sequences = 65535;
constexpr int64_t max_tiles = 65535;
constexpr int64_t lowest_tile_rows = 16;

/// sluice_dtype, or 0 for a type that K and V cannot have.
uint32_t dtype_of(ggml_type type) {
  switch (type) {
  case GGML_TYPE_F16:
    return SLUICE_F16;
  case GGML_TYPE_BF16:
    return SLUICE_BF16;
  case GGML_TYPE_Q8_0:
    return SLUICE_Q8_0;
  case GGML_TYPE_Q4_0:
    return SLUICE_Q4_0;
  default:
    return 0;
  }
}

/// In elements, which ggml_type_size does not count for blocks. The stride of a dimension with one index is
/// never multiplied by anything but 0.
int64_t stride_of(const ggml_tensor &tensor, int dimension) {
  return tensor.ne[dimension] == 1
             ? 0
             : int64_t(tensor.nb[dimension] / ggml_type_size(tensor.type)) * ggml_blck_size(tensor.type);
}

/// The first element: the tensor that owns the memory, and the bytes before the element. ggml resolves a view
/// of a view to its owner; memory itself may not exist yet.
std::pair<const ggml_tensor *, size_t> place_of(const ggml_tensor &tensor) {
  return tensor.view_src ? std::pair<const ggml_tensor *, size_t>(tensor.view_src, tensor.view_offs)
                         : std::pair<const ggml_tensor *, size_t>(&tensor, 0);
}

sluice_tensor strides_of(const ggml_tensor &tensor) {
  return sluice_make_tensor(nullptr, stride_of(tensor, 3), stride_of(tensor, 1), stride_of(tensor, 2), 1);
}

/// A bound that few plans have, and that is not beyond int32_t.
int32_t bound_of(int64_t length) {
  return int32_t(std::min<uint64_t>(std::bit_ceil(uint64_t(length)), INT32_MAX));
}

std::string stride_refusal(const char *name, const ggml_tensor &tensor) {
  const int64_t block = ggml_blck_size(tensor.type); // 1 for F16 and BF16
  const auto size = ggml_type_size(tensor.type), multiple = block == 1 ? stride_multiple * size : size;
  if (tensor.nb[0] != size)
    return std::string(name) + "->nb[0] is " + std::to_string(tensor.nb[0]) +
           "; it must be the size of an element or block";
  for (int dimension = 1; dimension < GGML_MAX_DIMS; ++dimension)
    if (tensor.ne[dimension] > 1 && tensor.nb[dimension] % multiple != 0)
      return std::string(name) + "->nb[" + std::to_string(dimension) + "] is " +
             std::to_string(tensor.nb[dimension]) + "; it must be a multiple of " + std::to_string(multiple);
  if (stride_of(tensor, 1) >= row_stride_end)
    return std::string(name) + "->nb[1] is " + std::to_string(tensor.nb[1]) + "; it must be less than " +
           std::to_string(row_stride_end / block * int64_t(size));
  return {};
}

/// A mask for each head or for all, for each sequence or for all. ggml also repeats masks in between.
std::string mask_refusal(const Attention &attention) {
  const ggml_tensor &mask = *attention.mask;
  if (mask.type != GGML_TYPE_F16 || !ggml_is_contiguous(&mask))
    return "the mask is not contiguous or its type is not F16";
  if (mask.ne[0] < attention.keys() || mask.ne[1] < attention.rows())
    return "mask->ne is [" + std::to_string(mask.ne[0]) + ", " + std::to_string(mask.ne[1]) +
           ", ...]; it must cover all keys and rows";
  if (mask.ne[2] != 1 && mask.ne[2] != attention.q_heads())
    return "mask->ne[2] is " + std::to_string(mask.ne[2]) + "; it must be 1 or the number of heads of Q";
  if (mask.ne[3] != 1 && mask.ne[3] != attention.sequences())
    return "mask->ne[3] is " + std::to_string(mask.ne[3]) + "; it must be 1 or the number of sequences";
  return {};
}

} // namespace

Attention::Attention(const ggml_tensor &node)
    : q(node.src[0]), k(node.src[1]), v(node.src[2]), mask(node.src[3]), sinks(node.src[4]) {
  float parameters[3];
  std::memcpy(parameters, node.op_params, sizeof parameters);
  scale = parameters[0];
  max_bias = parameters[1];
  soft_cap = parameters[2];
}

bool Attention::v_is_in_k() const {
  if (place_of(*v) != place_of(*k) || v->type != k->type || v->ne[0] > k->ne[0]) return false;
  for (int dimension = 1; dimension < GGML_MAX_DIMS; ++dimension)
    if (v->ne[dimension] != k->ne[dimension] || stride_of(*v, dimension) != stride_of(*k, dimension))
      return false;
  return true;
}

std::string refusal(const Attention &attention) {
  const ggml_tensor &q = *attention.q, &k = *attention.k, &v = *attention.v;
  if (q.type != GGML_TYPE_F32) return std::string("Q is of ") + ggml_type_name(q.type) + "; it must be F32";
  if (dtype_of(k.type) == 0 || v.type != k.type)
    return std::string("K is of ") + ggml_type_name(k.type) + " and V of " + ggml_type_name(v.type) +
           "; both must be of F16, BF16, Q8_0 or Q4_0, and of one type";
  for (const ggml_tensor *tensor : {&q, &k, &v})
    for (int dimension = 0; dimension < GGML_MAX_DIMS; ++dimension) {
      const bool counts_keys = tensor != &q && dimension == 1; // there may be none
      const int64_t extent = tensor->ne[dimension];
      if (extent < (counts_keys ? 0 : 1) || extent > INT32_MAX)
        return "an extent is " + std::to_string(extent);
    }
  if (v.ne[1] != k.ne[1] || v.ne[2] != k.ne[2] || k.ne[3] != q.ne[3] || v.ne[3] != q.ne[3])
    return "K and V differ in keys or heads, or from Q in sequences";
  if (q.nb[0] != sizeof(float))
    return "q->nb[0] is " + std::to_string(q.nb[0]) + "; it must be the size of an element";
  if (auto why = stride_refusal("k", k); !why.empty()) return why;
  if (auto why = stride_refusal("v", v); !why.empty()) return why;
  if (attention.mask)
    if (auto why = mask_refusal(attention); !why.empty()) return why;
  if (attention.has_slopes() && !attention.mask) return "max_bias is given without a mask";
  if (attention.sinks && (attention.sinks->type != GGML_TYPE_F32 || attention.sinks->ne[0] != q.ne[2]))
    return "sinks must be one F32 per head of Q";
  if (!(attention.scale >= 0) || !std::isfinite(attention.scale))
    return "the scale is " + std::to_string(attention.scale) + "; it must be finite and not negative";
  if (attention.sequences() > max_sequences ||
      attention.rows() * (attention.q_heads() / attention.kv_heads()) > max_tiles * lowest_tile_rows)
    return "there are more rows or sequences than a launch can have workgroups";
  return {};
}

sluice_attention Problem::linked() const {
  sluice_attention all = attention;
  all.kv = &format;
  all.scores = &scores;
  return all;
}

Problem problem_of(const Attention &attention) {
  Problem problem;
  problem.format = sluice_kv_tensors(dtype_of(attention.k->type), int32_t(attention.kv_heads()),
                                     int32_t(attention.k->ne[0]));
  problem.format.head_dim_v = int32_t(attention.v->ne[0]);
  if (attention.v_is_in_k()) {
    problem.format.flags = SLUICE_KV_V_IN_K;
    problem.format.v = {};
  }
  problem.scores.soft_cap = attention.soft_cap;
  if (attention.mask) problem.scores.bias_type = attention.has_slopes() ? SLUICE_F32 : SLUICE_F16;
  if (attention.sinks) problem.scores.flags = SLUICE_SCORES_SINK;
  problem.attention = sluice_make_attention(attention.q_is_bf16() ? SLUICE_BF16 : SLUICE_F16,
                                            int32_t(attention.q_heads()), nullptr);
  problem.attention.o.type = SLUICE_F32;
  problem.attention.bounds = sluice_make_bounds(int32_t(attention.sequences()), bound_of(attention.rows()),
                                                bound_of(attention.keys()));
  return problem;
}

Tensors tensors_of(const Attention &attention) {
  Tensors all = {};
  all.q = sluice_bshd(nullptr, attention.rows(), attention.q_heads(), attention.q->ne[0]);
  all.o = sluice_bshd(nullptr, attention.rows(), attention.q_heads(), attention.v->ne[0]);
  all.k = strides_of(*attention.k);
  if (!attention.v_is_in_k()) all.v = strides_of(*attention.v);
  if (attention.mask) {
    // [sequence, head, row, key]. With slopes every head has a mask of its own.
    const ggml_tensor &mask = *attention.mask;
    const int64_t head_elements = mask.ne[0] * mask.ne[1];
    const int64_t heads = attention.has_slopes() ? attention.q_heads() : mask.ne[2];
    all.bias = sluice_make_tensor(nullptr, mask.ne[3] == 1 ? 0 : heads * head_elements,
                                  heads == 1 ? 0 : head_elements, mask.ne[0], 1);
  }
  return all;
}

float slope_of(const Attention &attention, int64_t head) {
  const int64_t power = int64_t(std::bit_floor(uint64_t(attention.q_heads())));
  return head < power ? std::exp2(-attention.max_bias / float(power) * float(head + 1))
                      : std::exp2(-attention.max_bias / 2 / float(power) * float(2 * (head - power) + 1));
}

} // namespace ggml_sluice
