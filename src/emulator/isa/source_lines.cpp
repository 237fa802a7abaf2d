//===- source_lines.cpp - where instructions come from --------------------------------------------------===//
#include "emulator/isa/source_lines.h"

#include <llvm/DebugInfo/DIContext.h>
#include <llvm/DebugInfo/DWARF/DWARFContext.h>
#include <llvm/Object/ObjectFile.h>
#include <llvm/Support/MemoryBuffer.h>

namespace sluice::emulator {

struct SourceLines::State {
  std::unique_ptr<llvm::object::ObjectFile> file;
  std::unique_ptr<llvm::DIContext> lines;
};

SourceLines::SourceLines(std::span<const std::byte> elf) : state(std::make_unique<State>()) {
  const llvm::StringRef bytes(reinterpret_cast<const char *>(elf.data()), elf.size());
  auto file = llvm::object::ObjectFile::createELFObjectFile(llvm::MemoryBufferRef(bytes, ""));
  if (!file) {
    llvm::consumeError(file.takeError());
    return;
  }
  state->file = std::move(*file);
  // What is wrong with the debug information is not what the report is about.
  auto ignore = [](llvm::Error error) { llvm::consumeError(std::move(error)); };
  state->lines = llvm::DWARFContext::create(
      *state->file, llvm::DWARFContext::ProcessDebugRelocations::Process, nullptr, "", ignore, ignore);
}

SourceLines::~SourceLines() = default;

std::string SourceLines::at(uint64_t address) const {
  if (!state->lines) return {};
  llvm::DILineInfoSpecifier wanted;
  wanted.FLIKind = llvm::DILineInfoSpecifier::FileLineInfoKind::AbsoluteFilePath;
  const llvm::DIInliningInfo frames = state->lines->getInliningInfoForAddress(
      {address, llvm::object::SectionedAddress::UndefSection}, wanted);
  std::string text;
  for (uint32_t i = 0; i < frames.getNumberOfFrames(); ++i) {
    const llvm::DILineInfo &frame = frames.getFrame(i);
    if (frame.FileName == llvm::DILineInfo::BadString || frame.Line == 0) continue;
    text += (text.empty() ? "" : ", inlined at ") + frame.FileName + ":" + std::to_string(frame.Line);
  }
  return text;
}

} // namespace sluice::emulator
