//===- TrimNops.cpp - every s_nop as small as its paths allow -------------------------------------------===//
//
//   before: s_mov_b32 s2, s5 ; s_nop 0 ; v_add_u32 v10, s2, v171
//   after:  s_mov_b32 s2, s5 ; v_add_u32 v10, s2, v171
//
// The emulator's checks decide, on every path through the machine code. An extra wait state costs clk; a
// missing one gives wrong results, so the checks also run on the code without those s_nop.
//
//===----------------------------------------------------------------------------------------------------===//
#include "generate/TrimNops.h"

#include "emulator/machine/machine.h"

#include "llvm/ADT/StringExtras.h"

using namespace mlir;

namespace sluice {
namespace {

constexpr StringRef nopName = "s_nop";

bool isNop(StringRef line) {
  line = line.ltrim();
  return line.consume_front(nopName) && line.starts_with(" ");
}

emulator::Program decode(const CodeObject &code) {
  return emulator::Program(std::as_bytes(std::span(code.elf.data(), code.elf.size())));
}

/// The text with each s_nop cut down to the states it needs. Both `nops` and the lines are in address order.
FailureOr<std::string> withStates(StringRef assembly, ArrayRef<emulator::NopStates> nops) {
  std::string result;
  size_t next = 0;
  for (StringRef line : llvm::split(assembly, '\n')) {
    if (!isNop(line)) {
      result += (line + "\n").str();
      continue;
    }
    if (next == nops.size()) return failure();
    unsigned states = nops[next++].needed;
    if (states != 0) result += ("\t" + nopName + " " + Twine(states - 1) + "\n").str();
  }
  if (next != nops.size()) return failure();
  return result;
}

} // namespace

LogicalResult trimNops(CodeObject &code, const Chip &chip,
                       llvm::function_ref<InFlightDiagnostic()> emitError) {
  if (!chip.hasHazardRules) return success();
  std::vector<emulator::NopStates> nops = emulator::nop_states(decode(code));
  if (llvm::all_of(nops, [](const emulator::NopStates &nop) { return nop.needed == nop.given; }))
    return success();
  FailureOr<std::string> trimmed = withStates(code.assembly, nops);
  if (failed(trimmed)) return emitError() << "the assembler's s_nop are not those of its text";
  code.assembly = std::move(*trimmed);
  if (failed(assembleAndLink(code, chip, emitError))) return failure();
  std::vector<emulator::Report> missing = emulator::static_reports(decode(code));
  if (!missing.empty())
    return emitError() << "a wait state is missing: " << missing[0].disassembly << ": " << missing[0].message;
  return success();
}

} // namespace sluice
