//===- sequence_checks.cpp - the arrays of a call that locate sequences, prefixes and pages -------------===//
#include "abi/args_checks.h"
#include "calls/args.h"
#include "calls/problem.h"

#include "support/checked.h"
#include "support/failure.h"

#include <string>
#include <string_view>

namespace sluice::abi {
namespace {

using support::divide_up;
using support::text;

// Kernels compare the two 32-bit halves of a page number separately.
constexpr int64_t max_pages = int64_t{1} << 32;

/// A pointer to int32_t that a rule requires.
void check_required(std::string_view field, const void *pointer, std::string_view rule) {
  if (pointer == nullptr) invalid(field, text(field, " is NULL, but ", rule));
  check_pointer(field, pointer, sizeof(int32_t));
}

void check_count(std::string_view field, int64_t value, bool has_meaning, std::string_view why_not) {
  check_not_negative(field, value);
  if (value != 0 && !has_meaning) invalid(field, text(field, " is ", value, "; it must be 0: ", why_not));
}

/// The stride of a page table, and the extents that decide how much of it is read.
struct TableStride {
  std::string_view field;
  int64_t stride;
  int32_t count; // of sequences, prefixes or heads
  std::string_view keys_field;
  int32_t keys;
  std::string_view shared; // the value for one table that all share
};

void check_table_stride(const calls::Problem &problem, const TableStride &table) {
  const bool block = problem.page_table_kind == SLUICE_PAGE_TABLE_BLOCK;
  if (!block && table.stride != 0) {
    invalid(table.field,
            text(table.field, " is ", table.stride, "; it must be 0 without SLUICE_PAGE_TABLE_BLOCK"));
  }
  if (!block || table.count <= 1) return;
  if (table.stride < 0)
    bad_value(table.field, table.stride, text("it must not be negative, except as ", table.shared));
  // With a stride of 0 all sequences share one table.
  const int64_t pages = divide_up(int64_t{table.keys}, int64_t{problem.page_size});
  if (table.stride > 0 && pages > table.stride) {
    invalid(table.field, text(table.field, " is ", table.stride, "; it must be at least ", pages,
                              ", the pages of ", problem.page_size, " keys for a ", table.keys_field, " of ",
                              table.keys, ", or ", table.shared, " for one table that all share"));
  }
}

/// Calls without keys need no table.
void check_table(const calls::Problem &problem, std::string_view field, const void *table, int32_t keys) {
  if (table != nullptr || keys != 0)
    check_pointer(field, table, problem.flags & calls::page_index_64 ? sizeof(int64_t) : sizeof(int32_t));
}

/// Heads may have entries of their own in a sequence's table; those of CSR are where page_starts says, and
/// only the device knows how many.
void check_head_stride(const calls::Problem &problem, const calls::Args &args) {
  constexpr std::string_view field = "page_table_head_stride";
  if (problem.mode == calls::paged && problem.kv_heads == 1) return;
  check_count(field, args.page_table_head_stride, problem.mode == calls::paged,
              "the problem's page_size is 0");
  if (problem.page_table_kind == SLUICE_PAGE_TABLE_BLOCK)
    check_table_stride(problem,
                       {field, args.page_table_head_stride, problem.kv_heads, "kv_len", args.kv_len, "0"});
}

/// The arrays that locate the keys of sequences or of prefixes, with their names.
struct KeyArrays {
  std::string_view lengths_field;
  const int32_t *lengths;
  std::string_view table_field;
  const void *table;
  std::string_view starts_field;
  const int32_t *starts;
  TableStride stride;
};

void check_key_arrays(const calls::Problem &problem, const KeyArrays &arrays) {
  const bool paged = problem.mode == calls::paged;
  if (arrays.lengths != nullptr) check_pointer(arrays.lengths_field, arrays.lengths, sizeof(int32_t));
  if (!paged) {
    constexpr std::string_view why = "the problem's page_size is 0";
    check_absent(arrays.table_field, arrays.table, why);
    check_absent(arrays.starts_field, arrays.starts, why);
  } else {
    check_table(problem, arrays.table_field, arrays.table, arrays.stride.keys);
    if (problem.page_table_kind == SLUICE_PAGE_TABLE_CSR) {
      if (arrays.starts != nullptr || arrays.stride.keys != 0)
        check_required(arrays.starts_field, arrays.starts,
                       "the problem's page_table_kind is SLUICE_PAGE_TABLE_CSR");
    } else {
      check_absent(arrays.starts_field, arrays.starts,
                   "the problem's page_table_kind is SLUICE_PAGE_TABLE_BLOCK");
    }
  }
  check_table_stride(problem, arrays.stride);
}

} // namespace

void check_sequences(const calls::Problem &problem, const calls::Args &args) {
  const auto required = [](std::string_view field, const void *pointer) {
    check_required(field, pointer, "the problem's flags have SLUICE_ATTENTION_RAGGED");
  };
  const auto optional = [&](std::string_view field, const void *pointer) {
    if (pointer != nullptr) required(field, pointer);
  };
  if (problem.mode == calls::ragged) {
    required("q_starts", args.q_starts);
    if (args.kv_len != 0) required("kv_starts", args.kv_starts);
    optional("kv_starts", args.kv_starts);
  } else {
    if (problem.mode == calls::paged) {
      optional("q_starts", args.q_starts);
    } else {
      check_absent("q_starts", args.q_starts, "the problem's flags lack SLUICE_ATTENTION_RAGGED");
    }
    check_absent("kv_starts", args.kv_starts, "the problem's flags lack SLUICE_ATTENTION_RAGGED");
  }
  optional("q_lengths", args.q_lengths);
  check_key_arrays(problem, {"kv_lengths",
                             args.kv_lengths,
                             "page_table",
                             args.page_table,
                             "page_starts",
                             args.page_starts,
                             {"page_table_stride", args.page_table_stride, args.batch, "kv_len", args.kv_len,
                              "SLUICE_SHARED (-1)"}});
  check_head_stride(problem, args);
}

void check_counts(const calls::Problem &problem, const TensorRules &rules, const calls::Args &args) {
  check_count("page_count", args.page_count, problem.mode == calls::paged, "the problem's page_size is 0");
  if (rules.on_device() && args.page_count > max_pages) {
    unsupported("page_count", text("page_count is ", args.page_count, "; nearest supported: ", max_pages));
  }
  check_count("q_tokens", args.q_tokens, args.q_starts != nullptr, "q_starts is NULL");
  check_count("kv_tokens", args.kv_tokens, args.kv_starts != nullptr, "kv_starts is NULL");
}

void check_prefixes(const calls::Problem &problem, const calls::Args &args) {
  check_pointer("prefix_q_starts", args.prefix_q_starts, sizeof(int32_t));
  if (args.prefix_count == 0) return; // nothing else is used
  check_key_arrays(problem, {"prefix_lengths",
                             args.prefix_lengths,
                             "prefix_page_table",
                             args.prefix_page_table,
                             "prefix_page_starts",
                             args.prefix_page_starts,
                             {"prefix_page_table_stride", args.prefix_page_table_stride, args.prefix_count,
                              "prefix_len", args.prefix_len, "SLUICE_SHARED (-1)"}});
  // Rows of one token each follow one another by stride[0].
  if (args.q_starts == nullptr && args.batch > 1 && args.q_len > 1 &&
      support::checked_multiply(args.q.stride[1], int64_t{args.q_len}) != args.q.stride[0]) {
    invalid(
        "q.stride[0]",
        text(
            "q.stride[0] is ", args.q.stride[0],
            "; with SLUICE_ATTENTION_PREFIXES and without q_starts it must be q_len * q.stride[1], which is ",
            args.q_len, " * ", args.q.stride[1]));
  }
}

void check_no_prefixes(const calls::Args &args) {
  constexpr std::string_view why = "the problem's flags lack SLUICE_ATTENTION_PREFIXES";
  const auto zero = [&](std::string_view field, int64_t value) {
    if (value != 0) invalid(field, text(field, " is ", value, "; it must be 0: ", why));
  };
  zero("prefix_count", args.prefix_count);
  zero("prefix_len", args.prefix_len);
  check_absent("prefix_q_starts", args.prefix_q_starts, why);
  check_absent("prefix_lengths", args.prefix_lengths, why);
  check_absent("prefix_page_table", args.prefix_page_table, why);
  zero("prefix_page_table_stride", args.prefix_page_table_stride);
  check_absent("prefix_page_starts", args.prefix_page_starts, why);
  check_absent("prefix_k", args.prefix_k, why);
  check_absent("prefix_v", args.prefix_v, why);
}

} // namespace sluice::abi
