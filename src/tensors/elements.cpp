//===- elements.cpp - the elements of tensors -----------------------------------------------------------===//
#include "tensors/elements.h"

#include "support/fp8.h"
#include "support/half.h"

#include <algorithm>
#include <cmath>

namespace sluice::tensors {

/// The number of two bytes, at any address.
static double f16_at(const uint8_t *bytes) {
  return support::f16_to_float(uint16_t(bytes[0] | bytes[1] << 8));
}

double load(const void *data, uint32_t type, int64_t index) {
  switch (type) {
  case SLUICE_F16:
    return support::f16_to_float(static_cast<const uint16_t *>(data)[index]);
  case SLUICE_BF16:
    return support::bf16_to_float(static_cast<const uint16_t *>(data)[index]);
  case SLUICE_E4M3FNUZ:
    return support::e4m3fnuz_to_float(static_cast<const uint8_t *>(data)[index]);
  case SLUICE_E4M3FN:
    return support::e4m3fn_to_float(static_cast<const uint8_t *>(data)[index]);
  case SLUICE_E5M2FNUZ:
    return support::e5m2fnuz_to_float(static_cast<const uint8_t *>(data)[index]);
  case SLUICE_E5M2:
    return support::e5m2_to_float(static_cast<const uint8_t *>(data)[index]);
  case SLUICE_I8:
    return static_cast<const int8_t *>(data)[index];
  case SLUICE_U4:
    return static_cast<const uint8_t *>(data)[index / 2] >> (index % 2 * 4) & 15;
  case SLUICE_Q8_0: {
    const auto *const block = static_cast<const uint8_t *>(data) + index / 32 * 34;
    return f16_at(block) * int8_t(block[2 + index % 32]);
  }
  case SLUICE_Q4_0: {
    const auto *const block = static_cast<const uint8_t *>(data) + index / 32 * 18;
    const int number = block[2 + index % 16] >> (index % 32 < 16 ? 0 : 4) & 15;
    return f16_at(block) * (number - 8);
  }
  default:
    return static_cast<const float *>(data)[index];
  }
}

void store(void *data, uint32_t type, int64_t index, double value) {
  if (type == SLUICE_F16) {
    static_cast<uint16_t *>(data)[index] = support::f16_from_double(value);
  } else if (type == SLUICE_BF16) {
    static_cast<uint16_t *>(data)[index] = support::bf16_from_double(value);
  } else if (type == SLUICE_E4M3FNUZ) {
    static_cast<uint8_t *>(data)[index] = support::e4m3fnuz_from_double(value);
  } else if (type == SLUICE_E5M2FNUZ) {
    static_cast<uint8_t *>(data)[index] = support::e5m2fnuz_from_double(value);
  } else if (type == SLUICE_E4M3FN) {
    static_cast<uint8_t *>(data)[index] = support::e4m3fn_from_double(value);
  } else if (type == SLUICE_E5M2) {
    static_cast<uint8_t *>(data)[index] = support::e5m2_from_double(value);
  } else if (type == SLUICE_I8) {
    const double limited = std::isnan(value) ? 0 : std::clamp(value, -127.0, 127.0);
    static_cast<int8_t *>(data)[index] = int8_t(std::nearbyint(limited));
  } else {
    static_cast<float *>(data)[index] = float(value);
  }
}

int64_t index_of(const sluice_tensor &tensor, int64_t a, int64_t b, int64_t c, int64_t d) {
  return a * tensor.stride[0] + b * tensor.stride[1] + c * tensor.stride[2] + d * tensor.stride[3];
}

} // namespace sluice::tensors
