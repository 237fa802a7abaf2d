//===- report_file.h - what launches found, in a file ---------------------------------------------------===//
//
// For whoever started the process and reads on when it has ended, however it did: each launch appends its
// line as it ends, a report that belongs to none has one of its own, and processes may share the file.
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

  /// False if it cannot be opened; then there is none.
  bool open(const std::string &path);
  /// Appends {"counters": {...}, "reports": [...], "reports_dropped": N, "text": "..."} where a file is open.
  void append(const LaunchResult &result) const;

private:
  int descriptor = -1;
};

} // namespace sluice::emulator::hip
