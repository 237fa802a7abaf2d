//===- case_names.cpp - the names of the cases of cache operations --------------------------------------===//

#include "conformance/cache_ops/case_names.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdio>
#include <span>
#include <stdexcept>

namespace sluice::conformance {

namespace {

constexpr std::array findings = {"slots", "block", "csr"};
constexpr std::array scales = {"", "tensor", "head", "token", "page"};

template <typename... Values> std::string format(const char *pattern, Values... values) {
  char part[256];
  std::snprintf(part, sizeof part, pattern, values...);
  return part;
}

/// What only a kernel for whole steps does.
std::string make_step_name(const AppendCase &c) {
  std::string name;
  if (c.q_heads != 0) name += format("_q%d", c.q_heads);
  if (c.q_in_place) name += "_inplace";
  if (c.tail_dim != 0) name += format("_tail%d", c.tail_dim);
  if (c.one_tail) name += "_onetail";
  if (c.q_is_whole) name += "_qwhole";
  if (c.k_norm) name += "_knorm";
  if (c.q_norm) name += "_qnorm";
  if (c.norm_is_f32) name += "_normf32";
  if (c.rotary_first != 0) name += format("_from%d", c.rotary_first);
  if (c.rotary_type != Element::f32) name += format("_tables%s", name_of(c.rotary_type));
  if (c.sines_apart) name += "_sines";
  return name;
}

struct Flag {
  std::string_view word;
  bool AppendCase::*member;
};
constexpr Flag flags[] = {
    {"wide", &AppendCase::wide},
    {"positions", &AppendCase::positions},
    {"vink", &AppendCase::v_in_k},
    {"apart", &AppendCase::apart},
    {"notfinite", &AppendCase::not_finite},
    {"few", &AppendCase::few_values},
    {"zeros", &AppendCase::zeros},
    {"inplace", &AppendCase::q_in_place},
    {"onetail", &AppendCase::one_tail},
    {"qwhole", &AppendCase::q_is_whole},
    {"knorm", &AppendCase::k_norm},
    {"qnorm", &AppendCase::q_norm},
    {"normf32", &AppendCase::norm_is_f32},
    {"sines", &AppendCase::sines_apart},
};

/// A word that ends with a number.
struct Count {
  std::string_view word;
  int AppendCase::*member;
};
constexpr Count counts[] = {
    {"h", &AppendCase::heads},           {"p", &AppendCase::page_size},
    {"xpack", &AppendCase::k_pack},      {"more", &AppendCase::more_rows},
    {"power", &AppendCase::power},       {"group", &AppendCase::scale_group},
    {"q", &AppendCase::q_heads},         {"tail", &AppendCase::tail_dim},
    {"from", &AppendCase::rotary_first}, {"halves", &AppendCase::rotary_dim},
    {"pairs", &AppendCase::rotary_dim},
};

/// Whether the text is a number; "" is not.
bool read_number(std::string_view text, int &number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size();
}

bool read_head_size(std::string_view word, HeadSizes &sizes) {
  const size_t cross = word.find('x');
  return word.starts_with('d') && cross != word.npos && read_number(word.substr(1, cross - 1), sizes.qk) &&
         read_number(word.substr(cross + 1), sizes.v);
}

/// A word that names one of several values, after a front.
template <typename Value>
bool read_one(std::string_view word, std::string_view front, std::span<const char *const> names,
              Value &value) {
  if (!word.starts_with(front)) return false;
  const auto found = std::ranges::find(names, word.substr(front.size()));
  if (found == names.end()) return false;
  value = Value(found - names.begin());
  return true;
}

bool read_flag_or_count(std::string_view word, AppendCase &c) {
  for (const Flag &flag : flags)
    if (word == flag.word) return c.*flag.member = true;
  for (const Count &count : counts)
    if (word.starts_with(count.word) && read_number(word.substr(count.word.size()), c.*count.member))
      return true;
  return false;
}

bool read_word(std::string_view word, const KernelTypes &types, AppendCase &c) {
  if (word.starts_with("halves")) c.rotation = Rotation::halves;
  if (word.starts_with("pairs")) c.rotation = Rotation::pairs;
  if (word == "xpack") c.k_pack = pack_of(types);
  if (word == "vpacks") c.v_columns = Columns::packs;
  if (word == "vcolumns") c.v_columns = Columns::whole;
  return word == "xpack" || word == "vpacks" || word == "vcolumns" || read_flag_or_count(word, c) ||
         read_head_size(word, c.head_size) || read_one(word, "", findings, c.finding) ||
         read_one(word, "k", scales, c.k_scale) || read_one(word, "v", scales, c.v_scale) ||
         read_one(word, "tables", element_names, c.rotary_type);
}

} // namespace

std::string make_name(const AppendCase &c) {
  constexpr std::array rotations = {"", "_halves", "_pairs"};
  std::string name =
      format("append_%s_%s_h%d_d%dx%d_p%d_%s", name_of(c.source), name_of(c.cache), c.heads, c.head_size.qk,
             c.v_in_k ? 0 : c.head_size.v, c.page_size, findings[size_t(c.finding)]);
  if (c.wide) name += "_wide";
  if (c.k_pack != 0) name += format("_xpack%d", c.k_pack);
  if (c.v_columns != Columns::none) name += c.v_columns == Columns::packs ? "_vpacks" : "_vcolumns";
  if (c.rotation != Rotation::none) name += rotations[size_t(c.rotation)] + std::to_string(c.rotary_dim);
  if (c.positions) name += "_positions";
  if (c.k_scale != Scale::none) name += format("_k%s", scales[size_t(c.k_scale)]);
  if (c.v_scale != Scale::none) name += format("_v%s", scales[size_t(c.v_scale)]);
  if (c.v_in_k) name += "_vink";
  if (c.more_rows != 0) name += format("_more%d", c.more_rows);
  if (c.apart) name += "_apart";
  if (c.not_finite) name += "_notfinite";
  if (c.few_values) name += "_few";
  if (c.scale_group != 0) name += format("_group%d", c.scale_group);
  if (c.zeros) name += "_zeros";
  if (c.power != 0) name += format("_power%d", c.power);
  return name + make_step_name(c);
}

AppendCase read_append_case(std::string_view words, const KernelTypes &types) {
  AppendCase c{.source = types.from, .cache = types.to};
  for (size_t begin = 0; begin <= words.size();) {
    const size_t end = std::min(words.find('_', begin), words.size());
    const std::string_view word = words.substr(begin, end - begin);
    if (!read_word(word, types, c))
      throw std::logic_error("no name of a case has the word '" + std::string(word) + "'");
    begin = end + 1;
  }
  return c;
}

std::string make_name(const PageCopyCase &c) {
  constexpr std::array movings = {"same", "pairs", "block", "csr"};
  std::string name = c.is_gather() ? "gather_" : "copy_";
  name += format("%s_%s_h%d_d%dx%d_p%d_%s", name_of(c.source), name_of(c.target), c.heads, c.head_size.qk,
                 c.v_in_k ? 0 : c.head_size.v, c.page_size, movings[size_t(c.moving)]);
  if (c.wide) name += "64";
  if (c.source_k_pack != 0) name += format("_from%d", c.source_k_pack);
  if (c.target_k_pack != 0) name += format("_to%d", c.target_k_pack);
  if (c.k_scale != Scale::none) name += format("_k%s", scales[size_t(c.k_scale)]);
  if (c.v_scale != Scale::none) name += format("_v%s", scales[size_t(c.v_scale)]);
  if (c.fork) name += "_fork";
  if (c.first_keys) name += "_first";
  if (c.apart) name += "_apart";
  if (c.not_finite) name += "_notfinite";
  if (c.scale_group != 0) name += format("_group%d", c.scale_group);
  if (c.zeros) name += "_zeros";
  if (c.power != 0) name += format("_power%d", c.power);
  return name;
}

std::string make_name(const MergeCase &c) {
  constexpr std::array weights = {"", "_some", "_far", "_notfinite", "_infinite"};
  constexpr std::array places = {"", "_backwards", "_listed"};
  std::string name = format("merge_%s_%s_n%d_t%d_h%d_d%d", name_of(c.partial), name_of(c.o), c.parts,
                            c.tokens, c.heads, c.head_size);
  name += weights[size_t(c.weights)];
  if (c.sink_logits) name += "_sinks";
  if (c.lse_base_2) name += "_lse2";
  if (!c.lse) name += "_nolse";
  if (c.o_scale != Scale::none) name += c.o_scale == Scale::head ? "_ohead" : "_otensor";
  if (c.power != 0) name += format("_power%d", c.power);
  if (c.apart) name += "_apart";
  if (c.results_apart) name += "_resultsapart";
  if (c.in_place) name += "_inplace";
  name += places[size_t(c.places)];
  if (c.sequences != 0) name += format("_s%d", c.sequences);
  return name;
}

} // namespace sluice::conformance
