//===- machine_code.cpp - a kernel's instructions, the paths between them, and mutations ----------------===//
#include "machine_code.h"

#include "emulator/isa/encoding.h"
#include "package/code_object.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstring>
#include <map>
#include <optional>
#include <stdexcept>

namespace sluice::test {

//===--- Waits ------------------------------------------------------------------------------------------===//

std::string_view counter_name(Counter counter) {
  return counter == Counter::vmcnt ? "vmcnt" : counter == Counter::expcnt ? "expcnt" : "lgkmcnt";
}

unsigned no_wait(Counter counter) {
  return counter == Counter::vmcnt ? 63 : counter == Counter::expcnt ? 7 : 15;
}

Wait Wait::decode(uint16_t simm16) {
  const emulator::WaitCounts counts = emulator::wait_counts(simm16);
  return {counts.vector, unsigned(simm16 >> 4 & 7), counts.lgkm};
}

uint16_t Wait::encode() const {
  return uint16_t((vmcnt & 15) | (vmcnt >> 4) << 14 | expcnt << 4 | lgkmcnt << 8);
}

unsigned &Wait::operator[](Counter counter) {
  return counter == Counter::vmcnt ? vmcnt : counter == Counter::expcnt ? expcnt : lgkmcnt;
}

//===--- Code -------------------------------------------------------------------------------------------===//

namespace {

bool jumps_indirectly(const Instruction &instruction) {
  for (std::string_view prefix : {"s_setpc", "s_swappc", "s_call", "s_rfe", "s_cbranch_g_fork",
                                  "s_cbranch_i_fork", "s_cbranch_join", "s_setvskip"})
    if (instruction.starts_with(prefix)) return true;
  return false;
}

/// Addresses of the instructions that may run next. Branch offsets are the low half of the word, in dwords.
std::vector<uint64_t> successors(const Instruction &instruction, uint32_t bytes) {
  if (instruction.starts_with("s_endpgm") || instruction.is("s_trap")) return {};
  const uint64_t behind = instruction.pc + bytes;
  const uint64_t target = behind + uint64_t(int64_t(int16_t(instruction.word)) * 4);
  if (instruction.is("s_branch")) return {target};
  if (!instruction.starts_with("s_cbranch") || target == behind) return {behind};
  return {behind, target};
}

} // namespace

MachineCode::MachineCode(std::vector<std::byte> file, const std::string &name) : elf(std::move(file)) {
  const package::CodeObject object = package::CodeObject::parse(elf);
  const package::Kernel *kernel = object.find_kernel(name);
  if (!kernel) throw std::runtime_error("the code object has no kernel '" + name + "'");

  for (const package::Segment &segment : object.segments())
    ranges.push_back({segment.address, segment.file.size(), size_t(segment.file.data() - elf.data())});

  emulator::Disassembler disassembler;
  std::map<uint64_t, Instruction> found;
  std::map<uint64_t, std::vector<uint64_t>> next_of;
  std::vector<uint64_t> pending{kernel->entry_address};
  while (!pending.empty()) {
    const uint64_t pc = pending.back();
    pending.pop_back();
    if (found.contains(pc)) continue;
    auto decoded = disassembler.decode(std::span<const std::byte>(elf).subspan(file_offset(pc)), pc);
    if (!decoded) throw std::runtime_error("no instruction at " + std::to_string(pc));
    Instruction instruction;
    instruction.pc = pc;
    std::memcpy(&instruction.word, elf.data() + file_offset(pc), sizeof instruction.word);
    instruction.mnemonic = std::move(decoded->mnemonic);
    instruction.text = std::move(decoded->text);
    std::vector<uint32_t> dwords(decoded->bytes / 4);
    std::memcpy(dwords.data(), elf.data() + file_offset(pc), decoded->bytes);
    instruction.reads = emulator::registers_read(*decoded, dwords);
    instruction.writes = std::move(decoded->writes);
    std::optional<uint64_t> far;
    std::array<uint32_t, emulator::long_branch_dwords> words;
    const size_t before = (words.size() - 1) * sizeof words[0];
    if (instruction.is("s_setpc_b64") && pc - kernel->entry_address >= before) {
      std::memcpy(words.data(), elf.data() + file_offset(pc) - before, sizeof words);
      far = emulator::long_branch_target(words, pc);
    }
    if (jumps_indirectly(instruction) && !far)
      throw std::runtime_error("cannot tell the paths after " + describe(instruction));
    next_of[pc] = far ? std::vector{*far} : successors(instruction, decoded->bytes);
    pending.insert(pending.end(), next_of[pc].begin(), next_of[pc].end());
    found.emplace(pc, std::move(instruction));
  }
  if (found.begin()->first != kernel->entry_address)
    throw std::runtime_error("the entry is not the first instruction");

  std::map<uint64_t, size_t> index_of;
  for (auto &[pc, instruction] : found) {
    index_of[pc] = listing.size();
    listing.push_back(std::move(instruction));
  }
  for (size_t n = 0; n < listing.size(); ++n)
    for (uint64_t pc : next_of[listing[n].pc]) {
      listing[n].next.push_back(index_of[pc]);
      listing[index_of[pc]].previous.push_back(n);
    }
}

size_t MachineCode::file_offset(uint64_t pc) const {
  for (const CodeRange &range : ranges)
    if (pc >= range.address && pc + 4 <= range.address + range.bytes)
      return range.file_offset + size_t(pc - range.address);
  throw std::runtime_error("no segment holds an instruction at " + std::to_string(pc));
}

std::vector<std::byte> MachineCode::with_word(const Instruction &instruction, uint32_t value) const {
  std::vector<std::byte> copy = elf;
  std::memcpy(copy.data() + file_offset(instruction.pc), &value, sizeof value);
  return copy;
}

std::string describe(const Instruction &instruction) {
  char pc[32];
  std::snprintf(pc, sizeof pc, "%#llx ", (unsigned long long)instruction.pc);
  return pc + instruction.text;
}

} // namespace sluice::test
