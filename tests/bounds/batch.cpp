//===- batch.cpp - a batch of sequences whose numbers depend only on the sequence -----------------------===//
#include "bounds/batch.h"

#include "calls/values.h"
#include "conformance/shared/numbers.h"

#include <algorithm>
#include <cmath>

namespace sluice::test {

using namespace conformance;

namespace {

constexpr uint16_t untouched = 0x5a5a;
constexpr float untouched_lse = -12345;
constexpr uint16_t nan_bytes = 0x8080; // two of E4M3FNUZ

int32_t longest(const std::vector<Sequence> &sequences, int32_t Sequence::*length) {
  int32_t result = 1;
  for (const Sequence &sequence : sequences)
    result = std::max(result, sequence.*length);
  return result;
}

std::vector<int32_t> lengths(const std::vector<Sequence> &sequences, int32_t Sequence::*length) {
  std::vector<int32_t> result;
  for (const Sequence &sequence : sequences)
    result.push_back(sequence.*length);
  return result;
}

/// Padding rows before the first sequence and after the last.
std::vector<int32_t> starts(const std::vector<Sequence> &sequences, int32_t Sequence::*length) {
  std::vector<int32_t> result = {2};
  for (const Sequence &sequence : sequences)
    result.push_back(result.back() + sequence.*length);
  return result;
}

/// Two of E4M3FNUZ, of magnitude 1/8 to 2.
uint16_t two_bytes(Numbers &numbers) {
  return uint16_t((numbers.next() & 0x9f9f) | 0x2020);
}

const NumberFormat &format_of(uint32_t type) {
  return type == SLUICE_F16 ? f16_format : bf16_format;
}

} // namespace

PlanHandle plan_of(const calls::Problem &problem) {
  sluice_error error;
  sluice_error_init(&error, sizeof error);
  sluice_plan *plan = nullptr;
  const sluice_status status = sluice_attention_plan(device(), calls::ProblemValues(problem), &plan, &error);
  INFO(error.field << ": " << error.message);
  REQUIRE(status == SLUICE_OK);
  return PlanHandle(plan);
}

sluice_plan_info describe(const PlanHandle &plan) {
  sluice_plan_info info;
  sluice_plan_info_init(&info, sizeof info);
  REQUIRE(sluice_plan_describe(plan.get(), &info, nullptr) == SLUICE_OK);
  return info;
}

calls::Problem problem_of(const ProblemShape &shape) {
  calls::Problem problem;
  problem.mode = shape.mode;
  problem.flags = shape.flags | calls::write_lse;
  problem.q_type = problem.k_type = problem.v_type = problem.o_type = shape.type;
  problem.kv_heads = shape.kv_heads;
  problem.q_heads = shape.kv_heads * shape.group;
  problem.head_dim_qk = problem.head_dim_v = shape.head_dim;
  if (shape.mode == calls::paged) {
    problem.page_size = 16;
    problem.page_table_kind = SLUICE_PAGE_TABLE_BLOCK;
  }
  return problem;
}

Batch::Batch(const calls::Problem &wanted, std::vector<Sequence> list, int32_t q_len, int32_t kv_len)
    : problem(wanted), sequences(std::move(list)) {
  args.scale = calls::usual_scale(problem);
  args.batch = int32_t(sequences.size());
  args.q_len = q_len != 0 ? q_len : longest(sequences, &Sequence::rows);
  args.kv_len = kv_len != 0 ? kv_len : longest(sequences, &Sequence::keys);
  const std::vector<int32_t> rows = lengths(sequences, &Sequence::rows),
                             keys = lengths(sequences, &Sequence::keys);
  if (problem.mode == calls::ragged) {
    args.q_starts = q_starts.emplace(starts(sequences, &Sequence::rows)).data();
    args.kv_starts = kv_starts.emplace(starts(sequences, &Sequence::keys)).data();
  } else {
    args.q_lengths = q_lengths.emplace(rows).data();
    args.kv_lengths = kv_lengths.emplace(keys).data();
  }
  draw_queries();
  place_keys();
  draw_keys(k, true);
  if (!(problem.flags & calls::v_in_k)) draw_keys(v, false);
}

/// A number of magnitude 1/8 to 1, so that no sum is large.
uint16_t Batch::number(Numbers &numbers) const {
  const uint32_t bits = numbers.next();
  const uint32_t below_one = (bits >> 16) % 3 + 1;
  return problem.q_type == SLUICE_F16 ? uint16_t((bits & 0x83ff) | (15 - below_one) << 10)
                                      : uint16_t((bits & 0x807f) | (127 - below_one) << 7);
}

size_t Batch::row_of(size_t sequence, int32_t row) const {
  return q_starts ? size_t((*q_starts)[sequence] + row) : sequence * size_t(args.q_len) + size_t(row);
}

void Batch::draw_queries() {
  const bool has_starts = q_starts.has_value();
  const size_t rows =
      has_starts ? size_t((*q_starts)[sequences.size()]) + 2 : sequences.size() * size_t(args.q_len);
  const int64_t heads = problem.q_heads, row_qk = heads * problem.head_dim_qk,
                row_v = heads * problem.head_dim_v;
  const bool bytes = problem.q_type == SLUICE_E4M3FNUZ;
  const size_t row_words = size_t(row_qk) / (bytes ? 2 : 1);
  q.emplace(rows * row_words, bytes ? nan_bytes : format_of(problem.q_type).quiet_nan);
  o.emplace(rows * size_t(row_v), untouched);
  lse.emplace(rows * size_t(heads), untouched_lse);
  for (size_t b = 0; b < sequences.size(); ++b) {
    Numbers numbers(sequences[b].seed);
    for (int32_t row = 0; row < sequences[b].rows; ++row)
      for (size_t e = 0; e < row_words; ++e)
        (*q)[row_of(b, row) * row_words + e] = bytes ? two_bytes(numbers) : number(numbers);
  }
  const int64_t length = has_starts ? 0 : args.q_len;
  args.q = {q->data(), {length * row_qk, row_qk, problem.head_dim_qk, 1}};
  args.o = {o->data(), {length * row_v, row_v, problem.head_dim_v, 1}};
  args.lse = {lse->data(), {length * heads, heads, 1, 0}};
}

/// Pages are in descending order; page 0 and the last are unused.
void Batch::place_keys() {
  if (problem.mode == calls::dense) {
    key_rows = sequences.size() * size_t(args.kv_len);
  } else if (problem.mode == calls::ragged) {
    key_rows = size_t((*kv_starts)[sequences.size()]) + 2;
  } else {
    const int32_t stride = (args.kv_len + problem.page_size - 1) / problem.page_size;
    int32_t pages = 1;
    for (const Sequence &sequence : sequences)
      pages += (sequence.keys + problem.page_size - 1) / problem.page_size;
    key_rows = size_t(pages + 1) * size_t(problem.page_size);
    // An entry beyond every length names a page that does not exist.
    std::vector<int32_t> entries(sequences.size() * size_t(stride), 0x00ffffff);
    int32_t next = pages - 1;
    for (size_t b = 0; b < sequences.size(); ++b)
      for (int32_t n = 0; n * problem.page_size < sequences[b].keys; ++n)
        entries[b * size_t(stride) + size_t(n)] = next--;
    args.page_table = table.emplace(entries).data();
    args.page_table_stride = stride;
  }
}

size_t Batch::key_row(size_t sequence, int32_t key) const {
  if (problem.mode == calls::dense) return sequence * size_t(args.kv_len) + size_t(key);
  if (problem.mode == calls::ragged) return size_t((*kv_starts)[sequence] + key);
  const int32_t page = (*table)[sequence * size_t(args.page_table_stride) + size_t(key / problem.page_size)];
  return size_t(page) * size_t(problem.page_size) + size_t(key % problem.page_size);
}

size_t Batch::row_bytes(bool is_k) const {
  const size_t element = problem.k_type == SLUICE_E4M3FNUZ ? 1 : 2;
  return element * size_t(is_k ? problem.head_dim_qk : problem.head_dim_v);
}

size_t Batch::row_place(bool is_k, size_t sequence, int32_t key, int32_t head) const {
  return (key_row(sequence, key) * size_t(problem.kv_heads) + size_t(head)) * row_bytes(is_k);
}

void Batch::draw_keys(std::optional<Visible<uint8_t>> &tensor, bool is_k) {
  const bool bytes = problem.k_type == SLUICE_E4M3FNUZ;
  const uint16_t nan = bytes ? nan_bytes : format_of(problem.k_type).quiet_nan;
  const size_t size = key_rows * size_t(problem.kv_heads) * row_bytes(is_k);
  std::vector<uint16_t> values(size / 2, nan);
  for (size_t b = 0; b < sequences.size(); ++b) {
    Numbers numbers(sequences[b].seed * 2 + (is_k ? 1000 : 2001));
    for (int32_t key = 0; key < sequences[b].keys; ++key)
      for (int32_t head = 0; head < problem.kv_heads; ++head) {
        const size_t first = row_place(is_k, b, key, head) / 2;
        for (size_t e = 0; e < row_bytes(is_k) / 2; ++e)
          values[first + e] = bytes ? two_bytes(numbers) : number(numbers);
      }
  }
  tensor.emplace(size);
  std::memcpy(tensor->data(), values.data(), size);
  const int64_t dim = is_k ? problem.head_dim_qk : problem.head_dim_v, row = dim * problem.kv_heads;
  const int64_t rows = problem.mode == calls::dense    ? args.kv_len
                       : problem.mode == calls::ragged ? 0
                                                       : problem.page_size;
  (is_k ? args.k : args.v) = {tensor->data(), {rows * row, row, dim, 1}};
}

void run_with_workspace(const PlanHandle &plan, const calls::Problem &problem, const calls::Args &args) {
  const uint64_t bytes = describe(plan).workspace_bytes;
  Visible<uint8_t> workspace(bytes, 0xff);
  run_on_device(args,
                [&](sluice_context *, const calls::Args *call, sluice_launch *launch, sluice_error *error) {
                  launch->workspace = bytes != 0 ? workspace.data() : nullptr;
                  launch->workspace_bytes = bytes;
                  return sluice_attention_run(plan.get(), calls::ArgsValues(problem, *call), launch, error);
                });
}

void Batch::run(const PlanHandle &plan) {
  run_with_workspace(plan, problem, args);
}

std::vector<uint16_t> Batch::output(size_t sequence) const {
  const size_t row = size_t(problem.q_heads) * size_t(problem.head_dim_v);
  const uint16_t *first = &(*o)[row_of(sequence, 0) * row];
  return {first, first + size_t(sequences[sequence].rows) * row};
}

std::vector<float> Batch::lse_of(size_t sequence) const {
  const auto row = size_t(problem.q_heads);
  const float *first = &(*lse)[row_of(sequence, 0) * row];
  return {first, first + size_t(sequences[sequence].rows) * row};
}

void Batch::compare_with_reference() {
  std::vector<uint16_t> expected(o->size(), untouched);
  std::vector<float> expected_lse(lse->size(), untouched_lse);
  calls::Args host = args;
  host.o.data = expected.data();
  host.lse.data = expected_lse.data();
  sluice_error error;
  sluice_error_init(&error, sizeof error);
  const sluice_status status =
      sluice_attention_reference(calls::ProblemValues(problem), calls::ArgsValues(problem, host), &error);
  INFO(error.field << ": " << error.message);
  REQUIRE(status == SLUICE_OK);
  const NumberFormat &format = format_of(problem.o_type);
  double worst = 0, worst_lse = 0;
  const auto see = [](double &most, double difference) {
    if (!(difference <= most)) most = std::isnan(difference) ? 1e9 : difference;
  };
  for (size_t i = 0; i < expected.size(); ++i) {
    if ((*o)[i] == expected[i]) continue;
    const bool may_differ = expected[i] != untouched;
    see(worst, may_differ ? std::fabs(decode(format, (*o)[i]) - decode(format, expected[i])) : 1e9);
  }
  for (size_t i = 0; i < expected_lse.size(); ++i)
    if ((*lse)[i] != expected_lse[i]) see(worst_lse, std::fabs(double{(*lse)[i]} - double{expected_lse[i]}));
  // FP8 P is rounded to 4 bits.
  const double fp8_error = problem.q_type == SLUICE_E4M3FNUZ ? 0x1p-3 : 0;
  CHECK(worst <= (problem.o_type == SLUICE_F16 ? 4e-3 : 2e-2) + fp8_error);
  CHECK(worst_lse <= 1e-4);
}

} // namespace sluice::test
