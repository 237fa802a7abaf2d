//===- cpp_test.cpp - the C++ header on the emulated device ---------------------------------------------===//
#include <sluice/sluice.hpp>

#include <catch2/catch.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <memory>
#include <string>
#include <type_traits>
#include <vector>

namespace {

using sluice::TensorView;

static_assert(!std::is_copy_constructible_v<sluice::Context> && !std::is_copy_assignable_v<sluice::Context>);
static_assert(!std::is_copy_constructible_v<sluice::Plan> && !std::is_copy_assignable_v<sluice::Plan>);
static_assert(std::is_nothrow_move_constructible_v<sluice::Context> &&
              std::is_nothrow_move_assignable_v<sluice::Plan>);
static_assert(sizeof(sluice::Plan) == sizeof(void *) && sizeof(sluice::Context) == sizeof(void *));
static_assert(sizeof(sluice::Args) == sizeof(sluice_args) &&
              sizeof(sluice::Problem) == sizeof(sluice_problem));

sluice::Context emulated() {
  return sluice::Context::create(sluice::ContextDesc(SLUICE_DEVICE_EMULATED)).value();
}

/// Memory of a context's device, with the same bytes on the host.
class Buffer {
public:
  Buffer(const sluice::Context &context, size_t elements) : context(context), host(elements) {
    REQUIRE(context.hip<int(void **, size_t)>("hipMalloc")(&device, bytes()) == 0);
  }
  Buffer(const Buffer &) = delete;
  ~Buffer() { context.hip<int(void *)>("hipFree")(device); }

  void upload() { copy(device, host.data(), 1); }
  void download() { copy(host.data(), device, 2); }

  const sluice::Context &context;
  std::vector<uint16_t> host;
  void *device = nullptr;

private:
  size_t bytes() const { return 2 * host.size(); }
  void copy(void *to, const void *from, int kind) {
    REQUIRE(context.hip<int(void *, const void *, size_t, int)>("hipMemcpy")(to, from, bytes(), kind) == 0);
  }
};

/// 0x3400 to 0x3bff: 0.25 to just below 1 in binary16.
void fill(std::vector<uint16_t> &numbers, uint32_t seed) {
  for (uint16_t &number : numbers)
    number = uint16_t(0x3400 + ((seed = seed * 1664525 + 1013904223) >> 21 & 0x7ff));
}

/// The same of E4M3FNUZ, two in each: 0.25 to just below 1.
void fill_fp8(std::vector<uint16_t> &numbers, uint32_t seed) {
  for (uint16_t &pair : numbers)
    pair = uint16_t(0x3030 + ((seed = seed * 1664525 + 1013904223) >> 20 & 0x0f0f));
}

double fp8_number(const std::vector<uint16_t> &pairs, size_t at) {
  const int bits = pairs[at / 2] >> (at % 2 * 8) & 0xff;
  return (1 + (bits & 7) / 8.0) * std::exp2((bits >> 3) - 8);
}

double number(uint16_t half) { // a normal or zero, not negative
  return half == 0 ? 0 : double((half & 0x3ff) | 0x400) / 1024 * std::exp2(int(half >> 10) - 15);
}

} // namespace

TEST_CASE("A dense call through views matches the reference", "[cpp]") {
  const sluice::Context context = emulated();
  constexpr int64_t batch = 2, rows = 5, keys = 19, q_heads = 4, kv_heads = 2, dim = 64;
  Buffer q(context, batch * rows * q_heads * dim), k(context, batch * keys * kv_heads * dim),
      v(context, batch * keys * kv_heads * dim), o(context, batch * rows * q_heads * dim);
  fill(q.host, 1), fill(k.host, 2), fill(v.host, 3);
  for (Buffer *buffer : {&q, &k, &v, &o})
    buffer->upload();

  // Q and O with their heads first, K and V with their tokens first.
  auto views = [&](auto memory) {
    return std::array<TensorView, 4>{
        TensorView::bhsd(memory(q), SLUICE_F16, batch, rows, q_heads, dim),
        TensorView::bshd(memory(k), SLUICE_F16, batch, keys, kv_heads, dim),
        TensorView::bshd(memory(v), SLUICE_F16, batch, keys, kv_heads, dim),
        TensorView::bhsd(memory(o), SLUICE_F16, batch, rows, q_heads, dim),
    };
  };
  const auto device = views([](Buffer &buffer) { return buffer.device; });
  sluice::Problem problem = sluice::dense_problem(device[0], device[1], device[2], device[3]);
  problem.flags = SLUICE_CAUSAL;
  CHECK(problem.q_heads == q_heads);
  CHECK(problem.kv_heads == kv_heads);
  CHECK(problem.head_dim_v == dim);

  const sluice::Plan plan = context.plan(problem).value();
  CHECK(plan.describe().value().kernel == context.support(problem).value().kernel + std::string());
  auto args = sluice::dense_args(device[0], device[1], device[2], device[3]);
  REQUIRE(args);
  plan.run(*args, sluice::Launch()).value();
  REQUIRE(context.hip<int(void *)>("hipStreamSynchronize")(nullptr) == 0);
  o.download();

  std::vector<uint16_t> from_device = o.host;
  const auto host = views([](Buffer &buffer) -> void * { return buffer.host.data(); });
  sluice::reference(problem, *sluice::dense_args(host[0], host[1], host[2], host[3])).value();
  size_t wrong = 0;
  for (size_t i = 0; i < from_device.size(); ++i) // P is rounded to 11 bits, O once
    wrong += std::abs(number(from_device[i]) - number(o.host[i])) > 0x1p-10;
  CHECK(wrong == 0);
  CHECK(number(o.host[0]) > 0.2); // an O of zeros would agree with zeros
}

TEST_CASE("Calls without sequences, rows or keys are no errors", "[cpp]") {
  const sluice::Context context = emulated();
  constexpr int64_t heads = 2, dim = 64;
  const auto run = [&](int64_t batch, int64_t rows, int64_t keys) {
    Buffer o(context, size_t(std::max<int64_t>(batch * rows * heads * dim, 1)));
    o.host.assign(o.host.size(), 0x3c00);
    o.upload();
    const auto view = [&](void *data, int64_t tokens) {
      return TensorView::bshd(data, SLUICE_F16, batch, tokens, heads, dim);
    };
    // Nothing is read through a pointer to no elements.
    const TensorView q = view(o.device, rows), k = view(nullptr, keys);
    const sluice::Problem problem = sluice::dense_problem(q, k, k, q);
    const sluice::Args args = sluice::dense_args(q, k, k, view(o.device, rows)).value();
    context.plan(problem).value().run(args).value();
    REQUIRE(context.hip<int(void *)>("hipStreamSynchronize")(nullptr) == 0);
    o.download();
    return o.host;
  };
  for (uint16_t element : run(2, 3, 0))
    REQUIRE(element == 0);
  CHECK(run(2, 0, 0) == std::vector<uint16_t>{0x3c00});
  CHECK(run(0, 3, 0) == std::vector<uint16_t>{0x3c00});
  char nothing[1];
  const TensorView none = TensorView::bshd(nothing, SLUICE_F16, 2, 0, heads, dim),
                   some = TensorView::bshd(nothing, SLUICE_F16, 2, 5, heads, dim);
  const sluice::Args args = sluice::dense_args(none, some, some, none).value();
  CHECK(sluice::reference(sluice::dense_problem(none, some, some, none), args));
  CHECK(args.flags == SLUICE_EXACT_LENGTHS);
  CHECK(sluice::dense_args(some, some, some, some)->flags == 0); // which release 1.0 takes too
}

TEST_CASE("An append through views stores the same as the reference", "[cpp]") {
  const sluice::Context context = emulated();
  constexpr int64_t tokens = 3, pages = 4, page_size = 16, heads = 2, dim = 64;
  Buffer k(context, tokens * heads * dim), k_cache(context, pages * page_size * heads * dim);
  fill(k.host, 1);
  k.upload(), k_cache.upload();
  int64_t slots[] = {17, 63, 2};
  Buffer device_slots(context, sizeof slots / 2);
  std::memcpy(device_slots.host.data(), slots, sizeof slots);
  device_slots.upload();

  sluice::Append append;
  append.flags = SLUICE_V_IN_K;
  append.source_type = append.cache_type = SLUICE_F16;
  append.kv_heads = heads;
  append.head_dim_qk = dim;
  append.page_size = page_size;
  append.tokens = tokens;
  append.page_count = pages;
  const auto place = [&](void *rows, void *cache, const void *numbers) {
    append.k = TensorView::ragged(rows, SLUICE_F16, tokens, heads, dim);
    append.k_cache = TensorView::pages_hnd(cache, SLUICE_F16, pages, page_size, heads, dim);
    append.slots = static_cast<const int64_t *>(numbers);
  };
  place(k.device, k_cache.device, device_slots.device);
  context.kv_append(append).value();
  REQUIRE(context.hip<int(void *)>("hipStreamSynchronize")(nullptr) == 0);
  k_cache.download();

  std::vector<uint16_t> cache(k_cache.host.size());
  place(k.host.data(), cache.data(), slots);
  sluice::reference_append(append).value();
  CHECK(cache == k_cache.host);
  CHECK(std::equal(&cache[2 * dim], &cache[3 * dim], &k.host[2 * heads * dim]));
  slots[1] = 64;
  CHECK(sluice::reference_append(append).error().field() == "slots[1]");
}

TEST_CASE("A paged call with scales per page and spans of keys is computed as plain loops do", "[cpp]") {
  const sluice::Context context = emulated();
  constexpr int rows = 5, keys = 40, pages = 4, page_size = 16, heads = 2, dim = 64;
  Buffer q(context, rows * heads * dim), k(context, pages * page_size * heads * dim / 2),
      v(context, pages * page_size * heads * dim / 2), o(context, rows * heads * dim);
  fill(q.host, 1), fill_fp8(k.host, 2), fill_fp8(v.host, 3);
  const auto given = [&](auto numbers) { // float or int32_t
    auto buffer = std::make_unique<Buffer>(context, sizeof numbers / 2);
    std::memcpy(buffer->host.data(), &numbers, sizeof numbers);
    buffer->upload();
    return buffer;
  };
  const std::array<float, pages * heads> k_scales = {0.5F, 1, 0.25F, 2, 1.5F, 0.75F, 1, 1};
  const std::array<float, pages * heads> v_scales = {2, 1, 0.5F, 3, 4, 0.25F, 1, 1};
  const std::array<int32_t, 3> table = {2, 0, 1};
  const std::array<int32_t, 4> spans = {0, 2, 36, 39};
  const auto k_array = given(k_scales), v_array = given(v_scales), numbers = given(table),
             ends = given(spans), length = given(int32_t(keys));
  for (Buffer *buffer : {&q, &k, &v, &o})
    buffer->upload();

  sluice::Problem problem;
  problem.flags = SLUICE_CAUSAL | SLUICE_SPANS;
  problem.mode = SLUICE_MODE_PAGED;
  problem.q_type = problem.o_type = SLUICE_F16;
  problem.k_type = problem.v_type = SLUICE_E4M3FNUZ;
  problem.q_heads = problem.kv_heads = heads;
  problem.head_dim_qk = problem.head_dim_v = dim;
  problem.page_size = page_size;
  problem.page_table_kind = SLUICE_PAGE_TABLE_BLOCK;
  problem.k_scale_kind = problem.v_scale_kind = SLUICE_SCALE_PER_PAGE;
  const auto call = [&](auto memory) {
    sluice::Args args;
    args.batch = 1;
    args.q_len = rows;
    args.kv_len = keys;
    args.q = TensorView::bshd(memory(q), SLUICE_F16, 1, rows, heads, dim);
    args.k = TensorView::pages_hnd(memory(k), SLUICE_E4M3FNUZ, pages, page_size, heads, dim);
    args.v = TensorView::pages_hnd(memory(v), SLUICE_E4M3FNUZ, pages, page_size, heads, dim);
    args.o = TensorView::bshd(memory(o), SLUICE_F16, 1, rows, heads, dim);
    args.k_scales = TensorView::page_scales(static_cast<float *>(memory(*k_array)), pages, heads);
    args.v_scales = TensorView::page_scales(static_cast<float *>(memory(*v_array)), pages, heads);
    args.page_table = memory(*numbers);
    args.page_table_stride = 3;
    args.page_count = pages;
    args.kv_lengths = static_cast<const int32_t *>(memory(*length));
    args.spans = static_cast<const int32_t *>(memory(*ends));
    args.span_count = 2;
    return args;
  };
  context.plan(problem).value().run(call([](Buffer &buffer) { return buffer.device; })).value();
  REQUIRE(context.hip<int(void *)>("hipStreamSynchronize")(nullptr) == 0);
  o.download();
  const std::vector<uint16_t> from_device = o.host;
  sluice::reference(problem, call([](Buffer &buffer) -> void * { return buffer.host.data(); })).value();

  size_t wrong = 0;
  for (size_t at = 0; at < o.host.size(); ++at) {
    const size_t i = at / dim / heads, h = at / dim % heads, e = at % dim;
    double sum = 0, weighted = 0;
    for (size_t j = 0; j < keys; ++j) {
      const size_t own = keys - rows + i;
      if (j > own && !(own >= 36 && j < 39)) continue;
      const auto page = size_t(table[j / page_size]);
      const size_t first = ((page * heads + h) * page_size + j % page_size) * dim;
      double dot = 0;
      for (size_t d = 0; d < dim; ++d)
        dot += number(q.host[(i * heads + h) * dim + d]) * fp8_number(k.host, first + d);
      const double weight = std::exp(dot / 8 * double(k_scales[page * heads + h]));
      sum += weight;
      weighted += weight * double(v_scales[page * heads + h]) * fp8_number(v.host, first + e);
    }
    wrong += std::abs(number(o.host[at]) - weighted / sum) > 0x1p-11 * weighted / sum * 1.000001;
    wrong += std::abs(number(from_device[at]) - weighted / sum) > 0x1p-8;
  }
  CHECK(wrong == 0);
}

namespace {

constexpr int64_t block_rows = 2, block_keys = 40, block_heads = 2, block_dim = 128, group = 32;

/// K or V of 4 or 8 bits on the device and the host, and its elements.
struct BlockCache {
  BlockCache(const sluice::Context &context, uint32_t dtype, uint32_t seed);

  Buffer data, scales, zeros; // the latter two of groups
  std::vector<double> elements;
};

BlockCache::BlockCache(const sluice::Context &context, uint32_t dtype, uint32_t seed)
    : data(context, size_t(2 * block_keys * block_heads * block_dim) / sluice::block_of(dtype).elements *
                        sluice::block_of(dtype).bytes / 2),
      scales(context, size_t(2 * block_keys * block_heads * block_dim / group)),
      zeros(context, scales.host.size()) {
  std::vector<unsigned char> bytes(2 * data.host.size());
  const auto next = [&] { return (seed = seed * 1664525 + 1013904223) >> 16; };
  for (size_t block = 0; block < scales.host.size(); ++block) {
    // Powers of two from 2^-6 to 2^-3, and with 8 bits smaller ones: all elements are numbers of F16.
    scales.host[block] = uint16_t((15 - (dtype == SLUICE_Q8_0 ? 10 : 6) + next() % 4) << 10);
    zeros.host[block] = uint16_t(0x4600 + next() % 4 * 0x80); // 6, 6.5, 7, 7.5
    const double scale = number(scales.host[block]), zero = number(zeros.host[block]);
    const size_t header = dtype == SLUICE_U4 ? 0 : 2, size = dtype == SLUICE_Q8_0 ? 32 : 16;
    unsigned char *const at = &bytes[block * (header + size)];
    std::memcpy(at, &scales.host[block], header);
    for (size_t i = 0; i < size; ++i)
      at[header + i] = static_cast<unsigned char>(next() & 0xff);
    for (size_t i = 0; i < 32; ++i) {
      const int byte = at[header + (dtype == SLUICE_Q8_0 ? i : dtype == SLUICE_Q4_0 ? i % 16 : i / 2)];
      const bool upper = dtype == SLUICE_Q4_0 ? i >= 16 : i % 2 == 1;
      const int nibble = upper ? byte >> 4 : byte & 15;
      elements.push_back(scale * (dtype == SLUICE_Q8_0   ? double(int8_t(byte))
                                  : dtype == SLUICE_Q4_0 ? double(nibble - 8)
                                                         : nibble - zero));
    }
  }
  std::memcpy(data.host.data(), bytes.data(), bytes.size());
  for (Buffer *buffer : {&data, &scales, &zeros})
    buffer->upload();
}

double any_number(uint16_t half) {
  const uint16_t magnitude = half & 0x7fff;
  const double value = magnitude < 0x400 ? magnitude * 0x1p-24 : number(magnitude);
  return half & 0x8000 ? -value : value;
}

} // namespace

TEST_CASE("Calls with K and V in blocks are computed as plain loops do", "[cpp]") {
  const uint32_t dtype = GENERATE(uint32_t(SLUICE_Q8_0), uint32_t(SLUICE_Q4_0), uint32_t(SLUICE_U4));
  const sluice::Context context = emulated();
  Buffer q(context, size_t(block_rows * block_heads * block_dim)), o(context, q.host.size());
  BlockCache k(context, dtype, 2), v(context, dtype, 3);
  fill(q.host, 1);
  q.upload(), o.upload();

  const auto call = [&](auto memory) {
    const auto view = [](void *data, uint32_t type, int64_t tokens, int64_t dim) {
      return TensorView::bshd(data, type, 2, tokens, block_heads, dim);
    };
    // The second sequence of two: views of parts count blocks too.
    const auto second = [&](void *data, uint32_t type, int64_t dim) {
      return view(data, type, block_keys, dim).slice(0, 1, 1);
    };
    sluice::Args args =
        sluice::dense_args(TensorView::bshd(memory(q), SLUICE_F16, 1, block_rows, block_heads, block_dim),
                           second(memory(k.data), dtype, block_dim), second(memory(v.data), dtype, block_dim),
                           TensorView::bshd(memory(o), SLUICE_F16, 1, block_rows, block_heads, block_dim))
            .value();
    if (dtype == SLUICE_U4) {
      args.k_scales = second(memory(k.scales), SLUICE_F16, block_dim / group);
      args.v_scales = second(memory(v.scales), SLUICE_F16, block_dim / group);
      args.k_zeros = second(memory(k.zeros), SLUICE_F16, block_dim / group);
      args.v_zeros = second(memory(v.zeros), SLUICE_F16, block_dim / group);
    }
    return args;
  };
  const auto on_host = [](Buffer &buffer) -> void * { return buffer.host.data(); };
  sluice::Problem problem;
  problem.q_type = problem.o_type = SLUICE_F16;
  problem.k_type = problem.v_type = dtype;
  problem.q_heads = problem.kv_heads = block_heads;
  problem.head_dim_qk = problem.head_dim_v = block_dim;
  if (dtype == SLUICE_U4) {
    problem.k_scale_kind = problem.v_scale_kind = SLUICE_SCALE_PER_GROUP;
    problem.scale_group = group;
    problem.flags = SLUICE_ZERO_POINTS;
  }
  context.plan(problem).value().run(call([](Buffer &buffer) { return buffer.device; })).value();
  REQUIRE(context.hip<int(void *)>("hipStreamSynchronize")(nullptr) == 0);
  o.download();
  const std::vector<uint16_t> from_device = o.host;
  sluice::reference(problem, call(on_host)).value();

  size_t wrong = 0;
  double largest = 0;
  for (size_t at = 0; at < o.host.size(); ++at) {
    const size_t i = at / block_dim / block_heads, h = at / block_dim % block_heads, e = at % block_dim;
    double sum = 0, weighted = 0;
    for (size_t j = 0; j < size_t(block_keys); ++j) {
      const size_t first = ((size_t(block_keys) + j) * block_heads + h) * block_dim;
      double dot = 0;
      for (size_t d = 0; d < size_t(block_dim); ++d)
        dot += number(q.host[(i * block_heads + h) * block_dim + d]) * k.elements[first + d];
      const double weight = std::exp(dot / std::sqrt(double(block_dim)));
      sum += weight;
      weighted += weight * v.elements[first + e];
    }
    const double wanted = weighted / sum;
    largest = std::max(largest, std::abs(wanted));
    wrong += std::abs(any_number(o.host[at]) - wanted) > 0x1p-11 * std::abs(wanted) * 1.000001 + 0x1p-25;
    wrong += std::abs(any_number(from_device[at]) - wanted) > 0x1p-9;
  }
  CHECK(wrong == 0);
  CHECK(largest > 0x1p-4);

  sluice::Problem odd = problem;
  odd.head_dim_v = 136;
  CHECK(context.plan(odd).error().field() == "head_dim_v");
  sluice::Args apart = call(on_host);
  apart.k.stride[2] += 8;
  CHECK(sluice::reference(problem, apart).error().field() == "k.stride[2]");
}

TEST_CASE("A failed call gives the reason, as a value and as an exception", "[cpp]") {
  const sluice::Context context = emulated();
  sluice::Problem problem;
  problem.q_type = problem.k_type = problem.v_type = problem.o_type = SLUICE_F16;
  problem.q_heads = 3;
  problem.kv_heads = 2;
  problem.head_dim_qk = problem.head_dim_v = 64;
  auto plan = context.plan(problem);
  REQUIRE_FALSE(plan);
  CHECK(plan.error().code() == SLUICE_INVALID_ARGUMENT);
  CHECK(plan.error().code_name() == std::string("SLUICE_INVALID_ARGUMENT"));
  CHECK(plan.error().field() == "q_heads");
  CHECK(plan.error().message().find("3") != std::string_view::npos);
  CHECK(plan.error().hip_code() == 0);
  try {
    std::move(plan).value();
    FAIL("no exception");
  } catch (const sluice::Exception &exception) {
    CHECK(exception.error().field() == "q_heads");
    CHECK(exception.what() == std::string(exception.error().message()));
  }
  CHECK_THROWS_AS(context.support(problem).value(), sluice::Exception);
  CHECK_THROWS_AS(context.workspace_size(problem).value(), sluice::Exception);
  CHECK_THROWS_AS(context.preload(problem).value(), sluice::Exception);
  CHECK(context.kernel(0xffffffff).error().field() == "index");

  auto nowhere = sluice::Context::create(sluice::ContextDesc("gfx1:1"));
  REQUIRE_FALSE(nowhere);
  CHECK(nowhere.error().code() == SLUICE_WRONG_ARCH);
}

TEST_CASE("A result that cannot change can be looked at", "[cpp]") {
  const sluice::Context context = emulated();
  const auto device = context.device();
  REQUIRE(device);
  CHECK(device->chip == std::string("gfx942"));
  CHECK(&*device == &device.value());
  const auto kernel = context.kernel(0xffffffff);
  CHECK_THROWS_AS(kernel.value(), sluice::Exception);
}

TEST_CASE("A function of several calls returns the error of the one that failed", "[cpp]") {
  const sluice::Context context = emulated();
  const auto step = [&](const sluice::Problem &problem) -> sluice::Result<void> {
    const auto plan = context.plan(problem);
    if (!plan) return plan.error();
    return plan->run(sluice::Args(), sluice::Launch());
  };
  sluice::Problem problem;
  const auto no_plan = step(problem);
  REQUIRE_FALSE(no_plan);
  CHECK(no_plan.error().field() == "q_type");
  CHECK_THROWS_AS(no_plan.value(), sluice::Exception);
  problem.q_type = problem.k_type = problem.v_type = problem.o_type = SLUICE_F16;
  problem.q_heads = problem.kv_heads = 1;
  problem.head_dim_qk = problem.head_dim_v = 64;
  CHECK(step(problem).error().field() == "q_len");
}

TEST_CASE("Nothing has failed yet in a new error", "[cpp]") {
  const sluice::Error error;
  CHECK(error.code() == SLUICE_OK);
  CHECK(error.field().empty());
  CHECK(error.message().empty());
  CHECK(error.hip_code() == 0);
}

TEST_CASE("Owners move and let go", "[cpp]") {
  sluice::Context first = emulated();
  sluice_context *handle = first.c();
  sluice::Context second = std::move(first);
  CHECK(second.c() == handle);
  CHECK(first.c() == nullptr);
  second = emulated(); // what it held before is released: the sanitizers say so
  CHECK(second.c() != nullptr);
  second = std::move(second);
  sluice_context_destroy(second.let_go());
  CHECK(second.c() == nullptr);
}

TEST_CASE("A plan outlives its context", "[cpp]") {
  sluice::Problem problem;
  problem.q_type = problem.k_type = problem.v_type = problem.o_type = SLUICE_BF16;
  problem.q_heads = problem.kv_heads = 1;
  problem.head_dim_qk = problem.head_dim_v = 128;
  const sluice::Plan plan =
      sluice::Context::create(sluice::ContextDesc("gfx942:304")).value().plan(problem).value();
  CHECK(plan.describe().value().tile_q > 0);
  CHECK(plan.run(sluice::Args(), sluice::Launch()).error().field() == "q_len");
}

TEST_CASE("What has been moved from refuses its calls", "[cpp]") {
  sluice::Context context = emulated();
  sluice::Problem problem;
  problem.q_type = problem.k_type = problem.v_type = problem.o_type = SLUICE_F16;
  problem.q_heads = problem.kv_heads = 1;
  problem.head_dim_qk = problem.head_dim_v = 64;
  sluice::Plan plan = context.plan(problem).value();
  const sluice::Plan kept_plan = std::move(plan);
  const sluice::Context kept = std::move(context);
  CHECK(plan.run(sluice::Args(), sluice::Launch()).error().field() == "plan");
  CHECK(plan.describe().error().field() == "plan");
  CHECK(context.plan(problem).error().field() == "context");
  CHECK(context.support(problem).error().field() == "context");
  CHECK(context.workspace_size(problem).error().field() == "context");
  CHECK(context.device().error().field() == "context");
  CHECK(context.kernel_count().error().field() == "context");
  CHECK(context.preload().error().field() == "context");
  CHECK(context.kv_append(sluice::Append(), sluice::Launch()).error().field() == "context");
  CHECK(context.merge_states(sluice::Merge(), sluice::Launch()).error().field() == "context");
  CHECK(context.kv_copy(sluice::PageCopy()).error().field() == "context");
  CHECK(context.kv_gather(sluice::Gather()).error().field() == "context");
  CHECK(context.set_ranges(true).error().field() == "context");
  CHECK(plan.counters().error().field() == "plan");
  CHECK(kept_plan.counters().value().runs == 0);
  CHECK(sluice::reference_copy(sluice::PageCopy()).error().field() == "source_type");
  CHECK(sluice::reference_gather(sluice::Gather()).error().field() == "cache_type");
  CHECK(context.set_trace(nullptr, nullptr).error().field() == "context");
  CHECK(context.hip<int()>("hipInit") == nullptr);
}

TEST_CASE("Views compute the addresses of their elements", "[cpp]") {
  float memory[2 * 3 * 4 * 8];
  const TensorView bshd = TensorView::bshd(memory, SLUICE_F32, 2, 3, 4, 8);
  const TensorView bhsd = TensorView::bhsd(memory, SLUICE_F32, 2, 3, 4, 8);
  CHECK(bshd.stride == std::array<int64_t, 4>{96, 32, 8, 1});
  CHECK(bhsd.stride == std::array<int64_t, 4>{96, 8, 24, 1});
  const TensorView head = bshd.slice(2, 3, 1).slice(1, 1, 2);
  CHECK(head.data == memory + 3 * 8 + 32);
  CHECK(head.extent == std::array<int64_t, 4>{2, 2, 1, 8});
  const sluice_tensor c = head;
  CHECK(c.data == head.data);
  CHECK(std::equal(c.stride, c.stride + 4, head.stride.begin()));
  CHECK(TensorView::ragged(memory, SLUICE_F32, 5, 4, 8).stride == std::array<int64_t, 4>{0, 32, 8, 1});
  CHECK(TensorView::packed(memory, SLUICE_F32, 5, 4, 8).stride == std::array<int64_t, 4>{0, 32, 8, 1});
  CHECK(TensorView::pages_nhd(memory, SLUICE_F32, 2, 3, 4, 8).stride == bshd.stride);
  CHECK(TensorView::pages_hnd(memory, SLUICE_F32, 2, 3, 4, 8).stride == bhsd.stride);
  CHECK(TensorView::lse(memory, 2, 3, 4).stride == std::array<int64_t, 4>{12, 4, 1, 0});
  CHECK(TensorView::page_scales(memory, 5, 4).stride == std::array<int64_t, 4>{4, 0, 1, 0});
  CHECK(TensorView::bshd(memory, SLUICE_E5M2, 1, 2, 1, 8).slice(1, 1, 1).data ==
        reinterpret_cast<char *>(memory) + 8);
  const TensorView blocks = TensorView::bshd(memory, SLUICE_Q4_0, 1, 2, 1, 64).slice(1, 1, 1);
  CHECK(blocks.data == reinterpret_cast<char *>(memory) + 36);
  CHECK(blocks.slice(3, 32, 32).data == reinterpret_cast<char *>(memory) + 54);
  CHECK(TensorView::bshd(memory, SLUICE_U4, 1, 2, 1, 64).slice(1, 1, 1).data ==
        reinterpret_cast<char *>(memory) + 32);
  for (uint32_t type = SLUICE_F16; type <= SLUICE_Q4_0; ++type)
    CHECK(sluice::element_bytes(type) == (type >= SLUICE_U4 ? 0 : sluice::block_of(type).bytes));
  CHECK(sluice::block_of(SLUICE_Q4_0 + 1).elements == 0);
  const TensorView mask = {memory, 0, {2, 4, 3, 8}, {96, 24, 8, 1}}; // bytes
  CHECK(mask.slice(1, 2, 1).data == reinterpret_cast<char *>(memory) + 48);
}

TEST_CASE("An extent that no int32_t holds is not taken for a smaller one", "[cpp]") {
  const sluice::Context context = emulated();
  const auto field = [&](int64_t q_heads, int64_t kv_heads, int64_t dim_qk, int64_t dim_v) {
    const TensorView q = TensorView::bshd(nullptr, SLUICE_F16, 1, 1, q_heads, dim_qk),
                     k = TensorView::bshd(nullptr, SLUICE_F16, 1, 1, kv_heads, dim_qk),
                     v = TensorView::bshd(nullptr, SLUICE_F16, 1, 1, kv_heads, dim_v),
                     o = TensorView::bshd(nullptr, SLUICE_F16, 1, 1, q_heads, dim_v);
    return std::string(context.support(sluice::dense_problem(q, k, v, o)).error().field());
  };
  constexpr int64_t wraps = int64_t(1) << 32;
  CHECK(field(8, 2, 64, 64).empty());
  CHECK(field(wraps + 8, 2, 64, 64) == "q_heads");
  CHECK(field(wraps - 8, 2, 64, 64) == "q_heads");
  CHECK(field(8, wraps + 2, 64, 64) != "");
  CHECK(field(8, 2, wraps + 64, 64) == "head_dim_qk");
  CHECK(field(8, 2, 64, wraps + 64) == "head_dim_v");
}

TEST_CASE("Tensors that do not fit together are refused by name", "[cpp]") {
  char memory[16];
  auto view = [&](int64_t batch, int64_t tokens, int64_t heads, int64_t dim) {
    return TensorView::bshd(memory, SLUICE_F16, batch, tokens, heads, dim);
  };
  const TensorView q = view(2, 3, 4, 64), k = view(2, 7, 2, 64), v = view(2, 7, 2, 32), o = view(2, 3, 4, 32);
  CHECK(sluice::dense_args(q, k, v, o));
  auto field = [](const sluice::Result<sluice::Args> &result) {
    CHECK(result.error().code() == SLUICE_INVALID_ARGUMENT);
    return std::string(result.error().field());
  };
  CHECK(field(sluice::dense_args(q, view(1, 7, 2, 64), v, o)) == "k.extent[0]");
  CHECK(field(sluice::dense_args(q, k, view(1, 7, 2, 32), o)) == "v.extent[0]");
  CHECK(field(sluice::dense_args(q, k, v, view(1, 3, 4, 32))) == "o.extent[0]");
  CHECK(field(sluice::dense_args(q, k, view(2, 6, 2, 32), o)) == "v.extent[1]");
  CHECK(field(sluice::dense_args(q, k, v, view(2, 2, 4, 32))) == "o.extent[1]");
  CHECK(field(sluice::dense_args(q, k, view(2, 7, 1, 32), o)) == "v.extent[2]");
  CHECK(field(sluice::dense_args(q, k, v, view(2, 3, 2, 32))) == "o.extent[2]");
  CHECK(field(sluice::dense_args(q, view(2, 7, 2, 32), v, o)) == "k.extent[3]");
  CHECK(field(sluice::dense_args(q, k, v, view(2, 3, 4, 64))) == "o.extent[3]");
  CHECK(field(sluice::dense_args(view(2, -1, 4, 64), k, v, view(2, -1, 4, 32))) == "q.extent[1]");
  const TensorView many = view(2, int64_t(1) << 31, 2, 64);
  CHECK(field(sluice::dense_args(q, many, view(2, int64_t(1) << 31, 2, 32), o)) == "k.extent[1]");
}

TEST_CASE("Kernels, devices and builds describe themselves", "[cpp]") {
  const sluice::Context context = emulated();
  CHECK(context.device().value().chip == std::string("gfx942"));
  const uint32_t count = context.kernel_count().value();
  CHECK(count == sluice::build_info().value().kernel_count);
  CHECK(context.kernel(count - 1).value().name[0] != '\0');
  bool has_more = false;
  for (uint32_t i = 0; i < count; ++i)
    has_more |= context.kernel(i).value().more_features[0] != '\0';
  CHECK(has_more);
  CHECK(context.hip<int()>("hipNoSuchFunction") == nullptr);
  int plans = 0;
  context.set_trace([](const sluice_trace_record *, void *user) { ++*static_cast<int *>(user); }, &plans)
      .value();
  sluice::Problem problem;
  problem.q_type = problem.k_type = problem.v_type = problem.o_type = SLUICE_F16;
  problem.q_heads = problem.kv_heads = 1;
  problem.head_dim_qk = problem.head_dim_v = 64;
  context.plan(problem).value();
  CHECK(plans == 1);
}
