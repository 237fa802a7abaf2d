//===- append.h - an append on the host, in plain loops -------------------------------------------------===//
#pragma once

#include <sluice/sluice.h>

#include <cstdint>

namespace sluice::reference {

/// Entry n of a sequence's page table, and where in page_table it stands. The call has `starts`.
int64_t page_entry(const sluice_append &call, int64_t sequence, int64_t n);
int64_t page(const sluice_append &call, int64_t sequence, int64_t n);

/// Does an append whose arguments and contents are legal; pointers are the host's.
void append(const sluice_append &call);

} // namespace sluice::reference
