//===- report_file.h - writes what launches found to a file ---------------------------------------------===//
//
// For a parent process that reads on after this one has ended, however it ended. Each launch appends its line
// as it ends, a report that belongs to no launch gets its own line, and processes may share the file.
//
//===----------------------------------------------------------------------------------------------------===//
#pragma once

#include <string>

#include "emulator/machine/machine.h"

namespace sluice::emulator::hip {

class ReportFile {
public:
  ReportFile() = default;
  ~ReportFile();
  ReportFile(const ReportFile &) = delete;
  ReportFile &operator=(const ReportFile &) = delete;

  /// False if the file cannot be opened; then no file is open.
  bool open(const std::string &path);
  /// Appends {"kernel": "...", "counters": {...}, "reports": [...], "reports_dropped": N} if a file is open,
  /// with "fidelity" if the launch has a note.
  /// The kernel's name is empty for reports of no launch.
  void append(const LaunchResult &result) const;

private:
  int descriptor = -1;
};

} // namespace sluice::emulator::hip
