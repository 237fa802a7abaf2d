//===- runner.h - runs cases on an executor and judges the results --------------------------------------===//
//
// Besides correct numbers and intact bytes around them, a run must give the same bits again (one case in
// three), and if the plan promises it, the same bits for each sequence on its own.
//
//===----------------------------------------------------------------------------------------------------===//
#pragma once

#include "conformance/run/executor.h"
#include "conformance/run/report.h"
#include "conformance/run/suite.h"

#include <cstdio>

namespace sluice::conformance {

/// One result per case, in order. Prints a line or more per case to `log`. With `refused_fails`, refused
/// cases count as failed. Once the device is lost, the case that lost it has failed and the rest are skipped.
std::vector<Result> run_cases(const std::vector<AnyCase> &cases, Executor &executor, bool refused_fails,
                              std::FILE *log);

/// The name of the case that run_cases is running or ran last, or null outside of it. For signal handlers.
const char *running_case() noexcept;

} // namespace sluice::conformance
