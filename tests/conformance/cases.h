//===- cases.h - what the conformance suite runs --------------------------------------------------------===//
//
// A case is a problem, a memory layout and a pattern of numbers. Its name says all of it, the numbers follow
// from the name alone, and `--case NAME` runs it again by itself.
//
//===----------------------------------------------------------------------------------------------------===//
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace sluice::test {

enum class Dtype : uint8_t { f16, bf16 };
enum class Mask : uint8_t { none, bottom_right, top_left };

/// How the four tensors lie in memory.
enum class Layout : uint8_t {
  bshd,      // [batch, token, head, d], nothing between
  bhsd,      // [batch, head, token, d]
  sbhd,      // [token, batch, head, d]
  packed,    // Q, K and V in one [batch, token, q heads + 2 kv heads, d] buffer
  padded,    // bshd, but tokens, heads and batches apart, with NaN between them
  capacity,  // bshd inside a longer buffer whose further tokens are NaN
  broadcast, // bshd; all batches read the same K and V (batch stride 0)
};

/// What the numbers are like.
enum class Pattern : uint8_t {
  normal,  // independent normal numbers
  peaked,  // scores far apart: nearly all weight on few keys
  rising,  // the score grows with the key, so that every tile raises the running maximum
  falling, // the first key has the largest score
  uniform, // K = 0: O is the plain mean of the visible V
  tiny,    // Q, K and V among the smallest normal and the subnormal numbers
};

struct Case {
  Dtype dtype = Dtype::f16;
  int head_size = 128;
  int batch = 1;
  int q_heads = 1;
  int kv_heads = 1;
  int q_len = 1;
  int kv_len = 1;
  Mask mask = Mask::none;
  Layout layout = Layout::bshd;
  Pattern pattern = Pattern::normal;
  double scale = 0; // 0: the default, 1 / sqrt(head_size)
  bool lse = true;
  bool bounded = true;   // the plan is made for exactly this size; otherwise for any
  std::string name = {}; // by make_name

  bool operator==(const Case &) const = default;
};

std::string make_name(const Case &c);

/// Types and head sizes to test. A kernel that the pack gains brings its own.
struct Shapes {
  struct Shape {
    Dtype dtype;
    int head_size;
    bool operator==(const Shape &) const = default;
  };
  std::vector<Shape> all; // at least one

  std::vector<Dtype> dtypes() const;   // f16 first
  std::vector<int> head_sizes() const; // largest first
};

/// The suite, in an order that the shapes alone decide.
std::vector<Case> all_cases(const Shapes &shapes);

} // namespace sluice::test
