//===- all.h - the features of attention that change scores or say which keys are seen ------------------===//
//
// A new one is a file of this folder, its line in `all`, and its name in package/feature_names.h.
//
//===----------------------------------------------------------------------------------------------------===//
#pragma once

#include "calls/problem.h"
#include "features/alibi.h"
#include "features/bias.h"
#include "features/causal.h"
#include "features/diagonal.h"
#include "features/feature.h"
#include "features/mask_bits.h"
#include "features/missing_pages.h"
#include "features/sink_logits.h"
#include "features/soft_cap.h"
#include "features/spans.h"
#include "features/window.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <type_traits>
#include <utility>

namespace sluice::features {

/// In the order in which they are applied to a score, which is also that of the tables.
inline constexpr const Feature *all[] = {
    &causal,
    &window,
    &mask_bits,
    &mask_new_rows,
    &diagonal,
    &causal_by_sequence,
    &spans,
    &missing_pages,
    &soft_cap,
    &bias,
    &bias_scale,
    &bias_scale_by_sequence,
    &alibi_by_sequence,
    &alibi,
    &sink_logits,
};

using List = std::array<const Feature *, std::size(all)>;

/// All of them, beginning with these.
template <size_t count> consteval List beginning_with(const Feature *const (&first)[count]) {
  List list = {};
  auto *end = std::copy_n(first, count, list.data());
  for (const Feature *feature : all)
    if (std::find(std::begin(first), std::end(first), feature) == std::end(first)) *end++ = feature;
  return list;
}

// If several features of a problem or a call are wrong, the refusal names the first one. Callers may know
// which, so these orders do not change; a new feature comes after the named ones.
inline constexpr List problem_order = beginning_with({&diagonal, &causal, &mask_new_rows});
inline constexpr List prefix_order = beginning_with(
    // Flags that need others come before what they need, which cannot be left out without them.
    {&diagonal, &window, &alibi, &missing_pages, &mask_new_rows, &mask_bits, &bias_scale});
inline constexpr List call_order =
    beginning_with({&bias, &mask_bits, &alibi, &sink_logits, &bias_scale, &alibi_by_sequence});

/// Visits a part of each feature that has it, in the order of a list. The features are constants: this is
/// the code of their parts, one after another.
template <auto part, const auto &list = all, typename Visitor> constexpr void for_each(Visitor visitor) {
  const auto visit = [&]<size_t i>() {
    constexpr auto value = list[i]->*part;
    if constexpr (value != nullptr) visitor(value);
  };
  [&]<size_t... i>(std::index_sequence<i...>) {
    (visit.template operator()<i>(), ...);
  }(std::make_index_sequence<std::size(list)>());
}

/// Whether a part of any feature answers with true.
template <auto part, typename... Arguments> constexpr bool any(const Arguments &...arguments) {
  bool found = false;
  for_each<part>([&](auto asks) { found = found || asks(arguments...); });
  return found;
}

/// The rows that features have of a table, one after another.
template <auto part> consteval auto joined() {
  constexpr size_t count = [] {
    size_t rows = 0;
    for (const Feature *feature : all)
      rows += (feature->*part).size();
    return rows;
  }();
  using Row = std::remove_cvref_t<decltype((all[0]->*part)[0])>;
  std::array<Row, count> table = {};
  auto *end = table.data();
  for (const Feature *feature : all)
    end = std::copy((feature->*part).begin(), (feature->*part).end(), end);
  return table;
}

/// The flags of calls::Problem that belong to features.
inline constexpr uint32_t known_flags = [] {
  uint32_t flags = 0;
  for (const Feature *feature : all)
    flags |= feature->flags;
  return flags;
}();

} // namespace sluice::features
