//===- usual_way.cpp - the common path around a kernel's main loop --------------------------------------===//
#include "usual_way.h"

#include "emulator/stats/control_flow.h"
#include "machine_code.h"
#include "package/code_object.h"

#include <algorithm>
#include <set>
#include <stdexcept>

namespace sluice::test {

using emulator::CodeInstruction;
using emulator::RegisterRange;

namespace {

std::vector<CodeInstruction> code_of(const ShippedKernel &kernel) {
  const package::CodeObject object = package::CodeObject::parse(kernel.elf);
  const package::Kernel *const found = object.find_kernel(kernel.name);
  if (!found) throw std::runtime_error("no kernel " + kernel.name);
  for (const package::Segment &segment : object.segments()) {
    if (found->entry_address < segment.address) continue;
    const uint64_t offset = found->entry_address - segment.address;
    if (offset + found->code_bytes <= segment.file.size())
      return emulator::decode_code(segment.file.subspan(offset, found->code_bytes), found->entry_address);
  }
  throw std::runtime_error("no code of kernel " + kernel.name);
}

std::set<uint64_t> usual_way(const std::vector<CodeInstruction> &code) {
  std::set<uint64_t> addresses;
  if (const auto way = emulator::ControlFlow(code).usual_way())
    for (size_t index : *way)
      addresses.insert(code[index].address);
  return addresses;
}

bool touches(const std::vector<RegisterRange> &ranges, const std::vector<RegisterRange> &others) {
  return std::ranges::any_of(ranges, [&](const RegisterRange &range) {
    return std::ranges::any_of(others, [&](const RegisterRange &other) {
      return range.first < other.first + other.count && other.first < range.first + range.count;
    });
  });
}

} // namespace

UsualWayFigures usual_way_figures(const ShippedKernel &kernel) {
  const MachineCode code(kernel.elf, kernel.name);
  std::vector<RegisterRange> holds_scalars;
  for (const Instruction &instruction : code.instructions())
    if (instruction.is("v_writelane_b32"))
      holds_scalars.insert(holds_scalars.end(), instruction.writes.begin(), instruction.writes.end());
  const std::set<uint64_t> way = usual_way(code_of(kernel));
  size_t copies = 0, waits = 0, scalar_spills = 0;
  for (const Instruction &instruction : code.instructions()) {
    if (!way.contains(instruction.pc)) continue;
    scalar_spills += instruction.is("v_writelane_b32") ||
                     (instruction.is("v_readlane_b32") && touches(instruction.reads, holds_scalars));
    copies += instruction.text.ends_with(" lds") || instruction.starts_with("global_load_lds");
    waits += instruction.is("s_waitcnt") && Wait::decode(uint16_t(instruction.word)).vmcnt == 0;
  }
  return {.scalar_spills = scalar_spills, .waits_for_all_copies = copies == 0 ? 0 : waits};
}

} // namespace sluice::test
