//===- runner.h - cases on an executor, and what became of them -----------------------------------------===//
//
// Beside the numbers of a case and the bytes around them, a run must give the same bits again (one case in
// three), and where the plan says so, the same bits for each sequence alone.
//
//===----------------------------------------------------------------------------------------------------===//
#pragma once

#include "executor.h"
#include "report.h"
#include "suite.h"

#include <cstdio>

namespace sluice::test {

/// One result per case, in their order. Prints a line or more per case to `log`. With `refused_fails`, what
/// was refused has failed. Once the device is lost, the case that lost it has failed and the rest is skipped.
std::vector<Result> run_cases(const std::vector<AnyCase> &cases, Executor &executor, bool refused_fails,
                              std::FILE *log);

/// The name of the case that run_cases runs or has run last, or null outside of it. For signal handlers.
const char *running_case() noexcept;

} // namespace sluice::test
