//===- page_copy.h - copies of pages and gathers on the host, in plain loops ----------------------------===//
#pragma once

#include "calls/cache_ops.h"
#include "reference/tensors.h"

#include <sluice/sluice.h>

namespace sluice::reference {

/// The numbers of a call's pairs, pair by pair; and the page table of a gather.
PageTable pairs_of(const calls::PageCopy &call);
PageTable table_of(const calls::Gather &call);

/// Compute a call whose arguments and contents are legal; pointers are the host's.
void copy_pages(const calls::PageCopy &call);
void gather(const calls::Gather &call);

} // namespace sluice::reference
