//===- machine_code.cpp - the waits and barriers of a kernel, and how to take them away
//-------------------===//
#include "machine_code.h"

#include "emulator/emulator.h"
#include "package/code_object.h"

#include <cstring>
#include <set>
#include <sstream>
#include <stdexcept>

namespace sluice::test {

Wait Wait::decode(uint16_t simm16) {
  return {unsigned(simm16 & 15) | unsigned(simm16 >> 14) << 4, unsigned(simm16 >> 4 & 7),
          unsigned(simm16 >> 8 & 15)};
}

uint16_t Wait::encode() const {
  return uint16_t((vmcnt & 15) | (vmcnt >> 4) << 14 | expcnt << 4 | lgkmcnt << 8);
}

MachineCode::MachineCode(std::vector<std::byte> file, const std::string &kernel) : elf(std::move(file)) {
  const size_t size = sluice_emulator_disassemble(elf.data(), elf.size(), kernel.c_str(), nullptr, 0);
  std::string text(size, '\0');
  sluice_emulator_disassemble(elf.data(), elf.size(), kernel.c_str(), text.data(), text.size());
  if (text.starts_with("error")) throw std::runtime_error(text);
  std::istringstream lines(text.c_str());
  for (std::string line; std::getline(lines, line);) {
    const size_t colon = line.find(": ");
    if (colon == std::string::npos) throw std::runtime_error("not a disassembly line: " + line);
    Instruction instruction{std::stoull(line, nullptr, 16),
                            line.substr(line.find_first_not_of(" \t", colon + 1))};
    index_of[instruction.pc] = listing.size();
    listing.push_back(std::move(instruction));
  }
  for (size_t n = 0; n < listing.size(); ++n) {
    const Instruction &from = listing[n];
    const bool branch = from.starts_with("s_branch"), conditional = from.starts_with("s_cbranch");
    if (branch || conditional)
      predecessors_of.emplace(from.pc + 4 + int64_t(int16_t(word(from.pc))) * 4, from.pc);
    if (!branch && !from.starts_with("s_endpgm") && n + 1 < listing.size())
      predecessors_of.emplace(listing[n + 1].pc, from.pc);
  }
}

size_t MachineCode::file_offset(uint64_t pc) const {
  const package::CodeObject object = package::CodeObject::parse(elf);
  for (const package::Segment &segment : object.segments())
    if (pc >= segment.address && pc + 4 <= segment.address + segment.file.size())
      return size_t(segment.file.data() - elf.data()) + size_t(pc - segment.address);
  throw std::runtime_error("no segment holds the instruction");
}

uint32_t MachineCode::word(uint64_t pc) const {
  uint32_t value;
  std::memcpy(&value, elf.data() + file_offset(pc), sizeof value);
  return value;
}

std::vector<std::byte> MachineCode::with_word(uint64_t pc, uint32_t value) const {
  std::vector<std::byte> copy = elf;
  std::memcpy(copy.data() + file_offset(pc), &value, sizeof value);
  return copy;
}

std::optional<uint64_t> MachineCode::dominating_lgkm_wait(uint64_t pc) const {
  std::optional<uint64_t> found;
  std::set<uint64_t> seen;
  std::vector<uint64_t> pending;
  const auto go_back = [&](uint64_t from) {
    const auto [first, last] = predecessors_of.equal_range(from);
    for (auto it = first; it != last; ++it)
      if (seen.insert(it->second).second) pending.push_back(it->second);
  };
  go_back(pc);
  while (!pending.empty()) {
    const uint64_t at = pending.back();
    pending.pop_back();
    const Instruction &instruction = listing[index_of.at(at)];
    if (instruction.starts_with("ds_") || instruction.starts_with("flat_")) return std::nullopt;
    if (instruction.starts_with("s_waitcnt") && Wait::decode(uint16_t(word(at))).lgkmcnt == 0) {
      found = at;
      continue;
    }
    go_back(at);
  }
  return found;
}

} // namespace sluice::test
