//===- buffer_format.h - numbers as buffers hold them ---------------------------------------------------===//
//
// A data format gives the number and widths of an element's components, a number format the meaning of their
// bits. Formatted loads widen a component to 32 bits, a float or an integer; formatted stores narrow it. A
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
  uint8_t bytes;      // per element; 0: the format does not exist
  uint8_t components; // per element
  uint8_t bits[4];    // per component, from the lowest bit of the element on
};
/// By DATA_FORMAT.
const BufferFormat &buffer_format(uint8_t data_format);

/// Why an instruction with `components` cannot use the format; empty if it can. A store must supply
/// every component of the element: the hardware's manual does not say what happens to the others.
std::string buffer_format_refusal(uint8_t data_format, NumberFormat number, uint32_t components, bool store);

/// Converts the bits of a component to the 32 bits of a register, and back.
uint32_t widen_component(uint32_t bits, uint32_t width, NumberFormat number);
uint32_t narrow_component(uint32_t value, uint32_t width, NumberFormat number);

/// Converts the value to the 16 bits of the D16 instructions, and back: f16 for floats, truncated integers.
uint16_t to_16_bits(uint32_t value, NumberFormat number);
uint32_t from_16_bits(uint16_t value, NumberFormat number);

} // namespace sluice::emulator
