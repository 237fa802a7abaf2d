//===- ways.cpp - attention by heads, and decoding by keys ----------------------------------------------===//

#include "ways.h"

namespace parallel {

namespace {

std::string text_of(const TensorView &tensor) {
  return (tensor.dtype == SLUICE_BF16 ? "BF16" : "type " + std::to_string(tensor.dtype)) + " [" +
         std::to_string(tensor.extent[2]) + ", " + std::to_string(tensor.extent[3]) + "]";
}

} // namespace

Part part_of(int64_t count, int64_t parts, int64_t part) {
  const int64_t first = count * part / parts;
  return {first, count * (part + 1) / parts - first};
}

std::string facts_of(const TensorView &q, const TensorView &k, const TensorView &v) {
  return "heads and elements q " + text_of(q) + ", k " + text_of(k) + ", v " + text_of(v);
}

Memory by_heads(Member &member, const TensorView &q, const TensorView &k, const TensorView &v, bool causal) {
  const std::string step = "by heads";
  const Ranks &ranks = member.ranks;
  ranks.agree_on(step, std::to_string(q.extent[1]) + " rows, " + std::to_string(k.extent[1]) + " keys, " +
                           facts_of(q, k, v));

  const int64_t tokens = q.extent[1], heads = q.extent[2], dim = v.extent[3];
  const size_t row_bytes = size_t(heads * dim) * bf16_bytes, slot_bytes = size_t(tokens) * row_bytes;
  const size_t all = size_t(ranks.size());
  std::optional<ExchangeBuffer> slots;
  std::optional<Memory> result;
  std::optional<Attention> attention;
  std::optional<Stream> stream; // the last: it waits for what uses the others
  ranks.together(step, [&] {
    slots.emplace(member.device, member.buffers, all * slot_bytes);
    result.emplace(member.device, all * slot_bytes);
    const TensorView o = TensorView::bshd(slots->on_device() + size_t(ranks.rank()) * slot_bytes, SLUICE_BF16,
                                          1, tokens, heads, dim);
    attention.emplace(member.device, q, k, v, o, causal);
    stream.emplace(member.device);
    attention->run(*stream, q, k, v, o, {});
  });
  gather(ranks, step, *stream, member.counts, {&*slots}, {slot_bytes});
  // [rank][token][heads of a rank] becomes [token][all heads].
  ranks.together(step, [&] {
    for (size_t other = 0; other < all; ++other)
      stream->copy_rows(result->bytes() + other * row_bytes, all * row_bytes,
                        slots->on_device() + other * slot_bytes, row_bytes, row_bytes, size_t(tokens));
    stream->wait();
  });
  return std::move(*result);
}

uint64_t bytes_by_heads(int ranks, int64_t tokens, int64_t heads, int64_t dim) {
  return uint64_t(ranks - 1) * uint64_t(tokens * (heads / ranks) * dim) * bf16_bytes;
}

Memory decode_by_keys(Member &member, const TensorView &q, const TensorView &k, const TensorView &v) {
  const std::string step = "decode";
  const Ranks &ranks = member.ranks;
  ranks.agree_on(step,
                 std::to_string(q.extent[1]) + " rows, " + facts_of(q, k, v)); // shares of keys may differ

  const int64_t rows = q.extent[1], heads = q.extent[2], dim = v.extent[3];
  const int64_t all = ranks.size(), own = ranks.rank();
  const size_t o_bytes = size_t(rows * heads * dim) * f32_bytes, lse_bytes = size_t(rows * heads) * f32_bytes;
  std::optional<ExchangeBuffer> o_slots, lse_slots;
  std::optional<Memory> result;
  std::optional<Attention> attention;
  std::optional<Stream> stream;
  ranks.together(step, [&] {
    o_slots.emplace(member.device, member.buffers, size_t(all) * o_bytes);
    lse_slots.emplace(member.device, member.buffers, size_t(all) * lse_bytes);
    result.emplace(member.device, size_t(rows * heads * dim) * bf16_bytes);
    stream.emplace(member.device);
    const TensorView o =
        TensorView::bshd(o_slots->floats(), SLUICE_F32, all, rows, heads, dim).slice(0, own, 1);
    const TensorView lse = TensorView::lse(lse_slots->floats(), all, rows, heads).slice(0, own, 1);
    // A rank without keys has a part whose LSE is -infinity, which does not count.
    attention.emplace(member.device, q, k, v, o, false);
    attention->run(*stream, q, k, v, o, lse);
  });
  gather(ranks, step, *stream, member.counts, {&*o_slots, &*lse_slots}, {o_bytes, lse_bytes});
  ranks.together(step, [&] {
    merge(member.device, *stream, TensorView::bshd(o_slots->floats(), SLUICE_F32, all, rows, heads, dim),
          TensorView::lse(lse_slots->floats(), all, rows, heads),
          TensorView::bshd(result->bytes(), SLUICE_BF16, 1, rows, heads, dim), {});
    stream->wait();
  });
  return std::move(*result);
}

uint64_t bytes_decode(int ranks, int64_t rows, int64_t heads, int64_t dim) {
  return uint64_t(ranks - 1) * uint64_t(rows * heads * (dim + 1)) * f32_bytes;
}

} // namespace parallel
