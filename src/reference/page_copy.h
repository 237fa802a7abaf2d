//===- page_copy.h - copies of pages and gathers on the host, in plain loops ----------------------------===//
#pragma once

#include "reference/tensors.h"

#include <sluice/sluice.h>

namespace sluice::reference {

/// The numbers of a call's pairs, pair by pair; and the page table of a gather.
PageTable pairs_of(const sluice_page_copy &call);
PageTable table_of(const sluice_gather &call);

/// Compute a call whose arguments and contents are legal; pointers are the host's.
void copy_pages(const sluice_page_copy &call);
void gather(const sluice_gather &call);

} // namespace sluice::reference
