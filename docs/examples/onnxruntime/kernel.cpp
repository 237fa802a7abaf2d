//===- kernel.cpp - what the two operators have in common -----------------------------------------------===//

#include "kernel.h"

#include <cmath>

namespace sluice_ort {

void require(bool rule, const std::string &message) {
  if (!rule) throw Refusal(message);
}

uint32_t half_type(ElementType type, const char *input) {
  if (type == ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT16) return SLUICE_F16;
  if (type == ONNX_TENSOR_ELEMENT_DATA_TYPE_BFLOAT16) return SLUICE_BF16;
  throw Refusal(std::string(input) + " is " + type_name(type) +
                "; it must be tensor(float16) or tensor(bfloat16)");
}

uint32_t bias_type(ElementType type, const char *input) {
  if (type == ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT) return SLUICE_F32;
  if (type == ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT16) return SLUICE_F16;
  if (type == ONNX_TENSOR_ELEMENT_DATA_TYPE_BFLOAT16) return SLUICE_BF16;
  throw Refusal(std::string(input) + " is " + type_name(type) +
                "; it must be tensor(bool), tensor(float16), tensor(bfloat16) or tensor(float)");
}

float soft_cap_of(const Node &node) {
  const float cap = node.real("softcap").value_or(0);
  require(std::isfinite(cap) && cap >= 0,
          "softcap is " + std::to_string(cap) + "; it must be finite and not negative");
  return cap;
}

std::optional<float> scale_of(const Node &node) {
  const std::optional<float> scale = node.real("scale");
  require(!scale || (std::isfinite(*scale) && *scale >= 0),
          "scale is " + std::to_string(scale.value_or(0)) + "; it must be finite and not negative");
  return scale;
}

int32_t count_of(int64_t extent) {
  return extent > INT32_MAX ? INT32_MAX : extent < 0 ? -1 : int32_t(extent);
}

Problem plain_problem(uint32_t type, int64_t q_heads, int64_t kv_heads, int64_t head_size,
                      int64_t v_head_size) {
  Problem problem;
  problem.format = sluice_kv_tensors(type, count_of(kv_heads), count_of(head_size));
  problem.format.head_dim_v = count_of(v_head_size);
  problem.attention = sluice_make_attention(type, count_of(q_heads), nullptr);
  return problem;
}

sluice_tensor repeated(void *data, const Shape &shape) {
  sluice_tensor tensor{data, {0, 0, 0, 1}};
  int64_t elements = shape[3];
  for (int dimension = 2; dimension >= 0; --dimension) {
    if (shape[dimension] != 1) tensor.stride[dimension] = elements;
    elements *= shape[dimension];
  }
  return tensor;
}

bool is_in_place(const char *name, const Shape &past_shape, const void *past, const Shape &shape,
                 const void *present) {
  constexpr int64_t element_bytes = 2;
  const auto begin = reinterpret_cast<uintptr_t>(present), past_begin = reinterpret_cast<uintptr_t>(past);
  const uintptr_t end = begin + uintptr_t(elements_of(shape) * element_bytes),
                  past_end = past_begin + uintptr_t(elements_of(past_shape) * element_bytes);
  if (!past || !present || begin >= past_end || past_begin >= end) return false;
  require(begin == past_begin && shape == past_shape,
          std::string(name) + " has the shape " + shape_text(shape) + " and overlaps a past cache of " +
              shape_text(past_shape) + "; it must be the same memory with the same shape, or apart");
  return true;
}

CacheRows cache_rows(const void *data, const Shape &shape, int64_t keys) {
  constexpr size_t element_bytes = 2;
  return {data, size_t(shape[0] * shape[1]), size_t(keys * shape[3]) * element_bytes,
          size_t(shape[2] * shape[3]) * element_bytes};
}

sluice_tensor cache_tensor(const Shape &shape, int64_t keys) {
  return sluice_bhsd(nullptr, keys, shape[1], shape[3]);
}

} // namespace sluice_ort
