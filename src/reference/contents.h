//===- contents.h - what a caller can get wrong in lengths, starts and tables ---------------------------===//
#pragma once

#include <sluice/sluice.h>

namespace sluice::reference {

/// Looks at what a run cannot look at, since it is on the host here: lengths, starts, page numbers. Throws
/// support::Failure (invalid_argument) with the element, its value and the rule.
void check_contents(const sluice_problem &problem, const sluice_args &args);
/// Likewise of an append: what a device would skip, but for negative slots and rows without a sequence.
void check_contents(const sluice_append &call);

} // namespace sluice::reference
