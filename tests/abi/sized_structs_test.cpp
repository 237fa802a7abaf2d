//===- sized_structs_test.cpp - older, newer and wrong callers ------------------------------------------===//
#include "sized_structs.h"

#include "cache_op_fixture.h"
#include "split_fixture.h"

#include <cstring>

using namespace sluice::test;

namespace {

template <typename Struct, typename Init> void check_init(Init init) {
  Newer<Struct> newer;
  std::memset(&newer, 0xff, sizeof newer);
  CHECK(init(&newer.known, sizeof newer) == SLUICE_OK);
  CHECK(newer.known.struct_size == sizeof newer);
  CHECK(newer.appended == 0);
  const auto *bytes = reinterpret_cast<const unsigned char *>(&newer);
  for (size_t i = sizeof(uint32_t); i < sizeof newer; ++i) {
    if (bytes[i] != 0) FAIL("byte " << i << " is not zeroed");
  }
  CHECK(init(&newer.known, sizeof(Struct)) == SLUICE_OK);
  CHECK(newer.known.struct_size == sizeof(Struct));

  std::memset(&newer, 0xff, sizeof newer);
  CHECK(init(&newer.known, sizeof(Struct) - 1) == SLUICE_INVALID_ARGUMENT);
  CHECK(init(&newer.known, size_t{1} << 40) == SLUICE_INVALID_ARGUMENT);
  CHECK(newer.known.struct_size == 0xffffffff);
  CHECK(init(nullptr, sizeof(Struct)) == SLUICE_INVALID_ARGUMENT);
}

/// The rules for a struct that the library fills.
template <typename Struct, typename Call>
void check_output(const std::string &argument, Call call, bool nullable) {
  Error error;
  Newer<Struct> newer;
  std::memset(&newer, 0xee, sizeof newer);
  newer.known.struct_size = sizeof newer;
  CHECK(call(&newer.known, &error) == SLUICE_OK);
  CHECK(newer.known.struct_size == sizeof newer);
  CHECK(newer.appended == 0xeeeeeeeeeeeeeeee); // the library does not write the rest
  for (const uint32_t size : {0u, uint32_t(sizeof(Struct)) - 1, 0xffffffffu}) {
    std::memset(&newer, 0xee, sizeof newer);
    newer.known.struct_size = size;
    error = Error();
    check_refusal(call(&newer.known, &error), error, SLUICE_INVALID_ARGUMENT, argument + ".struct_size",
                  "struct_size is " + std::to_string(size));
    const auto *bytes = reinterpret_cast<const unsigned char *>(&newer);
    for (size_t i = sizeof(uint32_t); i < sizeof newer; ++i) {
      if (bytes[i] != 0xee) FAIL("byte " << i << " is written");
    }
  }
  error = Error();
  if (!nullable) check_refusal(call(nullptr, &error), error, SLUICE_INVALID_ARGUMENT, argument, "is NULL");
}

} // namespace

TEST_CASE("the init functions zero the caller's struct and set its size", "[sized]") {
  check_init<sluice_error>(sluice_error_init);
  check_init<sluice_build>(sluice_build_init);
  check_init<sluice_context_desc>(sluice_context_desc_init);
  check_init<sluice_device_info>(sluice_device_info_init);
  check_init<sluice_support>(sluice_support_init);
  check_init<sluice_kernel_info>(sluice_kernel_info_init);
  check_init<sluice_plan_info>(sluice_plan_info_init);
  check_init<sluice_launch>(sluice_launch_init);
  check_init<sluice_counters>(sluice_counters_init);
}

TEST_CASE("structs that the library reads follow the rules of struct_size", "[sized]") {
  FakeHip hip;
  const ContextHandle context = fake_context();
  const AttentionCall call = good_call();
  const PlanHandle plan = make_plan(context, call);
  check_input(context_desc(SLUICE_DEVICE_TARGET), "desc",
              [](const sluice_context_desc *desc, sluice_error *error) {
                sluice_context *out = nullptr;
                const sluice_status status = sluice_context_create(desc, &out, error);
                CHECK((out != nullptr) == (status == SLUICE_OK));
                sluice_context_destroy(out);
                return status;
              });
  check_input(call.attention, "attention", [&](const sluice_attention *given, sluice_error *error) {
    return sluice_attention_support(context.get(), given, nullptr, error);
  });
  check_input(call.attention, "attention", [&](const sluice_attention *given, sluice_error *error) {
    sluice_plan *out = nullptr;
    const sluice_status status = sluice_attention_plan(context.get(), given, &out, error);
    CHECK((out != nullptr) == (status == SLUICE_OK));
    sluice_plan_destroy(out);
    return status;
  });
  check_input(
      call.attention, "attention",
      [&](const sluice_attention *given, sluice_error *error) {
        return sluice_attention_preload(context.get(), given, error);
      },
      true);
  check_input(call.args, "args", [&](const sluice_attention_args *given, sluice_error *error) {
    return sluice_attention_run(plan.get(), given, nullptr, error);
  });
  check_input(
      good_launch(), "launch",
      [&](const sluice_launch *given, sluice_error *error) { return run(plan, call, given, error); }, true);
}

TEST_CASE("structs that a problem points to follow the rules of struct_size", "[sized]") {
  const ContextHandle context = target_context();
  AttentionCall call = good_call();
  const auto ask = [&](sluice_error *error) { return query(context, call, error); };
  check_nested(call.attention.kv, "kv", ask);
  check_nested(call.attention.mask, "mask", ask, true);
  check_nested(call.attention.scores, "scores", ask, true);
}

TEST_CASE("structs that a call points to follow the rules of struct_size", "[sized]") {
  FakeHip hip;
  const ContextHandle context = fake_context();
  AttentionCall call = good_call();
  const PlanHandle plan = make_plan(context, call);
  const auto run_it = [&](sluice_error *error) { return run(plan, call, nullptr, error); };
  check_nested(call.args.keys, "keys[0]", run_it);
  check_nested(call.keys[0].kv, "keys[0].kv", run_it);
  check_nested(call.kv.format, "keys[0].kv.format", run_it);
  check_nested(call.kv.scales, "keys[0].kv.scales", run_it, true);
  check_nested(call.args.mask, "mask", run_it, true);
  check_nested(call.args.scores, "scores", run_it, true);
}

TEST_CASE("a second set of keys follows the first, whatever their size", "[sized]") {
  FakeHip hip;
  const ContextHandle context = split_context(SLUICE_DEVICE_HIP);
  const sluice_launch launch = with_workspace();
  AttentionCall call = decode_call();
  call.attention.flags = SLUICE_ATTENTION_PREFIXES;
  call.attention.bounds.q_rows = 10;
  call.attention.bounds.groups = 1;
  call.attention.bounds.group_keys = 7;
  call.attention.bounds.q_len = 5;
  call.args.key_sets = 2;
  call.prefix_kv = call.kv;
  call.keys[1].groups = 1;
  call.keys[1].group_starts = reinterpret_cast<const int32_t *>(device_memory);
  call.keys[1].rows.max_len = 7;
  const PlanHandle plan = make_plan(context, call);
  Newer<sluice_keys> sets[2] = {{call.keys[0], 0}, {call.keys[1], 0}};
  sets[0].known.struct_size = sets[1].known.struct_size = sizeof sets[0];
  call.args.keys = &sets[0].known;
  Error error;
  const auto run_it = [&] { return run(plan, call, &launch, &error); };
  CHECK(run_it() == SLUICE_OK);
  INFO(error.message);
  sets[1].appended = 1;
  check_refusal(run_it(), error, SLUICE_NEWER_STRUCT, "keys[1]", "older than the caller's header");
  sets[1].appended = 0;
  sets[1].known.struct_size = sizeof(sluice_keys) - 8;
  check_refusal(run_it(), error, SLUICE_INVALID_ARGUMENT, "keys[1].struct_size", "struct_size is ");
  sets[1].known.struct_size = sizeof sets[1];
  const auto on_kv = [&](sluice_error *out) { return run(plan, call, &launch, out); };
  check_nested(sets[1].known.kv, "keys[1].kv", on_kv);
  check_nested(call.prefix_kv.format, "keys[1].kv.format", on_kv);
  check_nested(call.prefix_kv.scales, "keys[1].kv.scales", on_kv, true);
}

TEST_CASE("the launch of an append or a merge follows the rules of struct_size", "[sized]") {
  FakeHip hip;
  const ContextHandle context = cache_op_context();
  const AppendCall append = good_append();
  const sluice_merge_args merge = good_merge();
  const auto check_launch = [&](const auto &call) {
    check_input(
        good_launch(), "launch",
        [&](const sluice_launch *given, sluice_error *error) { return run(context, call, given, error); },
        true);
  };
  check_launch(append);
  check_launch(merge);
}

TEST_CASE("structs of the host reference follow the rules of struct_size", "[sized]") {
  float one[5] = {1, 1, 1, 1, 1};
  const auto element = [&](int i) { return sluice_tensor{&one[i], {1, 1, 1, 1}}; };
  AttentionCall call = good_call();
  call.format = sluice_kv_tensors(SLUICE_F32, 1, 1);
  call.attention.q_heads = 1;
  call.attention.q.type = call.attention.o.type = SLUICE_F32;
  call.args.batch = call.args.rows.max_len = call.keys[0].rows.max_len = 1;
  call.args.q = element(0);
  call.kv.k = element(1);
  call.kv.v = element(2);
  call.args.o = element(3);
  call.lse = element(4);
  check_input(call.attention, "attention", [&](const sluice_attention *given, sluice_error *error) {
    return sluice_attention_reference(given, &call.args, error);
  });
  check_input(call.args, "args", [&](const sluice_attention_args *given, sluice_error *error) {
    return sluice_attention_reference(&call.attention, given, error);
  });
}

TEST_CASE("structs that the library fills follow the rules of struct_size", "[sized]") {
  const ContextHandle context = target_context();
  const AttentionCall call = good_call();
  const PlanHandle plan = make_plan(context, call);
#if SLUICE_HAS_KERNELS // without kernels the pack is missing
  check_output<sluice_build>(
      "build", [&](sluice_build *build, sluice_error *error) { return sluice_build_info(build, error); },
      false);
#endif
  check_output<sluice_device_info>(
      "info",
      [&](sluice_device_info *info, sluice_error *error) {
        return sluice_context_device(context.get(), info, error);
      },
      false);
  check_output<sluice_support>(
      "support",
      [&](sluice_support *support, sluice_error *error) {
        return sluice_attention_support(context.get(), &call.attention, support, error);
      },
      true);
  check_output<sluice_kernel_info>(
      "info",
      [&](sluice_kernel_info *info, sluice_error *error) {
        return sluice_list_kernels(context.get(), 0, info, nullptr, error);
      },
      true);
  check_output<sluice_plan_info>(
      "info",
      [&](sluice_plan_info *info, sluice_error *error) {
        return sluice_plan_describe(plan.get(), info, error);
      },
      false);
}

TEST_CASE("an error is optional, may be newer, and must have the size of some version", "[sized]") {
  const ContextHandle context = target_context();
  AttentionCall call = good_call();
  call.attention.q_heads = 7;
  CHECK(query(context, call, nullptr) == SLUICE_INVALID_ARGUMENT);

  Newer<sluice_error> newer;
  std::memset(&newer, 0xee, sizeof newer);
  newer.known.struct_size = sizeof newer;
  CHECK(query(context, call, &newer.known) == SLUICE_INVALID_ARGUMENT);
  CHECK(newer.known.code == SLUICE_INVALID_ARGUMENT);
  CHECK(newer.known.hip_code == 0);
  CHECK(std::string(newer.known.field) == "q_heads");
  CHECK(newer.appended == 0xeeeeeeeeeeeeeeee);

  // Too small, or beyond any version: the call is refused, good or not, and nothing is written.
  call = good_call();
  for (const uint32_t size : {0u, uint32_t(sizeof(sluice_error)) - 1, 65537u, 0xeeeeeeeeu}) {
    std::memset(&newer, 0xee, sizeof newer);
    newer.known.struct_size = size;
    CHECK(query(context, call, &newer.known) == SLUICE_INVALID_ARGUMENT);
    CHECK(uint32_t(newer.known.code) == 0xeeeeeeee);
    CHECK(newer.known.message[0] == char(0xee));
  }

  // Success leaves it unchanged.
  Error untouched;
  untouched.code = 77;
  CHECK(query(context, call, &untouched) == SLUICE_OK);
  CHECK(untouched.code == 77);
}
