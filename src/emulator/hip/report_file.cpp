//===- report_file.cpp - writes what launches found to a file -------------------------------------------===//
#include "emulator/hip/report_file.h"

#include <algorithm>

#include <fcntl.h>
#include <unistd.h>

#include "emulator/stats/kernel_stats.h"

namespace sluice::emulator::hip {

namespace {

std::string line_of(const LaunchResult &result) {
  const Counters &counters = result.counters;
  std::string reports = to_json(result.reports);
  std::ranges::replace(reports, '\n', ' '); // between reports; within them they are escaped
  const auto field = [](const char *name, uint64_t value) {
    return std::string("\"") + name + "\": " + std::to_string(value);
  };
  return "{\"kernel\": " + json_string(result.kernel) +
         (result.checked ? ", \"checked\": true" : ", \"checked\": false") + ", \"counters\": {" +
         field("launches", counters.launches) + ", " + field("workgroups", counters.workgroups) + ", " +
         field("waves", counters.waves) + ", " + field("wave_instructions", counters.wave_instructions) +
         ", " + field("mfma_instructions", counters.mfma_instructions) + "}, \"reports\": " + reports + ", " +
         field("reports_dropped", result.reports_dropped) +
         (result.fidelity ? ", \"fidelity\": " + to_json(*result.fidelity) : "") + "}\n";
}

} // namespace

ReportFile::~ReportFile() {
  if (descriptor >= 0) ::close(descriptor);
}

bool ReportFile::open(const std::string &path) {
  if (descriptor >= 0) ::close(descriptor);
  descriptor = ::open(path.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
  return descriptor >= 0;
}

void ReportFile::append(const LaunchResult &result) const {
  if (descriptor < 0) return;
  const std::string line = line_of(result);
  size_t written = 0;
  while (written < line.size()) {
    const ssize_t count = ::write(descriptor, line.data() + written, line.size() - written);
    if (count <= 0) return; // the reader detects a truncated line
    written += size_t(count);
  }
}

} // namespace sluice::emulator::hip
