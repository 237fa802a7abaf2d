//===- c_types.cpp - types and kinds of scales as the C ABI has them ------------------------------------===//

#include "conformance/shared/c_types.h"

#include <sluice/sluice.h>

#include <cstddef>

namespace sluice::conformance {

uint32_t scale_kind(Scale scale) {
  constexpr uint32_t kinds[] = {SLUICE_SCALE_NONE, SLUICE_SCALE_PER_TENSOR, SLUICE_SCALE_PER_HEAD,
                                SLUICE_SCALE_PER_TOKEN, SLUICE_SCALE_PER_PAGE};
  return kinds[size_t(scale)];
}

uint32_t c_type(Element element) {
  constexpr uint32_t types[] = {SLUICE_F16, SLUICE_BF16, SLUICE_F32,  SLUICE_E4M3FNUZ, SLUICE_E5M2FNUZ,
                                SLUICE_I8,  SLUICE_U4,   SLUICE_Q8_0, SLUICE_Q4_0};
  return types[size_t(element)];
}

} // namespace sluice::conformance
