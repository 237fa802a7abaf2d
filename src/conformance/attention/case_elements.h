//===- case_elements.h - the types of a case's tensors --------------------------------------------------===//
#pragma once

#include "conformance/attention/cases.h"
#include "conformance/shared/elements.h"

namespace sluice::conformance {

inline Element element_type(Dtype dtype) {
  return dtype == Dtype::f16 ? Element::f16 : Element::bf16;
}

/// Of K and V in memory.
inline Element cache_element(const Case &c) {
  switch (c.cache) {
  case Cache::same:
    return element_type(c.dtype);
  case Cache::e5m2fnuz:
    return Element::bf8;
  case Cache::i8:
  case Cache::q8_0:
  case Cache::q4_0:
  case Cache::u4:
  case Cache::u4_zeros:
    return Element::i8; // the bytes of blocks
  default:
    return Element::fp8;
  }
}

} // namespace sluice::conformance
