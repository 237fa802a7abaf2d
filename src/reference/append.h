//===- append.h - an append on the host, in plain loops -------------------------------------------------===//
#pragma once

#include "calls/cache_ops.h"
#include "reference/tensors.h"

#include <sluice/sluice.h>

namespace sluice::reference {

/// The page table of a call with `starts`.
PageTable table_of(const calls::Append &call);

/// Computes an append whose arguments and contents are legal; pointers are the host's.
void append(const calls::Append &call);

} // namespace sluice::reference
