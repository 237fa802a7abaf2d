//===- options.cpp - the options of the command line ----------------------------------------------------===//

#include "conformance/run/options.h"

#include "conformance/run/suite.h"

#include <algorithm>
#include <charconv>
#include <fstream>
#include <iterator>
#include <span>
#include <string_view>

namespace sluice::conformance {

namespace {

Pack read_pack(const std::string &path) {
  std::ifstream file(path, std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  if (text.empty()) throw UsageError("--pack is '" + path + "'; the file cannot be read or is empty");
  const auto bytes = std::as_bytes(std::span(text));
  return {bytes.begin(), bytes.end()};
}

/// The whole text as a number.
template <typename Number> bool parse(std::string_view text, Number &number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size();
}

void parse_shard(const std::string &text, Options &options) {
  const size_t slash = text.find('/');
  if (slash == text.npos || !parse(text.substr(0, slash), options.shard) ||
      !parse(text.substr(slash + 1), options.shards) || options.shard >= options.shards)
    throw UsageError("--shard is '" + text + "'; it must be I/N with I < N");
}

void check(const Options &options) {
  if (options.device.empty() && !options.list) throw UsageError("--device is missing");
  if (options.all_kernels && options.device == "reference")
    throw UsageError("--all-kernels needs a device with kernels; --device reference uses none");
  if (options.device == "reference" && options.part == "kernels")
    throw UsageError("--part is '" + options.part + "', which needs kernels; --device reference uses none");
  if (options.list && !(options.junit.empty() && options.json.empty()))
    throw UsageError("--list runs nothing that --junit or --json could report");
}

} // namespace

const char *const usage = R"(usage: sluice-conformance --device emulated|hip:N|reference [options]
  --filter PATTERN      only cases whose name matches; *, ? and [a-z] are wild; may be repeated: then
                        cases that match one of them (--case is the same)
  --level LEVEL         quick (default): on each kernel all features at once; full: on each
                        kernel also every feature that it lists on its own, and large appends and merges
  --part PART           dense: plain dense attention; features: every other kind of attention; sample:
                        a third of the features' cases, with every choice in every mode; rest: the
                        other two thirds; kernels: features on each kernel, according to the level;
                        cache: cache operations
  --shard I/N           every N-th case, from the I-th on (I from 0)
  --seed N              other numbers in the same cases (default 0)
  --emulator KEY=VALUE  a setting of the emulator, e.g. completion=random; may be repeated
  --pack FILE           use the kernels of this pack instead of the library's own
  --all-kernels         it is an error if a kernel was used by no case
  --refused-fails       it is an error if the library refuses a case with SLUICE_UNSUPPORTED
  --junit FILE          also write the result of every case as JUnit's XML
  --json FILE           also write it as JSON
  --list                print the names of the cases and run nothing
Exit status: 0: no case failed; 1: a case failed; 2: the command line is wrong; 3: the device does not exist.
)";

Options parse_options(int count, char **arguments) {
  Options options;
  for (int i = 1; i < count; ++i) {
    const std::string name = arguments[i];
    auto value = [&]() -> std::string {
      if (++i == count) throw UsageError(name + " needs a value");
      return arguments[i];
    };
    if (name == "--device") {
      options.device = value();
    } else if (name == "--filter" || name == "--case") {
      options.patterns.push_back(value());
    } else if (name == "--emulator") {
      const std::string text = value();
      const size_t equal = text.find('=');
      if (equal == text.npos) throw UsageError("--emulator is '" + text + "'; it must be KEY=VALUE");
      options.settings.emplace_back(text.substr(0, equal), text.substr(equal + 1));
    } else if (name == "--pack") {
      options.pack_file = value();
      options.pack = read_pack(options.pack_file);
    } else if (name == "--all-kernels") {
      options.all_kernels = true;
    } else if (name == "--refused-fails") {
      options.refused_fails = true;
    } else if (name == "--part") {
      options.part = value();
      if (std::ranges::find(parts, options.part) == parts.end())
        throw UsageError("--part is '" + options.part +
                         "'; it must be dense, features, sample, rest, kernels or cache");
    } else if (name == "--level") {
      const std::string text = value();
      if (text != "quick" && text != "full")
        throw UsageError("--level is '" + text + "'; it must be quick or full");
      options.level = text == "full" ? Level::full : Level::quick;
    } else if (name == "--seed") {
      const std::string text = value();
      if (!parse(text, options.seed))
        throw UsageError("--seed is '" + text + "'; it must be a number below 2^64");
    } else if (name == "--junit") {
      options.junit = value();
      if (options.junit.empty()) throw UsageError("--junit is empty; it must be the name of a file");
    } else if (name == "--json") {
      options.json = value();
      if (options.json.empty()) throw UsageError("--json is empty; it must be the name of a file");
    } else if (name == "--list") {
      options.list = true;
    } else if (name == "--help" || name == "-h") {
      options.help = true;
      return options;
    } else if (name == "--shard") {
      parse_shard(value(), options);
    } else {
      throw UsageError("unknown option " + name);
    }
  }
  check(options);
  return options;
}

std::string command_of(const std::string &program, const Options &options, const std::string &case_name) {
  std::vector<std::string> words = {program, "--device", options.device};
  for (const auto &[key, setting] : options.settings)
    words.insert(words.end(), {"--emulator", key + "=" + setting});
  if (!options.pack_file.empty()) words.insert(words.end(), {"--pack", options.pack_file});
  if (options.seed != 0) words.insert(words.end(), {"--seed", std::to_string(options.seed)});
  if (options.level == Level::full) words.insert(words.end(), {"--level", "full"});
  if (options.refused_fails) words.push_back("--refused-fails");
  words.insert(words.end(), {"--case", case_name});
  return shell_line(words);
}

} // namespace sluice::conformance
