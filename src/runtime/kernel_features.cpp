//===- kernel_features.cpp - features of kernels beyond plain attention ---------------------------------===//
#include "runtime/kernel_features.h"

#include "package/feature_names.h"
#include "support/failure.h"

#include <algorithm>
#include <array>
#include <cstddef>

namespace sluice::runtime {
namespace {

using Problem = sluice_problem;
namespace names = package::feature_names;
using support::text;

#define SLUICE_FLAG_FEATURE(name, flag)                                                                      \
  Feature{name, "flags", [](const Problem &p) { return (p.flags & flag) != 0; },                             \
          [](const Problem &) -> std::string { return "flags has " #flag; }, "without it"}
#define SLUICE_FIELD_FEATURE(name, field, condition, nearest)                                                \
  Feature {                                                                                                  \
    name, #field, [](const Problem &p) { return condition; },                                                \
        [](const Problem &p) { return text(#field " is ", p.field); }, nearest                               \
  }

std::string window(const Problem &p) {
  return text("flags has ",
              p.flags & SLUICE_HAS_WINDOW_LEFT
                  ? text("SLUICE_HAS_WINDOW_LEFT (window_left ", p.window_left)
                  : text("SLUICE_HAS_WINDOW_RIGHT (window_right ", p.window_right),
              ")");
}

/// A scale for each key: per token or page.
constexpr bool is_per_key(uint32_t scale_kind) {
  return scale_kind == SLUICE_SCALE_PER_TOKEN || scale_kind == SLUICE_SCALE_PER_PAGE;
}

constexpr bool is_of_few(uint32_t scale_kind) {
  return scale_kind == SLUICE_SCALE_PER_TENSOR || scale_kind == SLUICE_SCALE_PER_HEAD;
}

constexpr Feature table[] = {
    SLUICE_FIELD_FEATURE(names::ragged, mode, p.mode == SLUICE_MODE_RAGGED, "SLUICE_MODE_DENSE (0)"),
    SLUICE_FLAG_FEATURE(names::ragged, SLUICE_SHARED_PREFIX), // the starts and lengths of prefixes
    SLUICE_FLAG_FEATURE(names::lengths, SLUICE_SHARED_PREFIX),
    SLUICE_FIELD_FEATURE(names::paged, mode, p.mode == SLUICE_MODE_PAGED, "SLUICE_MODE_DENSE (0)"),
    SLUICE_FIELD_FEATURE(names::csr, page_table_kind, p.page_table_kind == SLUICE_PAGE_TABLE_CSR,
                         "SLUICE_PAGE_TABLE_BLOCK (1)"),
    SLUICE_FLAG_FEATURE(names::page_index_64, SLUICE_PAGE_INDEX_64),
    SLUICE_FIELD_FEATURE(names::k_pack, k_pack, p.k_pack != 0, "0"),
    SLUICE_FIELD_FEATURE(names::v_pack, v_pack, p.v_pack != 0, "0"),
    SLUICE_FLAG_FEATURE(names::v_in_k, SLUICE_V_IN_K),
    SLUICE_FLAG_FEATURE(names::causal, SLUICE_CAUSAL),
    {names::window, "flags",
     [](const Problem &p) { return (p.flags & (SLUICE_HAS_WINDOW_LEFT | SLUICE_HAS_WINDOW_RIGHT)) != 0; },
     window, "no window"},
    SLUICE_FLAG_FEATURE(names::mask, SLUICE_BOOL_MASK),
    SLUICE_FIELD_FEATURE(names::soft_cap, soft_cap, p.soft_cap != 0, "0"),
    SLUICE_FIELD_FEATURE(names::bias, bias_type, p.bias_type != 0, "0 (no bias)"),
    SLUICE_FLAG_FEATURE(names::alibi, SLUICE_ALIBI),
    SLUICE_FLAG_FEATURE(names::sink_logits, SLUICE_SINK_LOGITS),
    SLUICE_FIELD_FEATURE(names::scales, q_scale_kind, p.q_scale_kind != 0, "SLUICE_SCALE_NONE (0)"),
    SLUICE_FIELD_FEATURE(names::scales, k_scale_kind, is_of_few(p.k_scale_kind), "SLUICE_SCALE_NONE (0)"),
    SLUICE_FIELD_FEATURE(names::scales, v_scale_kind, is_of_few(p.v_scale_kind), "SLUICE_SCALE_NONE (0)"),
    SLUICE_FLAG_FEATURE(names::lse, SLUICE_WRITE_LSE),
    SLUICE_FIELD_FEATURE(names::lse_base_2, lse_base,
                         p.flags & SLUICE_WRITE_LSE && p.lse_base == SLUICE_LSE_BASE_2,
                         "SLUICE_LSE_BASE_E (0)"),
    SLUICE_FIELD_FEATURE(names::key_scales, k_scale_kind, is_per_key(p.k_scale_kind),
                         "SLUICE_SCALE_PER_HEAD (2)"),
    SLUICE_FIELD_FEATURE(names::key_scales, v_scale_kind, is_per_key(p.v_scale_kind),
                         "SLUICE_SCALE_PER_HEAD (2)"),
    SLUICE_FLAG_FEATURE(names::mask_new_rows, SLUICE_MASK_NEW_ROWS),
    SLUICE_FLAG_FEATURE(names::spans, SLUICE_SPANS),
    SLUICE_FLAG_FEATURE(names::causal_by_sequence, SLUICE_CAUSAL_BY_SEQUENCE),
    SLUICE_FIELD_FEATURE(names::given_diagonal, mask_alignment, p.mask_alignment == SLUICE_GIVEN_DIAGONAL,
                         "SLUICE_TOP_LEFT (1)"),
    SLUICE_FLAG_FEATURE(names::bias_scale, SLUICE_BIAS_SCALE),
    SLUICE_FLAG_FEATURE(names::missing_pages, SLUICE_MISSING_PAGES_HIDDEN),
    SLUICE_FLAG_FEATURE(names::padded_rows, SLUICE_PADDED_ROWS),
};

#undef SLUICE_FLAG_FEATURE
#undef SLUICE_FIELD_FEATURE

/// A feature that a call may need without its mode or problem saying so.
struct CallFeature {
  std::string_view name;
  std::string_view field;   // of sluice_args
  std::string_view nearest; // value of the field
  bool (*is_needed)(const Problem &, const sluice_args &);
};

constexpr CallFeature call_table[] = {
    {names::ragged, "q_starts", "NULL",
     [](const Problem &, const sluice_args &a) { return a.q_starts != nullptr; }},
    {names::lengths, "q_lengths", "NULL",
     [](const Problem &, const sluice_args &a) { return a.q_lengths != nullptr; }},
    {names::lengths, "kv_lengths", "NULL",
     [](const Problem &p, const sluice_args &a) {
       return a.kv_lengths != nullptr && p.mode != SLUICE_MODE_PAGED; // if they are not part of the mode
     }},
    {names::alibi_by_sequence, "alibi_batch_stride", "0",
     [](const Problem &, const sluice_args &a) { return a.alibi_batch_stride != 0 && a.batch > 1; }},
};

/// Since ABI 1.1. The first version has room for the others' names only.
constexpr std::string_view newer_names[] = {names::key_scales,
                                            names::mask_new_rows,
                                            names::spans,
                                            names::causal_by_sequence,
                                            names::given_diagonal,
                                            names::bias_scale,
                                            names::alibi_by_sequence,
                                            names::missing_pages,
                                            names::padded_rows,
                                            names::v_pack};

constexpr bool is_newer(std::string_view name) {
  return std::find(std::begin(newer_names), std::end(newer_names), name) != std::end(newer_names);
}

/// Length of all names, each once, with commas between.
consteval size_t bytes_of_all_names(bool newer) {
  size_t bytes = 0;
  std::string_view previous;
  for (const Feature &feature : table) {
    if (feature.name != previous && is_newer(feature.name) == newer) bytes += feature.name.size() + 1;
    previous = feature.name;
  }
  return bytes - 1; // no comma at the end
}
static_assert(bytes_of_all_names(false) < sizeof(sluice_kernel_info::features),
              "a kernel can list all it can do");
static_assert(bytes_of_all_names(true) < sizeof(sluice_kernel_info::more_features),
              "a kernel can list all it can do");

} // namespace

std::span<const Feature> features() {
  return table;
}

std::vector<std::string> features_of(const package::KernelEntry &kernel, bool newer) {
  std::vector<std::string> listed;
  for (const std::string &name : kernel.features)
    if (is_newer(name) == newer) listed.push_back(name);
  return listed;
}

bool has_feature(const package::KernelEntry &kernel, std::string_view name) {
  return std::find(kernel.features.begin(), kernel.features.end(), name) != kernel.features.end();
}

void check_call_features(const package::KernelEntry &kernel, const sluice_problem &problem,
                         const sluice_args &args) {
  for (const CallFeature &feature : call_table) {
    if (!feature.is_needed(problem, args) || has_feature(kernel, feature.name)) continue;
    throw support::Failure(support::Status::unsupported, std::string(feature.field),
                           text(feature.field, " is given, but ", package::format_kernel_name(kernel.name),
                                " does not have the feature ", feature.name,
                                "; nearest supported: ", feature.nearest));
  }
}

} // namespace sluice::runtime
