//===- safetensors.h - loads a safetensors file ---------------------------------------------------------===//
//
// The file is a 64-bit length, a JSON header that says where each tensor is, and the tensors. Weights stay
// what they were stored as, 16-bit floats, but are held as float for the arithmetic on the host.
//
//===----------------------------------------------------------------------------------------------------===//
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace jargon {

struct Tensor {
  std::vector<int64_t> shape;
  std::vector<float> values;
};

using Tensors = std::map<std::string, Tensor>;

/// Throws std::runtime_error for a file that is missing, truncated, inconsistent, or holds another type than
/// F16.
Tensors load_safetensors(const std::string &path);

} // namespace jargon
