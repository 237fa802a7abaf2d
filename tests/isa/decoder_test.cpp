//===- decoder_test.cpp - decoded operations name the right registers -----------------------------------===//
//
// The operands of an operation must be the registers that, according to LLVM, the instruction reads and
// writes.
//
//===----------------------------------------------------------------------------------------------------===//
#include <catch2/catch.hpp>

#include <algorithm>
#include <cctype>
#include <set>

#include "isa/decoded_corpus.h"
#include "isa/instruction_text.h"

namespace sluice::test {

namespace {

using emulator::Format;

using Registers = std::set<uint32_t>;

std::string text_of(const Registers &registers) {
  std::string text;
  for (uint32_t r : registers)
    text += " " + std::to_string(r);
  return text.empty() ? " none" : text;
}

/// Registers that instructions use without naming them: not operands.
bool is_implicit(uint32_t number) {
  const uint32_t scalar = number - emulator::first_sgpr;
  return number >= emulator::first_sgpr &&
         (scalar == emulator::sgpr_scc || scalar == emulator::sgpr_vcc || scalar == emulator::sgpr_vcc + 1 ||
          scalar == emulator::sgpr_exec || scalar == emulator::sgpr_exec + 1 || scalar == emulator::sgpr_m0 ||
          scalar == 102);
}

Registers firsts(const std::vector<emulator::RegisterRange> &ranges) {
  Registers result;
  for (const emulator::RegisterRange &range : ranges)
    result.insert(range.first);
  return result;
}

Registers all(const std::vector<emulator::RegisterRange> &ranges) {
  Registers result;
  for (const emulator::RegisterRange &range : ranges)
    for (uint32_t i = 0; i < range.count; ++i)
      result.insert(range.first + i);
  return result;
}

void add(Registers &registers, uint32_t operand, uint32_t count) {
  if (operand == emulator::scc_operand) count = 1; // however wide the operand is
  for (uint32_t i = 0; operand < emulator::first_constant && i < count; ++i)
    registers.insert(operand + i);
}

Registers without_exec(Registers registers) {
  registers.erase(emulator::first_sgpr + emulator::sgpr_exec);
  registers.erase(emulator::first_sgpr + emulator::sgpr_exec + 1);
  return registers;
}

/// Each register that LLVM names is an operand, and each register operand is one that LLVM names. The
/// register numbers of fields that an instruction does not have are 0.
std::string operand_mistake(const Decoded &d) {
  const emulator::Op &op = d.op.strict;
  Registers ours, llvm = firsts(d.instruction.reads);
  llvm.merge(firsts(d.instruction.writes));
  for (uint16_t operand : {op.src[0], op.src[1], op.src[2], op.mask, op.mask_in})
    add(ours, operand, 1);
  // SDATA of s_atc_probe is a number.
  if (!d.instruction.mnemonic.starts_with("s_atc_probe")) add(ours, op.dst, 1);
  for (uint32_t number : ours)
    if (!llvm.contains(number) && number != 0 && number != emulator::first_agpr &&
        number != emulator::first_sgpr)
      return "operand " + std::to_string(number) + " is not one of LLVM's" + text_of(llvm);
  for (uint32_t number : llvm)
    if (!ours.contains(number) && !is_implicit(number))
      return "LLVM's operand " + std::to_string(number) + " is not one of" + text_of(ours);
  // Every register that an instruction writes is a destination.
  for (uint32_t number : firsts(d.instruction.writes))
    if (!is_implicit(number) && number != op.dst && number != op.mask &&
        !(d.instruction.mnemonic == "v_swap_b32" && number == op.src[0]))
      return "register " + std::to_string(number) + " is written, but is not a destination";
  return "";
}

/// Numbers, and the addresses of the apertures.
size_t constants_in(const std::string &line) {
  const std::vector<std::string> operands = parse_instruction(line).operands;
  return size_t(std::count_if(operands.begin(), operands.end(), [](std::string_view text) {
    for (std::string_view modifier : {"neg(", "-", "sext(", "|", "-"})
      if (text.starts_with(modifier)) text.remove_prefix(modifier.size());
    return std::isdigit(uint8_t(text[0])) || text.starts_with("lit(") || text.starts_with("src_shared_") ||
           text.starts_with("src_private_");
  }));
}

/// Checks every register of vector operations, whose rows know how wide their operands are.
std::string vector_mistake(const Decoded &d) {
  const emulator::Op &op = d.op.fast;
  Registers reads, writes, destination;
  size_t constants = op.mask_in >= emulator::first_constant && op.mask_in != emulator::no_operand;
  for (uint32_t k = 0; k < op.valu.sources; ++k)
    constants += op.src[k] >= emulator::first_constant;
  if (constants != constants_in(d.instruction.text))
    return "there are " + std::to_string(constants) + " constants";
  for (uint32_t k = 0; k < op.valu.sources; ++k)
    add(reads, op.src[k], emulator::rows_of(op.valu.source_types[k]));
  add(reads, op.mask_in, 2);
  add(destination, op.dst, emulator::rows_of(op.valu.result_type));
  writes = destination;
  add(writes, op.mask, 2);
  if (d.instruction.mnemonic == "v_swap_b32") add(writes, op.src[0], 1);
  // A partly preserved destination is read, in LLVM's view or in this decoder's.
  Registers llvm_reads = all(d.instruction.reads);
  for (uint32_t number : destination)
    if (!reads.contains(number))
      llvm_reads.erase(number);
    else
      llvm_reads.insert(number);
  reads = without_exec(reads), llvm_reads = without_exec(llvm_reads);
  if (reads != llvm_reads) return "reads" + text_of(reads) + ", LLVM" + text_of(llvm_reads);
  const Registers llvm_writes = without_exec(all(d.instruction.writes));
  if (without_exec(writes) != llvm_writes)
    return "writes" + text_of(writes) + ", LLVM" + text_of(llvm_writes);
  return "";
}

/// For memory instructions, the operands that the checks look at before an access.
std::string address_mistake(const Decoded &d) {
  const Registers reads = all(d.instruction.reads);
  Registers ours;
  add(ours, d.op.info.address.first, d.op.info.address.count);
  add(ours, d.op.info.stored.first, d.op.info.stored.count);
  for (uint32_t number : ours)
    if (number != 0 && !reads.contains(number))
      return "register " + std::to_string(number) + " is read, but not by LLVM";
  return "";
}

} // namespace

TEST_CASE("operations name the same registers as LLVM's instructions", "[isa][corpus]") {
  for_each_instruction([](const Decoded &d) -> std::string {
    if (!d.op.refusal.empty()) return "";
    switch (d.format) {
    case Format::vop1:
    case Format::vop2:
    case Format::vopc:
    case Format::vop3:
    case Format::vop3p:
      return vector_mistake(d);
    case Format::ds:
    case Format::flat:
    case Format::mubuf:
    case Format::mtbuf:
      if (const std::string mistake = address_mistake(d); !mistake.empty()) return mistake;
      [[fallthrough]];
    default:
      return operand_mistake(d);
    }
  });
}

} // namespace sluice::test
