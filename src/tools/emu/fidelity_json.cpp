//===- fidelity_json.cpp - reads the fidelity notes of a program's launches -----------------------------===//
#include "tools/emu/fidelity_json.h"

namespace sluice::tools::emu {

namespace {

using emulator::FidelityNote;
using nlohmann::json;

void read_places(FidelityNote &note, const json &places, bool address) {
  for (const json &text : places) {
    FidelityNote::Place &place = note.places.emplace_back();
    place.address = address;
    place.kernel = text.at("kernel");
    place.pc = text.at("pc");
    place.disassembly = text.at("disassembly");
    place.source = text.at("source");
    place.count = text.at("count");
    for (const json &name : text.at("values"))
      place.sources |= emulator::set_of(emulator::inexact_by_name(name.get<std::string>()).value());
  }
}

} // namespace

FidelityNote read_fidelity_note(const json &text) {
  FidelityNote note;
  for (const json &entry : text.at("approximated"))
    note.approximated[entry.at("instruction").get<std::string>()] = {
        entry.at("count"), emulator::inexact_by_name(entry.at("values").get<std::string>()).value(),
        entry.at("bound")};
  for (const json &entry : text.at("not_modelled"))
    note.unmodelled[size_t(emulator::unmodelled_by_name(entry.at("part").get<std::string>()).value())] =
        entry.at("count");
  read_places(note, text.at("addresses"), true);
  read_places(note, text.at("branches"), false);
  return note;
}

} // namespace sluice::tools::emu
