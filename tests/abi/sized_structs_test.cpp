//===- sized_structs_test.cpp - older, newer and wrong callers ------------------------------------------===//
#include "cache_op_fixture.h"

#include <cstring>

using namespace sluice::test;

namespace {

/// A struct as a newer header might declare it.
template <typename Struct> struct Newer {
  Struct known;
  uint64_t appended;
};

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

/// A call with a struct that the test builds: with `size` as struct_size and `appended` after the part that
/// this version knows.
template <typename Struct, typename Call>
sluice_status call_with(const Struct &given, uint32_t size, uint64_t appended, Call call) {
  Newer<Struct> newer = {given, appended};
  newer.known.struct_size = size;
  return call(&newer.known);
}

/// The rules for a struct that the library reads.
template <typename Struct, typename Call>
void check_input(const Struct &good, const std::string &argument, Call call, bool nullable = false) {
  Error error;
  const auto try_with = [&](uint32_t size, uint64_t appended) {
    error = Error();
    return call_with(good, size, appended, [&](const Struct *given) { return call(given, &error); });
  };
  CHECK(try_with(sizeof(Struct), 0) == SLUICE_OK);
  CHECK(try_with(sizeof(Newer<Struct>), 0) == SLUICE_OK);
  CHECK(try_with(sizeof(Struct), 1) == SLUICE_OK); // no longer in the struct
  check_refusal(try_with(sizeof(Newer<Struct>), uint64_t{1} << 56), error, SLUICE_NEWER_STRUCT, argument,
                "older than the caller's header");
  for (const uint32_t size :
       {0u, 1u, uint32_t(sizeof(Struct)) - 1, uint32_t(sizeof(Struct)) / 2, 0xffffffffu}) {
    check_refusal(try_with(size, 0), error, SLUICE_INVALID_ARGUMENT, argument + ".struct_size",
                  "struct_size is " + std::to_string(size));
  }
  error = Error();
  if (!nullable) check_refusal(call(nullptr, &error), error, SLUICE_INVALID_ARGUMENT, argument, "is NULL");
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
  check_init<sluice_problem>(sluice_problem_init);
  check_init<sluice_support>(sluice_support_init);
  check_init<sluice_kernel_info>(sluice_kernel_info_init);
  check_init<sluice_plan_info>(sluice_plan_info_init);
  check_init<sluice_args>(sluice_args_init);
  check_init<sluice_launch>(sluice_launch_init);
  check_init<sluice_append>(sluice_append_init);
  check_init<sluice_merge>(sluice_merge_init);
  check_init<sluice_page_copy>(sluice_page_copy_init);
  check_init<sluice_gather>(sluice_gather_init);
  check_init<sluice_counters>(sluice_counters_init);
}

TEST_CASE("structs that the library reads follow the rules of struct_size", "[sized]") {
  FakeHip hip;
  const ContextHandle context = fake_context();
  const PlanHandle plan = make_plan(context, good_problem());
  const sluice_args args = good_args();
  const sluice_launch launch = good_launch();

  check_input(context_desc(SLUICE_DEVICE_TARGET), "desc",
              [](const sluice_context_desc *desc, sluice_error *error) {
                sluice_context *out = nullptr;
                const sluice_status status = sluice_context_create(desc, &out, error);
                CHECK((out != nullptr) == (status == SLUICE_OK));
                sluice_context_destroy(out);
                return status;
              });
  check_input(good_problem(), "problem", [&](const sluice_problem *problem, sluice_error *error) {
    return sluice_query_support(context.get(), problem, nullptr, error);
  });
  check_input(good_problem(), "problem", [&](const sluice_problem *problem, sluice_error *error) {
    uint64_t bytes;
    return sluice_workspace_size(context.get(), problem, &bytes, error);
  });
  check_input(good_problem(), "problem", [&](const sluice_problem *problem, sluice_error *error) {
    sluice_plan *out = nullptr;
    const sluice_status status = sluice_plan_create(context.get(), problem, &out, error);
    CHECK((out != nullptr) == (status == SLUICE_OK));
    sluice_plan_destroy(out);
    return status;
  });
  check_input(
      good_problem(), "problem",
      [&](const sluice_problem *problem, sluice_error *error) {
        return sluice_preload(context.get(), problem, error);
      },
      true);
  check_input(args, "args", [&](const sluice_args *given, sluice_error *error) {
    return sluice_run(plan.get(), given, &launch, error);
  });
  check_input(
      launch, "launch",
      [&](const sluice_launch *given, sluice_error *error) {
        return sluice_run(plan.get(), &args, given, error);
      },
      true);
}

TEST_CASE("structs of appends and merges follow the rules of struct_size", "[sized]") {
  FakeHip hip;
  const ContextHandle context = cache_op_context();
  const sluice_append append = good_append();
  const sluice_merge merge = good_merge();
  const sluice_launch launch = good_launch();
  check_input(append, "append", [&](const sluice_append *given, sluice_error *error) {
    return sluice_kv_append(context.get(), given, &launch, error);
  });
  check_input(
      launch, "launch",
      [&](const sluice_launch *given, sluice_error *error) {
        return sluice_kv_append(context.get(), &append, given, error);
      },
      true);
  check_input(merge, "merge", [&](const sluice_merge *given, sluice_error *error) {
    return sluice_merge_states(context.get(), given, &launch, error);
  });
  check_input(
      launch, "launch",
      [&](const sluice_launch *given, sluice_error *error) {
        return sluice_merge_states(context.get(), &merge, given, error);
      },
      true);
}

TEST_CASE("structs of the host reference follow the rules of struct_size", "[sized]") {
  float one[5] = {1, 1, 1, 1, 1};
  const auto element = [&](int i) { return sluice_tensor{&one[i], {1, 1, 1, 1}}; };
  sluice_problem problem = good_problem();
  problem.q_type = problem.k_type = problem.v_type = problem.o_type = SLUICE_F32;
  problem.q_heads = problem.kv_heads = problem.head_dim_qk = problem.head_dim_v = 1;
  sluice_args args = good_args();
  args.batch = args.q_len = args.kv_len = 1;
  args.q = element(0);
  args.k = element(1);
  args.v = element(2);
  args.o = element(3);
  args.lse = element(4);
  check_input(problem, "problem", [&](const sluice_problem *given, sluice_error *error) {
    return sluice_reference(given, &args, error);
  });
  check_input(args, "args", [&](const sluice_args *given, sluice_error *error) {
    return sluice_reference(&problem, given, error);
  });
}

TEST_CASE("structs that the library fills follow the rules of struct_size", "[sized]") {
  const ContextHandle context = target_context();
  const PlanHandle plan = make_plan(context, good_problem());
  const sluice_problem problem = good_problem();
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
        return sluice_query_support(context.get(), &problem, support, error);
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
  sluice_problem problem = good_problem();
  problem.q_heads = 7;
  CHECK(sluice_query_support(context.get(), &problem, nullptr, nullptr) == SLUICE_INVALID_ARGUMENT);

  Newer<sluice_error> newer;
  std::memset(&newer, 0xee, sizeof newer);
  newer.known.struct_size = sizeof newer;
  CHECK(sluice_query_support(context.get(), &problem, nullptr, &newer.known) == SLUICE_INVALID_ARGUMENT);
  CHECK(newer.known.code == SLUICE_INVALID_ARGUMENT);
  CHECK(newer.known.hip_code == 0);
  CHECK(std::string(newer.known.field) == "q_heads");
  CHECK(newer.appended == 0xeeeeeeeeeeeeeeee);

  // Too small, or beyond any version: the call is refused, good or not, and nothing is written.
  problem = good_problem();
  for (const uint32_t size : {0u, uint32_t(sizeof(sluice_error)) - 1, 65537u, 0xeeeeeeeeu}) {
    std::memset(&newer, 0xee, sizeof newer);
    newer.known.struct_size = size;
    CHECK(sluice_query_support(context.get(), &problem, nullptr, &newer.known) == SLUICE_INVALID_ARGUMENT);
    CHECK(uint32_t(newer.known.code) == 0xeeeeeeee);
    CHECK(newer.known.message[0] == char(0xee));
  }

  // Success leaves it unchanged.
  Error untouched;
  untouched.code = 77;
  CHECK(sluice_query_support(context.get(), &problem, nullptr, &untouched) == SLUICE_OK);
  CHECK(untouched.code == 77);
}
