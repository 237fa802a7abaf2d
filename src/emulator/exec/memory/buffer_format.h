//===- buffer_format.h - numbers as buffers hold them ---------------------------------------------------===//
//
// A data format says how many components an element has and their widths, a number format what their bits
// mean. Formatted loads widen a component to 32 bits, a float or an integer; formatted stores narrow it. A
// component of 32 bits is never converted.
//
//===----------------------------------------------------------------------------------------------------===//
#pragma once

#include <cstdint>
#include <string>

namespace sluice::emulator {

enum class NumberFormat : uint8_t { unorm, snorm, uscaled, sscaled, uint, sint, reserved, floating };

constexpr bool is_integer(NumberFormat number) {
  return number == NumberFormat::uint || number == NumberFormat::sint;
}

struct BufferFormat {
  uint8_t bytes;      // of an element; 0: there is no such format
  uint8_t components; // of an element
  uint8_t bits[4];    // of each component, from the lowest bit of the element on
};
/// By DATA_FORMAT.
const BufferFormat &buffer_format(uint8_t data_format);

/// Why an instruction with so many components cannot use the format; empty if it can. A store must give every
/// component of the element, since the hardware's manual does not say what becomes of the others.
std::string buffer_format_refusal(uint8_t data_format, NumberFormat number, uint32_t components, bool store);

/// The 32 bits of a register for a component's bits, and back.
uint32_t widen_component(uint32_t bits, uint32_t width, NumberFormat number);
uint32_t narrow_component(uint32_t value, uint32_t width, NumberFormat number);

/// The same value in the 16 bits of the D16 instructions, and back: f16 for floats, integers cut to fit.
uint16_t to_16_bits(uint32_t value, NumberFormat number);
uint32_t from_16_bits(uint16_t value, NumberFormat number);

} // namespace sluice::emulator
