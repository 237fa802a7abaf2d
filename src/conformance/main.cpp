//===- conformance.cpp - runs the suite on one executor -------------------------------------------------===//
//
// Exit status: 0 all passed, 1 something is wrong, 2 usage, 77 the executor is not on this machine (CTest:
// skipped).
//
//===----------------------------------------------------------------------------------------------------===//
#include "runner.h"
#include "sample.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fnmatch.h>
#include <fstream>
#include <iterator>
#include <span>
#include <string_view>

namespace {

using namespace sluice::test;

constexpr int exit_skipped = 77;

constexpr const char *usage = R"(usage: conformance --device emulated|hip:N|reference [options]
  --case PATTERN        only cases whose name matches; *, ? and [a-z] are wild
  --part PART           dense: plain dense attention; features: all else; sample: a third of the
                        features' cases, with every choice in every mode; rest: the others of them
  --shard I/N           every N-th case, from the I-th on (I from 0)
  --emulator KEY=VALUE  a setting of the emulator, e.g. completion=random; may be repeated
  --pack FILE           the kernels of this pack instead of the library's own
  --all-kernels         it is an error if a kernel was used by no case
  --refused-fails       it is an error if the library refuses a case with SLUICE_UNSUPPORTED
  --list                print the names of the cases, run nothing
)";

constexpr std::array<std::string_view, 4> parts = {"dense", "features", "sample", "rest"};

// Beside those of the kernels, for sluice_reference, which computes any.
const Shapes other_shapes = {{{Dtype::f16, {192, 128}}, {Dtype::bf16, {576, 512}}, {Dtype::f16, {80, 48}}}};

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
  if (options.device == "reference") {
    Shapes others = other_shapes;
    std::erase_if(others.all, [&](const auto &shape) {
      return std::ranges::any_of(shapes.all, [&](const auto &other) {
        return other.dtype == shape.dtype && other.head_size == shape.head_size;
      });
    });
    if (!others.all.empty())
      for (Case &c : single_feature_cases(others))
        features.push_back(std::move(c));
  }
  const std::vector<bool> in_sample = sample_of(features);
  for (size_t i = 0; i < features.size(); ++i)
    if (options.part != (in_sample[i] ? "rest" : "sample")) cases.push_back(std::move(features[i]));
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
  const Tally tally = run_cases(cases, *executor, options.refused_fails, stdout);
  size_t unused = 0;
  if (options.all_kernels)
    for (const std::string &kernel : executor->unused_kernels()) {
      std::printf("FAIL no case used %s\n", kernel.c_str());
      ++unused;
    }
  print_tally(tally, options.device, executor->summary(), stdout);
  return tally.is_good(options.refused_fails) && unused == 0 ? 0 : 1;
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
