//===- plan.h - a problem with its kernel chosen and loaded ---------------------------------------------===//
//
// Everything a run needs is computed here, once; run() fills the kernel's arguments and launches.
//
//===----------------------------------------------------------------------------------------------------===//
#pragma once

#include "package/kernargs.h"
#include "runtime/choice.h"
#include "runtime/context.h"
#include "runtime/launch.h"

#include <sluice/sluice.h>

#include <cstdint>
#include <memory>
#include <string>

namespace sluice::runtime {

class Plan {
public:
  /// Loads the kernel unless the context is a target. Throws support::Failure.
  Plan(std::shared_ptr<Context> context, const sluice_problem &problem);

  const Context &context() const { return *shared; }
  const sluice_problem &problem() const { return wanted; }
  const package::KernelEntry &kernel() const { return choice.kernel->entry; }
  const std::string &kernel_name() const { return name; }
  const std::string &reason() const { return choice.reason; }
  uint64_t workspace_bytes() const { return runtime::workspace_bytes(choice); }
  bool can_run() const { return function != nullptr; }

  /// Workgroups for these extents; 0 in a dimension whose extent is 0.
  Grid grid(int32_t batch, int32_t q_len) const;

  /// Enqueues a call whose arguments have been checked. Throws support::Failure (hip, or invalid_argument for
  /// a dependency that capture does not allow).
  void run(const sluice_args &args, const sluice_launch &launch) const;

private:
  package::AttentionKernargs kernargs(const sluice_args &args) const;
  void trace(uint32_t event, const Grid &grid) const;

  std::shared_ptr<Context> shared;
  sluice_problem wanted;
  Choice choice;
  std::string name;
  void *function = nullptr;
  uint32_t kv_head_magic = 0;
};

/// ceil(2^31 / (q_heads / kv_heads)): see package/kernargs.h.
uint32_t kv_head_magic(int32_t q_heads, int32_t kv_heads);

/// Key j is visible to row i iff j <= i + shift: see package/kernargs.h.
int32_t causal_shift(const sluice_problem &problem, int32_t q_len, int32_t kv_len);

} // namespace sluice::runtime
