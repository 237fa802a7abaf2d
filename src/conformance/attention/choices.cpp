//===- choices.cpp - every property of a case, one by one -----------------------------------------------===//

#include "conformance/attention/choices.h"

#include "conformance/attention/scores/scores.h"

namespace sluice::conformance {

namespace {

template <Layout layout> void lay_out(Case &c) {
  c.layout = layout;
}
template <Lengths lengths> void vary(Case &c) {
  c.lengths = lengths;
  if (c.mode == Mode::dense && c.rows == Rows::bounds) c.rows = Rows::lengths;
}
template <Rows rows> void find_rows(Case &c) {
  c.rows = rows;
}
template <int size> void page(Case &c) {
  c.mode = Mode::paged;
  c.pages.size = size;
}
template <bool Pages::*member> void set_page(Case &c) {
  c.mode = Mode::paged;
  if (c.pages.size == 0) c.pages.size = 16;
  c.pages.*member = true;
}
void give_tables_to_heads(Case &c) {
  set_page<&Pages::by_head>(c);
  if (c.kv_heads == 1) c.q_heads *= c.kv_heads = 2;
}
template <Mask mask> void cut(Case &c) {
  c.mask = mask;
}
template <int keys> void window_left(Case &c) {
  c.window_left = keys;
}
template <int keys> void window_right(Case &c) {
  c.window_right = keys;
  if (c.mask == Mask::bottom_right) c.mask = Mask::none;
  if (c.mask == Mask::top_left) c.mask = Mask::none_top_left;
}
template <int keys> void keep(Case &c) {
  c.sink_tokens = keys;
  if (c.window_left < 0) c.window_left = 9;
}
template <Mask mask> void span(Case &c) {
  c.spans = true;
  c.mask = mask;
}
/// 16-bit numbers have no scale for each key.
template <Scale Case::*member> void scale_keys(Case &c) {
  c.*member = Scale::token;
  if (c.cache == Cache::same) c.cache = Cache::e4m3fnuz;
}
template <Scale Case::*member> void scale_pages(Case &c) {
  scale_keys<member>(c);
  c.*member = Scale::page;
  c.mode = Mode::paged;
}
template <Scale scale> void store_fp8(Case &c) {
  c.o_fp8 = true;
  c.o_f32 = false;
  c.o_scale = scale;
}
template <Columns columns> void turn_values(Case &c) {
  c.v_columns = columns;
  if (columns == Columns::packs) {
    c.mode = Mode::paged;
    if (c.pages.size == 0) c.pages.size = 16;
  } else if (c.mode == Mode::ragged) {
    c.mode = Mode::dense;
  }
}
template <bool Case::*member> void set(Case &c) {
  c.*member = true;
}
template <Scale Case::*member, Scale scale> void set_scale(Case &c) {
  c.*member = scale;
}
void give_scale(Case &c) {
  c.scale = 0.3;
}
void write_no_lse(Case &c) {
  c.lse = false;
}
void write_lse_2(Case &c) {
  c.lse = c.lse_base_2 = true;
}
template <int q_heads, int kv_heads> void group(Case &c) {
  c.q_heads = q_heads;
  c.kv_heads = kv_heads;
}
template <Pattern pattern> void fill(Case &c) {
  c.pattern = pattern;
}
void fill_codes(Case &c) {
  if (!has_byte_cache(c)) c.cache = Cache::e4m3fnuz;
  c.pattern = Pattern::codes;
}
template <Cache cache> void store_as(Case &c) {
  c.cache = cache;
}
/// So many elements of the last eight of a row.
template <int qk_rest, int v_rest> void end_inside_eight(Case &c) {
  c.head_size = {int(row_elements(c.head_size.qk)) - 8 + qk_rest,
                 int(row_elements(c.head_size.v)) - 8 + v_rest};
}

std::vector<Feature> memory_and_masks() {
  return {
      {"layout",
       {lay_out<Layout::bhsd>, lay_out<Layout::sbhd>, lay_out<Layout::packed>, lay_out<Layout::padded>,
        lay_out<Layout::capacity>, lay_out<Layout::broadcast>}},
      {"lengths",
       {vary<Lengths::mixed>, vary<Lengths::chunked>, vary<Lengths::decode>, vary<Lengths::serving>}},
      {"rows", {find_rows<Rows::lengths>, find_rows<Rows::starts>, find_rows<Rows::gaps>}},
      {"page size", {page<1>, page<3>, page<16>, page<32>, page<64>, page<128>, page<256>}},
      {"table", {set_page<&Pages::csr>}},
      {"entries", {set_page<&Pages::wide>}},
      {"packs of K", {set_page<&Pages::k_pack>}},
      {"missing pages", {set_page<&Pages::missing>}},
      {"tables of heads", {give_tables_to_heads}},
      {"cache",
       {store_as<Cache::e4m3fnuz>, store_as<Cache::e4m3fnuz_as_q>, store_as<Cache::e5m2fnuz>,
        store_as<Cache::i8>, store_as<Cache::q8_0>, store_as<Cache::q4_0>, store_as<Cache::u4>,
        store_as<Cache::u4_zeros>}},
      {"head size", {end_inside_eight<4, 4>, end_inside_eight<1, 3>, end_inside_eight<8, 5>}},
      {"V in K", {set<&Case::v_in_k>}},
      {"V by columns", {turn_values<Columns::packs>, turn_values<Columns::whole>}},
      {"mask",
       {cut<Mask::bottom_right>, cut<Mask::top_left>, cut<Mask::none_top_left>, cut<Mask::given>,
        cut<Mask::none_given>}},
      {"spans", {span<Mask::bottom_right>, span<Mask::top_left>, span<Mask::given>}},
      {"causal sequences", {set<&Case::causal_by_sequence>}},
      {"window left", {window_left<0>, window_left<11>, window_left<64>, window_left<100>}},
      {"window right", {window_right<0>, window_right<7>, window_right<65>}},
      {"sink tokens", {keep<1>, keep<4>, keep<70>}},
  };
}

std::vector<Feature> scales_and_results() {
  return {
      {"scales of Q", {set_scale<&Case::q_scale, Scale::tensor>, set_scale<&Case::q_scale, Scale::head>}},
      {"scales of K",
       {set_scale<&Case::k_scale, Scale::tensor>, set_scale<&Case::k_scale, Scale::head>,
        scale_keys<&Case::k_scale>, scale_pages<&Case::k_scale>}},
      {"scales of V",
       {set_scale<&Case::v_scale, Scale::tensor>, set_scale<&Case::v_scale, Scale::head>,
        scale_keys<&Case::v_scale>, scale_pages<&Case::v_scale>}},
      {"scale", {give_scale}},
      {"LSE", {write_no_lse, write_lse_2}},
      {"O", {set<&Case::o_f32>, store_fp8<Scale::none>, store_fp8<Scale::tensor>, store_fp8<Scale::head>}},
      {"determinism", {set<&Case::batch_invariant>}},
      {"heads", {group<1, 1>, group<4, 1>, group<4, 4>, group<6, 3>, group<8, 1>}},
      {"pattern",
       {fill<Pattern::peaked>, fill<Pattern::rising>, fill<Pattern::falling>, fill<Pattern::uniform>,
        fill<Pattern::tiny>, fill_codes, fill<Pattern::nan_query>, fill<Pattern::nan_key>,
        fill<Pattern::nan_value>}},
  };
}

std::vector<Feature> make_features() {
  std::vector<Feature> all = memory_and_masks();
  const auto append = [&](const std::vector<Feature> &more) {
    all.insert(all.end(), more.begin(), more.end());
  };
  for (const ScoreChange *change : score_changes)
    if (change->choices) append(change->choices());
  append(scales_and_results());
  return all;
}

} // namespace

const std::vector<Feature> &features() {
  static const std::vector<Feature> all = make_features();
  return all;
}

bool has(const Case &c, Choice choice) {
  Case chosen = c;
  choice(chosen);
  return chosen == c;
}

} // namespace sluice::conformance
