//===- runner.cpp - runs cases on an executor and judges the results ------------------------------------===//

#include "conformance/run/runner.h"

#include <algorithm>
#include <atomic>
#include <chrono>

namespace sluice::conformance {

namespace {

bool is_repeatable(const Case &c, Executor &executor, const Memory &before, const Memory &after) {
  Memory again = before;
  executor.run(c, again);
  return again.buffers == after.buffers;
}

/// Sequence by sequence, through plans with other bounds.
bool is_batch_invariant(const Case &c, Executor &executor, const Memory &before, const Memory &after) {
  Case other = c;
  other.bounded = !c.bounded;
  Memory again = before;
  for (int b = 0; b < c.batch; ++b)
    executor.run(other, again, b);
  return again.buffers == after.buffers;
}

/// A further run must not be refused if the first was not.
template <typename Check> bool passes(Check check) {
  try {
    return check();
  } catch (const Refused &refusal) {
    throw std::runtime_error(std::string("refused, while the case's first run was not: ") + refusal.what());
  }
}

std::atomic<const char *> running = nullptr;

double seconds_since(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

void add_line(std::string &text, const std::string &line) {
  text += (text.empty() ? "" : "\n") + line;
}

void tell(const Comparison &compared, Result &result) {
  result.o_ratio = compared.o_ratio;
  result.lse_ratio = compared.lse_ratio;
  if (compared.wrong == 0) return;
  add_line(result.reason, std::to_string(compared.wrong) + " wrong elements:");
  add_line(result.reason, compared.details.substr(0, compared.details.find_last_not_of('\n') + 1));
}

/// Fills in the outcome of the case. Throws what the executor throws.
void run_case(const Case &c, Executor &executor, Result &result) {
  const Inputs inputs = make_inputs(c);
  const Memory before = make_memory(c, inputs);
  Memory memory = before;
  result.kernel = executor.run(c, memory);
  tell(compare(c, compute_expected(c, inputs), read_outputs(c, memory), executor.judge()), result);
  const std::string stray = find_stray_write(c, before, memory);
  if (!stray.empty()) add_line(result.reason, stray);
  if (!c.bounded && !passes([&] { return is_repeatable(c, executor, before, memory); }))
    add_line(result.reason, "a second run gave different bits");
  if (c.batch_invariant && !passes([&] { return is_batch_invariant(c, executor, before, memory); }))
    add_line(result.reason, "its sequences, run one by one, gave different bits");
}

void run_case(const AppendCase &c, Executor &executor, Result &result) {
  const AppendInputs inputs = make_inputs(c);
  const AppendMemory before = make_memory(c, inputs);
  AppendMemory memory = before;
  result.kernel = executor.append(c, inputs, memory);
  tell(compare(c, compute_expected(c, inputs, before), before, memory), result);
}

void run_case(const PageCopyCase &c, Executor &executor, Result &result) {
  const PageCopyInputs inputs = make_inputs(c);
  const PageCopyMemory before = make_memory(c, inputs);
  PageCopyMemory memory = before;
  result.kernel = executor.copy_pages(c, inputs, memory);
  tell(compare(c, compute_expected(c, inputs, before), before, memory), result);
}

void run_case(const MergeCase &c, Executor &executor, Result &result) {
  const MergeInputs inputs = make_inputs(c);
  const MergeMemory before = make_memory(c, inputs);
  MergeMemory memory = before;
  result.kernel = executor.merge(c, memory);
  tell(compare(c, compute_expected(c, inputs), before, memory), result);
}

void print(const Result &result, std::FILE *log) {
  const char *const word = result.outcome == Outcome::passed    ? "ok  "
                           : result.outcome == Outcome::refused ? "refused"
                                                                : "FAIL";
  std::fprintf(log, "%s %-64s", word, result.name.c_str());
  if (!result.kernel.empty())
    std::fprintf(log, " %s  error/tolerance O %.2f LSE %.2f  %.0f ms", result.kernel.c_str(), result.o_ratio,
                 result.lse_ratio, result.seconds * 1000);
  std::fputs("\n", log);
  for (size_t begin = 0; begin < result.reason.size();) {
    const size_t end = std::min(result.reason.find('\n', begin), result.reason.size());
    std::fprintf(log, "    %s\n", result.reason.substr(begin, end - begin).c_str());
    begin = end + 1;
  }
  std::fflush(log);
}

} // namespace

const char *running_case() noexcept {
  return running;
}

std::vector<Result> run_cases(const std::vector<AnyCase> &cases, Executor &executor, bool refused_fails,
                              std::FILE *log) {
  std::vector<Result> results;
  std::string lost_by;
  for (const AnyCase &c : cases) {
    Result &result = results.emplace_back(Result{.name = name_of(c)});
    if (!lost_by.empty()) {
      result.outcome = Outcome::skipped;
      result.reason = "the device was lost in " + lost_by;
      continue;
    }
    const auto begin = std::chrono::steady_clock::now();
    running = name_of(c).c_str();
    try {
      std::visit([&](const auto &one) { run_case(one, executor, result); }, c);
      result.outcome = result.reason.empty() ? Outcome::passed : Outcome::failed;
    } catch (const Refused &refusal) {
      result.outcome = refused_fails ? Outcome::failed : Outcome::refused;
      result.reason = refusal.what();
      result.refused_field = refusal.field;
    } catch (const DeviceLost &error) {
      result.outcome = Outcome::failed;
      add_line(result.reason, error.what());
      lost_by = name_of(c);
    } catch (const std::exception &error) {
      result.outcome = Outcome::failed;
      add_line(result.reason, error.what());
    }
    result.seconds = seconds_since(begin);
    print(result, log);
  }
  running = nullptr;
  return results;
}

} // namespace sluice::conformance
