//===- combined_rows_test.cpp - caches whose rows hold K and V of a token -------------------------------===//
//
// [page][head][token][2 * dim] or [page][token][head][2 * dim], as vLLM has it: V's rows begin dim elements
// after K's. All operations are done on such caches and on one with K and V apart, and must leave the same
// rows, byte for byte, and the same results, bit for bit.
//
//===----------------------------------------------------------------------------------------------------===//
#include "cache_ops/device.h"
#include "calls/values.h"
#include "conformance/shared/numbers.h"

#include <algorithm>
#include <cmath>
#include <sluice/sluice.hpp>

using namespace sluice::test;
namespace calls = sluice::calls;
using sluice::conformance::bf16_format;
using sluice::conformance::decode;
using sluice::conformance::encode;
using sluice::conformance::f16_format;

namespace {

constexpr int64_t pages = 9, page_size = 16, kv_heads = 2, q_heads = 4, dim = 128, batch = 3, entries = 4;
constexpr int64_t prompt_rows = 73;
constexpr uint8_t untouched = 0x55;

struct CacheType {
  const char *name;
  uint32_t source, type, scales;
  int32_t group;
  bool zeros;
};
constexpr CacheType cache_types[] = {
    {"F16", SLUICE_F16, SLUICE_F16, SLUICE_SCALE_NONE, 0, false},
    {"BF16", SLUICE_BF16, SLUICE_BF16, SLUICE_SCALE_NONE, 0, false},
    {"E4M3FNUZ", SLUICE_BF16, SLUICE_E4M3FNUZ, SLUICE_SCALE_PER_TENSOR, 0, false},
    {"E4M3FNUZ, scales per token", SLUICE_F16, SLUICE_E4M3FNUZ, SLUICE_SCALE_PER_TOKEN, 0, false},
    {"E5M2FNUZ, scales per token", SLUICE_BF16, SLUICE_E5M2FNUZ, SLUICE_SCALE_PER_TOKEN, 0, false},
    {"I8, scales per token", SLUICE_BF16, SLUICE_I8, SLUICE_SCALE_PER_TOKEN, 0, false},
    {"Q8_0", SLUICE_F16, SLUICE_Q8_0, SLUICE_SCALE_NONE, 0, false},
    {"Q4_0", SLUICE_BF16, SLUICE_Q4_0, SLUICE_SCALE_NONE, 0, false},
    {"U4, groups of 32", SLUICE_BF16, SLUICE_U4, SLUICE_SCALE_PER_GROUP, 32, false},
    {"U4, groups of 64 with zero points", SLUICE_F16, SLUICE_U4, SLUICE_SCALE_PER_GROUP, 64, true},
};

int64_t bytes_of(uint32_t type, int64_t elements) {
  return elements / sluice::block_of(type).elements * sluice::block_of(type).bytes;
}

std::vector<uint16_t> draw(int64_t count, uint32_t type, uint64_t seed) {
  Numbers numbers(seed);
  std::vector<uint16_t> values;
  for (int64_t i = 0; i < count; ++i)
    values.push_back(uint16_t(encode(type == SLUICE_F16 ? f16_format : bf16_format, numbers.between(-1, 1))));
  return values;
}

std::vector<float> draw_floats(int64_t count, uint64_t seed) {
  Numbers numbers(seed);
  std::vector<float> values;
  for (int64_t i = 0; i < count; ++i)
    values.push_back(float(numbers.between(-1, 1)));
  return values;
}

enum class Layout { apart, combined_hnd, combined_nhd };

struct Cache {
  Cache(const CacheType &type, Layout layout)
      : layout(layout), row(bytes_of(type.type, dim)),
        bytes(size_t(2 * pages * kv_heads * page_size * row), untouched) {}

  /// Where a row of K or V begins.
  int64_t place(bool is_v, int64_t page, int64_t head, int64_t token) const {
    if (layout == Layout::combined_nhd)
      return (((page * page_size + token) * kv_heads + head) * 2 + is_v) * row;
    const int64_t number = (page * kv_heads + head) * page_size + token;
    return layout == Layout::combined_hnd ? (2 * number + is_v) * row
                                          : (is_v * pages * kv_heads * page_size + number) * row;
  }
  std::vector<uint8_t> row_at(bool is_v, int64_t page, int64_t head, int64_t token) const {
    const uint8_t *const at = bytes.data() + place(is_v, page, head, token);
    return {at, at + row};
  }
  /// The strides of rows of `width` elements.
  sluice_tensor tensor(void *data, int64_t width) const {
    if (layout == Layout::combined_nhd)
      return {data, {page_size * kv_heads * width, kv_heads * width, width, 1}};
    return {data, {kv_heads * page_size * width, width, page_size * width, 1}};
  }
  sluice_tensor tensor(bool is_v) {
    return tensor(bytes.data() + place(is_v, 0, 0, 0), layout == Layout::apart ? dim : 2 * dim);
  }
  sluice_tensor k() { return tensor(false); }
  sluice_tensor v() { return tensor(true); }

  Layout layout;
  int64_t row;
  Visible<uint8_t> bytes;
};

/// How many rows of the two differ; the number of rows that were written goes to `written`.
int differing_rows(const Cache &a, const Cache &b, int &written) {
  int differing = 0;
  written = 0;
  const std::vector<uint8_t> before(size_t(a.row), untouched);
  for (const bool is_v : {false, true})
    for (int64_t page = 0; page < pages; ++page)
      for (int64_t head = 0; head < kv_heads; ++head)
        for (int64_t token = 0; token < page_size; ++token) {
          const std::vector<uint8_t> row = a.row_at(is_v, page, head, token);
          differing += row != b.row_at(is_v, page, head, token);
          written += row != before;
        }
  return differing;
}

/// A cache with its scales, the calls that fill and read it, and what they find.
class Work {
public:
  Work(const CacheType &type, Layout layout) : type(type), cache(type, layout) {
    for (const bool is_v : {false, true}) {
      const int64_t groups = type.group == 0 ? 1 : dim / type.group;
      const int64_t count = pages * page_size * kv_heads * groups;
      per_token[is_v] = std::make_unique<Visible<float>>(size_t(count), -1.0f);
      per_group[is_v] = std::make_unique<Visible<uint16_t>>(size_t(count), uint16_t{0x5555});
      zeros[is_v] = std::make_unique<Visible<uint16_t>>(size_t(count), uint16_t{0x5555});
    }
  }

  void append_prompts() {
    Visible<uint16_t> k(draw(prompt_rows * kv_heads * dim, type.source, 1)),
        v(draw(prompt_rows * kv_heads * dim, type.source, 2));
    Visible<int32_t> starts({0, 21, 22, 73}), lengths({21, 1, 51});
    calls::Append call = append_of(prompt_rows, k, v, starts, lengths);
    run_on_device(call, sluice_cache_append);
  }

  /// The step of a layer: norms, a rotation and Q.
  void append_step() {
    Visible<uint16_t> k(draw(batch * kv_heads * dim, type.source, 3)),
        v(draw(batch * kv_heads * dim, type.source, 4)), q(draw(batch * q_heads * dim, type.source, 5)),
        norm(draw(dim, type.source, 6));
    Visible<float> rotary(draw_floats(entries * page_size * dim, 7));
    Visible<int32_t> starts({0, 1, 2, 3});
    calls::Append call = append_of(batch, k, v, starts, lengths);
    call.q_heads = q_heads;
    call.q = {q.data(), {0, q_heads * dim, dim, 1}};
    call.q_out = {step_q.data(), {0, q_heads * dim, dim, 1}};
    call.q_norm = call.k_norm = norm.data();
    call.norm_epsilon = 1e-5f;
    call.rotary_dim = dim;
    call.rotary = rotary.data();
    call.rotary_stride = dim;
    run_on_device(call, sluice_cache_append);
  }

  /// O and LSE of `rows` rows of each sequence, which are its newest tokens.
  void attend(int64_t rows, bool on_host, std::vector<uint16_t> &o_out, std::vector<float> &lse_out) {
    calls::Problem problem;
    problem.mode = calls::paged;
    problem.flags = calls::causal | calls::write_lse | (type.zeros ? uint32_t(calls::zero_points) : 0);
    problem.q_type = problem.o_type = type.source;
    problem.k_type = problem.v_type = type.type;
    problem.q_heads = q_heads;
    problem.kv_heads = kv_heads;
    problem.head_dim_qk = problem.head_dim_v = dim;
    problem.k_scale_kind = problem.v_scale_kind = type.scales;
    problem.scale_group = type.group;
    problem.page_size = page_size;
    problem.page_table_kind = SLUICE_PAGE_TABLE_BLOCK;
    problem.max_batch = batch;
    problem.max_q_len = int32_t(rows);
    problem.max_kv_len = entries * page_size;
    Visible<uint16_t> q(rows == 1 ? step_q.copy() : draw(batch * rows * q_heads * dim, type.source, 8)),
        o(q.size(), uint16_t{0x5555});
    Visible<float> lse(size_t(batch * rows * q_heads));
    calls::Args args;
    args.scale = calls::usual_scale(problem);
    args.batch = batch;
    args.q_len = int32_t(rows);
    args.kv_len = entries * page_size;
    args.q = {q.data(), {rows * q_heads * dim, q_heads * dim, dim, 1}};
    args.o = {o.data(), {rows * q_heads * dim, q_heads * dim, dim, 1}};
    args.lse = {lse.data(), {rows * q_heads, q_heads, 1, 1}};
    args.k = cache.k();
    args.v = cache.v();
    args.kv_lengths = lengths.data();
    args.page_table = table.data();
    args.page_table_stride = entries;
    args.page_count = pages;
    add_scales(args);
    if (on_host) {
      sluice_error error;
      sluice_error_init(&error, sizeof error);
      const sluice_status status =
          sluice_attention_reference(calls::ProblemValues(problem), calls::ArgsValues(problem, args), &error);
      INFO(error.field << ": " << error.message);
      REQUIRE(status == SLUICE_OK);
    } else {
      run_plan(problem, args);
    }
    o_out = o.copy();
    lse_out = lse.copy();
  }

  /// All pages to those three further, in another cache.
  void copy_to(Cache &target) {
    calls::PageCopy call;
    call.source_type = call.target_type = type.type;
    call.kv_heads = kv_heads;
    call.head_dim_qk = call.head_dim_v = dim;
    call.page_size = page_size;
    call.k_source = cache.k();
    call.v_source = cache.v();
    call.k_target = target.k();
    call.v_target = target.v();
    run_page_copy(call);
  }

  /// The same, with rows of K and V together as the bytes of one row. Both caches are combined in the same
  /// way.
  void copy_whole_rows_to(Cache &target) {
    const int64_t width = 2 * cache.row;
    calls::PageCopy call;
    call.flags = calls::v_in_k;
    call.source_type = call.target_type = SLUICE_I8;
    call.kv_heads = kv_heads;
    call.head_dim_qk = int32_t(width);
    call.page_size = page_size;
    call.k_source = cache.tensor(cache.bytes.data(), width);
    call.k_target = cache.tensor(target.bytes.data(), width);
    run_page_copy(call);
  }

  /// Keys from the sixth of each sequence on, in rows of `out_type`: K, then V.
  std::vector<uint8_t> gather(uint32_t out_type) {
    constexpr int64_t rows = 80;
    const int64_t bytes = rows * kv_heads * bytes_of(out_type, dim);
    Visible<uint8_t> out(size_t(2 * bytes), untouched);
    Visible<int32_t> out_starts({0, 20, 24, 80}), first({5, 0, 5});
    calls::Gather call;
    call.cache_type = type.type;
    call.out_type = out_type;
    call.kv_heads = kv_heads;
    call.head_dim_qk = call.head_dim_v = dim;
    call.page_size = page_size;
    call.page_table_kind = SLUICE_PAGE_TABLE_BLOCK;
    call.batch = batch;
    call.tokens = rows;
    call.k_cache = cache.k();
    call.v_cache = cache.v();
    call.k_out = {out.data(), {0, kv_heads * dim, dim, 1}};
    call.v_out = {out.data() + bytes, {0, kv_heads * dim, dim, 1}};
    call.out_starts = out_starts.data();
    call.kv_lengths = lengths.data();
    call.first_keys = first.data();
    call.page_table = table.data();
    call.page_table_stride = entries;
    call.page_count = pages;
    if (out_type != type.type) {
      call.k_scale_kind = call.v_scale_kind = SLUICE_SCALE_PER_TENSOR;
      call.k_scale = call.v_scale = per_tensor.data();
    }
    run_on_device(call, sluice_cache_gather);
    return out.copy();
  }

  std::vector<uint16_t> rows_of_q() const { return step_q.copy(); }
  const CacheType &type;
  Cache cache;
  Visible<int32_t> table{{7, 2, -1, -1, /**/ 5, -1, -1, -1, /**/ 3, 0, 8, 1}}, lengths{{22, 2, 52}};

private:
  sluice_tensor scales_of(void *data) const {
    const int64_t groups = type.group == 0 ? 1 : dim / type.group;
    return {data, {page_size * kv_heads * groups, kv_heads * groups, groups, 1}};
  }

  template <typename Call> void add_scales(Call &call) {
    if (type.scales == SLUICE_SCALE_PER_TENSOR) call.k_scale = call.v_scale = per_tensor.data();
    if (type.scales == SLUICE_SCALE_PER_TOKEN) {
      call.k_scales = scales_of(per_token[0]->data());
      call.v_scales = scales_of(per_token[1]->data());
    }
    if (type.scales != SLUICE_SCALE_PER_GROUP) return;
    call.k_scales = scales_of(per_group[0]->data());
    call.v_scales = scales_of(per_group[1]->data());
    if (!type.zeros) return;
    call.k_zeros = scales_of(zeros[0]->data());
    call.v_zeros = scales_of(zeros[1]->data());
  }

  calls::Append append_of(int64_t tokens, Visible<uint16_t> &k, Visible<uint16_t> &v,
                          Visible<int32_t> &starts, Visible<int32_t> &kv_lengths) {
    calls::Append call;
    call.flags = type.zeros ? uint32_t(calls::zero_points) : 0;
    call.source_type = type.source;
    call.cache_type = type.type;
    call.kv_heads = kv_heads;
    call.head_dim_qk = call.head_dim_v = dim;
    call.page_size = page_size;
    call.page_table_kind = SLUICE_PAGE_TABLE_BLOCK;
    call.k_scale_kind = call.v_scale_kind = type.scales;
    call.scale_group = type.group;
    call.tokens = int32_t(tokens);
    call.batch = batch;
    call.k = {k.data(), {0, kv_heads * dim, dim, 1}};
    call.v = {v.data(), {0, kv_heads * dim, dim, 1}};
    call.k_cache = cache.k();
    call.v_cache = cache.v();
    call.starts = starts.data();
    call.kv_lengths = kv_lengths.data();
    call.page_table = table.data();
    call.page_table_stride = entries;
    call.page_count = pages;
    add_scales(call);
    return call;
  }

  void run_page_copy(calls::PageCopy &call) {
    std::vector<int32_t> numbers;
    for (int32_t page = 0; page < pages; ++page)
      numbers.insert(numbers.end(), {page, int32_t((page + 3) % pages)});
    Visible<int32_t> pairs(numbers);
    call.pairs = pairs.data();
    call.pair_count = call.page_count = pages;
    run_on_device(call, sluice_cache_copy);
  }

  void run_plan(const calls::Problem &problem, const calls::Args &args) {
    sluice_error error;
    sluice_error_init(&error, sizeof error);
    sluice_plan *plan = nullptr;
    sluice_status status = sluice_attention_plan(device(), calls::ProblemValues(problem), &plan, &error);
    INFO(error.field << ": " << error.message);
    REQUIRE(status == SLUICE_OK);
    const std::unique_ptr<sluice_plan, void (*)(sluice_plan *)> owner(plan, sluice_plan_destroy);
    sluice_plan_info info;
    sluice_plan_info_init(&info, sizeof info);
    REQUIRE(sluice_plan_describe(plan, &info, &error) == SLUICE_OK);
    Visible<uint8_t> workspace(info.workspace_bytes);
    sluice_launch launch;
    sluice_launch_init(&launch, sizeof launch);
    launch.workspace = workspace.data();
    launch.workspace_bytes = info.workspace_bytes;
    status = sluice_attention_run(plan, calls::ArgsValues(problem, args), &launch, &error);
    INFO(error.field << ": " << error.message);
    REQUIRE(status == SLUICE_OK);
    require_good_end();
  }

  Visible<float> per_tensor{std::vector<float>{1 / 64.0f}};
  std::unique_ptr<Visible<float>> per_token[2];
  std::unique_ptr<Visible<uint16_t>> per_group[2], zeros[2];
  Visible<uint16_t> step_q{size_t(batch * q_heads * dim)};
};

/// The largest difference over the tolerance.
double worst_error(const std::vector<uint16_t> &got, const std::vector<uint16_t> &expected, uint32_t type,
                   double tolerance) {
  const auto &format = type == SLUICE_F16 ? f16_format : bf16_format;
  double worst = 0;
  for (size_t i = 0; i < got.size(); ++i)
    worst = std::max(worst, std::fabs(decode(format, got[i]) - decode(format, expected[i])) / tolerance);
  return worst;
}

} // namespace

TEST_CASE("caches whose rows hold K and V work like those with K and V apart", "[combined_rows]") {
  const CacheType &type = cache_types[GENERATE(range(size_t{0}, std::size(cache_types)))];
  const Layout layout = GENERATE(Layout::combined_hnd, Layout::combined_nhd);
  INFO(type.name << (layout == Layout::combined_hnd ? ", heads first" : ", tokens first"));
  Work combined(type, layout), apart(type, Layout::apart);
  int written = 0;
  for (Work *const work : {&combined, &apart})
    work->append_prompts();
  CHECK(differing_rows(combined.cache, apart.cache, written) == 0);
  CHECK(written == 2 * kv_heads * prompt_rows);
  for (Work *const work : {&combined, &apart})
    work->append_step();
  CHECK(differing_rows(combined.cache, apart.cache, written) == 0);
  CHECK(written == 2 * kv_heads * (prompt_rows + batch));
  CHECK(combined.rows_of_q() == apart.rows_of_q());

  for (const int64_t rows : {int64_t{1}, int64_t{2}, int64_t{40}}) {
    INFO(rows << " rows");
    std::vector<uint16_t> o, o_apart, o_host;
    std::vector<float> lse, lse_apart, lse_host;
    combined.attend(rows, false, o, lse);
    apart.attend(rows, false, o_apart, lse_apart);
    CHECK(o == o_apart);
    CHECK(lse == lse_apart);
    combined.attend(rows, true, o_host, lse_host);
    // |V| is below 1. So is |K| in prompts; rows of a step have a length of at most sqrt(2 dim), as their
    // norms, weights and rotations allow: |scores| are below 2 sqrt(dim). P and O are rounded to the type of
    // Q, and so are the elements of blocks, which moves scores.
    const double score = 2 * std::sqrt(double(dim));
    const double last_place = type.source == SLUICE_F16 ? 0x1p-10 : 0x1p-7;
    const double block_error = sluice::block_of(type.type).elements > 1 ? score * last_place : 0;
    CHECK(worst_error(o, o_host, type.source, 2 * last_place + block_error) <= 1);
    const double tolerance = score * dim * 0x1p-24 + block_error;
    double worst = 0;
    for (size_t i = 0; i < lse.size(); ++i)
      if (lse[i] != lse_host[i]) worst = std::max(worst, std::fabs(double(lse[i]) - lse_host[i]) / tolerance);
    CHECK(worst <= 1);
  }

  if (type.type <= SLUICE_I8) {
    for (const Layout target_layout : {layout, Layout::apart}) {
      Cache target(type, target_layout), expected(type, target_layout);
      combined.copy_to(target);
      apart.copy_to(expected);
      CHECK(differing_rows(target, expected, written) == 0);
      CHECK(written == 2 * kv_heads * (prompt_rows + batch));
      CHECK(target.row_at(true, 1, 1, 3) == combined.cache.row_at(true, 7, 1, 3));
    }
    CHECK(combined.gather(type.type) == apart.gather(type.type));
  }
  if (type.scales == SLUICE_SCALE_PER_TENSOR)
    CHECK(combined.gather(type.source) == apart.gather(type.source));
  Cache target(type, layout);
  combined.copy_whole_rows_to(target);
  for (const bool is_v : {false, true})
    for (int64_t page = 0; page < pages; ++page)
      for (int64_t token = 0; token < page_size; ++token)
        CHECK(target.row_at(is_v, (page + 3) % pages, 1, token) ==
              combined.cache.row_at(is_v, page, 1, token));
}

TEST_CASE("a V that begins at no multiple of 16 bytes is refused", "[combined_rows]") {
  Visible<uint8_t> bytes(4096);
  calls::PageCopy call;
  call.source_type = call.target_type = SLUICE_E4M3FNUZ;
  call.kv_heads = 1;
  call.head_dim_qk = call.head_dim_v = 72;
  call.page_size = 1;
  call.page_count = 2;
  call.k_source = call.k_target = {bytes.data(), {144, 144, 144, 1}};
  call.v_source = call.v_target = {bytes.data() + 72, {144, 144, 144, 1}};
  sluice_launch launch;
  sluice_launch_init(&launch, sizeof launch);
  sluice_error error;
  sluice_error_init(&error, sizeof error);
  CHECK(sluice_cache_copy(device(), calls::CopyValues(call), &launch, &error) == SLUICE_INVALID_ARGUMENT);
  CHECK(std::string(error.field) == "source.v.data");
}
