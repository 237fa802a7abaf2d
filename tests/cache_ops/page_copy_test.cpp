//===- page_copy_test.cpp - copies of pages and gathers, against the host's reference -------------------===//
//
// What the suite of cases cannot have: all numbers of a type, and pages that do not exist.
//
//===----------------------------------------------------------------------------------------------------===//
#include "cache_ops/device.h"
#include "calls/values.h"
#include "conformance/shared/numbers.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

using namespace sluice::test;
namespace calls = sluice::calls;

namespace {

void require_reference(sluice_status status, const sluice_error &error) {
  INFO(error.field << ": " << error.message);
  REQUIRE(status == SLUICE_OK);
}

/// One page of K with a head for each scale, whose elements are the same in all heads.
template <typename From, typename To>
void check_conversion(uint32_t from, uint32_t to, const std::vector<From> &elements,
                      const std::vector<float> &scale_values) {
  const auto heads = int64_t(scale_values.size()), dim = int64_t(elements.size());
  std::vector<From> rows;
  for (int64_t head = 0; head < heads; ++head)
    rows.insert(rows.end(), elements.begin(), elements.end());
  Visible<From> source(rows);
  Visible<To> target(rows.size(), To(0x55));
  Visible<float> scales(scale_values);
  calls::PageCopy call;
  call.flags = calls::v_in_k;
  call.source_type = from;
  call.target_type = to;
  call.kv_heads = int32_t(heads);
  call.head_dim_qk = int32_t(dim);
  call.page_size = 1;
  call.k_scale_kind = SLUICE_SCALE_PER_HEAD;
  call.k_scale = scales.data();
  call.page_count = 1;
  call.k_source = {source.data(), {heads * dim, heads * dim, dim, 1}};
  call.k_target = {target.data(), {heads * dim, heads * dim, dim, 1}};
  run_on_device(call, sluice_cache_copy);

  std::vector<To> expected(rows.size(), To(0x55));
  calls::PageCopy on_host = call;
  on_host.k_target.data = expected.data();
  sluice_error error;
  sluice_error_init(&error, sizeof error);
  require_reference(sluice_cache_copy_reference(calls::CopyValues(on_host), &error), error);
  // NaN has any payload.
  const auto is_nan = [&](To bits) {
    if (to == SLUICE_E4M3FNUZ) return uint32_t(bits) == 0x80;
    return uint32_t(bits & 0x7fff) > (to == SLUICE_F16 ? 0x7c00u : 0x7f80u);
  };
  size_t wrong = 0;
  for (size_t i = 0; i < expected.size(); ++i) {
    if (target[i] == expected[i] || (is_nan(target[i]) && is_nan(expected[i]))) continue;
    if (++wrong <= 5)
      UNSCOPED_INFO("bits " << uint32_t(rows[i]) << ", scale " << scale_values[i / elements.size()] << ": "
                            << uint32_t(target[i]) << " instead of " << uint32_t(expected[i]));
  }
  CHECK(wrong == 0);
}

/// Keys of one head of K, 8 elements of F16, in pages of 2 rows.
struct SmallGather {
  static constexpr int64_t dim = 8, page_size = 2, pages = 4, out_rows = 12;
  Visible<uint16_t> cache, out{size_t(out_rows * dim), uint16_t{0xaaaa}};
  Visible<int32_t> starts, lengths, first, table, page_starts;
  calls::Gather call;

  SmallGather(const std::vector<int32_t> &out_starts, const std::vector<int32_t> &kv_lengths,
              const std::vector<int32_t> &first_keys, const std::vector<int32_t> &entries,
              const std::vector<int32_t> &csr)
      : cache([] {
          std::vector<uint16_t> values;
          for (int64_t i = 0; i < pages * page_size * dim; ++i)
            values.push_back(uint16_t(1 + i / dim)); // the row's number and 1
          return values;
        }()),
        starts(out_starts), lengths(kv_lengths), first(first_keys), table(entries), page_starts(csr) {
    call.flags = calls::v_in_k;
    call.cache_type = call.out_type = SLUICE_F16;
    call.kv_heads = 1;
    call.head_dim_qk = int32_t(dim);
    call.page_size = int32_t(page_size);
    call.page_table_kind = csr.empty() ? SLUICE_PAGE_TABLE_BLOCK : SLUICE_PAGE_TABLE_CSR;
    call.batch = int32_t(kv_lengths.size());
    call.tokens = int32_t(out_rows);
    call.k_cache = {cache.data(), {page_size * dim, dim, dim, 1}};
    call.k_out = {out.data(), {0, dim, dim, 1}};
    call.out_starts = starts.data();
    call.kv_lengths = lengths.data();
    if (!first_keys.empty()) call.first_keys = first.data();
    call.page_table = table.data();
    if (csr.empty())
      call.page_table_stride = int64_t(entries.size() / kv_lengths.size());
    else
      call.page_starts = page_starts.data();
    call.page_count = pages;
  }

  /// The contents of each row; -1 if it is as before, -2 if its elements differ.
  std::vector<int> run() {
    run_on_device(call, sluice_cache_gather);
    std::vector<int> rows;
    for (int64_t row = 0; row < out_rows; ++row) {
      const uint16_t value = out[size_t(row * dim)];
      rows.push_back(value == 0xaaaa ? -1 : value);
      for (int64_t e = 1; e < dim; ++e)
        if (out[size_t(row * dim + e)] != value) rows.back() = -2;
    }
    return rows;
  }
};

} // namespace

TEST_CASE("a number of 8 bits times a scale is rounded once", "[copy]") {
  std::vector<uint8_t> bytes;
  for (int byte = 0; byte < 256; ++byte)
    bytes.push_back(uint8_t(byte));
  Numbers numbers(1);
  const auto number_of = [](uint32_t type, uint8_t byte) {
    return type == SLUICE_I8         ? double(int8_t(byte))
           : type == SLUICE_E4M3FNUZ ? sluice::conformance::decode_fp8(byte)
                                     : sluice::conformance::decode_fnuz<2>(byte);
  };
  for (const uint32_t from : {SLUICE_E4M3FNUZ, SLUICE_E5M2FNUZ, SLUICE_I8})
    for (const auto &[to, format] : {std::pair{SLUICE_F16, sluice::conformance::f16_format},
                                     std::pair{SLUICE_BF16, sluice::conformance::bf16_format}}) {
      std::vector<float> scales = {0,        1,   0.5f,  3,
                                   0x1p-20f, 300, 1e30f, std::numeric_limits<float>::infinity()};
      // Scales that take a number right beside the middle between two numbers of the target.
      while (scales.size() < 200) {
        const double x = number_of(from, uint8_t(1 + numbers.below(127)));
        const double low = sluice::conformance::decode(
            format, sluice::conformance::encode(format, std::exp2(numbers.between(-12, 12))));
        const double high =
            sluice::conformance::decode(format, uint16_t(sluice::conformance::encode(format, low) + 1));
        scales.push_back(float((low + high) / 2 / x));
      }
      check_conversion<uint8_t, uint16_t>(from, to, bytes, scales);
    }
}

TEST_CASE("numbers of 4 bits, less a zero point and times a scale, are rounded once", "[copy]") {
  using namespace sluice::conformance;
  constexpr int64_t groups = 512, group = 32;
  Numbers numbers(3);
  std::vector<uint8_t> elements;
  std::vector<uint16_t> scale_bits, zero_bits;
  for (int64_t n = 0; n < groups; ++n) {
    for (int byte = 0; byte < group / 2; ++byte)
      elements.push_back(uint8_t(byte % 8 * 0x22 + 0x10)); // 0 to 15, twice
    // Zero points near the numbers, tiny ones, and any others.
    const double zero = n % 3 == 0   ? numbers.between(0, 15)
                        : n % 3 == 1 ? std::ldexp(numbers.between(-1, 1), -int(n % 24))
                                     : numbers.between(-60000, 60000);
    scale_bits.push_back(encode(f16_format, std::ldexp(numbers.between(-1, 1), int(n % 20) - 16)));
    zero_bits.push_back(encode(f16_format, zero));
  }
  Visible<uint8_t> source(elements);
  Visible<uint16_t> scales(scale_bits), zeros(zero_bits);
  for (const uint32_t to : {SLUICE_F16, SLUICE_BF16})
    for (const bool has_zeros : {true, false}) {
      Visible<uint16_t> target(size_t(groups * group), uint16_t(0x5555));
      calls::PageCopy call;
      call.flags = calls::v_in_k | (has_zeros ? uint32_t(calls::zero_points) : 0);
      call.source_type = SLUICE_U4;
      call.target_type = to;
      call.kv_heads = 1;
      call.head_dim_qk = int32_t(groups * group);
      call.page_size = 1;
      call.page_count = 1;
      call.k_scale_kind = SLUICE_SCALE_PER_GROUP;
      call.scale_group = int32_t(group);
      call.k_source = {source.data(), {groups * group, groups * group, groups * group, 1}};
      call.k_target = {target.data(), {groups * group, groups * group, groups * group, 1}};
      call.k_scales = {scales.data(), {groups, groups, groups, 1}};
      if (has_zeros) call.k_zeros = {zeros.data(), {groups, groups, groups, 1}};
      run_on_device(call, sluice_cache_copy);
      const NumberFormat &format = to == SLUICE_F16 ? f16_format : bf16_format;
      int wrong = 0;
      for (size_t i = 0; i < target.size(); ++i) {
        const size_t n = i / size_t(group);
        const int number = elements[i / 2] >> (i % 2 * 4) & 15;
        // Exact in double precision.
        const double difference = number - (has_zeros ? decode(f16_format, zero_bits[n]) : 8);
        const uint16_t wanted = encode(format, difference * decode(f16_format, scale_bits[n]));
        // Zeros may have either sign.
        wrong += target[i] != wanted && ((target[i] | wanted) & 0x7fff) != 0;
      }
      CHECK(wrong == 0);
    }
}

TEST_CASE("all numbers of 16 bits become FP8 as in an append", "[copy]") {
  std::vector<uint16_t> all;
  for (uint32_t bits = 0; bits < 65536; ++bits)
    all.push_back(uint16_t(bits));
  for (const uint32_t from : {SLUICE_F16, SLUICE_BF16})
    check_conversion<uint16_t, uint8_t>(from, SLUICE_E4M3FNUZ, all, {1, 0.37f, 7});
}

TEST_CASE("keys in pages that do not exist are gathered as zeros", "[gather]") {
  // Row n of page p holds 2 * p + n + 1. Entries: a page, none, one past the last, a page.
  SmallGather block({1, 9}, {7}, {}, {2, -1, 4, 1}, {});
  CHECK(block.run() == std::vector<int>{-1, 5, 6, 0, 0, 0, 0, 3, -1, -1, -1, -1});
  // The second sequence has one entry for three keys, and a third one none; the entry after it is another's.
  SmallGather csr({0, 3, 6, 8}, {3, 3, 1}, {}, {3, 0, 2}, {0, 2, 3, 3});
  CHECK(csr.run() == std::vector<int>{7, 8, 1, 5, 6, 0, 0, -1, -1, -1, -1, -1});
  // Starts of tables that decrease.
  SmallGather decreasing({0, 3}, {3}, {}, {3, 0, 2}, {2, 0});
  CHECK(decreasing.run() == std::vector<int>{0, 0, 0, -1, -1, -1, -1, -1, -1, -1, -1, -1});
}

TEST_CASE("a gather stores only to the rows of its sequences", "[gather]") {
  // Fewer rows than keys: the next sequence starts there. Keys before the first, and more of them than keys.
  SmallGather crowded({0, 2, 4, 6}, {5, 3, 4}, {1, -7, 9}, {0, 1, 2, 1, 2, 0, 3, 0, 0}, {});
  CHECK(crowded.run() == std::vector<int>{2, 3, 3, 4, -1, -1, -1, -1, -1, -1, -1, -1});
  // Rows before the output, and past its end.
  SmallGather beyond({-3, 10, 99}, {8, 8}, {}, {0, 1, 2, 3, 3, 2, 1, 0}, {});
  CHECK(beyond.run() == std::vector<int>{4, 5, 6, 7, 8, -1, -1, -1, -1, -1, 7, 8});
}

TEST_CASE("pairs with pages that do not exist are skipped", "[copy]") {
  for (const bool is_wide : {false, true}) {
    constexpr int64_t pages = 5, elements = 16;
    std::vector<uint8_t> values;
    for (int64_t i = 0; i < pages * elements; ++i)
      values.push_back(uint8_t(i));
    Visible<uint8_t> cache(values);
    const std::vector<int64_t> pairs = {0, 5, 1, 3, -1, 2, 5, 2, 4, -4, int64_t{1} << 31, 0, 0, 4};
    std::vector<int32_t> narrow_pairs;
    for (const int64_t page : pairs)
      narrow_pairs.push_back(page > INT32_MAX ? INT32_MAX : int32_t(page));
    Visible<int64_t> wide(pairs);
    Visible<int32_t> narrow(narrow_pairs);
    calls::PageCopy call;
    call.flags = calls::v_in_k | (is_wide ? uint32_t(calls::page_index_64) : 0);
    call.source_type = call.target_type = SLUICE_E5M2;
    call.kv_heads = 1;
    call.head_dim_qk = 8;
    call.page_size = 2;
    call.k_source = call.k_target = {cache.data(), {elements, 8, 8, 1}};
    call.pairs = is_wide ? static_cast<const void *>(wide.data()) : narrow.data();
    call.pair_count = int64_t(pairs.size() / 2);
    call.page_count = pages;
    run_on_device(call, sluice_cache_copy);
    for (int64_t i = 0; i < elements; ++i) {
      values[size_t(3 * elements + i)] = values[size_t(elements + i)];
      values[size_t(4 * elements + i)] = values[size_t(i)];
    }
    CHECK(cache.copy() == values);
  }
}

TEST_CASE("pages of V by columns are copied as pages whose rows are the columns", "[copy]") {
  constexpr int64_t pages = 3, heads = 2, dim = 24, page_rows = 32;
  const int64_t x = GENERATE(int64_t{8}, int64_t{32}); // rows of a pack, or all of a page
  constexpr int64_t page = heads * dim * page_rows;
  std::vector<uint16_t> numbers;
  for (int64_t i = 0; i < pages * page; ++i)
    numbers.push_back(uint16_t(i));
  // [page][head][row / x][element][row % x]
  Visible<uint16_t> cache(numbers);
  Visible<int32_t> pairs(std::vector<int32_t>{0, 2});
  calls::PageCopy call;
  call.flags = calls::v_in_k;
  call.source_type = call.target_type = SLUICE_F16;
  call.kv_heads = heads;
  call.head_dim_qk = page_rows;
  call.page_size = dim;
  const bool is_one_pack = x == page_rows;
  call.source_k_pack = call.target_k_pack = is_one_pack ? 0 : int32_t(x);
  call.pairs = pairs.data();
  call.pair_count = 1;
  call.page_count = pages;
  call.k_source = call.k_target = {cache.data(), {page, x, dim * page_rows, is_one_pack ? 1 : dim * x}};
  run_on_device(call, sluice_cache_copy);
  std::copy_n(numbers.begin(), page, numbers.begin() + 2 * page);
  CHECK(cache.copy() == numbers);
}
