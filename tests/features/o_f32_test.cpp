//===- o_f32_test.cpp - O as F32 is what O of 16 bits and of FP8 is rounded from ------------------------===//
//
// And parts of the keys whose O was not rounded merge into the whole in sluice_attention_merge, within the
// suite's own bound for split keys.
//
//===----------------------------------------------------------------------------------------------------===//
#include "cache_ops/device.h"
#include "conformance/shared/numbers.h"

#include "conformance/attention/oracle.h"
#include "conformance/run/executor.h"

#include <catch2/catch.hpp>

using namespace sluice::conformance;
using namespace sluice::test;

namespace {

Executor &emulated() {
  static const std::unique_ptr<Executor> executor = make_executor("emulated", {}, {});
  return *executor;
}

Outputs run(const Case &c, const Inputs &in) {
  Memory memory = make_memory(c, in);
  INFO(c.name);
  INFO(emulated().run(c, memory));
  return read_outputs(c, memory);
}

Case named(Case c) {
  c = meaningful(std::move(c));
  c.name = make_name(c);
  return c;
}

constexpr Cache caches[] = {Cache::same, Cache::e4m3fnuz, Cache::e4m3fnuz_as_q};

/// The keys `first` to `end` of `whole`, which has one sequence, with their numbers.
struct Keys {
  Case c;
  Inputs in;

  Keys(const Case &whole, const Inputs &numbers, int first, int end) : c(whole), in(numbers) {
    c.kv_len = end - first;
    const auto cut = [&](std::vector<double> &rows, int row) {
      const auto begin = rows.begin() + ptrdiff_t(first) * row;
      rows = std::vector<double>(begin, begin + ptrdiff_t(c.kv_len) * row);
    };
    cut(in.k, c.kv_heads * c.head_size.qk);
    cut(in.v, c.kv_heads * c.head_size.v);
  }
};

Outputs merged(const Case &c, const std::vector<Outputs> &parts) {
  const size_t rows = size_t(c.q_len) * size_t(c.q_heads), d = size_t(c.head_size.v);
  Visible<float> partial(parts.size() * rows * d), partial_lse(parts.size() * rows), o(rows * d), lse(rows);
  for (size_t p = 0; p < parts.size(); ++p) {
    for (size_t i = 0; i < rows * d; ++i)
      partial[p * rows * d + i] = float(parts[p].o[i]);
    for (size_t i = 0; i < rows; ++i)
      partial_lse[p * rows + i] = float(parts[p].lse[i]);
  }
  // O is [row][head], LSE [head][row].
  const int64_t token = int64_t(c.q_heads) * c.head_size.v;
  sluice_merge_args call = {};
  call.struct_size = sizeof call;
  call.parts.type = call.o_format.type = SLUICE_F32;
  call.parts.count = int32_t(parts.size());
  call.tokens = c.q_len;
  call.heads = c.q_heads;
  call.head_dim = c.head_size.v;
  call.lse_base = SLUICE_LSE_LN;
  call.parts.o = {partial.data(), {int64_t(rows * d), token, c.head_size.v, 1}};
  call.parts.lse = {partial_lse.data(), {int64_t(rows), 1, c.q_len, 0}};
  call.o = {o.data(), {0, token, c.head_size.v, 1}};
  call.lse = {lse.data(), {0, 1, c.q_len, 0}};
  run_on_device(call, sluice_attention_merge);
  Outputs out;
  out.o.assign(o.data(), o.data() + o.size());
  out.lse.assign(lse.data(), lse.data() + lse.size());
  return out;
}

} // namespace

TEST_CASE("O as F32, rounded, is O of 16 bits and O of FP8", "[o_f32]") {
  for (const Dtype dtype : {Dtype::f16, Dtype::bf16})
    for (const Cache cache : caches)
      for (const Mode mode : {Mode::dense, Mode::ragged, Mode::paged})
        // One row of few and of many keys, which are split; some rows; many, which a prefill kernel takes.
        for (const auto &[rows, keys] : {std::pair{1, 70}, {1, 1200}, {20, 200}, {300, 100}}) {
          const Case rounded = named({.dtype = dtype,
                                      .head_size = rows == 20 ? 128 : 64,
                                      .batch = 2,
                                      .q_heads = 8,
                                      .kv_heads = 2,
                                      .q_len = rows,
                                      .kv_len = keys,
                                      .mask = Mask::bottom_right,
                                      .mode = mode,
                                      .lengths = mode == Mode::dense ? Lengths::equal : Lengths::chunked,
                                      .pages = {.size = mode == Mode::paged ? 16 : 0},
                                      .cache = cache,
                                      .sink_logits = rows == 20});
          Case c = rounded, fp8 = rounded;
          c.o_f32 = true;
          fp8.o_fp8 = true;
          const Inputs in = make_inputs(rounded);
          const Outputs got = run(c, in), expected = run(rounded, in), expected_fp8 = run(fp8, in);
          const NumberFormat &format = dtype == Dtype::f16 ? f16_format : bf16_format;
          size_t wrong = 0, finer = 0;
          for (size_t i = 0; i < got.o.size(); ++i) {
            const double as_16_bits = decode(format, encode(format, got.o[i]));
            wrong += as_16_bits != expected.o[i];
            finer += got.o[i] != as_16_bits;
            wrong += decode_fp8(encode_fp8(got.o[i])) != expected_fp8.o[i];
          }
          CAPTURE(c.name);
          CHECK(wrong == 0);
          CHECK(finer > got.o.size() / 4);
          CHECK(got.lse == expected.lse);
          CHECK(got.lse == expected_fp8.lse);
        }
}

TEST_CASE("parts of the keys, with O as F32, become the whole", "[o_f32]") {
  for (const Dtype dtype : {Dtype::f16, Dtype::bf16})
    for (const Cache cache : caches)
      for (const int rows : {1, 5, 100}) {
        const Case whole = named({.dtype = dtype,
                                  .head_size = 64,
                                  .q_heads = 4,
                                  .kv_heads = 2,
                                  .q_len = rows,
                                  .kv_len = 300,
                                  .cache = cache,
                                  .v_scale = cache == Cache::same ? Scale::none : Scale::head,
                                  .o_f32 = true});
        CAPTURE(whole.name);
        const Inputs in = make_inputs(whole);
        const Expected expected = compute_expected(whole, in);
        for (const std::vector<int> &ends : {std::vector{150, 300}, {1, 300}, {64, 128, 299, 300}}) {
          std::vector<Outputs> parts;
          int first = 0;
          for (const int end : ends) {
            const Keys keys(whole, in, first, end);
            parts.push_back(run(keys.c, keys.in));
            first = end;
          }
          const Comparison compared = compare(whole, expected, merged(whole, parts), Judge::kernel);
          INFO(compared.details);
          CHECK(compared.wrong == 0);
          // Leaving out a part is noticed.
          parts.front().lse.assign(parts.front().lse.size(), -INFINITY);
          if (ends.front() == 150)
            CHECK(compare(whole, expected, merged(whole, parts), Judge::kernel).wrong != 0);
        }
      }
}
