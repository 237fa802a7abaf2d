//===- files.h - files that tests read ------------------------------------------------------------------===//
#pragma once

#include <cstddef>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <string>
#include <vector>

namespace sluice::test {

/// Throws if the file does not exist or is empty.
inline std::vector<std::byte> read_file(const std::string &path) {
  std::ifstream file(path, std::ios::binary);
  const std::vector<char> bytes((std::istreambuf_iterator<char>(file)), {});
  if (bytes.empty()) throw std::runtime_error("cannot read " + path);
  const auto *data = reinterpret_cast<const std::byte *>(bytes.data());
  return {data, data + bytes.size()};
}

} // namespace sluice::test
