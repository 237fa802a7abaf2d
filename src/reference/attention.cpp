//===- attention.cpp - attention on the host, in plain loops --------------------------------------------===//
#include "reference/attention.h"

#include "support/failure.h"
#include "support/half.h"

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string_view>
#include <vector>

namespace sluice::reference {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

double load(const void *data, uint32_t type, int64_t index) {
  if (type == SLUICE_F16) return support::f16_to_float(static_cast<const uint16_t *>(data)[index]);
  if (type == SLUICE_BF16) return support::bf16_to_float(static_cast<const uint16_t *>(data)[index]);
  return static_cast<const float *>(data)[index];
}

void store(void *data, uint32_t type, int64_t index, double value) {
  if (type == SLUICE_F16) {
    static_cast<uint16_t *>(data)[index] = support::f16_from_double(value);
  } else if (type == SLUICE_BF16) {
    static_cast<uint16_t *>(data)[index] = support::bf16_from_double(value);
  } else {
    static_cast<float *>(data)[index] = float(value);
  }
}

int64_t index_of(const sluice_tensor &tensor, int64_t batch, int64_t token, int64_t head, int64_t dim) {
  return batch * tensor.stride[0] + token * tensor.stride[1] + head * tensor.stride[2] +
         dim * tensor.stride[3];
}

/// tokens x dims of one sequence and head, row by row.
std::vector<double> load_rows(const sluice_tensor &tensor, uint32_t type, int64_t batch, int64_t head,
                              int64_t tokens, int64_t dims) {
  std::vector<double> rows;
  rows.reserve(size_t(tokens * dims));
  for (int64_t token = 0; token < tokens; ++token) {
    for (int64_t dim = 0; dim < dims; ++dim) {
      rows.push_back(load(tensor.data, type, index_of(tensor, batch, token, head, dim)));
    }
  }
  return rows;
}

/// The number of keys that row i sees: keys 0 to that number.
int64_t visible_keys(const sluice_problem &problem, const sluice_args &args, int64_t i) {
  if (!(problem.flags & SLUICE_CAUSAL)) return args.kv_len;
  const int64_t shift = problem.mask_alignment == SLUICE_TOP_LEFT ? 0 : int64_t{args.kv_len} - args.q_len;
  const int64_t visible = i + shift + 1;
  return visible < 0 ? 0 : visible > args.kv_len ? args.kv_len : visible;
}

void check_type(std::string_view field, uint32_t type) {
  if (type == SLUICE_F16 || type == SLUICE_BF16 || type == SLUICE_F32) return;
  throw support::Failure(
      support::Status::unsupported, std::string(field),
      support::text(field, " is sluice_dtype ", type,
                    "; the reference computes with f16, bf16 and f32; nearest supported: f16"));
}

} // namespace

void attention(const sluice_problem &problem, const sluice_args &args) {
  check_type("q_type", problem.q_type);
  check_type("k_type", problem.k_type);
  check_type("v_type", problem.v_type);
  check_type("o_type", problem.o_type);
  const int64_t dims_qk = problem.head_dim_qk;
  const int64_t dims_v = problem.head_dim_v;
  const double scale = args.scale != 0 ? double{args.scale} : 1 / std::sqrt(double(dims_qk));

  for (int64_t batch = 0; batch < args.batch; ++batch) {
    for (int64_t q_head = 0; q_head < problem.q_heads; ++q_head) {
      const int64_t kv_head = q_head / (problem.q_heads / problem.kv_heads);
      const auto q = load_rows(args.q, problem.q_type, batch, q_head, args.q_len, dims_qk);
      const auto k = load_rows(args.k, problem.k_type, batch, kv_head, args.kv_len, dims_qk);
      const auto v = load_rows(args.v, problem.v_type, batch, kv_head, args.kv_len, dims_v);
      std::vector<double> weights(size_t(args.kv_len));
      std::vector<double> row(static_cast<size_t>(dims_v));

      for (int64_t i = 0; i < args.q_len; ++i) {
        const int64_t visible = visible_keys(problem, args, i);
        double largest = -infinity;
        for (int64_t j = 0; j < visible; ++j) {
          double dot = 0;
          for (int64_t dim = 0; dim < dims_qk; ++dim)
            dot += q[i * dims_qk + dim] * k[j * dims_qk + dim];
          weights[j] = scale * dot;
          if (weights[j] > largest) largest = weights[j];
        }
        // With no visible key, or all scores -infinity, the sum is 0 and the row is 0.
        const double base = largest == -infinity ? 0 : largest;
        double sum = 0;
        for (int64_t j = 0; j < visible; ++j) {
          weights[j] = std::exp(weights[j] - base);
          sum += weights[j];
        }
        row.assign(row.size(), 0);
        for (int64_t j = 0; j < visible; ++j) {
          for (int64_t dim = 0; dim < dims_v; ++dim)
            row[dim] += weights[j] * v[j * dims_v + dim];
        }
        for (int64_t dim = 0; dim < dims_v; ++dim) {
          store(args.o.data, problem.o_type, index_of(args.o, batch, i, q_head, dim),
                sum == 0 ? 0 : row[dim] / sum);
        }
        if (problem.flags & SLUICE_WRITE_LSE) {
          const sluice_tensor lse = {args.lse.data,
                                     {args.lse.stride[0], args.lse.stride[1], args.lse.stride[2], 0}};
          store(lse.data, SLUICE_F32, index_of(lse, batch, i, q_head, 0),
                sum == 0 ? -infinity : base + std::log(sum));
        }
      }
    }
  }
}

} // namespace sluice::reference
