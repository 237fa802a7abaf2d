//===- attention_step.h - one call of ONNX's Attention, checked -----------------------------------------===//
#pragma once

#include "api.h"

#include <sluice/make.h>

namespace sluice_ort::onnx_attention {

enum Input { q_input, k_input, v_input, attn_mask, past_key, past_value, nonpad_kv_seqlen };
enum Output { y, present_key, present_value, qk_matmul_output };

/// Q, K, V or Y, of rank 3 or 4, as [batch, token, head, size].
struct Rows {
  int64_t batch, tokens, heads, size;
  bool heads_first; // (batch, heads, tokens, size), else (batch, tokens, heads * size)

  sluice_tensor tensor(void *data) const {
    return heads_first ? sluice_bhsd(data, tokens, heads, size) : sluice_bshd(data, tokens, heads, size);
  }
  Shape shape() const {
    return heads_first ? Shape{batch, heads, tokens, size} : Shape{batch, tokens, heads * size};
  }
};

/// What a call's tensors say, checked.
struct Step {
  Rows q{}, k{}, v{};
  int64_t past_keys = 0;
  Tensor past_k, past_v;
  std::vector<int32_t> lengths; // nonpad_kv_seqlen; empty without

  int64_t keys() const { return past_keys + k.tokens; }
};

/// Reads the inputs of a call but for the mask. Throws Refusal where one breaks a rule. The heads are the
/// attributes, or 0 if they are absent.
Step checked_step(const Call &call, int64_t q_heads, int64_t kv_heads);

} // namespace sluice_ort::onnx_attention
