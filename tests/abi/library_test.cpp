//===- library_test.cpp - versions, names, the log, the trace, the emulator and the host reference ------===//
#include "fixture.h"

#include <cstring>

using namespace sluice::test;

TEST_CASE("status codes have their names", "[library]") {
  const char *names[] = {"SLUICE_OK",
                         "SLUICE_INVALID_ARGUMENT",
                         "SLUICE_UNSUPPORTED",
                         "SLUICE_NEWER_STRUCT",
                         "SLUICE_NO_DEVICE",
                         "SLUICE_WRONG_ARCH",
                         "SLUICE_HIP",
                         "SLUICE_PACK_CORRUPT",
                         "SLUICE_WORKSPACE_TOO_SMALL",
                         "SLUICE_OUT_OF_MEMORY",
                         "SLUICE_INTERNAL"};
  for (int code = 0; code < 11; ++code)
    CHECK(std::string(sluice_status_name(code)) == names[code]);
  CHECK(std::string(sluice_status_name(11)) == "unknown status");
  CHECK(std::string(sluice_status_name(-1)) == "unknown status");
}

TEST_CASE("the library reports its version", "[library]") {
  CHECK(sluice_abi_version() == (SLUICE_ABI_MAJOR << 16 | SLUICE_ABI_MINOR));
  CHECK(std::string(sluice_version()) == SLUICE_EXPECTED_VERSION);
  CHECK_THAT(sluice_version(), Catch::StartsWith(std::to_string(SLUICE_ABI_MAJOR) + "." +
                                                 std::to_string(SLUICE_ABI_MINOR) + "."));
}

TEST_CASE("the build describes itself and the embedded pack", "[library]") {
  sluice_build build;
  sluice_build_init(&build, sizeof build);
  Error error;
  const sluice_status status = sluice_build_info(&build, &error);
#if SLUICE_HAS_KERNELS
  INFO(error.message);
  REQUIRE(status == SLUICE_OK);
  CHECK(std::string(build.version) == SLUICE_EXPECTED_VERSION);
  CHECK(build.git_commit[0] != '\0');
  CHECK(build.compiler[0] != '\0');
  CHECK_THAT(build.llvm_version, Catch::StartsWith("22."));
  CHECK_THAT(build.pack_id, Catch::StartsWith("0x"));
  CHECK_THAT(build.chips, Catch::Contains("gfx942"));
  // A context without a pack of its own gets the embedded kernels.
  sluice_context_desc desc = context_desc(SLUICE_DEVICE_TARGET);
  desc.pack = nullptr;
  desc.pack_bytes = 0;
  uint32_t count = 0;
  REQUIRE(sluice_list_kernels(make_context(desc).get(), 0, nullptr, &count, nullptr) == SLUICE_OK);
  CHECK(count == build.kernel_count);
#else
  check_refusal(status, error, SLUICE_PACK_CORRUPT, "pack", "built without");
#endif
}

TEST_CASE("the trace sees every plan and run until it is switched off", "[library]") {
  FakeHip hip;
  const ContextHandle context = fake_context();
  struct Seen {
    std::vector<sluice_trace_record> records;
    std::vector<std::string> kernels, reasons;
  } seen;
  const auto add = [](const sluice_trace_record *record, void *user) {
    auto *to = static_cast<Seen *>(user);
    to->records.push_back(*record);
    to->kernels.push_back(record->kernel);
    to->reasons.push_back(record->reason);
  };
  REQUIRE(sluice_set_trace(context.get(), add, &seen, nullptr) == SLUICE_OK);
  AttentionCall call = good_call();
  call.attention.bounds.batch = 4;
  call.attention.bounds.q_len = 30;
  const PlanHandle plan = make_plan(context, call);
  REQUIRE(run(plan, call) == SLUICE_OK);
  AttentionCall bad = call;
  bad.args.batch = -1;
  REQUIRE(run(plan, bad) == SLUICE_INVALID_ARGUMENT);
  REQUIRE(sluice_set_trace(context.get(), nullptr, nullptr, nullptr) == SLUICE_OK);
  REQUIRE(run(plan, call) == SLUICE_OK);

  REQUIRE(seen.records.size() == 2);
  const sluice_trace_record &planned = seen.records[0], &ran = seen.records[1];
  CHECK(planned.struct_size == sizeof planned);
  CHECK(planned.event == SLUICE_TRACE_PLAN);
  CHECK(planned.grid[0] == 2);
  CHECK(planned.grid[1] == 1);
  CHECK(planned.grid[2] == 4);
  CHECK(ran.event == SLUICE_TRACE_RUN);
  CHECK(ran.grid[2] == 2);
  CHECK(ran.block[0] == 256);
  CHECK(ran.waves == 4);
  CHECK(ran.lds_bytes == 65536);
  CHECK(ran.workspace_bytes == 0);
  CHECK(seen.kernels[1] == "attn_fwd_f16_d128_q128_kv64_w4");
  CHECK(seen.reasons[1] == "bounds.q_len 30 fits a query tile of 128");
  Error error;
  check_refusal(sluice_set_trace(nullptr, add, nullptr, &error), error, SLUICE_INVALID_ARGUMENT, "context",
                "context is NULL");
}

TEST_CASE("the log reports what was found and chosen, and nothing about runs", "[library]") {
  FakeHip hip;
  std::vector<std::string> messages;
  sluice_set_log([](uint32_t, const char *message,
                    void *user) { static_cast<std::vector<std::string> *>(user)->push_back(message); },
                 &messages, SLUICE_LOG_INFO);
  {
    const ContextHandle context = fake_context();
    const PlanHandle plan = make_plan(context, good_call());
    CHECK(messages.size() == 3);
    CHECK_THAT(messages.at(0),
               Catch::Contains("gfx942:sramecc+:xnack-, 304 compute units, 8 kernels, HIP from caller"));
    CHECK_THAT(messages.at(1), Catch::StartsWith("loaded attn_fwd_f16_d128_q256_kv64_w8"));
    CHECK_THAT(messages.at(2), Catch::StartsWith("plan: attn_fwd_f16_d128_q256_kv64_w8: "));
    REQUIRE(run(plan, good_call()) == SLUICE_OK);
    CHECK(messages.size() == 3);
    // A destructor's errors go to the log: it has no other way to report them.
    hip.failing = {{"hipModuleUnload", 719}};
  }
  CHECK(messages.size() == 4);
  CHECK_THAT(messages.back(), Catch::Contains("hipModuleUnload failed with hipErrorLaunchFailure (719)"));
  sluice_set_log(nullptr, nullptr, 0);
  fake_context();
  CHECK(messages.size() == 4);
}

namespace {

/// One head of dim 1, two rows and two keys: small enough to compute by hand.
struct HostCall : AttentionCall {
  float q[2] = {1, 2}, k[2] = {0, 1}, v[2] = {10, 20}, o[2] = {-1, -1}, lse_values[2] = {-1, -1};

  HostCall() {
    format = sluice_kv_tensors(SLUICE_F32, 1, 1);
    attention.q_heads = 1;
    attention.q.type = attention.o.type = SLUICE_F32;
    attention.lse = SLUICE_LSE_LN;
    args.batch = 1;
    args.rows.max_len = keys[0].rows.max_len = 2;
    scale = 1;
    args.scale = &scale;
    args.q = sluice_bshd(q, 2, 1, 1);
    args.o = sluice_bshd(o, 2, 1, 1);
    kv.k = sluice_bshd(k, 2, 1, 1);
    kv.v = sluice_bshd(v, 2, 1, 1);
    lse = {lse_values, {2, 1, 1, 0}};
    args.lse = &lse;
  }
  HostCall(const HostCall &) = delete;

  sluice_status compute(Error &error) { return sluice_attention_reference(&attention, &args, &error); }
};

} // namespace

TEST_CASE("the host reference computes what the header specifies", "[library]") {
  HostCall call;
  Error error;
  REQUIRE(call.compute(error) == SLUICE_OK);
  const double weight = std::exp(1.0) / (1 + std::exp(1.0));
  CHECK(call.o[0] == Approx(10 + 10 * weight));
  CHECK(call.lse_values[0] == Approx(std::log(1 + std::exp(1.0))));
  CHECK(call.lse_values[1] == Approx(std::log(1 + std::exp(2.0))));
}

TEST_CASE("the host reference refuses unsupported calls, and writes nothing", "[library]") {
  const auto check = [](void (*change)(HostCall &), sluice_status status, const char *field,
                        const char *message) {
    HostCall call;
    change(call);
    Error error;
    check_refusal(call.compute(error), error, status, field, message);
    CHECK(call.o[0] == -1);
    CHECK(call.lse_values[0] == -1);
  };
  check([](HostCall &c) { c.attention.o.type = SLUICE_E5M2; }, SLUICE_UNSUPPORTED, "o.type",
        "nearest supported: f16");
  check([](HostCall &c) { c.attention.q.scale_kind = SLUICE_SCALE_PER_TOKEN; }, SLUICE_UNSUPPORTED,
        "q.scale_kind", "nearest supported: SLUICE_SCALE_PER_HEAD (2)");
  check([](HostCall &c) { c.scores.soft_cap = -3; }, SLUICE_INVALID_ARGUMENT, "scores.soft_cap",
        "scores.soft_cap is -3");
  check([](HostCall &c) { c.attention.q_heads = 3, c.format.kv_heads = 2; }, SLUICE_INVALID_ARGUMENT,
        "q_heads", "multiple");
  check([](HostCall &c) { c.args.batch = -1; }, SLUICE_INVALID_ARGUMENT, "batch", "must not be negative");
  check([](HostCall &c) { c.scale = -1; }, SLUICE_UNSUPPORTED, "scale", "must not be negative");
  check([](HostCall &c) { c.kv.k.data = nullptr; }, SLUICE_INVALID_ARGUMENT, "keys[0].kv.k.data", "NULL");
  check([](HostCall &c) { c.args.o.data = reinterpret_cast<char *>(c.o) + 2; }, SLUICE_INVALID_ARGUMENT,
        "o.data", "aligned to 4 bytes");
  check([](HostCall &c) { c.args.o.stride[1] = 0; }, SLUICE_INVALID_ARGUMENT, "o.stride[1]", "overlap");
}
