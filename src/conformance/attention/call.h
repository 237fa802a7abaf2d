//===- call.h - a case as the structs of the C ABI ------------------------------------------------------===//
#pragma once

#include "conformance/attention/memory.h"

#include <optional>
#include <sluice/sluice.h>

namespace sluice::conformance {

/// The sluice_dtype of K and V.
uint32_t cache_type(const Case &c);

sluice_problem make_problem(const Case &c);

/// `bases` are the addresses of the buffers. With `only`, the call is for that sequence only.
sluice_args make_args(const Case &c, const Memory &memory, const std::vector<void *> &bases,
                      std::optional<int> only = {});

} // namespace sluice::conformance
