//===- hip_fixture.h - compiled HIP programs on the machine ---------------------------------------------===//
//
// Every program is compiled at -O0, -O1 and -O3 and runs with all checks under each order of completion, and
// without checks on several threads. A report is a failure.
//
//===----------------------------------------------------------------------------------------------------===//
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <random>

#include <catch2/catch.hpp>

#include "isa/kernel_fixture.h"

namespace sluice::test {

struct Build {
  const char *optimisation;
  const char *file;
};

inline const emulator::Program &program_of(const Build &build) {
  static std::map<std::string, std::unique_ptr<emulator::Program>> programs;
  std::unique_ptr<emulator::Program> &program = programs[build.file];
  if (!program) program = std::make_unique<emulator::Program>(read_file(build.file));
  return *program;
}

struct Mode {
  const char *name;
  Options options;
};

inline std::vector<Mode> all_modes() {
  std::vector<Mode> modes;
  for (const auto &[name, order] :
       {std::pair("late", CompletionOrder::late), std::pair("early", CompletionOrder::early),
        std::pair("random", CompletionOrder::random)}) {
    modes.push_back({name, {}});
    modes.back().options.completion = order;
    modes.back().options.threads = 2;
  }
  modes.push_back({"unchecked", {}});
  modes.back().options.checks = Checks::none();
  modes.back().options.completion = CompletionOrder::early;
  modes.back().options.threads = 2;
  return modes;
}

template <class T> std::span<T> device(Memory &memory, size_t count) {
  T *data = static_cast<T *>(memory.allocate(count * sizeof(T)));
  REQUIRE(data != nullptr);
  return {data, count};
}

/// Arguments as the host code of a HIP program packs them: each at its own alignment.
class Arguments {
public:
  template <class... T> explicit Arguments(const T &...values) { (append(values), ...); }
  std::span<const std::byte> bytes() const { return packed; }

private:
  template <class T> void append(const T &value) {
    packed.resize((packed.size() + alignof(T) - 1) / alignof(T) * alignof(T));
    const auto *start = reinterpret_cast<const std::byte *>(&value);
    packed.insert(packed.end(), start, start + sizeof value);
  }
  std::vector<std::byte> packed;
};

struct Launch {
  const char *kernel;
  std::array<uint32_t, 3> grid;
  std::array<uint32_t, 3> block;
  uint32_t dynamic_lds_bytes = 0;
};

/// Launches in every build and mode; `prepare` before and `check` after each.
inline void run_everywhere(std::span<const Build> builds, const Launch &launch, const Memory &memory,
                           const Arguments &arguments, const std::function<void()> &prepare,
                           const std::function<void()> &check) {
  for (const Build &build : builds)
    for (const Mode &mode : all_modes()) {
      prepare();
      const LaunchResult result =
          emulator::launch(program_of(build), launch.kernel, launch.grid, launch.block,
                           launch.dynamic_lds_bytes, arguments.bytes(), memory, mode.options);
      INFO(launch.kernel << " at " << build.optimisation << ", " << mode.name << "\n" << all_text(result));
      REQUIRE(result.ok());
      check();
    }
}

/// True if both have the same bits, so that NaN and -0 count; reports where they differ.
template <class A, class B> bool same(const A &got, const B &expected) {
  REQUIRE(got.size() == expected.size());
  for (size_t i = 0; i < got.size(); ++i) {
    if (std::memcmp(&got[i], &expected[i], sizeof got[i]) == 0) continue;
    UNSCOPED_INFO("at " << i << ": " << +got[i] << ", expected " << +expected[i]);
    return false;
  }
  return true;
}

#define SLUICE_BUILDS(name)                                                                                  \
  constexpr Build builds[] = {{"-O0", SLUICE_CODE_OBJECT_HIP_##name##_O0},                                   \
                              {"-O1", SLUICE_CODE_OBJECT_HIP_##name##_O1},                                   \
                              {"-O3", SLUICE_CODE_OBJECT_HIP_##name##_O3}}

} // namespace sluice::test
