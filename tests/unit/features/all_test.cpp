//===- all_test.cpp - the list of features, and what its users ask of it --------------------------------===//
#include "calls/problem.h"
#include "features/all.h"

#include <catch2/catch.hpp>

#include <set>
#include <string>
#include <vector>

using namespace sluice;
using features::Feature;

namespace {

std::set<const Feature *> members(const features::List &list) {
  return {list.begin(), list.end()};
}

template <typename Rows> std::vector<std::string> names(const Rows &rows) {
  std::vector<std::string> out;
  for (const auto &row : rows)
    out.emplace_back(row.name);
  return out;
}

/// Whether the values are there in this order; others, of later features, may be among them.
template <typename Value>
bool has_in_order(const std::vector<Value> &values, const std::vector<Value> &wanted) {
  auto next = wanted.begin();
  for (const Value &value : values)
    if (next != wanted.end() && value == *next) ++next;
  return next == wanted.end();
}

} // namespace

TEST_CASE("every order has every feature once", "[features]") {
  const std::set<const Feature *> all(std::begin(features::all), std::end(features::all));
  CHECK(all.size() == std::size(features::all));
  for (const features::List &order : {features::problem_order, features::prefix_order, features::call_order})
    CHECK(members(order) == all);
}

TEST_CASE("an order begins with what it names, and goes on as the list", "[features]") {
  const features::List &order = features::call_order;
  CHECK(order[0] == &features::bias);
  CHECK(order[5] == &features::alibi_by_sequence);
  CHECK(order[6] == &features::causal);
  CHECK(order[7] == &features::window);
}

TEST_CASE("only features that have a part are visited, in the order given", "[features]") {
  std::vector<Feature::CheckProblem> visited;
  features::for_each<&Feature::check_problem, features::problem_order>(
      [&](auto check) { visited.push_back(check); });
  CHECK(has_in_order<Feature::CheckProblem>(
      visited, {features::check_diagonal, features::check_causal, features::check_mask_of_new_rows,
                features::check_window, features::check_soft_cap, features::check_bias_type,
                features::check_scaled_bias}));
}

TEST_CASE("a question to any feature is answered by the first that agrees", "[features]") {
  calls::Problem problem = {};
  CHECK(!features::any<&Feature::changes_scores>(problem));
  problem.flags = calls::alibi;
  CHECK(features::any<&Feature::changes_scores>(problem));
}

TEST_CASE("rows of tables are in the order of the features", "[features]") {
  CHECK(has_in_order<std::string>(names(features::joined<&Feature::questions>()),
                                  {"causal, bottom-right", "causal, top-left", "window to the left",
                                   "window to the right", "sink tokens", "mask of bits",
                                   "mask of the new rows only", "causal, with a diagonal per sequence",
                                   "causal for some sequences", "spans visible in both directions",
                                   "soft cap", "bias of F32", "bias of F16", "bias of BF16",
                                   "scales of a bias", "ALiBi slopes per sequence", "ALiBi", "sink logits"}));
  CHECK(has_in_order<std::string>(names(features::joined<&Feature::call_needs>()), {"alibi_by_sequence"}));
}

TEST_CASE("the flags of features are known", "[features]") {
  constexpr uint32_t flags = calls::causal | calls::window_left | calls::window_right | calls::alibi |
                             calls::sinks | calls::mask_bits | calls::mask_bits_of_new | calls::spans |
                             calls::causal_by_sequence | calls::bias_scale | calls::missing_pages;
  CHECK((features::known_flags & flags) == flags);
  CHECK((features::known_flags & calls::write_lse) == 0);
}

TEST_CASE("names know their version of the ABI, and their order", "[features]") {
  namespace names = package::feature_names;
  CHECK(!names::is_newer(names::causal));
  CHECK(!names::is_newer(names::k_pack));
  CHECK(names::is_newer(names::spans));
  CHECK(names::is_newer(names::v_pack));
  CHECK(!names::is_newer(names::slots)); // of cache operations
  CHECK(names::rank(names::causal) == 0);
  CHECK(names::rank(names::bias_scale) < names::rank(names::alibi_by_sequence));
  CHECK(names::rank(names::alibi_by_sequence) < names::rank(names::v_in_k));
  CHECK(names::rank(names::slots) ==
        std::size(names::common_attention) + std::size(names::further_attention));
}
