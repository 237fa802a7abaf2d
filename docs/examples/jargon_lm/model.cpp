//===- model.cpp - the decoder: everything but attention ------------------------------------------------===//
//
// Activations are row-major [row, feature] vectors; a row is one position.
//
//===----------------------------------------------------------------------------------------------------===//
#include "model.h"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <numeric>
#include <stdexcept>

namespace jargon {

namespace {

/// y[row, out] = sum over in of x[row, in] * weight[out, in]
std::vector<float> multiply(std::span<const float> x, std::span<const float> weight, int in) {
  const size_t rows = x.size() / in, outs = weight.size() / in;
  std::vector<float> y(rows * outs);
  for (size_t row = 0; row < rows; ++row)
    for (size_t out = 0; out < outs; ++out) {
      float sum = 0;
      for (int i = 0; i < in; ++i)
        sum += x[row * in + i] * weight[out * in + i];
      y[row * outs + out] = sum;
    }
  return y;
}

void add(std::vector<float> &x, std::span<const float> y) {
  for (size_t i = 0; i < x.size(); ++i)
    x[i] += y[i];
}

} // namespace

Config load_config(const std::string &path) {
  std::ifstream file(path);
  if (!file) throw std::runtime_error(path + ": cannot be opened");
  const nlohmann::json json = nlohmann::json::parse(file);
  return {.vocab_size = json.at("vocab_size"),
          .hidden_size = json.at("hidden_size"),
          .num_layers = json.at("num_layers"),
          .num_heads = json.at("num_heads"),
          .num_kv_heads = json.at("num_kv_heads"),
          .head_dim = json.at("head_dim"),
          .mlp_size = json.at("mlp_size"),
          .max_positions = json.at("max_positions"),
          .rope_base = json.at("rope_base"),
          .norm_eps = json.at("norm_eps")};
}

Model::Model(const Config &config, const Tensors &tensors) : config(config) {
  auto take = [&](const std::string &name, std::vector<int64_t> shape) {
    const auto found = tensors.find(name + ".weight");
    if (found == tensors.end()) throw std::runtime_error("the model has no tensor " + name + ".weight");
    if (found->second.shape != shape) throw std::runtime_error(name + ".weight has an unexpected shape");
    return found->second.values;
  };
  const int64_t hidden = config.hidden_size, mlp = config.mlp_size;
  const int64_t q_size = config.num_heads * config.head_dim, kv_size = config.num_kv_heads * config.head_dim;
  embed = take("embed", {config.vocab_size, hidden});
  norm = take("norm", {hidden});
  for (int i = 0; i < config.num_layers; ++i) {
    const std::string prefix = "layers." + std::to_string(i) + ".";
    layers.push_back({.attn_norm = take(prefix + "attn_norm", {hidden}),
                      .q = take(prefix + "q", {q_size, hidden}),
                      .k = take(prefix + "k", {kv_size, hidden}),
                      .v = take(prefix + "v", {kv_size, hidden}),
                      .o = take(prefix + "o", {hidden, q_size}),
                      .mlp_norm = take(prefix + "mlp_norm", {hidden}),
                      .gate = take(prefix + "gate", {mlp, hidden}),
                      .up = take(prefix + "up", {mlp, hidden}),
                      .down = take(prefix + "down", {hidden, mlp})});
  }
}

std::vector<float> Model::normalised(std::span<const float> x, const Matrix &weight) const {
  const size_t width = weight.size();
  std::vector<float> y(x.size());
  for (size_t row = 0; row < x.size(); row += width) {
    float squares = 0;
    for (size_t i = 0; i < width; ++i)
      squares += x[row + i] * x[row + i];
    const float factor = 1.0f / std::sqrt(squares / float(width) + config.norm_eps);
    for (size_t i = 0; i < width; ++i)
      y[row + i] = x[row + i] * factor * weight[i];
  }
  return y;
}

// Half-split rotary positions: feature i turns with feature i + head_dim / 2.
void Model::rotate(std::vector<float> &heads, int head_count, std::span<const int32_t> positions) const {
  const int half = config.head_dim / 2;
  for (size_t row = 0; row < positions.size(); ++row)
    for (int i = 0; i < half; ++i) {
      const float angle = float(positions[row]) * std::pow(config.rope_base, -float(i) / float(half));
      const float cosine = std::cos(angle), sine = std::sin(angle);
      for (int head = 0; head < head_count; ++head) {
        float *const x = &heads[(row * head_count + head) * config.head_dim];
        const float first = x[i], second = x[i + half];
        x[i] = first * cosine - second * sine;
        x[i + half] = second * cosine + first * sine;
      }
    }
}

std::vector<float> Model::embedded(std::span<const uint8_t> bytes) const {
  const size_t hidden = config.hidden_size;
  std::vector<float> x;
  x.reserve(bytes.size() * hidden);
  for (uint8_t byte : bytes)
    x.insert(x.end(), &embed[byte * hidden], &embed[byte * hidden] + hidden);
  return x;
}

Projections Model::project(int layer, std::span<const float> x, std::span<const int32_t> positions) const {
  const Layer &weights = layers[layer];
  const std::vector<float> input = normalised(x, weights.attn_norm);
  Projections made{.q = multiply(input, weights.q, config.hidden_size),
                   .k = multiply(input, weights.k, config.hidden_size),
                   .v = multiply(input, weights.v, config.hidden_size)};
  rotate(made.q, config.num_heads, positions);
  rotate(made.k, config.num_kv_heads, positions);
  return made;
}

void Model::complete(int layer, std::span<const float> heads, std::vector<float> &x) const {
  const Layer &weights = layers[layer];
  add(x, multiply(heads, weights.o, config.num_heads * config.head_dim));
  const std::vector<float> input = normalised(x, weights.mlp_norm);
  std::vector<float> gate = multiply(input, weights.gate, config.hidden_size);
  const std::vector<float> up = multiply(input, weights.up, config.hidden_size);
  for (size_t i = 0; i < gate.size(); ++i)
    gate[i] = gate[i] / (1.0f + std::exp(-gate[i])) * up[i];
  add(x, multiply(gate, weights.down, config.mlp_size));
}

std::vector<float> Model::logits(std::span<const float> row) const {
  return multiply(normalised(row, norm), embed, config.hidden_size);
}

std::vector<float> Model::forward(std::span<const uint8_t> bytes, Attention &attention) const {
  const int rows = int(bytes.size());
  if (rows == 0 || attention.length() + rows > config.max_positions)
    throw std::runtime_error("the text would leave positions 1 to " + std::to_string(config.max_positions));
  std::vector<int32_t> positions(bytes.size());
  std::iota(positions.begin(), positions.end(), attention.length());
  std::vector<float> x = embedded(bytes);
  for (int layer = 0; layer < config.num_layers; ++layer) {
    const Projections made = project(layer, x, positions);
    complete(layer, attention.run(layer, rows, made.q, made.k, made.v), x);
  }
  attention.advance(rows);
  return logits(std::span<const float>(x).last(config.hidden_size));
}

uint8_t most_likely(const std::vector<float> &logits) {
  return uint8_t(std::max_element(logits.begin(), logits.end()) - logits.begin());
}

} // namespace jargon
