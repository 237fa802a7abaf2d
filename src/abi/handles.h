//===- handles.h - the opaque structs of the C ABI ------------------------------------------------------===//
#pragma once

#include "runtime/context.h"
#include "runtime/plan.h"

#include <sluice/sluice.h>

#include <memory>

// A plan holds the context it was made with: the two may be destroyed in any order.
struct sluice_context {
  std::shared_ptr<sluice::runtime::Context> context;
};

struct sluice_plan {
  sluice::runtime::Plan plan;
};
