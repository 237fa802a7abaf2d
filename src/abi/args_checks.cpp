//===- args_checks.cpp - what a caller can get wrong in a call ------------------------------------------===//
#include "abi/args_checks.h"

#include "calls/args.h"
#include "calls/problem.h"
#include "support/failure.h"

#include <cmath>
#include <numbers>
#include <string>
#include <string_view>

namespace sluice::abi {
namespace {

using runtime::kv_rows;
using runtime::q_rows;
using runtime::Rows;
using support::Failure;
using support::Status;
using support::text;

constexpr uint32_t max_grid_yz = 65535;
constexpr int64_t max_lengths = (int64_t{1} << 31) - 512;

void check_extent(std::string_view field, std::string_view bound_field, int32_t value, int64_t bound) {
  check_not_negative(field, value);
  if (bound != 0 && value > bound) {
    invalid(field, text(field, " is ", value, "; the problem's ", bound_field, " is ", bound));
  }
}

void check_extents(const calls::Problem &problem, const TensorRules &rules, const calls::Args &args) {
  check_extent("batch", "max_batch", args.batch, problem.max_batch);
  check_extent("q_len", "max_q_len", args.q_len, problem.max_q_len);
  check_extent("kv_len", "max_kv_len", args.kv_len, problem.max_kv_len);
  // With q_starts only the device knows how many rows there are.
  const int64_t tokens = int64_t{args.batch} * args.q_len;
  if (args.q_starts == nullptr && problem.max_q_tokens != 0 && tokens > problem.max_q_tokens) {
    invalid("batch",
            text("batch * q_len is ", tokens, "; the problem's max_q_tokens is ", problem.max_q_tokens));
  }
  if (!rules.on_device()) return;
  if (uint32_t(args.batch) > max_grid_yz) {
    unsupported("batch", text("batch is ", args.batch, "; nearest supported: ", max_grid_yz));
  }
  const uint64_t most_rows = uint64_t{max_grid_yz} * rules.tile_q;
  const auto group = uint64_t(problem.q_heads / problem.kv_heads);
  if (uint64_t(args.q_len) * group > most_rows) {
    unsupported("q_len", text("q_len is ", args.q_len, "; nearest supported: ", most_rows / group,
                              ", which is ", max_grid_yz, " tiles of ", rules.tile_q, " rows"));
  }
  if (int64_t{args.q_len} + args.kv_len > max_lengths) {
    unsupported("kv_len", text("kv_len is ", args.kv_len, " and q_len ", args.q_len,
                               "; nearest supported: ", max_lengths - args.q_len));
  }
}

void check_prefix_extents(const calls::Problem &problem, const TensorRules &rules, const calls::Args &args) {
  check_extent("prefix_count", "max_prefixes", args.prefix_count, problem.max_prefixes);
  check_extent("prefix_len", "max_prefix_len", args.prefix_len, problem.max_prefix_len);
  if (args.q_tokens > problem.max_q_tokens) {
    invalid("q_tokens",
            text("q_tokens is ", args.q_tokens, "; the problem's max_q_tokens is ", problem.max_q_tokens));
  }
  if (!rules.on_device()) return;
  if (uint32_t(args.prefix_count) > max_grid_yz) {
    unsupported("prefix_count",
                text("prefix_count is ", args.prefix_count, "; nearest supported: ", max_grid_yz));
  }
}

void check_scale(double scale) {
  if (!std::isfinite(scale)) invalid("scale", text("scale is ", scale, "; it must be finite"));
  if (scale < 0) {
    unsupported("scale", text("scale is ", scale, "; it must not be negative; nearest supported: 0"));
  }
  if (!std::isfinite(float(scale * std::numbers::log2e))) {
    invalid("scale", text("scale is ", scale, "; scale * log2(e) must be finite"));
  }
}

} // namespace

void check_args(const calls::Problem &problem, const TensorRules &rules, const calls::Args &args) {
  check_extents(problem, rules, args);
  check_scale(args.scale);
  if (runtime::has_no_rows(args)) return; // nothing else is used
  check_sequences(problem, args);
  check_counts(problem, rules, args);
  const Rows rows = q_rows(args), keys = kv_rows(problem, args);
  check_tensors(problem, rules, args, rows, keys);
  check_lse(problem, args, rows);
  check_scores(problem, rules, args);
  check_scales(problem, rules, args, keys);
  check_sequence_masks(problem, rules, args);
  if (problem.flags & calls::prefixes) {
    check_prefix_extents(problem, rules, args);
    check_prefixes(problem, args);
    check_prefix_tensors(problem, rules, args);
  } else {
    check_no_prefixes(args);
  }
}

} // namespace sluice::abi
