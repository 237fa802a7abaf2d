//===- trials.cpp - each way, compared with one device --------------------------------------------------===//

#include "trials.h"

#include "numbers.h"

#include <cinttypes>
#include <cstdio>
#include <cstdlib>

namespace parallel {

namespace {

/// Q, K and V of a whole sequence on the host. Scores and values grow along it, so that a part of the keys
/// that is lost, or counts too much, shows; and scores stay small, which keeps the bound tight.
struct Sequence {
  Sequence(const Options &options, int64_t rows, int64_t keys)
      : q(sample(rows, options.heads, options.dim, 1, {0.5, 0.5}, {1, 1})),
        k(sample(keys, options.kv_heads, options.dim, 2, {0.5, 0.5}, {-0.2, 0.2})),
        v(sample(keys, options.kv_heads, options.dim, 3, {1, 1}, {-4, 4})) {}
  std::vector<uint16_t> q, k, v;
};

/// Some tokens and heads of [token][head][dim].
std::vector<uint16_t> cut(const std::vector<uint16_t> &all, int64_t heads, int64_t dim,
                          std::vector<Part> tokens, Part head_part) {
  std::vector<uint16_t> result;
  for (const Part &part : tokens)
    for (int64_t token = part.first; token < part.first + part.count; ++token) {
      const auto row = all.begin() + (token * heads + head_part.first) * dim;
      result.insert(result.end(), row, row + head_part.count * dim);
    }
  return result;
}

/// A tensor in device memory.
struct Tensor {
  Tensor(const Device &device, const std::vector<uint16_t> &values, int64_t heads, int64_t dim)
      : memory(device, values), view(TensorView::bshd(memory.bytes(), SLUICE_BF16, 1,
                                                      int64_t(values.size()) / (heads * dim), heads, dim)) {}
  Memory memory;
  TensorView view;
};

/// A rank's share of a sequence in device memory.
struct Share {
  Share(const Device &device, const Sequence &all, const Options &of, std::vector<Part> rows,
        std::vector<Part> keys, Part heads, Part kv_heads)
      : q(device, cut(all.q, of.heads, of.dim, rows, heads), heads.count, of.dim),
        k(device, cut(all.k, of.kv_heads, of.dim, keys, kv_heads), kv_heads.count, of.dim),
        v(device, cut(all.v, of.kv_heads, of.dim, keys, kv_heads), kv_heads.count, of.dim) {}
  Tensor q, k, v;
};

/// The result that the ranks must reach together: computed only by rank 0, on its device or in double
/// precision.
std::vector<uint16_t> wanted_of(const Member &member, const Options &options, Sequence &all, bool causal) {
  std::vector<uint16_t> result(all.q.size());
  member.ranks.together("only rank 0", [&] {
    check_message(result.size() * sizeof result[0]);
    if (member.ranks.rank() != 0) return;
    const auto on_host = [&](std::vector<uint16_t> &values, int64_t heads) {
      return TensorView::bshd(values.data(), SLUICE_BF16, 1, int64_t(values.size()) / (heads * options.dim),
                              heads, options.dim);
    };
    if (options.against_reference) {
      const TensorView q = on_host(all.q, options.heads), k = on_host(all.k, options.kv_heads);
      const TensorView v = on_host(all.v, options.kv_heads), o = on_host(result, options.heads);
      const Problem problem(q, k, v, o, causal);
      sluice::reference(problem.attention, Call(problem, q, k, v, o, {}).args).value();
      return;
    }
    const Tensor q(member.device, all.q, options.heads, options.dim);
    const Tensor k(member.device, all.k, options.kv_heads, options.dim);
    const Tensor v(member.device, all.v, options.kv_heads, options.dim);
    const Tensor o(member.device, result, options.heads, options.dim);
    const Attention attention(member.device, q.view, k.view, v.view, o.view, causal);
    const Stream stream(member.device);
    attention.run(stream, q.view, k.view, v.view, o.view, {});
    stream.wait();
    o.memory.download(result);
  });
  member.ranks.broadcast(result.data(), result.size() * sizeof result[0], 0);
  return result;
}

/// The result is as wanted, and the bytes are the formula's, or every rank fails.
void report(Member &member, const std::string &name, const Memory &memory,
            const std::vector<uint16_t> &wanted, double most, uint64_t formula_bytes) {
  const Counts counts = std::exchange(member.counts, {});
  member.ranks.together(name, [&] {
    std::vector<uint16_t> result(wanted.size());
    memory.download(result);
    const double largest = difference(result, wanted);
    const bool good = largest <= most && counts.sent_bytes == formula_bytes;
    std::printf("rank %d of %d, %s: largest difference %.5f (at most %.5f), sent %" PRIu64
                " bytes (formula %" PRIu64 "): %s\n",
                member.ranks.rank(), member.ranks.size(), name.c_str(), largest, most, counts.sent_bytes,
                formula_bytes, good ? "equal" : "WRONG");
    if (counts.scores || counts.messages)
      std::printf("rank %d of %d, %s: %" PRIu64 " scores a head; %" PRIu64 " of %" PRIu64
                  " messages were there before the run beside them was done\n",
                  member.ranks.rank(), member.ranks.size(), name.c_str(), counts.scores,
                  counts.early_messages, counts.messages);
    std::fflush(stdout);
    if (!good) throw std::runtime_error("the result or the bytes are wrong");
    if (member.hold_runs && counts.early_messages != counts.messages)
      throw std::runtime_error("a message came after the run that was held back for it");
  });
}

/// `sluice_trace_fn` of a rank that dies in the middle of a step.
void die(const sluice_trace_record *record, void *) {
  if (record->event == SLUICE_TRACE_RUN) std::_Exit(3);
}

} // namespace

void prefill(Member &member, const Options &options) {
  const int ranks = member.ranks.size(), rank = member.ranks.rank();
  const int64_t tokens = options.prefill, heads = options.heads, kv_heads = options.kv_heads,
                dim = options.dim;
  member.ranks.together("prefill", [&] {
    if (heads % ranks != 0 || kv_heads % ranks != 0)
      throw std::runtime_error("--heads is " + std::to_string(heads) + " and --kv-heads " +
                               std::to_string(kv_heads) + "; dividing by heads needs multiples of " +
                               std::to_string(ranks) + ", the number of ranks");
  });
  Sequence all(options, tokens, tokens);
  const std::vector<uint16_t> wanted = wanted_of(member, options, all, true);
  const auto bound = [&](int merges) {
    return tolerance(sizes_of(all.q, all.k, all.v, tokens, dim, merges));
  };
  {
    std::optional<Share> own;
    member.ranks.together("by heads", [&] {
      own.emplace(member.device, all, options, std::vector<Part>{{0, tokens}}, std::vector<Part>{{0, tokens}},
                  part_of(heads, ranks, rank), part_of(kv_heads, ranks, rank));
    });
    const Memory o = by_heads(member, own->q.view, own->k.view, own->v.view, true);
    report(member, "prefill by heads", o, wanted, bound(0), bytes_by_heads(ranks, tokens, heads, dim));
  }
  {
    const Zigzag pieces(tokens, ranks, rank);
    const std::vector<Part> both = {pieces.front, pieces.back};
    std::optional<Share> own;
    member.ranks.together("ring", [&] {
      own.emplace(member.device, all, options, both, both, Part{0, heads}, Part{0, kv_heads});
    });
    const Memory o = ring(member, tokens, own->q.view, own->k.view, own->v.view);
    report(member, "prefill as a ring", o, cut(wanted, heads, dim, both, {0, heads}), bound(ranks),
           bytes_ring(ranks, rank, tokens, kv_heads, dim));
  }
}

void decode(Member &member, const Options &options) {
  const int ranks = member.ranks.size();
  const int64_t heads = options.heads, kv_heads = options.kv_heads, dim = options.dim;
  Sequence all(options, 1, options.decode);
  const std::vector<uint16_t> wanted = wanted_of(member, options, all, false);
  std::optional<Share> own;
  member.ranks.together("decode", [&] {
    own.emplace(member.device, all, options, std::vector<Part>{{0, 1}},
                std::vector<Part>{part_of(options.decode, ranks, member.ranks.rank())}, Part{0, heads},
                Part{0, kv_heads});
  });
  const Memory o = decode_by_keys(member, own->q.view, own->k.view, own->v.view);
  report(member, "decode", o, wanted, tolerance(sizes_of(all.q, all.k, all.v, options.decode, dim, 1)),
         bytes_decode(ranks, 1, heads, dim));
}

void fail(Member &member, Failure how, int64_t dim) {
  Options options;
  options.prefill = 64;
  const bool is_last = member.ranks.rank() + 1 == member.ranks.size();
  options.dim = is_last && how == Failure::shape ? dim + 8 : dim;
  if (is_last && how == Failure::throws) throw std::runtime_error("no step of all ranks has caught this");
  const Zigzag pieces(options.prefill, member.ranks.size(), member.ranks.rank());
  const std::vector<Part> both = {pieces.front, pieces.back};
  std::optional<Share> own;
  member.ranks.together("ring", [&] {
    own.emplace(member.device, Sequence(options, options.prefill, options.prefill), options, both, both,
                Part{0, options.heads}, Part{0, options.kv_heads});
    // In the middle of the first step, when messages are on their way.
    if (is_last && how == Failure::exit) member.device.context().set_trace(die, nullptr).value();
  });
  TensorView q = own->q.view;
  if (is_last && how == Failure::error)
    q.data = static_cast<uint16_t *>(q.data) + 1;                       // Sluice refuses the run
  if (is_last && how == Failure::fault) q.stride[1] = int64_t{1} << 30; // the run itself faults
  ring(member, options.prefill, q, own->k.view, own->v.view);
}

} // namespace parallel
