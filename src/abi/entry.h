//===- entry.h - what entry points do once their structs are flat ---------------------------------------===//
#pragma once

#include "abi/handles.h"
#include "calls/args.h"
#include "calls/problem.h"

#include <sluice/sluice.h>

#include <memory>

namespace sluice::abi {

/// Checks a problem, and makes a plan for it.
sluice_plan *make_plan(const std::shared_ptr<runtime::Context> &context, const FlatAttention &attention);

/// Checks a problem, and fills `support` unless it is NULL.
void answer_support(const sluice_context *context, const calls::Problem &problem, sluice_support *support);

/// Checks a problem, and loads its kernels; all of the context's if it is NULL.
void preload(sluice_context *context, const calls::Problem *problem);

/// Checks a call, and enqueues it.
void enqueue(const sluice_plan &plan, const calls::Args &call, const sluice_launch &launch);

/// Checks a problem and a call in host memory, and computes it.
void compute_on_host(const calls::Problem &problem, const calls::Args &call);

} // namespace sluice::abi
