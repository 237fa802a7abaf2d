//===- recorded_plan.h - the launches of a plan or an append, without a device --------------------------===//
//
// The library's own work on a HIP runtime that runs nothing: it is a gfx942 with the given number of compute
// units, and records the launches. So the choice of kernels, the split of keys and the arguments are those of
// a run on a GPU.
//
//===----------------------------------------------------------------------------------------------------===//
#pragma once

#include "calls/args.h"
#include "calls/problem.h"
#include "package/kernargs.h"
#include "tools/shared/context.h"
#include "tools/shared/pack_file.h"

#include <array>
#include <cstddef>
#include <optional>
#include <string>
#include <vector>

namespace sluice::tools {

struct RecordedLaunch {
  std::string kernel;
  std::array<uint32_t, 3> grid; // in workgroups
  std::array<uint32_t, 3> block;
  uint32_t dynamic_lds_bytes;
  std::vector<std::byte> kernarg;

  /// Nothing for kernels other than attention.
  std::optional<package::AttentionKernargs> attention_arguments() const;
  /// The same launch without rounds (package/rounds.h).
  RecordedLaunch without_rounds() const;
};

/// At most one at a time on each thread.
class RecordedContext {
public:
  /// The pack must outlive the context. Throws ToolError if the library refuses it.
  RecordedContext(const PackFile &pack, uint32_t compute_units);
  ~RecordedContext();
  RecordedContext(const RecordedContext &) = delete;
  RecordedContext &operator=(const RecordedContext &) = delete;

  sluice_context *get() const { return context.get(); }
  /// The launches since the last time, in order.
  std::vector<RecordedLaunch> take_launches();

private:
  friend struct RecordingHip;
  uint32_t compute_units;
  std::vector<std::string> functions; // by handle - 1
  std::vector<RecordedLaunch> launches;
  ContextHandle context;
};

/// At most one at a time on each thread, and none beside a RecordedContext.
class RecordedPlan {
public:
  /// The pack must outlive the plan. Throws ToolError if the library refuses the problem.
  RecordedPlan(const PackFile &pack, uint32_t compute_units, const calls::Problem &problem);
  const sluice_plan_info &info() const { return described; }
  /// The launches that a run enqueues, in order. Throws ToolError if the library refuses the call.
  std::vector<RecordedLaunch> run(const calls::Args &args, void *workspace);

private:
  calls::Problem problem;
  RecordedContext context;
  PlanHandle plan;
  sluice_plan_info described;
};

} // namespace sluice::tools
