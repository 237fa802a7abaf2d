//===- visibility.h - which keys a row sees -------------------------------------------------------------===//
#pragma once

#include "calls/args.h"
#include "calls/problem.h"
#include "features/feature.h"
#include "reference/tensors.h"

#include <sluice/sluice.h>

#include <cstdint>

namespace sluice::reference {

/// Row i of a query head and key j, of the sequence or of its prefix.
features::Place place_of(const Sequence &sequence, int64_t q_head, int64_t i, int64_t j);

/// Whether row i of a query head sees key j < kv_len.
bool is_visible(const calls::Problem &problem, const calls::Args &args, const Sequence &sequence,
                int64_t q_head, int64_t i, int64_t j);

} // namespace sluice::reference
