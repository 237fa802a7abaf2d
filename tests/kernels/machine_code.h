//===- machine_code.h - the waits and barriers of a kernel, and how to take them away
//--------------------===//
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace sluice::test {

struct Instruction {
  uint64_t pc = 0;
  std::string text; // mnemonic and operands

  bool starts_with(std::string_view prefix) const { return text.starts_with(prefix); }
};

/// The fields of s_waitcnt (CDNA3 ISA): what each counter may still hold.
struct Wait {
  unsigned vmcnt, expcnt, lgkmcnt;

  static constexpr unsigned no_vmcnt = 63, no_lgkmcnt = 15;
  static Wait decode(uint16_t simm16);
  uint16_t encode() const;
};

/// A kernel's machine code inside its ELF file.
class MachineCode {
public:
  MachineCode(std::vector<std::byte> elf, const std::string &kernel);

  const std::vector<Instruction> &instructions() const { return listing; }
  uint32_t word(uint64_t pc) const;
  /// A copy of the file with the 4-byte instruction at `pc` replaced.
  std::vector<std::byte> with_word(uint64_t pc, uint32_t word) const;

  /// Whether no LDS access of the wave is in flight whenever the wait at `pc` is reached: on every path to it
  /// another wait for lgkmcnt(0) comes after the last LDS instruction. Names one such wait.
  std::optional<uint64_t> dominating_lgkm_wait(uint64_t pc) const;

private:
  size_t file_offset(uint64_t pc) const;

  std::vector<std::byte> elf;
  std::vector<Instruction> listing;
  std::map<uint64_t, size_t> index_of;               // by pc
  std::multimap<uint64_t, uint64_t> predecessors_of; // pc -> pcs
};

constexpr uint32_t s_nop_0 = 0xbf800000;
constexpr uint32_t s_waitcnt_opcode = 0xbf8c0000;

} // namespace sluice::test
