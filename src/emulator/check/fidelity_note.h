//===- fidelity_note.h - what a launch has met that may differ on a GPU ---------------------------------===//
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "emulator/check/fidelity_facts.h"

namespace sluice::emulator {

struct FidelityNote {
  struct Approximated {
    uint64_t count = 0; // wave instructions
    Inexact source{};
    std::string bound;
  };
  /// An instruction to which inexact values came that decide where it reads or writes, or what runs next.
  struct Place {
    bool address = false; // else a branch, or EXEC
    InexactSet sources = 0;
    uint64_t count = 0; // wave instructions
    std::string kernel;
    uint64_t pc = 0;
    std::string disassembly;
    std::string source; // as in Report
  };

  std::map<std::string, Approximated> approximated; // by mnemonic
  std::array<uint64_t, unmodelled_count> unmodelled{};
  std::vector<Place> places;

  FidelityNote &operator+=(const FidelityNote &other);
};

/// {"approximated": [...], "not_modelled": [...], "addresses": [...], "branches": [...]}, on one line.
std::string to_json(const FidelityNote &note);
/// Several lines.
std::string to_text(const FidelityNote &note);

/// "clocks and placement"
std::string inexact_names_of(InexactSet sources);

} // namespace sluice::emulator
