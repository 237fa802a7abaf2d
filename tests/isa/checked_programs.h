//===- checked_programs.h - programs for which a report is expected, or none ----------------------------===//
#pragma once

#include <catch2/catch.hpp>

#include "isa/kernel_fixture.h"

namespace sluice::test {

inline constexpr CompletionOrder orders[] = {CompletionOrder::late, CompletionOrder::early,
                                             CompletionOrder::random};

struct Buffers {
  Memory memory;
  uint32_t *data = static_cast<uint32_t *>(memory.allocate(64 << 10));
  Buffers() {
    for (uint32_t i = 0; i < (64 << 10) / 4; ++i)
      data[i] = i;
  }
  std::array<uint64_t, 8> arguments() const { return {reinterpret_cast<uint64_t>(data)}; }
};

/// Runs under every order of completion and expects exactly one report, at the instruction with this prefix.
inline Report expect_report(const std::string &source, ReportKind kind, std::string_view instruction,
                            std::string_view other = "", LaunchShape shape = {}) {
  const TestKernel kernel(source);
  Report last;
  for (CompletionOrder order : orders) {
    Buffers buffers;
    Options options;
    options.completion = order;
    const LaunchResult result = kernel.run(buffers.memory, buffers.arguments(), shape, options);
    INFO(source);
    last = only(result, kind);
    CHECK(last.kernel == shape.kernel);
    CHECK_THAT(last.disassembly, Catch::StartsWith(std::string(instruction)));
    // The PC is that of the given instruction.
    const std::string listing = kernel.program.disassemble(shape.kernel);
    char line[64];
    std::snprintf(line, sizeof line, "%06llx: ", static_cast<unsigned long long>(last.pc));
    CHECK(listing.find(line + last.disassembly) != std::string::npos);
    CHECK(last.other.has_value() == !other.empty());
    if (last.other) CHECK_THAT(last.other->disassembly, Catch::StartsWith(std::string(other)));
  }
  return last;
}

inline void expect_silence(const std::string &source, LaunchShape shape = {}) {
  const TestKernel kernel(source);
  for (CompletionOrder order : orders) {
    Buffers buffers;
    Options options;
    options.completion = order;
    const LaunchResult result = kernel.run(buffers.memory, buffers.arguments(), shape, options);
    INFO(source << all_text(result));
    CHECK(result.ok());
  }
}

// s[8:11]: a buffer resource over the data; v1: the work-item times 4; s5: the wave's number.
inline const std::string setup = R"(
  s_load_dwordx2 s[8:9], s[0:1], 0x0
  s_mov_b32 s10, 0x10000
  s_mov_b32 s11, 0x00027000
  v_and_b32_e32 v0, 0x3ff, v0
  v_lshlrev_b32_e32 v1, 2, v0
  v_lshrrev_b32_e32 v2, 6, v0
  s_mov_b32 m0, 0
  v_readfirstlane_b32 s5, v2
  s_waitcnt lgkmcnt(0)
)";
inline const std::string end = "s_endpgm\n";
inline const std::string copy = "buffer_load_dword v1, s[8:11], 0 offen lds\n";
inline const std::string read = "ds_read_b32 v3, v1\n";
inline const std::string wait_lds = "s_waitcnt lgkmcnt(0)\n";
inline const std::string wait_copy = "s_waitcnt vmcnt(0)\n";

} // namespace sluice::test
