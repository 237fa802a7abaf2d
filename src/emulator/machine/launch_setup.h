//===- launch_setup.h - a launch before its first workgroup ---------------------------------------------===//
//
// Checks what a caller asks for, prepares what all workgroups share, and turns findings into reports
// afterwards. The caller decides in which order workgroups get their turns.
//
//===----------------------------------------------------------------------------------------------------===//
#pragma once

#include <optional>

#include "emulator/exec/global_sync.h"
#include "emulator/isa/source_lines.h"
#include "emulator/machine/dispatch.h"
#include "emulator/machine/workgroup.h"

namespace sluice::emulator {

class LaunchSetup {
public:
  /// The arguments must outlive it. Throws std::invalid_argument, as `launch` does.
  LaunchSetup(const Program &program, std::string_view kernel, std::array<uint32_t, 3> grid,
              std::array<uint32_t, 3> block, uint32_t dynamic_lds_bytes, std::span<const std::byte> kernarg,
              const Memory &memory, const Options &options);
  LaunchSetup(const LaunchSetup &) = delete;
  LaunchSetup &operator=(const LaunchSetup &) = delete;

  LaunchState &state() { return launch; }
  const KernelInfo &kernel() const { return info; } // of the launched kernel
  /// To be called after the last workgroup.
  std::vector<Report> reports();
  /// Also after the last workgroup: none unless the options ask for it.
  std::optional<FidelityNote> fidelity_note();
  uint64_t reports_dropped() { return sink.dropped(); }
  /// Also after the last workgroup: the device memory that was touched, if the options ask for it.
  std::vector<MemoryUse> uses();

private:
  Report report_of(const Finding &finding);
  std::string source(uint32_t op);
  /// Called by the sink, one thread at a time.
  ReportSink::Suppressing suppressing(std::shared_ptr<const Suppressions> rules);

  const ProgramImpl &program;
  const package::Kernel &code;
  const KernelInfo &info;
  const DispatchShape shape;
  const Dispatch dispatch;
  const std::shared_ptr<const BlockTable> memory; // owns the blocks that the table names
  const BlockTable table;
  std::optional<SourceLines> lines; // most launches have nothing to report
  ReportSink sink;
  GlobalShadow shadow;
  ReleasedAtomics atomics;
  UnusedReads unused_reads;
  std::optional<GlobalSync> sync;
  std::optional<LaunchFidelity> fidelity;
  LaunchState launch;
};

} // namespace sluice::emulator
