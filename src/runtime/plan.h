//===- plan.h - a problem with its kernels chosen and loaded --------------------------------------------===//
//
// Everything a run needs is computed here, once; run() fills the kernels' arguments and launches.
//
//===----------------------------------------------------------------------------------------------------===//
#pragma once

#include "calls/args.h"
#include "calls/problem.h"
#include "package/kernargs.h"
#include "runtime/choice.h"
#include "runtime/context.h"
#include "runtime/key_sets.h"
#include "runtime/launch.h"

#include <sluice/sluice.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

namespace sluice::runtime {

class Plan {
public:
  /// Loads the kernels unless the context is a target. Throws support::Failure.
  Plan(std::shared_ptr<Context> context, const calls::Problem &problem);

  const Context &context() const { return *shared; }
  const calls::Problem &problem() const { return wanted; }
  /// The kernel after which the plan is named; others may run beside it.
  const package::KernelEntry &kernel() const { return *main().entry; }
  const std::string &kernel_name() const { return main().name; }
  const std::string &reason() const { return choice.reason; }
  uint64_t workspace_bytes() const { return choice.workspace_bytes; }
  bool can_run() const { return shared->device().hip.has_value(); }
  /// Workgroups of kernel() for these extents; 0 in a dimension whose extent is 0.
  Grid grid(int32_t batch, int32_t q_len) const;

  /// Enqueues a call whose arguments have been checked. Throws support::Failure (hip, or invalid_argument for
  /// a dependency that capture does not allow).
  void run(const calls::Args &args, const sluice_launch &launch) const;

  /// Counts a call of sluice_attention_run by its outcome.
  void count_run(sluice_status status) const;
  sluice_counters counters() const;

private:
  using Counter = std::atomic<uint64_t>;
  /// In cache lines of their own: what else a plan has is only read.
  struct alignas(64) Counters {
    Counter runs = 0, refused = 0, main_launches = 0, other_launches = 0, merge_launches = 0;
  };

  /// A kernel of the choice, with the arguments that depend only on the problem.
  struct Prepared {
    const package::KernelEntry *entry = nullptr; // null: not in the choice
    std::string name;
    void *function = nullptr;
    package::AttentionKernargs arguments = {};
    Counter Counters::*launches = nullptr; // counts its launches
    bool to_parts = false;                 // its results go to workspace, where the merge reads them
  };
  Prepared prepare(const package::PackedKernel &kernel, const calls::Problem &problem) const;
  Prepared prepare_many() const;
  Prepared prepare_few() const;
  Prepared prepare_prefix() const;

  /// Workgroups of a kernel of the choice.
  Grid grid(const Prepared &prepared, int32_t batch, int32_t q_len) const;
  void trace(uint32_t event, const Prepared &prepared, const Grid &grid) const;
  /// Where the kernels of a call store results over splits of the keys.
  struct Parts;
  Parts parts_of(const calls::Args &args, void *workspace) const;
  void run_own(const Prepared &prepared, const calls::Args &args, const Parts &parts, void *stream) const;
  /// Computes the prefixes of a cascade.
  void run_prefixes(const calls::Args &args, const Parts &parts, void *stream) const;
  void enqueue(const Prepared &prepared, const RowSet &rows, package::AttentionKernargs &kernargs,
               void *stream) const;
  void merge(const calls::Args &args, const Parts &parts, void *stream) const;
  const Prepared &main() const { return many.entry != nullptr ? many : few; }

  std::shared_ptr<Context> shared;
  calls::Problem wanted;
  Choice choice;
  Prepared many, few, prefix;
  std::string range_end; // of a range's text: what all runs have in common
  mutable Counters counts;
};

} // namespace sluice::runtime
