//===- c_types.h - types and kinds of scales as the C ABI has them --------------------------------------===//
#pragma once

#include "conformance/shared/elements.h"
#include "conformance/shared/tensors.h"

#include <cstdint>

namespace sluice::conformance {

/// Values of sluice_scale_kind and sluice_dtype.
uint32_t scale_kind(Scale scale);
uint32_t c_type(Element element);

} // namespace sluice::conformance
