//===- prefix_test.cpp - prefixes that rows share: what is refused and launched -------------------------===//
#include "split_fixture.h"

#include <array>
#include <functional>

using namespace sluice::test;

namespace {

using Call = AttentionCall;

const int32_t *array(size_t byte = 0) {
  return reinterpret_cast<const int32_t *>(device_memory + byte);
}

/// Two sequences of one row, which see one of two prefixes of at most 32 keys.
Call dense() {
  Call call = decode_call();
  call.attention.flags = SLUICE_ATTENTION_PREFIXES;
  call.attention.bounds.groups = 2;
  call.attention.bounds.group_keys = 32;
  call.attention.bounds.q_rows = 4;
  call.args.rows.max_len = 1;
  call.args.q.stride[0] = call.args.q.stride[1];
  call.args.o.stride[0] = call.args.o.stride[1];
  call.lse = sluice_make_tensor(call.lse.data, 8, 8, 1, 0);
  call.args.key_sets = 2;
  call.keys[1].groups = 2;
  call.keys[1].group_starts = array(64);
  call.keys[1].rows.max_len = 32;
  call.prefix_kv.k = sluice_bshd(device_memory + 16, 32, 2, 128);
  call.prefix_kv.v = sluice_bshd(device_memory + 32, 32, 2, 128);
  return call;
}

Call paged() {
  Call call = dense();
  make_paged(call);
  call.keys[1].kv = &call.kv;
  call.keys[1].rows.lengths = array(128);
  call.keys[1].pages.table = array(256);
  call.keys[1].pages.stride = 2;
  return call;
}

Call csr() {
  Call call = paged();
  call.format.page_table = SLUICE_PAGE_TABLE_CSR;
  call.keys[0].pages.stride = call.keys[1].pages.stride = 0;
  call.keys[0].pages.starts = array();
  call.keys[1].pages.starts = array(192);
  return call;
}

Call ragged() {
  Call call = dense();
  make_ragged(call);
  return call;
}

Call v_in_k() {
  Call call = dense();
  call.format.flags = SLUICE_KV_V_IN_K;
  call.format.v = {};
  call.kv.v = call.prefix_kv.v = {};
  return call;
}

Call without() {
  Call call = dense();
  call.attention.flags = 0;
  call.attention.bounds.groups = call.attention.bounds.group_keys = 0;
  call.args.key_sets = 1;
  return call;
}

struct ProblemRefusal {
  std::function<void(Call &)> change;
  sluice_status status;
  const char *field;
  const char *message;
};

#define SLUICE_SET(member, value) [](Call &c) { c.member = value; }
#define SLUICE_FLAG(member, flag)                                                                            \
  [](Call &c) {                                                                                              \
    c.mask.flags = 0;                                                                                        \
    c.member = flag;                                                                                         \
  }

const ProblemRefusal problem_refusals[] = {
    {SLUICE_SET(attention.bounds.groups, 0), SLUICE_INVALID_ARGUMENT, "bounds.groups",
     "bounds.groups is 0; it must be at least 1 with SLUICE_ATTENTION_PREFIXES"},
    {SLUICE_SET(attention.bounds.groups, -1), SLUICE_INVALID_ARGUMENT, "bounds.groups",
     "bounds.groups is -1"},
    {SLUICE_SET(attention.bounds.group_keys, 0), SLUICE_INVALID_ARGUMENT, "bounds.group_keys",
     "bounds.group_keys is 0"},
    {SLUICE_SET(attention.bounds.q_rows, 0), SLUICE_INVALID_ARGUMENT, "bounds.q_rows", "bounds.q_rows is 0"},
    {SLUICE_SET(attention.flags, 0), SLUICE_INVALID_ARGUMENT, "bounds.groups",
     "bounds.groups is 2, but flags lacks SLUICE_ATTENTION_PREFIXES"},
    {[](Call &c) {
       c.attention.flags = 0;
       c.attention.bounds.groups = 0;
     },
     SLUICE_INVALID_ARGUMENT, "bounds.group_keys",
     "bounds.group_keys is 32, but flags lacks SLUICE_ATTENTION_PREFIXES"},
    {SLUICE_SET(mask.alignment, SLUICE_TOP_LEFT), SLUICE_UNSUPPORTED, "mask.alignment",
     "nearest supported: SLUICE_BOTTOM_RIGHT (0)"},
    {SLUICE_FLAG(mask.flags, SLUICE_MASK_WINDOW_LEFT), SLUICE_UNSUPPORTED, "mask.flags",
     "mask.flags has SLUICE_MASK_WINDOW_LEFT and SLUICE_ATTENTION_PREFIXES; nearest supported: without "
     "SLUICE_MASK_WINDOW_LEFT"},
    {SLUICE_FLAG(mask.flags, SLUICE_MASK_WINDOW_RIGHT), SLUICE_UNSUPPORTED, "mask.flags",
     "nearest supported: without SLUICE_MASK_WINDOW_RIGHT"},
    {SLUICE_FLAG(scores.flags, SLUICE_SCORES_ALIBI), SLUICE_UNSUPPORTED, "scores.flags",
     "nearest supported: without SLUICE_SCORES_ALIBI"},
    {[](Call &c) {
       make_paged(c);
       c.mask.flags |= SLUICE_MASK_MISSING_PAGES;
     },
     SLUICE_UNSUPPORTED, "mask.flags", "nearest supported: without SLUICE_MASK_MISSING_PAGES"},
    {SLUICE_FLAG(mask.flags, SLUICE_MASK_BITS), SLUICE_UNSUPPORTED, "mask.flags",
     "nearest supported: without SLUICE_MASK_BITS"},
    {SLUICE_SET(scores.bias_type, SLUICE_F16), SLUICE_UNSUPPORTED, "scores.bias_type",
     "scores.bias_type is f16, and flags has SLUICE_ATTENTION_PREFIXES; nearest supported: 0 (no bias)"},
    {[](Call &c) {
       c.mask.flags = SLUICE_MASK_CAUSAL_BY_SEQUENCE;
       c.mask.alignment = SLUICE_TOP_LEFT;
     },
     SLUICE_UNSUPPORTED, "mask.alignment",
     "mask.flags has SLUICE_MASK_CAUSAL_BY_SEQUENCE and SLUICE_ATTENTION_PREFIXES; nearest supported: "
     "SLUICE_BOTTOM_RIGHT "
     "(0)"},
    {SLUICE_FLAG(mask.flags, SLUICE_MASK_BITS | SLUICE_MASK_BITS_OF_NEW), SLUICE_UNSUPPORTED, "mask.flags",
     "nearest supported: without SLUICE_MASK_BITS_OF_NEW"},
    {[](Call &c) {
       c.scores.flags |= SLUICE_SCORES_BIAS_SCALE;
       c.scores.bias_type = SLUICE_F16;
     },
     SLUICE_UNSUPPORTED, "scores.flags", "nearest supported: without SLUICE_SCORES_BIAS_SCALE"},
    {SLUICE_SET(format.k.scale_kind, SLUICE_SCALE_PER_TOKEN), SLUICE_UNSUPPORTED, "kv.k.scale_kind",
     "and kv.page_size is 0: keys of groups outside of pages have no such scales; nearest supported: "
     "SLUICE_SCALE_PER_HEAD (2)"},
    {SLUICE_SET(format.v.scale_kind, SLUICE_SCALE_PER_TOKEN), SLUICE_UNSUPPORTED, "kv.v.scale_kind",
     "and kv.page_size is 0: keys of groups outside of pages have no such scales; nearest supported: "
     "SLUICE_SCALE_PER_HEAD (2)"},
    {[](Call &c) { c.format.k = c.format.v = {SLUICE_U4, SLUICE_SCALE_PER_GROUP, 32, 0, 0, 0}; },
     SLUICE_UNSUPPORTED, "flags",
     "and kv.page_size is 0: keys of groups outside of pages have no such scales; nearest supported: without "
     "SLUICE_ATTENTION_PREFIXES"},
    {SLUICE_SET(attention.workspace_ceiling_bytes, 1000), SLUICE_UNSUPPORTED, "workspace_ceiling_bytes",
     "workspace_ceiling_bytes is 1000; with SLUICE_ATTENTION_PREFIXES the nearest supported is 33024"},
    {SLUICE_SET(attention.bounds.q_rows, int64_t{1} << 28), SLUICE_UNSUPPORTED, "bounds.q_rows",
     "bounds.q_rows is 268435456 with 8 heads; with SLUICE_ATTENTION_PREFIXES the nearest supported is "},
};

#undef SLUICE_FLAG

struct CallRefusal {
  Call (*good)();
  std::function<void(Call &)> change;
  sluice_status status;
  const char *field;
  const char *message;
};

constexpr sluice_status invalid = SLUICE_INVALID_ARGUMENT;

#define SLUICE_ODD(type) reinterpret_cast<const type *>(device_memory + 2)

const CallRefusal call_refusals[] = {
    {dense, SLUICE_SET(args.key_sets, 1), invalid, "key_sets",
     "key_sets is 1; it must be 2 with SLUICE_ATTENTION_PREFIXES"},
    {dense, SLUICE_SET(keys[1].kv, nullptr), invalid, "keys[1].kv", "keys[1].kv is NULL"},
    {dense, SLUICE_SET(prefix_kv.format, nullptr), invalid, "keys[1].kv.format", "keys[1].kv.format is NULL"},
    {dense, SLUICE_SET(keys[1].rows.reserved, 1), invalid, "keys[1].rows.reserved",
     "it must be 0: it is reserved"},
    {dense, SLUICE_SET(keys[1].rows.starts, array()), invalid, "keys[1].rows.starts",
     "is given, but each group has a sequence of its own"},
    {dense, SLUICE_SET(keys[1].rows.total, 4), invalid, "keys[1].rows.total",
     "is 4; it must be 0: each group has a sequence of its own"},
    {dense, SLUICE_SET(keys[1].pages.head_stride, 4), SLUICE_UNSUPPORTED, "keys[1].pages.head_stride",
     "is 4; nearest supported: 0"},
    {dense, SLUICE_SET(keys[1].groups, -1), invalid, "keys[1].groups",
     "keys[1].groups is -1; it must not be negative"},
    {dense, SLUICE_SET(keys[1].groups, 3), invalid, "keys[1].groups",
     "keys[1].groups is 3; the problem's bounds.groups is 2"},
    {dense, SLUICE_SET(keys[1].rows.max_len, -2), invalid, "keys[1].rows.max_len",
     "keys[1].rows.max_len is -2; it must not be negative"},
    {dense, SLUICE_SET(keys[1].rows.max_len, 33), invalid, "keys[1].rows.max_len",
     "keys[1].rows.max_len is 33; the problem's bounds.group_keys is 32"},
    {dense, SLUICE_SET(keys[1].group_starts, nullptr), invalid, "keys[1].group_starts",
     "keys[1].group_starts is NULL"},
    {dense, SLUICE_SET(keys[1].group_starts, SLUICE_ODD(int32_t)), invalid, "keys[1].group_starts",
     "aligned to 4 bytes"},
    {dense, SLUICE_SET(keys[1].rows.lengths, SLUICE_ODD(int32_t)), invalid, "keys[1].rows.lengths",
     "aligned to 4 bytes"},
    {dense, SLUICE_SET(keys[1].pages.table, array()), invalid, "keys[1].pages.table",
     "is given, but the problem's kv.page_size is 0"},
    {dense, SLUICE_SET(keys[1].pages.starts, array()), invalid, "keys[1].pages.starts",
     "is given, but the problem's kv.page_size is 0"},
    {dense, SLUICE_SET(keys[1].pages.stride, 2), invalid, "keys[1].pages.stride",
     "it must be 0 without SLUICE_PAGE_TABLE_BLOCK"},
    {dense, SLUICE_SET(prefix_kv.k.data, nullptr), invalid, "keys[1].kv.k.data", "keys[1].kv.k.data is NULL"},
    {dense, SLUICE_SET(prefix_kv.v.data, nullptr), invalid, "keys[1].kv.v.data", "keys[1].kv.v.data is NULL"},
    {dense, SLUICE_SET(prefix_kv.k.stride[1], 4), invalid, "keys[1].kv.k.stride[1]",
     "it must be a multiple of 8"},
    {dense, SLUICE_SET(prefix_kv.v.stride[3], 2), invalid, "keys[1].kv.v.stride[3]", "it must be 1"},
    {dense, SLUICE_SET(prefix_kv.k.stride[1], int64_t{1} << 25), SLUICE_UNSUPPORTED, "keys[1].kv.k.stride[1]",
     "nearest supported: 33554424"},
    {dense, SLUICE_SET(prefix_kv.v.stride[1], int64_t{1} << 25), SLUICE_UNSUPPORTED, "keys[1].kv.v.stride[1]",
     "nearest supported: 33554424"},
    {dense,
     [](Call &c) {
       c.attention.bounds.q_len = c.args.batch = c.args.rows.max_len = 2;
       c.args.q.stride[0] = 3 * 8 * 128;
       c.args.o.stride[0] = 2 * 8 * 128;
       c.lse = {};
       c.attention.lse = SLUICE_LSE_NONE;
     },
     invalid, "q.stride[0]",
     "q.stride[0] is 3072; with SLUICE_ATTENTION_PREFIXES and without rows.starts it must be rows.max_len * "
     "q.stride[1], "
     "which is 2 * 1024"},
    {ragged, SLUICE_SET(args.rows.total, 5), invalid, "rows.total",
     "rows.total is 5; the problem's bounds.q_rows is 4"},
    {ragged, SLUICE_SET(prefix_kv.k.data, nullptr), invalid, "keys[1].kv.k.data",
     "keys[1].kv.k.data is NULL"},
    {v_in_k, SLUICE_SET(prefix_kv.v.data, device_memory), invalid, "keys[1].kv.v.data",
     "the problem's kv.flags have SLUICE_KV_V_IN_K"},
    {paged, SLUICE_SET(keys[1].rows.max_len, 0), invalid, "keys[1].rows.max_len",
     "keys[1].rows.max_len is 0, but keys[1].rows.lengths is given"},
    {paged, SLUICE_SET(keys[1].pages.stride, 0), invalid, "keys[1].pages.stride",
     "keys[1].pages.stride is 0; it must be the entries"},
    {paged, SLUICE_SET(keys[1].pages.table, nullptr), invalid, "keys[1].pages.table",
     "keys[1].pages.table is NULL"},
    {paged, SLUICE_SET(keys[1].pages.table, SLUICE_ODD(int32_t)), invalid, "keys[1].pages.table",
     "aligned to 4 bytes"},
    {paged, SLUICE_SET(keys[1].pages.starts, array()), invalid, "keys[1].pages.starts",
     "the problem's kv.page_table is SLUICE_PAGE_TABLE_BLOCK"},
    {paged, SLUICE_SET(keys[1].pages.stride, -2), invalid, "keys[1].pages.stride",
     "it must not be negative, except as SLUICE_SHARED (-1)"},
    {paged, SLUICE_SET(keys[1].pages.stride, 1), invalid, "keys[1].pages.stride",
     "keys[1].pages.stride is 1; it must be at least 2, the pages of 16 keys for a keys[1].rows.max_len of "
     "32"},
    {paged,
     [](Call &c) {
       c.prefix_kv = c.kv;
       c.prefix_kv.k.data = device_memory;
       c.keys[1].kv = &c.prefix_kv;
     },
     SLUICE_UNSUPPORTED, "keys[1].kv",
     "keys[1].kv is not the cache of keys[0]; nearest supported: keys[0].kv"},
    {csr, SLUICE_SET(keys[1].pages.starts, nullptr), invalid, "keys[1].pages.starts",
     "keys[1].pages.starts is NULL, but the problem's kv.page_table is SLUICE_PAGE_TABLE_CSR"},
    {csr, SLUICE_SET(keys[1].pages.stride, 2), invalid, "keys[1].pages.stride",
     "it must be 0 without SLUICE_PAGE_TABLE_BLOCK"},
    {without, SLUICE_SET(args.key_sets, 2), invalid, "key_sets",
     "key_sets is 2; it must be 1 without SLUICE_ATTENTION_PREFIXES"},
};

#undef SLUICE_SET
#undef SLUICE_ODD

struct Launch {
  std::string kernel;
  std::array<uint32_t, 3> grid;
  std::string reason;
};
void remember(const sluice_trace_record *record, void *user) {
  if (record->event != SLUICE_TRACE_RUN) return;
  static_cast<std::vector<Launch> *>(user)->push_back(
      {record->kernel, {record->grid[0], record->grid[1], record->grid[2]}, record->reason});
}

} // namespace

TEST_CASE("a problem with prefixes needs their bounds, and excludes what depends on all keys", "[prefix]") {
  const ContextHandle context = split_context(SLUICE_DEVICE_TARGET);
  for (const ProblemRefusal &refusal : problem_refusals) {
    Call call = dense();
    Error error;
    CHECK(query(context, call, &error) == SLUICE_OK);
    INFO(error.message);
    refusal.change(call);
    check_refusal(query(context, call, &error), error, refusal.status, refusal.field, refusal.message);
  }
}

TEST_CASE("every rule of a call with prefixes is checked in its mode", "[prefix]") {
  FakeHip hip;
  const ContextHandle context = split_context(SLUICE_DEVICE_HIP);
  const sluice_launch launch = with_workspace();
  for (const CallRefusal &refusal : call_refusals)
    check_call_refusal(hip, context, launch, refusal, refusal.status);
}

TEST_CASE("both sets of keys have the same scales", "[prefix]") {
  FakeHip hip;
  const ContextHandle context = split_context(SLUICE_DEVICE_HIP);
  const sluice_launch launch = with_workspace();
  Call call = dense();
  call.format.k.scale_kind = SLUICE_SCALE_PER_HEAD;
  call.scales.k.data = device_memory;
  sluice_kv_scales others = call.scales;
  call.prefix_kv.scales = &others;
  const PlanHandle plan = make_plan(context, call);
  CHECK(run(plan, call, &launch) == SLUICE_OK);
  others.k.data = device_memory + 4;
  Error error;
  check_refusal(run(plan, call, &launch, &error), error, SLUICE_UNSUPPORTED, "keys[1].kv.scales",
                "keys[1].kv.scales are not those of keys[0]; nearest supported: the same");
}

TEST_CASE("a grid has up to 65535 prefixes", "[prefix]") {
  FakeHip hip;
  const ContextHandle context = split_context(SLUICE_DEVICE_HIP);
  Call call = dense();
  call.attention.bounds.groups = 65536;
  const sluice_launch launch = with_workspace();
  call.keys[1].groups = 65535;
  CHECK(run(make_plan(context, call), call, &launch) == SLUICE_OK);
  call.keys[1].groups = 65536;
  Error error;
  check_refusal(run(make_plan(context, call), call, &launch, &error), error, SLUICE_UNSUPPORTED,
                "keys[1].groups", "keys[1].groups is 65536; nearest supported: 65535");
}

TEST_CASE("each level of keys has its launch, and one merge follows", "[prefix]") {
  FakeHip hip;
  const ContextHandle context = split_context(SLUICE_DEVICE_HIP);
  std::vector<Launch> launches;
  sluice_set_trace(context.get(), remember, &launches, nullptr);
  sluice_launch launch = with_workspace();
  launch.signal_event = FakeHip::handle(13);
  for (Call (*const good)() : {dense, ragged, paged, csr}) {
    const Call call = good();
    const PlanHandle plan = make_plan(context, call);
    sluice_plan_info info;
    sluice_plan_info_init(&info, sizeof info);
    REQUIRE(sluice_plan_describe(plan.get(), &info, nullptr) == SLUICE_OK);
    launches.clear();
    hip.forget_calls();
    Error error;
    const sluice_status status = run(plan, call, &launch, &error);
    INFO(error.message);
    REQUIRE(status == SLUICE_OK);
    REQUIRE(launches.size() == 3);
    CHECK(launches[0].grid[2] == 2); // the prefixes
    CHECK(launches[1].grid[2] == 2); // the sequences
    CHECK(launches[2].kernel == "merge_states_f32_f16");
    CHECK(launches[0].reason == info.reason);
    CHECK_THAT(info.reason, Catch::StartsWith("prefixes: attn_fwd_f16_d128_"));
    CHECK_THAT(info.reason, Catch::Contains("; own keys: "));
    CHECK(hip.count("hipModuleLaunchKernel") == 3);
    CHECK(hip.count("hipEventRecord") == 1);
    CHECK(hip.call_names().back() == "hipEventRecord");
  }
}

TEST_CASE("prefixes may be as long as the plan's bound", "[prefix]") {
  FakeHip hip;
  const ContextHandle context = split_context(SLUICE_DEVICE_HIP);
  Call call = paged();
  const sluice_launch launch = with_workspace();
  call.keys[1].rows.max_len = SLUICE_PLAN_BOUND;
  CHECK(run(make_plan(context, call), call, &launch) == SLUICE_OK);
  // ... and is checked like it.
  call.keys[1].pages.stride = 1;
  Error error;
  check_refusal(run(make_plan(context, call), call, &launch, &error), error, SLUICE_INVALID_ARGUMENT,
                "keys[1].pages.stride", "for a keys[1].rows.max_len of 32");
}

TEST_CASE("prefixes in pages have the same length unless their lengths are given, and may share a table",
          "[prefix]") {
  FakeHip hip;
  const ContextHandle context = split_context(SLUICE_DEVICE_HIP);
  const sluice_launch launch = with_workspace();
  Call call = paged();
  call.keys[1].rows.lengths = nullptr;
  call.keys[1].pages.stride = SLUICE_SHARED;
  REQUIRE(run(make_plan(context, call), call, &launch) == SLUICE_OK);
  CHECK(hip.attentions[0].kernargs.kv_len == 32);
  CHECK(hip.attentions[0].kernargs.kv_lengths == 0);
  CHECK(hip.attentions[0].kernargs.page_table_stride == 0);
}

TEST_CASE("a prefix inherits nothing of the sequences' own keys", "[prefix]") {
  FakeHip hip;
  const ContextHandle context = split_context(SLUICE_DEVICE_HIP);
  const sluice_launch launch = with_workspace();
  Call call = ragged();
  call.keys[0].rows.total = 14; // fewer rows than a prefix has
  const PlanHandle plan = make_plan(context, call);
  hip.forget_calls();
  REQUIRE(run(plan, call, &launch) == SLUICE_OK);
  REQUIRE(hip.attention_count >= 2);
  CHECK(hip.attentions[0].kernargs.kv_len == 32);
  CHECK(hip.attentions[0].kernargs.kv_rows == INT32_MAX);
  CHECK(hip.attentions[1].kernargs.kv_rows == 14);

  // All KV heads share the entries of a prefix.
  call = paged();
  call.keys[0].pages.head_stride = 100;
  const PlanHandle paged_plan = make_plan(context, call);
  hip.forget_calls();
  REQUIRE(run(paged_plan, call, &launch) == SLUICE_OK);
  CHECK(hip.attentions[0].kernargs.page_table_head_stride == 0);
  CHECK(hip.attentions[1].kernargs.page_table_head_stride == 100);
}

TEST_CASE("a call may have no prefixes, or prefixes without keys", "[prefix]") {
  FakeHip hip;
  const ContextHandle context = split_context(SLUICE_DEVICE_HIP);
  const sluice_launch launch = with_workspace();
  for (Call (*const good)() : {dense, ragged, paged, csr}) {
    Call call = good();
    call.prefix_kv.k = call.prefix_kv.v = {};
    call.keys[1].pages.table = nullptr;
    Call none = call;
    none.keys[1].groups = 0;
    none.keys[1].rows.lengths = none.keys[1].pages.starts = nullptr;
    const PlanHandle plan = make_plan(context, call);
    hip.forget_calls();
    Error error;
    sluice_status status = run(plan, none, &launch, &error);
    INFO(error.message);
    REQUIRE(status == SLUICE_OK);
    CHECK(hip.attention_count == 1);
    call.keys[1].rows.max_len = 0;
    call.keys[1].rows.lengths = nullptr;
    hip.forget_calls();
    status = run(plan, call, &launch, &error);
    INFO(error.message);
    REQUIRE(status == SLUICE_OK);
    CHECK(hip.attention_count == 2);
    CHECK(hip.attentions[0].kernargs.kv_len == 0);
  }
}
