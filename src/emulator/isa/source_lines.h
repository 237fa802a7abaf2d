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

namespace sluice::emulator {

class SourceLines {
public:
  /// `elf` must outlive this. Unreadable debug information counts as missing.
  explicit SourceLines(std::span<const std::byte> elf);
  ~SourceLines();

  /// "file:line" of the instruction at an address of the code object, followed by ", inlined at file:line"
  /// for each call it was inlined through; empty if unknown.
  std::string at(uint64_t address) const;

private:
  struct State;
  std::unique_ptr<State> state;
};

} // namespace sluice::emulator
