//===- source_lines.h - the source lines of instructions ------------------------------------------------===//
//
// Reads the debug information (DWARF) that a compiler has put into a code object. This header exposes no LLVM
// types.
//
//===----------------------------------------------------------------------------------------------------===//
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace sluice::emulator {

class SourceLines {
public:
  /// `elf` must outlive this. Unreadable debug information counts as missing.
  explicit SourceLines(std::span<const std::byte> elf);
  ~SourceLines();

  /// "file:line" of the instruction at an address of the code object, followed by ", inlined at file:line"
  /// for each call it was inlined through; empty if unknown.
  std::string at(uint64_t address) const;

  struct Frame {
    std::string function; // empty if unknown
    std::string file;
    uint32_t line;
  };
  /// The line of an instruction, then those of the calls it was inlined through; empty if unknown.
  std::vector<Frame> frames(uint64_t address) const;

  /// The name of the function, as a linker sees it, that contains an address; empty if there is none.
  std::string symbol(uint64_t address) const;

private:
  struct State;
  std::unique_ptr<State> state;
};

} // namespace sluice::emulator
