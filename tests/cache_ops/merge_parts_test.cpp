//===- merge_parts_test.cpp - split keys are merged into o and lse --------------------------------------===//
//
// Against merge_oracle.h. Everything that is not a row of a merged sequence is NaN in the splits and poison
// in the result, which must stay unchanged.
//
//===----------------------------------------------------------------------------------------------------===//
#include "cache_ops/device.h"
#include "cache_ops/merge_oracle.h"

#include "runtime/cache_ops.h"

#include <fstream>
#include <iterator>
#include <limits>

using namespace sluice;
using namespace sluice::test;

namespace {

runtime::Context &context() {
  static const std::vector<std::byte> pack = [] {
    std::ifstream file(SLUICE_PACK_FILE, std::ios::binary);
    const std::string bytes((std::istreambuf_iterator<char>(file)), {});
    const auto *first = reinterpret_cast<const std::byte *>(bytes.data());
    return std::vector<std::byte>(first, first + bytes.size());
  }();
  const auto resolve = [](const char *name, void *) { return sluice_emulator_symbol(name); };
  static runtime::Context one(runtime::open_device(SLUICE_DEVICE_EMULATED, 0, {resolve, nullptr, "test"}),
                              pack);
  return one;
}

struct PartsCase {
  uint32_t o = SLUICE_F16;
  int parts = 3, batch = 4, rows = 4, heads = 3, dim = 64;
  int max_rows = 4;
  std::vector<int32_t> starts = {}, lengths = {}; // empty: not given
  bool to_log2 = false;
  bool lse = true, sinks = false;
  uint32_t o_scale_kind = SLUICE_SCALE_NONE; // of an FP8 result
  uint64_t seed = 1;

  /// How many rows of a sequence are merged.
  int merged_rows(int b) const {
    int count = starts.empty() ? rows : starts[size_t(b) + 1] - starts[size_t(b)];
    // A length is never more than the distance between two starts.
    if (!lengths.empty()) count = starts.empty() ? lengths[size_t(b)] : std::min(count, lengths[size_t(b)]);
    return count <= max_rows ? std::min(count, rows) : 0;
  }
};

void check_parts(const PartsCase &c) {
  INFO("to " << c.o << ", " << c.parts << " parts of " << c.batch << " sequences of " << c.rows
             << ", at most " << c.max_rows << ", " << c.heads << " heads of " << c.dim
             << (c.to_log2 ? " to log2" : " to ln") << ", lse " << c.lse << ", sinks " << c.sinks
             << ", starts " << c.starts.size() << ", lengths " << c.lengths.size() << ", scale kind "
             << c.o_scale_kind << ", seed " << c.seed);
  Numbers numbers(c.seed);
  const auto not_a_number = std::numeric_limits<float>::quiet_NaN();
  const auto float_infinity = std::numeric_limits<float>::infinity();

  // The splits, one after the other as in a workspace.
  const size_t rows = size_t(c.batch) * size_t(c.rows) * size_t(c.heads), dim = size_t(c.dim);
  const auto row_of = [&](int b, int i, int h) { return size_t((b * c.rows + i) * c.heads + h); };
  Visible<float> partial(size_t(c.parts) * rows * dim, not_a_number);
  Visible<float> partial_lse(size_t(c.parts) * rows, not_a_number);
  for (int b = 0; b < c.batch; ++b)
    for (int i = 0; i < c.merged_rows(b); ++i)
      for (int h = 0; h < c.heads; ++h)
        for (int p = 0; p < c.parts; ++p) {
          const size_t row = size_t(p) * rows + row_of(b, i, h);
          const bool counts = numbers.below(4) != 0;
          partial_lse[row] = counts ? float(numbers.between(-4, 4)) : -float_infinity;
          for (size_t e = 0; counts && e < dim; ++e)
            partial[row * dim + e] = float(numbers.between(-3, 3));
        }
  Visible<float> sinks(size_t(c.heads));
  for (size_t h = 0; h < sinks.size(); ++h)
    sinks[h] = float(numbers.between(-3, 3));
  // The third head's scale limits some of its results.
  Visible<float> scales(size_t(c.heads), 0.02f);
  for (size_t h = 0; h < scales.size(); ++h)
    scales[h] = h == 2 ? 0.004f : float(numbers.between(0.01, 0.03));
  Visible<int32_t> starts(c.starts), lengths(c.lengths);

  // The result, with gaps between its heads and tokens and, if they are apart, its sequences.
  const bool packed = !c.starts.empty();
  const int64_t o_head = c.dim + 8, o_token = c.heads * o_head + 16,
                o_batch = packed ? 0 : c.rows * o_token + 24;
  const int64_t lse_head = 2, lse_token = c.heads * 2 + 1, lse_batch = packed ? 0 : c.rows * lse_token + 3;
  const auto end_of = [&](int64_t batch, int64_t token, int64_t head, int64_t row) {
    const int64_t tokens = packed ? c.starts.back() : c.rows;
    return size_t((packed ? 0 : c.batch - 1) * batch + (tokens - 1) * token + (c.heads - 1) * head + row);
  };
  const uint32_t o_bytes = bytes_of(c.o);
  Visible<uint8_t> o(end_of(o_batch, o_token, o_head, c.dim) * o_bytes, uint8_t(0xa5));
  Visible<float> lse(end_of(lse_batch, lse_token, lse_head, 1), 77.0f);

  runtime::PartsMerge call;
  call.partial = partial.data();
  call.partial_lse = partial_lse.data();
  call.result.o = {o.data(), {o_batch, o_token, o_head, 1}};
  if (c.lse) call.result.lse = {lse.data(), {lse_batch, lse_token, lse_head, 0}};
  if (c.sinks) call.result.sinks = sinks.data();
  call.result.o_scale_kind = c.o_scale_kind;
  if (c.o_scale_kind != SLUICE_SCALE_NONE) call.result.o_scale = scales.data();
  if (packed) call.q_starts = starts.data();
  if (!c.lengths.empty()) call.q_lengths = lengths.data();
  call.result.to_log2 = c.to_log2;
  call.parts = c.parts;
  call.batch = c.batch;
  call.rows_per_sequence = c.rows;
  call.heads = c.heads;
  call.head_dim_v = c.dim;
  call.max_rows = c.max_rows;
  const bool has_own_lengths = packed || !c.lengths.empty();
  call.most_rows = has_own_lengths ? std::numeric_limits<int32_t>::max() : c.rows;
  call.q_rows = packed ? c.starts.back() : std::numeric_limits<int32_t>::max();
  const runtime::CacheOpKernel &kernel =
      context().cache_op_kernels().find(runtime::CacheOperation::merge_states, SLUICE_F32, c.o);
  context().function(*kernel.packed);
  runtime::merge_parts(context(), kernel, call, nullptr);
  require_good_end();

  const double unit = c.to_log2 ? std::log(2.0) : 1;
  int wrong = 0;
  std::vector<uint8_t> o_may(o.size(), 0), lse_may(lse.size(), 0);
  for (int b = 0; b < c.batch; ++b)
    for (int i = 0; i < c.merged_rows(b); ++i)
      for (int h = 0; h < c.heads; ++h) {
        const int64_t token = packed ? c.starts[size_t(b)] + i : i;
        const auto o_place = size_t(b * o_batch + token * o_token + h * o_head);
        const auto lse_place = size_t(b * lse_batch + token * lse_token + h * lse_head);
        std::vector<double> lses, values(size_t(c.parts));
        for (size_t p = 0; p < values.size(); ++p)
          lses.push_back(double{partial_lse[p * rows + row_of(b, i, h)]});
        const MergedRow expected(lses, unit, c.sinks ? double{sinks[size_t(h)]} : -infinity);
        if (c.lse && !expected.is_lse(double{lse[lse_place]}) && ++wrong <= 5)
          UNSCOPED_INFO("sequence " << b << " row " << i << " head " << h << ": LSE is " << lse[lse_place]
                                    << " instead of " << expected.lse());
        lse_may[lse_place] = c.lse;
        for (size_t e = 0; e < dim; ++e) {
          for (size_t p = 0; p < values.size(); ++p)
            values[p] = double{partial[(p * rows + row_of(b, i, h)) * dim + e]};
          const size_t place = (o_place + e) * o_bytes;
          const double found = read_element(c.o, &o[place]);
          const double scale = c.o_scale_kind == SLUICE_SCALE_NONE         ? 1
                               : c.o_scale_kind == SLUICE_SCALE_PER_TENSOR ? scales[0]
                                                                           : scales[size_t(h)];
          if (!expected.is_element(found, values, c.o, scale) && ++wrong <= 5)
            UNSCOPED_INFO("sequence " << b << " row " << i << " head " << h << " element " << e << ": O is "
                                      << found << " instead of " << expected.element(values));
          std::fill_n(o_may.begin() + ptrdiff_t(place), o_bytes, uint8_t(1));
        }
      }
  CHECK(wrong == 0);
  int touched = 0;
  for (size_t n = 0; n < o_may.size(); ++n)
    touched += !o_may[n] && o[n] != 0xa5;
  for (size_t n = 0; n < lse_may.size(); ++n)
    touched += !lse_may[n] && lse[n] != 77.0f;
  CHECK(touched == 0);
}

/// Calls check_parts for all types, bases, with and without sinks and LSE, and for FP8 with each kind of
/// scale.
void check_all_ways(PartsCase c) {
  for (const uint32_t type : {SLUICE_F32, SLUICE_F16, SLUICE_BF16})
    for (const bool to_log2 : {false, true})
      for (const int way : {0, 1, 2}) {
        c.o = type;
        c.to_log2 = to_log2;
        c.lse = way != 1;
        c.sinks = way == 2;
        ++c.seed;
        check_parts(c);
      }
  c.o = SLUICE_E4M3FNUZ;
  for (const uint32_t kind : {SLUICE_SCALE_NONE, SLUICE_SCALE_PER_TENSOR, SLUICE_SCALE_PER_HEAD}) {
    c.o_scale_kind = kind;
    c.sinks = kind == SLUICE_SCALE_PER_HEAD;
    ++c.seed;
    check_parts(c);
  }
}

} // namespace

TEST_CASE("sequences that all have as many rows", "[merge_parts]") {
  check_all_ways({});
  for (const int rows : {1, 2, 3, 7, 16})
    for (const int heads : {1, 5, 8})
      for (const int dim : {8, 40, 128, 256})
        check_parts({.parts = 2, .batch = 5, .rows = rows, .heads = heads, .dim = dim, .max_rows = rows});
}

TEST_CASE("ragged sequences follow one another", "[merge_parts]") {
  check_all_ways({.batch = 5, .starts = {0, 3, 3, 7, 8, 12}});
}

TEST_CASE("ragged sequences with gaps between them", "[merge_parts]") {
  check_all_ways({.batch = 6, .starts = {2, 5, 7, 11, 12, 12, 17}, .lengths = {2, 0, 4, 1, 0, 3}});
}

TEST_CASE("padded sequences", "[merge_parts]") {
  check_all_ways({.batch = 5, .lengths = {4, 1, 0, 3, 2}});
  // A length of more rows than the splits have is cut off rather than read from the next sequence.
  check_parts({.batch = 3, .max_rows = 9, .lengths = {9, 2, 4}});
}

TEST_CASE("sequences with too many rows are unchanged", "[merge_parts]") {
  // Prefills among decodes: given by starts, and by lengths.
  check_all_ways({.batch = 5, .starts = {0, 2, 40, 44, 49, 50}});
  check_all_ways({.batch = 4, .max_rows = 2, .starts = {0, 4, 6, 9, 11}});
  check_all_ways({.batch = 4, .max_rows = 2, .lengths = {2, 3, 1, 4}});
  check_all_ways({.batch = 4, .max_rows = 1, .starts = {0, 9, 10, 19, 20}, .lengths = {1, 1, 3, 2}});
  // All of them.
  check_parts({.max_rows = 3});
}

TEST_CASE("any number of parts of a sequence", "[merge_parts]") {
  for (const int parts : {1, 2, 4, 5, 8, 13, 64, 200})
    check_parts({.parts = parts, .batch = 2, .rows = 2, .max_rows = 2, .lengths = {2, 1}});
}

TEST_CASE("more rows of sequences than the grid has along x", "[merge_parts]") {
  PartsCase c{.parts = 1, .batch = 1310, .rows = 3, .heads = 5, .dim = 264, .max_rows = 3, .starts = {0}};
  for (int b = 0; b < c.batch; ++b)
    c.starts.push_back(c.starts.back() + b % 5);
  check_parts(c);
}
