//===- kernel_cases.cpp - every feature on every kernel that claims it ----------------------------------===//

#include "conformance/attention/kernel_cases.h"

#include "conformance/attention/scores/scores.h"

#include <algorithm>
#include <array>
#include <optional>

namespace sluice::conformance {

namespace {

template <bool Case::*member> void set(Case &c, const Kernel &) {
  c.*member = true;
}
template <Mask mask> void cut(Case &c, const Kernel &) {
  c.mask = mask;
}
template <Scale Case::*member> void give_scales(Case &c, const Kernel &) {
  c.*member = Scale::head;
  // O of few keys is not small relative to its terms, of which an FP8 P keeps four bits.
  if (has_fp8_queries(c)) c.pattern = Pattern::peaked;
}
template <Pattern pattern> void fill(Case &c, const Kernel &) {
  c.pattern = pattern;
}

/// A window whose first key is not the first of a tile and whose last key is not the last of one.
void look_around(Case &c, const Kernel &kernel) {
  c.window_left = kernel.tile_kv + 5;
  c.window_right = 7;
  // No keys come after the last row's.
  if (c.q_len == 1) c.mask = Mask::none_top_left;
}
void look_back(Case &c, const Kernel &kernel) {
  c.mask = Mask::bottom_right;
  c.window_left = kernel.tile_kv + 5;
}

/// The first keys, then several tiles that no row sees, then the window.
template <Mask mask> void keep_far_keys(Case &c, const Kernel &kernel) {
  c.mask = mask;
  c.window_left = 20;
  if (!is_causal(c)) c.window_right = 3;
  c.sink_tokens = 3;
  c.kv_len = c.q_len + c.window_left + (kernel.prefill ? 6 : 9) * kernel.tile_kv + 1;
}

void write_lse_2(Case &c, const Kernel &) {
  c.lse_base_2 = true;
}
void write_no_lse(Case &c, const Kernel &) {
  c.lse = false;
}

/// One of four sequences has all rows and keys.
template <Mode mode, Rows rows> void vary(Case &c, const Kernel &kernel) {
  if (c.mode != Mode::paged) c.mode = mode;
  if (kernel.columns && c.mode == Mode::ragged) {
    c.mode = Mode::paged; // whose rows may have starts, too
    c.pages.size = 16;
  }
  c.batch = 4;
  c.lengths = Lengths::mixed;
  c.rows = rows;
}
template <int size> void page(Case &c, const Kernel &) {
  c.mode = Mode::paged;
  c.pages.size = size;
  c.lengths = Lengths::chunked;
}
template <bool Pages::*member> void page_with(Case &c, const Kernel &kernel) {
  page<16>(c, kernel);
  c.pages.*member = true;
}

void pack_values(Case &c, const Kernel &kernel) {
  page<64>(c, kernel);
  c.v_columns = Columns::packs;
}

/// Lists of pages, or of keys, with holes.
template <int size> void hide_pages(Case &c, const Kernel &kernel) {
  page<size>(c, kernel);
  if (kernel.columns) c.pages.size = std::max(size, 8); // the least that V by columns has
  c.pages.missing = c.pages.by_head = true;
}

/// Rows that end inside eight elements.
void shorten_rows(Case &c, const Kernel &) {
  c.head_size = {c.head_size.qk - 3, c.head_size.v - 5};
}

/// Enough tiles for several splits.
void divide_keys(Case &c, const Kernel &kernel) {
  c.kv_len = 20 * kernel.tile_kv + 3;
}

template <Scale scale> void give_scales_of_keys(Case &c, const Kernel &kernel) {
  if (scale == Scale::page && kernel.claims.contains("paged")) page<16>(c, kernel);
  c.k_scale = c.v_scale = scale;
  if (has_fp8_queries(c)) c.pattern = Pattern::peaked;
}
template <bool window> void give_spans(Case &c, const Kernel &kernel) {
  c.mask = Mask::bottom_right;
  c.spans = true;
  c.batch = kernel.columns ? 9 : 6; // some of few rows are in a span
  if (window) c.window_left = 3;    // spans reach further back
}
void cut_some(Case &c, const Kernel &) {
  c.batch = 3;
  c.causal_by_sequence = true;
}
void store_fp8(Case &c, const Kernel &) {
  c.o_fp8 = true;
  c.o_scale = Scale::head;
}

void change_scores(Case &c, bool causal) {
  for (const ScoreChange *change : score_changes)
    if (change->join_everything) change->join_everything(c, causal);
  c.q_scale = c.k_scale = c.v_scale = Scale::head;
  if (has_fp8_queries(c)) c.pattern = Pattern::peaked;
}
void set_everything(Case &c, const Kernel &kernel) {
  keep_far_keys<Mask::none>(c, kernel);
  change_scores(c, false);
  c.lse_base_2 = true;
}
void set_everything_causal(Case &c, const Kernel &kernel) {
  vary<Mode::ragged, Rows::gaps>(c, kernel);
  if (kernel.claims.contains("paged")) c.mode = Mode::paged;
  if (c.mode == Mode::paged)
    c.pages = {.size = kernel.columns ? 32 : 16, .csr = true, .wide = true, .k_pack = true};
  if (kernel.columns) c.v_columns = Columns::packs;
  c.mask = Mask::bottom_right;
  change_scores(c, true);
}

struct Extents {
  int group, q_len;
};

/// From the most wanted: rows for a tile and part of another, then for part of one; two query heads or more
/// for each KV head.
std::vector<Extents> extents_of(const Kernel &kernel, size_t turn) {
  constexpr std::array groups = {2, 3, 4};
  const int tile = kernel.tile_q;
  std::vector<Extents> all;
  for (const int rows : {tile + tile / 8 + 3, tile - 1, tile / 2 + 1})
    for (size_t i = 0; i < groups.size(); ++i) {
      const int group = groups[(turn + i) % groups.size()];
      all.push_back({group, rows < tile ? rows / group : (rows + group - 1) / group});
    }
  // Few rows of more heads, finally one row of more heads than a lower tile holds.
  for (const int group : {8, 16, 32})
    for (const int rows : {tile - 1, tile / 2 + group})
      if (rows / group > 1) all.push_back({group, rows / group});
  for (const int group : {tile - 3, tile / 2 + 1})
    all.push_back({group, 1});
  return all;
}

/// Bounds with which rules choose or cost does; for prefill kernels only rules, since a plan by cost may
/// compute the case's rows with another kernel.
std::vector<PlanBounds> bounds_of(const Case &c, const Kernel &kernel) {
  std::vector<PlanBounds> all = {{}, {.batch = c.batch}, {.q_len = c.q_len}, {c.batch, c.q_len, 0}};
  if (kernel.prefill) return all;
  for (const int batch : {512, 64, 8, c.batch})
    for (const int keys : {0, 1024, 8192, 65536})
      all.push_back({batch, c.q_len, std::max(keys, c.kv_len)});
  return all;
}

std::optional<Case> find_case(const Target &target, const Kernel &kernel, const KernelFeature &feature,
                              size_t turn) {
  for (const Extents extents : extents_of(kernel, turn)) {
    Case c{.dtype = kernel.dtype,
           .head_size = kernel.head_size,
           .batch = 2,
           .q_heads = 2 * extents.group,
           .kv_heads = 2,
           .q_len = extents.q_len,
           // Waves of a kernel that is not prefill may have separate tiles.
           .kv_len = kernel.prefill ? 3 * kernel.tile_kv + 5 : 5 * kernel.tile_kv + 3,
           .cache = kernel.cache,
           .v_in_k = kernel.mla,
           .v_columns = kernel.columns ? Columns::whole : Columns::none,
           .kernel = kernel.name};
    if (kernel.paged) page<16>(c, kernel);
    feature.set(c, kernel);
    // V in K supports packs only in kernels made for it.
    if (c.v_in_k && !kernel.mla) c.pages.k_pack = false;
    c = meaningful(std::move(c));
    // Splits without keys take time, too: avoid splits unless the feature needs them or the kernel always
    // splits.
    for (const bool has_parts : {false, true})
      for (const PlanBounds &bounds : bounds_of(c, kernel)) {
        if (feature.in_parts && !has_parts) continue;
        c.plan = bounds;
        const std::optional<Answer> answer = ask(target, c);
        if (!answer || answer->kernel != kernel.name || answer->has_parts != has_parts) continue;
        c.name = make_name(c);
        return c;
      }
  }
  return {};
}

const std::vector<KernelFeature> results_and_masks = {
    {"everything", "", set_everything, Level::quick},
    {"everything, causal", "causal", set_everything_causal, Level::quick},
    {"nothing", "lse", cut<Mask::none>},
    {"no LSE", "", write_no_lse},
    {"LSE to base 2", "lse_base_2", write_lse_2},
    {"O as F32", "", set<&Case::o_f32>},
    {"rising scores", "", fill<Pattern::rising>},
    {"causal", "causal", cut<Mask::bottom_right>},
    {"causal from the top left", "causal", cut<Mask::top_left>},
    {"window", "window", look_around},
    {"causal window", "window", look_back},
    {"sink tokens", "window", keep_far_keys<Mask::none>},
    {"sink tokens, causal", "window", keep_far_keys<Mask::bottom_right>},
};
const std::vector<KernelFeature> scales_and_memory = {
    {"scales of Q", "scales", give_scales<&Case::q_scale>},
    {"scales of K", "scales", give_scales<&Case::k_scale>},
    {"scales of V", "scales", give_scales<&Case::v_scale>},
    {"lengths", "lengths", vary<Mode::dense, Rows::lengths>},
    {"ragged", "ragged", vary<Mode::ragged, Rows::starts>},
    {"pages", "paged", page<48>},
    {"CSR", "csr", page_with<&Pages::csr>},
    {"entries of 64 bits", "page_index_64", page_with<&Pages::wide>},
    {"packs of K", "k_pack", page_with<&Pages::k_pack>},
    {"missing pages", "missing_pages", hide_pages<16>, Level::quick},
    {"missing keys", "missing_pages", hide_pages<1>},
    {"tables of heads", "paged", page_with<&Pages::by_head>},
    {"V in K", "v_in_k", set<&Case::v_in_k>},
    {"padded rows", "padded_rows", shorten_rows, Level::quick},
    {"scales per token", "key_scales", give_scales_of_keys<Scale::token>},
    {"scales per page", "key_scales", give_scales_of_keys<Scale::page>},
};
const std::vector<KernelFeature> masks_by_sequence = {
    {"spans", "spans", give_spans<false>},
    {"spans and a window", "spans", give_spans<true>},
    {"some causal sequences", "causal_by_sequence", cut_some},
    {"given diagonals", "given_diagonal", cut<Mask::given>},
};
const std::vector<KernelFeature> others = {
    {"O as FP8", "", store_fp8},
    {"keys in parts", "", divide_keys, Level::full, true},
    {"packs of V", "v_pack", pack_values},
};

/// Those of changes of scores follow those of the same kind.
std::vector<KernelFeature> make_kernel_features() {
  std::vector<KernelFeature> all = results_and_masks;
  const auto append = [&](const std::vector<KernelFeature> &more) {
    all.insert(all.end(), more.begin(), more.end());
  };
  const auto append_by_sequence = [&](bool masks) {
    for (const ScoreChange *change : score_changes)
      if (change->is_mask() == masks && change->on_kernels_by_sequence)
        append(change->on_kernels_by_sequence());
  };
  for (const ScoreChange *change : score_changes)
    if (change->on_kernels) append(change->on_kernels());
  append(scales_and_memory);
  append_by_sequence(true);
  append(masks_by_sequence);
  append_by_sequence(false);
  append(others);
  return all;
}

} // namespace

const std::vector<KernelFeature> &kernel_features() {
  static const std::vector<KernelFeature> all = make_kernel_features();
  return all;
}

std::vector<Case> cases_of_kernel(const Target &target, const Kernel &kernel, Level level) {
  std::vector<Case> cases;
  size_t turn = 0;
  for (const KernelFeature &feature : kernel_features()) {
    ++turn;
    if (feature.level > level) continue;
    if (*feature.claim != '\0' && !kernel.claims.contains(feature.claim)) continue;
    if (std::optional<Case> c = find_case(target, kernel, feature, turn)) cases.push_back(std::move(*c));
  }
  return cases;
}

std::vector<Case> kernel_cases(const Target &target, Level level) {
  std::vector<Case> all;
  for (const Kernel &kernel : attention_kernels(target))
    for (Case &c : cases_of_kernel(target, kernel, level))
      all.push_back(std::move(c));
  return all;
}

} // namespace sluice::conformance
