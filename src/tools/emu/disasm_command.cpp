//===- disasm_command.cpp - sluice-emu disasm: machine code as text -------------------------------------===//
//
// The format is llvm-objdump's: the text, then the address and the dwords. Branches name their targets.
//
//===----------------------------------------------------------------------------------------------------===//
#include "emulator/machine/program.h"
#include "tools/emu/code_file.h"
#include "tools/emu/commands.h"

#include <algorithm>
#include <cstring>
#include <fmt/format.h>
#include <map>

namespace sluice::tools::emu {

namespace {

using emulator::ProgramImpl;

// Compilers fill the space between kernels, and after the last one.
constexpr uint32_t most_equal_lines = 8;

class Listing {
public:
  explicit Listing(const ProgramImpl &program) : program(program) {
    for (const package::Kernel &kernel : program.object.kernels())
      names[kernel.entry_address] = kernel.name;
    for (const package::Symbol &symbol : program.object.symbols())
      if (symbol.defined && symbol.type == 2) names[symbol.address] = symbol.name;
    // Labels are numbered in the order of their addresses.
    for (uint32_t op = 0; op < count(); ++op)
      if (const int32_t target = target_of(op); target >= 0)
        labels.emplace(program.address_of(uint32_t(target)), std::string());
    size_t number = 0;
    for (auto &[address, label] : labels) {
      const auto name = names.find(address);
      label = name != names.end() ? name->second : fmt::format("L{}", number++);
    }
  }

  /// The last instruction of a program is the stop after its code.
  uint32_t count() const { return uint32_t(program.fast.size() - 1); }

  void print(uint32_t op) const {
    const uint64_t address = program.address_of(op);
    if (const auto name = names.find(address); name != names.end())
      fmt::print("\n{:016x} <{}>:\n", address, name->second);
    else if (const auto label = labels.find(address); label != labels.end())
      fmt::print("{}:\n", label->second);
    std::string dwords;
    for (uint64_t at = address; at < address + bytes_of(op); at += 4) {
      uint32_t dword;
      std::memcpy(&dword, program.image.data() + at, sizeof dword);
      dwords += fmt::format(" {:08X}", dword);
    }
    fmt::print("\t{:<58} // {:012X}:{}{}\n", text_of(op, dwords), address, dwords, refusal_of(op));
  }

  /// The number of instructions from `op` on that equal it, up to a name, a label or `last`.
  uint32_t equal_from(uint32_t op, uint32_t last) const {
    uint32_t end = op + 1;
    while (end < last && program.text(end) == program.text(op) && !names.contains(program.address_of(end)) &&
           !labels.contains(program.address_of(end)))
      ++end;
    return end - op;
  }

private:
  uint64_t bytes_of(uint32_t op) const { return program.offset_of[op + 1] - program.offset_of[op]; }

  /// -1: not a branch, or a branch out of the code.
  int32_t target_of(uint32_t op) const {
    return program.infos.infos[op].jumps() ? program.fast[op].value : -1;
  }

  std::string text_of(uint32_t op, const std::string &dwords) const {
    const std::string &text = program.texts[op];
    if (text.empty()) return ".long 0x" + dwords.substr(1);
    const int32_t target = target_of(op);
    if (target < 0) return text;
    // The target is the last operand.
    return text.substr(0, text.rfind(' ') + 1) + labels.at(program.address_of(uint32_t(target)));
  }

  std::string refusal_of(uint32_t op) const {
    const auto refusal = program.refusals.find(op);
    return refusal == program.refusals.end() ? "" : fmt::format(" (not executed: {})", refusal->second);
  }

  const ProgramImpl &program;
  std::map<uint64_t, std::string> names;
  std::map<uint64_t, std::string> labels;
};

} // namespace

int disasm_command(const DisasmOptions &options) {
  const std::unique_ptr<emulator::Program> program = load_code(options.code_file);
  const Listing listing(program->impl());
  emulator::OpRange range{0, listing.count()};
  if (!options.kernel.empty()) range = program->impl().ops_of(find_kernel(*program, options.kernel));
  fmt::print("{}: {}\n", options.code_file, code_object(*program).target_id());
  for (uint32_t op = range.first; op < range.last;) {
    const uint32_t equal = listing.equal_from(op, range.last);
    listing.print(op);
    if (equal > most_equal_lines) fmt::print("\t... {} more of these\n", equal - 1);
    op += equal > most_equal_lines ? equal : 1;
  }
  return 0;
}

} // namespace sluice::tools::emu
