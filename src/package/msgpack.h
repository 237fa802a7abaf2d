//===- msgpack.h - a reader of MessagePack --------------------------------------------------------------===//
//
// The encoding of the metadata in a code object. Values refer to the bytes from which they were read; a
// document that is cut short, nests too deep or claims more elements than its bytes can hold is an error, and
// costs no more memory than a small multiple of its size.
//
//===----------------------------------------------------------------------------------------------------===//
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <string_view>
#include <vector>

namespace sluice::package {

class MsgpackError : public std::runtime_error {
public:
  using std::runtime_error::runtime_error;
};

struct MsgpackValue {
  enum class Kind : uint8_t {
    nil,
    boolean,
    unsigned_integer,
    negative_integer,
    real,
    string,
    binary,
    array,
    map
  };

  Kind kind = Kind::nil;
  uint64_t integer = 0; // also boolean; a negative one in two's complement
  double real = 0;
  std::string_view text;              // string and binary
  std::vector<MsgpackValue> elements; // of an array; the values of a map
  std::vector<MsgpackValue> keys;     // of a map, in the order of `elements`

  /// The value of a map's string key; null if this is not a map or has no such key.
  const MsgpackValue *find(std::string_view key) const;
};

/// The one value that fills `bytes`.
MsgpackValue read_msgpack(std::span<const std::byte> bytes);

} // namespace sluice::package
