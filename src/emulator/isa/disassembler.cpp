//===- disassembler.cpp - disassembles gfx942 with LLVM's machine-code layer ----------------------------===//
//
// Debian ships no headers of the AMDGPU target, so registers are identified by name ("VGPR4_VGPR5") and
// instructions by the names of their opcodes and their printed text.
//
//===----------------------------------------------------------------------------------------------------===//
#include "emulator/isa/disassembler.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>
#include <stdexcept>
#include <string_view>

#include <llvm-c/Disassembler.h>
#include <llvm-c/Target.h>
#include <llvm/ADT/ArrayRef.h>
#include <llvm/MC/MCAsmInfo.h>
#include <llvm/MC/MCContext.h>
#include <llvm/MC/MCDisassembler/MCDisassembler.h>
#include <llvm/MC/MCInst.h>
#include <llvm/MC/MCInstPrinter.h>
#include <llvm/MC/MCInstrDesc.h>
#include <llvm/MC/MCInstrInfo.h>
#include <llvm/MC/MCRegisterInfo.h>
#include <llvm/MC/MCSubtargetInfo.h>
#include <llvm/MC/MCTargetOptions.h>
#include <llvm/MC/TargetRegistry.h>
#include <llvm/Support/raw_ostream.h>
#include <llvm/TargetParser/Triple.h>

#include "emulator/isa/encoding.h"
#include "emulator/isa/op.h"

// Exported by libLLVM, but declared only in the target's internal headers.
extern "C" void LLVMInitializeAMDGPUTargetInfo();
extern "C" void LLVMInitializeAMDGPUTargetMC();
extern "C" void LLVMInitializeAMDGPUDisassembler();

namespace sluice::emulator {

struct Disassembler::State {
  std::unique_ptr<llvm::MCRegisterInfo> registers;
  std::unique_ptr<llvm::MCAsmInfo> assembler;
  std::unique_ptr<llvm::MCSubtargetInfo> subtarget;
  std::unique_ptr<llvm::MCInstrInfo> instructions;
  std::unique_ptr<llvm::MCContext> context;
  std::unique_ptr<llvm::MCDisassembler> disassembler;
  std::unique_ptr<llvm::MCInstPrinter> printer;
  std::vector<std::optional<RegisterRange>> ranges; // by LLVM register number
};

namespace {

constexpr RegisterRange vcc{first_sgpr + sgpr_vcc, 2};

// "VGPR4_VGPR5_VGPR6" is v4, three registers; VCC, EXEC, M0 and SCC have their encoding numbers.
std::optional<RegisterRange> range_of(std::string_view name) {
  struct Special {
    std::string_view name;
    uint16_t number;
    uint16_t count;
  };
  constexpr Special specials[] = {
      {"VCC", sgpr_vcc, 2},       {"VCC_LO", sgpr_vcc, 1},     {"VCC_HI", sgpr_vcc + 1, 1},
      {"EXEC", sgpr_exec, 2},     {"EXEC_LO", sgpr_exec, 1},   {"EXEC_HI", sgpr_exec + 1, 1},
      {"M0", sgpr_m0, 1},         {"M0_gfxpre11", sgpr_m0, 1}, {"SCC", sgpr_scc, 1},
      {"SRC_SCC", sgpr_scc, 1},   {"FLAT_SCR", 102, 2},        {"FLAT_SCR_vi", 102, 2},
      {"FLAT_SCR_LO_vi", 102, 1}, {"FLAT_SCR_HI_vi", 103, 1},  {"XNACK_MASK", 104, 2},
      {"XNACK_MASK_LO", 104, 1},  {"XNACK_MASK_HI", 105, 1},
  };
  for (const Special &special : specials)
    if (special.name == name) return RegisterRange{uint16_t(first_sgpr + special.number), special.count};
  struct File {
    std::string_view prefix;
    uint16_t first;
  };
  constexpr File files[] = {
      {"VGPR", 0}, {"AGPR", first_agpr}, {"SGPR", first_sgpr}, {"TTMP", first_sgpr + sgpr_ttmp0}};
  for (const File &file : files) {
    if (!name.starts_with(file.prefix)) continue;
    const std::string_view rest = name.substr(file.prefix.size());
    uint16_t number = 0;
    const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), number);
    if (error != std::errc() || end == rest.data()) return std::nullopt;
    // Halves of registers ("VGPR4_LO16") count as the register.
    uint16_t count = 1;
    for (size_t at = name.find('_'); at != std::string_view::npos; at = name.find('_', at + 1))
      if (name.substr(at + 1).starts_with(file.prefix)) ++count;
    return RegisterRange{uint16_t(file.first + number), count};
  }
  return std::nullopt;
}

std::string plain_mnemonic(std::string_view text) {
  const size_t start = text.find_first_not_of(" \t");
  if (start == std::string_view::npos) return {};
  std::string_view word = text.substr(start, text.find_first_of(" \t", start) - start);
  for (std::string_view ending : {"_e32", "_e64", "_sdwa", "_dpp"})
    if (word.ends_with(ending)) word.remove_suffix(ending.size());
  return std::string(word);
}

/// Whether LLVM 22 crashes on an encoding instead of rejecting it: on a literal where the format has no room
/// for one, and on SDWA selections that do not exist. It also crashes on the valid v_madmk_f16 and
/// v_madak_f16 if their constant is 255, which it takes for the mark of a literal.
bool breaks_llvm(std::span<const uint32_t> dwords) {
  const Fields f = split_fields(dwords);
  switch (f.format) {
  case Format::vop3:
    // Codes below 256 are the comparisons, whose destination is a scalar operand, too, like that of
    // v_readfirstlane and v_readlane.
    if ((f.op < 256 || f.op == 0x142 || f.op == 0x289) && f.dst == code_literal) return true;
    [[fallthrough]];
  case Format::vop3p:
  case Format::mai:
    return std::find(std::begin(f.src), std::end(f.src), code_literal) != std::end(f.src);
  case Format::mubuf:
  case Format::mtbuf:
    return f.soffset == code_literal;
  case Format::vop2:
    if ((f.op == 0x24 || f.op == 0x25) && dwords[1] == code_literal) return true;
    [[fallthrough]];
  default:
    return f.is_sdwa && (f.sdwa_dst == 7 || f.sdwa_src0 == 7 || f.sdwa_src1 == 7 || f.sdwa_unused == 3);
  }
}

std::string tidy(std::string_view text) {
  std::string line;
  for (char c : text) {
    const bool space = c == ' ' || c == '\t' || c == '\n';
    if (!space)
      line += c;
    else if (!line.empty() && line.back() != ' ')
      line += ' ';
  }
  while (!line.empty() && line.back() == ' ')
    line.pop_back();
  return line;
}

} // namespace

std::vector<RegisterRange> registers_read(const Instruction &instruction, std::span<const uint32_t> dwords) {
  std::vector<RegisterRange> read = instruction.reads;
  if (!instruction.facts->has(Fact::chosen_halves)) return read;
  const Fields f = split_fields(dwords);
  auto rest = read.begin(); // in the order of the sources
  for (uint32_t k = 0; k < std::size(f.src); ++k) {
    const bool vector = f.src[k] >= code_first_vgpr;
    const uint16_t first = uint16_t(vector ? f.src[k] - code_first_vgpr : first_sgpr + f.src[k]);
    const auto pair = std::find(rest, read.end(), RegisterRange{first, 2});
    if (pair == read.end()) continue;
    bool is_read[2] = {};
    for (const bool for_high : {false, true})
      if (const auto dword =
              chosen_dword(instruction.facts->has(Fact::keeps_bits), f.op_sel, f.op_sel_hi, k, for_high))
        is_read[*dword] = true;
    if (is_read[0] != is_read[1]) *pair = {uint16_t(first + is_read[1]), 1};
    rest = pair + 1;
  }
  return read;
}

Disassembler::Disassembler() : state(std::make_unique<State>()) {
  static const bool registered = [] {
    LLVMInitializeAMDGPUTargetInfo();
    LLVMInitializeAMDGPUTargetMC();
    LLVMInitializeAMDGPUDisassembler();
    return true;
  }();
  (void)registered;

  const llvm::Triple triple("amdgcn-amd-amdhsa");
  std::string error;
  const llvm::Target *target = llvm::TargetRegistry::lookupTarget(triple, error);
  if (!target) throw std::runtime_error("LLVM has no AMDGPU target: " + error);
  const llvm::MCTargetOptions options;
  state->registers.reset(target->createMCRegInfo(triple));
  state->assembler.reset(target->createMCAsmInfo(*state->registers, triple, options));
  state->subtarget.reset(target->createMCSubtargetInfo(triple, "gfx942", ""));
  state->instructions.reset(target->createMCInstrInfo());
  state->context = std::make_unique<llvm::MCContext>(triple, state->assembler.get(), state->registers.get(),
                                                     state->subtarget.get());
  state->disassembler.reset(target->createMCDisassembler(*state->subtarget, *state->context));
  state->printer.reset(target->createMCInstPrinter(triple, state->assembler->getAssemblerDialect(),
                                                   *state->assembler, *state->instructions,
                                                   *state->registers));
  if (!state->disassembler || !state->printer)
    throw std::runtime_error("LLVM's AMDGPU target has no disassembler");

  state->ranges.resize(state->registers->getNumRegs());
  for (uint32_t number = 1; number < state->registers->getNumRegs(); ++number)
    state->ranges[number] = range_of(state->registers->getName(number));
}

Disassembler::~Disassembler() = default;

std::optional<Instruction> Disassembler::decode(std::span<const std::byte> code, uint64_t address) {
  llvm::MCInst inst;
  uint64_t size = 0;
  if (code.size() < 4) return std::nullopt;
  // LLVM 22 crashes on an instruction whose literal is cut off: pad the end with zeros.
  std::array<uint32_t, 4> dwords{};
  std::memcpy(dwords.data(), code.data(), std::min(code.size(), sizeof dwords));
  if (breaks_llvm(dwords)) return std::nullopt;
  const llvm::ArrayRef<uint8_t> bytes(reinterpret_cast<const uint8_t *>(dwords.data()), sizeof dwords);
  if (state->disassembler->getInstruction(inst, size, bytes, address, llvm::nulls()) !=
          llvm::MCDisassembler::Success ||
      size > code.size())
    return std::nullopt;

  Instruction result;
  result.bytes = uint32_t(size);
  result.name = state->instructions->getName(inst.getOpcode()).str();
  std::string text;
  llvm::raw_string_ostream stream(text);
  state->printer->printInst(&inst, address, "", *state->subtarget, stream);
  result.text = tidy(text);
  result.mnemonic = plain_mnemonic(result.text);
  if (const InstructionFacts *facts = instruction_facts(result.mnemonic)) result.facts = facts;

  const llvm::MCInstrDesc &description = state->instructions->get(inst.getOpcode());
  auto add = [&](std::vector<RegisterRange> &list, uint32_t number) {
    if (state->ranges[number]) list.push_back(*state->ranges[number]);
  };
  for (uint32_t i = 0; i < inst.getNumOperands(); ++i) {
    const llvm::MCOperand &operand = inst.getOperand(i);
    if (!operand.isReg() || !operand.getReg()) continue;
    add(i < description.getNumDefs() ? result.writes : result.reads, operand.getReg());
  }
  for (llvm::MCPhysReg number : description.implicit_uses())
    add(result.reads, number);
  // For v_cmp_class with SDST, LLVM reports that VCC is written too, as without it.
  const bool other_mask = split_fields(dwords).sdwa_has_sdst;
  for (llvm::MCPhysReg number : description.implicit_defs())
    if (!other_mask || state->ranges[number] != vcc) add(result.writes, number);
  return result;
}

} // namespace sluice::emulator
