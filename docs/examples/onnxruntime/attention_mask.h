//===- attention_mask.h - attn_mask of ONNX's Attention, as Sluice takes it -----------------------------===//
#pragma once

#include "kernel.h"

namespace sluice_ort::onnx_attention {

/// A bit per key, or a matrix that is added to the scores.
class Mask {
public:
  /// `wanted` is (batch, heads, rows, keys); dimensions of the mask may be 1 or missing in front. Keys that
  /// it lacks at the end, as it may since operator set 24, are hidden.
  Mask(const Tensor &given, const Shape &wanted, bool may_be_shorter);
  void set(HostCall &call) const;

private:
  int64_t rows_of_keys() const;
  void pack_bits(const Tensor &given, int64_t keys);
  void pad_bias(const Tensor &given, int64_t keys);

  bool is_bits;
  Shape shape;                // of what follows
  std::vector<uint8_t> bytes; // bits, or a padded bias
  const void *data;           // those, or the tensor itself
};

} // namespace sluice_ort::onnx_attention
