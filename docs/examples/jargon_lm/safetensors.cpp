//===- safetensors.cpp - loads a safetensors file -------------------------------------------------------===//
//
// Every offset comes from the file, so every offset is checked before it is used.
//
//===----------------------------------------------------------------------------------------------------===//
#include "safetensors.h"

#include "half.h"

#include <cstring>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <stdexcept>

namespace jargon {

Tensors load_safetensors(const std::string &path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw std::runtime_error(path + ": cannot be opened");
  const std::vector<char> bytes{std::istreambuf_iterator<char>(file), {}};

  uint64_t header_bytes = 0;
  if (bytes.size() < sizeof header_bytes) throw std::runtime_error(path + ": is too short for a header");
  std::memcpy(&header_bytes, bytes.data(), sizeof header_bytes);
  if (header_bytes > bytes.size() - sizeof header_bytes)
    throw std::runtime_error(path + ": its header is longer than the file");
  const char *const header_begin = bytes.data() + sizeof header_bytes;
  const char *const data = header_begin + header_bytes;
  const uint64_t data_bytes = bytes.size() - sizeof header_bytes - header_bytes;

  Tensors tensors;
  const nlohmann::json header = nlohmann::json::parse(header_begin, data);
  for (const auto &[name, entry] : header.items()) {
    if (name == "__metadata__") continue;
    if (entry.at("dtype") != "F16") throw std::runtime_error(path + ": " + name + " is not F16");
    Tensor tensor;
    tensor.shape = entry.at("shape").get<std::vector<int64_t>>();
    const auto [begin, end] = entry.at("data_offsets").get<std::pair<uint64_t, uint64_t>>();
    uint64_t count = 1;
    for (int64_t extent : tensor.shape)
      if (extent < 0 || __builtin_mul_overflow(count, uint64_t(extent), &count))
        throw std::runtime_error(path + ": " + name + " has an impossible shape");
    if (begin > end || end > data_bytes || end - begin != count * sizeof(Half) || count > data_bytes)
      throw std::runtime_error(path + ": " + name + " is not within the file");
    std::vector<Half> halves(count);
    std::memcpy(halves.data(), data + begin, end - begin);
    tensor.values.reserve(count);
    for (Half half : halves)
      tensor.values.push_back(to_float(half));
    tensors.emplace(name, std::move(tensor));
  }
  return tensors;
}

} // namespace jargon
