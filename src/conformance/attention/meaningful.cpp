//===- meaningful.cpp - which parts of a case are possible together -------------------------------------===//

#include "conformance/attention/blocks.h"
#include "conformance/attention/scores/scores.h"
#include "conformance/attention/sequences.h"

#include <algorithm>

namespace sluice::conformance {

namespace {

void place_sequences(Case &c) {
  if (c.mode == Mode::paged) {
    c.pages.size = std::max(c.pages.size, 1);
    if (c.kv_heads == 1) c.pages.by_head = false;
  } else {
    c.pages = {};
  }
  if (c.mode == Mode::dense && c.rows != Rows::bounds) c.rows = Rows::lengths;
  if (c.mode == Mode::dense && c.rows == Rows::bounds) c.lengths = Lengths::equal;
  if (c.mode == Mode::ragged)
    c.rows = c.rows == Rows::bounds || c.rows == Rows::starts ? Rows::starts : Rows::gaps;
  if (c.lengths == Lengths::decode) c.q_len = 1;
}

// Kernels with blocks, integers or E5M2FNUZ in the cache have head sizes up to this.
constexpr int largest_converted_head = 512;

/// Q, K and V can share a buffer if they have elements of one size and rows at the same places.
bool can_be_packed(const Case &c) {
  if (c.v_in_k || c.v_columns != Columns::none) return false;
  if (c.mode == Mode::paged) return true;
  if ((has_byte_cache(c) && !has_fp8_queries(c)) || c.q_len != c.kv_len) return false;
  const Sequences sequences(c);
  return c.mode == Mode::dense || sequences.q_starts == sequences.kv_starts;
}

// Kernels with V by columns have head sizes up to this.
constexpr int largest_head_by_columns = 128;

/// Columns are those of whole groups of 8 tokens.
void place_columns(Case &c) {
  const bool is_wide = std::max(c.head_size.qk, c.head_size.v) > largest_head_by_columns;
  const bool has_type = c.cache == Cache::same || c.cache == Cache::e4m3fnuz;
  const bool has_whole_rows = c.head_size.qk % 8 == 0 && c.head_size.v % 8 == 0;
  if (is_wide || !has_type || !has_whole_rows || c.v_in_k || c.mode == Mode::ragged || c.pages.size % 8 != 0)
    c.v_columns = Columns::none;
  if (c.v_columns == Columns::packs && (c.mode != Mode::paged || c.pages.size % v_pack(c) != 0))
    c.v_columns = Columns::whole;
}

void place_tensors(Case &c) {
  if (c.head_size.v > c.head_size.qk) c.v_in_k = false;
  if (c.v_in_k) c.head_size = {int(row_elements(c.head_size.qk)), int(row_elements(c.head_size.v))};
  if (c.head_size.qk % 8 != 0) c.pages.k_pack = false;                        // which has whole packs
  if (c.v_in_k && c.pattern == Pattern::uniform) c.pattern = Pattern::normal; // all of V would be 0
  if (c.v_in_k && c.pattern == Pattern::nan_value) c.pattern = Pattern::nan_key;
  if (c.cache > Cache::e4m3fnuz_as_q && c.head_size.qk > largest_converted_head) c.cache = Cache::e4m3fnuz;
  if (c.v_in_k && c.cache > Cache::e4m3fnuz_as_q) c.pages.k_pack = false;
  if (is_in_blocks(c)) {
    // Rows are whole blocks.
    if (c.head_size.qk % group_elements(c) != 0 || c.head_size.v % group_elements(c) != 0)
      c.cache = Cache::i8;
    if (c.layout == Layout::padded || c.layout == Layout::packed) c.layout = Layout::capacity;
    if (has_group_arrays(c)) c.k_scale = c.v_scale = Scale::none;
    c.pages.k_pack = false;
    if (c.pattern == Pattern::codes || c.pattern == Pattern::tiny) c.pattern = Pattern::normal;
  }
  // Integers have no NaN, but the scales of blocks do.
  if (c.cache == Cache::i8 && (c.pattern == Pattern::nan_key || c.pattern == Pattern::nan_value))
    c.pattern = Pattern::nan_query;
  if (!has_byte_cache(c) && c.pattern == Pattern::codes) c.pattern = Pattern::normal;
  place_columns(c);
  if (c.layout == Layout::packed && !can_be_packed(c)) c.layout = Layout::capacity;
  // Starts never decrease: no two sequences can have the same keys.
  if (c.layout == Layout::broadcast && c.mode == Mode::ragged) c.layout = Layout::bshd;
  if (c.layout == Layout::broadcast && c.batch == 1) c.batch = 2;
}

/// With prefixes, rows of dense queries must be adjacent, only a causal mask hides keys, and scales per key
/// are those of pages. Changes of scores exclude them on their own.
void see_prefixes(Case &c) {
  c.prefixes.keys = std::max(c.prefixes.keys, 1);
  const bool is_adjacent =
      c.layout == Layout::bshd || c.layout == Layout::packed || c.layout == Layout::broadcast;
  if (c.mode != Mode::ragged && (c.rows == Rows::bounds || c.rows == Rows::lengths) && !is_adjacent)
    c.layout = Layout::bshd;
  if (is_top_left(c)) c.mask = is_causal(c) ? Mask::bottom_right : Mask::none;
  c.window_left = c.window_right = -1;
  for (Scale *scale : {&c.k_scale, &c.v_scale})
    if (is_per_key(*scale) && c.mode != Mode::paged) *scale = Scale::head;
  if (has_group_arrays(c) && c.mode != Mode::paged) c.cache = Cache::q8_0; // whose scales are in the blocks
  c.pages.missing = false;
}

void see_and_score(Case &c) {
  if (is_causal(c)) {
    c.window_right = -1;
    c.causal_by_sequence = false;
  }
  if (c.window_left < 0) c.sink_tokens = 0;
  for (const ScoreChange *change : score_changes)
    if (change->keep_meaningful) change->keep_meaningful(c);
  for (Scale *scale : {&c.k_scale, &c.v_scale}) {
    if (is_per_key(*scale) && c.cache == Cache::same) *scale = Scale::head; // 16-bit numbers have no others
    if (*scale == Scale::page && c.mode != Mode::paged) *scale = Scale::token;
  }
  if (c.v_in_k) c.v_scale = c.k_scale; // V is a part of the rows of K
  if (!c.lse) c.lse_base_2 = false;
  if (c.o_f32) c.o_fp8 = false;
  if (!c.o_fp8) c.o_scale = Scale::none;
}

} // namespace

Case meaningful(Case c) {
  place_sequences(c);
  place_tensors(c);
  if (c.prefixes.count != 0) see_prefixes(c);
  see_and_score(c);
  return c;
}

} // namespace sluice::conformance
