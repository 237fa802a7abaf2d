//===- ring.cpp - a causal prompt divided by keys: K and V go round, in zigzag order --------------------===//
//
// In step s this rank has the keys of rank r - s. In zigzag order one run computes everything that its rows
// see of them, from any rank:
//
//     its own keys            both pieces of rows see both of keys, under a causal mask
//     of a rank before it     both pieces of rows see the front piece, and all of it
//     of a rank after it      the back piece of rows sees both pieces, and all of them
//
//===----------------------------------------------------------------------------------------------------===//

#include "ways.h"

namespace parallel {

namespace {

class Ring {
public:
  Ring(Member &member, int64_t tokens, const TensorView &q, const TensorView &k, const TensorView &v);
  /// Computes with the keys that are there, beside sending them on and receiving the next.
  void step(int number);
  /// O, rounded.
  Memory result() const;

private:
  Zigzag share_of(int rank) const { return Zigzag(tokens, member.ranks.size(), rank); }
  /// The rank whose keys are here in a step.
  int source_in(int step) const {
    return (member.ranks.rank() - step + member.ranks.size()) % member.ranks.size();
  }
  size_t message_bytes(int source) const {
    return size_t(share_of(source).count() * kv_heads * (dim_qk + dim_v) * bf16_bytes);
  }
  // K of all rows, then V of all rows.
  TensorView k_of(const ExchangeBuffer &buffer, int64_t rows) const {
    return TensorView::bshd(buffer.on_device(), SLUICE_BF16, 1, rows, kv_heads, dim_qk);
  }
  TensorView v_of(const ExchangeBuffer &buffer, int64_t rows) const {
    return TensorView::bshd(buffer.on_device() + rows * kv_heads * dim_qk * bf16_bytes, SLUICE_BF16, 1, rows,
                            kv_heads, dim_v);
  }
  /// [part][row]: 0 is what there is so far, 1 what a step adds.
  TensorView o_parts() const {
    return TensorView::bshd(o_memory.floats(), SLUICE_F32, 2, q.extent[1], q.extent[2], dim_v);
  }
  TensorView lse_parts() const { return TensorView::lse(lse_memory.floats(), 2, q.extent[1], q.extent[2]); }
  void compute(int step);

  Member &member;
  const int64_t tokens;
  const TensorView q;
  const int64_t kv_heads, dim_qk, dim_v;
  const Zigzag own;
  // A step computes with one of them and receives into the other.
  std::vector<ExchangeBuffer> buffers;
  Memory o_memory, lse_memory;
  std::optional<Attention> causal, full;
  Gate gate;
  // The last: they wait for what uses the others.
  Stream computing, copying;
};

Ring::Ring(Member &member, int64_t tokens, const TensorView &q, const TensorView &k, const TensorView &v)
    : member(member), tokens(tokens), q(q), kv_heads(k.extent[2]), dim_qk(k.extent[3]), dim_v(v.extent[3]),
      own(share_of(member.ranks.rank())),
      o_memory(member.device, size_t(2 * q.extent[1] * q.extent[2] * dim_v * f32_bytes)),
      lse_memory(member.device, size_t(2 * q.extent[1] * q.extent[2] * f32_bytes)), computing(member.device),
      copying(member.device) {
  if (q.extent[1] != own.count() || k.extent[1] != own.count() || v.extent[1] != own.count())
    throw std::runtime_error("q, k and v have " + std::to_string(q.extent[1]) + ", " +
                             std::to_string(k.extent[1]) + " and " + std::to_string(v.extent[1]) +
                             " rows; this rank's two pieces have " + std::to_string(own.count()));
  int64_t most_keys = 0;
  size_t most_bytes = 0;
  for (int rank = 0; rank < member.ranks.size(); ++rank) {
    most_keys = std::max(most_keys, share_of(rank).count());
    most_bytes = std::max(most_bytes, message_bytes(rank));
  }
  check_message(most_bytes);
  for (int i = 0; i < 2; ++i)
    buffers.emplace_back(member.device, member.buffers, most_bytes);
  if (own.count() == 0) return; // a prompt with fewer tokens than pieces: this rank only passes on

  const TensorView o = o_parts().slice(0, 0, 1);
  causal.emplace(member.device, q, k, v, o, true);
  full.emplace(member.device, q, k_of(buffers[0], most_keys), v_of(buffers[0], most_keys), o, false);
  const auto size_bytes = [](const TensorView &tensor) { return size_t(tensor.stride[0] * bf16_bytes); };
  copying.copy(k_of(buffers[0], own.count()).data, k.data, size_bytes(k));
  copying.copy(v_of(buffers[0], own.count()).data, v.data, size_bytes(v));
  buffers[0].to_wire(copying, 0, message_bytes(member.ranks.rank()));
  copying.wait();
}

void Ring::step(int number) {
  const int ranks = member.ranks.size(), rank = member.ranks.rank();
  const bool is_last = number + 1 == ranks;
  const ExchangeBuffer &present = buffers[size_t(number) % 2], &next = buffers[size_t(number + 1) % 2];
  const size_t next_bytes = message_bytes(source_in(number + 1));
  Exchange exchange(member.counts);
  Outcome outcome;
  gate.close();
  // Both messages are on their way before the run is even enqueued.
  if (!is_last) {
    exchange.receive(next.on_wire(), next_bytes, (rank - 1 + ranks) % ranks);
    exchange.send(present.on_wire(), message_bytes(source_in(number)), (rank + 1) % ranks);
  }
  outcome.run([&] {
    if (member.hold_runs) computing.hold(gate);
    compute(number);
  });
  run_beside(exchange, computing, outcome, member.counts, [&] {
    gate.open();
    outcome.run([&] {
      if (!is_last) next.from_wire(copying, 0, next_bytes);
    });
  });
  outcome.run([&] { copying.wait(); });
  member.ranks.agree("ring, step " + std::to_string(number), outcome);
}

void Ring::compute(int step) {
  const int source = source_in(step);
  const Zigzag theirs = share_of(source);
  const TensorView k = k_of(buffers[size_t(step) % 2], theirs.count());
  const TensorView v = v_of(buffers[size_t(step) % 2], theirs.count());
  if (own.count() == 0) return;
  if (step == 0) {
    causal->run(computing, q, k, v, o_parts().slice(0, 0, 1), lse_parts().slice(0, 0, 1));
    member.counts.scores += uint64_t(own.count() * (own.count() + 1) / 2);
    return;
  }
  const bool is_before = source < member.ranks.rank();
  const Part rows = is_before ? Part{0, own.count()} : Part{own.front.count, own.back.count};
  const int64_t keys = is_before ? theirs.front.count : theirs.count();
  if (rows.count == 0 || keys == 0) return;
  const auto rows_of = [&](const TensorView &tensor) { return tensor.slice(1, rows.first, rows.count); };
  const TensorView o = rows_of(o_parts()), lse = rows_of(lse_parts());
  full->run(computing, rows_of(q), k.slice(1, 0, keys), v.slice(1, 0, keys), o.slice(0, 1, 1),
            lse.slice(0, 1, 1));
  merge(member.device, computing, o, lse, o.slice(0, 0, 1), lse.slice(0, 0, 1));
  member.counts.scores += uint64_t(rows.count * keys);
}

Memory Ring::result() const {
  Memory o(member.device, size_t(q.extent[1] * q.extent[2] * dim_v * bf16_bytes));
  if (own.count() == 0) return o;
  merge(member.device, computing, o_parts().slice(0, 0, 1), lse_parts().slice(0, 0, 1),
        TensorView::bshd(o.bytes(), SLUICE_BF16, 1, q.extent[1], q.extent[2], dim_v), {});
  computing.wait();
  return o;
}

} // namespace

Zigzag::Zigzag(int64_t tokens, int ranks, int rank)
    : front(part_of(tokens, 2 * ranks, rank)), back(part_of(tokens, 2 * ranks, 2 * ranks - 1 - rank)) {}

Memory ring(Member &member, int64_t tokens, const TensorView &q, const TensorView &k, const TensorView &v) {
  member.ranks.agree_on("ring", std::to_string(tokens) + " tokens, " + facts_of(q, k, v));
  std::optional<Ring> ring;
  std::optional<Memory> result;
  member.ranks.together("ring", [&] { ring.emplace(member, tokens, q, k, v); });
  for (int step = 0; step < member.ranks.size(); ++step)
    ring->step(step);
  member.ranks.together("ring", [&] { result.emplace(ring->result()); });
  return std::move(*result);
}

uint64_t bytes_ring(int ranks, int rank, int64_t tokens, int64_t kv_heads, int64_t dim) {
  // All tokens but those of the rank after it, from which they would come back.
  const int64_t kept = Zigzag(tokens, ranks, (rank + 1) % ranks).count();
  return uint64_t(ranks == 1 ? 0 : tokens - kept) * uint64_t(kv_heads * 2 * dim * bf16_bytes);
}

} // namespace parallel
