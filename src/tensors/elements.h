//===- elements.h - the elements of tensors -------------------------------------------------------------===//
#pragma once

#include <sluice/sluice.h>

#include <cstdint>

namespace sluice::tensors {

double load(const void *data, uint32_t type, int64_t index);
/// Rounds once, to nearest even; `type` is F16, BF16, F32, E4M3FNUZ, E5M2FNUZ or I8, where NaN
/// becomes 0.
void store(void *data, uint32_t type, int64_t index, double value);

/// Element [a][b][c][d].
int64_t index_of(const sluice_tensor &tensor, int64_t a, int64_t b, int64_t c, int64_t d);

} // namespace sluice::tensors
