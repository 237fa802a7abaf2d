//===- cache_structs_test.cpp - struct_size of everything that a cache operation points to --------------===//
#include "page_copy_fixture.h"
#include "sized_structs.h"

using namespace sluice::test;

TEST_CASE("every struct of an append follows the rules of struct_size", "[sized]") {
  const CacheOpDevice device;
  AppendCall call = good_step();
  const auto append = [&](sluice_error *error) { return run(device.context, call, nullptr, error); };
  check_input(call.args, "args", [&](const sluice_append_args *args, sluice_error *error) {
    return sluice_cache_append(device.context.get(), args, nullptr, error);
  });
  check_nested(call.args.kv, "kv", append);
  check_nested(call.cache.kv.format, "kv.format", append);
  check_nested(call.cache.kv.scales, "kv.scales", append, true);
  check_nested(call.args.rotation, "rotation", append, true);
  check_nested(call.args.k_norm, "k_norm", append, true);
  check_nested(call.args.q, "q", append, true);
  check_nested(call.q.norm, "q.norm", append, true);
}

TEST_CASE("every struct of a copy, a gather and a merge follows the rules of struct_size", "[sized]") {
  const CacheOpDevice device;
  sluice_context *const context = device.context.get();
  CopyCall copy = good_copy();
  check_input(copy.args, "args", [&](const sluice_copy_args *args, sluice_error *error) {
    return sluice_cache_copy(context, args, nullptr, error);
  });
  GatherCall gather = good_gather();
  check_input(gather.args, "args", [&](const sluice_gather_args *args, sluice_error *error) {
    return sluice_cache_gather(context, args, nullptr, error);
  });
  const auto check_caches = [&](auto &call) {
    const auto run_it = [&](sluice_error *error) { return run(device.context, call, nullptr, error); };
    check_nested(call.args.source, "source", run_it);
    check_nested(call.source.kv.format, "source.format", run_it);
    check_nested(call.source.kv.scales, "source.scales", run_it, true);
    check_nested(call.args.target, "target", run_it);
    check_nested(call.target.kv.format, "target.format", run_it);
    check_nested(call.target.kv.scales, "target.scales", run_it, true);
  };
  check_caches(copy);
  check_caches(gather);
  check_input(good_merge(), "args", [&](const sluice_merge_args *args, sluice_error *error) {
    return sluice_attention_merge(context, args, nullptr, error);
  });
}
