//===- append_cases.cpp - the cases of sluice_cache_append ----------------------------------------------===//
//
// For every append kernel of the pack, each feature separately, and some together.
//
//===----------------------------------------------------------------------------------------------------===//
#include "conformance/cache_ops/append_cases.h"

#include "conformance/cache_ops/append_groups.h"
#include "conformance/cache_ops/case_names.h"

namespace sluice::conformance {

std::vector<AppendCase> append_cases_of(const KernelTypes &types) {
  std::vector<AppendCase> cases;
  const AppendCase plain{.source = types.from, .cache = types.to};
  const auto with = [&](auto change) {
    AppendCase c = plain;
    change(c);
    cases.push_back(c);
  };
  for (const Finding finding : {Finding::slots, Finding::block, Finding::csr})
    for (const bool wide : {false, true}) {
      if (finding == Finding::slots && wide) continue;
      for (const int page_size : {1, 3, 16})
        with([&](AppendCase &c) {
          c.finding = finding;
          c.wide = wide;
          c.page_size = page_size;
          c.apart = page_size == 3;
        });
      with([&](AppendCase &c) {
        c.finding = finding;
        c.wide = wide;
        c.k_pack = pack_of(types);
        c.not_finite = true;
      });
    }
  with([&](AppendCase &c) { // packs that some heads' rows fill exactly
    c.finding = Finding::csr;
    c.k_pack = 48;
  });
  // All of a row, the start of one, and pairs that no chunk of 8 elements holds whole.
  for (const Rotation rotation : {Rotation::halves, Rotation::pairs})
    for (const int dim : {48, 32, 10})
      with([&](AppendCase &c) {
        c.finding = dim == 32 ? Finding::slots : Finding::block;
        c.rotation = rotation;
        c.rotary_dim = dim;
        c.positions = dim != 48;
        c.k_pack = dim == 10 ? pack_of(types) : 0;
        c.not_finite = dim == 32;
      });
  // Rows of one chunk, of many heads, and of more chunks than a wave has lanes.
  with([](AppendCase &c) { c.head_size = {8, 8}, c.heads = 1, c.finding = Finding::csr; });
  with([](AppendCase &c) { c.head_size = {128, 64}, c.heads = 9, c.finding = Finding::block; });
  with([](AppendCase &c) {
    c.head_size = {576, 512};
    c.heads = 1;
    c.v_in_k = true;
    c.finding = Finding::block;
    c.rotation = Rotation::pairs;
    c.rotary_dim = 64;
  });
  if (!has_scales(types.to)) return cases;
  for (const int power : powers_of(types.from))
    with([&](AppendCase &c) {
      c.power = power;
      c.k_scale = Scale::head;
      c.v_scale = Scale::tensor;
    });
  for (const Scale k : {Scale::none, Scale::tensor, Scale::head})
    for (const Scale v : {Scale::none, Scale::tensor, Scale::head})
      if (k != Scale::none || v != Scale::none)
        with([&](AppendCase &c) {
          c.heads = 5;
          c.finding = Finding::block;
          c.k_scale = k;
          c.v_scale = v;
          c.rotation = k == v ? Rotation::halves : Rotation::none;
          c.rotary_dim = k == v ? 16 : 0;
        });
  return cases;
}

std::vector<AppendCase> append_cases(const Target &target, Level level) {
  std::vector<AppendCase> all;
  for (const std::string &kernel : target.names("kv_append")) {
    const KernelTypes types = types_of(kernel, "kv_append_");
    for (AppendCase &c : append_cases_of(types))
      add_named(all, std::move(c), kernel);
    // More chunks in a row, and more such rows, than the grid processes at a time.
    if (level == Level::full)
      add_named(
          all,
          {.source = types.from, .cache = types.to, .heads = 130, .head_size = {1024, 8}, .more_rows = 8},
          kernel);
  }
  for (const std::string &kernel : target.names("append_step"))
    for (AppendCase &c : step_cases_of(types_of(kernel, "append_step_")))
      add_named(all, std::move(c), kernel);
  return all;
}

} // namespace sluice::conformance
