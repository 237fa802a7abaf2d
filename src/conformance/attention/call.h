//===- call.h - a case as the structs of the C ABI ------------------------------------------------------===//
#pragma once

#include "conformance/attention/memory.h"
#include "conformance/shared/structs.h"

#include <optional>

namespace sluice::conformance {

/// The sluice_dtype of K and V.
uint32_t cache_type(const Case &c);

void make_problem(const Case &c, ProblemStructs &out);

/// `bases` are the addresses of the buffers. With `only`, the call is for that sequence only.
void make_call(const Case &c, const Memory &memory, const std::vector<void *> &bases, CallStructs &out,
               std::optional<int> only = {});

} // namespace sluice::conformance
