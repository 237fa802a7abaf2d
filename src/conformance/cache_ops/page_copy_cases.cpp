//===- page_copy_cases.cpp - the cases of sluice_cache_copy and sluice_cache_gather ---------------------===//
//
// For every copy kernel of the pack, each feature separately, and some together.
//
//===----------------------------------------------------------------------------------------------------===//
#include "conformance/cache_ops/append_groups.h"
#include "conformance/cache_ops/case_names.h"
#include "conformance/cache_ops/kernel_types.h"
#include "conformance/cache_ops/page_copy_case.h"

#include <algorithm>

namespace sluice::conformance {

namespace {

/// From caches in blocks or groups; of each type, where the kernel copies them.
std::vector<PageCopyCase> block_copies_of(const KernelTypes &types) {
  std::vector<PageCopyCase> cases;
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
    const PageCopyCase plain{.source = element,
                             .target = types.from == types.to ? element : types.to,
                             .head_size = {3 * unit, 2 * unit},
                             .scale_group = group,
                             .zeros = zeros};
    const auto with = [&](auto change) {
      PageCopyCase c = plain;
      change(c);
      cases.push_back(c);
    };
    for (const Moving moving : {Moving::same_page, Moving::pairs, Moving::block, Moving::csr})
      for (const int page_size : {1, 3, 16})
        with([&](PageCopyCase &c) {
          c.moving = moving;
          c.wide = page_size == 3 && moving != Moving::same_page;
          c.page_size = page_size;
          c.apart = page_size == 3;
          c.first_keys = c.is_gather() && page_size != 1;
        });
    // Rows of one block, whose bytes are copied two at a time, and of many.
    for (const Moving moving : {Moving::pairs, Moving::block}) {
      with([&](PageCopyCase &c) { c.head_size = {unit, unit}, c.heads = 1, c.moving = moving; });
      with([&](PageCopyCase &c) {
        c.head_size = {4 * unit, 5 * unit};
        c.heads = 9;
        c.moving = moving;
        c.apart = moving == Moving::pairs;
      });
      with([&](PageCopyCase &c) {
        c.head_size = {576 / 64 * 64, 0};
        c.heads = 1;
        c.v_in_k = true;
        c.moving = moving;
      });
    }
    if (types.from == types.to) with([&](PageCopyCase &c) { c.fork = true; });
  }
  return cases;
}

/// Scales per token or page, that are copied with the elements or apply to them.
void add_copies_with_scales(const KernelTypes &types, bool apart, std::vector<PageCopyCase> &cases) {
  for (const Moving moving : {Moving::same_page, Moving::pairs, Moving::block, Moving::csr})
    for (const Scale k : {Scale::none, Scale::token, Scale::page})
      for (const Scale v : {Scale::none, Scale::token, Scale::page}) {
        if (k == Scale::none && v == Scale::none) continue;
        PageCopyCase c{.source = types.from, .target = types.to, .moving = moving, .head_size = {64, 48}};
        c.k_scale = k;
        c.v_scale = v;
        c.page_size = k == v ? 16 : 3;
        c.apart = apart;
        c.fork = moving == Moving::pairs && k == v && types.from == types.to;
        c.heads = moving == Moving::block ? 5 : 3;
        cases.push_back(c);
      }
}

std::vector<PageCopyCase> page_copy_cases_of(const KernelTypes &types) {
  if (is_in_groups(types.from)) return block_copies_of(types);
  std::vector<PageCopyCase> cases;
  const PageCopyCase plain{.source = types.from, .target = types.to};
  const bool is_copied = types.from == types.to;
  // Bytes whose rows are multiples of 16 are copied as F16.
  const bool is_bytes = is_copied && types.from == Element::fp8;
  const auto with = [&](auto change) {
    PageCopyCase c = plain;
    change(c);
    cases.push_back(c);
  };
  for (const Moving moving : {Moving::same_page, Moving::pairs, Moving::block, Moving::csr})
    for (const bool wide : {false, true}) {
      if (moving == Moving::same_page && wide) continue;
      for (const int page_size : {1, 3, 16})
        with([&](PageCopyCase &c) {
          c.moving = moving;
          c.wide = wide;
          c.page_size = page_size;
          c.apart = page_size == 3;
          c.first_keys = c.is_gather() && page_size != 1;
          c.not_finite = page_size == 1;
        });
    }
  // Packs on either side, and different ones; a pack that is a row.
  with([](PageCopyCase &c) { c.source_k_pack = 8; });
  with([](PageCopyCase &c) { c.target_k_pack = 16, c.apart = true; });
  with([](PageCopyCase &c) { c.source_k_pack = 24, c.target_k_pack = 8; });
  with([](PageCopyCase &c) { c.moving = Moving::csr, c.source_k_pack = 8, c.first_keys = true; });
  // Rows of one chunk, of many heads, and of more chunks than a wave has lanes.
  with([](PageCopyCase &c) { c.head_size = {8, 8}, c.heads = 1; });
  for (const Moving moving : {Moving::pairs, Moving::block}) {
    with([&](PageCopyCase &c) {
      c.head_size = is_bytes ? HeadSizes{136, 72} : HeadSizes{128, 64};
      c.heads = 9;
      c.moving = moving;
    });
    with([&](PageCopyCase &c) {
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
      with([&](PageCopyCase &c) { c.fork = true, c.apart = apart, c.wide = apart; });
    if (is_bytes) {
      add_copies_with_scales(types, true, cases);
      return cases;
    }
    for (const Element element : {Element::bf16, Element::f32, Element::fp8})
      for (const Moving moving : {Moving::same_page, Moving::pairs, Moving::block})
        with([&](PageCopyCase &c) {
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
      with([&](PageCopyCase &c) {
        c.power = power;
        c.k_scale = Scale::head;
        c.v_scale = Scale::tensor;
      });
  for (const Scale k : {Scale::none, Scale::tensor, Scale::head})
    for (const Scale v : {Scale::none, Scale::tensor, Scale::head})
      if (k != Scale::none || v != Scale::none)
        with([&](PageCopyCase &c) {
          c.heads = 5;
          c.k_scale = k;
          c.v_scale = v;
          c.moving = k == v ? Moving::csr : Moving::pairs;
        });
  return cases;
}

} // namespace

std::vector<PageCopyCase> page_copy_cases(const Target &target) {
  std::vector<PageCopyCase> all;
  for (const std::string &kernel : target.names("kv_copy")) {
    for (PageCopyCase &c : page_copy_cases_of(types_of(kernel, "kv_copy_")))
      add_named(all, std::move(c), kernel);
  }
  return all;
}

} // namespace sluice::conformance
