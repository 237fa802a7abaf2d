//===- memory_fixture.h - programs between two buffers --------------------------------------------------===//
//
// A short program runs with every check and without checks: it must give no report, and the same result
// twice. s[8:9] is the input, s[12:13] the output; v0 the lane, v1 = 4 * lane, v2 = 16 * lane, v3 = 8 * lane.
//
//===----------------------------------------------------------------------------------------------------===//
#pragma once

#include <catch2/catch.hpp>

#include <functional>
#include <random>

#include "isa/kernel_fixture.h"

namespace sluice::test {

inline const std::string memory_setup = R"(
  s_load_dwordx2 s[8:9], s[0:1], 0x0
  s_load_dwordx2 s[12:13], s[0:1], 0x8
  v_and_b32_e32 v0, 0x3ff, v0
  v_lshlrev_b32_e32 v1, 2, v0
  v_lshlrev_b32_e32 v2, 4, v0
  v_lshlrev_b32_e32 v3, 3, v0
  s_waitcnt lgkmcnt(0)
)";
inline const std::string wait_all = "s_waitcnt vmcnt(0) lgkmcnt(0)\n";

/// "v4" or "v[4:5]".
inline std::string row_range(uint32_t first, uint32_t dwords) {
  const std::string name = std::to_string(first);
  return dwords == 1 ? "v" + name : "v[" + name + ":" + std::to_string(first + dwords - 1) + "]";
}

struct MemoryRun {
  static constexpr uint32_t bytes = 8192;
  static constexpr uint8_t untouched = 0xee;
  using Fill = std::function<void(uint8_t *)>;

  Memory memory;
  uint8_t *input = static_cast<uint8_t *>(memory.allocate(bytes));
  uint32_t *output = static_cast<uint32_t *>(memory.allocate(bytes));

  static void fill_with_noise(uint8_t *at) {
    std::mt19937 random(7);
    for (uint32_t i = 0; i < bytes; ++i)
      at[i] = uint8_t(random());
  }

  explicit MemoryRun(const std::string &body, const Fill &fill = fill_with_noise,
                     LaunchShape shape = {.lds_bytes = 8192}) {
    const std::string source = memory_setup + body + wait_all + "s_endpgm";
    const TestKernel kernel(source);
    std::vector<uint8_t> first_input, first_output;
    for (bool checked : {true, false}) {
      fill(input);
      std::memset(output, untouched, bytes);
      Options options;
      if (!checked) {
        options.checks = Checks::none();
        options.completion = CompletionOrder::early;
      }
      const LaunchResult result = kernel.run(
          memory, {reinterpret_cast<uint64_t>(input), reinterpret_cast<uint64_t>(output)}, shape, options);
      INFO(source << all_text(result));
      REQUIRE(result.ok());
      if (!checked) continue;
      first_input.assign(input, input + bytes);
      first_output.assign(reinterpret_cast<uint8_t *>(output), reinterpret_cast<uint8_t *>(output) + bytes);
    }
    CHECK(std::memcmp(first_input.data(), input, bytes) == 0);
    CHECK(std::memcmp(first_output.data(), output, bytes) == 0);
  }

  template <class T> T in(uint32_t byte) const { return at<T>(input, byte); }
  template <class T> T out(uint32_t byte) const { return at<T>(output, byte); }

private:
  template <class T> static T at(const void *from, uint32_t byte) {
    T value;
    std::memcpy(&value, static_cast<const uint8_t *>(from) + byte, sizeof value);
    return value;
  }
};

/// Everything that is reported for a program, as text; it is launched with all checks.
inline LaunchResult run_checked(const std::string &body, LaunchShape shape = {.lds_bytes = 8192}) {
  Memory memory;
  auto *input = static_cast<uint8_t *>(memory.allocate(MemoryRun::bytes));
  auto *output = static_cast<uint8_t *>(memory.allocate(MemoryRun::bytes));
  MemoryRun::fill_with_noise(input);
  MemoryRun::fill_with_noise(output);
  const TestKernel kernel(memory_setup + body + "s_endpgm");
  return kernel.run(memory, {reinterpret_cast<uint64_t>(input), reinterpret_cast<uint64_t>(output)}, shape);
}

} // namespace sluice::test
