//===- launch_checks.cpp - what a caller can get wrong in a launch --------------------------------------===//
//
// On the path of every run: no allocation unless something is wrong.
//
//===----------------------------------------------------------------------------------------------------===//
#include "abi/checks.h"

#include "support/failure.h"

#include <string>
#include <string_view>

namespace sluice::abi {

using support::Failure;
using support::Status;
using support::text;

void check_launch(uint64_t workspace_bytes, uint32_t workspace_alignment, const sluice_launch &launch) {
  if (launch.workspace_bytes < workspace_bytes) {
    throw Failure(Status::workspace_too_small, "workspace_bytes",
                  text("workspace_bytes is ", launch.workspace_bytes, "; the plan needs ", workspace_bytes));
  }
  if (launch.workspace == nullptr && launch.workspace_bytes != 0) {
    invalid("workspace", text("workspace is NULL, but workspace_bytes is ", launch.workspace_bytes));
  }
  const uint64_t address = reinterpret_cast<uint64_t>(launch.workspace);
  if (address % workspace_alignment != 0) {
    invalid("workspace", text("workspace is ", support::hexadecimal(address), "; it must be aligned to ",
                              workspace_alignment, " bytes"));
  }
  check_dependencies(launch);
}

void check_dependencies(const sluice_launch &launch) {
  if (launch.dependency_count != 0 && launch.dependencies == nullptr) {
    invalid("dependencies", text("dependencies is NULL, but dependency_count is ", launch.dependency_count));
  }
  for (uint32_t i = 0; i < launch.dependency_count; ++i) {
    const sluice_dependency &dependency = launch.dependencies[i];
    const auto refuse = [i](Status status, std::string_view field, const auto &...message) {
      std::string name = text("dependencies[", i, "].", field);
      std::string sentence = text(name, message...);
      throw Failure(status, std::move(name), std::move(sentence));
    };
    const auto bad = [&](std::string_view field, const auto &...message) {
      refuse(Status::invalid_argument, field, message...);
    };
    if (dependency.kind == 0)
      bad("kind", " is 0; it must be SLUICE_DEPENDS_ON_EVENT (1) or SLUICE_DEPENDS_ON_STREAM (2)");
    if (dependency.kind > SLUICE_DEPENDS_ON_STREAM) {
      refuse(Status::newer_struct, "kind", " is ", dependency.kind,
             "; the last value that this version knows is SLUICE_DEPENDS_ON_STREAM (2)");
    }
    if (dependency.reserved != 0) {
      refuse(Status::newer_struct, "reserved", " is ", dependency.reserved,
             "; it is reserved in this version, and must be 0");
    }
    if (dependency.event == nullptr)
      bad("event", " is NULL; both kinds of dependency need an event from the caller");
    if (dependency.kind == SLUICE_DEPENDS_ON_EVENT && dependency.stream != nullptr) {
      bad("stream", " is given; it must be NULL for SLUICE_DEPENDS_ON_EVENT");
    }
  }
}

} // namespace sluice::abi
