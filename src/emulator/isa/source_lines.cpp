//===- source_lines.cpp - the source lines of instructions ----------------------------------------------===//
#include "emulator/isa/source_lines.h"

#include <llvm/BinaryFormat/Dwarf.h>
#include <llvm/DebugInfo/DIContext.h>
#include <llvm/DebugInfo/DWARF/DWARFContext.h>
#include <llvm/Demangle/Demangle.h>
#include <llvm/Object/ELFObjectFile.h>
#include <llvm/Support/DataExtractor.h>
#include <llvm/Support/MemoryBuffer.h>

namespace sluice::emulator {

namespace {

/// Whether a description of directories or files in a line table's header (DWARF 5, section 6.2.4.1) has what
/// compilers write: paths, directory numbers and digests.
bool is_usual_format(const llvm::DataExtractor &data, uint64_t &at) {
  for (uint32_t count = data.getU8(&at); count != 0; --count) {
    const uint64_t content = data.getULEB128(&at);
    const uint64_t form = data.getULEB128(&at);
    const bool text = form == llvm::dwarf::DW_FORM_string || form == llvm::dwarf::DW_FORM_strp ||
                      form == llvm::dwarf::DW_FORM_line_strp;
    const bool number = form == llvm::dwarf::DW_FORM_udata || form == llvm::dwarf::DW_FORM_data1 ||
                        form == llvm::dwarf::DW_FORM_data2 || form == llvm::dwarf::DW_FORM_data4;
    const bool usual = content == llvm::dwarf::DW_LNCT_path || content == llvm::dwarf::DW_LNCT_LLVM_source
                           ? text
                       : content == llvm::dwarf::DW_LNCT_MD5 ? form == llvm::dwarf::DW_FORM_data16
                                                             : number && content < llvm::dwarf::DW_LNCT_MD5;
    if (!usual) return false;
  }
  return true;
}

bool skip_entries(const llvm::DataExtractor &data, uint64_t &at, uint64_t formats_at) {
  for (uint64_t left = data.getULEB128(&at); left != 0; --left) {
    uint64_t format = formats_at;
    for (uint32_t count = data.getU8(&format); count != 0; --count) {
      data.getULEB128(&format);
      switch (data.getULEB128(&format)) {
      case llvm::dwarf::DW_FORM_string:
        data.getCStrRef(&at);
        break;
      case llvm::dwarf::DW_FORM_udata:
        data.getULEB128(&at);
        break;
      case llvm::dwarf::DW_FORM_data1:
        at += 1;
        break;
      case llvm::dwarf::DW_FORM_data2:
        at += 2;
        break;
      case llvm::dwarf::DW_FORM_data16:
        at += 16;
        break;
      default: // offsets into strings, and data4
        at += 4;
      }
    }
    if (!data.isValidOffset(at)) return false;
  }
  return true;
}

/// LLVM's reader does not check the header of a line table, and runs wild on some that no compiler writes.
/// Tables follow each other, each after its length.
bool heads_are_sound(llvm::StringRef line_tables) {
  const llvm::DataExtractor data(line_tables, true, 8);
  for (uint64_t at = 0; at < line_tables.size();) {
    if (line_tables.size() - at < 8) return false;
    const uint64_t length = data.getU32(&at);
    if (length >= 0xfffffff0 || length < 4 || length > line_tables.size() - at) return false;
    uint64_t head = at;
    at += length;
    if (data.getU16(&head) != 5) return false;
    if (data.getU8(&head) != 8 || data.getU8(&head) != 0) return false; // size of an address, of a segment
    head += 4 + 5;                                                      // skips to the number of opcodes
    const uint32_t opcodes = data.getU8(&head);
    if (opcodes == 0) return false;
    head += opcodes - 1;
    for (int kind = 0; kind < 2; ++kind) { // directories, files
      const uint64_t formats_at = head;
      if (!is_usual_format(data, head) || !skip_entries(data, head, formats_at)) return false;
    }
    if (head > at) return false;
  }
  return true;
}

} // namespace

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
  for (const llvm::object::SectionRef &section : state->file->sections()) {
    llvm::Expected<llvm::StringRef> name = section.getName();
    llvm::Expected<llvm::StringRef> contents = section.getContents();
    const bool sound = name && contents && (*name != ".debug_line" || heads_are_sound(*contents));
    if (!name) llvm::consumeError(name.takeError());
    if (!contents) llvm::consumeError(contents.takeError());
    if (!sound) return;
  }
  // Errors in the debug information are not the subject of the report.
  auto ignore = [](llvm::Error error) { llvm::consumeError(std::move(error)); };
  state->lines = llvm::DWARFContext::create(
      *state->file, llvm::DWARFContext::ProcessDebugRelocations::Process, nullptr, "", ignore, ignore);
}

SourceLines::~SourceLines() = default;

std::string SourceLines::at(uint64_t address) const {
  std::string text;
  for (const Frame &frame : frames(address))
    text += (text.empty() ? "" : ", inlined at ") + frame.file + ":" + std::to_string(frame.line);
  return text;
}

std::vector<SourceLines::Frame> SourceLines::frames(uint64_t address) const {
  if (!state->lines) return {};
  llvm::DILineInfoSpecifier wanted;
  wanted.FLIKind = llvm::DILineInfoSpecifier::FileLineInfoKind::AbsoluteFilePath;
  wanted.FNKind = llvm::DILineInfoSpecifier::FunctionNameKind::ShortName;
  const llvm::DIInliningInfo found = state->lines->getInliningInfoForAddress(
      {address, llvm::object::SectionedAddress::UndefSection}, wanted);
  std::vector<Frame> frames;
  for (uint32_t i = 0; i < found.getNumberOfFrames(); ++i) {
    const llvm::DILineInfo &frame = found.getFrame(i);
    if (frame.FileName == llvm::DILineInfo::BadString || frame.Line == 0) continue;
    const bool named = frame.FunctionName != llvm::DILineInfo::BadString;
    frames.push_back({named ? frame.FunctionName : "", frame.FileName, frame.Line});
  }
  return frames;
}

std::string SourceLines::symbol(uint64_t address) const {
  if (!state->file) return {};
  for (const llvm::object::ELFSymbolRef symbol :
       static_cast<llvm::object::ELFObjectFileBase &>(*state->file).symbols()) {
    llvm::Expected<uint64_t> start = symbol.getAddress();
    llvm::Expected<llvm::StringRef> name = symbol.getName();
    if (start && name && symbol.getELFType() == llvm::ELF::STT_FUNC && *start <= address &&
        address - *start < symbol.getSize())
      return llvm::demangle(*name);
    if (!start) llvm::consumeError(start.takeError());
    if (!name) llvm::consumeError(name.takeError());
  }
  return {};
}

} // namespace sluice::emulator
