//===- call.h - small host calls for the tests of the reference -----------------------------------------===//
#pragma once

#include "calls/args.h"
#include "calls/problem.h"
#include "reference/attention.h"

#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

namespace sluice::test {

constexpr float untouched = -12345;
constexpr float infinity = std::numeric_limits<float>::infinity();
inline const float not_a_number = std::nanf("");

/// A dense F32 call on contiguous [batch, token, head, dim] tensors, scale 1, with LSE.
struct Call {
  calls::Problem problem = {};
  calls::Args args = {};
  std::vector<float> q, k, v, o, lse;

  Call(int batch, int q_len, int kv_len, int q_heads, int kv_heads, int dim_qk, int dim_v) {
    problem.flags = calls::write_lse;
    problem.q_type = problem.k_type = problem.v_type = problem.o_type = SLUICE_F32;
    problem.q_heads = q_heads;
    problem.kv_heads = kv_heads;
    problem.head_dim_qk = dim_qk;
    problem.head_dim_v = dim_v;
    args.batch = batch;
    args.q_len = q_len;
    args.kv_len = kv_len;
    args.scale = 1;
    q.assign(size_t(batch) * q_len * q_heads * dim_qk, 0);
    k.assign(size_t(batch) * kv_len * kv_heads * dim_qk, 0);
    v.assign(size_t(batch) * kv_len * kv_heads * dim_v, 0);
    o.assign(size_t(batch) * q_len * q_heads * dim_v, untouched);
    lse.assign(size_t(batch) * q_heads * q_len, untouched);
    const auto bshd = [](std::vector<float> &data, int64_t tokens, int64_t heads, int64_t dims) {
      return sluice_tensor{data.data(), {tokens * heads * dims, heads * dims, dims, 1}};
    };
    args.q = bshd(q, q_len, q_heads, dim_qk);
    args.k = bshd(k, kv_len, kv_heads, dim_qk);
    args.v = bshd(v, kv_len, kv_heads, dim_v);
    args.o = bshd(o, q_len, q_heads, dim_v);
    args.lse = {lse.data(), {q_heads * q_len, 1, q_len, 0}};
  }

  void causal(uint32_t alignment) {
    problem.flags |= calls::causal;
    problem.mask_alignment = alignment;
  }

  void run() { reference::attention(problem, args); }
};

/// One head of one element per row, all scores 0 and value j of key j 2^j: O times the number of visible keys
/// has bit j set where key j is visible.
struct BitCall : Call {
  BitCall(int q_len, int kv_len) : Call(1, q_len, kv_len, 1, 1, 1, 1) {
    for (int j = 0; j < kv_len; ++j)
      v[j] = float(1 << j);
  }

  /// The keys that each row sees, as bits; 0 for a row that is 0 with LSE -infinity.
  std::vector<int> visible() {
    run();
    std::vector<int> bits;
    for (size_t i = 0; i < o.size(); ++i) {
      const bool none = lse[i] == -infinity && o[i] == 0;
      bits.push_back(none ? 0 : int(std::lround(double(o[i]) * std::exp(double(lse[i])))));
    }
    return bits;
  }
};

} // namespace sluice::test
