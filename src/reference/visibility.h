//===- visibility.h - which keys a row sees -------------------------------------------------------------===//
#pragma once

#include "reference/tensors.h"

#include <sluice/sluice.h>

#include <cstdint>

namespace sluice::reference {

/// The distance of key j after the diagonal of row i, d = j - i - shift; ALiBi uses its magnitude.
int64_t distance(const Sequence &sequence, int64_t i, int64_t j);

/// Whether row i of a query head sees key j < kv_len.
bool is_visible(const sluice_problem &problem, const sluice_args &args, const Sequence &sequence,
                int64_t q_head, int64_t i, int64_t j);

} // namespace sluice::reference
