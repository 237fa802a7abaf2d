//===- contents.cpp - checks of the contents of device memory, on an emulator ---------------------------===//
#include "abi/contents.h"

#include "reference/contents.h"
#include "runtime/launch.h"
#include "support/failure.h"

#include <algorithm>
#include <exception>
#include <string_view>

namespace sluice::abi {
namespace {

struct CallOfPlan {
  sluice_problem problem;
  sluice_args args;
};

void check(const CallOfPlan &call) {
  reference::check_contents(call.problem, call.args);
}
template <typename Call> void check(const Call &call) {
  reference::check_contents(call);
}

/// A runtime::ContentsCheck.
template <typename Call> int find_bad_contents(const void *call, char *message, size_t size) {
  const auto tell = [&](std::string_view sentence) {
    const size_t length = std::min(sentence.size(), size - 1);
    std::copy_n(sentence.data(), length, message);
    message[length] = '\0';
    return 1;
  };
  try {
    check(*static_cast<const Call *>(call));
    return 0;
  } catch (const support::Failure &failure) {
    return tell(failure.message());
  } catch (const std::exception &failure) {
    return tell(failure.what());
  }
}

bool checks_contents(const runtime::Device &device) {
  return device.check_call != nullptr && device.checks_contents != nullptr && device.checks_contents() != 0;
}

template <typename Call>
sluice_launch enqueue_check(const runtime::Device &device, const sluice_launch &launch, const char *name,
                            const Call &call) {
  sluice_launch after = launch;
  runtime::wait_for_dependencies(*device.hip, launch);
  after.dependency_count = 0;
  after.dependencies = nullptr;
  if (device.check_call(launch.stream, name, find_bad_contents<Call>, &call, sizeof call) != 0) {
    throw support::Failure(
        support::Status::hip, "stream",
        support::text("the emulator could not enqueue the check of the contents of ", name));
  }
  return after;
}

} // namespace

sluice_launch with_contents_check(const runtime::Device &device, const sluice_launch &launch,
                                  const sluice_problem &problem, const sluice_args &args) {
  return checks_contents(device) ? enqueue_check(device, launch, "sluice_run", CallOfPlan{problem, args})
                                 : launch;
}

sluice_launch with_contents_check(const runtime::Device &device, const sluice_launch &launch,
                                  const sluice_append &call) {
  return checks_contents(device) ? enqueue_check(device, launch, "sluice_kv_append", call) : launch;
}

sluice_launch with_contents_check(const runtime::Device &device, const sluice_launch &launch,
                                  const sluice_page_copy &call) {
  return checks_contents(device) ? enqueue_check(device, launch, "sluice_kv_copy", call) : launch;
}

sluice_launch with_contents_check(const runtime::Device &device, const sluice_launch &launch,
                                  const sluice_gather &call) {
  return checks_contents(device) ? enqueue_check(device, launch, "sluice_kv_gather", call) : launch;
}

} // namespace sluice::abi
