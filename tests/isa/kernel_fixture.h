//===- kernel_fixture.h - short programs on the whole machine -------------------------------------------===//
//
// Puts assembled instructions into the reserved space of slot.s and launches it. The arguments are eight
// 64-bit words, at s[0:1].
//
//===----------------------------------------------------------------------------------------------------===//
#pragma once

#include <array>
#include <cstring>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "emulator/machine/machine.h"
#include "isa/assembler.h"
#include "package/code_object.h"
#include "support/files.h"

namespace sluice::test {

using emulator::Checks;
using emulator::CompletionOrder;
using emulator::HazardLevel;
using emulator::LaunchResult;
using emulator::Memory;
using emulator::Options;
using emulator::Report;
using emulator::ReportKind;

/// slot.s with `source` at its entry.
inline std::vector<std::byte> code_object_of(std::string_view source) {
  std::vector<std::byte> elf = read_file(SLUICE_CODE_OBJECT_SLOT);
  const std::vector<uint32_t> code = assemble(source);
  const package::CodeObject object = package::CodeObject::parse(elf);
  for (const package::Segment &segment : object.segments()) {
    if (!segment.executable) continue;
    if (code.size() * 4 > segment.file.size())
      throw std::runtime_error("the program is too long for its slot");
    std::memcpy(elf.data() + (segment.file.data() - elf.data()), code.data(), code.size() * 4);
  }
  return elf;
}

struct LaunchShape {
  uint32_t waves = 1;
  uint32_t lds_bytes = 1024;
  std::array<uint32_t, 3> grid{1, 1, 1};
  std::string_view kernel = "slot";
};

class TestKernel {
public:
  explicit TestKernel(std::string_view source) : program(code_object_of(source)) {}

  LaunchResult run(const Memory &memory, std::array<uint64_t, 8> arguments, LaunchShape shape = {},
                   Options options = {}) const {
    if (options.threads == 0) options.threads = 1;
    return emulator::launch(program, shape.kernel, shape.grid, {64 * shape.waves, 1, 1}, shape.lds_bytes,
                            std::as_bytes(std::span(arguments)), memory, options);
  }

  /// Address in the code object of the instruction at a byte offset in the program.
  uint64_t pc(uint64_t offset) const { return program.kernel("slot")->entry + offset; }

  emulator::Program program;
};

/// The report of a kind; fails unless there is exactly one.
inline Report only(const LaunchResult &result, ReportKind kind) {
  std::string all;
  const Report *found = nullptr;
  size_t count = 0;
  for (const Report &report : result.reports) {
    all += to_text(report);
    if (report.kind != kind) continue;
    found = &report;
    ++count;
  }
  if (count != 1 || result.reports.size() != 1)
    throw std::runtime_error("expected one report, of kind " + std::string(report_kind_name(kind)) +
                             ", but got:\n" + all);
  return *found;
}

inline std::string all_text(const LaunchResult &result) {
  std::string text;
  for (const Report &report : result.reports)
    text += to_text(report);
  return text;
}

} // namespace sluice::test
