//===- node.h - what a node of ggml is to Sluice -------------------------------------------------------===//
//
// ggml counts from the inside to the outside, in bytes: ne and nb of Q are [element, row, head, sequence].
// Sluice counts elements, [sequence, row, head, element]. Nothing here reads the tensors' memory: ggml asks
// whether a node is served before it has any.
//
//===----------------------------------------------------------------------------------------------------===//
#pragma once

#include <ggml.h>
#include <sluice/sluice.hpp>
#include <string>

namespace ggml_sluice {

/// The inputs and parameters of a GGML_OP_FLASH_ATTN_EXT node. The last two tensors may be missing.
struct Attention {
  explicit Attention(const ggml_tensor &node);

  int64_t sequences() const { return q->ne[3]; }
  int64_t rows() const { return q->ne[1]; }
  int64_t keys() const { return k->ne[1]; }
  int64_t q_heads() const { return q->ne[2]; }
  int64_t kv_heads() const { return k->ne[2]; }
  /// V is a part of K's rows, as in the caches of multi-head latent attention.
  bool v_is_in_k() const;
  /// Q is rounded to BF16 if K is of it, else to F16.
  bool q_is_bf16() const { return k->type == GGML_TYPE_BF16; }
  /// The mask is multiplied with a slope per head.
  bool has_slopes() const { return max_bias > 0; }

  const ggml_tensor *q, *k, *v, *mask, *sinks;
  float scale, max_bias, soft_cap;
};

/// Why the node cannot be put to Sluice at all, or nothing. Whether there is a kernel for problem_of is the
/// library's to say.
std::string refusal(const Attention &attention);

/// What selects the kernel. The bytes of two that select the same are the same.
struct Problem {
  sluice_kv_format format{};
  sluice::Sized<sluice_scores> scores;
  sluice_attention attention{}; ///< points to nothing

  /// The problem, which points to the members of this.
  sluice_attention linked() const;
};
/// Lengths are rounded up to powers of two: the plan for one token serves a growing cache.
Problem problem_of(const Attention &attention);

/// The strides of a call. K, V and the mask keep those that they have in ggml; Q and O are dense.
struct Tensors {
  sluice_tensor q, k, v, o, bias;
};
Tensors tensors_of(const Attention &attention);

/// ggml's slope of a head with max_bias.
float slope_of(const Attention &attention, int64_t head);

} // namespace ggml_sluice
