//===- call_memory.h - the memory of a call for all sequences, or for one -------------------------------===//
#pragma once

#include "conformance/shared/placement.h"

#include <sluice/sluice.h>
#include <vector>

namespace sluice::conformance {

struct CallMemory {
  const std::vector<void *> &bases; // the addresses of the buffers
  int64_t first;                    // the sequence with which the call begins

  /// In elements. A tensor with a step between sequences begins at the first.
  int64_t begin_of(const Placement &p, bool by_sequence) const {
    return p.offset + (by_sequence ? first * p.stride[0] : 0);
  }
  sluice_tensor tensor_at(const Placement &p, size_t bytes) const {
    return {.data = static_cast<char *>(bases[size_t(p.buffer)]) + bytes,
            .stride = {p.stride[0], p.stride[1], p.stride[2], p.stride[3]}};
  }
  sluice_tensor tensor(const Placement &p, size_t element_bytes, bool by_sequence = true) const {
    return tensor_at(p, size_t(begin_of(p, by_sequence)) * element_bytes);
  }
  /// Null if there is no such buffer; `step` is between sequences.
  template <typename Number> const Number *array(int buffer, int64_t step = 0) const {
    return buffer < 0 ? nullptr : static_cast<const Number *>(bases[size_t(buffer)]) + first * step;
  }
};

} // namespace sluice::conformance
