//===- names.cpp - the name of a case, which describes it completely ------------------------------------===//
//
// Plain dense attention is type, head size, extents, mask, layout and pattern; every other property appends
// its part only if it is not the default.
//
//===----------------------------------------------------------------------------------------------------===//
#include "conformance/attention/name_parts.h"
#include "conformance/attention/scores/scores.h"

namespace sluice::conformance {

namespace {

constexpr const char *modes[] = {"", "ragged_", "paged_"};
constexpr const char *dtypes[] = {"f16", "bf16"};
constexpr const char *caches[] = {"",      "-e4m3fnuz", "-all-e4m3fnuz", "-e5m2fnuz", "-i8",
                                  "-q8_0", "-q4_0",     "-u4",           "-u4zeros"};
constexpr const char *masks[] = {"full", "causal", "topleft", "fulltopleft", "diagonal", "fulldiagonal"};
constexpr const char *layouts[] = {"bshd", "bhsd", "sbhd", "packed", "padded", "capacity", "broadcast"};
constexpr const char *patterns[] = {"normal", "peaked", "rising", "falling", "uniform",
                                    "tiny",   "codes",  "nanq",   "nank",    "nanv"};
constexpr const char *columns[] = {"", "_vpacks", "_vcolumns"};
constexpr const char *lengths[] = {"", "_mixed", "_chunked", "_decode", "_serving"};
constexpr const char *rows[] = {"", "_lengths", "_starts", "_gaps"};
constexpr const char *scales[] = {"", "tensor", "head", "token", "page"};

std::string pages_text(const Pages &pages) {
  if (pages.size == 0) return "";
  return format("_p%d%s%s%s%s%s", pages.size, pages.csr ? "csr" : "", pages.wide ? "wide" : "",
                pages.k_pack ? "xpack" : "", pages.missing ? "missing" : "", pages.by_head ? "byhead" : "");
}

/// Of the masks, or of the other changes of scores.
std::string changes_text(const Case &c, bool are_masks) {
  std::string result;
  for (const ScoreChange *change : score_changes)
    if (change->is_mask() == are_masks && change->is_in(c)) result += change->name(c);
  return result;
}

std::string visible_text(const Case &c) {
  std::string result;
  if (c.window_left >= 0) result += format("_left%d", c.window_left);
  if (c.window_right >= 0) result += format("_right%d", c.window_right);
  if (c.sink_tokens != 0) result += format("_keep%d", c.sink_tokens);
  result += changes_text(c, true);
  if (c.spans) result += "_spans";
  if (c.causal_by_sequence) result += "_somecausal";
  return result;
}

std::string scores_text(const Case &c) {
  std::string result = changes_text(c, false);
  if (c.q_scale != Scale::none) result += "_q" + text(c.q_scale, scales);
  if (c.k_scale != Scale::none) result += "_k" + text(c.k_scale, scales);
  if (c.v_scale != Scale::none) result += "_v" + text(c.v_scale, scales);
  return result;
}

} // namespace

std::string make_name(const Case &c) {
  const std::string head_size = c.head_size.qk == c.head_size.v
                                    ? std::to_string(c.head_size.qk)
                                    : format("%dx%d", c.head_size.qk, c.head_size.v);
  std::string result = text(c.mode, modes) + text(c.dtype, dtypes) + text(c.cache, caches) + "_d" + head_size;
  result += format("_b%d_h%dx%d_q%d_kv%d_", c.batch, c.q_heads, c.kv_heads, c.q_len, c.kv_len);
  result += text(c.mask, masks) + "_" + text(c.layout, layouts) + "_" + text(c.pattern, patterns);
  result += text(c.lengths, lengths);
  result += text(c.rows, rows);
  result += pages_text(c.pages);
  if (c.v_in_k) result += "_vink";
  result += text(c.v_columns, columns);
  if (c.prefixes.count != 0)
    result += format("_prefix%dx%d%s", c.prefixes.count, c.prefixes.keys, c.prefixes.outside ? "out" : "");
  result += visible_text(c);
  result += scores_text(c);
  if (c.scale) result += format("_s%g", *c.scale);
  if (!c.lse) result += "_nolse";
  if (c.lse_base_2) result += "_lse2";
  if (c.o_f32) result += "_of32";
  if (c.o_fp8) result += "_ofp8" + text(c.o_scale, scales);
  if (c.batch_invariant) result += "_invariant";
  if (!c.bounded) result += "_open";
  if (!c.kernel.empty())
    result += format("_plan%dx%dx%d@", c.plan.batch, c.plan.q_len, c.plan.kv_len) + c.kernel;
  return result;
}

} // namespace sluice::conformance
