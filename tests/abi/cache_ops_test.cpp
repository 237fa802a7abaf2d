//===- cache_ops_test.cpp - appends and merges: launches, loading ---------------------------------------===//
#include "cache_op_fixture.h"

#include <functional>

using namespace sluice::test;

namespace {

constexpr sluice_status invalid = SLUICE_INVALID_ARGUMENT;
const void *const listed[3] = {device_memory, device_memory + 32, device_memory + 16};

} // namespace

TEST_CASE("calls that follow the rules are enqueued", "[cache_ops]") {
  FakeHip hip;
  const ContextHandle context = cache_op_context();
  const sluice_launch launch = good_launch();
  const auto is_good = [&](const auto &call) {
    Error error;
    const size_t launches = hip.count("hipModuleLaunchKernel");
    const sluice_status status = run(context, call, &launch, &error);
    INFO(error.field << ": " << error.message);
    CHECK(status == SLUICE_OK);
    CHECK(hip.count("hipModuleLaunchKernel") == launches + 1);
  };
  is_good(good_append());
  is_good(good_table_append());
  is_good(good_step());
  AppendCall append = good_append();
  put_v_in_k(append);
  is_good(append);
  append = good_append();
  append.args.k.stride[1] = append.args.k.stride[2] = 0; // an input may repeat itself
  is_good(append);
  append = good_append();
  append.cache.format.page_size = 1; // pages of one row have no distance between rows
  append.cache.kv.k.stride[1] = append.cache.kv.v.stride[1] = 0;
  is_good(append);
  is_good(good_merge());
  sluice_merge_args merge = good_merge();
  merge.lse = {};
  merge.sinks = at_byte<float>(4);
  is_good(merge);
  merge.flags = SLUICE_MERGE_INFINITY_IS_EMPTY;
  is_good(merge);
  part_sequences(merge);
  merge.lse = {};
  merge.lse_sequence_stride = 0;
  is_good(merge);
  list_parts(merge, listed, listed);
  is_good(merge);
  // No workspace is needed, and a given one is not looked at.
  sluice_launch odd = good_launch();
  odd.workspace = device_memory + 1;
  odd.workspace_bytes = 3;
  CHECK(run(context, append, &odd) == SLUICE_OK);
  odd.workspace = nullptr;
  CHECK(run(context, merge, &odd) == SLUICE_OK);
}

TEST_CASE("null arguments of appends and merges are refused by name", "[cache_ops]") {
  FakeHip hip;
  const ContextHandle context = cache_op_context();
  const AppendCall append = good_append();
  const sluice_merge_args merge = good_merge();
  const sluice_launch launch = good_launch();
  Error error;
  check_refusal(sluice_cache_append(nullptr, &append.args, &launch, &error), error, invalid, "context",
                "NULL");
  check_refusal(sluice_cache_append(context.get(), nullptr, &launch, &error), error, invalid, "args",
                "args is NULL");
  check_refusal(sluice_cache_append_reference(nullptr, &error), error, invalid, "args", "args is NULL");
  check_refusal(sluice_attention_merge(nullptr, &merge, &launch, &error), error, invalid, "context", "NULL");
  check_refusal(sluice_attention_merge(context.get(), nullptr, &launch, &error), error, invalid, "args",
                "args is NULL");
}

TEST_CASE("an append and a merge without a launch go to the default stream", "[cache_ops]") {
  FakeHip hip;
  const ContextHandle context = cache_op_context();
  const AppendCall append = good_append();
  const sluice_merge_args merge = good_merge();
  hip.launch.stream = FakeHip::handle(5);
  CHECK(run(context, append) == SLUICE_OK);
  CHECK(hip.launch.stream == nullptr);
  hip.launch.stream = FakeHip::handle(5);
  CHECK(run(context, merge) == SLUICE_OK);
  CHECK(hip.launch.stream == nullptr);
}

TEST_CASE("a target has no device to append on", "[cache_ops]") {
  const ContextHandle context = cache_op_context(SLUICE_DEVICE_TARGET);
  const AppendCall append = good_append();
  const sluice_merge_args merge = good_merge();
  const sluice_launch launch = good_launch();
  Error error;
  check_refusal(run(context, append, &launch, &error), error, SLUICE_NO_DEVICE, "context", "gfx942");
  check_refusal(run(context, merge, &launch, &error), error, SLUICE_NO_DEVICE, "context", "gfx942");
}

TEST_CASE("the first call loads the kernel, the others find it", "[cache_ops]") {
  FakeHip hip;
  const ContextHandle context = cache_op_context();
  const AppendCall append = good_append();
  const sluice_merge_args merge = good_merge();
  const sluice_launch launch = good_launch();
  for (int i = 0; i < 3; ++i) {
    CHECK(run(context, append, &launch) == SLUICE_OK);
    CHECK(run(context, merge, &launch) == SLUICE_OK);
  }
  CHECK(hip.functions == std::vector<std::string>{"kv_append_f16_f16", "merge_states_f32_f16"});
  CHECK(hip.launch.block[0] == 256);
  CHECK(hip.launch.stream == launch.stream);
  CHECK(hip.launch.kernarg_bytes == sizeof(sluice::package::MergeKernargs));
}

TEST_CASE("a capture needs kernels that are loaded", "[cache_ops]") {
  FakeHip hip;
  const ContextHandle context = cache_op_context();
  const AppendCall append = good_append(), step = good_step();
  const sluice_merge_args merge = good_merge();
  const sluice_launch launch = good_launch();
  hip.capturing = {launch.stream};
  Error error;
  check_refusal(run(context, append, &launch, &error), error, invalid, "stream",
                "kv_append_f16_f16 is not loaded");
  check_refusal(run(context, step, &launch, &error), error, invalid, "stream",
                "append_step_f16_f16 is not loaded");
  check_refusal(run(context, merge, &launch, &error), error, invalid, "stream", "sluice_attention_preload");
  CHECK(hip.count("hipModuleLoadData") == 0);
  CHECK(hip.count("hipModuleLaunchKernel") == 0);
  // Preloading all kernels includes these.
  CHECK(sluice_attention_preload(context.get(), nullptr, &error) == SLUICE_OK);
  CHECK(hip.loaded_modules == 4);
  hip.forget_calls();
  CHECK(run(context, append, &launch, &error) == SLUICE_OK);
  CHECK(run(context, step, &launch, &error) == SLUICE_OK);
  CHECK(run(context, merge, &launch, &error) == SLUICE_OK);
  CHECK(hip.call_names() == std::vector<std::string>(3, "hipModuleLaunchKernel"));
}

TEST_CASE("appends and merges wait and signal as runs do", "[cache_ops]") {
  FakeHip hip;
  const ContextHandle context = cache_op_context();
  REQUIRE(sluice_attention_preload(context.get(), nullptr, nullptr) == SLUICE_OK);
  const AppendCall append = good_append();
  const sluice_merge_args merge = good_merge();
  sluice_launch launch = good_launch();
  const sluice_dependency dependencies[] = {
      {SLUICE_DEPENDS_ON_EVENT, 0, FakeHip::handle(11), nullptr},
      {SLUICE_DEPENDS_ON_STREAM, 0, FakeHip::handle(12), FakeHip::handle(0x200)}};
  launch.dependencies = dependencies;
  launch.dependency_count = 2;
  launch.signal_event = FakeHip::handle(13);
  const std::function<sluice_status(sluice_error *)> runs[] = {
      [&](sluice_error *error) { return run(context, append, &launch, error); },
      [&](sluice_error *error) { return run(context, merge, &launch, error); }};
  for (const auto &run : runs) {
    hip.forget_calls();
    CHECK(run(nullptr) == SLUICE_OK);
    CHECK(hip.call_names() == std::vector<std::string>{"hipStreamIsCapturing", "hipStreamWaitEvent",
                                                       "hipEventRecord", "hipStreamWaitEvent",
                                                       "hipModuleLaunchKernel", "hipEventRecord"});
    CHECK(hip.calls[1].event == FakeHip::handle(11));
    CHECK(hip.calls[3].event == FakeHip::handle(12));
    CHECK(hip.calls[5].event == FakeHip::handle(13));
    // A stream outside a capture cannot be joined into it.
    Error error;
    hip.capturing = {launch.stream};
    check_refusal(run(&error), error, invalid, "dependencies[1].stream", "so it cannot join the capture");
    hip.capturing.clear();
    // Dependencies are checked as for a run.
    launch.dependencies = nullptr;
    check_refusal(run(&error), error, invalid, "dependencies", "NULL");
    launch.dependencies = dependencies;
    hip.failing = {{"hipModuleLaunchKernel", 719}};
    check_refusal(run(&error), error, SLUICE_HIP, "", "hipModuleLaunchKernel");
    hip.failing.clear();
  }
}

TEST_CASE("the trace sees appends and merges", "[cache_ops]") {
  FakeHip hip;
  const ContextHandle context = cache_op_context();
  std::vector<std::string> seen;
  const auto note = [](const sluice_trace_record *record, void *user) {
    CHECK(record->event == SLUICE_TRACE_RUN);
    CHECK(record->block[0] == 256);
    CHECK(record->waves == 4);
    CHECK(record->grid[0] > 0);
    static_cast<std::vector<std::string> *>(user)->push_back(record->kernel);
  };
  REQUIRE(sluice_set_trace(context.get(), note, &seen, nullptr) == SLUICE_OK);
  const AppendCall append = good_append();
  const sluice_merge_args merge = good_merge();
  const sluice_launch launch = good_launch();
  CHECK(run(context, append, &launch) == SLUICE_OK);
  CHECK(run(context, merge, &launch) == SLUICE_OK);
  CHECK(seen == std::vector<std::string>{"kv_append_f16_f16", "merge_states_f32_f16"});
}

TEST_CASE("kernels of cache operations are listed among the others, and not chosen for attention",
          "[cache_ops]") {
  const ContextHandle context = cache_op_context(SLUICE_DEVICE_TARGET);
  uint32_t count = 0;
  REQUIRE(sluice_list_kernels(context.get(), 0, nullptr, &count, nullptr) == SLUICE_OK);
  REQUIRE(count == 4);
  sluice_kernel_info info;
  sluice_kernel_info_init(&info, sizeof info);
  REQUIRE(sluice_list_kernels(context.get(), 2, &info, nullptr, nullptr) == SLUICE_OK);
  CHECK(std::string(info.name) == "kv_append_f16_f16");
  CHECK(std::string(info.operation) == "kv_append");
  CHECK(info.dtype == SLUICE_F16);
  CHECK(info.head_dim_qk == 0);
  CHECK(info.tile_q == 0);
  CHECK(info.waves == 4);
  CHECK(info.threads == 256);
  AttentionCall call = good_call();
  call.attention.mask = nullptr;
  call.attention.lse = SLUICE_LSE_NONE;
  sluice_support support;
  sluice_support_init(&support, sizeof support);
  REQUIRE(sluice_attention_support(context.get(), &call.attention, &support, nullptr) == SLUICE_OK);
  CHECK(std::string(support.kernel) == "attn_fwd_f16_d128_q128_kv64_w4");
}

TEST_CASE("a pack whose kernels around attention are not this library's is PACK_CORRUPT", "[cache_ops]") {
  const auto refused = [](auto change, const char *message_part) {
    sluice::package::KernelEntry entry = cache_op_entry("kv_append", "f16", "f16");
    change(entry);
    sluice::package::PackWriter writer("test", "22.1.8");
    add_fake_kernel(writer, entry);
    const std::vector<std::byte> pack = writer.finish();
    sluice_context_desc desc = context_desc(SLUICE_DEVICE_TARGET, pack);
    sluice_context *context = nullptr;
    Error error;
    check_refusal(sluice_context_create(&desc, &context, &error), error, SLUICE_PACK_CORRUPT, "pack",
                  message_part);
  };
  refused([](auto &entry) { entry.kernarg_bytes += 8; }, "takes arguments of layout");
  refused([](auto &entry) { entry.kernarg_hash ^= 1; }, "takes arguments of layout");
  refused([](auto &entry) { entry.threads = 128; }, "workgroups of 128 lanes");
}
