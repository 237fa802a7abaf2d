//===- fidelity_note.cpp - what a launch has met that may differ on a GPU -------------------------------===//
#include "emulator/check/fidelity_note.h"

#include <algorithm>
#include <span>

#include "emulator/check/report.h"
#include "support/hex.h"

namespace sluice::emulator {

namespace {

using Place = FidelityNote::Place;

constexpr size_t most_places = 8; // in the text, of each kind

std::string quoted(std::string_view text) {
  std::string result;
  append_json_string(result, text);
  return result;
}

std::string times(uint64_t count) {
  return std::to_string(count) + (count == 1 ? " time" : " times");
}

std::vector<const Place *> places_of(const FidelityNote &note, bool address) {
  std::vector<const Place *> result;
  for (const Place &place : note.places)
    if (place.address == address) result.push_back(&place);
  return result;
}

std::string json_of(const std::vector<const Place *> &places) {
  std::string text;
  for (const Place *place : places) {
    std::string sources;
    for (size_t i = 0; i < inexact_count; ++i)
      if ((place->sources >> i & 1) != 0)
        sources += (sources.empty() ? "" : ", ") + quoted(inexact_name(Inexact(i)));
    text += (text.empty() ? "{" : ", {");
    text += "\"kernel\": " + quoted(place->kernel) + ", \"pc\": " + std::to_string(place->pc) +
            ", \"disassembly\": " + quoted(place->disassembly) + ", \"source\": " + quoted(place->source) +
            ", \"values\": [" + sources + "], \"count\": " + std::to_string(place->count) + "}";
  }
  return "[" + text + "]";
}

std::string text_of(const std::vector<const Place *> &places, const char *none, const char *some) {
  if (places.empty()) return std::string("  ") + none + "\n";
  std::string text = std::string("  ") + some + ":\n";
  for (const Place *place : std::span(places).first(std::min(places.size(), most_places)))
    text += "    " + place->kernel + " at " + support::hex(place->pc) + ": " + place->disassembly + ", " +
            times(place->count) + ", by " + inexact_names_of(place->sources) +
            (place->source.empty() ? "" : "\n      " + place->source) + "\n";
  if (places.size() > most_places)
    text += "    and " + std::to_string(places.size() - most_places) + " other instructions\n";
  return text;
}

} // namespace

std::string inexact_names_of(InexactSet sources) {
  std::string names;
  for (size_t i = 0; i < inexact_count; ++i)
    if ((sources >> i & 1) != 0)
      names += (names.empty() ? "" : " and ") + std::string(inexact_name(Inexact(i)));
  return names;
}

FidelityNote &FidelityNote::operator+=(const FidelityNote &other) {
  for (const auto &[mnemonic, entry] : other.approximated) {
    const uint64_t before = approximated[mnemonic].count;
    approximated[mnemonic] = entry;
    approximated[mnemonic].count += before;
  }
  for (size_t part = 0; part < unmodelled_count; ++part)
    unmodelled[part] += other.unmodelled[part];
  for (const Place &place : other.places) {
    const auto known = std::ranges::find_if(places, [&](const Place &p) {
      return p.address == place.address && p.pc == place.pc && p.kernel == place.kernel &&
             p.disassembly == place.disassembly;
    });
    if (known == places.end()) {
      places.push_back(place);
      continue;
    }
    known->count += place.count;
    known->sources |= place.sources;
  }
  return *this;
}

std::string to_json(const FidelityNote &note) {
  std::string approximated, unmodelled;
  for (const auto &[mnemonic, entry] : note.approximated)
    approximated += (approximated.empty() ? "" : ", ") + std::string("{\"instruction\": ") +
                    quoted(mnemonic) + ", \"count\": " + std::to_string(entry.count) +
                    ", \"values\": " + quoted(inexact_name(entry.source)) +
                    ", \"bound\": " + quoted(entry.bound) + "}";
  for (size_t part = 0; part < unmodelled_count; ++part)
    if (note.unmodelled[part] != 0)
      unmodelled += (unmodelled.empty() ? "" : ", ") + std::string("{\"part\": ") +
                    quoted(unmodelled_name(Unmodelled(part))) +
                    ", \"count\": " + std::to_string(note.unmodelled[part]) +
                    ", \"text\": " + quoted(unmodelled_text(Unmodelled(part))) + "}";
  return "{\"approximated\": [" + approximated + "], \"not_modelled\": [" + unmodelled +
         "], \"addresses\": " + json_of(places_of(note, true)) +
         ", \"branches\": " + json_of(places_of(note, false)) + "}";
}

std::string to_text(const FidelityNote &note) {
  std::string text = "fidelity:\n";
  if (note.approximated.empty()) text += "  nothing was approximated\n";
  for (const auto &[mnemonic, entry] : note.approximated)
    text += "  approximated: " + mnemonic + ", " + times(entry.count) + ": " + entry.bound + "\n";
  for (size_t part = 0; part < unmodelled_count; ++part)
    if (note.unmodelled[part] != 0)
      text += "  not modelled: " + std::string(unmodelled_name(Unmodelled(part))) + ", used " +
              times(note.unmodelled[part]) + ": " + std::string(unmodelled_text(Unmodelled(part))) + "\n";
  if (note.approximated.empty() && note.places.empty()) return text;
  return text +
         text_of(places_of(note, true), "no address depends on approximated values",
                 "addresses that depend on approximated values") +
         text_of(places_of(note, false), "no branch depends on approximated values",
                 "branches that depend on approximated values");
}

} // namespace sluice::emulator
