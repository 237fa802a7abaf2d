//===- fidelity_facts.h - where a GPU may give other results than the machine ---------------------------===//
//
// Two lists: instructions whose results on a GPU the machine only approximates, and what of the device it
// does not model. A fidelity note says which of them a launch has met.
//
//===----------------------------------------------------------------------------------------------------===//
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

#include "emulator/isa/op.h"
#include "emulator/isa/op_info.h"

namespace sluice::emulator {

/// Why a value may differ from a GPU's.
enum class Inexact : uint8_t {
  arithmetic,       // computed to other last places, or in another order
  integer_division, // the first estimate of an integer division, which code corrects
  atomic_order,     // a sum of floats that atomics add in one of many orders
  clock,
  placement, // where a wave runs, and the state of its hardware
};
inline constexpr size_t inexact_count = 5;
std::string_view inexact_name(Inexact source);
std::optional<Inexact> inexact_by_name(std::string_view name);

/// One bit per member of Inexact.
using InexactSet = uint8_t;
constexpr InexactSet set_of(Inexact source) {
  return InexactSet(1u << unsigned(source));
}

struct Approximation {
  Inexact source;
  std::string_view bound; // how far a GPU's result may be, and who says so
};

/// Null if the instruction gives the bits of a GPU.
const Approximation *approximation_of(const Op &op, const OpInfo &info);

/// A part of the device that the machine leaves out.
enum class Unmodelled : uint8_t { caches, priority, order_of_atomics, counters };
inline constexpr size_t unmodelled_count = 4;
std::string_view unmodelled_name(Unmodelled part);
std::optional<Unmodelled> unmodelled_by_name(std::string_view name);
/// A sentence.
std::string_view unmodelled_text(Unmodelled part);
/// One bit per member of Unmodelled that the instruction uses.
uint8_t unmodelled_parts(const Op &op, const OpInfo &info);

} // namespace sluice::emulator
