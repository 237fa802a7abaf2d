//===- conformance.cpp - runs the suite on one executor -------------------------------------------------===//
//
// Exit status: 0 all passed, 1 something is wrong, 2 usage, 77 the executor is not on this machine (CTest:
// skipped).
//
//===----------------------------------------------------------------------------------------------------===//
#include "executor.h"

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fnmatch.h>
#include <fstream>
#include <iterator>
#include <span>

namespace {

using namespace sluice::test;

constexpr int exit_skipped = 77;

constexpr const char *usage = R"(usage: conformance --device emulated|hip:N|reference [options]
  --case PATTERN        only cases whose name matches; * and ? are wild
  --shard I/N           every N-th case, from the I-th on (I from 0)
  --emulator KEY=VALUE  a setting of the emulator, e.g. completion=random; may be repeated
  --pack FILE           the kernels of this pack instead of the library's own
  --all-kernels         it is an error if a kernel was used by no case
  --list                print the names of the cases, run nothing
)";

struct Options {
  std::string device, pattern;
  std::vector<std::pair<std::string, std::string>> settings;
  bool list = false, all_kernels = false;
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

std::vector<Case> chosen_cases(const Options &options) {
  std::vector<Case> chosen;
  size_t index = 0;
  for (Case &c : all_cases(kernel_shapes(options.pack)))
    if (index++ % options.shards == options.shard &&
        (options.pattern.empty() || fnmatch(options.pattern.c_str(), c.name.c_str(), 0) == 0))
      chosen.push_back(std::move(c));
  return chosen;
}

/// Prints the outcome; true if the case passed.
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
  } catch (const std::exception &error) {
    std::printf("FAIL %s\n    %s\n", c.name.c_str(), error.what());
    return false;
  }
  const auto ran = std::chrono::steady_clock::now();
  const Comparison result =
      compare(c, compute_expected(c, inputs), read_outputs(c, memory), executor.judge());
  const std::string stray = find_stray_write(c, before, memory);
  // One case in three runs again: equal calls give equal bits.
  bool repeatable = true;
  if (!c.bounded) {
    Memory again = before;
    executor.run(c, again);
    repeatable = again.buffers == memory.buffers;
  }
  const bool passed = result.wrong == 0 && stray.empty() && repeatable;
  std::printf("%s %-64s %s  error/tolerance O %.2f LSE %.2f  %.0f ms\n", passed ? "ok  " : "FAIL",
              c.name.c_str(), what_ran.c_str(), result.o_ratio, result.lse_ratio,
              std::chrono::duration<double, std::milli>(ran - begin).count());
  if (result.wrong != 0) std::printf("    %zu wrong elements:\n%s", result.wrong, result.details.c_str());
  if (!stray.empty()) std::printf("    %s\n", stray.c_str());
  if (!repeatable) std::puts("    a second run gave other bits");
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
  size_t failed = 0, unused = 0;
  for (const Case &c : cases) {
    failed += !run_case(c, *executor);
    std::fflush(stdout);
  }
  if (options.all_kernels)
    for (const std::string &kernel : executor->unused_kernels()) {
      std::printf("FAIL no case used %s\n", kernel.c_str());
      ++unused;
    }
  std::printf("%zu of %zu cases passed on %s: %s\n", cases.size() - failed, cases.size(),
              options.device.c_str(), executor->summary().c_str());
  return failed + unused == 0 ? 0 : 1;
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
