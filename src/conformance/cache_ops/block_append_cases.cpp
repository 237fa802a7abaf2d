//===- block_append_cases.cpp - appends into blocks of ggml or groups of 4-bit numbers ------------------===//

#include "conformance/cache_ops/append_cases.h"

#include <algorithm>

namespace sluice::conformance {

namespace {

/// Into blocks of ggml, or groups of 4-bit numbers with or without zero points.
void add_block_cases(const KernelTypes &types, int scale_group, bool zeros, std::vector<AppendCase> &cases) {
  const int unit = std::max(scale_group, 32); // elements of a block or group
  const AppendCase plain{.source = types.from,
                         .cache = types.to,
                         .head_size = {3 * unit, 2 * unit},
                         .finding = Finding::block,
                         .scale_group = scale_group,
                         .zeros = zeros};
  const auto with = [&](auto change) {
    AppendCase c = plain;
    change(c);
    cases.push_back(c);
  };
  for (const Finding finding : {Finding::slots, Finding::block, Finding::csr})
    for (const int page_size : {1, 3, 16})
      with([&](AppendCase &c) {
        c.finding = finding;
        c.page_size = page_size;
        c.wide = page_size == 3 && finding != Finding::slots;
        c.apart = page_size == 3;
        c.q_heads = page_size == 1 ? 2 : 0;
        c.few_values = page_size == 16;
      });
  for (const bool few : {false, true})
    with([&](AppendCase &c) {
      c.not_finite = true;
      c.few_values = few;
      c.heads = 7;
    });
  // Rows of each number of lanes.
  for (const int blocks : {1, 2, 4, 5, 7, 16})
    with([&](AppendCase &c) {
      c.head_size = {blocks * unit, (17 - blocks) * unit};
      c.heads = blocks % 2 + 1;
    });
  for (const Rotation rotation : {Rotation::halves, Rotation::pairs})
    for (const int blocks : {0, 1, 3}) // before the rotated ones
      for (const bool norm : {false, true})
        with([&](AppendCase &c) {
          c.head_size.qk = (3 + blocks) * unit;
          c.rotation = rotation;
          c.rotary_dim = 2 * unit;
          c.rotary_first = blocks * unit;
          c.positions = blocks == 3;
          c.k_norm = c.q_norm = norm;
          c.q_heads = 2;
          c.q_in_place = norm;
          c.apart = blocks == 1;
          c.tail_dim = blocks == 1 ? unit + 8 : 0;
          c.q_is_whole = norm && blocks == 1;
          c.not_finite = blocks == 3;
        });
  // Halves of a rotation that are not whole groups, in rows of each number of lanes: few and most chunks are
  // rotated, from the first, from inside a group, and to the last.
  struct Turned {
    int groups, first, dim;
  };
  for (const Rotation rotation : {Rotation::halves, Rotation::pairs})
    for (const Turned turned : {Turned{1, 0, 16},
                                {1, 8, 16},
                                {2, 16, 32},
                                {2, 8, 48},
                                {3, 0, 48},
                                {3, 40, 16},
                                {4, 24, 80},
                                {5, 64, 96},
                                {8, 0, 240},
                                {16, 8, 496},
                                {9, 88, 64}})
      with([&](AppendCase &c) {
        c.head_size = {turned.groups * unit, unit};
        c.rotation = rotation;
        c.rotary_first = turned.first;
        c.rotary_dim = turned.dim;
        c.k_norm = turned.dim == 48;
        c.q_norm = turned.dim == 16 && turned.groups % 3 != 0;
        c.q_heads = turned.groups % 3;
        c.heads = 1 + turned.groups % 2;
        c.finding = turned.groups == 2 ? Finding::slots : Finding::csr;
        c.positions = c.finding == Finding::slots;
        c.tail_dim = turned.groups == 5 ? 24 : 0;
      });
  with([&](AppendCase &c) {
    c.head_size = {576 / 64 * 2 * unit, 0};
    c.heads = 1;
    c.q_heads = 4;
    c.v_in_k = true;
    c.tail_dim = 2 * unit;
    c.rotation = Rotation::pairs;
    c.rotary_dim = 2 * unit;
    c.rotary_first = 16 * unit;
    if (c.head_size.qk > 1024) c.head_size.qk = 1024, c.rotary_first = 14 * unit;
  });
}

} // namespace

std::vector<AppendCase> block_cases_of(const KernelTypes &types) {
  std::vector<AppendCase> cases;
  if (types.to != Element::u4)
    add_block_cases(types, 0, false, cases);
  else
    for (const int scale_group : {32, 64})
      for (const bool zeros : {false, true})
        add_block_cases(types, scale_group, zeros, cases);
  return cases;
}

} // namespace sluice::conformance
