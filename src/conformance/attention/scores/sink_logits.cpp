//===- sink_logits.cpp - one more key for each query head, without a value ------------------------------===//

#include "conformance/attention/scores/scores.h"

namespace sluice::conformance {

namespace {

bool is_in(const Case &c) {
  return c.sink_logits;
}

std::string name(const Case &) {
  return "_sinks";
}

void add(Case &c) {
  c.sink_logits = true;
}
std::vector<Feature> choices() {
  return {{"sink logits", {add}}};
}

std::vector<KernelFeature> on_kernels() {
  return {{"sink logits", "sink_logits", [](Case &c, const Kernel &) { add(c); }}};
}

void join_everything(Case &c, bool) {
  add(c);
}

/// A sink with more weight than all keys, and one with less.
void add_edges(Edges &edges) {
  for (Pattern pattern : {Pattern::uniform, Pattern::peaked, Pattern::falling})
    edges.add({.q_heads = 4, .q_len = 5, .kv_len = 90, .pattern = pattern, .sink_logits = true});
}

ScoreNumbers make_numbers(const Case &c) {
  ScoreNumbers numbers;
  Random random = random_of(c, " sinks");
  for (int h = 0; h < c.q_heads; ++h)
    numbers.heads.push_back(float(3 * random.normal()));
  return numbers;
}

ScoreBuffers store(const Storage &storage, const ScoreNumbers &numbers) {
  return {.heads = add_array<float>(storage.buffers, numbers.heads)};
}

void ask(const Case &, ProblemStructs &problem) {
  problem.scores.flags |= SLUICE_SCORES_SINK;
}

void pass(const Case &, const ScoreBuffers &buffers, const CallMemory &memory, CallStructs &call) {
  call.scores.sinks = memory.array<float>(buffers.heads);
}

double extra_key(const ScoreNumbers &numbers, int h) {
  return numbers.heads[size_t(h)];
}

} // namespace

const ScoreChange scores::sink_logits = {
    .is_in = is_in,
    .name = name,
    .choices = choices,
    .on_kernels = on_kernels,
    .join_everything = join_everything,
    .add_edges = add_edges,
    .make_numbers = make_numbers,
    .store = store,
    .ask = ask,
    .pass = pass,
    .extra_key = extra_key,
};

} // namespace sluice::conformance
