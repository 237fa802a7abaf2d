//===- source_lines.h - where instructions come from ----------------------------------------------------===//
//
// Reads the debug information (DWARF) that a compiler has put into a code object; nothing of LLVM shows in
// this header.
//
//===----------------------------------------------------------------------------------------------------===//
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

namespace sluice::emulator {

class SourceLines {
public:
  /// `elf` must outlive this. Debug information that cannot be read counts as none.
  explicit SourceLines(std::span<const std::byte> elf);
  ~SourceLines();

  /// "file:line" of the instruction at an address of the code object, followed by ", inlined at file:line"
  /// for each call it was inlined through; empty when nothing is known.
  std::string at(uint64_t address) const;

private:
  struct State;
  std::unique_ptr<State> state;
};

} // namespace sluice::emulator
