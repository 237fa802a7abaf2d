//===- problem_space.cpp - everything that a problem can ask for, a value at a time ---------------------===//
#include "features/problem_space.h"

#include "calls/problem.h"

#include <limits>

namespace sluice::test {
namespace {

using P = calls::Problem;
using Values = std::vector<ProblemValue>;

constexpr int32_t largest = std::numeric_limits<int32_t>::max();

void nothing(P &, int32_t) {}

#define SLUICE_SETTER(member) [](P &p, int32_t n) { p.member = static_cast<decltype(p.member)>(n); }

/// The plain value, and numbers for one field.
Values numbers(void (*set)(P &, int32_t), std::initializer_list<int32_t> wanted) {
  Values out = {{"-", nothing}};
  for (int32_t number : wanted)
    out.push_back({std::to_string(number), set, number});
  return out;
}

Values flag(int32_t bit) {
  return {{"-", nothing}, {"on", [](P &p, int32_t n) { p.flags |= uint32_t(n); }, bit}};
}

/// Multiples of 8 up to more than any kernel has, and numbers that are not multiples of 8.
Values head_sizes() {
  Values out = {{"-", nothing}};
  const auto both = [](P &p, int32_t n) { p.head_dim_qk = p.head_dim_v = n; };
  for (int32_t size = 8; size <= 640; size += 8)
    out.push_back({std::to_string(size), both, size});
  for (int32_t size : {1, 4, 68, 100, 301, 516, 1000, 0, -64, largest})
    out.push_back({std::to_string(size), both, size});
  return out;
}

Values windows() {
  const auto left = [](P &p, int32_t n) {
    p.flags |= calls::window_left;
    p.window_left = n;
  };
  const auto right = [](P &p, int32_t n) {
    p.flags |= calls::window_right;
    p.window_right = n;
  };
  const auto both = [](P &p, int32_t n) {
    p.flags |= calls::window_left | calls::window_right;
    p.window_left = n;
    p.window_right = n / 2;
  };
  const auto causal_left = [](P &p, int32_t n) {
    p.flags |= calls::causal | calls::window_left;
    p.window_left = n;
  };
  return {{"-", nothing},
          {"causal", [](P &p, int32_t) { p.flags |= calls::causal; }},
          {"left 20", left, 20},
          {"left of all", left, largest},
          {"left -1", left, -1},
          {"right 7", right, 7},
          {"right of all", right, largest},
          {"right -1", right, -1},
          {"both 0", both, 0},
          {"both 30", both, 30},
          {"causal left 30", causal_left, 30},
          {"causal right", [](P &p, int32_t) { p.flags |= calls::causal | calls::window_right; }},
          {"only a width", SLUICE_SETTER(window_left), 9}};
}

Values heads() {
  const auto one_kv_head = [](P &p, int32_t n) {
    p.q_heads = n;
    p.kv_heads = 1;
  };
  const auto five_kv_heads = [](P &p, int32_t n) {
    p.q_heads = n;
    p.kv_heads = 5;
  };
  const auto equal = [](P &p, int32_t n) { p.q_heads = p.kv_heads = n; };
  return {{"-", nothing},
          {"8/1", one_kv_head, 8},
          {"3/1", one_kv_head, 3},
          {"20/1", one_kv_head, 20},
          {"10/5", five_kv_heads, 10},
          {"4/4", equal, 4},
          {"32768/1", one_kv_head, 32768},
          {"40000/5", five_kv_heads, 40000},
          {"12/5", five_kv_heads, 12},
          {"65536/65536", equal, 65536},
          {"0/0", equal, 0}};
}

Values bounds() {
  const auto all = [](P &p, int32_t n) { p.max_batch = p.max_q_len = p.max_kv_len = n; };
  const auto prefill = [](P &p, int32_t n) {
    p.max_batch = 2;
    p.max_q_len = 40;
    p.max_kv_len = n;
  };
  const auto decode = [](P &p, int32_t n) {
    p.max_batch = 3;
    p.max_q_len = 1;
    p.max_kv_len = n;
  };
  return {{"-", nothing},
          {"prefill", prefill, 300},
          {"decode", decode, 4000},
          {"decode of many keys", decode, largest},
          {"only keys", SLUICE_SETTER(max_kv_len), 5000},
          {"only a batch", SLUICE_SETTER(max_batch), 2},
          {"no rows",
           [](P &p, int32_t) {
             p.max_batch = 2;
             p.max_kv_len = 100;
           }},
          {"tokens", [](P &p, int32_t) { p.max_q_tokens = int64_t{1} << 40; }},
          {"2^30 of all", all, 1 << 30},
          {"most of all", all, largest},
          {"most of the batch", SLUICE_SETTER(max_batch), largest},
          {"-1 of all", all, -1}};
}

/// 0 would change nothing: this number is 0.
constexpr int32_t missing = 100;
constexpr uint32_t type_of(int32_t n) {
  return n == missing ? 0 : uint32_t(n);
}

Values types_of_all() {
  Values out = numbers([](P &p, int32_t n) { p.q_type = p.k_type = p.v_type = p.o_type = type_of(n); },
                       {2, 3, 4, 5, 6, 7, missing});
  out.push_back({"9", [](P &p, int32_t n) { p.q_type = uint32_t(n); }, 9});
  const auto all_but_o = [](P &p, int32_t n) {
    p.q_type = p.k_type = p.v_type = SLUICE_E4M3FNUZ;
    p.o_type = uint32_t(n);
  };
  for (int32_t type : {1, 2, 3})
    out.push_back({"4 to " + std::to_string(type), all_but_o, type});
  return out;
}

Values types_of_cache() {
  Values out = numbers([](P &p, int32_t n) { p.k_type = p.v_type = type_of(n); },
                       {1, 2, 3, 4, 5, 6, 7, 8, 10, 11, 12, missing});
  for (int32_t type : {1, 4, 6}) {
    out.push_back({"K " + std::to_string(type), SLUICE_SETTER(k_type), type});
    out.push_back({"V " + std::to_string(type), SLUICE_SETTER(v_type), type});
  }
  out.push_back({"V 9", SLUICE_SETTER(v_type), 9});
  for (int32_t group : {32, 64, 16})
    out.push_back({"9 in groups of " + std::to_string(group),
                   [](P &p, int32_t n) {
                     p.k_type = p.v_type = SLUICE_U4;
                     p.k_scale_kind = p.v_scale_kind = SLUICE_SCALE_PER_GROUP;
                     p.scale_group = n;
                   },
                   group});
  return out;
}

Values modes() {
  const auto paged = [](P &p, int32_t n) {
    p.mode = calls::paged;
    p.page_size = 16;
    p.page_table_kind = uint32_t(n);
  };
  Values out = numbers(SLUICE_SETTER(mode), {1});
  out.push_back({"paged", paged, SLUICE_PAGE_TABLE_BLOCK});
  out.push_back({"paged, CSR", paged, SLUICE_PAGE_TABLE_CSR});
  out.push_back({"paged, no table", paged, SLUICE_PAGE_TABLE_NONE});
  out.push_back({"paged, table 3", paged, 3});
  out.push_back({"only a table", SLUICE_SETTER(page_table_kind), SLUICE_PAGE_TABLE_CSR});
  return out;
}

Values soft_caps() {
  return {{"-", nothing},
          {"3", SLUICE_SETTER(soft_cap), 3},
          {"65536", SLUICE_SETTER(soft_cap), 65536},
          {"100000", SLUICE_SETTER(soft_cap), 100000},
          {"-3", SLUICE_SETTER(soft_cap), -3},
          {"1e-29", [](P &p, int32_t) { p.soft_cap = 1e-29f; }},
          {"1e-40", [](P &p, int32_t) { p.soft_cap = 1e-40f; }},
          {"1e38", [](P &p, int32_t) { p.soft_cap = 1e38f; }},
          {"NaN", [](P &p, int32_t) { p.soft_cap = std::numeric_limits<float>::quiet_NaN(); }}};
}

Values prefixes() {
  const auto shared = [](P &p, int32_t n) {
    p.flags |= calls::prefixes;
    p.max_prefixes = 3;
    p.max_prefix_len = n;
    p.max_q_tokens = 5000;
  };
  return {{"-", nothing},
          {"of 50", shared, 50},
          {"of 3000", shared, 3000},
          {"without keys", shared, 0},
          {"without bounds", [](P &p, int32_t) { p.flags |= calls::prefixes; }},
          {"only a bound", SLUICE_SETTER(max_prefixes), 2}};
}

Values lse() {
  Values out = flag(calls::write_lse);
  out.push_back({"base 2", [](P &p, int32_t) { p.flags |= calls::write_lse | calls::lse_log2; }});
  return out;
}

} // namespace

const std::vector<ProblemDimension> &problem_space() {
  static const std::vector<ProblemDimension> space = {
      {"types", types_of_all()},
      {"cache", types_of_cache()},
      {"O", numbers([](P &p, int32_t n) { p.o_type = type_of(n); }, {1, 2, 3, 4, 7, missing, 9})},
      {"heads", heads()},
      {"head size", head_sizes()},
      {"V's", numbers(SLUICE_SETTER(head_dim_v), {8, 40, 64, 128, 192, 256, 512, 520, 20, 0})},
      {"mode", modes()},
      {"page size", numbers(SLUICE_SETTER(page_size), {1, 3, 64, 100, largest, -1})},
      {"index 64", flag(calls::page_index_64)},
      {"missing pages", flag(calls::missing_pages)},
      {"padded rows", flag(calls::padded_rows)},
      {"pack", numbers(SLUICE_SETTER(k_pack), {8, 16, 4, 12, 24, 32, 64, -8})},
      {"V in K", flag(calls::v_in_k)},
      {"pack of V", numbers(SLUICE_SETTER(v_pack), {8, 16, SLUICE_PACK_ALL, 12, -8})},
      {"window", windows()},
      {"sinks", numbers(SLUICE_SETTER(sink_tokens), {4, largest, -1})},
      {"alignment", numbers(SLUICE_SETTER(mask_alignment), {1, 2, 3})},
      {"some causal", flag(calls::causal_by_sequence)},
      {"spans", flag(calls::spans)},
      {"mask", flag(calls::mask_bits)},
      {"mask of new rows", flag(calls::mask_bits_of_new)},
      {"bias scale", flag(calls::bias_scale)},
      {"cap", soft_caps()},
      {"bias", numbers(SLUICE_SETTER(bias_type), {1, 2, 3, 4, 8})},
      {"alibi", flag(calls::alibi)},
      {"sink logits", flag(calls::sinks)},
      {"Q scale", numbers(SLUICE_SETTER(q_scale_kind), {1, 2, 3, 4, 5})},
      {"K scale", numbers(SLUICE_SETTER(k_scale_kind), {1, 2, 3, 4, 5})},
      {"V scale", numbers(SLUICE_SETTER(v_scale_kind), {1, 2, 3, 4, 5})},
      {"O scale", numbers(SLUICE_SETTER(o_scale_kind), {1, 2, 3})},
      {"zero points", flag(calls::zero_points)},
      {"prefixes", prefixes()},
      {"LSE", lse()},
      {"invariance", flag(calls::batch_invariant)},
      {"bounds", bounds()},
      {"ceiling", numbers(SLUICE_SETTER(workspace_ceiling_bytes), {1, 1 << 20})}};
  return space;
}

#undef SLUICE_SETTER

Point Point::random(Numbers &numbers) {
  // Half of the values are the first ones, so that enough of the problems are supported.
  Point point;
  for (size_t d = 0; d < point.places.size(); ++d)
    if (numbers.below(2)) point.places[d] = numbers.below(uint32_t(problem_space()[d].values.size()));
  return point;
}

Point Point::with(size_t dimension, size_t place) const {
  Point changed = *this;
  changed.places.at(dimension) = place;
  return changed;
}

calls::Problem Point::problem() const {
  calls::Problem problem;
  problem.q_type = problem.k_type = problem.v_type = problem.o_type = SLUICE_F16;
  problem.q_heads = 2;
  problem.kv_heads = 1;
  problem.head_dim_qk = problem.head_dim_v = 64;
  for (size_t d = 0; d < places.size(); ++d) {
    const ProblemValue &value = problem_space()[d].values.at(places[d]);
    value.set(problem, value.argument);
  }
  // As the caller's structs say it.
  if (problem.page_size != 0 && problem.mode == calls::dense) problem.mode = calls::paged;
  return problem;
}

std::string Point::text() const {
  std::string text;
  for (size_t d = 0; d < places.size(); ++d) {
    const ProblemDimension &dimension = problem_space()[d];
    if (places[d] != 0) text += dimension.name + " " + dimension.values.at(places[d]).name + "; ";
  }
  return text.empty() ? "plain" : text;
}

} // namespace sluice::test
