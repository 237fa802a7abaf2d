//===- hip_table.cpp - the HIP entry points the library calls -------------------------------------------===//
#include "runtime/hip_table.h"

#include "support/failure.h"

#include <string>

namespace sluice::runtime {

using support::Failure;
using support::Status;
using support::text;

HipTable bind_hip(HipResolver resolver, void *user, std::string_view origin) {
  HipTable hip;
  hip.resolver = resolver;
  hip.user = user;
#define SLUICE_ENTRY(name, parameters)                                                                       \
  hip.name = reinterpret_cast<HipError(*) parameters>(resolver(#name, user));
  SLUICE_HIP_REQUIRED(SLUICE_ENTRY)
  SLUICE_HIP_OPTIONAL(SLUICE_ENTRY)
#undef SLUICE_ENTRY
  hip.hipGetErrorName = reinterpret_cast<const char *(*)(HipError)>(resolver("hipGetErrorName", user));

#define SLUICE_ENTRY(name, parameters)                                                                       \
  if (hip.name == nullptr) {                                                                                 \
    throw Failure(Status::no_device, #name, text("the HIP runtime ", origin, " has no entry point " #name)); \
  }
  SLUICE_HIP_REQUIRED(SLUICE_ENTRY)
#undef SLUICE_ENTRY
  return hip;
}

void check_hip(const HipTable &hip, HipError error, std::string_view call, std::string_view field) {
  if (error == hip_success) return;
  const char *name = hip.hipGetErrorName != nullptr ? hip.hipGetErrorName(error) : nullptr;
  const Status status = error == hip_no_binary_for_gpu ? Status::wrong_arch : Status::hip;
  throw Failure(status, std::string(field),
                text(call, " failed with ", name != nullptr ? name : "hipError_t", " (", error, ")"), error);
}

} // namespace sluice::runtime
