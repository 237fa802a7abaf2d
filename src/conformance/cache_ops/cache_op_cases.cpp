//===- cache_op_cases.cpp - the cases of cache operations -----------------------------------------------===//
//
// For every cache operation's kernel of the pack, each feature separately, and some together.
//
//===----------------------------------------------------------------------------------------------------===//
#include "conformance/cache_ops/append_case.h"
#include "conformance/cache_ops/append_groups.h"
#include "conformance/cache_ops/copy_case.h"
#include "conformance/cache_ops/merge_case.h"

#include <array>
#include <cstdio>
#include <stdexcept>

namespace sluice::conformance {

namespace {

constexpr std::array types = {Element::f16, Element::bf16, Element::f32,  Element::fp8, Element::bf8,
                              Element::i8,  Element::u4,   Element::q8_0, Element::q4_0};

/// Elements of a byte have scales.
bool has_scales(Element element) {
  return bytes_of(element) == 1;
}

const char *name_of(Element element) {
  constexpr std::array names = {"f16", "bf16", "f32", "e4m3fnuz", "e5m2fnuz", "i8", "u4", "q8_0", "q4_0"};
  return names[size_t(element)];
}

struct Types {
  Element from, to;
};

/// The source and target types of a kernel, by its name.
Types types_of(const std::string &kernel, const std::string &front) {
  for (const Element from : types)
    for (const Element to : types)
      if (kernel == front + name_of(from) + "_" + name_of(to)) return {from, to};
  throw std::runtime_error("the suite has no cases for " + kernel);
}

template <typename... Values> std::string format(const char *pattern, Values... values) {
  char part[256];
  std::snprintf(part, sizeof part, pattern, values...);
  return part;
}

/// What only a kernel for whole steps does.
std::string make_step_name(const AppendCase &c) {
  std::string name;
  if (c.q_heads != 0) name += format("_q%d", c.q_heads);
  if (c.q_in_place) name += "_inplace";
  if (c.tail_dim != 0) name += format("_tail%d", c.tail_dim);
  if (c.one_tail) name += "_onetail";
  if (c.q_is_whole) name += "_qwhole";
  if (c.k_norm) name += "_knorm";
  if (c.q_norm) name += "_qnorm";
  if (c.norm_is_f32) name += "_normf32";
  if (c.rotary_first != 0) name += format("_from%d", c.rotary_first);
  if (c.rotary_type != Element::f32) name += format("_tables%s", name_of(c.rotary_type));
  if (c.sines_apart) name += "_sines";
  return name;
}

std::string make_name(const AppendCase &c) {
  constexpr std::array findings = {"slots", "block", "csr"}, rotations = {"", "_halves", "_pairs"};
  constexpr std::array scales = {"", "tensor", "head", "token", "page"};
  std::string name =
      format("append_%s_%s_h%d_d%dx%d_p%d_%s", name_of(c.source), name_of(c.cache), c.heads, c.head_size.qk,
             c.v_in_k ? 0 : c.head_size.v, c.page_size, findings[size_t(c.finding)]);
  if (c.wide) name += "_wide";
  if (c.k_pack != 0) name += format("_xpack%d", c.k_pack);
  if (c.v_columns != Columns::none) name += c.v_columns == Columns::packs ? "_vpacks" : "_vcolumns";
  if (c.rotation != Rotation::none) name += rotations[size_t(c.rotation)] + std::to_string(c.rotary_dim);
  if (c.positions) name += "_positions";
  if (c.k_scale != Scale::none) name += format("_k%s", scales[size_t(c.k_scale)]);
  if (c.v_scale != Scale::none) name += format("_v%s", scales[size_t(c.v_scale)]);
  if (c.v_in_k) name += "_vink";
  if (c.more_rows != 0) name += format("_more%d", c.more_rows);
  if (c.apart) name += "_apart";
  if (c.not_finite) name += "_notfinite";
  if (c.few_values) name += "_few";
  if (c.scale_group != 0) name += format("_group%d", c.scale_group);
  if (c.zeros) name += "_zeros";
  if (c.power != 0) name += format("_power%d", c.power);
  return name + make_step_name(c);
}

std::string make_name(const CopyCase &c) {
  constexpr std::array movings = {"same", "pairs", "block", "csr"};
  constexpr std::array scales = {"", "tensor", "head", "token", "page"};
  std::string name = c.is_gather() ? "gather_" : "copy_";
  name += format("%s_%s_h%d_d%dx%d_p%d_%s", name_of(c.source), name_of(c.target), c.heads, c.head_size.qk,
                 c.v_in_k ? 0 : c.head_size.v, c.page_size, movings[size_t(c.moving)]);
  if (c.wide) name += "64";
  if (c.source_k_pack != 0) name += format("_from%d", c.source_k_pack);
  if (c.target_k_pack != 0) name += format("_to%d", c.target_k_pack);
  if (c.k_scale != Scale::none) name += format("_k%s", scales[size_t(c.k_scale)]);
  if (c.v_scale != Scale::none) name += format("_v%s", scales[size_t(c.v_scale)]);
  if (c.fork) name += "_fork";
  if (c.first_keys) name += "_first";
  if (c.apart) name += "_apart";
  if (c.not_finite) name += "_notfinite";
  if (c.scale_group != 0) name += format("_group%d", c.scale_group);
  if (c.zeros) name += "_zeros";
  if (c.power != 0) name += format("_power%d", c.power);
  return name;
}

std::string make_name(const MergeCase &c) {
  constexpr std::array weights = {"", "_some", "_far", "_notfinite", "_infinite"};
  constexpr std::array places = {"", "_backwards", "_listed"};
  std::string name = format("merge_%s_%s_n%d_t%d_h%d_d%d", name_of(c.partial), name_of(c.o), c.parts,
                            c.tokens, c.heads, c.head_size);
  name += weights[size_t(c.weights)];
  if (c.sink_logits) name += "_sinks";
  if (c.lse_base_2) name += "_lse2";
  if (!c.lse) name += "_nolse";
  if (c.o_scale != Scale::none) name += c.o_scale == Scale::head ? "_ohead" : "_otensor";
  if (c.power != 0) name += format("_power%d", c.power);
  if (c.apart) name += "_apart";
  if (c.in_place) name += "_inplace";
  name += places[size_t(c.places)];
  if (c.sequences != 0) name += format("_s%d", c.sequences);
  return name;
}

template <typename AnyCase> void add(std::vector<AnyCase> &cases, AnyCase c, const std::string &kernel) {
  c.kernel = kernel;
  c.name = make_name(c);
  cases.push_back(std::move(c));
}

/// Packs of bytes have 16 bytes, like those of other types.
int pack_of(const Types &types) {
  return has_scales(types.to) ? 16 : 8;
}

/// Powers of two with which numbers, their scales or their squares are subnormal, near that, or large. Only
/// BF16 has such numbers.
std::vector<int> powers_of(Element source) {
  return source == Element::bf16 ? std::vector<int>{-133, -129, -125, -121, -110, -70, 60, 110}
                                 : std::vector<int>{};
}

std::vector<AppendCase> append_cases_of(const Types &types) {
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

/// From caches in blocks or groups; of each type, where the kernel copies them.
std::vector<CopyCase> block_copies_of(const Types &types) {
  std::vector<CopyCase> cases;
  struct Kind {
    Element element;
    int group;
    bool zeros;
  };
  std::vector<Kind> kinds = {{types.from, 0, false}};
  if (types.from == types.to) kinds = {{Element::q8_0, 0, false}, {Element::q4_0, 0, false}};
  if (types.from == types.to || types.from == Element::u4) {
    if (types.from == Element::u4) kinds.clear();
    for (const int group : {32, 64})
      for (const bool zeros : {false, true})
        kinds.push_back({Element::u4, group, zeros});
  }
  for (const auto &[element, group, zeros] : kinds) {
    const int unit = std::max(group, 32);
    const CopyCase plain{.source = element,
                         .target = types.from == types.to ? element : types.to,
                         .head_size = {3 * unit, 2 * unit},
                         .scale_group = group,
                         .zeros = zeros};
    const auto with = [&](auto change) {
      CopyCase c = plain;
      change(c);
      cases.push_back(c);
    };
    for (const Moving moving : {Moving::same_page, Moving::pairs, Moving::block, Moving::csr})
      for (const int page_size : {1, 3, 16})
        with([&](CopyCase &c) {
          c.moving = moving;
          c.wide = page_size == 3 && moving != Moving::same_page;
          c.page_size = page_size;
          c.apart = page_size == 3;
          c.first_keys = c.is_gather() && page_size != 1;
        });
    // Rows of one block, whose bytes are copied two at a time, and of many.
    for (const Moving moving : {Moving::pairs, Moving::block}) {
      with([&](CopyCase &c) { c.head_size = {unit, unit}, c.heads = 1, c.moving = moving; });
      with([&](CopyCase &c) {
        c.head_size = {4 * unit, 5 * unit};
        c.heads = 9;
        c.moving = moving;
        c.apart = moving == Moving::pairs;
      });
      with([&](CopyCase &c) {
        c.head_size = {576 / 64 * 64, 0};
        c.heads = 1;
        c.v_in_k = true;
        c.moving = moving;
      });
    }
    if (types.from == types.to) with([&](CopyCase &c) { c.fork = true; });
  }
  return cases;
}

/// Scales per token or page, that are copied with the elements or apply to them.
void add_copies_with_scales(const Types &types, bool apart, std::vector<CopyCase> &cases) {
  for (const Moving moving : {Moving::same_page, Moving::pairs, Moving::block, Moving::csr})
    for (const Scale k : {Scale::none, Scale::token, Scale::page})
      for (const Scale v : {Scale::none, Scale::token, Scale::page}) {
        if (k == Scale::none && v == Scale::none) continue;
        CopyCase c{.source = types.from, .target = types.to, .moving = moving, .head_size = {64, 48}};
        c.k_scale = k;
        c.v_scale = v;
        c.page_size = k == v ? 16 : 3;
        c.apart = apart;
        c.fork = moving == Moving::pairs && k == v && types.from == types.to;
        c.heads = moving == Moving::block ? 5 : 3;
        cases.push_back(c);
      }
}

std::vector<CopyCase> copy_cases_of(const Types &types) {
  if (is_in_groups(types.from)) return block_copies_of(types);
  std::vector<CopyCase> cases;
  const CopyCase plain{.source = types.from, .target = types.to};
  const bool is_copied = types.from == types.to;
  // Bytes whose rows are multiples of 16 are copied as F16.
  const bool is_bytes = is_copied && types.from == Element::fp8;
  const auto with = [&](auto change) {
    CopyCase c = plain;
    change(c);
    cases.push_back(c);
  };
  for (const Moving moving : {Moving::same_page, Moving::pairs, Moving::block, Moving::csr})
    for (const bool wide : {false, true}) {
      if (moving == Moving::same_page && wide) continue;
      for (const int page_size : {1, 3, 16})
        with([&](CopyCase &c) {
          c.moving = moving;
          c.wide = wide;
          c.page_size = page_size;
          c.apart = page_size == 3;
          c.first_keys = c.is_gather() && page_size != 1;
          c.not_finite = page_size == 1;
        });
    }
  // Packs on either side, and different ones; a pack that is a row.
  with([](CopyCase &c) { c.source_k_pack = 8; });
  with([](CopyCase &c) { c.target_k_pack = 16, c.apart = true; });
  with([](CopyCase &c) { c.source_k_pack = 24, c.target_k_pack = 8; });
  with([](CopyCase &c) { c.moving = Moving::csr, c.source_k_pack = 8, c.first_keys = true; });
  // Rows of one chunk, of many heads, and of more chunks than a wave has lanes.
  with([](CopyCase &c) { c.head_size = {8, 8}, c.heads = 1; });
  for (const Moving moving : {Moving::pairs, Moving::block}) {
    with([&](CopyCase &c) {
      c.head_size = is_bytes ? HeadSizes{136, 72} : HeadSizes{128, 64};
      c.heads = 9;
      c.moving = moving;
    });
    with([&](CopyCase &c) {
      c.head_size = {is_bytes ? 584 : 576, 512};
      c.heads = 1;
      c.v_in_k = true;
      c.moving = moving;
      c.k_scale = is_copied ? Scale::none : Scale::tensor;
      c.first_keys = c.is_gather();
    });
  }
  if (is_copied) {
    for (const bool apart : {false, true})
      with([&](CopyCase &c) { c.fork = true, c.apart = apart, c.wide = apart; });
    if (is_bytes) {
      add_copies_with_scales(types, true, cases);
      return cases;
    }
    for (const Element element : {Element::bf16, Element::f32, Element::fp8})
      for (const Moving moving : {Moving::same_page, Moving::pairs, Moving::block})
        with([&](CopyCase &c) {
          c.source = c.target = element;
          c.head_size = {48, 32};
          c.source_k_pack = moving == Moving::block ? 16 : 0;
          c.moving = moving;
        });
    for (const Element element : {Element::fp8, Element::i8})
      add_copies_with_scales({element, element}, false, cases);
    return cases;
  }
  if (types.to != Element::fp8) add_copies_with_scales(types, true, cases);
  if (types.to == Element::fp8)
    for (const int power : powers_of(types.from))
      with([&](CopyCase &c) {
        c.power = power;
        c.k_scale = Scale::head;
        c.v_scale = Scale::tensor;
      });
  for (const Scale k : {Scale::none, Scale::tensor, Scale::head})
    for (const Scale v : {Scale::none, Scale::tensor, Scale::head})
      if (k != Scale::none || v != Scale::none)
        with([&](CopyCase &c) {
          c.heads = 5;
          c.k_scale = k;
          c.v_scale = v;
          c.moving = k == v ? Moving::csr : Moving::pairs;
        });
  return cases;
}

/// Into blocks of ggml, or groups of 4-bit numbers with or without zero points.
void add_block_cases(const Types &types, int scale_group, bool zeros, std::vector<AppendCase> &cases) {
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

std::vector<AppendCase> block_cases_of(const Types &types) {
  std::vector<AppendCase> cases;
  if (types.to != Element::u4)
    add_block_cases(types, 0, false, cases);
  else
    for (const int scale_group : {32, 64})
      for (const bool zeros : {false, true})
        add_block_cases(types, scale_group, zeros, cases);
  return cases;
}

/// The same cases with more to do, and everything that only these kernels do.
std::vector<AppendCase> step_cases_of(const Types &types) {
  if (is_in_groups(types.to)) return block_cases_of(types);
  std::vector<AppendCase> cases = append_cases_of(types);
  for (size_t i = 0; i < cases.size(); ++i) {
    AppendCase &c = cases[i];
    if (c.rotary_dim % 16 != 0) c.rotary_dim = 16;
    c.q_heads = int(1 + i % 3);
    c.k_norm = i % 4 == 1;
    c.q_norm = i % 4 == 2;
    c.q_in_place = i % 5 == 3;
    if (i % 4 == 3 && c.head_size.qk > 16 && !c.v_in_k) {
      c.tail_dim = 16;
      c.q_is_whole = true;
    }
  }
  const AppendCase plain{.source = types.from, .cache = types.to, .finding = Finding::block, .q_heads = 2};
  const auto with = [&](auto change) {
    AppendCase c = plain;
    change(c);
    cases.push_back(c);
  };
  const auto rotate = [](AppendCase &c, Rotation rotation, int dim) {
    c.rotation = rotation;
    c.rotary_dim = rotation == Rotation::none ? 0 : dim;
    c.positions = c.rotary_dim != 0 && c.finding == Finding::slots;
  };
  for (const int q_heads : {1, 4, 9})
    for (const Rotation rotation : {Rotation::none, Rotation::halves, Rotation::pairs})
      for (const Finding finding : {Finding::slots, Finding::csr})
        with([&](AppendCase &c) {
          c.q_heads = q_heads;
          c.finding = finding;
          c.q_in_place = q_heads == 4;
          c.apart = q_heads == 9;
          c.not_finite = q_heads == 1;
          rotate(c, rotation, 32);
        });
  for (const bool k : {false, true})
    for (const bool q : {false, true})
      for (const bool f32 : {false, true})
        for (const Rotation rotation : {Rotation::none, Rotation::halves, Rotation::pairs})
          if (k || q)
            with([&](AppendCase &c) {
              c.k_norm = k;
              c.q_norm = q;
              c.q_heads = q ? 3 : 0;
              c.norm_is_f32 = f32;
              c.not_finite = f32 && rotation == Rotation::halves;
              rotate(c, rotation, 48);
            });
  // Tails of each head, and one for all; the norm leaves them out, the rotation takes the tail or the body.
  for (const bool one : {false, true})
    for (const bool whole : {false, true})
      for (const bool norm : {false, true})
        for (const int first : {0, 32})
          with([&](AppendCase &c) {
            c.head_size.qk = 64;
            c.tail_dim = 32;
            c.one_tail = one;
            c.q_is_whole = whole;
            c.q_in_place = whole && norm;
            c.k_norm = c.q_norm = norm;
            c.apart = one;
            rotate(c, first == 0 ? Rotation::halves : Rotation::pairs, 32);
            c.rotary_first = first;
          });
  for (const Element tables : {Element::f16, Element::bf16, Element::f32})
    for (const bool sines : {false, true})
      for (const Rotation rotation : {Rotation::halves, Rotation::pairs})
        with([&](AppendCase &c) {
          c.rotary_type = tables;
          c.sines_apart = sines;
          // Rotated rows of K only, if another of these makes the call a step.
          c.q_heads = tables == Element::f32 && !sines ? 1 : 0;
          c.finding = sines ? Finding::slots : Finding::csr;
          rotate(c, rotation, 16);
          c.rotary_first = 8;
        });
  // Rows of each number of lanes, with norms across all of them; MLA; the longest.
  for (const HeadSizes size :
       {HeadSizes{8, 8}, HeadSizes{24, 16}, HeadSizes{40, 56}, HeadSizes{64, 128}, HeadSizes{128, 128},
        HeadSizes{192, 128}, HeadSizes{256, 256}, HeadSizes{520, 512}, HeadSizes{1024, 1000}})
    with([&](AppendCase &c) {
      c.head_size = size;
      c.k_norm = c.q_norm = true;
      rotate(c, size.qk < 16 ? Rotation::none : Rotation::halves, size.qk / 16 * 16);
    });
  for (const bool norm : {false, true})
    with([&](AppendCase &c) {
      c.head_size = {576, 512};
      c.heads = 1;
      c.q_heads = 4;
      c.v_in_k = true;
      c.tail_dim = 64;
      c.k_norm = norm;
      rotate(c, Rotation::pairs, 64);
      c.rotary_first = 512;
    });
  if (types.to == types.from || types.to == Element::fp8)
    for (const Columns columns : {Columns::packs, Columns::whole})
      for (const Finding finding : {Finding::slots, Finding::block, Finding::csr})
        for (const int page_size : {16, 32, 64})
          with([&](AppendCase &c) {
            c.finding = finding;
            c.wide = finding == Finding::csr;
            c.page_size = page_size;
            c.v_columns = columns;
            c.k_pack = page_size == 32 ? pack_of(types) : 0;
            c.q_heads = page_size == 16 ? 0 : 3;
            c.apart = page_size == 32;
            c.not_finite = page_size == 64;
            if (page_size == 16) c.head_size = {128, finding == Finding::slots ? 128 : 24};
            if (c.q_heads != 0) rotate(c, Rotation::halves, 32);
            if (has_scales(types.to)) c.v_scale = columns == Columns::packs ? Scale::head : Scale::token;
          });
  // Norms of tiny rows, and scales that such rows get.
  for (const int power : powers_of(types.from)) {
    if (power > 0) continue;
    with([&](AppendCase &c) {
      c.power = power;
      c.k_norm = c.q_norm = true;
      rotate(c, Rotation::halves, 32);
    });
  }
  if (!has_scales(types.to)) return cases;
  for (const int power : powers_of(types.from))
    for (const bool rotated : {false, true})
      with([&](AppendCase &c) {
        c.power = power;
        c.k_scale = rotated ? Scale::token : Scale::page;
        c.v_scale = Scale::token;
        rotate(c, rotated ? Rotation::pairs : Rotation::none, 32);
      });
  for (const Scale k : {Scale::none, Scale::head, Scale::token, Scale::page})
    for (const Scale v : {Scale::none, Scale::token, Scale::page})
      for (const bool changed : {false, true}) {
        if (k != Scale::token && k != Scale::page && v == Scale::none) continue;
        with([&](AppendCase &c) {
          c.heads = 5;
          c.q_heads = v == Scale::page ? 2 : 0;
          c.k_scale = k;
          c.v_scale = v;
          c.k_norm = changed && k != Scale::head;
          c.finding = v == Scale::token ? Finding::slots : Finding::csr;
          c.apart = v == Scale::page;
          c.not_finite = k == v;
          c.k_pack = changed ? pack_of(types) : 0;
          rotate(c, changed ? Rotation::halves : Rotation::none, 32);
        });
      }
  // The maximum of rows with each number of lanes.
  for (const HeadSizes size :
       {HeadSizes{8, 16}, HeadSizes{40, 64}, HeadSizes{128, 256}, HeadSizes{520, 1024}})
    with([&](AppendCase &c) {
      c.head_size = size;
      c.q_heads = 0;
      c.k_scale = c.v_scale = Scale::token;
    });
  with([&](AppendCase &c) {
    c.head_size = {576, 512};
    c.heads = 1;
    c.v_in_k = true;
    c.tail_dim = 64;
    c.k_scale = Scale::token;
    rotate(c, Rotation::pairs, 64);
    c.rotary_first = 512;
  });
  return cases;
}

std::vector<MergeCase> merge_cases_of(const Types &types) {
  std::vector<MergeCase> cases;
  const MergeCase plain{.partial = types.from, .o = types.to};
  const auto with = [&](auto change) {
    MergeCase c = plain;
    change(c);
    cases.push_back(c);
  };
  // Up to 16 lanes hold up to 4 parts each at once: numbers around those, and beyond all.
  for (const int parts : {1, 2, 3, 4, 5, 8, 9, 16, 17, 63, 64, 65, 130}) {
    with([&](MergeCase &c) {
      c.parts = parts;
      c.sink_logits = parts % 2 == 0;
    });
    if (parts > 2)
      with([&](MergeCase &c) {
        c.parts = parts;
        c.weights = Weights::some;
        c.apart = parts % 2 == 0;
        c.lse_base_2 = parts % 4 == 1;
        c.sink_logits = parts % 3 == 0;
      });
  }
  // A row of one chunk, of as many chunks as a wave and a workgroup have lanes, and of one more.
  for (const int size : {8, 24, 128, 512, 520, 2056})
    with([&](MergeCase &c) {
      c.parts = 6;
      c.head_size = size;
      c.tokens = 2;
      c.sink_logits = true;
    });
  for (const bool base_2 : {false, true})
    for (const bool sinks : {false, true}) {
      for (const Weights weights : {Weights::far, Weights::not_finite})
        with([&](MergeCase &c) {
          c.parts = 7;
          c.weights = weights;
          c.lse_base_2 = base_2;
          c.sink_logits = sinks;
        });
      with([&](MergeCase &c) {
        c.parts = 6;
        c.tokens = 17;
        c.heads = 7;
        c.lse_base_2 = base_2;
        c.sink_logits = sinks;
        c.lse = base_2 == sinks;
        c.apart = sinks;
      });
    }
  if (types.from == types.to)
    for (const bool apart : {false, true})
      with([&](MergeCase &c) {
        c.parts = 7;
        c.apart = apart;
        c.in_place = true;
      });
  // Empty parts as FlashAttention marks them: at once with one part in each lane, and step by step.
  for (const int parts : {2, 5, 16, 40})
    for (const bool apart : {false, true})
      with([&](MergeCase &c) {
        c.parts = parts;
        c.weights = Weights::infinite;
        c.apart = apart;
        c.sink_logits = parts == 5;
        c.lse_base_2 = parts == 16;
      });
  // Parts in any place, with one and with several in a lane: the widest rows have one lane for all parts.
  for (const PartPlaces places : {PartPlaces::backwards, PartPlaces::listed})
    for (const int parts : {3, 8, 16})
      for (const int size : {64, 1032})
        with([&](MergeCase &c) {
          c.parts = parts;
          c.head_size = size;
          c.places = places;
          c.apart = parts != 8;
          c.weights = size == 64 ? Weights::infinite : Weights::some;
          c.in_place = parts == 8 && types.from == types.to;
        });
  // LSEs of several sequences.
  for (const int sequences : {1, 2, 6})
    for (const PartPlaces places : {PartPlaces::in_order, PartPlaces::listed})
      with([&](MergeCase &c) {
        c.parts = 6;
        c.tokens = 12;
        c.sequences = sequences;
        c.places = places;
        c.apart = places == PartPlaces::in_order;
        c.in_place = sequences == 2 && types.from == types.to;
        c.weights = Weights::some;
      });
  // Scales of O in each of the ways: at once with one part or several in each lane, step by step, and both
  // with code of their own.
  if (types.to == Element::fp8)
    for (const int power : {-125, 100})
      for (const int parts : {1, 7, 40})
        with([&](MergeCase &c) {
          c.power = power;
          c.parts = parts;
          c.o_scale = Scale::head;
        });
  if (types.to == Element::fp8)
    for (const Scale scale : {Scale::tensor, Scale::head})
      for (const int parts : {1, 7, 40, 130})
        for (const Weights weights : {Weights::some, Weights::infinite})
          with([&](MergeCase &c) {
            c.parts = parts;
            c.head_size = 40;
            c.o_scale = scale;
            c.weights = weights;
            c.apart = parts == 7;
            c.sink_logits = parts == 40;
          });
  return cases;
}

} // namespace

std::vector<AppendCase> append_cases(const Target &target, Level level) {
  std::vector<AppendCase> all;
  for (const std::string &kernel : target.names("kv_append")) {
    const Types types = types_of(kernel, "kv_append_");
    for (AppendCase &c : append_cases_of(types))
      add(all, std::move(c), kernel);
    // More chunks in a row, and more such rows, than the grid processes at a time.
    if (level == Level::full)
      add(all,
          {.source = types.from, .cache = types.to, .heads = 130, .head_size = {1024, 8}, .more_rows = 8},
          kernel);
  }
  for (const std::string &kernel : target.names("append_step"))
    for (AppendCase &c : step_cases_of(types_of(kernel, "append_step_")))
      add(all, std::move(c), kernel);
  return all;
}

std::vector<CopyCase> copy_cases(const Target &target) {
  std::vector<CopyCase> all;
  for (const std::string &kernel : target.names("kv_copy")) {
    for (CopyCase &c : copy_cases_of(types_of(kernel, "kv_copy_")))
      add(all, std::move(c), kernel);
  }
  return all;
}

std::vector<MergeCase> merge_cases(const Target &target, Level level) {
  std::vector<MergeCase> all;
  for (const std::string &kernel : target.names("merge_states")) {
    const Types types = types_of(kernel, "merge_states_");
    for (MergeCase &c : merge_cases_of(types))
      add(all, std::move(c), kernel);
    // More workgroups, with four rows each, than a grid has along x.
    if (level == Level::full)
      add(all,
          {.partial = types.from, .o = types.to, .parts = 1, .tokens = 3280, .heads = 5, .head_size = 264},
          kernel);
  }
  return all;
}

} // namespace sluice::conformance
