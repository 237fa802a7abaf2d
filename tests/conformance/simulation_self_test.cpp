//===- simulation_self_test.cpp - a kernel's arithmetic stays within the bound --------------------------===//
//
// Attention in F32 as a kernel computes it: scores to base 2, an online softmax over tiles of keys, weights
// rounded to the operand's type, keys divided into splits that are merged. Its results must pass, or the
// suite would fail correct kernels; and its scores are perturbed by as much as is allowed.
//
//===----------------------------------------------------------------------------------------------------===//
#include "conformance/attention/scores/scores.h"
#include "perfect.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <limits>
#include <numbers>

using namespace sluice::conformance;

namespace {

constexpr float infinity = std::numeric_limits<float>::infinity();
constexpr auto log2e = float(std::numbers::log2e);
constexpr auto ln2 = float(std::numbers::ln2);

/// Toward zero; `value` is not negative.
float cut(const NumberFormat &format, float value) {
  const uint16_t nearest = encode(format, value);
  return float(decode(format, decode(format, nearest) <= value ? nearest : uint16_t(nearest - 1)));
}

class Kernel {
public:
  /// Keys per tile, tiles per split.
  Kernel(const Case &of, const Inputs &numbers, int keys_per_tile, int tiles_per_split)
      : c(of), in(numbers), sequences(c), tile(keys_per_tile), keys_per_split(tiles_per_split * tile) {}

  Outputs run() {
    Outputs out;
    const auto d = size_t(c.head_size.v);
    out.o.resize(size_t(c.batch) * c.q_len * c.q_heads * d);
    out.lse.resize(size_t(c.batch) * c.q_heads * c.q_len);
    for (int b = 0; b < c.batch; ++b)
      for (int i = 0; i < sequences.q_lengths[size_t(b)]; ++i)
        for (int h = 0; h < c.q_heads; ++h) {
          const State state = row(b, h, i);
          for (size_t e = 0; e < d; ++e)
            out.o[((size_t(b) * c.q_len + i) * c.q_heads + h) * d + e] = stored_as_o(c, state.o[e]);
          out.lse[(size_t(b) * c.q_heads + h) * c.q_len + i] = state.lse;
        }
    return out;
  }

private:
  struct State {
    float m = -infinity, l = 0; // to base 2
    std::vector<float> o;
    float lse = -infinity;
  };

  /// The keys of a prefix, or the own keys of a sequence; the former are all visible.
  struct Level {
    const std::vector<double> &k, &v, &k_scale, &v_scale; // the scales only if they are per key
    size_t first;                                         // of its keys in these tensors
    int keys;
    bool is_own;
  };

  /// Exponentials are larger than P by this factor, so that truncating them rounds P without bias.
  double factor_of_p() const {
    if (has_fp8_queries(c)) return 1;
    return 1 + (c.dtype == Dtype::f16 ? 0x1p-11 : 0x1p-8) / 1.44;
  }

  float scale_of_key(const Level &level, const std::vector<double> &scales, int h, int j) const {
    const int kv_head = h / (c.q_heads / c.kv_heads);
    return float(scales[(level.first + size_t(j)) * size_t(c.kv_heads) + size_t(kv_head)]);
  }
  float k_scale(const Level &level, int h, int j) const {
    return is_per_key(c.k_scale) ? scale_of_key(level, level.k_scale, h, j)
                                 : float(in.k_scale[size_t(h / (c.q_heads / c.kv_heads))]);
  }

  /// To base 2.
  float score(const Level &level, int b, int h, int i, int j) const {
    const int d = c.head_size.qk, kv_head = h / (c.q_heads / c.kv_heads);
    const double *const q = &in.q[((size_t(b) * c.q_len + i) * c.q_heads + h) * d];
    const double *const k =
        &level.k[((level.first + size_t(j)) * size_t(c.kv_heads) + size_t(kv_head)) * size_t(d)];
    float dot = 0;
    for (int e = 0; e < d; e += 8) {
      double group = 0;
      for (int n = e; n < std::min(e + 8, d); ++n)
        group += q[n] * k[n];
      dot = float(dot + group);
    }
    const float scale = c.scale ? float(*c.scale) : 1 / std::sqrt(float(d));
    const float factor = scale * float(in.q_scale[size_t(h)]) * k_scale(level, h, j);
    float s = dot * (factor * log2e);
    const ScorePlace place{c, sequences, b, h, i, j};
    for (const ScoreChange *change : score_changes)
      if (change->in_f32 && change->is_in(c)) s = change->in_f32(place, in.changes[*change], s);
    return s;
  }

  void add_tile(State &state, const Level &level, int b, int h, int i, int begin, int end) const {
    std::vector<int> keys;
    std::vector<float> scores;
    for (int j = begin; j < end; ++j)
      if (!level.is_own || is_visible(c, sequences, in, b, h, i, j)) {
        keys.push_back(j);
        // A scale of V per key is part of the exponent.
        const float v_exponent =
            is_per_key(c.v_scale) ? std::log2(scale_of_key(level, level.v_scale, h, j)) : 0;
        scores.push_back(score(level, b, h, i, j) + v_exponent);
      }
    if (keys.empty()) return;
    const float m = std::max(state.m, *std::max_element(scores.begin(), scores.end()));
    if (m == -infinity) return;
    const float rescale = std::exp2(state.m - m);
    state.m = m;
    state.l *= rescale;
    for (float &o : state.o)
      o *= rescale;
    const int kv_head = h / (c.q_heads / c.kv_heads);
    const auto log2_factor = float(std::log2(factor_of_p()));
    for (size_t n = 0; n < keys.size(); ++n) {
      const float p = std::exp2(scores[n] - m + log2_factor);
      state.l += is_per_key(c.v_scale) ? p * (1 / scale_of_key(level, level.v_scale, h, keys[n])) : p;
      const float operand = has_fp8_queries(c) ? float(decode_fp8(encode_fp8(0x1p7 * p)) * 0x1p-7)
                                               : cut(c.dtype == Dtype::f16 ? f16_format : bf16_format, p);
      const double *const v =
          &level.v[((level.first + size_t(keys[n])) * size_t(c.kv_heads) + size_t(kv_head)) *
                   size_t(c.head_size.v)];
      for (size_t e = 0; e < state.o.size(); ++e)
        state.o[e] = float(state.o[e] + double{operand} * v[e]);
    }
  }

  void add_parts(std::vector<State> &parts, const Level &level, int b, int h, int i) const {
    for (int begin = 0; begin < level.keys; begin += keys_per_split) {
      State part;
      part.o.resize(size_t(c.head_size.v));
      const int end = std::min(level.keys, begin + keys_per_split);
      for (int key = begin; key < end; key += tile)
        add_tile(part, level, b, h, i, key, std::min(end, key + tile));
      if (part.m == -infinity) continue;
      part.l *= float(1 / factor_of_p());
      for (float &o : part.o)
        o *= 1 / part.l;
      part.lse = part.m + std::log2(part.l);
      parts.push_back(std::move(part));
    }
  }

  State row(int b, int h, int i) const {
    const float sink = c.sink_logits ? float(in.changes[scores::sink_logits].heads[size_t(h)]) : -infinity;
    std::vector<State> parts;
    add_parts(parts,
              {in.k, in.v, in.k_scale, in.v_scale, size_t(b) * size_t(c.kv_len),
               sequences.kv_lengths[size_t(b)], true},
              b, h, i);
    if (const int p = sequences.prefix_of(c, b, i); p >= 0)
      add_parts(parts,
                {in.prefix_k, in.prefix_v, in.prefix_k_scale, in.prefix_v_scale,
                 size_t(p) * size_t(c.prefixes.keys), sequences.prefix_lengths[size_t(p)], false},
                b, h, i);
    State result;
    result.o.resize(size_t(c.head_size.v));
    if (parts.empty()) {
      result.lse = c.lse_base_2 ? sink * log2e : sink;
      return result;
    }
    float m = sink * log2e;
    for (const State &part : parts)
      m = std::max(m, part.lse);
    float sum = std::exp2(sink * log2e - m);
    for (const State &part : parts) {
      const float weight = std::exp2(part.lse - m);
      sum += weight;
      for (size_t e = 0; e < result.o.size(); ++e)
        result.o[e] += weight * part.o[e];
    }
    const float v_scale = is_per_key(c.v_scale) ? 1 : float(in.v_scale[size_t(h / (c.q_heads / c.kv_heads))]);
    for (float &o : result.o)
      o *= 1 / sum * v_scale * (1 / float(in.o_scale[size_t(h)]));
    result.lse = m + std::log2(sum);
    if (!c.lse_base_2) result.lse *= ln2;
    return result;
  }

  const Case &c;
  const Inputs &in;
  const Sequences sequences;
  const int tile, keys_per_split;
};

Comparison simulated(const Case &c, int keys_per_tile, int tiles_per_split) {
  const Inputs in = make_inputs(c);
  return compare(c, compute_expected(c, in), Kernel(c, in, keys_per_tile, tiles_per_split).run(),
                 Judge::kernel);
}

} // namespace

TEST_CASE("a kernel's arithmetic stays within the bound in every part of the feature cases") {
  const Shapes shapes = {{{Dtype::f16, 64}, {Dtype::bf16, 64}}};
  const std::vector<Case> cases = feature_cases(shapes);
  double largest_o = 0, largest_lse = 0;
  for (size_t i = 0; i < cases.size(); i += 3) {
    if (cases[i].pattern > Pattern::codes) continue; // nothing there depends on rounding
    CAPTURE(cases[i].name);
    const Comparison result = simulated(cases[i], i % 2 ? 16 : 64, 1 + int(i / 3 % 3));
    CHECK(result.wrong == 0);
    largest_o = std::max(largest_o, result.o_ratio);
    largest_lse = std::max(largest_lse, result.lse_ratio);
  }
  INFO(largest_o << " " << largest_lse);
  // And the bound is only a few times the actual error.
  CHECK(largest_o > 0.3);
  CHECK(largest_lse > 0.05);
}

TEST_CASE("a cap far above the scores makes their tanh the largest error, which the bound knows") {
  for (Dtype dtype : {Dtype::f16, Dtype::bf16}) {
    const Case c = named({.dtype = dtype, .head_size = 64, .q_len = 200, .kv_len = 1, .soft_cap = 1000});
    const Comparison result = simulated(c, 64, 1);
    CHECK(result.wrong == 0);
    CHECK(result.lse_ratio > 0.05);
  }
}
