//===- tensor.h - tensors that know their shape ---------------------------------------------------------===//
#pragma once

#include <array>
#include <sluice/sluice.hpp>

namespace parallel {

/// A tensor in memory that it does not own, [batch or part, token, head, dim].
struct TensorView : sluice_tensor {
  uint32_t dtype = 0;              ///< sluice_dtype
  std::array<int64_t, 4> extent{}; ///< elements in each dimension

  TensorView() : sluice_tensor{} {} ///< no tensor
  TensorView(const sluice_tensor &tensor, uint32_t dtype, const std::array<int64_t, 4> &extent)
      : sluice_tensor(tensor), dtype(dtype), extent(extent) {}

  /// Contiguous.
  static TensorView bshd(void *data, uint32_t dtype, int64_t batch, int64_t tokens, int64_t heads,
                         int64_t dim) {
    return {sluice_bshd(data, tokens, heads, dim), dtype, {batch, tokens, heads, dim}};
  }
  static TensorView lse(float *data, int64_t batch, int64_t tokens, int64_t heads) {
    return bshd(data, SLUICE_F32, batch, tokens, heads, 1);
  }

  /// The part [first, first + count) of a dimension.
  TensorView slice(size_t dimension, int64_t first, int64_t count) const {
    TensorView part = *this;
    part.data = static_cast<char *>(data) + first * stride[dimension] * sluice::element_bytes(dtype);
    part.extent[dimension] = count;
    return part;
  }
};

} // namespace parallel
