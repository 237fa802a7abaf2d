//===- refusal.cpp - following the advice of a refusal --------------------------------------------------===//
#include "features/refusal.h"

#include <algorithm>
#include <cstdlib>
#include <string>
#include <string_view>

namespace sluice::test {
namespace {

using P = sluice_problem;
using Field = std::string_view;

// Enumerations too: the message has their names with their numbers.
struct NamedField {
  Field name;
  bool is_number; // values in between mean something
  NumberField field;
};

#define SLUICE_FIELD(member, is_number)                                                                      \
  NamedField {                                                                                               \
    #member, is_number, {                                                                                    \
      [](const P &p) { return int64_t(p.member); },                                                          \
          [](P &p, int64_t value) { p.member = static_cast<decltype(p.member)>(value); }                     \
    }                                                                                                        \
  }

const NamedField fields[] = {
    SLUICE_FIELD(mode, false),         SLUICE_FIELD(q_type, false),
    SLUICE_FIELD(k_type, false),       SLUICE_FIELD(v_type, false),
    SLUICE_FIELD(o_type, false),       SLUICE_FIELD(q_heads, true),
    SLUICE_FIELD(kv_heads, true),      SLUICE_FIELD(head_dim_qk, true),
    SLUICE_FIELD(head_dim_v, true),    SLUICE_FIELD(max_batch, true),
    SLUICE_FIELD(max_q_len, true),     SLUICE_FIELD(max_kv_len, true),
    SLUICE_FIELD(max_q_tokens, true),  SLUICE_FIELD(mask_alignment, false),
    SLUICE_FIELD(window_left, true),   SLUICE_FIELD(window_right, true),
    SLUICE_FIELD(sink_tokens, true),   SLUICE_FIELD(bias_type, false),
    SLUICE_FIELD(q_scale_kind, false), SLUICE_FIELD(k_scale_kind, false),
    SLUICE_FIELD(v_scale_kind, false), SLUICE_FIELD(o_scale_kind, false),
    SLUICE_FIELD(page_size, true),     SLUICE_FIELD(page_table_kind, false),
    SLUICE_FIELD(k_pack, true),        SLUICE_FIELD(lse_base, false),
    SLUICE_FIELD(determinism, false),  SLUICE_FIELD(workspace_ceiling_bytes, true),
    SLUICE_FIELD(max_prefixes, true),  SLUICE_FIELD(max_prefix_len, true),
    SLUICE_FIELD(v_pack, true),
};

#undef SLUICE_FIELD

const NamedField *find(Field name) {
  const auto *const found = std::find_if(std::begin(fields), std::end(fields),
                                         [&](const NamedField &field) { return field.name == name; });
  return found == std::end(fields) ? nullptr : found;
}

struct Named {
  std::string_view name;
  uint32_t value;
};
constexpr Named types[] = {
    {"f16", SLUICE_F16},           {"bf16", SLUICE_BF16},     {"f32", SLUICE_F32},
    {"e4m3fnuz", SLUICE_E4M3FNUZ}, {"e4m3fn", SLUICE_E4M3FN}, {"e5m2fnuz", SLUICE_E5M2FNUZ},
    {"e5m2", SLUICE_E5M2},         {"i8", SLUICE_I8},         {"u4", SLUICE_U4},
    {"q8_0", SLUICE_Q8_0},         {"q4_0", SLUICE_Q4_0}};
constexpr Named flags[] = {{"SLUICE_SPANS", SLUICE_SPANS},
                           {"SLUICE_CAUSAL_BY_SEQUENCE", SLUICE_CAUSAL_BY_SEQUENCE},
                           {"SLUICE_MASK_NEW_ROWS", SLUICE_MASK_NEW_ROWS},
                           {"SLUICE_BIAS_SCALE", SLUICE_BIAS_SCALE},
                           {"SLUICE_CAUSAL", SLUICE_CAUSAL},
                           {"SLUICE_WRITE_LSE", SLUICE_WRITE_LSE},
                           {"SLUICE_ALIBI", SLUICE_ALIBI},
                           {"SLUICE_SINK_LOGITS", SLUICE_SINK_LOGITS},
                           {"SLUICE_BOOL_MASK", SLUICE_BOOL_MASK},
                           {"SLUICE_V_IN_K", SLUICE_V_IN_K},
                           {"SLUICE_PAGE_INDEX_64", SLUICE_PAGE_INDEX_64},
                           {"SLUICE_SHARED_PREFIX", SLUICE_SHARED_PREFIX},
                           {"SLUICE_MISSING_PAGES_HIDDEN", SLUICE_MISSING_PAGES_HIDDEN},
                           {"SLUICE_PADDED_ROWS", SLUICE_PADDED_ROWS},
                           {"SLUICE_ZERO_POINTS", SLUICE_ZERO_POINTS}};

/// "SLUICE_SCALE_NONE (0)", "0 (no bias)", "64", "bf16", "1 or more".
std::optional<double> value_of(const std::string &text) {
  for (const Named &type : types)
    if (text == type.name) return type.value;
  const size_t bracket = text.rfind('(');
  const std::string number =
      text.starts_with("SLUICE_") && bracket != std::string::npos ? text.substr(bracket + 1) : text;
  char *end = nullptr;
  const double value = std::strtod(number.c_str(), &end);
  if (end == number.c_str()) return std::nullopt;
  return value;
}

std::string text_after(const std::string &message, std::string_view words) {
  const size_t at = message.find(words);
  return at == std::string::npos ? "" : message.substr(at + words.size());
}

std::optional<P> without_flag(P problem, const std::string &message, const std::string &advice) {
  if (advice == "no window") {
    problem.flags &= ~uint32_t(SLUICE_HAS_WINDOW_LEFT | SLUICE_HAS_WINDOW_RIGHT);
    problem.window_left = problem.window_right = problem.sink_tokens = 0;
    return problem;
  }
  for (const Named &flag : flags)
    if ((message.starts_with("flags has " + std::string(flag.name)) && advice == "without it") ||
        advice == "without " + std::string(flag.name)) {
      problem.flags &= ~flag.value;
      return problem;
    }
  return std::nullopt;
}

std::optional<P> nearest_supported(P problem, Field field, const std::string &message) {
  std::string advice = text_after(message, "nearest supported: ");
  if (advice.empty()) advice = text_after(message, "nearest supported is ");
  if (advice.empty()) advice = text_after(message, "the last value that this version knows is ");
  if (advice.empty()) return std::nullopt;
  if (field == "flags") return without_flag(problem, message, advice);
  const std::optional<double> value = value_of(advice);
  if (!value) return std::nullopt;
  if (field == "soft_cap") {
    problem.soft_cap = float(*value);
    return problem;
  }
  const NamedField *const named = find(field);
  if (!named) return std::nullopt;
  named->field.set(problem, int64_t(*value));
  return problem;
}

/// The header's requirement on the field.
std::optional<P> legal(P p, Field field) {
  const bool paged = p.mode == SLUICE_MODE_PAGED, has_groups = p.k_scale_kind == SLUICE_SCALE_PER_GROUP ||
                                                               p.v_scale_kind == SLUICE_SCALE_PER_GROUP;
  if (field == "flags") {
    if (p.flags & SLUICE_CAUSAL && p.flags & SLUICE_HAS_WINDOW_RIGHT) {
      p.flags &= ~uint32_t(SLUICE_HAS_WINDOW_RIGHT);
    } else if (p.flags & SLUICE_CAUSAL && p.flags & SLUICE_CAUSAL_BY_SEQUENCE) {
      p.flags &= ~uint32_t(SLUICE_CAUSAL_BY_SEQUENCE);
    } else if (p.flags & SLUICE_MASK_NEW_ROWS && !(p.flags & SLUICE_BOOL_MASK)) {
      p.flags |= SLUICE_BOOL_MASK;
    } else if (p.flags & SLUICE_BIAS_SCALE && p.bias_type == 0) {
      p.flags &= ~uint32_t(SLUICE_BIAS_SCALE);
    } else if (p.flags & SLUICE_ZERO_POINTS && !has_groups) {
      p.flags &= ~uint32_t(SLUICE_ZERO_POINTS);
    } else if (!paged) {
      p.flags &= ~uint32_t(SLUICE_PAGE_INDEX_64 | SLUICE_MISSING_PAGES_HIDDEN);
    }
  } else if ((field == "k_scale_kind" && p.k_type == SLUICE_U4) ||
             (field == "v_scale_kind" && p.v_type == SLUICE_U4)) {
    find(field)->field.set(p, SLUICE_SCALE_PER_GROUP);
  } else if (field == "scale_group") {
    p.scale_group = has_groups ? 32 : 0;
  } else if (field == "v_type" && p.flags & SLUICE_V_IN_K) {
    p.v_type = p.k_type;
  } else if (field.ends_with("_type")) {
    find(field)->field.set(p, field == "bias_type" ? 0 : SLUICE_F16);
  } else if (field == "q_heads") {
    p.q_heads = std::max(p.kv_heads, 1);
  } else if (field == "kv_heads") {
    p.kv_heads = 1;
  } else if (field == "head_dim_v" && p.v_type >= SLUICE_U4) {
    // Whole blocks, or with V in K those of K.
    if (p.flags & SLUICE_V_IN_K && p.v_type != p.k_type)
      p.v_type = p.k_type;
    else
      p.head_dim_v = p.flags & SLUICE_V_IN_K ? p.head_dim_qk : 64;
  } else if (field == "head_dim_v" && p.head_dim_v > 0) {
    p.head_dim_v = p.head_dim_qk;
  } else if (field.starts_with("head_dim_")) {
    find(field)->field.set(p, 64);
  } else if (field == "page_size") {
    p.page_size = paged ? 16 : 0;
  } else if (field == "page_table_kind") {
    p.page_table_kind = paged ? SLUICE_PAGE_TABLE_BLOCK : SLUICE_PAGE_TABLE_NONE;
  } else if (field == "soft_cap") {
    p.soft_cap = 0;
  } else if (p.flags & SLUICE_SHARED_PREFIX &&
             (field == "max_prefixes" || field == "max_prefix_len" || field == "max_q_tokens")) {
    find(field)->field.set(p, 1000);
  } else if (p.determinism == SLUICE_DETERMINISM_BATCH_INVARIANT &&
             (field == "max_batch" || field == "max_kv_len")) {
    find(field)->field.set(p, 300);
  } else if (const NamedField *const named = find(field)) {
    named->field.set(p, 0);
  } else {
    return std::nullopt;
  }
  return p;
}

} // namespace

std::optional<NumberField> number_field(const char *name) {
  const NamedField *const found = find(name);
  if (!found || !found->is_number) return std::nullopt;
  return found->field;
}

std::optional<sluice_problem> advised(const sluice_problem &problem, const sluice_error &refusal) {
  if (refusal.code == SLUICE_UNSUPPORTED) return nearest_supported(problem, refusal.field, refusal.message);
  if (refusal.code == SLUICE_INVALID_ARGUMENT) return legal(problem, refusal.field);
  if (refusal.code != SLUICE_NEWER_STRUCT) return std::nullopt;
  if (Field(refusal.field) != "flags") return nearest_supported(problem, refusal.field, refusal.message);
  sluice_problem known = problem;
  known.flags &= 2 * uint32_t(SLUICE_PADDED_ROWS) - 1;
  return known;
}

} // namespace sluice::test
