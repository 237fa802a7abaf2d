//===- info_command.cpp - sluice info: the library and the device ---------------------------------------===//

#include "tools/sluice/commands.h"

#include <fmt/format.h>

namespace sluice::tools {

namespace {

void print_device(const std::string &device) {
  sluice_context_desc desc = describe_device(device);
  sluice_error error = make_error();
  sluice_context *created = nullptr;
  const sluice_status status = sluice_context_create(&desc, &created, &error);
  if (status != SLUICE_OK) {
    fmt::print("{:<10} {}: {}\n", device, sluice_status_name(status), error.message);
    return;
  }
  const ContextHandle context(created);
  sluice_device_info info;
  sluice_device_info_init(&info, sizeof info);
  check(sluice_context_device(created, &info, &error), error);
  fmt::print("{:<10} {}{}{}, {} compute units, through {}\n", device, info.name, info.name[0] ? ", " : "",
             info.arch, info.compute_units, info.runtime);
}

} // namespace

int info_command() {
  sluice_build build;
  sluice_build_init(&build, sizeof build);
  sluice_error error = make_error();
  check(sluice_build_info(&build, &error), error);
  const uint32_t abi = sluice_abi_version();
  fmt::print("sluice     {}, ABI {}.{}, commit {}\n", build.version, abi >> 16, abi & 0xffff,
             build.git_commit);
  fmt::print("compiler   {}\n", build.compiler);
  fmt::print("kernels    {} for {}, by LLVM {}, pack {}\n", build.kernel_count, build.chips,
             build.llvm_version, build.pack_id);
  print_device("emulated");
  print_device("hip:0");
  return 0;
}

} // namespace sluice::tools
