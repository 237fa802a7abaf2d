//===- host_call.h - calls of the reference with exactly the memory that they describe ------------------===//
#pragma once

#include "caller.h"

namespace sluice::fuzz {

/// Makes a call of small tensors, damages it, and gives each of its pointers exactly the memory that sluice.h
/// lets the call touch; the address sanitizer reports accesses beyond it.
void try_reference(FuzzedDataProvider &bytes);

} // namespace sluice::fuzz
