//===- assembler.cpp - gfx942 assembly to bytes, in the test's process ----------------------------------===//
#include "isa/assembler.h"

#include <cstring>
#include <set>
#include <stdexcept>
#include <string>

#include <llvm/MC/MCAsmBackend.h>
#include <llvm/MC/MCAsmInfo.h>
#include <llvm/MC/MCCodeEmitter.h>
#include <llvm/MC/MCContext.h>
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
#include <llvm/Object/ELFObjectFile.h>
#include <llvm/Support/MemoryBuffer.h>
#include <llvm/Support/raw_ostream.h>
#include <llvm/Support/SourceMgr.h>

extern "C" void LLVMInitializeAMDGPUTargetInfo();
extern "C" void LLVMInitializeAMDGPUTargetMC();
extern "C" void LLVMInitializeAMDGPUAsmParser();

namespace sluice::test {

namespace {

const llvm::Target &amdgpu() {
  static const llvm::Target *target = [] {
    LLVMInitializeAMDGPUTargetInfo();
    LLVMInitializeAMDGPUTargetMC();
    LLVMInitializeAMDGPUAsmParser();
    std::string error;
    return llvm::TargetRegistry::lookupTarget(llvm::Triple("amdgcn-amd-amdhsa"), error);
  }();
  if (!target) throw std::runtime_error("LLVM has no AMDGPU target");
  return *target;
}

struct Messages {
  std::string text;
  std::set<size_t> lines; // with errors, from 1
};

llvm::SmallVector<char, 0> assemble_object(std::string_view source, Messages &messages) {
  const llvm::Target &target = amdgpu();
  const llvm::Triple triple("amdgcn-amd-amdhsa");
  llvm::SourceMgr sources;
  sources.setDiagHandler(
      [](const llvm::SMDiagnostic &diagnostic, void *context) {
        Messages &all = *static_cast<Messages *>(context);
        llvm::raw_string_ostream stream(all.text);
        diagnostic.print("", stream, false);
        if (diagnostic.getKind() == llvm::SourceMgr::DK_Error)
          all.lines.insert(size_t(diagnostic.getLineNo()));
      },
      &messages);
  sources.AddNewSourceBuffer(
      llvm::MemoryBuffer::getMemBufferCopy(llvm::StringRef(source.data(), source.size())), {});

  const llvm::MCTargetOptions options;
  const std::unique_ptr<llvm::MCRegisterInfo> registers(target.createMCRegInfo(triple));
  const std::unique_ptr<llvm::MCAsmInfo> info(target.createMCAsmInfo(*registers, triple, options));
  const std::unique_ptr<llvm::MCSubtargetInfo> subtarget(target.createMCSubtargetInfo(triple, "gfx942", ""));
  const std::unique_ptr<llvm::MCInstrInfo> instructions(target.createMCInstrInfo());
  llvm::MCContext context(triple, info.get(), registers.get(), subtarget.get(), &sources, &options);
  const std::unique_ptr<llvm::MCObjectFileInfo> files(target.createMCObjectFileInfo(context, false));
  context.setObjectFileInfo(files.get());

  llvm::SmallVector<char, 0> object;
  llvm::raw_svector_ostream stream(object);
  std::unique_ptr<llvm::MCAsmBackend> backend(target.createMCAsmBackend(*subtarget, *registers, options));
  std::unique_ptr<llvm::MCObjectWriter> writer = backend->createObjectWriter(stream);
  std::unique_ptr<llvm::MCCodeEmitter> emitter(target.createMCCodeEmitter(*instructions, context));
  const std::unique_ptr<llvm::MCStreamer> streamer(target.createMCObjectStreamer(
      triple, context, std::move(backend), std::move(writer), std::move(emitter), *subtarget));
  streamer->initSections(false, *subtarget);
  const std::unique_ptr<llvm::MCAsmParser> parser(
      llvm::createMCAsmParser(sources, context, *streamer, *info));
  const std::unique_ptr<llvm::MCTargetAsmParser> target_parser(
      target.createMCAsmParser(*subtarget, *parser, *instructions, options));
  parser->setTargetParser(*target_parser);
  if (parser->Run(false)) object.clear();
  return object;
}

} // namespace

std::vector<uint32_t> assemble(std::string_view source) {
  Messages messages;
  const llvm::SmallVector<char, 0> object = assemble_object(source, messages);
  if (object.empty()) throw std::runtime_error("the assembler says:\n" + messages.text);
  const llvm::MemoryBufferRef buffer(llvm::StringRef(object.data(), object.size()), "");
  auto file = llvm::object::ObjectFile::createELFObjectFile(buffer);
  if (!file) throw std::runtime_error(llvm::toString(file.takeError()));
  for (const llvm::object::SectionRef &section : (*file)->sections()) {
    llvm::Expected<llvm::StringRef> name = section.getName();
    if (!name || *name != ".text") continue;
    llvm::Expected<llvm::StringRef> contents = section.getContents();
    if (!contents) throw std::runtime_error(llvm::toString(contents.takeError()));
    std::vector<uint32_t> code(contents->size() / 4);
    std::memcpy(code.data(), contents->data(), code.size() * 4);
    return code;
  }
  return {};
}

std::vector<std::string> assembling_lines(std::span<const std::string> lines) {
  std::string source;
  for (const std::string &line : lines)
    source += line + "\n";
  Messages messages;
  assemble_object(source, messages);
  std::vector<std::string> good;
  for (size_t i = 0; i < lines.size(); ++i)
    if (!messages.lines.contains(i + 1)) good.push_back(lines[i]);
  return good;
}

} // namespace sluice::test
