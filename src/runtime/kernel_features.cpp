//===- kernel_features.cpp - features of kernels beyond plain attention ---------------------------------===//
#include "runtime/kernel_features.h"

#include "calls/args.h"
#include "calls/problem.h"
#include "features/all.h"
#include "package/feature_names.h"
#include "support/failure.h"

#include <sluice/attention.h>

#include <algorithm>
#include <array>
#include <cstddef>

namespace sluice::runtime {
namespace {

using features::CallNeed;
using features::Need;
using Problem = calls::Problem;
namespace names = package::feature_names;
using support::text;

/// A scale for each key: per token or page.
constexpr bool is_per_key(uint32_t scale_kind) {
  return scale_kind == SLUICE_SCALE_PER_TOKEN || scale_kind == SLUICE_SCALE_PER_PAGE;
}

constexpr bool is_of_few(uint32_t scale_kind) {
  return scale_kind == SLUICE_SCALE_PER_TENSOR || scale_kind == SLUICE_SCALE_PER_HEAD;
}

constexpr bool writes_lse(const Problem &p) {
  return (p.flags & calls::write_lse) != 0;
}

std::string asked_lse(const Problem &p) {
  return text("lse is ", p.flags & calls::lse_log2 ? SLUICE_LSE_LOG2 : SLUICE_LSE_LN);
}

// The kernels that remain have the features of the needs before, and the refusal names the first need that
// leaves none: the order does not change.
constexpr auto layout_needs = std::to_array<Need>({
    {names::ragged, "flags", [](const Problem &p) { return p.mode == calls::ragged; },
     [](const Problem &) -> std::string { return "flags has SLUICE_ATTENTION_RAGGED"; }, "without it"},
    SLUICE_FLAG_NEED(names::ragged, calls::prefixes), // the starts and lengths of prefixes
    SLUICE_FLAG_NEED(names::lengths, calls::prefixes),
    SLUICE_FIELD_NEED(names::paged, page_size, p.mode == calls::paged, "0 (not in pages)"),
    SLUICE_FIELD_NEED(names::csr, page_table_kind, p.page_table_kind == SLUICE_PAGE_TABLE_CSR,
                      "SLUICE_PAGE_TABLE_BLOCK (1)"),
    SLUICE_FLAG_NEED(names::page_index_64, calls::page_index_64),
    SLUICE_FIELD_NEED(names::k_pack, k_pack, p.k_pack != 0, "0"),
    SLUICE_FIELD_NEED(names::v_pack, v_pack, p.v_pack != 0, "0"),
    SLUICE_FLAG_NEED(names::v_in_k, calls::v_in_k),
});
constexpr auto scale_and_result_needs = std::to_array<Need>({
    SLUICE_FIELD_NEED(names::scales, q_scale_kind, p.q_scale_kind != 0, "SLUICE_SCALE_NONE (0)"),
    SLUICE_FIELD_NEED(names::scales, k_scale_kind, is_of_few(p.k_scale_kind), "SLUICE_SCALE_NONE (0)"),
    SLUICE_FIELD_NEED(names::scales, v_scale_kind, is_of_few(p.v_scale_kind), "SLUICE_SCALE_NONE (0)"),
    {names::lse, "lse", writes_lse, asked_lse, "SLUICE_LSE_NONE (0)"},
    {names::lse_base_2, "lse", [](const Problem &p) { return (p.flags & calls::lse_log2) != 0; }, asked_lse,
     "SLUICE_LSE_LN (1)"},
    SLUICE_FIELD_NEED(names::key_scales, k_scale_kind, is_per_key(p.k_scale_kind),
                      "SLUICE_SCALE_PER_HEAD (2)"),
    SLUICE_FIELD_NEED(names::key_scales, v_scale_kind, is_per_key(p.v_scale_kind),
                      "SLUICE_SCALE_PER_HEAD (2)"),
});
constexpr auto row_needs = std::to_array<Need>({SLUICE_FLAG_NEED(names::padded_rows, calls::padded_rows)});

/// The needs of changes of scores and of masks: those of the newer names or the others, in the order of the
/// names.
template <bool newer> consteval auto feature_needs() {
  constexpr auto all = features::joined<&features::Feature::needs>();
  const auto is_wanted = [](const Need &need) { return names::is_newer(need.name) == newer; };
  std::array<Need, std::ranges::count_if(all, is_wanted)> out = {};
  std::ranges::copy_if(all, out.begin(), is_wanted);
  std::ranges::sort(out, {}, [](const Need &need) { return names::rank(need.name); });
  return out;
}

template <typename Row, size_t... rows> consteval auto join_tables(const std::array<Row, rows> &...tables) {
  std::array<Row, (rows + ...)> out = {};
  auto *end = out.data();
  ((end = std::copy(tables.begin(), tables.end(), end)), ...);
  return out;
}

constexpr auto table = join_tables(layout_needs, feature_needs<false>(), scale_and_result_needs,
                                   feature_needs<true>(), row_needs);

constexpr auto length_needs = std::to_array<CallNeed>({
    {names::ragged, "q_starts", "NULL",
     [](const Problem &, const calls::Args &a) { return a.q_starts != nullptr; }},
    {names::lengths, "q_lengths", "NULL",
     [](const Problem &, const calls::Args &a) { return a.q_lengths != nullptr; }},
    {names::lengths, "kv_lengths", "NULL",
     [](const Problem &p, const calls::Args &a) {
       return a.kv_lengths != nullptr && p.mode != calls::paged; // if they are not part of the mode
     }},
});

constexpr auto call_table = join_tables(length_needs, features::joined<&features::Feature::call_needs>());

/// Length of all names, with commas between.
consteval size_t bytes_of_all_names(bool newer) {
  size_t bytes = 0;
  const auto add = [&](std::string_view name) {
    if (names::is_newer(name) == newer) bytes += name.size() + 1;
  };
  std::ranges::for_each(names::common_attention, add);
  std::ranges::for_each(names::further_attention, add);
  return bytes - 1; // no comma at the end
}
static_assert(bytes_of_all_names(false) < sizeof(sluice_kernel_info::features),
              "a kernel can list all it can do");
static_assert(bytes_of_all_names(true) < sizeof(sluice_kernel_info::more_features),
              "a kernel can list all it can do");

} // namespace

std::span<const Need> needs() {
  return table;
}

std::vector<std::string> features_of(const package::KernelEntry &kernel, bool newer) {
  std::vector<std::string> listed;
  for (const std::string &name : kernel.features)
    if (names::is_newer(name) == newer) listed.push_back(name);
  return listed;
}

bool has_feature(const package::KernelEntry &kernel, std::string_view name) {
  return std::find(kernel.features.begin(), kernel.features.end(), name) != kernel.features.end();
}

void check_call_features(const package::KernelEntry &kernel, const calls::Problem &problem,
                         const calls::Args &args) {
  for (const CallNeed &feature : call_table) {
    if (!feature.is_needed(problem, args) || has_feature(kernel, feature.name)) continue;
    throw support::Failure(support::Status::unsupported, std::string(feature.field),
                           text(feature.field, " is given, but ", package::format_kernel_name(kernel.name),
                                " does not have the feature ", feature.name,
                                "; nearest supported: ", feature.nearest));
  }
}

} // namespace sluice::runtime
