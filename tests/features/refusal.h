//===- refusal.h - following the advice of a refusal ----------------------------------------------------===//
#pragma once

#include <sluice/sluice.h>

#include <optional>

namespace sluice::test {

/// The problem with the refusal's nearest supported value, or with a legal one if a rule was broken. Empty if
/// the refusal gives no advice that can be understood.
std::optional<sluice_problem> advised(const sluice_problem &problem, const sluice_error &refusal);

/// A field that is a number, by name, so that others can be tried for it.
struct NumberField {
  int64_t (*get)(const sluice_problem &);
  void (*set)(sluice_problem &, int64_t);
};
std::optional<NumberField> number_field(const char *name);

} // namespace sluice::test
