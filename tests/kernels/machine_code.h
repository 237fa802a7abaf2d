//===- machine_code.h - a kernel's instructions, the paths between them, and mutations ------------------===//
#pragma once

#include "emulator/isa/disassembler.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace sluice::test {

struct Instruction {
  uint64_t pc = 0;
  uint32_t word = 0; // the first of its encoding
  std::string mnemonic;
  std::string text; // mnemonic and operands
  std::vector<emulator::RegisterRange> reads, writes;
  std::vector<size_t> next, previous; // indices of the instructions that may run after and before it

  bool is(std::string_view name) const { return mnemonic == name; }
  bool starts_with(std::string_view prefix) const { return mnemonic.starts_with(prefix); }
};

enum class Counter : uint8_t { vmcnt, expcnt, lgkmcnt };
inline constexpr Counter counters[] = {Counter::vmcnt, Counter::expcnt, Counter::lgkmcnt};
std::string_view counter_name(Counter counter);

/// The fields of s_waitcnt (CDNA3 ISA): how many operations each counter may still hold.
struct Wait {
  unsigned vmcnt, expcnt, lgkmcnt;

  static Wait decode(uint16_t simm16);
  uint16_t encode() const;
  unsigned &operator[](Counter counter);
  unsigned operator[](Counter counter) const { return Wait(*this)[counter]; }
};
/// The value of a field that does not wait: the maximum of the counter.
unsigned no_wait(Counter counter);

inline constexpr uint32_t s_nop_0 = 0xbf800000;
inline constexpr uint32_t s_trap_2 = 0xbf920002;
inline constexpr uint32_t s_waitcnt_opcode = 0xbf8c0000;

/// A kernel's machine code inside its ELF file: everything reachable from its entry.
class MachineCode {
public:
  /// Throws std::runtime_error if there is no such kernel, and for code whose paths are unknown (indirect
  /// jumps, bytes that are not an instruction).
  MachineCode(std::vector<std::byte> elf, const std::string &kernel);

  /// By address; the first one is the entry.
  const std::vector<Instruction> &instructions() const { return listing; }
  /// A copy of the file with the first word of the instruction replaced.
  std::vector<std::byte> with_word(const Instruction &instruction, uint32_t word) const;

private:
  struct CodeRange {
    uint64_t address;
    size_t bytes, file_offset;
  };

  size_t file_offset(uint64_t pc) const;

  std::vector<std::byte> elf;
  std::vector<CodeRange> ranges; // the part of the image that is in the file
  std::vector<Instruction> listing;
};

/// "0x1a2c s_waitcnt lgkmcnt(0)"
std::string describe(const Instruction &instruction);

} // namespace sluice::test
