//===- refusal.h - following the advice of a refusal ----------------------------------------------------===//
#pragma once

#include "calls/problem.h"

#include <sluice/sluice.h>

#include <optional>

namespace sluice::test {

/// The problem with the refusal's nearest supported value, or with a legal one if a rule was broken. Empty if
/// the refusal gives no advice that can be understood.
std::optional<calls::Problem> advised(const calls::Problem &problem, const sluice_error &refusal);

/// A field that is a number, by name, so that others can be tried for it.
struct NumberField {
  int64_t (*get)(const calls::Problem &);
  void (*set)(calls::Problem &, int64_t);
};
std::optional<NumberField> number_field(const char *name);

} // namespace sluice::test
