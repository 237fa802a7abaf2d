//===- refusal.cpp - following the advice of a refusal --------------------------------------------------===//
#include "features/refusal.h"

#include "calls/problem.h"

#include <algorithm>
#include <cstdlib>
#include <string>
#include <string_view>

namespace sluice::test {
namespace {

using P = calls::Problem;
using Field = std::string_view;

// Enumerations too: the message has their names with their numbers.
struct NamedField {
  Field name, path; // of calls::Problem, and of the caller's structs
  bool is_number;   // values in between mean something
  NumberField field;
};

#define SLUICE_FIELD(member, path, is_number)                                                                \
  NamedField {                                                                                               \
    #member, path, is_number, {                                                                              \
      [](const P &p) { return int64_t(p.member); },                                                          \
          [](P &p, int64_t value) { p.member = static_cast<decltype(p.member)>(value); }                     \
    }                                                                                                        \
  }

const NamedField fields[] = {
    SLUICE_FIELD(q_type, "q.type", false),
    SLUICE_FIELD(k_type, "kv.k.type", false),
    SLUICE_FIELD(v_type, "kv.v.type", false),
    SLUICE_FIELD(o_type, "o.type", false),
    SLUICE_FIELD(q_heads, "q_heads", true),
    SLUICE_FIELD(kv_heads, "kv.kv_heads", true),
    SLUICE_FIELD(head_dim_qk, "kv.head_dim_qk", true),
    SLUICE_FIELD(head_dim_v, "kv.head_dim_v", true),
    SLUICE_FIELD(max_batch, "bounds.batch", true),
    SLUICE_FIELD(max_q_len, "bounds.q_len", true),
    SLUICE_FIELD(max_kv_len, "bounds.kv_len", true),
    SLUICE_FIELD(max_q_tokens, "bounds.q_rows", true),
    SLUICE_FIELD(max_prefixes, "bounds.groups", true),
    SLUICE_FIELD(max_prefix_len, "bounds.group_keys", true),
    SLUICE_FIELD(mask_alignment, "mask.alignment", false),
    SLUICE_FIELD(window_left, "mask.window_left", true),
    SLUICE_FIELD(window_right, "mask.window_right", true),
    SLUICE_FIELD(sink_tokens, "mask.sink_tokens", true),
    SLUICE_FIELD(bias_type, "scores.bias_type", false),
    SLUICE_FIELD(q_scale_kind, "q.scale_kind", false),
    SLUICE_FIELD(k_scale_kind, "kv.k.scale_kind", false),
    SLUICE_FIELD(v_scale_kind, "kv.v.scale_kind", false),
    SLUICE_FIELD(o_scale_kind, "o.scale_kind", false),
    SLUICE_FIELD(scale_group, "kv.k.scale_group", false),
    SLUICE_FIELD(page_size, "kv.page_size", true),
    SLUICE_FIELD(page_table_kind, "kv.page_table", false),
    SLUICE_FIELD(k_pack, "kv.k.pack", true),
    SLUICE_FIELD(v_pack, "kv.v.pack", true),
    SLUICE_FIELD(workspace_ceiling_bytes, "workspace_ceiling_bytes", true),
};

/// The member of calls::Problem that a path is, or the path itself.
Field member_of(Field path) {
  if (path.ends_with("flags")) return "flags";
  if (path == "scores.soft_cap") return "soft_cap";
  if (path == "kv.v.scale_group") return "scale_group"; // one for both here
  for (const NamedField &field : fields)
    if (field.path == path) return field.name;
  return path;
}

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
constexpr Named flags[] = {{"SLUICE_MASK_SPANS", calls::spans},
                           {"SLUICE_MASK_CAUSAL_BY_SEQUENCE", calls::causal_by_sequence},
                           {"SLUICE_MASK_BITS_OF_NEW", calls::mask_bits_of_new},
                           {"SLUICE_SCORES_BIAS_SCALE", calls::bias_scale},
                           {"SLUICE_MASK_CAUSAL", calls::causal},
                           {"an LSE", calls::write_lse},
                           {"SLUICE_LSE_LOG2", calls::lse_log2},
                           {"SLUICE_ATTENTION_BATCH_INVARIANT", calls::batch_invariant},
                           {"SLUICE_MASK_WINDOW_LEFT", calls::window_left},
                           {"SLUICE_MASK_WINDOW_RIGHT", calls::window_right},
                           {"SLUICE_SCORES_ALIBI", calls::alibi},
                           {"SLUICE_SCORES_SINK", calls::sinks},
                           {"SLUICE_MASK_BITS", calls::mask_bits},
                           {"SLUICE_KV_V_IN_K", calls::v_in_k},
                           {"SLUICE_KV_PAGE_INDEX_64", calls::page_index_64},
                           {"SLUICE_ATTENTION_PREFIXES", calls::prefixes},
                           {"SLUICE_MASK_MISSING_PAGES", calls::missing_pages},
                           {"SLUICE_ATTENTION_PADDED_ROWS", calls::padded_rows},
                           {"zero points", calls::zero_points}};

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
    problem.flags &= ~uint32_t(calls::window_left | calls::window_right);
    problem.window_left = problem.window_right = problem.sink_tokens = 0;
    return problem;
  }
  for (const Named &flag : flags)
    if ((message.find("flags has " + std::string(flag.name)) != std::string::npos &&
         advice == "without it") ||
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
  if (message.starts_with("flags has SLUICE_ATTENTION_RAGGED")) {
    problem.mode = calls::dense;
    return problem;
  }
  if (field == "flags") return without_flag(problem, message, advice);
  const std::optional<double> value = value_of(advice);
  if (!value) return std::nullopt;
  if (field == "lse") {
    if (*value == 0) problem.flags &= ~uint32_t{calls::write_lse};
    problem.flags &= ~uint32_t{calls::lse_log2};
    return problem;
  }
  if (field == "soft_cap") {
    problem.soft_cap = float(*value);
    return problem;
  }
  const NamedField *const named = find(field);
  if (!named) return std::nullopt;
  named->field.set(problem, int64_t(*value));
  if (field == "page_size" && *value == 0) {
    problem.mode = calls::dense;
    problem.page_table_kind = SLUICE_PAGE_TABLE_NONE;
  }
  return problem;
}

/// The header's requirement on the field.
std::optional<P> legal(P p, Field field, const std::string &message) {
  const bool paged = p.mode == calls::paged, has_groups = p.k_scale_kind == SLUICE_SCALE_PER_GROUP ||
                                                          p.v_scale_kind == SLUICE_SCALE_PER_GROUP;
  if (field == "flags") {
    const auto says = [&](std::string_view words) { return message.find(words) != std::string::npos; };
    if (says("but kv.page_size is 0")) {
      p.flags &= ~uint32_t{calls::page_index_64 | calls::missing_pages};
    } else if (says("SLUICE_ATTENTION_RAGGED, but kv.page_size is not 0")) {
      p.mode = calls::paged;
    } else if (p.flags & calls::causal && p.flags & calls::window_right) {
      p.flags &= ~uint32_t(calls::window_right);
    } else if (p.flags & calls::causal && p.flags & calls::causal_by_sequence) {
      p.flags &= ~uint32_t(calls::causal_by_sequence);
    } else if (p.flags & calls::mask_bits_of_new && !(p.flags & calls::mask_bits)) {
      p.flags |= calls::mask_bits;
    } else if (p.flags & calls::bias_scale && p.bias_type == 0) {
      p.flags &= ~uint32_t(calls::bias_scale);
    } else if (p.flags & calls::zero_points && !has_groups) {
      p.flags &= ~uint32_t(calls::zero_points);
    }
  } else if ((field == "k_scale_kind" && p.k_type == SLUICE_U4) ||
             (field == "v_scale_kind" && p.v_type == SLUICE_U4)) {
    find(field)->field.set(p, SLUICE_SCALE_PER_GROUP);
  } else if (field == "scale_group") {
    p.scale_group = has_groups ? 32 : 0;
  } else if (field == "v_type" && p.flags & calls::v_in_k) {
    p.v_type = p.k_type;
  } else if (field.ends_with("_type")) {
    find(field)->field.set(p, field == "bias_type" ? 0 : SLUICE_F16);
  } else if (field == "q_heads") {
    p.q_heads = std::max(p.kv_heads, 1);
  } else if (field == "kv_heads") {
    p.kv_heads = 1;
  } else if (field == "head_dim_v" && p.v_type >= SLUICE_U4) {
    // Whole blocks, or with V in K those of K.
    if (p.flags & calls::v_in_k) p.v_type = p.k_type;
    p.head_dim_v = p.flags & calls::v_in_k ? p.head_dim_qk : 64;
  } else if (field == "head_dim_v" && p.head_dim_v > 0) {
    p.head_dim_v = p.head_dim_qk;
  } else if (field.starts_with("head_dim_")) {
    find(field)->field.set(p, 64);
  } else if (field == "page_size") {
    p.page_size = paged ? 16 : 0;
  } else if (field == "page_table_kind") {
    if (p.page_size != 0) p.mode = calls::paged; // the caller's structs say so by their page size
    p.page_table_kind = p.page_size != 0 ? SLUICE_PAGE_TABLE_BLOCK : SLUICE_PAGE_TABLE_NONE;
  } else if (field == "soft_cap") {
    p.soft_cap = 0;
  } else if (p.flags & calls::prefixes &&
             (field == "max_prefixes" || field == "max_prefix_len" || field == "max_q_tokens")) {
    find(field)->field.set(p, 1000);
  } else if (p.flags & calls::batch_invariant && (field == "max_batch" || field == "max_kv_len")) {
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
  const NamedField *const found = find(member_of(name));
  if (!found || !found->is_number) return std::nullopt;
  return found->field;
}

std::optional<calls::Problem> advised(const calls::Problem &problem, const sluice_error &refusal) {
  const Field field = member_of(refusal.field);
  if (refusal.code == SLUICE_UNSUPPORTED) return nearest_supported(problem, field, refusal.message);
  if (refusal.code == SLUICE_INVALID_ARGUMENT) return legal(problem, field, refusal.message);
  if (refusal.code != SLUICE_NEWER_STRUCT) return std::nullopt;
  return nearest_supported(problem, field, refusal.message);
}

} // namespace sluice::test
