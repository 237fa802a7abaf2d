//===- model.h - the decoder: everything but attention --------------------------------------------------===//
//
// A byte-level decoder of the usual modern shape. Embedding, norms, projections, rotary positions and the MLP
// run here, on the host, in float; attention is the one thing handed to the device. The steps between two
// attentions are functions of their own and know nothing of caches: rows are positions of any sequences. One
// text with a dense cache (attention.h) is Model::forward; many texts with a paged one are serving.h.
//
//===----------------------------------------------------------------------------------------------------===//
#pragma once

#include "attention.h"
#include "safetensors.h"

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace jargon {

struct Config {
  int vocab_size = 0;
  int hidden_size = 0;
  int num_layers = 0;
  int num_heads = 0;
  int num_kv_heads = 0;
  int head_dim = 0;
  int mlp_size = 0;
  int max_positions = 0;
  float rope_base = 0;
  float norm_eps = 0;
};

Config load_config(const std::string &path);

/// The inputs of a layer's attention: [row, heads, head_dim], Q and K rotated to their positions.
struct Projections {
  std::vector<float> q, k, v;
};

class Model {
public:
  /// Throws std::runtime_error when a tensor is missing or its shape does not follow from the configuration.
  Model(const Config &config, const Tensors &tensors);

  const Config &configuration() const { return config; }

  /// Appends `bytes` at positions [attention.length(), ...) and returns the logits of the last of them.
  std::vector<float> forward(std::span<const uint8_t> bytes, Attention &attention) const;

  // The same in steps. Rows of x are activations, [row, hidden_size]. For each layer: project, attention of
  // what that gives, complete.
  std::vector<float> embedded(std::span<const uint8_t> bytes) const;
  Projections project(int layer, std::span<const float> x, std::span<const int32_t> positions) const;
  /// `heads` is the result of attention, [row, num_heads, head_dim].
  void complete(int layer, std::span<const float> heads, std::vector<float> &x) const;
  /// The logits of one row of x after the last layer.
  std::vector<float> logits(std::span<const float> row) const;

private:
  using Matrix = std::vector<float>; // [out, in], row-major

  struct Layer {
    Matrix attn_norm, q, k, v, o;
    Matrix mlp_norm, gate, up, down;
  };

  void rotate(std::vector<float> &heads, int head_count, std::span<const int32_t> positions) const;
  std::vector<float> normalised(std::span<const float> x, const Matrix &weight) const;

  Config config;
  Matrix embed, norm;
  std::vector<Layer> layers;
};

/// The byte with the largest logit.
uint8_t most_likely(const std::vector<float> &logits);

} // namespace jargon
