//===- isa_table.cpp - prints which instructions the machine executes -----------------------------------===//
//
// Prints the table of docs/reference/instructions.md: by format, the instructions that the machine executes
// and those at which it stops, over the whole corpus.
//
//===----------------------------------------------------------------------------------------------------===//
#include <cstdio>
#include <map>
#include <regex>
#include <set>
#include <stdexcept>

#include "emulator/machine/decoder.h"
#include "isa/corpus.h"

namespace {

using namespace sluice;

struct Mnemonic {
  size_t executed = 0;                 // encodings
  std::map<std::string, size_t> stops; // encodings by reason

  bool executed_in_part() const { return executed != 0 && !stops.empty(); }
};
struct FormatRows {
  size_t encodings = 0;
  std::map<std::string, Mnemonic> mnemonics;
};
using Formats = std::map<emulator::Format, FormatRows>;

/// A reason that stops this many instructions in some forms is about operands or modifiers that all can have.
constexpr size_t many_instructions = 100;

/// Numbers in a reason are those of one encoding: one line serves for all.
std::string without_numbers(const std::string &reason) {
  return std::regex_replace(reason, std::regex("\\b[0-9]+(x[0-9]+)*"), "N");
}

/// MAI is a part of VOP3P in the manual, but separate for readers.
std::string heading(emulator::Format format) {
  return format == emulator::Format::mai ? "VOP3P-MAI" : std::string(emulator::format_name(format));
}

Formats decode_corpus() {
  emulator::Disassembler disassembler;
  emulator::Decoder decoder(emulator::SimdPath::portable);
  Formats formats;
  for (const test::Encoding &encoding : test::corpus()) {
    const auto instruction = disassembler.decode(std::as_bytes(std::span(encoding.dwords)), 0);
    if (!instruction) throw std::runtime_error("no instruction: " + encoding.text);
    const emulator::DecodedOp op = decoder.decode(*instruction, encoding.dwords, 0);
    FormatRows &rows = formats[emulator::split_fields(encoding.dwords).format];
    Mnemonic &mnemonic = rows.mnemonics[instruction->mnemonic];
    ++rows.encodings;
    if (op.refusal.empty())
      ++mnemonic.executed;
    else
      ++mnemonic.stops[without_numbers(op.refusal)];
  }
  return formats;
}

/// Removes the reasons that are not about single instructions, and prints them.
void print_general_stops(Formats &formats) {
  struct Count {
    size_t encodings = 0, instructions = 0;
  };
  std::map<std::string, Count> counts;
  for (const auto &[format, rows] : formats)
    for (const auto &[name, mnemonic] : rows.mnemonics)
      for (const auto &[reason, encodings] : mnemonic.stops)
        if (mnemonic.executed != 0) counts[reason].encodings += encodings, ++counts[reason].instructions;
  std::erase_if(counts, [](const auto &count) { return count.second.instructions < many_instructions; });
  if (counts.empty()) return;
  std::printf("The machine stops at these operands and modifiers of many instructions; the counts below omit "
              "them:\n\n"
              "| reason | encodings | instructions |\n| --- | ---: | ---: |\n");
  for (const auto &[reason, count] : counts)
    std::printf("| %s | %zu | %zu |\n", reason.c_str(), count.encodings, count.instructions);
  std::printf("\n");
  for (auto &[format, rows] : formats)
    for (auto &[name, mnemonic] : rows.mnemonics)
      if (mnemonic.executed != 0)
        std::erase_if(mnemonic.stops, [&](const auto &stop) { return counts.contains(stop.first); });
}

void print_counts(const Formats &formats) {
  std::set<std::string> known, executed, partly;
  std::printf("| format | encodings tried | mnemonics | executed | in some forms | not executed |\n"
              "| --- | ---: | ---: | ---: | ---: | ---: |\n");
  for (const auto &[format, rows] : formats) {
    size_t whole = 0, part = 0;
    for (const auto &[name, mnemonic] : rows.mnemonics) {
      known.insert(name);
      if (mnemonic.executed != 0) executed.insert(name);
      if (mnemonic.executed_in_part()) partly.insert(name);
      whole += mnemonic.stops.empty();
      part += mnemonic.executed_in_part();
    }
    const size_t count = rows.mnemonics.size();
    std::printf("| %s | %zu | %zu | %zu | %zu | %zu |\n", heading(format).c_str(), rows.encodings, count,
                whole, part, count - whole - part);
  }
  std::printf("\nOf %zu mnemonics %zu are executed, %zu of them only in some forms.\n", known.size(),
              executed.size(), partly.size());
}

void print_format(emulator::Format format, const FormatRows &rows) {
  std::printf("\n## %s\n\n", heading(format).c_str());
  std::string executed;
  std::map<std::pair<std::string, bool>, std::string> stops; // names by reason, and whether other forms run
  for (const auto &[name, mnemonic] : rows.mnemonics) {
    if (mnemonic.executed != 0) executed += " `" + name + "`";
    for (const auto &[reason, encodings] : mnemonic.stops)
      stops[{reason, mnemonic.executed != 0}] += " `" + name + "`";
  }
  std::printf("Executed:%s\n", executed.empty() ? " none" : executed.c_str());
  if (stops.empty()) return;
  std::printf("\n| the machine stops because | instructions |\n| --- | --- |\n");
  for (const auto &[key, names] : stops)
    std::printf("| %s |%s%s |\n", key.first.c_str(), key.second ? " some forms of" : "", names.c_str());
}

} // namespace

int main() {
  try {
    Formats formats = decode_corpus();
    print_general_stops(formats);
    print_counts(formats);
    for (const auto &[format, rows] : formats)
      print_format(format, rows);
    return 0;
  } catch (const std::exception &error) {
    std::fprintf(stderr, "isa_table: %s\n", error.what());
    return 1;
  }
}
