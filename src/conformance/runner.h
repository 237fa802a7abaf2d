//===- runner.h - cases on an executor, and what became of them -----------------------------------------===//
//
// Beside the numbers of a case and the bytes around them, a run must give the same bits again (one case in
// three), and where the plan says so, the same bits for each sequence alone.
//
//===----------------------------------------------------------------------------------------------------===//
#pragma once

#include "executor.h"

#include <cstdio>
#include <map>

namespace sluice::test {

struct Tally {
  size_t passed = 0, failed = 0;
  std::map<std::string, size_t> refused; // by the field that the refusal names

  size_t refused_in_all() const;
  bool is_good(bool refused_fails) const { return failed == 0 && !(refused_fails && refused_in_all() != 0); }
};

/// Prints a line or more per case to `log`. Throws DeviceLost. With `refused_fails`, what was refused is
/// marked as what failed is.
Tally run_cases(const std::vector<Case> &cases, Executor &executor, bool refused_fails, std::FILE *log);

/// How many passed and how many were refused, by field.
void print_tally(const Tally &tally, const std::string &device, const std::string &summary, std::FILE *log);

} // namespace sluice::test
