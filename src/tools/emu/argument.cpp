//===- argument.cpp - the value of one --arg ------------------------------------------------------------===//

#include "tools/emu/argument.h"

#include "support/half.h"
#include "tools/shared/tool_error.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>
#include <fmt/format.h>
#include <limits>
#include <optional>

namespace sluice::tools::emu {

namespace {

template <typename T> std::vector<std::byte> bytes_of(T value) {
  std::vector<std::byte> bytes(sizeof value);
  std::memcpy(bytes.data(), &value, sizeof value);
  return bytes;
}

/// Nothing if `text` is not a number; `fits` says whether it fits in 64 bits.
std::optional<uint64_t> read_digits(std::string_view text, bool &fits) {
  const bool hexadecimal = text.starts_with("0x") || text.starts_with("0X");
  if (hexadecimal) text.remove_prefix(2);
  uint64_t value = 0;
  const auto [end, error] =
      std::from_chars(text.data(), text.data() + text.size(), value, hexadecimal ? 16 : 10);
  if (text.empty() || error == std::errc::invalid_argument || end != text.data() + text.size())
    return std::nullopt;
  fits = error == std::errc();
  return value;
}

template <typename T> Value integer(std::string_view text) {
  using Limits = std::numeric_limits<T>;
  const bool negative = text.starts_with('-');
  bool fits = false;
  const std::optional<uint64_t> magnitude = read_digits(text.substr(negative ? 1 : 0), fits);
  if (!magnitude)
    throw ToolError(fmt::format("'{}' is not a whole number, decimal or hexadecimal after 0x", text));
  const uint64_t most = negative ? uint64_t(0) - uint64_t(int64_t(Limits::min())) : uint64_t(Limits::max());
  if (!fits || *magnitude > most)
    throw ToolError(fmt::format("{} is not within {} and {}", text, Limits::min(), Limits::max()));
  return {bytes_of(T(negative ? 0 - *magnitude : *magnitude))};
}

/// A finite number that the type cannot represent is an error, not an infinity.
template <typename T> T floating(std::string_view text, std::string_view type) {
  T value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error == std::errc::result_out_of_range) throw ToolError(fmt::format("{} does not fit {}", text, type));
  if (error != std::errc() || end != text.data() + text.size())
    throw ToolError(fmt::format("'{}' is not a number such as 1.5, -2e-3, inf or nan", text));
  return value;
}

Value half(std::string_view text, std::string_view type, uint16_t (*narrow)(double),
           float (*widen)(uint16_t)) {
  const double value = floating<double>(text, type);
  const uint16_t bits = narrow(value);
  if (std::isfinite(value) && !std::isfinite(widen(bits)))
    throw ToolError(fmt::format("{} does not fit {}", text, type));
  return {bytes_of(bits)};
}

Value raw(std::string_view text) {
  Value value;
  bool good = !text.empty() && text.size() % 2 == 0;
  for (size_t i = 0; i + 1 < text.size() && good; i += 2) {
    uint8_t byte = 0;
    const auto [end, error] = std::from_chars(&text[i], &text[i] + 2, byte, 16);
    good = error == std::errc() && end == &text[i] + 2;
    value.bytes.push_back(std::byte(byte));
  }
  if (!good) throw ToolError("after 'raw:' come bytes, two hexadecimal digits each");
  return value;
}

FileBuffer file_buffer(std::string_view text) {
  if (text.empty()) throw ToolError("after 'buf:' comes the name of a .npy file");
  return {std::string(text)};
}

void read_fill(SizedBuffer &buffer, std::string_view text) {
  if (text == "undefined") {
    buffer.fill = SizedBuffer::Fill::undefined;
    return;
  }
  if (text == "random") {
    buffer.fill = SizedBuffer::Fill::random;
    return;
  }
  if (text.starts_with("random(") && text.ends_with(')')) {
    buffer.fill = SizedBuffer::Fill::random;
    buffer.seed = parse_unsigned(text.substr(7, text.size() - 8));
    return;
  }
  bool fits = false;
  const std::optional<uint64_t> byte = read_digits(text, fits);
  if (!byte || !fits || *byte > 255)
    throw ToolError(fmt::format(
        "fill is '{}'; it must be undefined, a byte from 0 to 255, random or random(SEED)", text));
  buffer.fill = SizedBuffer::Fill::byte;
  buffer.byte = std::byte(*byte);
}

SizedBuffer sized_buffer(std::string_view text) {
  SizedBuffer buffer;
  size_t end = std::min(text.find(':'), text.size());
  buffer.bytes = parse_unsigned(text.substr(0, end));
  while (end < text.size()) {
    text.remove_prefix(end + 1);
    end = std::min(text.find(':'), text.size());
    const std::string_view setting = text.substr(0, end);
    if (setting.starts_with("fill=")) {
      read_fill(buffer, setting.substr(5));
    } else if (setting.starts_with("type=")) {
      buffer.type = element_type_by_keyword(setting.substr(5));
      if (!buffer.type)
        throw ToolError(
            fmt::format("type is '{}'; it must be one of {}", setting.substr(5), element_type_keywords()));
    } else {
      throw ToolError(
          fmt::format("'{}' is not a setting of a buffer; the settings are fill=... and type=...", setting));
    }
  }
  if (buffer.bytes % buffer.type->bytes() != 0)
    throw ToolError(
        fmt::format("{} bytes are not a whole number of elements of {}", buffer.bytes, buffer.type->keyword));
  return buffer;
}

BufferAddress buffer_address(std::string_view text) {
  const size_t plus = text.find('+');
  BufferAddress address;
  address.argument = parse_unsigned(text.substr(0, plus));
  if (plus != std::string_view::npos) address.offset = parse_unsigned(text.substr(plus + 1));
  return address;
}

struct Kind {
  std::string_view name;
  Argument (*parse)(std::string_view text);
};
constexpr Kind kinds[] = {
    {"buf", [](std::string_view text) -> Argument { return file_buffer(text); }},
    {"size", [](std::string_view text) -> Argument { return sized_buffer(text); }},
    {"i8", [](std::string_view text) -> Argument { return integer<int8_t>(text); }},
    {"u8", [](std::string_view text) -> Argument { return integer<uint8_t>(text); }},
    {"i16", [](std::string_view text) -> Argument { return integer<int16_t>(text); }},
    {"u16", [](std::string_view text) -> Argument { return integer<uint16_t>(text); }},
    {"i32", [](std::string_view text) -> Argument { return integer<int32_t>(text); }},
    {"u32", [](std::string_view text) -> Argument { return integer<uint32_t>(text); }},
    {"i64", [](std::string_view text) -> Argument { return integer<int64_t>(text); }},
    {"u64", [](std::string_view text) -> Argument { return integer<uint64_t>(text); }},
    {"f16",
     [](std::string_view text) -> Argument {
       return half(text, "f16", support::f16_from_double, support::f16_to_float);
     }},
    {"bf16",
     [](std::string_view text) -> Argument {
       return half(text, "bf16", support::bf16_from_double, support::bf16_to_float);
     }},
    {"f32", [](std::string_view text) -> Argument { return Value{bytes_of(floating<float>(text, "f32"))}; }},
    {"f64", [](std::string_view text) -> Argument { return Value{bytes_of(floating<double>(text, "f64"))}; }},
    {"raw", [](std::string_view text) -> Argument { return raw(text); }},
    {"ptr", [](std::string_view text) -> Argument { return buffer_address(text); }},
};

} // namespace

uint64_t parse_unsigned(std::string_view text) {
  bool fits = false;
  const std::optional<uint64_t> value = read_digits(text, fits);
  if (!value)
    throw ToolError(fmt::format("'{}' is not a whole number, decimal or hexadecimal after 0x", text));
  if (!fits) throw ToolError(fmt::format("{} is beyond 64 bits", text));
  return *value;
}

Argument parse_argument(std::string_view text) {
  const size_t colon = text.find(':');
  std::string names;
  for (const Kind &kind : kinds) {
    if (colon != std::string_view::npos && text.substr(0, colon) == kind.name)
      return kind.parse(text.substr(colon + 1));
    names += fmt::format("{}{}:", names.empty() ? "" : " ", kind.name);
  }
  throw ToolError(fmt::format("an argument begins with one of {}", names));
}

PlacedArgument parse_placed_argument(std::string_view text) {
  const size_t equals = text.find('=');
  // A buffer's settings also contain that sign.
  if (equals == std::string_view::npos || equals > text.find(':'))
    throw ToolError(
        "it must be OFFSET=VALUE, with OFFSET the byte of the arguments at which the value begins");
  return {parse_unsigned(text.substr(0, equals)), parse_argument(text.substr(equals + 1))};
}

void fill_buffer(const SizedBuffer &buffer, std::span<std::byte> memory) {
  if (buffer.fill == SizedBuffer::Fill::undefined) return;
  if (buffer.fill == SizedBuffer::Fill::byte) {
    std::fill(memory.begin(), memory.end(), buffer.byte);
    return;
  }
  buffer.type->fill_random(memory, buffer.seed);
}

} // namespace sluice::tools::emu
