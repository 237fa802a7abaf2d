//===- memory.h - a case's tensors in memory, poisoned and guarded --------------------------------------===//
//
// The images hold the case's tensors in its layout. Every input element that belongs to no tensor is NaN or
// infinity, so that whatever reads it shows; every output element starts as a canary, so that whatever writes
// where it should not shows too.
//
//===----------------------------------------------------------------------------------------------------===//
#pragma once

#include "oracle.h"

#include <array>
#include <cstddef>
#include <string>
#include <vector>

namespace sluice::test {

/// Where a tensor lies: element [a][b][c][d] at offset + a * stride[0] + b * stride[1] + c * stride[2] + d.
struct Placement {
  int buffer = 0;
  int64_t offset = 0;
  std::array<int64_t, 3> stride{};
};

struct Memory {
  /// q, k, v and o hold 16-bit elements, lse 32-bit floats; packed layouts share a buffer.
  Placement q, k, v, o, lse;
  std::vector<std::vector<std::byte>> buffers;
};

Memory make_memory(const Case &c, const Inputs &inputs);

struct Outputs {
  std::vector<double> o;   // [batch, q_len, q_heads, d]
  std::vector<double> lse; // [batch, q_heads, q_len]; empty if not asked for
};

Outputs read_outputs(const Case &c, const Memory &memory);

/// Empty if `after` differs from `before` in no byte but those of O and LSE; else where and how.
std::string find_stray_write(const Case &c, const Memory &before, const Memory &after);

} // namespace sluice::test
