//===- sequences_test.cpp - lengths, starts and page tables ---------------------------------------------===//
//
// Rows of one element and scores of 0, so that O is the mean of the values and shows which ones were read.
// Everything that no row may read is NaN; memory that must not be written is checked.
//
//===----------------------------------------------------------------------------------------------------===//
#include "call.h"
#include "calls/args.h"
#include "calls/problem.h"

#include <catch2/catch.hpp>

#include <algorithm>

using namespace sluice::test;
namespace calls = sluice::calls;

namespace {

calls::Problem one_element_problem(uint32_t mode) {
  calls::Problem problem = {};
  problem.mode = mode;
  problem.flags = calls::write_lse;
  problem.q_type = problem.k_type = problem.v_type = problem.o_type = SLUICE_F32;
  problem.q_heads = problem.kv_heads = problem.head_dim_qk = problem.head_dim_v = 1;
  return problem;
}

/// Keys 10, 20, 30 in pages 5, 2 of two rows for sequence 0; none for sequence 1; key 40 in page 0 for
/// sequence 2. All other slots are NaN, including those after the last key in its page.
struct PagedCall {
  calls::Problem problem = one_element_problem(calls::paged);
  calls::Args args = {};
  std::vector<float> q = {0, 0, 0}, o, lse, cache;
  int32_t lengths[3] = {3, 0, 1};

  PagedCall() : o(3, untouched), lse(3, untouched), cache(16, not_a_number) {
    cache[10] = 10, cache[11] = 20, cache[4] = 30, cache[0] = 40;
    problem.page_size = 2;
    problem.page_table_kind = SLUICE_PAGE_TABLE_BLOCK;
    args.batch = 3;
    args.q_len = 1;
    args.kv_len = 4;
    args.q = {q.data(), {1, 1, 1, 1}};
    args.k = {zeros.data(), {2, 1, 1, 1}};
    args.v = {cache.data(), {2, 1, 1, 1}};
    args.o = {o.data(), {1, 1, 1, 1}};
    args.lse = {lse.data(), {1, 1, 1, 0}};
    args.kv_lengths = lengths;
    // Keys are NaN where values are, else 0.
    for (size_t i = 0; i < cache.size(); ++i)
      zeros[i] = cache[i] * 0;
  }

  void check() {
    sluice::reference::attention(problem, args);
    CHECK(o == std::vector<float>{20, 0, 40});
    CHECK(lse[0] == Approx(std::log(3.0)));
    CHECK(lse[1] == -infinity);
    CHECK(lse[2] == 0);
  }

private:
  std::vector<float> zeros = std::vector<float>(16);
};

// Large enough to be noticed if it is read.
constexpr int32_t nowhere = 1 << 30;

} // namespace

TEST_CASE("rows past a sequence's lengths are neither read nor written", "[reference][sequences]") {
  Call call(3, 4, 5, 1, 1, 1, 1);
  const int32_t q_lengths[] = {2, 0, 4}, kv_lengths[] = {3, 5, 0};
  call.args.q_lengths = q_lengths;
  call.args.kv_lengths = kv_lengths;
  for (int b = 0; b < 3; ++b) {
    for (int j = 0; j < 5; ++j) {
      const bool is_key = j < kv_lengths[b];
      call.k[size_t(5 * b + j)] = is_key ? 0 : not_a_number;
      call.v[size_t(5 * b + j)] = is_key ? float(j + 1) : infinity;
    }
    for (int i = q_lengths[b]; i < 4; ++i)
      call.q[size_t(4 * b + i)] = not_a_number;
  }
  call.run();
  const float u = untouched;
  CHECK(call.o == std::vector<float>{2, 2, u, u, u, u, u, u, 0, 0, 0, 0});
  CHECK(call.lse[0] == Approx(std::log(3.0)));
  CHECK(std::count(call.lse.begin(), call.lse.end(), u) == 6);
  CHECK(std::count(call.lse.begin(), call.lse.end(), -infinity) == 4);
}

TEST_CASE("ragged sequences are between their starts", "[reference][sequences]") {
  calls::Problem problem = one_element_problem(calls::ragged);
  calls::Args args = {};
  // A row before the first sequence and one after the last; sequence 1 has no rows, sequence 3 no keys.
  const int32_t q_starts[] = {1, 3, 3, 5, 6}, kv_starts[] = {2, 4, 5, 8, 8};
  const float n = not_a_number, u = untouched;
  std::vector<float> q = {n, 0, 0, 0, 0, 0, n}, o(7, u), lse(7, u);
  std::vector<float> k = {n, n, 0, 0, 0, 0, 0, 0, n}, v = {n, n, 1, 2, 50, 3, 4, 5, n};
  args.batch = 4;
  args.q_len = 2;
  args.kv_len = 3;
  args.q = {q.data(), {0, 1, 1, 1}};
  args.k = {k.data(), {0, 1, 1, 1}};
  args.v = {v.data(), {0, 1, 1, 1}};
  args.o = {o.data(), {0, 1, 1, 1}};
  args.lse = {lse.data(), {0, 1, 1, 0}};
  args.q_starts = q_starts;
  args.kv_starts = kv_starts;
  sluice::reference::attention(problem, args);
  CHECK(o == std::vector<float>{u, 1.5, 1.5, 4, 4, 0, u});
  CHECK(lse[1] == Approx(std::log(2.0)));
  CHECK(lse[3] == Approx(std::log(3.0)));
  CHECK(lse[5] == -infinity);
  CHECK(lse[6] == u);
  SECTION("each with its own diagonal") {
    problem.flags |= calls::causal;
    sluice::reference::attention(problem, args);
    CHECK(o == std::vector<float>{u, 1, 1.5, 3.5, 4, 0, u});
  }
  SECTION("lengths cut them shorter") {
    const int32_t q_lengths[] = {1, 0, 2, 1}, kv_lengths[] = {1, 1, 2, 0};
    args.q_lengths = q_lengths;
    args.kv_lengths = kv_lengths;
    v[3] = v[7] = n;
    q[2] = n;
    o.assign(7, u);
    sluice::reference::attention(problem, args);
    CHECK(o == std::vector<float>{u, 1, u, 3.5, 3.5, 0, u});
  }
}

TEST_CASE("pages are found through either table, of either width", "[reference][sequences]") {
  PagedCall call;
  SECTION("a row of entries per sequence") {
    const int32_t table[] = {5, 2, nowhere, nowhere, nowhere, nowhere, 0, nowhere, nowhere};
    call.args.page_table = table;
    call.args.page_table_stride = 3;
    call.check();
  }
  SECTION("64-bit entries") {
    const int64_t far = int64_t{1} << 40;
    const int64_t table[] = {5, 2, far, far, 0, far};
    call.problem.flags |= calls::page_index_64;
    call.args.page_table = table;
    call.args.page_table_stride = 2;
    call.check();
  }
  SECTION("entries in a row, with starts") {
    const int32_t table[] = {nowhere, 5, 2, 0, nowhere}, starts[] = {1, 3, 3, 4};
    call.problem.page_table_kind = SLUICE_PAGE_TABLE_CSR;
    call.args.page_table = table;
    call.args.page_starts = starts;
    call.check();
  }
  SECTION("64-bit entries in a row, with starts") {
    const int64_t table[] = {5, 2, 0};
    const int32_t starts[] = {0, 2, 2, 3};
    call.problem.flags |= calls::page_index_64;
    call.problem.page_table_kind = SLUICE_PAGE_TABLE_CSR;
    call.args.page_table = table;
    call.args.page_starts = starts;
    call.check();
  }
  SECTION("sequences may share pages") {
    const int32_t table[] = {5, 2};
    call.args.page_table = table; // stride 0: one row for all
    call.lengths[2] = 2;
    sluice::reference::attention(call.problem, call.args);
    CHECK(call.o == std::vector<float>{20, 0, 15});
  }
}

TEST_CASE("keys of missing pages are hidden", "[reference][sequences]") {
  PagedCall call;
  call.problem.flags |= calls::missing_pages;
  call.args.page_table_stride = 3;
  SECTION("between others, and all of a sequence") {
    const int32_t table[] = {5, -7, 2, nowhere, nowhere, nowhere, -1, nowhere, nowhere};
    call.args.page_table = table;
    call.lengths[0] = 5; // two, two hidden, one
    sluice::reference::attention(call.problem, call.args);
    CHECK(call.o == std::vector<float>{20, 0, 0});
    CHECK(call.lse[0] == Approx(std::log(3.0)));
    CHECK(call.lse[2] == -infinity);
  }
  SECTION("for 64-bit entries, with a mask that counts them") {
    const int64_t table[] = {-1, 5, 2, 0, 0, 0, 0, 0, 0};
    call.problem.flags |= calls::page_index_64 | calls::window_left;
    call.problem.window_left = 3; // of key 4, so from key 1 on
    call.args.page_table = table;
    call.lengths[0] = 5;
    sluice::reference::attention(call.problem, call.args);
    CHECK(call.o == std::vector<float>{20, 0, 40});
  }
}

TEST_CASE("each KV head may have entries of its own", "[reference][sequences]") {
  // Two KV heads in pages of two rows: row r of page p has 10 p + r for the first, 100 more for the second.
  calls::Problem problem = one_element_problem(calls::paged);
  problem.q_heads = problem.kv_heads = 2;
  problem.page_size = 2;
  problem.flags |= calls::missing_pages;
  std::vector<float> q(4), k(16), v, o(4);
  for (int page = 0; page < 4; ++page)
    for (int row = 0; row < 2; ++row)
      for (int head = 0; head < 2; ++head)
        v.push_back(float(10 * page + row + 100 * head));
  const int32_t lengths[] = {4, 3};
  calls::Args args = {};
  args.batch = 2;
  args.q_len = 1;
  args.kv_len = 4;
  args.q = {q.data(), {2, 2, 1, 1}};
  args.k = {k.data(), {4, 2, 1, 1}};
  args.v = {v.data(), {4, 2, 1, 1}};
  args.o = {o.data(), {2, 2, 1, 1}};
  args.kv_lengths = lengths;
  problem.flags &= ~uint32_t(calls::write_lse);
  const std::vector<float> expected = {15.5, 130.5, 30.5, 107};
  SECTION("after those of the head before, in a sequence") {
    const int32_t table[] = {1, 2, 3, -1, 3, -1, 0, 2};
    problem.page_table_kind = SLUICE_PAGE_TABLE_BLOCK;
    args.page_table = table;
    args.page_table_stride = 4;
    args.page_table_head_stride = 2;
    sluice::reference::attention(problem, args);
    CHECK(o == expected);
  }
  SECTION("after those of all sequences, with starts") {
    const int32_t table[] = {nowhere, 1, 2, 3, -1, nowhere, nowhere, 3, -1, 0, 2}, starts[] = {1, 3, 5};
    problem.page_table_kind = SLUICE_PAGE_TABLE_CSR;
    args.page_table = table;
    args.page_starts = starts;
    args.page_table_head_stride = 6;
    sluice::reference::attention(problem, args);
    CHECK(o == expected);
  }
}

TEST_CASE("pages of one row take slots of a cache with larger pages", "[reference][sequences]") {
  PagedCall call; // value 10 is in row 0 of page 5, 20 in row 1, 30 in row 0 of page 2, 40 of page 0
  const int32_t slots[] = {4, -1, 11, 10, -1, -1, -1, -1, 0, -1, -1, -1};
  call.problem.flags |= calls::missing_pages;
  call.problem.page_size = 1;
  call.args.k.stride[0] = call.args.v.stride[0] = 1; // that between rows
  call.args.page_table = slots;
  call.args.page_table_stride = 4;
  call.lengths[0] = 4;
  call.check();
}

TEST_CASE("queries over pages may be packed", "[reference][sequences]") {
  PagedCall call;
  const int32_t table[] = {5, 2, nowhere, nowhere, 0, nowhere}, q_starts[] = {0, 2, 2, 3};
  call.args.page_table = table;
  call.args.page_table_stride = 2;
  call.args.q_starts = q_starts;
  call.args.q_len = 2;
  call.args.q.stride[0] = call.args.o.stride[0] = call.args.lse.stride[0] = 0;
  sluice::reference::attention(call.problem, call.args);
  CHECK(call.o == std::vector<float>{20, 20, 40});
  call.problem.flags |= calls::causal;
  sluice::reference::attention(call.problem, call.args);
  CHECK(call.o == std::vector<float>{15, 20, 40});
}

TEST_CASE("elements of packed keys are at their places in the packs", "[reference][sequences]") {
  // One page of two rows and two heads, rows of four elements in packs of two: [head][pack][row][2]. Element
  // e of the row of key j and head h is 100 h + 10 j + e.
  calls::Problem problem = one_element_problem(calls::paged);
  problem.q_heads = problem.kv_heads = 2;
  problem.head_dim_qk = 4;
  problem.head_dim_v = 4;
  problem.page_size = 2;
  problem.page_table_kind = SLUICE_PAGE_TABLE_BLOCK;
  problem.k_pack = 2;
  problem.flags |= calls::v_in_k;
  const std::vector<float> k = {0,   1,   10,  11,  2,   3,   12,  13, //
                                100, 101, 110, 111, 102, 103, 112, 113};
  const int32_t table = 0, length = 2;
  calls::Args args = {};
  args.batch = args.q_len = 1;
  args.kv_len = 2;
  args.scale = 1;
  std::vector<float> q(8, 0), o(8, untouched), lse(2, untouched);
  args.q = {q.data(), {8, 8, 4, 1}};
  args.k = {const_cast<float *>(k.data()), {16, 2, 8, 4}};
  args.o = {o.data(), {8, 8, 4, 1}};
  args.lse = {lse.data(), {2, 2, 1, 0}};
  args.page_table = &table;
  args.kv_lengths = &length;
  sluice::reference::attention(problem, args);
  CHECK(o == std::vector<float>{5, 6, 7, 8, 105, 106, 107, 108});
  // The product with element 3 of the query takes element 3 of the keys: scores 3 and 13, 103 and 113.
  q[3] = q[7] = 1;
  sluice::reference::attention(problem, args);
  CHECK(lse[0] == Approx(13 + std::log1p(std::exp(-10.0))));
  CHECK(lse[1] == Approx(113 + std::log1p(std::exp(-10.0))));
}

TEST_CASE("elements of V by columns are at their places in the packs", "[reference][sequences]") {
  // Element e of V of key j and head h is 100 h + 10 j + e. Three keys with equal weights.
  const auto value = [](int64_t key, int64_t head, int64_t e) { return float(100 * head + 10 * key + e); };
  const std::vector<float> mean = {10, 11, 12, 110, 111, 112};
  calls::Problem problem = one_element_problem(calls::dense);
  problem.q_heads = problem.kv_heads = 2;
  problem.head_dim_v = 3;
  std::vector<float> q(2, 0), k(64, 0), o(6, untouched), lse(2, untouched);
  calls::Args args = {};
  args.batch = args.q_len = 1;
  args.kv_len = 3;
  args.scale = 1;
  args.q = {q.data(), {2, 2, 1, 1}};
  args.k = {k.data(), {0, 1, 1, 1}};
  args.o = {o.data(), {6, 6, 3, 1}};
  args.lse = {lse.data(), {2, 2, 1, 0}};

  // [head][column][8].
  problem.v_pack = SLUICE_PACK_ALL;
  std::vector<float> v(2 * 3 * 8, -1);
  for (int head = 0; head < 2; ++head)
    for (int e = 0; e < 3; ++e)
      for (int key = 0; key < 3; ++key)
        v[size_t(head * 24 + e * 8 + key)] = value(key, head, e);
  args.v = {v.data(), {0, 1, 24, 8}};
  sluice::reference::attention(problem, args);
  CHECK(o == mean);

  // Two pages of four keys in packs of two, [page][pack][column][head][2]; the first page is number 1.
  problem.mode = calls::paged;
  problem.page_size = 2 * 2;
  problem.page_table_kind = SLUICE_PAGE_TABLE_BLOCK;
  problem.v_pack = 2;
  v.assign(2 * 24, -1);
  for (int head = 0; head < 2; ++head)
    for (int e = 0; e < 3; ++e)
      for (int key = 0; key < 3; ++key)
        v[size_t(24 + key / 2 * 12 + e * 4 + head * 2 + key % 2)] = value(key, head, e);
  args.v = {v.data(), {24, 12, 2, 4}};
  const int32_t table = 1, length = 3;
  args.page_table = &table;
  args.kv_lengths = &length;
  o.assign(6, untouched);
  sluice::reference::attention(problem, args);
  CHECK(o == mean);
}
