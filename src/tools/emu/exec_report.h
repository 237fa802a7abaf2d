//===- exec_report.h - what a program's launches have reported, in files --------------------------------===//
//
//   text    as on stderr
//   json    reports, counters and the program's status
//   junit   JUnit's XML: a test case for each kernel, and one for what belongs to no kernel
//   sarif   SARIF 2.1.0: a result for each report
//
//===----------------------------------------------------------------------------------------------------===//
#pragma once

#include "tools/emu/commands.h"
#include "tools/emu/exec_results.h"

#include <string>
#include <string_view>
#include <utility>

namespace sluice::tools::emu {

struct ExecRun {
  const ExecOptions &options;
  int status; // the program's, as a shell has it
  const ExecResults &results;
};

std::string exec_text(const ExecRun &run);
std::string exec_json(const ExecRun &run);
std::string exec_junit(const ExecRun &run);
std::string exec_sarif(const ExecRun &run);

using ExecFormat = std::string (*)(const ExecRun &run);
/// FORMAT:FILE, as the user wrote it. Throws ToolError.
std::pair<ExecFormat, std::string> parse_report_option(std::string_view text);

/// "file:line" of the innermost frame of a report's source or host call: "f, file:8, inlined at file:9" has
/// the file "file" and the line 8. The line is 0 if the text has none.
struct SourcePlace {
  std::string file;
  uint32_t line = 0;
};
SourcePlace source_place(std::string_view source);

} // namespace sluice::tools::emu
