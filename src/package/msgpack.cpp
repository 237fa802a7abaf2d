//===- msgpack.cpp - a reader of MessagePack ------------------------------------------------------------===//
//
// One pass over the bytes; extension types are refused, since code objects do not use them.
//
//===----------------------------------------------------------------------------------------------------===//
#include "package/msgpack.h"

#include <bit>
#include <string>

namespace sluice::package {

namespace {

constexpr int deepest = 32;

class Reader {
public:
  explicit Reader(std::span<const std::byte> all) : bytes(all) {}

  MsgpackValue document() {
    MsgpackValue value = read(0);
    if (at != bytes.size()) fail("has " + std::to_string(bytes.size() - at) + " bytes after its value");
    return value;
  }

private:
  using Kind = MsgpackValue::Kind;

  [[noreturn]] void fail(const std::string &what) const {
    throw MsgpackError("MessagePack " + what + " (at byte " + std::to_string(at) + ")");
  }

  uint64_t left() const { return bytes.size() - at; }

  uint64_t big_endian(int count) {
    if (left() < uint64_t(count)) fail("ends inside a value");
    uint64_t value = 0;
    for (int i = 0; i < count; ++i)
      value = value << 8 | uint64_t(bytes[at++]);
    return value;
  }

  std::string_view take(uint64_t count) {
    if (left() < count) fail("ends inside a string of " + std::to_string(count) + " bytes");
    const std::string_view text(reinterpret_cast<const char *>(bytes.data()) + at, count);
    at += count;
    return text;
  }

  MsgpackValue unsigned_value(uint64_t value) {
    MsgpackValue result;
    result.kind = Kind::unsigned_integer;
    result.integer = value;
    return result;
  }

  MsgpackValue signed_value(uint64_t value, int bits) {
    const int64_t extended = int64_t(value << (64 - bits)) >> (64 - bits);
    MsgpackValue result = unsigned_value(uint64_t(extended));
    if (extended < 0) result.kind = Kind::negative_integer;
    return result;
  }

  MsgpackValue text_value(Kind kind, uint64_t count) {
    MsgpackValue result;
    result.kind = kind;
    result.text = take(count);
    return result;
  }

  MsgpackValue array_value(uint64_t count, int depth) {
    if (count > left())
      fail("claims an array of " + std::to_string(count) + " elements, more than it has bytes");
    MsgpackValue result;
    result.kind = Kind::array;
    while (count-- > 0)
      result.elements.push_back(read(depth + 1));
    return result;
  }

  MsgpackValue map_value(uint64_t count, int depth) {
    if (count > left() / 2)
      fail("claims a map of " + std::to_string(count) + " entries, more than it has bytes");
    MsgpackValue result;
    result.kind = Kind::map;
    while (count-- > 0) {
      result.keys.push_back(read(depth + 1));
      result.elements.push_back(read(depth + 1));
    }
    return result;
  }

  MsgpackValue read(int depth) {
    if (depth > deepest) fail("nests deeper than " + std::to_string(deepest) + " levels");
    const uint32_t tag = uint32_t(big_endian(1));
    if (tag <= 0x7f) return unsigned_value(tag);
    if (tag <= 0x8f) return map_value(tag & 15, depth);
    if (tag <= 0x9f) return array_value(tag & 15, depth);
    if (tag <= 0xbf) return text_value(Kind::string, tag & 31);
    if (tag >= 0xe0) return signed_value(tag, 8);
    switch (tag) {
    case 0xc0:
      return {};
    case 0xc2:
    case 0xc3: {
      MsgpackValue result = unsigned_value(tag & 1);
      result.kind = Kind::boolean;
      return result;
    }
    case 0xc4:
    case 0xc5:
    case 0xc6:
      return text_value(Kind::binary, big_endian(1 << (tag - 0xc4)));
    case 0xca:
    case 0xcb: {
      MsgpackValue result;
      result.kind = Kind::real;
      result.real = tag == 0xca ? double(std::bit_cast<float>(uint32_t(big_endian(4))))
                                : std::bit_cast<double>(big_endian(8));
      return result;
    }
    case 0xcc:
    case 0xcd:
    case 0xce:
    case 0xcf:
      return unsigned_value(big_endian(1 << (tag - 0xcc)));
    case 0xd0:
    case 0xd1:
    case 0xd2:
    case 0xd3: {
      const int count = 1 << (tag - 0xd0);
      return signed_value(big_endian(count), 8 * count);
    }
    case 0xd9:
    case 0xda:
    case 0xdb:
      return text_value(Kind::string, big_endian(1 << (tag - 0xd9)));
    case 0xdc:
    case 0xdd:
      return array_value(big_endian(2 << (tag - 0xdc)), depth);
    case 0xde:
    case 0xdf:
      return map_value(big_endian(2 << (tag - 0xde)), depth);
    default:
      fail("holds the unknown tag " + std::to_string(tag));
    }
  }

  std::span<const std::byte> bytes;
  size_t at = 0;
};

} // namespace

const MsgpackValue *MsgpackValue::find(std::string_view key) const {
  for (size_t i = 0; i < keys.size(); ++i)
    if (keys[i].kind == Kind::string && keys[i].text == key) return &elements[i];
  return nullptr;
}

MsgpackValue read_msgpack(std::span<const std::byte> bytes) {
  return Reader(bytes).document();
}

} // namespace sluice::package
