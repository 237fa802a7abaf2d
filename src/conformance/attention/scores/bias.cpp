//===- bias.cpp - a bias for each row and key, and scales of it -----------------------------------------===//

#include "conformance/attention/name_parts.h"
#include "conformance/attention/scores/heads.h"
#include "conformance/attention/scores/matrices.h"
#include "conformance/attention/scores/scores.h"
#include "conformance/shared/c_types.h"

#include <cmath>
#include <limits>
#include <numbers>

namespace sluice::conformance {

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

bool is_in(const Case &c) {
  return c.bias.type != BiasType::none;
}

Element bias_element(const Case &c) {
  return c.bias.type == BiasType::f16    ? Element::f16
         : c.bias.type == BiasType::bf16 ? Element::bf16
                                         : Element::f32;
}

std::string name(const Case &c) {
  constexpr const char *types[] = {"", "_biasf16", "_biasbf16", "_biasf32"};
  return text(c.bias.type, types) + shared_text(c.bias.shared) + (c.bias.holes ? "_holes" : "") +
         (c.bias.scaled ? "_scaled" : "");
}

void keep_meaningful(Case &c) {
  if (!is_in(c) || c.prefixes.count != 0) c.bias = {};
}

template <BiasType type> void add(Case &c) {
  c.bias.type = type;
}
template <uint8_t shared> void share(Case &c) {
  c.bias.shared = shared;
  if (!is_in(c)) c.bias.type = BiasType::f32;
}
void make_holes(Case &c) {
  c.bias.holes = true;
  if (!is_in(c)) c.bias.type = BiasType::f16;
}
template <bool by_sequence> void scale(Case &c) {
  c.bias.scaled = true;
  if (by_sequence) c.by_sequence = true;
  if (!is_in(c)) c.bias.type = BiasType::f16;
}
std::vector<Feature> choices() {
  return {{"bias", {add<BiasType::f16>, add<BiasType::bf16>, add<BiasType::f32>}},
          {"shared bias",
           {share<share_batch>, share<share_head>, share<share_row>, share<share_column>,
            share<share_batch | share_head>, share<share_batch | share_head | share_row>,
            share<share_batch | share_head | share_row | share_column>}},
          {"holes in the bias", {make_holes}},
          {"scales of the bias", {scale<false>, scale<true>}}};
}

template <BiasType type, bool holes> void add_on_kernel(Case &c, const Kernel &) {
  c.bias = {.type = type, .holes = holes};
}
std::vector<KernelFeature> on_kernels() {
  return {{"bias of F32", "bias", add_on_kernel<BiasType::f32, false>},
          {"bias of F16", "bias", add_on_kernel<BiasType::f16, false>},
          {"bias of BF16 with holes", "bias", add_on_kernel<BiasType::bf16, true>}};
}
void scale_on_kernel(Case &c, const Kernel &) {
  c.bias = {.type = BiasType::f32, .holes = true, .scaled = true};
  c.by_sequence = true;
}
std::vector<KernelFeature> on_kernels_by_sequence() {
  return {{"scales of a bias", "bias_scale", scale_on_kernel}};
}

void join_everything(Case &c, bool is_causal) {
  c.bias = {.type = is_causal ? BiasType::f16 : BiasType::f32, .holes = is_causal};
}

void add_edges(Edges &edges) {
  // One that is the same for all keys: where it is -infinity, the row has no visible key.
  for (bool sinks : {false, true})
    edges.add({.batch = 2,
               .q_heads = 2,
               .q_len = 40,
               .kv_len = 70,
               .bias = {.type = BiasType::f32, .shared = share_column, .holes = true},
               .sink_logits = sinks});
  edges.add({.q_heads = 2,
             .q_len = 70,
             .kv_len = 70,
             .mask = Mask::bottom_right,
             .bits = {.given = true},
             .bias = {.type = BiasType::bf16, .holes = true},
             .alibi = true});
}

std::vector<BadProblem> bad_problems() {
  return {
      {[](ProblemStructs &problem) { problem.scores.bias_type = SLUICE_I8; }, "scores.bias_type"},
      {[](ProblemStructs &problem) { problem.scores.flags |= SLUICE_SCORES_BIAS_SCALE; }, "scores.flags"}};
}

ScoreNumbers make_numbers(const Case &c) {
  ScoreNumbers numbers{.matrix = make_matrix(c, c.bias.shared, c.kv_len)};
  Random random = random_of(c, " bias"), factors = random_of(c, " factors");
  for (double &value : numbers.matrix.values) {
    value = as_stored(bias_element(c), 2 * random.normal());
    if (c.bias.holes && random.uniform() < 0.2) value = -infinity;
  }
  if (c.bias.scaled)
    numbers.heads = make_heads(c, [&](size_t n) {
      const double factor = float((n % 3 == 1 ? -0.5 : 0.75) * (1 + factors.uniform()));
      return n % 5 == 4 ? 0 : factor;
    });
  return numbers;
}

ScoreBuffers store(const Storage &storage, const ScoreNumbers &numbers) {
  const Matrix &bias = numbers.matrix;
  const Element element = bias_element(storage.c);
  const Placed placed = place_matrix(bias.extent, bias.extent[3]);
  ScoreBuffers stored{.matrix = placed.placement};
  stored.matrix.buffer = add_poison(storage.buffers, placed.buffer_elements, element);
  for_each_used(storage.c, storage.sequences, [&](int b, int h, int i, int j) {
    store(storage.buffers.back(), element, stored.matrix.at(b, h, i, j), bias.at(b, h, i, j));
  });
  if (storage.c.bias.scaled) stored.heads = add_heads(storage.c, numbers.heads, storage.buffers);
  return stored;
}

void ask(const Case &c, ProblemStructs &problem) {
  problem.scores.bias_type = c_type(bias_element(c));
  if (c.bias.scaled) problem.scores.flags |= SLUICE_SCORES_BIAS_SCALE;
}

void pass(const Case &c, const ScoreBuffers &buffers, const CallMemory &memory, CallStructs &call) {
  call.scores.bias = memory.tensor(buffers.matrix, bytes_of(bias_element(c)));
  if (!c.bias.scaled) return;
  call.scores.bias_scale_stride = head_stride(c);
  call.scores.bias_scale = memory.array<float>(buffers.heads, call.scores.bias_scale_stride);
}

bool hides(const ScorePlace &place, const ScoreNumbers &numbers) {
  return numbers.matrix.at(place.b, place.h, place.i, place.j) == -infinity;
}

double term(const ScorePlace &place, const ScoreNumbers &numbers) {
  const double factor = numbers.heads.empty() ? 1 : numbers.heads[place.head()];
  return factor * numbers.matrix.at(place.b, place.h, place.i, place.j);
}

double error(const Case &c, const RowMagnitudes &row, double largest_term) {
  return (c.bias.scaled ? 4 : 2) * largest_term + row.terms;
}

float in_f32(const ScorePlace &place, const ScoreNumbers &numbers, float score) {
  const float factor = numbers.heads.empty() ? 1 : float(numbers.heads[place.head()]);
  const auto element = float(numbers.matrix.at(place.b, place.h, place.i, place.j));
  return std::fma(element, factor * std::numbers::log2e_v<float>, score);
}

} // namespace

const ScoreChange scores::bias = {
    .is_in = is_in,
    .name = name,
    .keep_meaningful = keep_meaningful,
    .choices = choices,
    .on_kernels = on_kernels,
    .on_kernels_by_sequence = on_kernels_by_sequence,
    .join_everything = join_everything,
    .add_edges = add_edges,
    .bad_problems = bad_problems,
    .make_numbers = make_numbers,
    .store = store,
    .ask = ask,
    .pass = pass,
    .hides = hides,
    .term = term,
    .error = error,
    .in_f32 = in_f32,
};

} // namespace sluice::conformance
