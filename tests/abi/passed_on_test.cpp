//===- passed_on_test.cpp - values that the entry points pass on unchanged ------------------------------===//
#include "cache_op_fixture.h"
#include "split_fixture.h"

using namespace sluice::test;

TEST_CASE("a caller's resolver gets the caller's pointer in every call", "[context]") {
  FakeHip hip;
  struct Caller {
    int asked = 0;
  } caller;
  const auto resolve = [](const char *name, void *user) {
    ++static_cast<Caller *>(user)->asked;
    return FakeHip::resolve(name, nullptr);
  };
  sluice_context_desc desc = context_desc(SLUICE_DEVICE_HIP);
  desc.hip_resolver = resolve;
  desc.hip_resolver_user = &caller;
  const ContextHandle context = make_context(desc);
  CHECK(caller.asked > 0);
  const int asked = caller.asked;
  CHECK(sluice_context_hip_symbol(context.get(), "hipInit") == FakeHip::resolve("hipInit", nullptr));
  CHECK(caller.asked == asked + 1);
}

TEST_CASE("a plan's description has the same workspace as the answer about support", "[problem]") {
  const ContextHandle context = split_context(SLUICE_DEVICE_TARGET);
  const AttentionCall call = decode_call();
  sluice_support support;
  sluice_support_init(&support, sizeof support);
  REQUIRE(sluice_attention_support(context.get(), &call.attention, &support, nullptr) == SLUICE_OK);
  const PlanHandle plan = make_plan(context, call);
  sluice_plan_info info;
  sluice_plan_info_init(&info, sizeof info);
  REQUIRE(sluice_plan_describe(plan.get(), &info, nullptr) == SLUICE_OK);
  CHECK(info.workspace_bytes > 0);
  CHECK(info.workspace_bytes == support.workspace_bytes);
  CHECK(info.workspace_alignment == 256);
  CHECK(support.workspace_alignment == 256);
  CHECK(support.pointer_alignment == 16);
  CHECK(support.stride_multiple == 8);
}

TEST_CASE("the problem of a preload is checked like any other", "[context]") {
  FakeHip hip;
  const ContextHandle context = fake_context();
  AttentionCall call = good_call();
  call.attention.q_heads = 0;
  Error error;
  check_refusal(sluice_attention_preload(context.get(), &call.attention, &error), error,
                SLUICE_INVALID_ARGUMENT, "q_heads", "q_heads is 0; it must be at least 1");
  CHECK(hip.count("hipModuleLoadData") == 0);
}

TEST_CASE("a listed kernel has the numbers of its name and entry", "[problem]") {
  const ContextHandle context = split_context(SLUICE_DEVICE_TARGET);
  uint32_t count = 0;
  REQUIRE(sluice_list_kernels(context.get(), 0, nullptr, &count, nullptr) == SLUICE_OK);
  bool is_seen = false;
  for (uint32_t i = 0; i < count; ++i) {
    sluice_kernel_info info;
    sluice_kernel_info_init(&info, sizeof info);
    REQUIRE(sluice_list_kernels(context.get(), i, &info, nullptr, nullptr) == SLUICE_OK);
    if (info.name != std::string("attn_fwd_f16_d128_q64_kv16_w4_decode")) continue;
    is_seen = true;
    CHECK(info.dtype == SLUICE_F16);
    CHECK(info.head_dim_qk == 128);
    CHECK(info.head_dim_v == 128);
    CHECK(info.tile_q == 64);
    CHECK(info.tile_kv == 16);
    CHECK(info.waves == 4);
    CHECK(info.threads == 256);
    CHECK(info.lds_bytes == 65536);
  }
  CHECK(is_seen);
}

TEST_CASE("host tensors are aligned to their elements, and lengths have no limit of a device", "[problem]") {
  alignas(16) static uint16_t ones[64] = {};
  uint16_t result[8] = {};
  const int32_t keys = 2;
  AttentionCall call;
  call.format = sluice_kv_tensors(SLUICE_F16, 1, 8);
  call.attention.q_heads = 1;
  call.attention.q.type = call.attention.o.type = SLUICE_F16;
  call.args.batch = call.args.rows.max_len = 1;
  call.args.q = sluice_packed(ones, 1, 8);
  call.args.o = sluice_packed(result, 1, 8);
  call.keys[0].rows.max_len = INT32_MAX;
  call.keys[0].rows.lengths = &keys;
  call.kv.k = call.kv.v = {ones, {0, 0, 8, 1}};
  Error error;
  const sluice_status status = sluice_attention_reference(&call.attention, &call.args, &error);
  INFO(error.message);
  CHECK(status == SLUICE_OK);
  call.args.q.data = reinterpret_cast<char *>(ones) + 1;
  check_refusal(sluice_attention_reference(&call.attention, &call.args, &error), error,
                SLUICE_INVALID_ARGUMENT, "q.data", "it must be aligned to 2 bytes");
}

namespace {

int leaves_it(void *) {
  return 0;
}
int leaves_attribute(int *, int, int) {
  return 0;
}

/// FakeHip, except that the function named by `user` succeeds and writes nothing.
void *resolve_but_one(const char *name, void *user) {
  if (std::string(name) != static_cast<const char *>(user)) return FakeHip::resolve(name, nullptr);
  return std::string(name) == "hipDeviceGetAttribute" ? reinterpret_cast<void *>(&leaves_attribute)
                                                      : reinterpret_cast<void *>(&leaves_it);
}

} // namespace

TEST_CASE("values that the caller's HIP leaves unwritten count as zero", "[context]") {
  FakeHip hip;
  char count[] = "hipGetDeviceCount", attribute[] = "hipDeviceGetAttribute",
       version[] = "hipRuntimeGetVersion";
  sluice_context_desc desc = context_desc(SLUICE_DEVICE_HIP);
  desc.hip_resolver = resolve_but_one;
  sluice_context *context = nullptr;
  Error error;
  desc.hip_resolver_user = count;
  check_refusal(sluice_context_create(&desc, &context, &error), error, SLUICE_NO_DEVICE, "device_ordinal",
                "caller has 0 devices");
  desc.hip_resolver_user = attribute;
  check_refusal(sluice_context_create(&desc, &context, &error), error, SLUICE_HIP, "",
                "hipDeviceGetAttribute returned 0 for attribute");
  desc.hip_resolver_user = version;
  const ContextHandle made = make_context(desc);
  sluice_device_info info;
  sluice_device_info_init(&info, sizeof info);
  REQUIRE(sluice_context_device(made.get(), &info, nullptr) == SLUICE_OK);
  CHECK(info.hip_runtime_version == 0);
  // One compute unit is enough.
  hip.attributes[63] = 1;
  CHECK(make_context(context_desc(SLUICE_DEVICE_HIP)) != nullptr);
}

TEST_CASE("a record of an append describes all of its launch", "[cache_ops]") {
  FakeHip hip;
  const ContextHandle context = cache_op_context();
  static sluice_trace_record seen;
  static std::string reason;
  const auto note = [](const sluice_trace_record *record, void *) {
    seen = *record;
    reason = record->reason;
  };
  REQUIRE(sluice_set_trace(context.get(), note, nullptr, nullptr) == SLUICE_OK);
  REQUIRE(run(context, good_append()) == SLUICE_OK);
  CHECK(seen.struct_size == sizeof seen);
  for (int i = 0; i < 3; ++i) {
    CHECK(seen.grid[i] == hip.launch.grid[i]);
    CHECK(seen.block[i] == hip.launch.block[i]);
  }
  CHECK(seen.lds_bytes == cache_op_entry("kv_append", "f16", "f16").lds_bytes);
  CHECK(seen.workspace_bytes == 0);
  CHECK(reason == "the only kernel for its types");
}
