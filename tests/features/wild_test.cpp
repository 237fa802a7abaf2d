//===- wild_test.cpp - calls with arbitrary lengths, starts and tables ----------------------------------===//
//
// The header says what these may lead to: wrong rows of the call's own O and LSE, and loads from unmapped
// memory if the call does not say how much there is. Never a store anywhere else, and never a run that does
// not end.
//
//===----------------------------------------------------------------------------------------------------===//
#include "calls/problem.h"
#include "features/random_call.h"
#include "features/wild_numbers.h"

#include <cstdlib>
#include <limits>

using namespace sluice::test;
namespace calls = sluice::calls;

namespace {

constexpr const char *instruction_budget = "3000000";

constexpr Largest small = {.batch = 3, .q_len = 45, .kv_len = 110};

void check_wild_calls(uint64_t first, uint64_t end) {
  set_up_for_wild_calls(instruction_budget);
  for (uint64_t seed = first; seed < end; ++seed) {
    RandomCall call(seed, small);
    if (seed % 3 == 0) { // which splits keys
      call.problem.max_batch = 3;
      call.problem.max_kv_len = 4000;
      call.problem.max_q_len = 150;
    }
    INFO("seed " << seed << ": " << call.text());
    call.prepare();
    // Rows are only checked if the call gives their number: without it starts may lead anywhere (header).
    const bool counted = call.q_starts_given || seed % 4 != 0;
    call.make_wild(counted);
    const std::string reports = call.run_wild();
    const std::string stray = call.find_stray_store();
    INFO(reports);
    INFO(stray);
    // The end of the table is unknown: starts of a CSR table lead beyond it.
    const bool may_fault = !counted || call.problem.page_table_kind == SLUICE_PAGE_TABLE_CSR;
    REQUIRE((may_fault ? !has_more_than_loads(reports) : reports == "[]"));
    REQUIRE(stray.empty());
  }
}

/// A call of one kind, with contents set by the test.
struct Case {
  const char *name;
  uint32_t mode;
  int32_t kv_heads, group;
  void (*change)(RandomCall &call);
};

calls::Problem problem_of(const Case &c) {
  calls::Problem problem;
  problem.mode = c.mode;
  problem.q_type = problem.k_type = problem.v_type = problem.o_type = SLUICE_F16;
  problem.kv_heads = c.kv_heads;
  problem.q_heads = c.kv_heads * c.group;
  problem.head_dim_qk = problem.head_dim_v = 128;
  problem.flags = calls::write_lse;
  if (c.mode == calls::paged) {
    problem.page_size = 16;
    problem.page_table_kind = SLUICE_PAGE_TABLE_BLOCK;
  }
  return problem;
}

} // namespace

TEST_CASE("lengths, starts and pages that break the rules store nothing elsewhere", "[wild]") {
  constexpr int32_t most = std::numeric_limits<int32_t>::max();
  const Case cases[] = {
      {"more query rows than q_len", calls::dense, 2, 1,
       [](RandomCall &call) { call.set_wild("q_lengths", 0, 140); }},
      {"all rows there can be", calls::dense, 1, 8,
       [](RandomCall &call) { call.set_wild("q_lengths", 1, most); }},
      {"a negative length", calls::dense, 2, 1, [](RandomCall &call) { call.set_wild("q_lengths", 1, -1); }},
      {"all keys there can be", calls::dense, 1, 1,
       [](RandomCall &call) { call.set_wild("kv_lengths", 0, most); }},
      {"all keys in pages", calls::paged, 1, 8,
       [](RandomCall &call) { call.set_wild("kv_lengths", 0, most); }},
      {"a negative number of keys", calls::paged, 1, 8,
       [](RandomCall &call) { call.set_wild("kv_lengths", 0, std::numeric_limits<int32_t>::min()); }},
      {"negative starts", calls::ragged, 2, 1, [](RandomCall &call) { call.set_wild("q_starts", 0, -100); }},
      {"starts beyond the tensor", calls::ragged, 2, 1,
       [](RandomCall &call) { call.set_wild("q_starts", 1, 1 << 20); }},
      {"starts of keys beyond the tensor", calls::ragged, 2, 1,
       [](RandomCall &call) { call.set_wild("kv_starts", 1, 1 << 20); }},
      {"negative starts of keys", calls::ragged, 1, 4,
       [](RandomCall &call) { call.set_wild("kv_starts", 0, -1000000); }},
      {"an invalid page", calls::paged, 1, 1,
       [](RandomCall &call) { call.set_wild("page_table", 0, 1 << 20); }},
      {"a negative page", calls::paged, 1, 8, [](RandomCall &call) { call.set_wild("page_table", 1, -1); }},
  };
  set_up_for_wild_calls(instruction_budget);
  for (const Case &c : cases) {
    INFO(c.name);
    RandomCall call(7, problem_of(c), small);
    call.q_lengths = {40, 33, 40};
    call.kv_lengths = {100, 77, 100};
    call.q_lengths_given = call.q_starts_given = c.mode == calls::ragged;
    if (c.mode == calls::dense) call.q_lengths_given = true;
    call.kv_lengths_given = true;
    call.prepare();
    call.count_all();
    c.change(call);
    const std::string reports = call.run_wild();
    INFO(reports);
    CHECK(reports == "[]");
    CHECK(call.find_stray_store() == "");
  }
}

TEST_CASE("an invalid or negative page is read as zeros", "[wild]") {
  set_up_for_wild_calls(instruction_budget);
  for (const bool is_negative : {false, true}) {
    RandomCall call(3, problem_of({"", calls::paged, 1, 2, nullptr}), small);
    call.q_lengths = {3};
    call.kv_lengths = {40};
    call.q_lengths_given = call.q_starts_given = false;
    call.prepare();
    call.count_all();
    call.clear_page_of(0); // on the host, where the number stays unchanged
    call.refer();
    call.set_wild("page_table", 0, is_negative ? -1 : 1 << 24);
    CHECK(call.run_wild() == "[]");
    const RandomCall::Difference difference = call.compare();
    INFO(difference.where);
    CHECK(difference.o <= 4e-3);
    CHECK(difference.lse <= 1e-4);
  }
}

TEST_CASE("random contents store nothing elsewhere", "[wild]") {
  check_wild_calls(0, 150);
}

TEST_CASE("ten thousand random contents store nothing elsewhere", "[.more]") {
  check_wild_calls(150, 10150);
}
