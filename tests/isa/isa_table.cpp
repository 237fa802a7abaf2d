//===- isa_table.cpp - which instructions the machine executes
//-------------------------------------------===//
//
// Prints the table of docs/reference/instructions.md: by format, what is executed and what the machine stops
// at, over all that the corpus holds.
//
//===----------------------------------------------------------------------------------------------------===//
#include <cstdio>
#include <map>
#include <regex>
#include <set>

#include "emulator/machine/decoder.h"
#include "isa/corpus.h"

namespace {

using namespace sluice;

struct Mnemonic {
  size_t executed = 0, refused = 0; // encodings
  std::set<std::string> reasons;
};
struct FormatRows {
  size_t encodings = 0;
  std::map<std::string, Mnemonic> mnemonics;
};

/// Numbers in a reason are those of one encoding: one line serves for all.
std::string without_numbers(const std::string &reason) {
  return std::regex_replace(reason, std::regex("\\b[0-9]+(x[0-9]+)*"), "N");
}

/// All of them, or how many: the widest reasons stop some form of nearly every instruction.
std::string list_of(const std::vector<std::string> &names, bool some_forms) {
  if (some_forms && names.size() > 24) return "some forms of " + std::to_string(names.size()) + " instructions";
  std::string text = some_forms ? "some forms of" : "";
  for (const std::string &name : names)
    text += (text.empty() ? "`" : " `") + name + "`";
  return text;
}

/// MAI is a part of VOP3P to the manual, and its own thing to a reader.
std::string heading(emulator::Format format) {
  return format == emulator::Format::mai ? "VOP3P-MAI" : std::string(emulator::format_name(format));
}

} // namespace

int main() {
  emulator::Disassembler disassembler;
  emulator::Decoder decoder(emulator::SimdPath::portable);
  std::map<emulator::Format, FormatRows> formats;
  for (const test::Encoding &encoding : test::corpus()) {
    const auto instruction = disassembler.decode(std::as_bytes(std::span(encoding.dwords)), 0);
    if (!instruction) {
      std::fprintf(stderr, "isa_table: no instruction: %s\n", encoding.text.c_str());
      return 1;
    }
    const emulator::DecodedOp op = decoder.decode(*instruction, encoding.dwords, 0);
    FormatRows &rows = formats[emulator::split_fields(encoding.dwords).format];
    Mnemonic &mnemonic = rows.mnemonics[instruction->mnemonic];
    ++rows.encodings;
    ++(op.refusal.empty() ? mnemonic.executed : mnemonic.refused);
    if (!op.refusal.empty()) mnemonic.reasons.insert(without_numbers(op.refusal));
  }

  std::set<std::string> known, executed, partly;
  std::printf("| format | encodings tried | mnemonics | executed | in some forms | not |\n"
              "| --- | ---: | ---: | ---: | ---: | ---: |\n");
  for (const auto &[format, rows] : formats) {
    size_t whole = 0, part = 0;
    for (const auto &[name, mnemonic] : rows.mnemonics) {
      known.insert(name);
      if (mnemonic.executed != 0) executed.insert(name);
      if (mnemonic.executed != 0 && mnemonic.refused != 0) partly.insert(name);
      whole += mnemonic.refused == 0;
      part += mnemonic.executed != 0 && mnemonic.refused != 0;
    }
    const size_t count = rows.mnemonics.size();
    std::printf("| %s | %zu | %zu | %zu | %zu | %zu |\n", heading(format).c_str(), rows.encodings, count,
                whole, part, count - whole - part);
  }
  std::printf("\nOf %zu mnemonics %zu are executed, %zu of them in some forms only.\n", known.size(),
              executed.size(), partly.size());

  for (const auto &[format, rows] : formats) {
    std::printf("\n## %s\n\n", heading(format).c_str());
    bool any = false;
    for (const auto &[name, mnemonic] : rows.mnemonics) {
      if (mnemonic.executed == 0) continue;
      std::printf("%s`%s`", any ? " " : "", name.c_str());
      any = true;
    }
    std::printf("%s\n", any ? "" : "None is executed.");
    std::map<std::pair<bool, std::string>, std::vector<std::string>> stops;
    for (const auto &[name, mnemonic] : rows.mnemonics)
      for (const std::string &reason : mnemonic.reasons)
        stops[{mnemonic.executed != 0, reason}].push_back(name);
    if (stops.empty()) continue;
    std::printf("\n| the machine stops, because | at |\n| --- | --- |\n");
    for (const auto &[key, names] : stops)
      std::printf("| %s | %s |\n", key.second.c_str(), list_of(names, key.first).c_str());
  }
}
