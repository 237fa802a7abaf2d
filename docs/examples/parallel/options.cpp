//===- options.cpp - what the command line asks for -----------------------------------------------------===//

#include "options.h"

#include <charconv>
#include <initializer_list>
#include <string_view>

namespace parallel {

const char *const usage =
    R"(usage: mpirun -n RANKS sluice_parallel [OPTION VALUE]...
  --prefill TOKENS             a causal prompt, by heads and as a ring
  --decode KEYS                a step of decoding
  --heads N                    query heads (default 4), for --prefill a multiple of the ranks
  --kv-heads N                 KV heads (default 4), for --prefill a multiple of the ranks
  --dim N                      elements of a head (default 64)
  --device emulated|hip        emulated (default), or the GPU whose number is that of the rank in its node
  --buffers host|device        memory that MPI gets pointers to: pinned on the host, or on the device (default
                               where MPI says that it takes pointers to a GPU's memory)
  --against device|reference   compare results with one device's (default), or with double precision on the
                               host, which takes long
  --hold-runs on|off           on: each run of the ring begins when the messages of its step are there, so a
                               program that waits for the run first never ends (default off)
  --fail HOW                   the last rank fails in a ring of 64 tokens, by HOW: shape, error, fault, exit
                               or throw
)";

namespace {

int64_t number_of(const std::string &name, std::string_view value) {
  int64_t number = 0;
  const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), number);
  if (error != std::errc() || end != value.data() + value.size() || number < 1 || number > (1 << 24))
    throw std::runtime_error(name + " is '" + std::string(value) + "'; it must be a number from 1 to " +
                             std::to_string(1 << 24));
  return number;
}

/// The one of `choices` that is called `value`.
template <class T>
T choice_of(const std::string &name, std::string_view value,
            std::initializer_list<std::pair<const char *, T>> choices) {
  std::string all;
  for (const auto &[called, choice] : choices) {
    if (value == called) return choice;
    all += std::string(all.empty() ? "" : ", ") + called;
  }
  throw std::runtime_error(name + " is '" + std::string(value) + "'; it must be one of " + all);
}

} // namespace

Options parse(int count, char **arguments) {
  Options options;
  for (int i = 1; i < count; i += 2) {
    const std::string name = arguments[i];
    if (i + 1 == count) throw std::runtime_error(name + " needs a value\n" + usage);
    const std::string_view value = arguments[i + 1];
    if (name == "--prefill")
      options.prefill = number_of(name, value);
    else if (name == "--decode")
      options.decode = number_of(name, value);
    else if (name == "--heads")
      options.heads = number_of(name, value);
    else if (name == "--kv-heads")
      options.kv_heads = number_of(name, value);
    else if (name == "--dim")
      options.dim = number_of(name, value);
    else if (name == "--device")
      options.device = choice_of<sluice_device_kind>(
          name, value, {{"emulated", SLUICE_DEVICE_EMULATED}, {"hip", SLUICE_DEVICE_HIP}});
    else if (name == "--buffers")
      options.buffers =
          choice_of<Buffers>(name, value, {{"host", Buffers::host}, {"device", Buffers::device}});
    else if (name == "--against")
      options.against_reference = choice_of<bool>(name, value, {{"device", false}, {"reference", true}});
    else if (name == "--hold-runs")
      options.hold_runs = choice_of<bool>(name, value, {{"on", true}, {"off", false}});
    else if (name == "--fail")
      options.fail = choice_of<Failure>(name, value,
                                        {{"shape", Failure::shape},
                                         {"error", Failure::error},
                                         {"fault", Failure::fault},
                                         {"exit", Failure::exit},
                                         {"throw", Failure::throws}});
    else
      throw std::runtime_error("unknown option " + name + "\n" + usage);
  }
  if (!options.prefill && !options.decode && options.fail == Failure::none)
    throw std::runtime_error(std::string("nothing to do: give --prefill, --decode or --fail\n") + usage);
  return options;
}

} // namespace parallel
