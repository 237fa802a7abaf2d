//===- launch_setup.h - a launch before its first workgroup ---------------------------------------------===//
//
// Checks what a caller asks for, prepares what all workgroups share, and turns findings into reports
// afterwards. How workgroups get their turns is up to whoever runs them.
//
//===----------------------------------------------------------------------------------------------------===//
#pragma once

#include <optional>

#include "emulator/exec/global_sync.h"
#include "emulator/machine/dispatch.h"
#include "emulator/machine/workgroup.h"

namespace sluice::emulator {

class LaunchSetup {
public:
  /// What it is given must outlive it. Throws std::invalid_argument, as `launch` does.
  LaunchSetup(const Program &program, std::string_view kernel, std::array<uint32_t, 3> grid,
              std::array<uint32_t, 3> block, uint32_t dynamic_lds_bytes, std::span<const std::byte> kernarg,
              const Memory &memory, const Options &options);
  LaunchSetup(const LaunchSetup &) = delete;
  LaunchSetup &operator=(const LaunchSetup &) = delete;

  LaunchState &state() { return launch; }
  const KernelInfo &kernel() const { return info; } // of the kernel that is launched
  /// After the last workgroup.
  std::vector<Report> reports();
  uint64_t reports_dropped() { return sink.dropped(); }
  /// Likewise, if the options ask for it: what was touched of the memory of the device.
  std::vector<MemoryUse> uses();

private:
  const ProgramImpl &program;
  const package::Kernel &code;
  const KernelInfo &info;
  const DispatchShape shape;
  const Dispatch dispatch;
  const std::shared_ptr<const BlockTable> memory; // holds what the table names
  const BlockTable table;
  ReportSink sink;
  GlobalShadow shadow;
  ReleasedAtomics atomics;
  std::optional<GlobalSync> sync;
  LaunchState launch;
};

} // namespace sluice::emulator
