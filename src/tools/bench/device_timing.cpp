//===- device_timing.cpp - a workload timed on a GPU ----------------------------------------------------===//
#include "tools/bench/device_timing.h"

#include "calls/values.h"
#include "tools/bench/workload_tensors.h"

#include <algorithm>
#include <cstring>
#include <optional>

namespace sluice::tools {

namespace {

/// An event that is recorded on the default stream, destroyed with the object.
class Event {
public:
  explicit Event(const sluice_context *context) : context(context) {
    check_hip(context, hip_symbol<int(void **)>(context, "hipEventCreate")(&event), "hipEventCreate");
  }
  Event(const Event &) = delete;
  Event &operator=(const Event &) = delete;
  ~Event() { hip_symbol<int(void *)>(context, "hipEventDestroy")(event); }

  void record() {
    check_hip(context, hip_symbol<int(void *, void *)>(context, "hipEventRecord")(event, nullptr),
              "hipEventRecord");
  }
  /// Waits until it has been reached.
  void wait() {
    check_hip(context, hip_symbol<int(void *)>(context, "hipEventSynchronize")(event), "the run");
  }
  double microseconds_since(const Event &earlier) const {
    float milliseconds = 0;
    check_hip(context,
              hip_symbol<int(float *, void *, void *)>(context, "hipEventElapsedTime")(&milliseconds,
                                                                                       earlier.event, event),
              "hipEventElapsedTime");
    return double(milliseconds) * 1e3;
  }

private:
  const sluice_context *context;
  void *event = nullptr;
};

} // namespace

double DeviceTiming::median() const {
  const size_t half = microseconds.size() / 2;
  return microseconds.size() % 2 != 0 ? microseconds[half]
                                      : (microseconds[half - 1] + microseconds[half]) / 2;
}

sluice_device_info device_info(const sluice_context *context) {
  sluice_device_info info;
  sluice_device_info_init(&info, sizeof info);
  sluice_error error = make_error();
  check(sluice_context_device(context, &info, &error), error);
  return info;
}

bool is_emulated(const sluice_device_info &info) {
  return std::strstr(info.name, "emulated") != nullptr;
}

DeviceTiming time_on_device(sluice_context *context, const Workload &work, const DeviceRuns &runs) {
  const calls::Problem problem = work.problem();
  sluice_error error = make_error();
  sluice_plan *created = nullptr;
  check(sluice_attention_plan(context, calls::ProblemValues(problem), &created, &error), error);
  const PlanHandle plan(created);
  sluice_plan_info info;
  sluice_plan_info_init(&info, sizeof info);
  check(sluice_plan_describe(created, &info, &error), error);

  HipMemory memory(context);
  const calls::Args args = make_tensors(work, memory);
  sluice_launch launch;
  sluice_launch_init(&launch, sizeof launch);
  launch.workspace_bytes = info.workspace_bytes;
  if (info.workspace_bytes != 0) launch.workspace = memory.allocate(info.workspace_bytes);
  const size_t flush_bytes = size_t(runs.flush_mib) << 20;
  void *const flushed = flush_bytes != 0 ? memory.allocate(flush_bytes) : nullptr;
  auto *const fill = hip_symbol<int(void *, int, size_t, void *)>(context, "hipMemsetAsync");

  DeviceTiming timing{.kernel = info.kernel, .reason = info.reason, .microseconds = {}};
  Event before(context), after(context);
  for (uint32_t run = 0; run < runs.warm_up + runs.repetitions; ++run) {
    if (flushed) check_hip(context, fill(flushed, int(run & 0xff), flush_bytes, nullptr), "hipMemsetAsync");
    before.record();
    check(sluice_attention_run(plan.get(), calls::ArgsValues(problem, args), &launch, &error), error);
    after.record();
    after.wait();
    if (run >= runs.warm_up) timing.microseconds.push_back(after.microseconds_since(before));
  }
  std::sort(timing.microseconds.begin(), timing.microseconds.end());
  return timing;
}

} // namespace sluice::tools
