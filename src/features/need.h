//===- need.h - what asks for a feature of kernels ------------------------------------------------------===//
#pragma once

#include "calls/args.h"
#include "calls/problem.h"
#include "package/feature_names.h"
#include "support/failure.h"

#include <sluice/sluice.h>

#include <string>
#include <string_view>

namespace sluice::features {

namespace names = package::feature_names;

/// A part of a problem that needs a feature of kernels.
struct Need {
  std::string_view name;                                  // that kernels list
  std::string_view field;                                 // of calls::Problem, for the refusal
  bool (*is_needed)(const calls::Problem &) = nullptr;    //
  std::string (*asked)(const calls::Problem &) = nullptr; // "soft_cap is 30"
  std::string_view nearest;                               // value of the field that needs no feature
};

/// A part of a call that needs one without its mode or problem saying so.
struct CallNeed {
  std::string_view name;
  std::string_view field;   // of calls::Args
  std::string_view nearest; // value of the field
  bool (*is_needed)(const calls::Problem &, const calls::Args &) = nullptr;
};

} // namespace sluice::features

/// The need of a flag, or of a field if the condition holds for the problem p.
#define SLUICE_FLAG_NEED(name, flag)                                                                         \
  ::sluice::features::Need{                                                                                  \
      name, "flags", [](const calls::Problem &p) { return (p.flags & flag) != 0; },                          \
      [](const calls::Problem &) { return ::sluice::support::text("flags has ", calls::flag_name(flag)); },  \
      "without it"}
#define SLUICE_FIELD_NEED(name, field, condition, nearest)                                                   \
  ::sluice::features::Need {                                                                                 \
    name, #field, [](const calls::Problem &p) { return condition; },                                         \
        [](const calls::Problem &p) { return ::sluice::support::text(#field " is ", p.field); }, nearest     \
  }
