//===- conformance.cpp - runs the suite on one executor -------------------------------------------------===//
//
// Exit status: 0 all passed, 1 something is wrong, 2 usage, 77 the executor is not on this machine (CTest:
// skipped).
//
//===----------------------------------------------------------------------------------------------------===//
#include "executor.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fnmatch.h>
#include <fstream>
#include <iterator>
#include <map>
#include <span>
#include <string_view>

namespace {

using namespace sluice::test;

constexpr int exit_skipped = 77;

constexpr const char *usage = R"(usage: conformance --device emulated|hip:N|reference [options]
  --case PATTERN        only cases whose name matches; * and ? are wild
  --part PART           dense: plain dense attention; features: all else; sample: every second case of the
                        features; rest: the others of them
  --shard I/N           every N-th case, from the I-th on (I from 0)
  --emulator KEY=VALUE  a setting of the emulator, e.g. completion=random; may be repeated
  --pack FILE           the kernels of this pack instead of the library's own
  --all-kernels         it is an error if a kernel was used by no case
  --refused-fails       it is an error if the library refuses a case with SLUICE_UNSUPPORTED
  --list                print the names of the cases, run nothing
)";

constexpr std::array<std::string_view, 4> parts = {"dense", "features", "sample", "rest"};

struct Options {
  std::string device, pattern, part;
  std::vector<std::pair<std::string, std::string>> settings;
  bool list = false, all_kernels = false, refused_fails = false;
  Pack pack;
  size_t shard = 0, shards = 1;
};

Pack read_pack(const std::string &path) {
  std::ifstream file(path, std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  if (text.empty()) throw std::runtime_error("cannot read " + path);
  const auto bytes = std::as_bytes(std::span(text));
  return {bytes.begin(), bytes.end()};
}

Options parse_options(int count, char **arguments) {
  Options options;
  for (int i = 1; i < count; ++i) {
    const std::string name = arguments[i];
    auto value = [&]() -> std::string {
      if (++i == count) throw std::runtime_error(name + " needs a value");
      return arguments[i];
    };
    if (name == "--device") {
      options.device = value();
    } else if (name == "--case") {
      options.pattern = value();
    } else if (name == "--emulator") {
      const std::string text = value();
      const size_t equal = text.find('=');
      if (equal == std::string::npos)
        throw std::runtime_error("--emulator is '" + text + "'; it is KEY=VALUE");
      options.settings.emplace_back(text.substr(0, equal), text.substr(equal + 1));
    } else if (name == "--pack") {
      options.pack = read_pack(value());
    } else if (name == "--all-kernels") {
      options.all_kernels = true;
    } else if (name == "--refused-fails") {
      options.refused_fails = true;
    } else if (name == "--part") {
      options.part = value();
      if (std::find(parts.begin(), parts.end(), options.part) == parts.end())
        throw std::runtime_error("--part is '" + options.part + "'; it is dense, features, sample or rest");
    } else if (name == "--list") {
      options.list = true;
    } else if (name == "--shard") {
      const std::string text = value();
      if (std::sscanf(text.c_str(), "%zu/%zu", &options.shard, &options.shards) != 2 ||
          options.shard >= options.shards)
        throw std::runtime_error("--shard is '" + text + "'; it is I/N with I < N");
    } else {
      throw std::runtime_error("there is no option " + name);
    }
  }
  if (options.device.empty() && !options.list) throw std::runtime_error("--device is missing");
  return options;
}

std::vector<Case> cases_of(const Options &options) {
  const Shapes shapes = kernel_shapes(options.pack);
  std::vector<Case> cases;
  if (options.part.empty() || options.part == "dense") cases = dense_cases(shapes);
  if (options.part == "dense") return cases;
  std::vector<Case> features = feature_cases(shapes);
  for (size_t i = 0; i < features.size(); ++i)
    if ((options.part == "sample" && i % 2 == 1) || (options.part == "rest" && i % 2 == 0))
      continue;
    else
      cases.push_back(std::move(features[i]));
  return cases;
}

std::vector<Case> chosen_cases(const Options &options) {
  std::vector<Case> chosen;
  size_t index = 0;
  for (Case &c : cases_of(options))
    if (index++ % options.shards == options.shard &&
        (options.pattern.empty() || fnmatch(options.pattern.c_str(), c.name.c_str(), 0) == 0))
      chosen.push_back(std::move(c));
  return chosen;
}

/// What a further run must give the same bits as.
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

struct Tally {
  size_t passed = 0, failed = 0;
  std::map<std::string, size_t> refused; // by field
  size_t refused_in_all() const {
    size_t count = 0;
    for (const auto &[field, cases] : refused)
      count += cases;
    return count;
  }
};

/// Prints the outcome; true if the case passed. Throws Refused.
bool run_case(const Case &c, Executor &executor) {
  const auto begin = std::chrono::steady_clock::now();
  const Inputs inputs = make_inputs(c);
  const Memory before = make_memory(c, inputs);
  Memory memory = before;
  std::string what_ran;
  try {
    what_ran = executor.run(c, memory);
  } catch (const DeviceLost &) {
    std::printf("FAIL %s\n", c.name.c_str());
    throw;
  } catch (const Refused &) {
    throw;
  } catch (const std::exception &error) {
    std::printf("FAIL %s\n    %s\n", c.name.c_str(), error.what());
    return false;
  }
  const auto ran = std::chrono::steady_clock::now();
  const Comparison result =
      compare(c, compute_expected(c, inputs), read_outputs(c, memory), executor.judge());
  const std::string stray = find_stray_write(c, before, memory);
  // One case in three runs again: equal calls give equal bits.
  const bool repeatable = c.bounded || is_repeatable(c, executor, before, memory);
  const bool invariant = !c.batch_invariant || is_batch_invariant(c, executor, before, memory);
  const bool passed = result.wrong == 0 && stray.empty() && repeatable && invariant;
  std::printf("%s %-64s %s  error/tolerance O %.2f LSE %.2f  %.0f ms\n", passed ? "ok  " : "FAIL",
              c.name.c_str(), what_ran.c_str(), result.o_ratio, result.lse_ratio,
              std::chrono::duration<double, std::milli>(ran - begin).count());
  if (result.wrong != 0) std::printf("    %zu wrong elements:\n%s", result.wrong, result.details.c_str());
  if (!stray.empty()) std::printf("    %s\n", stray.c_str());
  if (!repeatable) std::puts("    a second run gave other bits");
  if (!invariant) std::puts("    its sequences one by one gave other bits");
  return passed;
}

int run(const Options &options) {
  const std::vector<Case> cases = chosen_cases(options);
  if (cases.empty()) throw std::runtime_error("no case matches");
  if (options.list) {
    for (const Case &c : cases)
      std::puts(c.name.c_str());
    return 0;
  }
  std::unique_ptr<Executor> executor;
  try {
    executor = make_executor(options.device, options.settings, options.pack);
  } catch (const NotHere &reason) {
    // The emulator comes with the library; without it there is nothing to skip, something is broken.
    const bool broken = options.device == "emulated";
    std::printf("%s: %s: %s\n", broken ? "FAIL" : "SKIPPED", options.device.c_str(), reason.what());
    return broken ? 1 : exit_skipped;
  }
  Tally tally;
  size_t unused = 0;
  for (const Case &c : cases) {
    try {
      ++(run_case(c, *executor) ? tally.passed : tally.failed);
    } catch (const Refused &refusal) {
      ++tally.refused[refusal.field];
      std::printf("%s %s\n    %s\n", options.refused_fails ? "FAIL" : "refused", c.name.c_str(),
                  refusal.what());
    }
    std::fflush(stdout);
  }
  if (options.all_kernels)
    for (const std::string &kernel : executor->unused_kernels()) {
      std::printf("FAIL no case used %s\n", kernel.c_str());
      ++unused;
    }
  const size_t refused = tally.refused_in_all();
  std::printf("%zu of %zu cases passed on %s: %s\n", tally.passed, cases.size() - refused,
              options.device.c_str(), executor->summary().c_str());
  if (refused != 0) {
    std::printf("%zu of %zu cases refused:", refused, cases.size());
    for (const auto &[field, count] : tally.refused)
      std::printf(" %s %zu", field.c_str(), count);
    std::puts("");
  }
  return tally.failed + unused == 0 && !(options.refused_fails && refused != 0) ? 0 : 1;
}

} // namespace

int main(int count, char **arguments) {
  Options options;
  try {
    options = parse_options(count, arguments);
  } catch (const std::exception &error) {
    std::fprintf(stderr, "conformance: %s\n%s", error.what(), usage);
    return 2;
  }
  try {
    return run(options);
  } catch (const std::exception &error) {
    std::fflush(stdout);
    std::fprintf(stderr, "conformance: %s\n", error.what());
    return 1;
  }
}
