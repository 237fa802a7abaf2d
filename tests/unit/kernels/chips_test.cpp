//===- chips_test.cpp - the chip table against LLVM -----------------------------------------------------===//
//
// For every capability that an instruction reveals, LLVM's assembler is asked for that chip: instructions
// that the table claims must assemble, and those that it denies must not. Properties that LLVM does not know
// (banks, compute units) are not checked.
//
//===----------------------------------------------------------------------------------------------------===//
#include "emulator/isa/instructions.h"
#include "emulator/isa/mfma_shapes.h"
#include "package/chips.h"
#include "target/Chips.h"
#include "target/WaitCounters.h"

#include <catch2/catch.hpp>

#include <llvm/BinaryFormat/ELF.h>
#include <llvm/MC/MCAsmInfo.h>
#include <llvm/MC/MCContext.h>
#include <llvm/MC/MCInst.h>
#include <llvm/MC/MCInstrInfo.h>
#include <llvm/MC/MCObjectFileInfo.h>
#include <llvm/MC/MCParser/MCAsmParser.h>
#include <llvm/MC/MCParser/MCTargetAsmParser.h>
#include <llvm/MC/MCRegisterInfo.h>
#include <llvm/MC/MCStreamer.h>
#include <llvm/MC/MCSubtargetInfo.h>
#include <llvm/MC/MCTargetOptions.h>
#include <llvm/MC/TargetRegistry.h>
#include <llvm/Support/MemoryBuffer.h>
#include <llvm/Support/SourceMgr.h>
#include <llvm/Support/TargetSelect.h>

#include <optional>
#include <string>

using namespace sluice;

namespace {

/// Keeps the last instruction that the assembler read.
class LastInstruction : public llvm::MCStreamer {
public:
  explicit LastInstruction(llvm::MCContext &context) : MCStreamer(context) {}
  bool emitSymbolAttribute(llvm::MCSymbol *, llvm::MCSymbolAttr) override { return true; }
  void emitCommonSymbol(llvm::MCSymbol *, uint64_t, llvm::Align) override {}
  void emitInstruction(const llvm::MCInst &instruction, const llvm::MCSubtargetInfo &) override {
    last = instruction;
  }

  llvm::MCInst last;
};

class Assembler {
public:
  explicit Assembler(llvm::StringRef chip) {
    LLVMInitializeAMDGPUTargetInfo();
    LLVMInitializeAMDGPUTargetMC();
    LLVMInitializeAMDGPUAsmParser();
    std::string error;
    target = llvm::TargetRegistry::lookupTarget(triple, error);
    REQUIRE(target);
    registers.reset(target->createMCRegInfo(triple));
    info.reset(target->createMCAsmInfo(*registers, triple, options));
    instructions.reset(target->createMCInstrInfo());
    subtarget.reset(target->createMCSubtargetInfo(triple, chip, ""));
    REQUIRE(subtarget->isCPUStringValid(chip));
  }

  /// Empty if the chip does not have it.
  std::optional<llvm::MCInst> assemble(const std::string &line) const {
    INFO(line);
    llvm::SourceMgr sources;
    sources.setDiagHandler([](const llvm::SMDiagnostic &, void *) {});
    sources.AddNewSourceBuffer(llvm::MemoryBuffer::getMemBufferCopy(line + "\n"), {});
    llvm::MCContext context(triple, info.get(), registers.get(), subtarget.get(), &sources, &options);
    const std::unique_ptr<llvm::MCObjectFileInfo> files(target->createMCObjectFileInfo(context, false));
    context.setObjectFileInfo(files.get());
    LastInstruction streamer(context);
    const std::unique_ptr<llvm::MCAsmParser> parser(
        llvm::createMCAsmParser(sources, context, streamer, *info));
    const std::unique_ptr<llvm::MCTargetAsmParser> target_parser(
        target->createMCAsmParser(*subtarget, *parser, *instructions, options));
    parser->setTargetParser(*target_parser);
    if (parser->Run(false)) return std::nullopt;
    return streamer.last;
  }

  bool accepts(const std::string &line) const { return assemble(line).has_value(); }

  /// How long an instruction takes its unit according to LLVM's scheduling model, in units of 4 clk: the
  /// passes of an MFMA.
  unsigned passes(const llvm::MCInst &instruction) const {
    const llvm::MCSchedModel &model = subtarget->getSchedModel();
    unsigned sched = instructions->get(instruction.getOpcode()).getSchedClass();
    while (model.getSchedClassDesc(sched)->isVariant())
      sched = subtarget->resolveVariantSchedClass(sched, &instruction, instructions.get(), model.ProcID);
    const llvm::MCSchedClassDesc *uses = model.getSchedClassDesc(sched);
    unsigned most = 0;
    for (const llvm::MCWriteProcResEntry &use :
         llvm::make_range(subtarget->getWriteProcResBegin(uses), subtarget->getWriteProcResEnd(uses)))
      most = std::max<unsigned>(most, use.ReleaseAtCycle);
    return most;
  }

  bool has_feature(const std::string &feature) const { return subtarget->checkFeatures("+" + feature); }

private:
  const llvm::Triple triple = llvm::Triple("amdgcn-amd-amdhsa");
  const llvm::MCTargetOptions options;
  const llvm::Target *target = nullptr;
  std::unique_ptr<llvm::MCRegisterInfo> registers;
  std::unique_ptr<llvm::MCAsmInfo> info;
  std::unique_ptr<llvm::MCInstrInfo> instructions;
  std::unique_ptr<llvm::MCSubtargetInfo> subtarget;
};

std::string direct_to_lds(unsigned bytes) {
  const char *type = bytes == 1    ? "ubyte"
                     : bytes == 2  ? "ushort"
                     : bytes == 4  ? "dword"
                     : bytes == 8  ? "dwordx2"
                     : bytes == 12 ? "dwordx3"
                                   : "dwordx4";
  return std::string("buffer_load_") + type + " v1, s[4:7], 0 offen lds";
}

std::string range(unsigned first, unsigned count) {
  return "v[" + std::to_string(first) + ":" + std::to_string(first + count - 1) + "]";
}

/// The registers follow from the shape: 64 lanes hold rows x columns results and rows x depth operands of the
/// type's size.
std::string mfma_with(const MfmaShape &shape, const std::string &suffix, unsigned element_bytes) {
  const unsigned results = shape.rows * shape.columns / 64;
  const unsigned operands = shape.rows * shape.depth * element_bytes / 4 / 64;
  const std::string d = range(0, results), a = range(32, operands), b = range(48, operands);
  const std::string size =
      std::to_string(shape.rows) + "x" + std::to_string(shape.columns) + "x" + std::to_string(shape.depth);
  return "v_mfma_f32_" + size + suffix + " " + d + ", " + a + ", " + b + ", " + d;
}

/// gfx90a spells them differently.
std::vector<std::string> mfma(const MfmaShape &shape, const std::string &type) {
  const unsigned element_bytes = type == "fp8_fp8" ? 1 : 2;
  return {mfma_with(shape, "_" + type, element_bytes),
          mfma_with(shape, type + (type == "bf16" ? "_1k" : ""), element_bytes)};
}

template <typename Range, typename Value> bool holds(const Range &range, const Value &value) {
  return std::find(range.begin(), range.end(), value) != range.end();
}

} // namespace

TEST_CASE("the table has LLVM's names", "[chips]") {
  REQUIRE(allChips().size() == 3);
  for (const Chip &chip : allChips()) {
    INFO(chip.name.str());
    const Assembler llvm(chip.name);
    CHECK(findChip(chip.name) == &chip);
    CHECK(llvm.has_feature("wavefrontsize" + std::to_string(chip.waveSize)));
    for (const unsigned bytes : {32768u, 65536u, 163840u, 327680u}) {
      INFO(bytes);
      CHECK(llvm.has_feature("addressablelocalmemorysize" + std::to_string(bytes)) ==
            (bytes == chip.ldsBytes));
    }
    // 512 registers of a unified file: v255 and a255 exist, v256 does not.
    CHECK(chip.vgprs == 512);
    CHECK(llvm.has_feature("gfx90a-insts"));
    CHECK(llvm.accepts("v_accvgpr_read_b32 v255, a255"));
    CHECK_FALSE(llvm.accepts("v_mov_b32 v256, 0"));
  }
  CHECK(findChip("gfx1100") == nullptr);
}

TEST_CASE("direct-to-LDS loads have the widths of the table and no others", "[chips]") {
  for (const Chip &chip : allChips()) {
    const Assembler llvm(chip.name);
    CHECK(std::is_sorted(chip.directToLdsBytes.begin(), chip.directToLdsBytes.end()));
    for (const unsigned bytes : {1u, 2u, 4u, 8u, 12u, 16u}) {
      INFO(chip.name.str() << " " << bytes);
      CHECK(llvm.accepts(direct_to_lds(bytes)) == holds(chip.directToLdsBytes, bytes));
    }
  }
}

TEST_CASE("MFMA shapes are those of the table and no others", "[chips]") {
  for (const Chip &chip : allChips()) {
    const Assembler llvm(chip.name);
    for (const MfmaShape shape : {MfmaShape{16, 16, 16}, {16, 16, 32}, {32, 32, 8}, {32, 32, 16}})
      for (const char *type : {"f16", "bf16"}) {
        const std::vector<std::string> spellings = mfma(shape, type);
        INFO(chip.name.str() << " " << spellings[0]);
        CHECK((llvm.accepts(spellings[0]) || llvm.accepts(spellings[1])) == chip.hasMfma(shape, 2));
        const llvm::StringRef suffix = type == std::string("f16") ? chip.f16MfmaSuffix : chip.bf16MfmaSuffix;
        CHECK(llvm.accepts(mfma_with(shape, suffix.str(), 2)) == chip.hasMfma(shape, 2));
      }
    for (const MfmaShape shape :
         {MfmaShape{16, 16, 16}, {16, 16, 32}, {32, 32, 8}, {32, 32, 16}, {32, 32, 32}}) {
      const std::string spelling = mfma(shape, "fp8_fp8")[0];
      INFO(chip.name.str() << " " << spelling);
      CHECK(llvm.accepts(spelling) == chip.hasMfma(shape, 1));
    }
  }
}

TEST_CASE("MFMAs take the passes of the table", "[chips]") {
  unsigned asked = 0;
  for (const Chip &chip : allChips()) {
    const Assembler llvm(chip.name);
    for (const auto &[mfmas, type] :
         {std::pair(chip.mfmas, "f16"), std::pair(chip.mfmas, "bf16"), std::pair(chip.fp8Mfmas, "fp8_fp8")})
      for (const Mfma &entry : mfmas)
        for (const std::string &spelling : mfma(entry.shape, type)) {
          const std::optional<llvm::MCInst> instruction = llvm.assemble(spelling);
          if (!instruction) continue;
          INFO(chip.name.str() << " " << spelling);
          CHECK(llvm.passes(*instruction) == entry.passes);
          CHECK(chip.mfmaPasses(entry.shape, type[0] == 'f' && type[1] == 'p' ? 1 : 2) == entry.passes);
          ++asked;
        }
  }
  CHECK(asked >= 20);
  CHECK(findChip("gfx942")->mfmaPasses({16, 16, 32}, 2) == 0);
}

TEST_CASE("single capabilities are those of the table", "[chips]") {
  for (const Chip &chip : allChips()) {
    INFO(chip.name.str());
    const Assembler llvm(chip.name);
    CHECK(llvm.accepts("ds_read_b64_tr_b16 v[0:1], v2") == chip.transposingLdsReads);
    CHECK(llvm.accepts("v_cvt_pk_bf16_f32 v0, v1, v2") == chip.packedBf16Conversion);
    CHECK(llvm.accepts("v_cvt_pk_fp8_f32 v0, v1, v2") == (chip.fp8 != Fp8Flavour::None));
    // The scaled conversions came with the OCP formats.
    CHECK(llvm.accepts("v_cvt_scalef32_pk_fp8_f32 v0, v1, v2, v3") == (chip.fp8 == Fp8Flavour::Ocp));
    for (const LdsReadBanks &width : chip.ldsReadBanks) {
      CHECK(llvm.accepts("ds_read_b" + std::to_string(width.accessBytes * 8) + " " +
                         (width.accessBytes == 4 ? "v4" : range(4, width.accessBytes / 4)) + ", v2"));
      CHECK(chip.ldsBanks(width.accessBytes) == width.banks);
    }
    CHECK(chip.ldsBanks(2) == 0);
  }
}

TEST_CASE("the loader's table has the same chips, with LLVM's numbers of them", "[chips]") {
  REQUIRE(package::chips.size() == allChips().size());
  const std::pair<const char *, uint32_t> machines[] = {{"gfx90a", llvm::ELF::EF_AMDGPU_MACH_AMDGCN_GFX90A},
                                                        {"gfx942", llvm::ELF::EF_AMDGPU_MACH_AMDGCN_GFX942},
                                                        {"gfx950", llvm::ELF::EF_AMDGPU_MACH_AMDGCN_GFX950}};
  for (const auto &[name, machine] : machines) {
    REQUIRE(findChip(name));
    REQUIRE(package::find_chip(name));
    CHECK(package::find_chip(name)->elf_machine == machine);
  }
  CHECK(package::find_chip("gfx90a")->generic_elf_machine == 0);
  for (const char *name : {"gfx942", "gfx950"})
    CHECK(package::find_chip(name)->generic_elf_machine == llvm::ELF::EF_AMDGPU_MACH_AMDGCN_GFX9_4_GENERIC);
}

TEST_CASE("the emulator's MFMAs take as many passes as those of the table", "[chips]") {
  using emulator::MfmaInput;
  const Chip &chip = *findChip("gfx942");
  size_t compared = 0;
  for (const emulator::MfmaInstruction &instruction : emulator::mfma_instructions()) {
    const emulator::MfmaShape &shape = instruction.shape;
    if (shape.sparse || shape.blocks != 1 || shape.input == MfmaInput::i8 || shape.input == MfmaInput::xf32 ||
        shape.input == MfmaInput::f64)
      continue;
    INFO(instruction.mnemonic);
    const unsigned passes =
        chip.mfmaPasses({shape.m, shape.n, shape.k}, emulator::input_bits(shape.input) / 8);
    if (passes == 0) continue; // no kernel uses it
    CHECK(passes == shape.passes);
    ++compared;
  }
  CHECK(compared == 2 * chip.mfmas.size() + 4 * chip.fp8Mfmas.size() + chip.floatMfmas.size());
}

TEST_CASE("the emulator reads the counters of s_waitcnt as the generator does", "[chips]") {
  for (uint32_t simm16 = 0; simm16 < 1u << 16; ++simm16) {
    const emulator::WaitCounts counts = emulator::wait_counts(simm16);
    const WaitCounters decoded = WaitCounters::decode(simm16);
    if (counts.vector != decoded.vmcnt || counts.lgkm != decoded.lgkmcnt) FAIL(simm16);
  }
}
