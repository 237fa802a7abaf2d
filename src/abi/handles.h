//===- handles.h - the opaque structs of the C ABI ------------------------------------------------------===//
#pragma once

#include "abi/attention_values.h"
#include "runtime/context.h"
#include "runtime/plan.h"
#include "support/failure.h"

#include <sluice/sluice.h>

#include <memory>

// A plan holds the context that it was made with: the two may be destroyed in any order.
struct sluice_context {
  std::shared_ptr<sluice::runtime::Context> context;
};

struct sluice_plan {
  sluice::abi::FlatAttention attention;
  sluice::runtime::Plan plan;
};

namespace sluice::abi {

/// The context of a handle. Throws support::Failure (invalid_argument) for NULL.
inline const std::shared_ptr<runtime::Context> &context_of(const sluice_context *context) {
  if (context == nullptr)
    throw support::Failure(support::Status::invalid_argument, "context", "context is NULL");
  return context->context;
}

} // namespace sluice::abi
