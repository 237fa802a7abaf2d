//===- cache_values.h - the values of cache.h and merge.h as flat structs -------------------------------===//
//
// As attention_values.h, for the cache operations. `out` must be all zero.
//
//===----------------------------------------------------------------------------------------------------===//
#pragma once

#include "abi/retell.h"

#include <sluice/cache.h>
#include <sluice/merge.h>

namespace sluice::abi {

void flat_append(const sluice_append_args *args, sluice_append &out);
void flat_copy(const sluice_copy_args *args, sluice_page_copy &out);
void flat_gather(const sluice_gather_args *args, sluice_gather &out);
void flat_merge(const sluice_merge_args *args, sluice_merge &out);

extern const Names append_names, copy_names, gather_names, merge_names;

} // namespace sluice::abi
