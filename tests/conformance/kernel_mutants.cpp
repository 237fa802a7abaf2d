//===- kernel_mutants.cpp - small defects that a single kernel might have -------------------------------===//

#include "kernel_mutants.h"

#include "calls/problem.h"
#include "conformance/attention/oracle.h"
#include "conformance/attention/scores/mask_bits.h"
#include "conformance/attention/scores/scores.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <limits>

namespace sluice::conformance {

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

int group(const Case &c) {
  return c.q_heads / c.kv_heads;
}

/// Adds something to the scores, through a bias of every element.
template <typename Add> void add_to_scores(Case &c, Inputs &in, Add add) {
  Matrix full;
  full.extent = {c.batch, c.q_heads, c.q_len, c.kv_len};
  for (int b = 0; b < c.batch; ++b)
    for (int h = 0; h < c.q_heads; ++h)
      for (int i = 0; i < c.q_len; ++i)
        for (int j = 0; j < c.kv_len; ++j)
          full.values.push_back(
              (c.bias.type != BiasType::none ? in.changes[scores::bias].matrix.at(b, h, i, j) : 0) +
              add(b, h, i, j));
  in.changes[scores::bias].matrix = std::move(full);
  c.bias = {.type = BiasType::f32};
}

/// ALiBi with another distance.
template <typename Distance> void change_distance(Case &c, Inputs &in, Distance distance) {
  const Sequences sequences(c);
  add_to_scores(c, in, [&](int b, int h, int i, int j) {
    return -in.changes[scores::alibi].heads[size_t(b) * c.q_heads + h] *
           distance(i + sequences.shifts[size_t(b)], j, i);
  });
  c.alibi = false;
  std::ranges::fill(in.changes[scores::alibi].heads, 0.0);
}

/// Hides keys from all rows of a sequence.
template <typename Hide> void hide_keys(Case &c, Inputs &in, Hide hide) {
  const Sequences sequences(c);
  add_to_scores(c, in, [&](int b, int, int, int j) {
    return hide(j, sequences.kv_lengths[size_t(b)]) ? -infinity : 0.0;
  });
}

/// Each head gets the data of another.
template <typename Head> void mix_heads(std::vector<double> &head_values, Head head) {
  const std::vector<double> before = head_values;
  for (size_t h = 0; h < head_values.size(); ++h)
    head_values[h] = before[size_t(head(int(h)))];
}
template <typename Head> void mix_heads(Matrix &matrix, Head head) {
  const Matrix before = matrix;
  size_t at = 0;
  for (int b = 0; b < matrix.extent[0]; ++b)
    for (int h = 0; h < matrix.extent[1]; ++h)
      for (int i = 0; i < matrix.extent[2]; ++i)
        for (int j = 0; j < matrix.extent[3]; ++j)
          matrix.values[at++] = before.at(b, head(h), i, j);
}
std::vector<double> &numbers(Inputs &in, std::vector<double> Inputs::*member) {
  return in.*member;
}
std::vector<double> &numbers(Inputs &in, const ScoreChange *change) {
  return in.changes[*change].heads;
}
template <auto head_values> void by_kv_head(Case &c, Inputs &in, const Kernel &) {
  mix_heads(numbers(in, head_values), [&](int h) { return h / group(c); });
}
template <auto head_values> void by_place_in_group(Case &c, Inputs &in, const Kernel &) {
  mix_heads(numbers(in, head_values), [&](int h) { return h % group(c); });
}
template <auto head_values> void by_first_head(Case &, Inputs &in, const Kernel &) {
  mix_heads(numbers(in, head_values), [](int) { return 0; });
}
/// The same for data of each head of each sequence.
template <auto head_values> void by_kv_head_of_sequence(Case &c, Inputs &in, const Kernel &) {
  const std::vector<double> before = numbers(in, head_values);
  for (size_t n = 0; n < before.size(); ++n)
    numbers(in, head_values)[n] =
        before[n - n % size_t(c.q_heads) + n % size_t(c.q_heads) / size_t(group(c))];
}
template <auto head_values> void by_first_sequence(Case &c, Inputs &in, const Kernel &) {
  for (size_t n = size_t(c.q_heads); n < numbers(in, head_values).size(); ++n)
    numbers(in, head_values)[n] = numbers(in, head_values)[n % size_t(c.q_heads)];
}
template <std::vector<double> Inputs::*key_values> void by_next_key(Case &c, Inputs &in, const Kernel &) {
  std::ranges::rotate(in.*key_values, (in.*key_values).begin() + c.kv_heads);
}

/// Spans that begin or end a key further out.
template <int further> void see_more_of_spans(Case &c, Inputs &in, const Kernel &) {
  const Sequences sequences(c);
  Case all = c;
  all.mask = Mask::none;
  all.spans = false;
  all.window_left = -1;
  add_to_scores(all, in, [&](int b, int, int i, int j) {
    const Span span = sequences.span_of(b, i + sequences.shifts[size_t(b)]);
    const bool is_in_span = span.first != span.end;
    const bool is_beside = is_in_span && j == (further > 0 ? span.end : span.first - 1);
    return is_beside || is_in_place(c, sequences, b, i, j) ? 0.0 : -infinity;
  });
  c = all;
}

template <const ScoreChange *change> void matrix_by_kv_head(Case &c, Inputs &in, const Kernel &) {
  mix_heads(in.changes[*change].matrix, [&](int h) { return h / group(c); });
}
template <const ScoreChange *change, size_t dim> void matrix_repeats(Case &, Inputs &in, const Kernel &) {
  Matrix &wrong = in.changes[*change].matrix;
  const Matrix before = wrong;
  std::array<int, 4> extent = before.extent;
  size_t at = 0;
  for (int b = 0; b < extent[0]; ++b)
    for (int h = 0; h < extent[1]; ++h)
      for (int i = 0; i < extent[2]; ++i)
        for (int j = 0; j < extent[3]; ++j)
          wrong.values[at++] =
              before.at(dim == 0 ? 0 : b, h, dim == 2 ? i / 2 * 2 : i, dim == 3 ? j / 2 * 2 : j);
}

template <int Case::*member, int change> void add(Case &c, Inputs &, const Kernel &) {
  c.*member += change;
}

/// Swaps the keys at two places, of K or V.
void swap_keys(const Case &c, std::vector<double> &tensor, int head_size, int a, int b) {
  const ptrdiff_t token = ptrdiff_t(c.kv_heads) * head_size;
  for (int sequence = 0; sequence < c.batch; ++sequence) {
    const auto begin = tensor.begin() + sequence * c.kv_len * token;
    std::swap_ranges(begin + a * token, begin + (a + 1) * token, begin + b * token);
  }
}

/// Elements in the order that a mistaken index gives.
template <typename Place> void move_elements(std::vector<double> &tensor, int head_size, Place place) {
  const std::vector<double> before = tensor;
  for (size_t i = 0; i < tensor.size(); ++i) {
    const size_t row = i / size_t(head_size) * size_t(head_size);
    tensor[i] = before[row + size_t(place(int(i - row)))];
  }
}

bool any(const Case &) {
  return true;
}
/// Other cases without a window have fewer keys.
bool in_parts(const Case &c) {
  return c.window_left < 0 && c.kv_len > 300;
}
bool causal(const Case &c) {
  return is_causal(c);
}
bool left(const Case &c) {
  return c.window_left >= 0;
}
bool right(const Case &c) {
  return c.window_right >= 0;
}
bool sink_tokens(const Case &c) {
  return c.sink_tokens > 0;
}
bool bits(const Case &c) {
  return c.bits.given;
}
bool bias(const Case &c) {
  return c.bias.type != BiasType::none;
}
bool alibi(const Case &c) {
  return c.alibi;
}
bool alibi_not_causal(const Case &c) {
  return c.alibi && !is_causal(c);
}
bool alibi_bottom_right(const Case &c) {
  return c.alibi && !is_top_left(c);
}
bool sink_logits(const Case &c) {
  return c.sink_logits;
}
bool paged(const Case &c) {
  return c.mode == Mode::paged;
}
bool lengths(const Case &c) {
  return c.rows == Rows::lengths || c.rows == Rows::gaps;
}
bool ragged(const Case &c) {
  return c.rows == Rows::starts || c.rows == Rows::gaps;
}
template <Scale Case::*member> bool has_factors(const Case &c) {
  return c.*member == Scale::head;
}

bool scales_of_keys(const Case &c) {
  return is_per_key(c.v_scale);
}

void lose_bias(Case &c, Inputs &, const Kernel &) {
  c.bias = {};
}

void lose_last_key(Case &c, Inputs &in, const Kernel &) {
  hide_keys(c, in, [](int j, int keys) { return j == keys - 1; });
}

bool missing_pages(const Case &c) {
  return c.pages.missing;
}
bool by_columns(const Case &c) {
  return c.v_columns != Columns::none;
}
bool tables_of_heads(const Case &c) {
  return c.pages.by_head;
}

/// Changes the rows of K and V of each key and KV head for which `is_changed(b, kv_head, key)` holds.
template <typename IsChanged> void fill_keys(const Case &c, Inputs &in, double value, IsChanged is_changed) {
  for (std::vector<double> *tensor : {&in.k, &in.v}) {
    const auto size = size_t(tensor == &in.k ? c.head_size.qk : c.head_size.v);
    for (size_t row = 0; row < tensor->size() / size; ++row) {
      const int head = int(row % size_t(c.kv_heads)), token = int(row / size_t(c.kv_heads));
      if (is_changed(token / c.kv_len, head, token % c.kv_len))
        std::fill_n(tensor->begin() + ptrdiff_t(row * size), size, value);
    }
  }
}

/// Keys without a page as they are without calls::missing_pages.
void read_zeros(Case &c, Inputs &in, const Kernel &) {
  fill_keys(c, in, 0, [&](int b, int head, int j) { return is_missing(c, b, head, j / c.pages.size); });
  c.pages.missing = false;
}

/// The key after each key without a page is hidden, and that key reads as zeros.
void hide_next_keys(Case &c, Inputs &in, const Kernel &kernel) {
  const Case before = c;
  read_zeros(c, in, kernel);
  add_to_scores(c, in, [&](int b, int h, int, int j) {
    return j > 0 && is_missing(before, b, h / group(c), (j - 1) / c.pages.size) ? -infinity : 0.0;
  });
}

/// Pages of a head have poison where other heads' keys would be.
void read_table_of_first_head(Case &c, Inputs &in, const Kernel &) {
  fill_keys(c, in, std::nan(""), [&](int, int head, int) { return head != 0; });
  c.pages.by_head = false;
}

/// The second page instead of the first.
void read_other_page(Case &c, Inputs &in, const Kernel &) {
  for (std::vector<double> *tensor : {&in.k, &in.v}) {
    const ptrdiff_t token = ptrdiff_t(c.kv_heads) * (tensor == &in.k ? c.head_size.qk : c.head_size.v);
    for (int b = 0; b < c.batch; ++b) {
      const auto begin = tensor->begin() + b * c.kv_len * token;
      std::copy_n(begin + c.pages.size * token, std::min(c.pages.size, c.kv_len - c.pages.size) * token,
                  begin);
    }
  }
}

const std::vector<Mutant> all_mutants = {
    // Defects that every kernel may have.
    {"the last key of a sequence is lost", "", any, lose_last_key},
    {"the last tile of keys is lost", "", any,
     [](Case &c, Inputs &in, const Kernel &kernel) {
       hide_keys(c, in, [&](int j, int keys) { return j / kernel.tile_kv == (keys - 1) / kernel.tile_kv; });
     }},
    {"a key of the second tile is another's", "", [](const Case &c) { return c.sink_tokens == 0; },
     [](Case &c, Inputs &in, const Kernel &kernel) {
       swap_keys(c, in.v, c.head_size.v, kernel.tile_kv, kernel.tile_kv + 1);
     }},
    {"the scale is off by a thousandth", "", any,
     [](Case &, Inputs &in, const Kernel &) {
       for (double &scale : in.q_scale)
         scale *= 1.001;
     }},
    {"query heads of a group have the next KV head", "", any,
     [](Case &c, Inputs &in, const Kernel &) {
       for (std::vector<double> *tensor : {&in.k, &in.v}) {
         const int size = tensor == &in.k ? c.head_size.qk : c.head_size.v;
         for (size_t at = 0; at + size_t(2 * size) <= tensor->size(); at += size_t(2 * size))
           std::swap_ranges(tensor->begin() + ptrdiff_t(at), tensor->begin() + ptrdiff_t(at) + size,
                            tensor->begin() + ptrdiff_t(at) + size);
       }
     }},
    {"LSE has the other base", "lse", any,
     [](Case &c, Inputs &, const Kernel &) { c.lse_base_2 = !c.lse_base_2; }},
    {"LSE has no base 2", "lse_base_2", [](const Case &c) { return c.lse_base_2; },
     [](Case &c, Inputs &, const Kernel &) { c.lse_base_2 = false; }},
    {"O as F32 is rounded", "", [](const Case &c) { return c.o_f32; },
     [](Case &c, Inputs &, const Kernel &) { c.o_f32 = false; }, true},
    {"the last part of the keys is lost", "", in_parts,
     [](Case &c, Inputs &in, const Kernel &) {
       hide_keys(c, in, [](int j, int keys) { return j >= keys * 2 / 3; });
     },
     true},
    {"the first tile is not made relative to a larger maximum", "",
     [](const Case &c) { return c.pattern == Pattern::rising; },
     [](Case &c, Inputs &in, const Kernel &kernel) {
       // The rise of the scores from the last key of the tile to the last of all.
       const double rise = 256 / std::sqrt(c.head_size.qk) * (1 - double(kernel.tile_kv) / double(c.kv_len));
       add_to_scores(c, in, [&](int, int, int, int j) { return j < kernel.tile_kv ? rise : 0.0; });
     }},

    // Which keys a row sees.
    {"no causal mask", "causal", causal, [](Case &c, Inputs &, const Kernel &) { c.mask = Mask::none; }},
    {"a causal mask that is off by one", "causal", causal,
     [](Case &c, Inputs &, const Kernel &) {
       c.mask = is_top_left(c) ? Mask::none_top_left : Mask::none;
       c.window_right = 1;
     }},
    {"a causal mask from the other corner", "causal", causal,
     [](Case &c, Inputs &, const Kernel &) {
       c.mask = is_top_left(c) ? Mask::bottom_right : Mask::top_left;
     }},
    {"a causal mask from the top left taken for the other", "causal",
     [](const Case &c) { return is_causal(c) && is_top_left(c); },
     [](Case &c, Inputs &, const Kernel &) { c.mask = Mask::bottom_right; }},
    {"a causal window too wide by one on the left", "window",
     [](const Case &c) { return left(c) && is_causal(c); }, add<&Case::window_left, 1>},
    {"a window too wide by one on the left", "window", left, add<&Case::window_left, 1>},
    {"a window too narrow by one on the left", "window", left, add<&Case::window_left, -1>},
    {"a window too wide by a tile on the left", "window", left,
     [](Case &c, Inputs &, const Kernel &kernel) { c.window_left += kernel.tile_kv; }},
    {"a window too wide by one on the right", "window", right, add<&Case::window_right, 1>},
    {"a window too narrow by one on the right", "window", right, add<&Case::window_right, -1>},
    {"no sink tokens", "window", sink_tokens, [](Case &c, Inputs &, const Kernel &) { c.sink_tokens = 0; }},
    {"a sink token too many", "window", sink_tokens, add<&Case::sink_tokens, 1>},
    {"a sink token too few", "window", sink_tokens, add<&Case::sink_tokens, -1>},
    {"the whole tile of the sink tokens is seen", "window", sink_tokens,
     [](Case &c, Inputs &, const Kernel &kernel) { c.sink_tokens = kernel.tile_kv; }},
    {"the whole tile of the sink tokens is seen where causal", "window",
     [](const Case &c) { return sink_tokens(c) && is_causal(c); },
     [](Case &c, Inputs &, const Kernel &kernel) { c.sink_tokens = kernel.tile_kv; }},
    {"the whole tile of the sink tokens is seen where not causal", "window",
     [](const Case &c) { return sink_tokens(c) && !is_causal(c); },
     [](Case &c, Inputs &, const Kernel &kernel) { c.sink_tokens = kernel.tile_kv; }},
    {"the tile after that of the sink tokens is seen", "window", sink_tokens,
     [](Case &c, Inputs &in, const Kernel &kernel) {
       Case more = c;
       more.sink_tokens = 2 * kernel.tile_kv;
       const Sequences sequences(c);
       add_to_scores(more, in, [&](int b, int, int i, int j) {
         const bool in_tile = j >= kernel.tile_kv && j < 2 * kernel.tile_kv;
         return in_tile || is_in_place(c, sequences, b, i, j) ? 0.0 : -infinity;
       });
       c = more;
     }},
    {"the first key is seen outside the window", "window",
     [](const Case &c) { return c.window_left >= 0 && c.sink_tokens == 0; },
     [](Case &c, Inputs &, const Kernel &) { c.sink_tokens = 1; }},
    {"no bits", "mask", bits, [](Case &c, Inputs &, const Kernel &) { c.bits = {}; }},
    {"bits of the KV head", "mask", bits, matrix_by_kv_head<&scores::mask_bits>},
    {"bits of the first sequence", "mask", bits, matrix_repeats<&scores::mask_bits, 0>},
    {"bits of another row", "mask", bits, matrix_repeats<&scores::mask_bits, 2>},
    {"bits of another key", "mask", bits, matrix_repeats<&scores::mask_bits, 3>},

    // How its scores are processed.
    {"no bias of F32", "bias", [](const Case &c) { return c.bias.type == BiasType::f32; }, lose_bias},
    {"no bias of F16", "bias", [](const Case &c) { return c.bias.type == BiasType::f16; }, lose_bias},
    {"no bias of BF16", "bias", [](const Case &c) { return c.bias.type == BiasType::bf16; }, lose_bias},
    {"the bias of the KV head", "bias", bias, matrix_by_kv_head<&scores::bias>},
    {"the bias of the first sequence", "bias", bias, matrix_repeats<&scores::bias, 0>},
    {"the bias of another row", "bias", bias, matrix_repeats<&scores::bias, 2>},
    {"the bias of another key", "bias", bias, matrix_repeats<&scores::bias, 3>},
    {"a bias of -infinity hides nothing", "bias", [](const Case &c) { return c.bias.holes; },
     [](Case &, Inputs &in, const Kernel &) {
       for (double &value : in.changes[scores::bias].matrix.values)
         if (std::isinf(value)) value = 0;
     }},
    {"ALiBi with signed distances", "alibi", alibi_not_causal,
     [](Case &c, Inputs &in, const Kernel &) {
       change_distance(c, in, [](int own, int j, int) { return own - j; });
     }},
    {"ALiBi with distances off by one", "alibi", alibi,
     [](Case &c, Inputs &in, const Kernel &) {
       change_distance(c, in, [](int own, int j, int) { return std::abs(own - j + 1); });
     }},
    {"ALiBi with distances off by one where not causal", "alibi", alibi_not_causal,
     [](Case &c, Inputs &in, const Kernel &) {
       change_distance(c, in, [](int own, int j, int) { return std::abs(own - j + 1); });
     }},
    {"ALiBi with distances off by one where causal", "alibi",
     [](const Case &c) { return c.alibi && is_causal(c); },
     [](Case &c, Inputs &in, const Kernel &) {
       change_distance(c, in, [](int own, int j, int) { return std::abs(own - j + 1); });
     }},
    {"ALiBi from the top left with distances from the other corner", "alibi",
     [](const Case &c) { return c.alibi && is_top_left(c); },
     [](Case &c, Inputs &, const Kernel &) { c.mask = Mask::none; }},
    {"ALiBi with distances from the other corner", "alibi", alibi_bottom_right,
     [](Case &c, Inputs &in, const Kernel &) {
       change_distance(c, in, [](int, int j, int i) { return std::abs(i - j); });
     }},
    {"ALiBi with distances of the tile's first key", "alibi", alibi,
     [](Case &c, Inputs &in, const Kernel &kernel) {
       change_distance(
           c, in, [&](int own, int j, int) { return std::abs(own - j / kernel.tile_kv * kernel.tile_kv); });
     }},
    {"ALiBi with the slope of the KV head", "alibi", alibi, by_kv_head<&scores::alibi>},
    {"ALiBi with the slope of a place in the group", "alibi", alibi, by_place_in_group<&scores::alibi>},
    {"ALiBi with the slope of the KV head where not causal", "alibi", alibi_not_causal,
     by_kv_head<&scores::alibi>},
    {"the sink logit of the KV head", "sink_logits", sink_logits, by_kv_head<&scores::sink_logits>},
    {"the sink logit of a place in the group", "sink_logits", sink_logits,
     by_place_in_group<&scores::sink_logits>},
    {"no sink logit", "sink_logits", sink_logits,
     [](Case &, Inputs &in, const Kernel &) {
       std::ranges::fill(in.changes[scores::sink_logits].heads, -infinity);
     }},
    {"the scale of Q of the KV head", "scales", has_factors<&Case::q_scale>, by_kv_head<&Inputs::q_scale>},
    {"the scale of Q of a place in the group", "scales", has_factors<&Case::q_scale>,
     by_place_in_group<&Inputs::q_scale>},
    {"the scale of K of the first head", "scales", has_factors<&Case::k_scale>,
     by_first_head<&Inputs::k_scale>},
    {"the scale of V of the first head", "scales", has_factors<&Case::v_scale>,
     by_first_head<&Inputs::v_scale>},
    {"no scale of V", "scales", has_factors<&Case::v_scale>,
     [](Case &, Inputs &in, const Kernel &) { std::ranges::fill(in.v_scale, 1.0); }},

    // Scales of each key.
    {"the scale of K of the next key", "key_scales", scales_of_keys, by_next_key<&Inputs::k_scale>},
    {"the scale of V of the next key", "key_scales", scales_of_keys, by_next_key<&Inputs::v_scale>},
    {"the scale of V of the other head", "key_scales", scales_of_keys,
     [](Case &c, Inputs &in, const Kernel &) {
       for (size_t at = 0; at + 1 < in.v_scale.size(); at += size_t(c.kv_heads))
         std::swap(in.v_scale[at], in.v_scale[at + 1]);
     }},
    {"scales of V of keys in the denominator, too", "key_scales",
     [](const Case &c) { return scales_of_keys(c) && c.lse; },
     [](Case &c, Inputs &in, const Kernel &) {
       add_to_scores(c, in, [&](int b, int h, int, int j) {
         return std::log(in.v_scale[(size_t(b) * c.kv_len + j) * c.kv_heads + h / group(c)]);
       });
       c.v_scale = Scale::none;
       in.v_scale.assign(size_t(c.kv_heads), 1);
     }},

    // Masks of sequences and rows.
    {"bits of the new rows taken for those of the first keys", "mask_new_rows",
     [](const Case &c) { return c.bits.new_rows; },
     [](Case &c, Inputs &in, const Kernel &) {
       add_to_scores(c, in, [&](int b, int h, int i, int j) {
         return j < c.q_len && in.changes[scores::mask_bits].matrix.at(b, h, i, j) == 0 ? -infinity : 0.0;
       });
       c.bits = {};
     }},
    {"bits of the new rows, one key later", "mask_new_rows", [](const Case &c) { return c.bits.new_rows; },
     [](Case &c, Inputs &in, const Kernel &) {
       const Sequences sequences(c);
       add_to_scores(c, in, [&](int b, int h, int i, int j) {
         const int column = j - first_masked_key(c, sequences, b) - 1;
         return column >= 0 && in.changes[scores::mask_bits].matrix.at(b, h, i, column) == 0 ? -infinity
                                                                                             : 0.0;
       });
       c.bits = {};
     }},
    {"no spans", "spans", [](const Case &c) { return c.spans; },
     [](Case &c, Inputs &, const Kernel &) { c.spans = false; }},
    {"spans that end a key later", "spans", [](const Case &c) { return c.spans; }, see_more_of_spans<1>},
    {"spans that begin a key earlier within a window", "spans",
     [](const Case &c) { return c.spans && left(c); }, see_more_of_spans<-1>},
    {"all sequences are causal", "causal_by_sequence", [](const Case &c) { return c.causal_by_sequence; },
     [](Case &c, Inputs &, const Kernel &) {
       c.causal_by_sequence = false;
       c.mask = Mask::bottom_right;
     }},
    {"no sequence is causal", "causal_by_sequence", [](const Case &c) { return c.causal_by_sequence; },
     [](Case &c, Inputs &, const Kernel &) { c.causal_by_sequence = false; }},
    {"the diagonal of the newest rows", "given_diagonal", has_diagonals,
     [](Case &c, Inputs &, const Kernel &) { c.mask = Mask::bottom_right; }},
    {"the scale of a bias of the KV head", "bias_scale", [](const Case &c) { return c.bias.scaled; },
     by_kv_head_of_sequence<&scores::bias>},
    {"the scale of a bias of the first sequence", "bias_scale",
     [](const Case &c) { return c.bias.scaled && c.by_sequence; }, by_first_sequence<&scores::bias>},
    {"ALiBi with the slopes of the first sequence", "alibi_by_sequence",
     [](const Case &c) { return c.alibi && c.by_sequence; }, by_first_sequence<&scores::alibi>},
    {"O as FP8 with the scale of the KV head", "", [](const Case &c) { return c.o_scale == Scale::head; },
     by_kv_head<&Inputs::o_scale>},
    {"O as FP8 without a scale", "", [](const Case &c) { return c.o_scale == Scale::head; },
     [](Case &, Inputs &in, const Kernel &) { std::ranges::fill(in.o_scale, 1.0 / 128); }},

    // The places of keys and values.
    {"the last key of a sequence with a length is lost", "lengths", lengths, lose_last_key},
    {"the last key of a ragged sequence is lost", "ragged", ragged, lose_last_key},
    {"another page", "paged", paged, read_other_page},
    {"another page through starts", "csr", [](const Case &c) { return c.pages.csr; }, read_other_page},
    {"another page through entries of 64 bits", "page_index_64", [](const Case &c) { return c.pages.wide; },
     read_other_page},
    {"keys of missing pages read as zeros", "missing_pages", missing_pages, read_zeros},
    {"the keys after those of missing pages are hidden", "missing_pages", missing_pages, hide_next_keys},
    {"missing pages of the first head", "missing_pages",
     [](const Case &c) { return missing_pages(c) && tables_of_heads(c); },
     [](Case &c, Inputs &, const Kernel &) { c.pages.by_head = false; }},
    {"the table of the first head", "paged", tables_of_heads, read_table_of_first_head},
    {"packs of K in another order", "k_pack", [](const Case &c) { return c.pages.k_pack; },
     [](Case &c, Inputs &in, const Kernel &) {
       move_elements(in.k, c.head_size.qk, [&](int e) { return e ^ (e < 2 * k_pack(c) ? k_pack(c) : 0); });
     }},
    {"the next column of V", "v_pack", by_columns,
     [](Case &c, Inputs &in,
        const Kernel
            &) { move_elements(in.v, c.head_size.v, [&](int e) { return (e + 1) % c.head_size.v; }); }},
    {"the next token of a column of V", "v_pack", by_columns,
     [](Case &c, Inputs &in, const Kernel &) { swap_keys(c, in.v, c.head_size.v, 0, 1); }},
    {"the other pack of V", "v_pack", [](const Case &c) { return v_pack(c) != 0; },
     [](Case &c, Inputs &in, const Kernel &) { swap_keys(c, in.v, c.head_size.v, 0, v_pack(c)); }},
    {"V from the next elements of K", "v_in_k", [](const Case &c) { return c.v_in_k; },
     [](Case &c, Inputs &in, const Kernel &) {
       move_elements(in.v, c.head_size.v, [&](int e) { return (e + 8) % c.head_size.v; });
     }},
};

} // namespace

const std::vector<Mutant> &mutants() {
  static const std::vector<Mutant> all = [] {
    std::vector<Mutant> list = all_mutants;
    for (const ScoreChange *change : score_changes) {
      if (change->defects == nullptr) continue;
      const std::vector<Mutant> own = change->defects();
      list.insert(list.end(), own.begin(), own.end());
    }
    return list;
  }();
  return all;
}

} // namespace sluice::conformance
