//===- large_scores_test.cpp - scores whose product with the scale has no digits left -------------------===//
//
// All scores are 2^20 and some eighths, exact in F32, so that the weights follow from their differences at
// any scale. The largest score grows from tile to tile, because an error in an offset that all keys of a row
// share would cancel.
//
//===----------------------------------------------------------------------------------------------------===//
#include "bounds/batch.h"
#include "calls/problem.h"
#include "conformance/shared/numbers.h"

#include <algorithm>
#include <cmath>

using namespace sluice::conformance;
namespace calls = sluice::calls;
using namespace sluice::test;

namespace {

struct Call {
  const char *kernel; // a part of its name
  ProblemShape shape;
  int32_t rows, keys;
};

double eighths(int32_t key) {
  return (key * 7 % 16 + 2 * (key / 64)) / 8.0;
}

const NumberFormat &format_of(uint32_t type) {
  return type == SLUICE_F16 ? f16_format : bf16_format;
}

void shape_scores(Batch &batch) {
  const NumberFormat &format = format_of(batch.problem.q_type);
  const auto dim = size_t(batch.problem.head_dim_qk);
  std::fill_n(batch.q->data(), batch.q->size(), encode(format, 0));
  for (size_t at = 0; at < batch.q->size(); at += dim) {
    (*batch.q)[at] = encode(format, 1024);
    (*batch.q)[at + 1] = encode(format, 1);
  }
  for (int32_t key = 0; key < batch.args.kv_len; ++key)
    for (int32_t head = 0; head < batch.problem.kv_heads; ++head) {
      std::vector<uint16_t> row(dim, encode(format, 0));
      row[0] = encode(format, 1024);
      row[1] = encode(format, eighths(key));
      std::memcpy(batch.k->data() + batch.row_place(true, 0, key, head), row.data(), 2 * dim);
    }
}

/// The largest errors of O, and of LSE relative to its size.
struct Errors {
  double o = 0, lse = 0;
};

Errors errors_of(const Batch &batch, const Call &call) {
  const calls::Problem &problem = batch.problem;
  const NumberFormat &format = format_of(problem.q_type);
  const std::vector<uint16_t> o = batch.output(0);
  const std::vector<float> lse = batch.lse_of(0);
  const int32_t group = problem.q_heads / problem.kv_heads;
  const auto columns = size_t(problem.head_dim_v);
  const double scale = batch.args.scale;
  Errors errors;
  const auto see = [](double &most, double error) {
    if (!(error <= most)) most = std::isnan(error) ? INFINITY : error;
  };
  for (int32_t row = 0; row < call.rows; ++row)
    for (int32_t head = 0; head < problem.q_heads; ++head) {
      const int32_t end = problem.flags & calls::causal ? row + call.keys - call.rows + 1 : call.keys;
      double largest = 0, sum = 0;
      for (int32_t key = 0; key < end; ++key)
        largest = std::max(largest, eighths(key));
      std::vector<double> expected(columns);
      for (int32_t key = 0; key < end; ++key) {
        const double weight = std::exp((eighths(key) - largest) * scale);
        sum += weight;
        std::vector<uint16_t> values(columns);
        std::memcpy(values.data(), batch.v->data() + batch.row_place(false, 0, key, head / group),
                    2 * columns);
        for (size_t e = 0; e < columns; ++e)
          expected[e] += weight * decode(format, values[e]);
      }
      const size_t at = size_t(row) * size_t(problem.q_heads) + size_t(head);
      for (size_t e = 0; e < columns; ++e)
        see(errors.o, std::fabs(decode(format, o[at * columns + e]) - expected[e] / sum));
      const double expected_lse = (0x1p20 + largest) * scale + std::log(sum);
      see(errors.lse, std::fabs(lse[at] / expected_lse - 1));
    }
  return errors;
}

void check(const Call &call) {
  calls::Problem problem = problem_of(call.shape);
  problem.max_q_len = call.rows; // the plan has one kernel, which is the one it names
  const PlanHandle plan = plan_of(problem);
  REQUIRE(std::string(describe(plan).kernel).find(call.kernel) != std::string::npos);
  // Logits of 2^20 to 2^40: from weights that differ little to only the largest scores.
  for (const float scale : {1.0f, 0.7f, 16.0f, 1024.0f, 1048576.0f}) {
    Batch batch(problem, {{call.rows, call.keys, 3}});
    batch.args.scale = scale;
    shape_scores(batch);
    batch.run(plan);
    const Errors errors = errors_of(batch, call);
    INFO(describe(plan).kernel << ", flags " << problem.flags << ", scale " << scale);
    CHECK(errors.o <= (problem.q_type == SLUICE_F16 ? 0x1p-9 : 0x1p-6));
    CHECK(errors.lse <= 0x1p-21);
  }
}

} // namespace

TEST_CASE("large scores weigh by their differences", "[large-scores]") {
  for (const uint32_t type : {SLUICE_F16, SLUICE_BF16})
    for (const uint32_t flags : {0u, uint32_t(calls::causal)}) {
      const auto shape = [&](int32_t head_dim, int32_t group = 1) {
        return ProblemShape{.group = group, .head_dim = head_dim, .type = type, .flags = flags};
      };
      check({"_d64_q128_kv32_w4", shape(64), 70, 300});
      check({"_d128_q128_kv32_w4", shape(128), 70, 300});
      check({"_d128_q256_kv64_w8", shape(128), 200, 300});
      check({"_d80_q128_kv32_w4", shape(80), 20, 300});
      check({"_d80_q16_kv16_w4_decode", shape(80), 6, 300});
    }
}
