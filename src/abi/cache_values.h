//===- cache_values.h - the values of cache.h as flat structs -------------------------------------------===//
//
// As attention_values.h, for the cache operations. `out` must be all zero.
//
//===----------------------------------------------------------------------------------------------------===//
#pragma once

#include "abi/retell.h"
#include "calls/cache_ops.h"

#include <sluice/cache.h>

namespace sluice::abi {

void flat_append(const sluice_append_args *args, calls::Append &out);
void flat_copy(const sluice_copy_args *args, calls::PageCopy &out);
void flat_gather(const sluice_gather_args *args, calls::Gather &out);

extern const Names append_names, copy_names, gather_names;

} // namespace sluice::abi
