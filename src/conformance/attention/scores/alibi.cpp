//===- alibi.cpp - a slope for each query head, times the distance --------------------------------------===//

#include "conformance/attention/scores/heads.h"
#include "conformance/attention/scores/scores.h"

#include <cstdlib>
#include <numbers>

namespace sluice::conformance {

namespace {

bool is_in(const Case &c) {
  return c.alibi;
}

std::string name(const Case &) {
  return "_alibi";
}

void keep_meaningful(Case &c) {
  if (c.prefixes.count != 0) c.alibi = false;
}

void add(Case &c) {
  c.alibi = true;
}
void add_by_sequence(Case &c) {
  c.alibi = c.by_sequence = true;
}
std::vector<Feature> choices() {
  return {{"ALiBi", {add, add_by_sequence}}};
}

template <Mask mask> void add_on_kernel(Case &c, const Kernel &) {
  c.mask = mask;
  c.alibi = true;
}
std::vector<KernelFeature> on_kernels() {
  return {{"ALiBi", "alibi", add_on_kernel<Mask::none>},
          {"ALiBi from the top left", "alibi", add_on_kernel<Mask::none_top_left>},
          {"ALiBi, causal", "alibi", add_on_kernel<Mask::bottom_right>}};
}
std::vector<KernelFeature> on_kernels_by_sequence() {
  return {
      {"slopes of each sequence", "alibi_by_sequence", [](Case &c, const Kernel &) { add_by_sequence(c); }}};
}

void join_everything(Case &c, bool) {
  c.alibi = true;
}

/// Far keys lose all their weight; with a negative slope near ones do.
void add_edges(Edges &edges) {
  edges.add({.q_heads = 8, .kv_heads = 2, .q_len = 1, .kv_len = 1500, .alibi = true});
  edges.add({.q_heads = 4, .q_len = 30, .kv_len = 200, .mask = Mask::none_top_left, .alibi = true});
}

/// The usual slopes, one in four with the opposite sign, and never quite a power of two.
ScoreNumbers make_numbers(const Case &c) {
  Random random = random_of(c, " slopes");
  return {.heads = make_heads(c, [&](size_t n) -> double {
            const double usual = n % 4 == 3 ? -0.02 : 1.0 / double(2 << n % size_t(c.q_heads) % 8);
            return float(usual * (1 + random.uniform() / 4));
          })};
}

ScoreBuffers store(const Storage &storage, const ScoreNumbers &numbers) {
  return {.heads = add_heads(storage.c, numbers.heads, storage.buffers)};
}

void ask(const Case &, ProblemStructs &problem) {
  problem.scores.flags |= SLUICE_SCORES_ALIBI;
}

void pass(const Case &c, const ScoreBuffers &buffers, const CallMemory &memory, CallStructs &call) {
  call.scores.alibi_stride = head_stride(c);
  call.scores.alibi_slopes = memory.array<float>(buffers.heads, call.scores.alibi_stride);
}

double term(const ScorePlace &place, const ScoreNumbers &numbers) {
  return -numbers.heads[place.head()] * std::abs(place.sequences.distance(place.b, place.i, place.j));
}

double error(const Case &, const RowMagnitudes &row, double largest_term) {
  return 3 * largest_term + row.terms;
}

float in_f32(const ScorePlace &place, const ScoreNumbers &numbers, float score) {
  const int distance = std::abs(place.sequences.distance(place.b, place.i, place.j));
  return score - float(numbers.heads[place.head()]) * std::numbers::log2e_v<float> * float(distance);
}

} // namespace

const ScoreChange scores::alibi = {
    .is_in = is_in,
    .name = name,
    .keep_meaningful = keep_meaningful,
    .choices = choices,
    .on_kernels = on_kernels,
    .on_kernels_by_sequence = on_kernels_by_sequence,
    .join_everything = join_everything,
    .add_edges = add_edges,
    .make_numbers = make_numbers,
    .store = store,
    .ask = ask,
    .pass = pass,
    .term = term,
    .error = error,
    .in_f32 = in_f32,
};

} // namespace sluice::conformance
