//===- forks.cpp - processes that fork before and after they use the library ----------------------------===//
//
// usage: abi_forks before | after
//
// before: parent and child both compute, and get the same result.
// after: the parent has used the device, and work is in flight. In the child every call ends, with an error
//   if it needs the device, and so does the child itself; the parent continues.
//
// An alarm ends a child that waits for ever, which is a failure.
//
//===----------------------------------------------------------------------------------------------------===//
#include "emulated_calls.h"

#include <cstring>
#include <string_view>

#include <sys/wait.h>
#include <unistd.h>

using namespace sluice::test;

namespace {

constexpr unsigned most_seconds = 60;
constexpr int not_initialized = 3; // hipErrorNotInitialized

/// In a child without the threads of its parent: allocations that only their stacks held look leaked there.
bool is_orphan = false;

int complaints = 0;
void expect(bool condition, const std::string &what) {
  if (condition) return;
  ++complaints;
  std::fprintf(stderr, "%s\n", what.c_str());
}

sluice_context *make_context(uint32_t kind) {
  sluice_context_desc desc;
  sluice_context_desc_init(&desc, sizeof desc);
  desc.kind = kind;
  if (kind == SLUICE_DEVICE_TARGET) desc.target = "gfx942:304";
  sluice_context *context = nullptr;
  require_ok(sluice_context_create(&desc, &context, nullptr), "sluice_context_create");
  return context;
}

sluice_plan *make_plan(sluice_context *context) {
  const AttentionCall call = call_values(CallKind::dense);
  sluice_plan *plan = nullptr;
  require_ok(sluice_attention_plan(context, &call.attention, &plan, nullptr), "sluice_attention_plan");
  return plan;
}

/// A whole life cycle; returns a hash of the result's bytes.
uint64_t compute() {
  sluice_context *context = make_context(SLUICE_DEVICE_EMULATED);
  sluice_plan *plan = make_plan(context);
  uint64_t hash = 1469598103934665603u;
  {
    const DeviceStream stream;
    const DeviceCall call(CallKind::dense, 11, 0);
    const sluice_launch launch = call.launch(stream.get());
    require_ok(sluice_attention_run(plan, &call.values.args, &launch, nullptr), "sluice_attention_run");
    stream.wait();
    for (const unsigned char byte : call.result())
      hash = (hash ^ byte) * 1099511628211u;
  }
  sluice_plan_destroy(plan);
  sluice_context_destroy(context);
  return hash;
}

/// Runs `body` in a child, which then exits normally; true if it did so without a complaint.
template <typename Body> bool in_child(Body &&body) {
  std::fflush(nullptr);
  const pid_t child = fork();
  require_ok(child < 0, "fork");
  if (child == 0) {
    alarm(most_seconds);
    complaints = 0;
    body();
    std::exit(complaints == 0 ? 0 : 1);
  }
  int status = 0;
  require_ok(waitpid(child, &status, 0) != child, "waitpid");
  if (WIFSIGNALED(status)) std::fprintf(stderr, "the child was ended by signal %d\n", WTERMSIG(status));
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

void fork_before() {
  int ends[2];
  require_ok(pipe(ends), "pipe");
  expect(in_child([&] {
           const uint64_t hash = compute();
           expect(write(ends[1], &hash, sizeof hash) == ssize_t(sizeof hash), "write");
         }),
         "the child could not compute");
  const uint64_t own = compute();
  uint64_t child_result = 0;
  expect(read(ends[0], &child_result, sizeof child_result) == ssize_t(sizeof child_result), "read");
  expect(own == child_result, "parent and child compute different results");
}

void expect_hip_failure(sluice_status status, const sluice_error &error, const char *what) {
  expect(status == SLUICE_HIP && error.hip_code == not_initialized,
         std::string(what) + ": " + sluice_status_name(status) + ": " + error.message);
}

void fork_after() {
  sluice_context *context = make_context(SLUICE_DEVICE_EMULATED);
  sluice_plan *plan = make_plan(context);
  const uint64_t good = compute();
  {
    const DeviceStream stream;
    const DeviceCall call(CallKind::dense, 11, 0);
    const sluice_launch launch = call.launch(stream.get());
    // Work is in flight when the child is created, and the child must not wait for it.
    require_ok(sluice_attention_run(plan, &call.values.args, &launch, nullptr), "sluice_attention_run");
    expect(in_child([&] {
             is_orphan = true;
             sluice_error error;
             sluice_error_init(&error, sizeof error);
             expect_hip_failure(sluice_attention_run(plan, &call.values.args, &launch, &error), error,
                                "sluice_attention_run");
             AttentionCall wide = call_values(CallKind::dense);
             wide.format.head_dim_qk = wide.format.head_dim_v = 2 * call_dim; // a kernel that is not loaded
             sluice_plan *other = nullptr;
             expect_hip_failure(sluice_attention_plan(context, &wide.attention, &other, &error), error,
                                "sluice_attention_plan");
             sluice_context_desc desc;
             sluice_context_desc_init(&desc, sizeof desc);
             desc.kind = SLUICE_DEVICE_EMULATED;
             sluice_context *fresh = nullptr;
             expect_hip_failure(sluice_context_create(&desc, &fresh, &error), error, "sluice_context_create");
             const auto wait = reinterpret_cast<int (*)(void *)>(
                 sluice_context_hip_symbol(context, "hipStreamSynchronize"));
             expect(wait(stream.get()) == not_initialized, "hipStreamSynchronize");
             sluice_emulator_counters_t counters;
             expect(sluice_emulator_counters(&counters, sizeof counters) == SLUICE_EMULATOR_BAD_VALUE,
                    "counters");
             char reports[8] = {};
             expect(sluice_emulator_take_reports(reports, sizeof reports) == 3 &&
                        std::strcmp(reports, "[]") == 0,
                    "reports");
             // Calls that do not need a device work.
             sluice_context *target = make_context(SLUICE_DEVICE_TARGET);
             sluice_plan_destroy(make_plan(target));
             sluice_context_destroy(target);
             sluice_plan_destroy(plan);
             sluice_context_destroy(context);
           }),
           "the child");
    stream.wait();
  }
  expect(compute() == good, "the parent computes something else after the fork");
  sluice_plan_destroy(plan);
  sluice_context_destroy(context);
}

} // namespace

/// The leak sanitizer, if present, calls this.
extern "C" __attribute__((visibility("default"))) int __lsan_is_turned_off() {
  return is_orphan;
}

int main(int argc, char **argv) {
  const std::string_view when = argc == 2 ? argv[1] : "";
  if (when == "before")
    fork_before();
  else if (when == "after")
    fork_after();
  else
    return 2;
  return complaints != 0;
}
