//===- model.h - the decoder: everything but attention --------------------------------------------------===//
//
// A byte-level decoder of the usual modern shape. Embedding, norms, projections, rotary positions and the MLP
// run here, on the host, in float; attention is the one thing handed to the device (attention.h).
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

class Model {
public:
  /// Throws std::runtime_error when a tensor is missing or its shape does not follow from the configuration.
  Model(const Config &config, const Tensors &tensors);

  /// Appends `bytes` at positions [attention.length(), ...) and returns the logits of the last of them.
  std::vector<float> forward(std::span<const uint8_t> bytes, Attention &attention) const;

private:
  using Matrix = std::vector<float>; // [out, in], row-major

  struct Layer {
    Matrix attn_norm, q, k, v, o;
    Matrix mlp_norm, gate, up, down;
  };

  void rotate(std::vector<float> &heads, int head_count, int first_position) const;
  void attend(const Layer &layer, int index, int rows, std::vector<float> &x, Attention &attention) const;
  void feed_forward(const Layer &layer, std::vector<float> &x) const;
  std::vector<float> normalised(std::span<const float> x, const Matrix &weight) const;

  Config config;
  Matrix embed, norm;
  std::vector<Layer> layers;
};

} // namespace jargon
