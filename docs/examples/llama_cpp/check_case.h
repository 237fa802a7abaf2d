//===- check_case.h - one attention node: its numbers, and its graph -----------------------------------===//
#pragma once

#include <cstdint>
#include <ggml-backend.h>
#include <ggml.h>
#include <optional>
#include <string>
#include <vector>

namespace check {

enum class Mask {
  none,
  causal,      ///< -infinity where a key comes after the row
  padded,      ///< causal, and the last third of the keys is padding
  window,      ///< causal, and 20 keys back
  distance,    ///< causal, and minus the distance, as llama.cpp makes it for ALiBi
  numbers,     ///< any number
  alternating, ///< other numbers for odd heads than for even ones
  per_head,    ///< other numbers for each head
  per_sequence ///< other numbers for each sequence
};

/// Memory layouts of tensors.
enum class Layout {
  dense,     ///< in the order of ggml's indices
  cache,     ///< as llama.cpp's: rows hold all heads, and the cache has more rows than there are keys
  odd,       ///< rows of 4 elements more
  v_in_k,    ///< V is a part of K's rows, and K a view of a cache
  v_in_own_k ///< V is a part of K's rows, and K is not a view
};

struct Case {
  const char *name;
  int64_t head_dim_qk, head_dim_v, q_heads, kv_heads, rows, keys, sequences;
  ggml_type kv_type = GGML_TYPE_F16;
  Mask mask = Mask::none;
  Layout layout = Layout::cache;
  float max_bias = 0, soft_cap = 0;
  bool sinks = false;
  std::optional<float> scale = {}; ///< else 1 / sqrt of the head size
  bool served = true;
  bool v_is_bf16 = false; ///< for any K
  int64_t k_offset = 0;   ///< elements of a cache's row before K's
  int64_t v_offset = 0;   ///< elements of K's row before V's, where V is a part of K

  bool v_is_in_k() const { return layout == Layout::v_in_k || layout == Layout::v_in_own_k; }
  ggml_type v_type() const { return v_is_bf16 ? GGML_TYPE_BF16 : kv_type; }
};

/// The numbers as the node has them: of F16 or BF16 what these types hold. Indices from the outside to the
/// inside.
struct Numbers {
  explicit Numbers(const Case &of);

  std::vector<float> q;     ///< [sequence, head, row, element]
  std::vector<float> k, v;  ///< [sequence, head, key, element]
  std::vector<float> mask;  ///< [sequence, head, row, key]; empty without one
  std::vector<float> sinks; ///< [head]; empty without
  float scale;
};

struct Outcome {
  ggml_status status;
  std::string backend;  ///< which one the scheduler chose
  std::vector<float> o; ///< [sequence, row, head, element]
};

/// Computes the node with ggml's scheduler. Earlier backends are preferred; the last one is the CPU's.
Outcome compute(const Case &of, const Numbers &numbers, std::vector<ggml_backend_t> backends);

/// Gives the node to a backend whether or not it supports it.
ggml_status force(const Case &of, const Numbers &numbers, ggml_backend_t backend);

} // namespace check
