//===- contents.h - what a caller can get wrong in lengths, starts and tables ---------------------------===//
#pragma once

#include "calls/args.h"
#include "calls/cache_ops.h"
#include "calls/problem.h"

#include <sluice/sluice.h>

namespace sluice::reference {

/// Checks the contents that a run cannot check, which are on the host here: lengths, starts, page numbers.
/// Throws support::Failure (invalid_argument) with the element, its value and the rule.
void check_contents(const calls::Problem &problem, const calls::Args &args);
/// The same for an append: everything that a device would skip, except negative slots and rows without a
/// sequence.
void check_contents(const calls::Append &call);
/// The same for pairs of pages, except negative numbers.
void check_contents(const calls::PageCopy &call);
/// The same for a gather: everything that a device would read as zeros or leave out.
void check_contents(const calls::Gather &call);

} // namespace sluice::reference
