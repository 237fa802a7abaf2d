//===- codec.cpp - LLVM's gfx942 encoder, decoder, printer and parser, instruction by instruction -------===//
#include "isa/codec.h"

#include <cstring>
#include <stdexcept>

#include <llvm/ADT/SmallString.h>
#include <llvm/MC/MCAsmBackend.h>
#include <llvm/MC/MCAsmInfo.h>
#include <llvm/MC/MCCodeEmitter.h>
#include <llvm/MC/MCContext.h>
#include <llvm/MC/MCDisassembler/MCDisassembler.h>
#include <llvm/MC/MCFixup.h>
#include <llvm/MC/MCInst.h>
#include <llvm/MC/MCInstPrinter.h>
#include <llvm/MC/MCInstrDesc.h>
#include <llvm/MC/MCInstrInfo.h>
#include <llvm/MC/MCObjectFileInfo.h>
#include <llvm/MC/MCObjectWriter.h>
#include <llvm/MC/MCParser/MCAsmParser.h>
#include <llvm/MC/MCParser/MCTargetAsmParser.h>
#include <llvm/MC/MCRegisterInfo.h>
#include <llvm/MC/MCStreamer.h>
#include <llvm/MC/MCSubtargetInfo.h>
#include <llvm/MC/MCTargetOptions.h>
#include <llvm/MC/TargetRegistry.h>
#include <llvm/Support/MemoryBuffer.h>
#include <llvm/Support/raw_ostream.h>
#include <llvm/Support/SourceMgr.h>
#include <llvm/TargetParser/Triple.h>

extern "C" void LLVMInitializeAMDGPUTargetInfo();
extern "C" void LLVMInitializeAMDGPUTargetMC();
extern "C" void LLVMInitializeAMDGPUAsmParser();
extern "C" void LLVMInitializeAMDGPUDisassembler();

namespace sluice::test {

namespace {

const llvm::Triple triple("amdgcn-amd-amdhsa");

const llvm::Target &amdgpu() {
  static const llvm::Target *target = [] {
    LLVMInitializeAMDGPUTargetInfo();
    LLVMInitializeAMDGPUTargetMC();
    LLVMInitializeAMDGPUAsmParser();
    LLVMInitializeAMDGPUDisassembler();
    std::string error;
    return llvm::TargetRegistry::lookupTarget(triple, error);
  }();
  if (!target) throw std::runtime_error("LLVM has no AMDGPU target");
  return *target;
}

/// The starting point of every tool of LLVM's machine-code layer.
struct Tables {
  llvm::MCTargetOptions options;
  std::unique_ptr<llvm::MCRegisterInfo> registers{amdgpu().createMCRegInfo(triple)};
  std::unique_ptr<llvm::MCAsmInfo> syntax{amdgpu().createMCAsmInfo(*registers, triple, options)};
  std::unique_ptr<llvm::MCSubtargetInfo> subtarget{amdgpu().createMCSubtargetInfo(triple, "gfx942", "")};
  std::unique_ptr<llvm::MCInstrInfo> instructions{amdgpu().createMCInstrInfo()};
};

/// LLVM decodes constants where only registers are possible (v_accvgpr_mov_b32), and crashes when it encodes
/// them.
bool operands_fit(const llvm::MCInst &inst, const llvm::MCInstrDesc &description) {
  for (uint32_t i = 0; i < description.getNumOperands() && i < inst.getNumOperands(); ++i)
    if (description.operands()[i].OperandType == llvm::MCOI::OPERAND_REGISTER && !inst.getOperand(i).isReg())
      return false;
  return true;
}

/// LLVM's encoder turns a float constant that LLVM decodes for a 16-bit integer into a literal. VOP3 has no
/// literals, and LLVM crashes when it decodes one.
bool has_vop3_literal(std::span<const uint32_t> dwords) {
  if (dwords[0] >> 26 != 0x34) return false;
  for (uint32_t i = 0; i < 3; ++i)
    if ((dwords[1] >> (9 * i) & 0x1ff) == 0xff) return true;
  return false;
}

std::vector<uint32_t> encode(const llvm::MCCodeEmitter &emitter, const llvm::MCInst &inst,
                             const llvm::MCSubtargetInfo &subtarget) {
  llvm::SmallVector<char, 16> bytes;
  llvm::SmallVector<llvm::MCFixup, 2> fixups;
  emitter.encodeInstruction(inst, bytes, fixups, subtarget);
  std::vector<uint32_t> dwords(bytes.size() / 4);
  std::memcpy(dwords.data(), bytes.data(), dwords.size() * 4);
  return dwords;
}

/// Maps each parsed instruction to its line.
class LineStreamer : public llvm::MCStreamer {
public:
  LineStreamer(llvm::MCContext &context, const llvm::SourceMgr &text, const llvm::MCCodeEmitter &code,
               std::vector<std::vector<uint32_t>> &result)
      : MCStreamer(context), sources(text), emitter(code), lines(result) {}

  bool emitSymbolAttribute(llvm::MCSymbol *, llvm::MCSymbolAttr) override { return false; }
  void emitCommonSymbol(llvm::MCSymbol *, uint64_t, llvm::Align) override {}
  void emitInstruction(const llvm::MCInst &inst, const llvm::MCSubtargetInfo &subtarget) override {
    lines[sources.FindLineNumber(inst.getLoc()) - 1] = encode(emitter, inst, subtarget);
  }

private:
  const llvm::SourceMgr &sources;
  const llvm::MCCodeEmitter &emitter;
  std::vector<std::vector<uint32_t>> &lines;
};

} // namespace

struct Codec::State {
  Tables tables;
  llvm::MCContext context{triple, tables.syntax.get(), tables.registers.get(), tables.subtarget.get()};
  std::unique_ptr<llvm::MCDisassembler> decoder{amdgpu().createMCDisassembler(*tables.subtarget, context)};
  std::unique_ptr<llvm::MCCodeEmitter> emitter{amdgpu().createMCCodeEmitter(*tables.instructions, context)};
  std::unique_ptr<llvm::MCInstPrinter> printer{amdgpu().createMCInstPrinter(
      triple, tables.syntax->getAssemblerDialect(), *tables.syntax, *tables.instructions, *tables.registers)};
};

Codec::Codec() : state(std::make_unique<State>()) {}
Codec::~Codec() = default;

std::optional<Encoding> Codec::encode_again(std::span<const uint32_t> dwords) {
  llvm::MCInst inst;
  uint64_t size = 0;
  auto decode = [&](std::span<const uint32_t> code) {
    const llvm::ArrayRef<uint8_t> bytes(reinterpret_cast<const uint8_t *>(code.data()), code.size_bytes());
    return state->decoder->getInstruction(inst, size, bytes, 0, llvm::nulls()) ==
           llvm::MCDisassembler::Success;
  };
  if (!decode(dwords) || !operands_fit(inst, state->tables.instructions->get(inst.getOpcode())))
    return std::nullopt;
  Encoding result;
  result.dwords = encode(*state->emitter, inst, *state->tables.subtarget);
  inst.clear();
  if (has_vop3_literal(result.dwords) || !decode(result.dwords) || size != result.dwords.size() * 4)
    return std::nullopt;
  llvm::raw_string_ostream stream(result.text);
  state->printer->printInst(&inst, 0, "", *state->tables.subtarget, stream);
  return result;
}

std::vector<std::vector<uint32_t>> Codec::assemble_each(std::span<const Encoding> lines) {
  std::string source;
  for (const Encoding &line : lines)
    source += line.text + "\n";
  std::vector<std::vector<uint32_t>> result(lines.size());

  const Tables tables;
  llvm::SourceMgr sources;
  sources.setDiagHandler([](const llvm::SMDiagnostic &, void *) {});
  sources.AddNewSourceBuffer(llvm::MemoryBuffer::getMemBuffer(source), {});
  llvm::MCContext context(triple, tables.syntax.get(), tables.registers.get(), tables.subtarget.get(),
                          &sources, &tables.options);
  const std::unique_ptr<llvm::MCObjectFileInfo> files(amdgpu().createMCObjectFileInfo(context, false));
  context.setObjectFileInfo(files.get());
  const std::unique_ptr<llvm::MCCodeEmitter> emitter(
      amdgpu().createMCCodeEmitter(*tables.instructions, context));
  LineStreamer streamer(context, sources, *emitter, result);
  amdgpu().createNullTargetStreamer(streamer);
  streamer.initSections(false, *tables.subtarget);
  const std::unique_ptr<llvm::MCAsmParser> parser(
      llvm::createMCAsmParser(sources, context, streamer, *tables.syntax));
  const std::unique_ptr<llvm::MCTargetAsmParser> target_parser(
      amdgpu().createMCAsmParser(*tables.subtarget, *parser, *tables.instructions, tables.options));
  parser->setTargetParser(*target_parser);
  parser->Run(true);
  return result;
}

std::string Codec::object_file(std::span<const Encoding> code) {
  const Tables tables;
  llvm::MCContext context(triple, tables.syntax.get(), tables.registers.get(), tables.subtarget.get());
  const std::unique_ptr<llvm::MCObjectFileInfo> files(amdgpu().createMCObjectFileInfo(context, false));
  context.setObjectFileInfo(files.get());
  llvm::SmallString<0> object;
  llvm::raw_svector_ostream stream(object);
  std::unique_ptr<llvm::MCAsmBackend> backend(
      amdgpu().createMCAsmBackend(*tables.subtarget, *tables.registers, tables.options));
  std::unique_ptr<llvm::MCObjectWriter> writer = backend->createObjectWriter(stream);
  std::unique_ptr<llvm::MCCodeEmitter> emitter(amdgpu().createMCCodeEmitter(*tables.instructions, context));
  const std::unique_ptr<llvm::MCStreamer> streamer(amdgpu().createMCObjectStreamer(
      triple, context, std::move(backend), std::move(writer), std::move(emitter), *tables.subtarget));
  streamer->initSections(false, *tables.subtarget);
  for (const Encoding &encoding : code)
    streamer->emitBytes({reinterpret_cast<const char *>(encoding.dwords.data()), encoding.dwords.size() * 4});
  streamer->finish();
  return object.str().str();
}

} // namespace sluice::test
