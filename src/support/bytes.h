//===- bytes.h - little-endian numbers in byte buffers --------------------------------------------------===//
#pragma once

#include <bit>
#include <cstddef>
#include <cstring>
#include <span>
#include <vector>

namespace sluice::support {

static_assert(std::endian::native == std::endian::little,
              "byte buffers are read and written in the byte order of the host");

template <typename Number> Number load_little(const std::byte *from) {
  Number value;
  std::memcpy(&value, from, sizeof value);
  return value;
}

inline void append_bytes(std::vector<std::byte> &out, std::span<const std::byte> bytes) {
  const size_t at = out.size();
  out.resize(at + bytes.size());
  if (!bytes.empty()) std::memcpy(out.data() + at, bytes.data(), bytes.size());
}

template <typename Number> void append_little(std::vector<std::byte> &out, Number value) {
  append_bytes(out, std::as_bytes(std::span(&value, 1)));
}

} // namespace sluice::support
