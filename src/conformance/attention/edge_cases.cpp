//===- edge_cases.cpp - cases known to be difficult -----------------------------------------------------===//

#include "conformance/attention/edge_cases.h"

#include "conformance/attention/scores/scores.h"

#include <algorithm>
#include <array>

namespace sluice::conformance {

namespace {

constexpr Pages pages_of(int size) {
  return {.size = size};
}

/// Sequences without keys, without rows, and with one of each. `mixed` gives a single sequence one row and
/// some of the keys; of two, one has all rows and one key, the other no rows; of four, one has no keys.
void add_empty_sequences(Edges &out) {
  for (Mode mode : {Mode::dense, Mode::ragged, Mode::paged})
    for (int batch : {1, 2, 3, 4, 5})
      for (bool sinks : {false, true})
        out.add({.batch = batch,
                 .q_heads = 2,
                 .q_len = 7,
                 .kv_len = 5,
                 .mask = batch % 2 ? Mask::bottom_right : Mask::none,
                 .mode = mode,
                 .lengths = Lengths::mixed,
                 .rows = Rows::gaps,
                 .pages = pages_of(4),
                 .sink_logits = sinks,
                 .lse_base_2 = batch > 2});
}

/// Rows that see one key, rows that see none, and rows that see the first keys and some far from them.
void add_narrow_windows(Edges &out) {
  for (Mask mask : {Mask::none, Mask::none_top_left})
    for (int q_len : {30, 100}) {
      // Only the diagonal; and with more rows than keys, rows after or before all keys.
      out.add({.q_len = q_len, .kv_len = 70, .mask = mask, .window_left = 0, .window_right = 0});
      out.add({.q_len = q_len,
               .kv_len = 70,
               .mask = mask,
               .window_left = 3,
               .window_right = 0,
               .sink_tokens = 2,
               .sink_logits = true});
    }
  // Tiles between the sink tokens and the window that no row sees; keys that are both.
  for (int kept : {1, 63, 64, 65, 200, 500})
    out.add({.q_heads = 2,
             .q_len = 40,
             .kv_len = 400,
             .mask = Mask::bottom_right,
             .window_left = 20,
             .sink_tokens = kept});
  // Windows wider than everything.
  out.add({.q_len = 20, .kv_len = 90, .window_left = 1 << 30, .window_right = 0x7fffffff});
  out.add({.q_len = 20, .kv_len = 90, .mask = Mask::top_left, .window_left = 0x7fffffff});
  // Rows far after the last key.
  out.add({.batch = 2, .q_len = 200, .kv_len = 20, .mask = Mask::top_left, .window_left = 5});
}

/// Of changes that can hide keys, or of the others.
void add_changes(Edges &out, bool hide_keys) {
  for (const ScoreChange *change : score_changes)
    if ((change->hides != nullptr) == hide_keys && change->add_edges) change->add_edges(out);
}

/// A scale of 0, which is not the default's: each row is the mean of the values that it sees.
void add_zero_scales(Edges &out) {
  for (Mode mode : {Mode::dense, Mode::ragged, Mode::paged})
    out.add({.batch = 2,
             .q_heads = 2,
             .q_len = 9,
             .kv_len = 70,
             .mask = Mask::bottom_right,
             .scale = 0.0,
             .mode = mode,
             .pages = pages_of(16)});
}

void add_pages(Edges &out) {
  // Lengths around a page's end, page sizes around a tile's.
  for (int size : {1, 3, 16, 48, 64, 100, 128, 256})
    for (int kv_len : {size, size + 1, 2 * size + size / 2})
      out.add({.batch = 2,
               .q_heads = 2,
               .q_len = 3,
               .kv_len = kv_len,
               .mask = Mask::bottom_right,
               .mode = Mode::paged,
               .pages = {.size = size, .csr = kv_len % 2 == 1, .wide = kv_len % 3 == 1}});
  // A page that is longer than all keys.
  out.add({.batch = 3,
           .q_len = 5,
           .kv_len = 9,
           .mode = Mode::paged,
           .lengths = Lengths::mixed,
           .rows = Rows::starts,
           .pages = pages_of(1024)});
}

/// Pages before the window, whose entries are poison, for kernels with one row, some and many, with sink
/// tokens in the same page or in none of its pages.
void add_pages_before_windows(Edges &out) {
  constexpr std::array rows = {1, 21, 139};
  constexpr std::array sizes = {8, 3, 32, 5};
  constexpr std::array caches = {Cache::same, Cache::e4m3fnuz, Cache::e4m3fnuz_as_q};
  constexpr std::array kept = {0, 5, 70};
  // Near the end of a tile of 16, 32 and 64 keys, so that the tile begins with pages before the window.
  constexpr int window_begin = 188, window_left = 20;
  size_t turn = 0;
  for (Shapes::Shape shape : out.shapes.shapes)
    for (int q_len : rows) {
      const size_t n = turn++;
      out.add({.batch = 2,
               .q_heads = q_len > 100 ? 1 : 4,
               .q_len = q_len,
               .kv_len = window_begin + window_left + q_len,
               .mask = Mask::bottom_right,
               .mode = Mode::paged,
               .lengths = Lengths::chunked,
               .pages = {.size = sizes[n % 4], .csr = n / 2 % 2 == 1, .wide = n / 3 % 2 == 1},
               .cache = caches[(n / 3 + n / 27) % 3],
               .window_left = window_left,
               .sink_tokens = kept[n / 2 % 3],
               .batch_invariant = n % 5 == 4},
              shape);
    }
}

/// One row with many keys and a group of query heads: here kernels split keys.
void add_long_decodes(Edges &out) {
  for (int kv_len : {1000, 1024, 3000})
    for (Mode mode : {Mode::dense, Mode::paged})
      for (int group : {1, 8})
        out.add({.batch = 2,
                 .q_heads = group,
                 .q_len = 1,
                 .kv_len = kv_len,
                 .mask = Mask::bottom_right,
                 .mode = mode,
                 .lengths = Lengths::decode,
                 .pages = pages_of(64),
                 .sink_logits = group == 8,
                 .batch_invariant = kv_len == 1000});
}

/// FP8: every number, and scales of every granularity.
void add_fp8(Edges &out, Cache cache) {
  for (Mode mode : {Mode::dense, Mode::ragged, Mode::paged})
    for (Scale scale : {Scale::none, Scale::tensor, Scale::head})
      out.add({.batch = 2,
               .q_heads = 4,
               .kv_heads = 2,
               .q_len = 6,
               .kv_len = 140,
               .mask = Mask::bottom_right,
               .pattern = Pattern::codes,
               .mode = mode,
               .lengths = Lengths::chunked,
               .pages = pages_of(32),
               .cache = cache,
               .q_scale = cache == Cache::e4m3fnuz_as_q ? scale : Scale::none,
               .k_scale = scale,
               .v_scale = scale});
}

/// FP8 queries: keys that end at every fourth place of two tiles of 32; rows that fill part of a tile, one
/// tile or several; and splits of a row's keys that are merged.
void add_fp8_queries(Edges &out) {
  const Case fp8{.batch = 2, .q_heads = 4, .kv_heads = 2, .cache = Cache::e4m3fnuz_as_q};
  int turn = 0;
  for (int kv_len = 1; kv_len <= 65; kv_len += 4, ++turn) {
    Case c = fp8;
    c.q_len = 1 + turn * 5 % 37;
    c.kv_len = kv_len;
    c.mask = turn % 2 ? Mask::bottom_right : Mask::none;
    out.add(c);
  }
  for (Pattern pattern :
       {Pattern::peaked, Pattern::rising, Pattern::falling, Pattern::uniform, Pattern::tiny})
    for (Mode mode : {Mode::dense, Mode::ragged, Mode::paged}) {
      Case c = fp8;
      c.mode = mode;
      c.pages = pages_of(16);
      c.pattern = pattern;
      c.q_len = 20;
      c.kv_len = 100;
      out.add(c);
      c.q_heads = 16;
      c.q_len = 1;
      c.kv_len = 700;
      c.batch_invariant = pattern == Pattern::rising;
      out.add(c);
    }
}

/// NaN and infinity: which rows may they reach?
void add_not_a_number(Edges &out) {
  for (Pattern pattern : {Pattern::nan_query, Pattern::nan_key, Pattern::nan_value})
    for (Mode mode : {Mode::dense, Mode::ragged, Mode::paged}) {
      const Case c{.batch = 2,
                   .q_heads = 2,
                   .q_len = 100,
                   .kv_len = 150,
                   .pattern = pattern,
                   .mode = mode,
                   .lengths = Lengths::chunked,
                   .pages = pages_of(16)};
      out.add(c);
      for (Mask mask : {Mask::bottom_right, Mask::top_left}) {
        Case masked = c;
        masked.mask = mask;
        out.add(masked);
        masked.window_left = 20;
        masked.sink_tokens = 3;
        out.add(masked);
      }
      Case bits = c;
      bits.bits.given = true;
      bits.bias = {.type = BiasType::f32, .holes = true};
      out.add(bits);
      Case longer_q = c;
      longer_q.q_len = 150;
      longer_q.kv_len = 70;
      longer_q.mask = Mask::bottom_right;
      longer_q.sink_logits = true;
      out.add(longer_q);
    }
}

/// The same in the scales and zero points of blocks, which hold for many elements at once: in every kernel
/// with blocks, where a mask, a window, bits or missing pages hide keys.
void add_scales_not_a_number(Edges &out) {
  constexpr int whole_groups = 64, largest_head = 512;
  for (Shapes::Shape shape : out.shapes.shapes) {
    const HeadSizes size = shape.head_size;
    if (shape.v_in_k || size.qk % whole_groups != 0 || size.v % whole_groups != 0 || size.qk > largest_head)
      continue;
    for (Cache cache : {Cache::q8_0, Cache::q4_0, Cache::u4, Cache::u4_zeros}) {
      Case c{.batch = 2,
             .q_heads = 4,
             .kv_heads = 2,
             .q_len = 40,
             .kv_len = 90,
             .mask = Mask::bottom_right,
             .pattern = Pattern::nan_value,
             .mode = Mode::paged,
             .lengths = Lengths::chunked,
             .pages = pages_of(16),
             .cache = cache};
      out.add(c, shape);
      Case missing = c;
      missing.mask = Mask::none;
      missing.pages.missing = true;
      missing.bits.given = true;
      out.add(missing, shape);
      c.layout = Layout::capacity;
      c.mode = Mode::dense;
      c.window_left = 20;
      c.sink_tokens = 3;
      out.add(c, shape);
      c.pattern = Pattern::nan_key;
      out.add(c, shape);
    }
  }
}

/// V by columns, of which four keys are read together: windows and sink tokens that end inside of such four,
/// with pages before the window whose entries are poison; and lengths that do, with NaN after the last key
/// and in V.
void add_columns(Edges &out) {
  constexpr int largest_head = 128, window_left = 20;
  size_t turn = 0;
  for (Shapes::Shape shape : out.shapes.shapes) {
    if (std::max(shape.head_size.qk, shape.head_size.v) > largest_head || shape.v_in_k) continue;
    for (int beyond : {1, 2, 3}) {
      const size_t n = turn++;
      const Columns columns = n % 2 == 0 ? Columns::packs : Columns::whole;
      const Cache cache = n / 2 % 2 == 0 ? Cache::same : Cache::e4m3fnuz;
      for (int kept : {0, 4 + beyond})
        out.add({.batch = 2,
                 .q_heads = 4,
                 .q_len = 3,
                 .kv_len = 188 + beyond + window_left + 3,
                 .mask = Mask::bottom_right,
                 .mode = Mode::paged,
                 .lengths = Lengths::chunked,
                 .pages = pages_of(n % 3 == 0 ? 8 : 32),
                 .cache = cache,
                 .v_columns = columns,
                 .window_left = window_left,
                 .sink_tokens = kept},
                shape);
      Case c{.batch = 2,
             .q_heads = 2,
             .q_len = 40,
             .kv_len = 60 + beyond,
             .mask = beyond == 1 ? Mask::bottom_right : Mask::none,
             .layout = beyond == 2 ? Layout::padded : Layout::capacity,
             .pattern = Pattern::nan_value,
             .mode = n % 4 < 2 ? Mode::dense : Mode::paged,
             .lengths = Lengths::mixed,
             .rows = Rows::lengths,
             .pages = pages_of(16),
             .cache = cache,
             .v_columns = columns};
      out.add(c, shape);
      c.pattern = Pattern::normal;
      c.kv_len = beyond; // less than a unit
      out.add(c, shape);
    }
  }
}

} // namespace

std::vector<Case> edge_cases(const Collector &shapes) {
  Edges out(shapes);
  add_empty_sequences(out);
  add_narrow_windows(out);
  add_changes(out, true);
  add_zero_scales(out);
  add_changes(out, false);
  add_pages(out);
  add_pages_before_windows(out);
  add_long_decodes(out);
  add_fp8(out, Cache::e4m3fnuz);
  add_fp8(out, Cache::e4m3fnuz_as_q);
  add_fp8_queries(out);
  add_not_a_number(out);
  add_scales_not_a_number(out);
  add_columns(out);
  return std::move(out.cases);
}

} // namespace sluice::conformance
