//===- trace_writer.cpp - a launch's instructions as text -----------------------------------------------===//
//
//   0,0,0 wave 0 #4 001918: v_add_u32_e32 v1, v0, v2  exec 0xffffffffffffffff
//       v1 = 0x00000000 0x00000001 0x00000002 0x00000003 ...
//
//===----------------------------------------------------------------------------------------------------===//
#include "tools/emu/trace_writer.h"

#include "tools/shared/tool_error.h"

#include <cerrno>
#include <cstring>
#include <fmt/format.h>
#include <iterator>

namespace sluice::tools::emu {

namespace {

constexpr uint32_t wave_lanes = 64;

std::string_view state_text(emulator::TracedRegisters::State state) {
  switch (state) {
  case emulator::TracedRegisters::State::written:
    return "";
  case emulator::TracedRegisters::State::in_flight:
    return " in flight";
  case emulator::TracedRegisters::State::arrived:
    return " arrived";
  }
  return "";
}

void append_values(fmt::memory_buffer &text, std::span<const uint32_t> values) {
  text.append(std::string_view(" ="));
  for (uint32_t value : values)
    fmt::format_to(std::back_inserter(text), " 0x{:08x}", value);
}

} // namespace

TraceWriter::TraceWriter(std::string name, Selection selection, uint32_t lanes)
    : path(std::move(name)), selection(selection), lanes(lanes),
      file(path == "-" ? stdout : std::fopen(path.c_str(), "w")) {
  if (!file) throw ToolError(fmt::format("--trace: {} cannot be written: {}", path, std::strerror(errno)));
}

bool TraceWriter::follows(std::array<uint32_t, 3> workgroup, uint32_t wave) const {
  return (!selection.workgroup || *selection.workgroup == workgroup) &&
         (!selection.wave || *selection.wave == wave);
}

void TraceWriter::executed(const emulator::TracedInstruction &i) {
  fmt::memory_buffer text;
  const auto out = std::back_inserter(text);
  fmt::format_to(out, "{},{},{} wave {} #{} {:06x}: {}", i.workgroup[0], i.workgroup[1], i.workgroup[2],
                 i.wave, i.number, i.pc, i.disassembly);
  if (i.vector) fmt::format_to(out, "  exec 0x{:016x}", i.exec);
  text.push_back('\n');
  for (const emulator::TracedRegisters &registers : i.registers) {
    const bool in_flight = registers.state == emulator::TracedRegisters::State::in_flight;
    if (in_flight || registers.file == 's') {
      fmt::format_to(out, "    {}{}", registers.name, state_text(registers.state));
      if (!in_flight) append_values(text, registers.values);
      text.push_back('\n');
      continue;
    }
    for (uint32_t row = 0; row < registers.count; ++row) {
      fmt::format_to(out, "    {}{}{}", registers.file, registers.first + row, state_text(registers.state));
      append_values(text, registers.values.subspan(row * wave_lanes, lanes));
      fmt::format_to(out, "{}\n", lanes < wave_lanes ? " ..." : "");
    }
  }
  const std::lock_guard lock(mutex);
  std::fwrite(text.data(), 1, text.size(), file.get());
}

void TraceWriter::finish() {
  if (std::fflush(file.get()) != 0 || std::ferror(file.get()))
    throw ToolError(fmt::format("--trace: {} cannot be written: {}", path, std::strerror(errno)));
}

} // namespace sluice::tools::emu
