//===- contents.cpp - checks of the contents of device memory, on an emulator ---------------------------===//
#include "abi/contents.h"

#include "abi/attention_values.h"
#include "abi/cache_values.h"
#include "abi/checks.h"
#include "abi/pointers.h"
#include "abi/retell.h"
#include "calls/args.h"
#include "calls/cache_ops.h"
#include "calls/problem.h"
#include "reference/contents.h"
#include "runtime/launch.h"
#include "support/failure.h"

#include <algorithm>
#include <exception>
#include <string_view>

namespace sluice::abi {
namespace {

struct CallOfPlan {
  calls::Problem problem;
  calls::Args args;
};

Names names_of(const CallOfPlan &) {
  return args_names;
}
Names names_of(const calls::Append &) {
  return append_names;
}
Names names_of(const calls::PageCopy &) {
  return copy_names;
}
Names names_of(const calls::Gather &) {
  return gather_names;
}

void check_arrays(const CallOfPlan &call) {
  reference::check_contents(call.problem, call.args);
}
template <typename Call> void check_arrays(const Call &call) {
  reference::check_contents(call);
}

/// Callers forget that pointers are to device memory: the device's own report could only say an address.
template <typename Call> void check_pointers(const runtime::Device &device, const Call &call) {
  if (device.has_memory == nullptr) return;
  for_each_pointer(call, [&](std::string_view name, const void *address) {
    if (address == nullptr || device.has_memory(address) != 0) return;
    invalid(name, support::text(name, " is ", support::hexadecimal(reinterpret_cast<uint64_t>(address)),
                                "; it must be memory of the device: allocated, registered or pinned by HIP"));
  });
}

/// A runtime::ContentsCheck.
template <typename Call> int find_bad_contents(const void *given, char *message, size_t size) {
  const auto tell = [&](std::string_view sentence) {
    const size_t length = std::min(sentence.size(), size - 1);
    std::copy_n(sentence.data(), length, message);
    message[length] = '\0';
    return 1;
  };
  try {
    const auto &call = *static_cast<const Call *>(given);
    retelling(names_of(call), [&] { check_arrays(call); });
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

template <typename Call>
sluice_launch checked(const runtime::Device &device, const sluice_launch &launch, const char *name,
                      const Call &call) {
  check_pointers(device, call);
  return checks_contents(device) ? enqueue_check(device, launch, name, call) : launch;
}

} // namespace

sluice_launch with_contents_check(const runtime::Device &device, const sluice_launch &launch,
                                  const calls::Problem &problem, const calls::Args &args) {
  check_pointers(device, args);
  if (!checks_contents(device)) return launch; // no copy of the call, on the path of every run
  return enqueue_check(device, launch, "sluice_attention_run", CallOfPlan{problem, args});
}

sluice_launch with_contents_check(const runtime::Device &device, const sluice_launch &launch,
                                  const calls::Append &call) {
  return checked(device, launch, "sluice_cache_append", call);
}

sluice_launch with_contents_check(const runtime::Device &device, const sluice_launch &launch,
                                  const calls::PageCopy &call) {
  return checked(device, launch, "sluice_cache_copy", call);
}

sluice_launch with_contents_check(const runtime::Device &device, const sluice_launch &launch,
                                  const calls::Gather &call) {
  return checked(device, launch, "sluice_cache_gather", call);
}

sluice_launch with_contents_check(const runtime::Device &device, const sluice_launch &launch,
                                  const sluice_merge_args &call) {
  check_pointers(device, call); // it has no arrays
  return launch;
}

} // namespace sluice::abi
