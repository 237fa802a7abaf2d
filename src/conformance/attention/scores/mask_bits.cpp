//===- mask_bits.cpp - a mask with a bit for each row and key -------------------------------------------===//

#include "conformance/attention/scores/mask_bits.h"

#include "conformance/attention/scores/matrices.h"
#include "conformance/attention/scores/scores.h"

namespace sluice::conformance {

namespace {

bool is_in(const Case &c) {
  return c.bits.given;
}

std::string name(const Case &c) {
  return (c.bits.new_rows ? "_newbits" : "_bits") + shared_text(c.bits.shared);
}

void keep_meaningful(Case &c) {
  if (!c.bits.given || c.prefixes.count != 0) c.bits = {};
  c.bits.shared &= ~share_column;
}

template <uint8_t shared> void set_bits(Case &c) {
  c.bits = {.given = true, .shared = shared};
}
template <uint8_t shared> void set_new_bits(Case &c) {
  c.bits = {.given = true, .shared = shared, .new_rows = true};
}
std::vector<Feature> choices() {
  return {{"bits",
           {set_bits<0>, set_bits<share_head>, set_bits<share_batch | share_head>,
            set_bits<share_batch | share_head | share_row>}},
          {"bits of new rows", {set_new_bits<0>, set_new_bits<share_head>}}};
}

std::vector<KernelFeature> on_kernels() {
  return {{"bits", "mask", [](Case &c, const Kernel &) { c.bits.given = true; }}};
}
std::vector<KernelFeature> on_kernels_by_sequence() {
  return {{"bits of new rows", "mask_new_rows", [](Case &c, const Kernel &) { set_new_bits<0>(c); }}};
}

void join_everything(Case &c, bool is_causal) {
  if (!is_causal) c.bits.given = true;
}

void add_edges(Edges &edges) {
  for (int kv_len : {1, 7, 8, 9, 63, 65, 130})
    edges.add({.q_heads = 2, .q_len = 9, .kv_len = kv_len, .bits = {.given = true}});
}

std::vector<BadProblem> bad_problems() {
  return {{[](ProblemStructs &problem) { problem.mask.flags |= SLUICE_MASK_BITS_OF_NEW; }, "mask.flags"}};
}

/// Two keys in three are visible, none in one row of eight and in some runs of 32 keys.
ScoreNumbers make_numbers(const Case &c) {
  Matrix bits = make_matrix(c, c.bits.shared, c.bits.new_rows ? c.q_len : c.kv_len);
  Random random = random_of(c, " bits");
  const auto keys = size_t(bits.extent[3]);
  bool row_hidden = false, run_hidden = false;
  for (size_t i = 0; i < bits.values.size(); ++i) {
    if (i % keys == 0) row_hidden = random.below(8) == 0;
    if (i % keys % 32 == 0) run_hidden = random.below(4) == 0;
    bits.values[i] = !row_hidden && !run_hidden && random.below(3) != 0;
  }
  return {.matrix = std::move(bits)};
}

/// A column of memory is a byte.
ScoreBuffers store(const Storage &storage, const ScoreNumbers &numbers) {
  const Matrix &bits = numbers.matrix;
  const Placed placed = place_matrix(bits.extent, (bits.extent[3] + 7) / 8);
  ScoreBuffers stored{.matrix = placed.placement};
  stored.matrix.stride[3] = 1;
  stored.matrix.buffer = int(storage.buffers.size());
  std::vector<std::byte> bytes(size_t(placed.buffer_elements), std::byte(0xff));
  for_each_used(storage.c, storage.sequences, [&](int b, int h, int i, int j) {
    const int column = j - first_masked_key(storage.c, storage.sequences, b);
    if (column >= 0 && bits.at(b, h, i, column) == 0)
      bytes[size_t(stored.matrix.at(b, h, i, column / 8))] &= ~std::byte(1 << column % 8);
  });
  storage.buffers.push_back(std::move(bytes));
  return stored;
}

void ask(const Case &c, ProblemStructs &problem) {
  problem.mask.flags |= SLUICE_MASK_BITS;
  if (c.bits.new_rows) problem.mask.flags |= SLUICE_MASK_BITS_OF_NEW;
}

void pass(const Case &, const ScoreBuffers &buffers, const CallMemory &memory, CallStructs &call) {
  call.mask.bits = memory.tensor(buffers.matrix, 1);
}

bool hides(const ScorePlace &place, const ScoreNumbers &numbers) {
  const int column = place.j - first_masked_key(place.c, place.sequences, place.b);
  return column >= 0 && numbers.matrix.at(place.b, place.h, place.i, column) == 0;
}

} // namespace

const ScoreChange scores::mask_bits = {
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
};

} // namespace sluice::conformance
