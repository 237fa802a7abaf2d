//===- yardstick.cpp - what served texts are compared with ----------------------------------------------===//

#include "yardstick.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace jargon {

namespace {

constexpr float largest_fp8 = 240; // of E4M3FNUZ

/// Raises largest[head] to the largest magnitude in [row, head, head_dim].
void note_largest(std::span<const float> rows, std::span<float> largest, int head_dim) {
  for (size_t i = 0; i < rows.size(); ++i) {
    float &head = largest[i / head_dim % largest.size()];
    head = std::max(head, std::fabs(rows[i]));
  }
}

} // namespace

Completion dense_completion(const Model &model, Attention &attention, const Request &request) {
  attention.clear();
  Completion completion;
  std::vector<uint8_t> next(request.prompt.begin(), request.prompt.end());
  for (int i = 0; i < request.bytes; ++i) {
    completion.logits.push_back(model.forward(next, attention));
    next.assign(1, most_likely(completion.logits.back()));
    completion.bytes.push_back(next.front());
  }
  return completion;
}

CacheScales measured_scales(const Model &model, Attention &attention, const std::string &text) {
  attention.clear();
  const Config &config = model.configuration();
  const std::vector<uint8_t> bytes(text.begin(), text.end());
  std::vector<int32_t> positions(bytes.size());
  std::iota(positions.begin(), positions.end(), 0);
  const size_t heads = config.num_kv_heads, count = config.num_layers * heads;
  CacheScales scales{.k = std::vector<float>(count), .v = std::vector<float>(count)};
  std::vector<float> x = model.embedded(bytes);
  for (int layer = 0; layer < config.num_layers; ++layer) {
    const Projections made = model.project(layer, x, positions);
    note_largest(made.k, std::span(scales.k).subspan(layer * heads, heads), config.head_dim);
    note_largest(made.v, std::span(scales.v).subspan(layer * heads, heads), config.head_dim);
    model.complete(layer, attention.run(layer, int(bytes.size()), made.q, made.k, made.v), x);
  }
  for (std::vector<float> *const kind : {&scales.k, &scales.v})
    for (float &scale : *kind)
      scale *= 2 / largest_fp8;
  return scales;
}

Difference compare(const Completion &served, const Completion &yardstick) {
  Difference difference{.bytes = yardstick.bytes.size()};
  for (size_t i = 0; i < std::min(served.bytes.size(), yardstick.bytes.size()); ++i) {
    for (size_t j = 0; j < yardstick.logits[i].size(); ++j) {
      const float distance = std::fabs(served.logits[i][j] - yardstick.logits[i][j]);
      // No comparison notices a NaN.
      difference.largest_logits =
          std::max(difference.largest_logits, std::isnan(distance) ? INFINITY : distance);
    }
    if (served.bytes[i] != yardstick.bytes[i]) break;
    ++difference.equal_bytes;
  }
  return difference;
}

} // namespace jargon
