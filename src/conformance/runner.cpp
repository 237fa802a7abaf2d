//===- runner.cpp - cases on an executor, and what became of them ---------------------------------------===//

#include "runner.h"

#include <chrono>

namespace sluice::test {

namespace {

bool is_repeatable(const Case &c, Executor &executor, const Memory &before, const Memory &after) {
  Memory again = before;
  executor.run(c, again);
  return again.buffers == after.buffers;
}

/// Sequence by sequence, through plans with other bounds.
bool is_batch_invariant(const Case &c, Executor &executor, const Memory &before, const Memory &after) {
  Case alone = c;
  alone.bounded = !c.bounded;
  Memory again = before;
  for (int b = 0; b < c.batch; ++b)
    executor.run(alone, again, b);
  return again.buffers == after.buffers;
}

/// What runs beside the first must not be refused where that was not.
template <typename Check> bool passes(Check check) {
  try {
    return check();
  } catch (const Refused &refusal) {
    throw std::runtime_error(std::string("refused, while the case's first run was not: ") + refusal.what());
  }
}

/// Prints the outcome; true if the case passed.
bool run_case(const Case &c, Executor &executor, std::FILE *log) {
  const auto begin = std::chrono::steady_clock::now();
  const Inputs inputs = make_inputs(c);
  const Memory before = make_memory(c, inputs);
  Memory memory = before;
  const std::string what_ran = executor.run(c, memory);
  const auto ran = std::chrono::steady_clock::now();
  const Comparison result =
      compare(c, compute_expected(c, inputs), read_outputs(c, memory), executor.judge());
  const std::string stray = find_stray_write(c, before, memory);
  const bool repeatable = c.bounded || passes([&] { return is_repeatable(c, executor, before, memory); });
  const bool invariant =
      !c.batch_invariant || passes([&] { return is_batch_invariant(c, executor, before, memory); });
  const bool passed = result.wrong == 0 && stray.empty() && repeatable && invariant;
  std::fprintf(log, "%s %-64s %s  error/tolerance O %.2f LSE %.2f  %.0f ms\n", passed ? "ok  " : "FAIL",
               c.name.c_str(), what_ran.c_str(), result.o_ratio, result.lse_ratio,
               std::chrono::duration<double, std::milli>(ran - begin).count());
  if (result.wrong != 0)
    std::fprintf(log, "    %zu wrong elements:\n%s", result.wrong, result.details.c_str());
  if (!stray.empty()) std::fprintf(log, "    %s\n", stray.c_str());
  if (!repeatable) std::fputs("    a second run gave other bits\n", log);
  if (!invariant) std::fputs("    its sequences one by one gave other bits\n", log);
  return passed;
}

} // namespace

size_t Tally::refused_in_all() const {
  size_t count = 0;
  for (const auto &[field, cases] : refused)
    count += cases;
  return count;
}

Tally run_cases(const std::vector<Case> &cases, Executor &executor, bool refused_fails, std::FILE *log) {
  Tally tally;
  for (const Case &c : cases) {
    try {
      ++(run_case(c, executor, log) ? tally.passed : tally.failed);
    } catch (const DeviceLost &) {
      std::fprintf(log, "FAIL %s\n", c.name.c_str());
      throw;
    } catch (const Refused &refusal) {
      ++tally.refused[refusal.field];
      std::fprintf(log, "%s %s\n    %s\n", refused_fails ? "FAIL" : "refused", c.name.c_str(),
                   refusal.what());
    } catch (const std::exception &error) {
      ++tally.failed;
      std::fprintf(log, "FAIL %s\n    %s\n", c.name.c_str(), error.what());
    }
    std::fflush(log);
  }
  return tally;
}

void print_tally(const Tally &tally, const std::string &device, const std::string &summary, std::FILE *log) {
  std::fprintf(log, "%zu of %zu cases passed on %s: %s\n", tally.passed, tally.passed + tally.failed,
               device.c_str(), summary.c_str());
  const size_t refused = tally.refused_in_all();
  if (refused == 0) return;
  std::fprintf(log, "%zu of %zu cases refused:", refused, tally.passed + tally.failed + refused);
  for (const auto &[field, count] : tally.refused)
    std::fprintf(log, " %s %zu", field.c_str(), count);
  std::fputs("\n", log);
}

} // namespace sluice::test
