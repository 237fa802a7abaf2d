//===- random_ops_test.cpp - random appends, copies, gathers and merges of few rows ---------------------===//
//
// Sizes of 0, 1 and 2, strides without meaning, subnormal, tiny and huge numbers and scales, and pages that
// were never written. Every byte is compared with the host's reference, a merge with an oracle.
//
//===----------------------------------------------------------------------------------------------------===//
#include "cache_ops/fresh.h"
#include "cache_ops/merge_oracle.h"
#include "calls/values.h"

#include <cstdlib>
#include <limits>

using namespace sluice::test;
namespace calls = sluice::calls;

namespace {

/// How many calls of each operation; more are for a longer search.
uint64_t call_count() {
  const char *count = std::getenv("SLUICE_TEST_CALLS");
  return count ? std::strtoull(count, nullptr, 10) : 60;
}

class Draw {
public:
  explicit Draw(uint64_t seed) : random(seed) {}

  uint32_t below(uint32_t end) { return random.below(end); }
  template <typename Value, size_t count> Value one_of(const Value (&values)[count]) {
    return values[below(count)];
  }

  int64_t any_stride() {
    constexpr int64_t strides[] = {
        0, 1, 3, -8, 12345, std::numeric_limits<int64_t>::min(), std::numeric_limits<int64_t>::max()};
    return one_of(strides);
  }
  /// A contiguous tensor; strides of extents of 1 are arbitrary.
  sluice_tensor tensor(void *data, std::array<int64_t, 4> extents) {
    sluice_tensor made = {data, {}};
    int64_t step = 1;
    for (size_t i = 4; i-- > 0;) {
      made.stride[i] = extents[i] <= 1 ? any_stride() : step;
      step *= std::max<int64_t>(extents[i], 1);
    }
    return made;
  }

  /// Numbers of 16 bits of one magnitude, some of them 0.
  std::vector<uint8_t> halves(uint32_t type, size_t count) {
    constexpr double magnitudes[] = {0, 1e-38, 3e-37, 1e-30, 1e-7, 1, 1000, 3e4};
    const double magnitude = one_of(magnitudes);
    std::vector<uint8_t> bytes(count * 2);
    for (size_t n = 0; n < count; ++n)
      write_element(type, &bytes[2 * n], below(5) == 0 ? 0 : random.between(-magnitude, magnitude));
    return bytes;
  }
  std::vector<float> scales(size_t count) {
    constexpr float numbers[] = {0x1p-149f, 1e-39f, 0x1p-126f, 1e-20f, 0.01f, 1, 300, 1e20f, 3e38f};
    std::vector<float> made(count);
    for (float &scale : made)
      scale = one_of(numbers);
    return made;
  }

private:
  Numbers random;
};

template <typename Struct> Struct made(sluice_status (*init)(Struct *, size_t)) {
  Struct out;
  REQUIRE(init(&out, sizeof out) == SLUICE_OK);
  return out;
}

void require_host(sluice_status status, const sluice_error &error) {
  INFO(error.field << ": " << error.message);
  REQUIRE(status == SLUICE_OK);
}

sluice_error no_error() {
  sluice_error error;
  sluice_error_init(&error, sizeof error);
  return error;
}

/// Where two arrays differ first, or "".
template <typename Element>
std::string difference(const std::vector<Element> &found, const std::vector<Element> &expected) {
  REQUIRE(found.size() == expected.size());
  for (size_t n = 0; n < found.size(); ++n)
    if (std::memcmp(&found[n], &expected[n], sizeof found[n]) != 0)
      return "[" + std::to_string(n) + "] is " + std::to_string(found[n]) + ", not " +
             std::to_string(expected[n]);
  return "";
}

/// Bytes of a row of this many elements.
size_t row_bytes(uint32_t type, int64_t elements) {
  switch (type) {
  case SLUICE_Q8_0:
    return size_t(elements / 32 * 34);
  case SLUICE_Q4_0:
    return size_t(elements / 32 * 18);
  case SLUICE_F16:
  case SLUICE_BF16:
    return size_t(elements * 2);
  default:
    return size_t(elements);
  }
}

/// The extents of paged caches of a call.
struct Paged {
  int32_t kv_heads, head_dim, page_size, pages;

  explicit Paged(Draw &draw)
      : kv_heads(1 + int32_t(draw.below(2))), head_dim(32 * (1 + int32_t(draw.below(4)))),
        page_size(1 + int32_t(draw.below(3))), pages(1 + int32_t(draw.below(3))) {}

  size_t bytes(uint32_t type) const {
    return size_t(pages) * size_t(page_size) * size_t(kv_heads) * row_bytes(type, head_dim);
  }
  std::array<int64_t, 4> extents() const { return {pages, page_size, kv_heads, head_dim}; }
  template <typename Call> void describe(Call &call) const {
    call.flags = calls::v_in_k;
    call.kv_heads = kv_heads;
    call.head_dim_qk = head_dim;
    call.page_size = page_size;
    call.page_count = pages;
  }
};

void check_append(uint64_t seed) {
  Draw draw(seed);
  const Paged cache(draw);
  auto call = calls::Append();
  cache.describe(call);
  constexpr uint32_t sources[] = {SLUICE_F16, SLUICE_BF16};
  call.source_type = draw.one_of(sources);
  const uint32_t types[] = {call.source_type, SLUICE_E4M3FNUZ, SLUICE_E5M2FNUZ,
                            SLUICE_I8,        SLUICE_Q8_0,     SLUICE_Q4_0};
  call.cache_type = draw.one_of(types);
  call.tokens = int32_t(draw.below(4));
  const bool has_scale = call.cache_type >= SLUICE_E4M3FNUZ && call.cache_type <= SLUICE_I8;
  call.k_scale_kind = has_scale ? draw.below(4) : 0;
  const auto rows = draw.halves(call.source_type, size_t(call.tokens * cache.kv_heads * cache.head_dim));
  const size_t slots_in_cache = size_t(cache.pages * cache.page_size);
  std::vector<int64_t> slots;
  for (int32_t t = 0; t < call.tokens; ++t) // each its own, or none
    slots.push_back(size_t(t) < slots_in_cache && draw.below(4) != 0 ? t : -1);
  const auto scales = draw.scales(size_t(cache.kv_heads));
  Visible<uint8_t> stored(cache.bytes(call.cache_type), 0x5a), source(rows);
  Visible<int64_t> places(slots);
  Visible<float> given(scales), computed(slots_in_cache * size_t(cache.kv_heads), -1.0f);
  call.k = draw.tensor(call.tokens == 0 ? nullptr : source.data(),
                       {1, call.tokens, cache.kv_heads, cache.head_dim});
  call.k_cache = draw.tensor(stored.data(), cache.extents());
  call.slots = call.tokens == 0 ? nullptr : places.data();
  const bool per_token = call.k_scale_kind == SLUICE_SCALE_PER_TOKEN;
  if (call.k_scale_kind != 0 && !per_token) call.k_scale = given.data();
  if (per_token)
    call.k_scales = draw.tensor(computed.data(), {cache.pages, cache.page_size, cache.kv_heads, 1});
  INFO("seed " << seed << ": from " << call.source_type << " to " << call.cache_type << ", scales "
               << call.k_scale_kind << ", " << call.tokens << " tokens of " << cache.kv_heads << " x "
               << cache.head_dim);
  run_on_device(call, sluice_cache_append);

  std::vector<uint8_t> expected(cache.bytes(call.cache_type), 0x5a);
  std::vector<float> expected_scales(computed.size(), -1.0f);
  calls::Append host = call;
  host.k_cache.data = expected.data();
  if (per_token) host.k_scales.data = expected_scales.data();
  sluice_error error = no_error();
  require_host(sluice_cache_append_reference(calls::AppendValues(host), &error), error);
  CHECK(difference(stored.copy(), expected) == "");
  CHECK(difference(computed.copy(), expected_scales) == "");
}

/// Copies every page to another one of a second cache, or gathers all keys of up to two sequences, whose
/// pages were written; no others were.
void check_page_copy(uint64_t seed, bool gathers) {
  Draw draw(seed);
  const Paged cache(draw);
  constexpr uint32_t types[] = {SLUICE_F16, SLUICE_BF16, SLUICE_E4M3FNUZ, SLUICE_E5M2FNUZ, SLUICE_I8};
  const uint32_t from = draw.one_of(types);
  const bool is_half = from == SLUICE_F16 || from == SLUICE_BF16;
  constexpr uint32_t halves[] = {SLUICE_F16, SLUICE_BF16};
  const uint32_t to = draw.below(2) ? from : is_half ? uint32_t(SLUICE_E4M3FNUZ) : draw.one_of(halves);
  const uint32_t kind = from == to ? 0 : draw.below(3);
  std::vector<uint8_t> source =
      is_half ? draw.halves(from, cache.bytes(from) / 2) : std::vector<uint8_t>(cache.bytes(from));
  if (!is_half)
    for (uint8_t &byte : source)
      byte = uint8_t(draw.below(127)); // neither NaN nor infinity
  const auto scales = draw.scales(size_t(cache.kv_heads));
  Visible<float> given(scales);

  const int32_t listed = int32_t(draw.below(uint32_t(cache.pages) + 1)); // the first pages
  Fresh written(source.size());
  written.write(0, source.data(), source.size() / size_t(cache.pages) * size_t(listed));
  const int64_t keys = int64_t{listed} * cache.page_size;
  const size_t out_bytes =
      gathers ? size_t(keys * cache.kv_heads) * row_bytes(to, cache.head_dim) : cache.bytes(to);
  Visible<uint8_t> target(out_bytes, 0x5a);
  std::vector<uint8_t> expected(out_bytes, 0x5a);
  sluice_error error = no_error();
  INFO("seed " << seed << ": from " << from << " to " << to << ", scales " << kind << ", " << listed
               << " pages of " << cache.page_size << " rows of " << cache.kv_heads << " x "
               << cache.head_dim);
  if (!gathers) {
    std::vector<int32_t> numbers;
    for (int32_t page = 0; page < listed; ++page)
      numbers.insert(numbers.end(), {page, cache.pages - 1 - page});
    Visible<int32_t> pairs(numbers);
    auto call = calls::PageCopy();
    cache.describe(call);
    call.source_type = from;
    call.target_type = to;
    call.k_scale_kind = kind;
    if (kind != 0) call.k_scale = given.data();
    call.pairs = pairs.data();
    call.pair_count = listed;
    call.k_source = draw.tensor(written.data(), cache.extents());
    call.k_target = draw.tensor(target.data(), cache.extents());
    run_on_device(call, sluice_cache_copy);
    call.k_source.data = source.data();
    call.k_target.data = expected.data();
    require_host(sluice_cache_copy_reference(calls::CopyValues(call), &error), error);
  } else {
    const int32_t batch = int32_t(draw.below(3)), first = batch == 2 ? int32_t(keys) / 2 : int32_t(keys);
    std::vector<int32_t> lengths, starts = {0}, table;
    for (int32_t b = 0; b < batch; ++b) {
      lengths.push_back(b == 0 ? first : int32_t(keys) - first);
      starts.push_back(starts.back() + lengths.back());
      for (int32_t page = 0; page < std::max(listed, 1); ++page)
        table.push_back(page);
    }
    Visible<int32_t> at(starts), of(lengths), pages(table);
    auto call = calls::Gather();
    cache.describe(call);
    call.cache_type = from;
    call.out_type = to;
    call.page_table_kind = SLUICE_PAGE_TABLE_BLOCK;
    call.k_scale_kind = kind;
    if (kind != 0) call.k_scale = given.data();
    call.batch = batch;
    call.tokens = int32_t(keys);
    call.out_starts = at.data();
    call.kv_lengths = of.data();
    call.page_table = pages.data();
    call.page_table_stride = std::max(listed, 1);
    call.k_cache = draw.tensor(written.data(), cache.extents());
    call.k_out = draw.tensor(target.data(), {1, keys, cache.kv_heads, cache.head_dim});
    run_on_device(call, sluice_cache_gather);
    call.k_cache.data = source.data();
    call.k_out.data = expected.data();
    require_host(sluice_cache_gather_reference(calls::GatherValues(call), &error), error);
  }
  CHECK(difference(target.copy(), expected) == "");
}

void check_merge(uint64_t seed) {
  Draw draw(seed);
  const int64_t parts = 1 + draw.below(3), tokens = draw.below(3), heads = 1 + draw.below(2),
                dim = 8 * (1 + draw.below(4));
  constexpr float lses[] = {-std::numeric_limits<float>::infinity(), -3e38f, -80, 0, 2, 90, 2e38f};
  std::vector<float> rows(size_t(parts * tokens * heads * dim)), part_lses(size_t(parts * tokens * heads));
  for (float &number : rows)
    number = float(int(draw.below(200)) - 100) / 64;
  for (float &number : part_lses)
    number = draw.one_of(lses);
  Visible<float> partial(rows), partial_lse(part_lses), o(size_t(tokens * heads * dim), -1.0f),
      lse(size_t(tokens * heads), -1.0f);
  sluice_merge_args call = {};
  call.struct_size = sizeof call;
  call.lse_base = SLUICE_LSE_LN;
  call.parts.type = call.o_format.type = SLUICE_F32;
  call.parts.count = int32_t(parts);
  call.tokens = int32_t(tokens);
  call.heads = int32_t(heads);
  call.head_dim = int32_t(dim);
  call.parts.o = draw.tensor(partial.data(), {parts, tokens, heads, dim});
  call.parts.lse = draw.tensor(partial_lse.data(), {parts, tokens, heads, 1});
  call.o = draw.tensor(o.data(), {1, tokens, heads, dim});
  call.lse = draw.tensor(lse.data(), {1, tokens, heads, 1});
  INFO("seed " << seed << ": " << parts << " parts of " << tokens << " x " << heads << " x " << dim);
  run_on_device(call, sluice_attention_merge);
  const auto row_count = size_t(tokens * heads);
  for (size_t row = 0; row < row_count; ++row) {
    std::vector<double> row_lses;
    for (size_t part = 0; part < size_t(parts); ++part)
      row_lses.push_back(part_lses[part * row_count + row]);
    const MergedRow merged(row_lses, 1, -infinity);
    CHECK(merged.is_lse(lse[row]));
    for (size_t e = 0; e < size_t(dim); ++e) {
      std::vector<double> values;
      for (size_t part = 0; part < size_t(parts); ++part)
        values.push_back(rows[(part * row_count + row) * size_t(dim) + e]);
      INFO("row " << row << " element " << e << ": " << o[row * size_t(dim) + e]);
      CHECK(merged.is_element(o[row * size_t(dim) + e], values, SLUICE_F32));
    }
  }
}

} // namespace

TEST_CASE("random appends of few rows", "[random_ops]") {
  for (uint64_t seed = 0; seed < call_count(); ++seed)
    check_append(seed);
}

TEST_CASE("random copies and gathers of few rows", "[random_ops]") {
  for (uint64_t seed = 0; seed < call_count(); ++seed)
    check_page_copy(seed, seed % 2 != 0);
}

TEST_CASE("random merges of few rows", "[random_ops]") {
  for (uint64_t seed = 0; seed < call_count(); ++seed)
    check_merge(seed);
}
