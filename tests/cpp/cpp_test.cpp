//===- cpp_test.cpp - the C++ header on the emulated device ---------------------------------------------===//
//
// Each wrapper is reached, and passes on what it is given; what the library computes has tests of its own.
//
//===----------------------------------------------------------------------------------------------------===//
#include <sluice/sluice.hpp>

#include <catch2/catch.hpp>

#include <algorithm>
#include <cmath>
#include <string>
#include <type_traits>
#include <vector>

namespace {

static_assert(!std::is_copy_constructible_v<sluice::Context> && !std::is_copy_assignable_v<sluice::Context>);
static_assert(!std::is_copy_constructible_v<sluice::Plan> && !std::is_copy_assignable_v<sluice::Plan>);
static_assert(!std::is_copy_constructible_v<sluice::Memory> && !std::is_copy_assignable_v<sluice::Memory>);
static_assert(std::is_nothrow_move_constructible_v<sluice::Context> &&
              std::is_nothrow_move_assignable_v<sluice::Plan> &&
              std::is_nothrow_move_assignable_v<sluice::Memory>);
static_assert(sizeof(sluice::Plan) == sizeof(void *) && sizeof(sluice::Context) == sizeof(void *));
static_assert(sizeof(sluice::Launch) == sizeof(sluice_launch));

sluice::Context emulated() {
  return sluice::Context::create(sluice::ContextDesc(SLUICE_DEVICE_EMULATED)).value();
}

/// Memory of a context's device, with the same numbers on the host.
template <class T> class Array {
public:
  Array(const sluice::Context &context, std::vector<T> initial)
      : host(std::move(initial)), memory(sluice::Memory::allocate(context, bytes()).value()) {
    memory.write(host.data(), bytes()).value();
  }
  T *device() const { return static_cast<T *>(memory.data()); }
  std::vector<T> from_device() const {
    std::vector<T> copy(host.size());
    memory.read(copy.data(), bytes()).value();
    return copy;
  }

  std::vector<T> host;

private:
  size_t bytes() const { return host.size() * sizeof(T); }
  sluice::Memory memory;
};

/// 0.25 to just below 1 in binary16.
std::vector<uint16_t> numbers(size_t count, uint32_t seed) {
  std::vector<uint16_t> values(count);
  for (uint16_t &value : values)
    value = uint16_t(0x3400 + ((seed = seed * 1664525 + 1013904223) >> 21 & 0x7ff));
  return values;
}

double number(uint16_t half) { // a normal or zero, not negative
  return half == 0 ? 0 : double((half & 0x3ff) | 0x400) / 1024 * std::exp2(int(half >> 10) - 15);
}

const sluice_kv_format plain = sluice_kv_tensors(SLUICE_F16, 1, 64);
const sluice_attention one_head = sluice_make_attention(SLUICE_F16, 1, &plain);

constexpr int32_t pages = 4, page_size = 16, heads = 2, dim = 64;
constexpr size_t cache_size = size_t(pages) * page_size * heads * dim;
const sluice_kv_format paged = sluice_kv_pages(SLUICE_F16, heads, dim, page_size);

sluice_kv cache_of(uint16_t *k, uint16_t *v) {
  sluice_kv kv = sluice_make_kv(&paged, sluice_pages_hnd(k, page_size, heads, dim),
                                sluice_pages_hnd(v, page_size, heads, dim));
  kv.page_count = pages;
  return kv;
}

} // namespace

TEST_CASE("A plan runs the call that it is given, as the reference does", "[cpp]") {
  const sluice::Context context = emulated();
  constexpr int32_t batch = 2, rows = 5, keys = 19, q_heads = 4;
  Array<uint16_t> q(context, numbers(batch * rows * q_heads * dim, 1)),
      k(context, numbers(batch * keys * heads * dim, 2)), v(context, numbers(batch * keys * heads * dim, 3)),
      o(context, std::vector<uint16_t>(q.host.size()));
  const sluice_kv_format format = sluice_kv_tensors(SLUICE_F16, heads, dim);
  const sluice_mask causal = sluice_causal_mask();
  sluice_attention attention = sluice_make_attention(SLUICE_F16, q_heads, &format);
  attention.mask = &causal;
  attention.bounds = sluice_make_bounds(batch, rows, keys);

  context.preload(attention).value();
  const sluice::Plan plan = context.plan(attention).value();
  CHECK(plan.describe()->kernel == context.support(attention)->kernel + std::string());
  const auto call = [&](auto of, const auto &use) {
    const sluice_kv kv =
        sluice_make_kv(&format, sluice_bshd(of(k), keys, heads, dim), sluice_bshd(of(v), keys, heads, dim));
    const sluice_keys all = sluice_keys_of_equal(&kv, keys);
    use(sluice_make_call(batch, rows, sluice_bhsd(of(q), rows, q_heads, dim),
                         sluice_bhsd(of(o), rows, q_heads, dim), &all));
  };
  const uint64_t bytes = plan.describe()->workspace_bytes;
  Array<uint8_t> workspace(context, std::vector<uint8_t>(bytes + 1));
  sluice::Launch launch;
  launch.workspace = workspace.device();
  launch.workspace_bytes = bytes;
  call([](auto &array) { return array.device(); },
       [&](const sluice_attention_args &args) { plan.run(args, launch).value(); });
  context.wait().value();
  call([](auto &array) { return array.host.data(); },
       [&](const sluice_attention_args &args) { sluice::reference(attention, args).value(); });

  const std::vector<uint16_t> from_device = o.from_device();
  size_t wrong = 0;
  for (size_t i = 0; i < from_device.size(); ++i) // P is rounded to 11 bits, O once
    wrong += std::abs(number(from_device[i]) - number(o.host[i])) > 0x1p-10;
  CHECK(wrong == 0);
  CHECK(number(o.host[0]) > 0.2); // an O of zeros would agree with zeros
  CHECK(plan.counters()->runs == 1);
}

TEST_CASE("Appends, copies and gathers store what their references do", "[cpp]") {
  const sluice::Context context = emulated();
  constexpr int32_t tokens = 3;
  Array<uint16_t> k(context, numbers(tokens * heads * dim, 1)), v(context, numbers(tokens * heads * dim, 2)),
      k_cache(context, std::vector<uint16_t>(cache_size)), v_cache(context, k_cache.host),
      k_rows(context, std::vector<uint16_t>(k.host.size())), v_rows(context, k_rows.host);
  // Keys 0 to 2 of a sequence with page 1, which becomes page 3.
  Array<int64_t> slots(context, {16, 17, 18});
  Array<int32_t> pairs(context, {1, 3}), table(context, {3}), lengths(context, {tokens}),
      starts(context, {0, tokens});
  const auto steps = [&](auto of, const auto &do_append, const auto &do_copy, const auto &do_gather) {
    const sluice_kv cache = cache_of(of(k_cache), of(v_cache));
    do_append(sluice_make_append(&cache, SLUICE_F16, tokens, sluice_packed(of(k), heads, dim),
                                 sluice_packed(of(v), heads, dim), of(slots)));
    sluice::Sized<sluice_copy_args> copy;
    copy.source = copy.target = &cache;
    copy.pairs = of(pairs);
    copy.pair_count = 1;
    do_copy(copy);
    const sluice_kv_format format = sluice_kv_tensors(SLUICE_F16, heads, dim);
    const sluice_kv rows =
        sluice_make_kv(&format, sluice_packed(of(k_rows), heads, dim), sluice_packed(of(v_rows), heads, dim));
    sluice::Sized<sluice_gather_args> gather;
    gather.batch = 1;
    gather.source = &cache;
    gather.target = &rows;
    gather.pages.table = of(table);
    gather.pages.stride = 1;
    gather.lengths = of(lengths);
    gather.starts = of(starts);
    gather.tokens = tokens;
    do_gather(gather);
  };
  steps([](auto &array) { return array.device(); },
        [&](const sluice_append_args &args) { context.append(args).value(); },
        [&](const sluice_copy_args &args) { context.copy(args).value(); },
        [&](const sluice_gather_args &args) { context.gather(args).value(); });
  const auto on_host = [](const auto &args) { sluice::reference(args).value(); };
  steps([](auto &array) { return array.host.data(); }, on_host, on_host, on_host);
  for (const Array<uint16_t> *each : {&k_cache, &v_cache, &k_rows, &v_rows})
    CHECK(each->from_device() == each->host);
  CHECK(k_rows.host == k.host);
  CHECK(v_rows.host == v.host);
}

TEST_CASE("A merge weighs its parts by their LSEs", "[cpp]") {
  const sluice::Context context = emulated();
  Array<float> parts(context, std::vector<float>(2 * 8)), lse(context, {0, std::log(3.0f)}),
      o(context, std::vector<float>(8));
  std::fill(parts.host.begin() + 8, parts.host.end(), 4.0f);
  const Array<float> uploaded(context, parts.host);
  sluice::Sized<sluice_merge_args> merge;
  merge.tokens = merge.heads = 1;
  merge.head_dim = 8;
  merge.lse_base = SLUICE_LSE_LN;
  merge.parts.type = merge.o_format.type = SLUICE_F32;
  merge.parts.count = 2;
  merge.parts.o = sluice_bshd(uploaded.device(), 1, 1, 8);
  merge.parts.lse = sluice_bshd(lse.device(), 1, 1, 1);
  merge.o = sluice_bshd(o.device(), 1, 1, 8);
  context.merge(merge).value();
  for (const float element : o.from_device())
    CHECK(std::abs(element - 3) < 1e-5f);
}

TEST_CASE("A failed call gives the reason, as a value and as an exception", "[cpp]") {
  const sluice::Context context = emulated();
  const sluice_kv_format format = sluice_kv_tensors(SLUICE_F16, 2, 64);
  const sluice_attention attention = sluice_make_attention(SLUICE_F16, 3, &format);
  auto plan = context.plan(attention);
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
  auto support = context.support(attention);
  CHECK_THROWS_AS(support.value(), sluice::Exception);
  const auto &kept = support;
  CHECK_THROWS_AS(kept.value(), sluice::Exception);
  CHECK_THROWS_AS(context.preload(attention).value(), sluice::Exception);
  CHECK(context.kernel(0xffffffff).error().field() == "index");

  auto nowhere = sluice::Context::create(sluice::ContextDesc("gfx1:1"));
  REQUIRE_FALSE(nowhere);
  CHECK(nowhere.error().code() == SLUICE_WRONG_ARCH);
}

TEST_CASE("A failure of HIP is an error with HIP's code", "[cpp]") {
  const auto target = sluice::Context::create(sluice::ContextDesc("gfx942:304")).value();
  const sluice::Error error = sluice::Memory::allocate(target, 1).error(); // a target has no HIP
  CHECK(error.code() == SLUICE_HIP);
  CHECK(error.hip_code() == 801);
  CHECK(error.field() == "hipMalloc");
  CHECK(target.wait().error().field() == "hipStreamSynchronize");

  const sluice::Context context = emulated();
  const auto memory = sluice::Memory::allocate(context, 16).value();
  char bytes[16] = {};
  CHECK(memory.write(bytes, sizeof bytes));
  CHECK(memory.write(bytes, size_t(1) << 40).error().hip_code() != 0);
  CHECK(memory.read(bytes, size_t(1) << 40).error().field() == "hipMemcpy");
}

TEST_CASE("A function of several calls returns the error of the one that failed", "[cpp]") {
  const sluice::Context context = emulated();
  const auto step = [&](const sluice_attention &attention) -> sluice::Result<void> {
    const auto plan = context.plan(attention);
    if (!plan) return plan.error();
    return plan->run(sluice::Sized<sluice_attention_args>());
  };
  const auto no_plan = step(sluice_make_attention(0, 1, &plain));
  REQUIRE_FALSE(no_plan);
  CHECK(no_plan.error().field() == "q.type");
  CHECK_THROWS_AS(no_plan.value(), sluice::Exception);
  CHECK(step(one_head).error().field() == "key_sets");
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
  sluice::Context &itself = second;
  second = std::move(itself);
  CHECK(second.c() != nullptr);

  auto one = sluice::Memory::allocate(second, 16).value(),
       other = sluice::Memory::allocate(second, 16).value();
  void *const address = one.data();
  other = std::move(one);
  CHECK(other.data() == address);
  const sluice::Memory last = std::move(other);
  CHECK(last.data() == address);
  CHECK(other.data() == nullptr);

  sluice::Context third = emulated();
  sluice_context_destroy(third.let_go());
  CHECK(third.c() == nullptr);
}

TEST_CASE("A plan outlives its context", "[cpp]") {
  const sluice::Plan plan =
      sluice::Context::create(sluice::ContextDesc("gfx942:304")).value().plan(one_head).value();
  CHECK(plan.describe()->tile_q > 0);
  CHECK(plan.run(sluice::Sized<sluice_attention_args>()).error().field() == "key_sets");
}

TEST_CASE("What has been moved from refuses its calls", "[cpp]") {
  sluice::Context context = emulated();
  sluice::Plan plan = context.plan(one_head).value();
  const sluice::Plan kept_plan = std::move(plan);
  const sluice::Context kept = std::move(context);
  CHECK(plan.run(sluice::Sized<sluice_attention_args>()).error().field() == "plan");
  CHECK(plan.describe().error().field() == "plan");
  CHECK(plan.counters().error().field() == "plan");
  CHECK(kept_plan.counters()->runs == 0);
  CHECK(context.plan(one_head).error().field() == "context");
  CHECK(context.support(one_head).error().field() == "context");
  CHECK(context.preload(one_head).error().field() == "context");
  CHECK(context.preload().error().field() == "context");
  CHECK(context.device().error().field() == "context");
  CHECK(context.kernel_count().error().field() == "context");
  CHECK(context.append(sluice::Sized<sluice_append_args>()).error().field() == "context");
  CHECK(context.copy(sluice::Sized<sluice_copy_args>()).error().field() == "context");
  CHECK(context.gather(sluice::Sized<sluice_gather_args>()).error().field() == "context");
  CHECK(context.merge(sluice::Sized<sluice_merge_args>()).error().field() == "context");
  CHECK(context.set_ranges(true).error().field() == "context");
  CHECK(context.set_trace(nullptr, nullptr).error().field() == "context");
  CHECK(context.hip<int()>("hipInit") == nullptr);
}

TEST_CASE("Types know their blocks", "[cpp]") {
  for (uint32_t type = SLUICE_F16; type <= SLUICE_Q4_0; ++type)
    CHECK(sluice::element_bytes(type) == (type >= SLUICE_U4 ? 0 : sluice::block_of(type).bytes));
  CHECK(sluice::block_of(SLUICE_F32).bytes == 4);
  CHECK(sluice::block_of(SLUICE_U4).elements == 2);
  CHECK(sluice::block_of(SLUICE_Q8_0).bytes == 34);
  CHECK(sluice::block_of(SLUICE_Q4_0 + 1).elements == 0);
}

TEST_CASE("Kernels, devices and builds describe themselves", "[cpp]") {
  const sluice::Context context = emulated();
  CHECK(context.device()->chip == std::string("gfx942"));
  const uint32_t count = context.kernel_count().value();
  CHECK(count == sluice::build_info()->kernel_count);
  CHECK(context.kernel(count - 1)->name[0] != '\0');
  CHECK(context.hip<int()>("hipNoSuchFunction") == nullptr);
  int plans = 0;
  const auto count_plan = [](const sluice_trace_record *, void *user) { ++*static_cast<int *>(user); };
  context.set_trace(count_plan, &plans).value();
  context.plan(one_head).value();
  CHECK(plans == 1);
}
