//===- attention_values_test.cpp - small structs become the flat ones that mean the same ----------------===//
#include "abi/attention_values.h"
#include "abi/cache_op_checks.h"
#include "abi/cache_values.h"
#include "abi/checks.h"
#include "calls/args.h"
#include "calls/cache_ops.h"
#include "calls/problem.h"
#include "unit/abi/refused.h"
#include "unit/abi/six_calls.h"

#include <catch2/catch.hpp>

#include <cstring>
#include <functional>

using namespace sluice;
using test::FlatCall;
using test::refused;
using test::ValueCall;

namespace {

template <typename Struct> bool same_bytes(const Struct &a, const Struct &b) {
  return std::memcmp(&a, &b, sizeof a) == 0;
}

template <typename Fill> void check_same(Fill fill_flat, void (*fill_values)(ValueCall &)) {
  FlatCall flat;
  fill_flat(flat);
  if (flat.args.scale == 0) flat.args.scale = calls::usual_scale(flat.problem);
  ValueCall values;
  fill_values(values);
  const abi::FlatAttention attention = abi::flat_attention(&values.attention);
  const calls::Problem &problem = attention.problem;
  CHECK(same_bytes(problem, flat.problem));
  calls::Args args = {};
  abi::flat_args(attention, &values.args, args);
  CHECK(same_bytes(args, flat.args));
  // And the calls are right: the flat checks of a device accept them.
  abi::check_problem(problem);
  abi::check_args(problem, {16, 8, true, 16}, args);
}

/// What is said of a decoding step in which `change` has changed something.
std::string refusal(const std::function<void(ValueCall &)> &change) {
  ValueCall call;
  test::cascade(call);
  change(call);
  return refused([&] {
    const abi::FlatAttention attention = abi::flat_attention(&call.attention);
    const calls::Problem &problem = attention.problem;
    abi::retelling(abi::problem_names, [&] { abi::check_problem(problem); });
    calls::Args args = {};
    abi::flat_args(attention, &call.args, args);
    abi::retelling(abi::args_names, [&] { abi::check_args(problem, {16, 8, true, 16}, args); });
  });
}

} // namespace

TEST_CASE("five calls of attention are the same in small structs and in flat ones", "[values]") {
  check_same([](FlatCall &call) { test::dense(call); }, test::dense);
  check_same([](FlatCall &call) { test::ragged(call); }, test::ragged);
  check_same([](FlatCall &call) { test::decode(call); }, test::decode);
  check_same([](FlatCall &call) { test::cascade(call); }, test::cascade);
  check_same([](FlatCall &call) { test::mla(call); }, test::mla);
}

TEST_CASE("a fused append is the same in small structs and in the flat one", "[values]") {
  calls::Append wanted;
  test::append(wanted);
  test::ValueAppend values;
  test::append(values);
  calls::Append got = {};
  abi::flat_append(&values.args, got);
  CHECK(same_bytes(got, wanted));
  abi::check_append(got);
}

TEST_CASE("a refusal names the path of the member", "[values]") {
  CHECK(refusal([](ValueCall &) {}) == "");
  const auto begins = [](const std::function<void(ValueCall &)> &change, const std::string &begin) {
    const std::string said = refusal(change);
    CAPTURE(said, begin);
    CHECK(said.substr(0, begin.size()) == begin);
  };
  begins([](ValueCall &c) { c.keys[1].struct_size = 5; }, "keys[1].struct_size: keys[1].struct_size is 5");
  begins([](ValueCall &c) { c.keys[0].pages.stride = 0; }, "keys[0].pages.stride: keys[0].pages.stride is 0");
  begins([](ValueCall &c) { c.keys[0].pages.table = nullptr; },
         "keys[0].pages.table: keys[0].pages.table is NULL");
  begins([](ValueCall &c) { c.keys[1].rows.max_len = 0; }, "keys[1].rows.max_len: keys[1].rows.max_len is 0");
  begins([](ValueCall &c) { c.kv.k.stride[0] = 0; }, "keys[0].kv.k.stride[0]: keys[0].kv.k.stride[0] is 0");
  begins([](ValueCall &c) { c.kv.k.stride[2] = 3; }, "keys[0].kv.k.stride[2]: keys[0].kv.k.stride[2] is 3");
  begins([](ValueCall &c) { c.kv.scales = &c.scales, c.scales.struct_size = 5; },
         "keys[0].kv.scales.struct_size: keys[0].kv.scales.struct_size is 5");
  begins(
      [](ValueCall &c) {
        c.kv.scales = &c.scales;
        c.scales = {};
        c.scales.struct_size = sizeof c.scales;
        c.scales.v_zeros.data = test::somewhere(20);
      },
      "keys[0].kv.scales.v_zeros.data: keys[0].kv.scales.v_zeros.data is given");
  begins([](ValueCall &c) { c.keys[1].rows.total = 3; }, "keys[1].rows.total: keys[1].rows.total is 3");
  begins([](ValueCall &c) { c.prefix_kv = c.kv, c.prefix_kv.k.stride[1] *= 2, c.keys[1].kv = &c.prefix_kv; },
         "unsupported keys[1].kv: keys[1].kv is not the cache of keys[0]");
  begins([](ValueCall &c) { c.keys[1].pages.head_stride = 4; },
         "unsupported keys[1].pages.head_stride: keys[1].pages.head_stride is 4");
  begins([](ValueCall &c) { c.format.k.type = 0; }, "kv.k.type: kv.k.type is missing");
  begins([](ValueCall &c) { c.attention.bounds.groups = -1; }, "bounds.groups: bounds.groups is -1");
  begins([](ValueCall &c) { c.args.lse = nullptr; },
         "lse: lse is NULL, but the problem's lse is SLUICE_LSE_LOG2 (2)");
  begins([](ValueCall &c) { c.args.key_sets = 1; }, "key_sets: key_sets is 1; it must be 2");
  begins([](ValueCall &c) { c.attention.flags |= 1u << 20; },
         "newer_struct flags: flags has unknown bits 0x100000");
  begins([](ValueCall &c) { c.mask = {sizeof c.mask, 1u << 20, 0, 0, 0, 0}, c.attention.mask = &c.mask; },
         "newer_struct mask.flags: mask.flags has unknown bits 0x100000");
  begins([](ValueCall &c) { c.mask = sluice_causal_mask(), c.mask.flags |= 8, c.attention.mask = &c.mask; },
         "mask.flags: mask.flags has SLUICE_MASK_CAUSAL and SLUICE_MASK_WINDOW_RIGHT");
}

TEST_CASE("a cache operation refuses what it has no use for", "[values]") {
  test::ValueAppend values;
  test::append(values);
  const auto appended = [&] {
    return refused([&] {
      calls::Append flat = {};
      abi::flat_append(&values.args, flat);
    });
  };
  CHECK(appended() == "");
  values.args.pages.head_stride = 4;
  CHECK(appended() == "pages.head_stride: pages.head_stride is 4; it must be 0: starts is NULL");
  values.args.pages = {};
  values.format.struct_size = 5;
  CHECK(appended().starts_with("kv.format.struct_size: kv.format.struct_size is 5"));
  values.format.struct_size = sizeof values.format;

  sluice_copy_args copy = {};
  copy.struct_size = sizeof copy;
  copy.source = copy.target = &values.kv;
  const auto copied = [&] {
    return refused([&] {
      calls::PageCopy flat = {};
      abi::flat_copy(&copy, flat);
    });
  };
  CHECK(copied() == "");
  values.format.v.pack = 8;
  CHECK(copied() == "unsupported source.format.v.pack: source.format.v.pack is 8; nearest supported: 0");
}
