//===- attention.cpp - attention on the host, in plain loops --------------------------------------------===//
#include "reference/attention.h"

#include "calls/args.h"
#include "calls/problem.h"
#include "reference/scores.h"
#include "reference/tensors.h"
#include "reference/visibility.h"

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <numbers>
#include <optional>
#include <span>
#include <vector>

namespace sluice::reference {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

std::span<const double> row_of(const std::vector<double> &rows, int64_t row, int64_t dims) {
  return std::span(rows).subspan(size_t(row * dims), size_t(dims));
}

/// The keys and values of a head in a sequence or a prefix.
struct Keys {
  Keys(const Sequence &owner, int64_t kv_head)
      : of(owner), head(kv_head), k(of.load_k(head)), v(of.load_v(head)) {}

  int64_t count() const { return of.kv_len(); }
  double k_scale(int64_t j) const { return of.k_scale(j, head); }
  double v_scale(int64_t j) const { return of.v_scale(j, head); }

  Sequence of;
  int64_t head;
  std::vector<double> k, v;
};

/// Computes all rows of a query head of a sequence; `prefixes` are the keys of all of them.
void attend(const calls::Problem &problem, const calls::Args &args, const Sequence &sequence, int64_t q_head,
            const std::vector<Keys> &prefixes) {
  const int64_t dims_qk = problem.head_dim_qk;
  const int64_t dims_v = problem.head_dim_v;
  const int64_t kv_head = q_head / (problem.q_heads / problem.kv_heads);
  const std::vector<double> q = sequence.load_q(q_head);
  const Keys own(sequence, kv_head);
  const double o_scale = scale_of(problem.o_scale_kind, args.o_scale, q_head);
  const bool has_sink = problem.flags & calls::sinks;
  const double sink = has_sink ? double{args.sink_logits[q_head]} : -infinity;
  std::vector<std::span<const double>> values; // of the visible keys
  std::vector<double> v_scales;                // the same
  std::vector<double> scores;
  std::vector<double> sums(static_cast<size_t>(dims_v));

  for (int64_t i = 0; i < sequence.q_len(); ++i) {
    values.clear();
    v_scales.clear();
    scores.clear();
    double base = sink; // the largest exponent
    const auto see = [&](const Keys &keys, int64_t j) {
      values.push_back(row_of(keys.v, j, dims_v));
      v_scales.push_back(keys.v_scale(j));
      scores.push_back(score(problem, args, sequence, q_head, i, j, row_of(q, i, dims_qk),
                             row_of(keys.k, j, dims_qk), keys.k_scale(j)));
      if (scores.back() > base) base = scores.back();
    };
    if (const std::optional<int64_t> prefix = prefix_of(problem, args, sequence.q_number(i))) {
      const Keys &shared = prefixes[size_t(*prefix)];
      for (int64_t j = 0; j < shared.count(); ++j)
        see(shared, j);
    }
    for (int64_t j = 0; j < own.count(); ++j) {
      if (is_visible(problem, args, sequence, q_head, i, j)) see(own, j);
    }
    if (base == -infinity) base = 0; // no weights: exponentials are 0 relative to any base

    double denominator = has_sink ? std::exp(sink - base) : 0;
    sums.assign(sums.size(), 0);
    for (size_t n = 0; n < values.size(); ++n) {
      const double weight = std::exp(scores[n] - base);
      denominator += weight;
      for (size_t dim = 0; dim < sums.size(); ++dim)
        sums[dim] += weight * (v_scales[n] * values[n][dim]);
    }

    const Row row = sequence.q_row(i);
    for (int64_t dim = 0; dim < dims_v; ++dim) {
      const double sum = sums[size_t(dim)];
      // Without weights the sum is 0, or NaN from a value that the row sees: it is the result.
      store(args.o.data, problem.o_type, index_of(args.o, row.outer, row.inner, q_head, dim),
            (denominator == 0 ? sum : sum / denominator) / o_scale);
    }
    if (problem.flags & calls::write_lse) {
      const double lse = denominator == 0 ? -infinity : base + std::log(denominator);
      store(args.lse.data, SLUICE_F32, index_of(args.lse, row.outer, row.inner, q_head, 0),
            problem.flags & calls::lse_log2 ? lse * std::numbers::log2e : lse);
    }
  }
}

} // namespace

void attention(const calls::Problem &problem, const calls::Args &args) {
  const calls::Args prefix_args = prefixes_as_sequences(args);
  for (int64_t q_head = 0; q_head < problem.q_heads; ++q_head) {
    std::vector<Keys> prefixes;
    for (int64_t p = 0; p < prefix_args.batch; ++p)
      prefixes.emplace_back(Sequence(problem, prefix_args, p), q_head / (problem.q_heads / problem.kv_heads));
    for (int64_t b = 0; b < args.batch; ++b)
      attend(problem, args, Sequence(problem, args, b), q_head, prefixes);
  }
}

} // namespace sluice::reference
