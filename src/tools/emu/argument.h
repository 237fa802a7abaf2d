//===- argument.h - the value of one --arg or --arg-at --------------------------------------------------===//
//
//   buf:FILE.npy                        device memory with the file's elements
//   size:BYTES[:fill=F][:type=T]        device memory; F: undefined (that is: never written), a byte, random,
//                                       random(SEED); T: an element type, see element_type.cpp
//   i8 u8 i16 u16 i32 u32 i64 u64:N     a whole number
//   f16 bf16 f32 f64:X                  a floating-point number, rounded to nearest even
//   raw:HEX                             bytes as they are, lowest address first
//   ptr:I[+OFFSET]                      an address in the memory of argument I: of --arg counted from 0, of
//                                       --arg-at the byte at which it begins
//
//===----------------------------------------------------------------------------------------------------===//
#pragma once

#include "tools/emu/element_type.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace sluice::tools::emu {

struct FileBuffer {
  std::string path;
};

struct SizedBuffer {
  uint64_t bytes = 0;
  enum class Fill : uint8_t { undefined, byte, random } fill = Fill::undefined;
  std::byte byte{0};
  uint64_t seed = 1;
  const ElementType *type = element_type_by_keyword("u8");
};

/// The bytes of a kernel argument.
struct Value {
  std::vector<std::byte> bytes;
};

struct BufferAddress {
  uint64_t argument = 0;
  uint64_t offset = 0;
};

using Argument = std::variant<FileBuffer, SizedBuffer, Value, BufferAddress>;

/// Throws ToolError, with the rule that `text` breaks.
Argument parse_argument(std::string_view text);

/// OFFSET=VALUE: an argument and the byte at which it begins.
struct PlacedArgument {
  uint64_t offset = 0;
  Argument value;
};
/// Throws ToolError in the same way.
PlacedArgument parse_placed_argument(std::string_view text);

/// All of `text` as a number: decimal, or hexadecimal after 0x. Throws ToolError.
uint64_t parse_unsigned(std::string_view text);

/// Writes the buffer's initial contents; undefined memory is left unchanged.
void fill_buffer(const SizedBuffer &buffer, std::span<std::byte> memory);

} // namespace sluice::tools::emu
