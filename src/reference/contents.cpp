//===- contents.cpp - what a caller can get wrong in lengths, starts and tables -------------------------===//
#include "reference/contents.h"

#include "calls/args.h"
#include "calls/cache_ops.h"
#include "calls/problem.h"
#include "features/all.h"
#include "reference/append.h"
#include "reference/page_copy.h"
#include "reference/tensors.h"
#include "support/checked.h"
#include "support/failure.h"

#include <cstdint>
#include <string>
#include <string_view>

namespace sluice::reference {
namespace {

using support::text;
using tensors::bad_element;

/// `tokens`: the number of rows; 0 if unknown.
void check_starts(std::string_view name, const int32_t *starts, int64_t batch,
                  std::string_view bound_name = {}, int64_t tokens = 0) {
  if (starts == nullptr) return;
  if (starts[0] < 0) bad_element(name, 0, starts[0], "it must not be negative");
  for (int64_t b = 1; b <= batch; ++b) {
    if (starts[b] < starts[b - 1]) {
      bad_element(name, b, starts[b],
                  text("starts must not decrease, and the previous one is ", starts[b - 1]));
    }
  }
  if (tokens != 0 && starts[batch] > tokens) {
    bad_element(name, batch, starts[batch], text("it must be at most ", bound_name, ", which is ", tokens));
  }
}

/// The names of a page table's arrays, and what it has pages of.
struct TableNames {
  std::string_view table = "page_table", starts = "page_starts", owner = "sequence";
};

void check_page(int64_t entry, int64_t page, int64_t page_count, const TableNames &names = {}) {
  if (page < 0) bad_element(names.table, entry, page, "a page number must not be negative");
  if (page_count != 0 && page >= page_count)
    bad_element(names.table, entry, page, text("it must be less than page_count, which is ", page_count));
}

struct Lengths {
  std::string_view name; // of the array of lengths
  const int32_t *lengths;
  std::string_view starts_name;
  const int32_t *starts;
  std::string_view bound_name;
  int32_t bound;
};

void check_lengths(const Lengths &of, int64_t batch) {
  for (int64_t b = 0; b < batch; ++b) {
    const int64_t rows = of.starts != nullptr ? int64_t{of.starts[b + 1]} - of.starts[b] : 0;
    if (of.lengths == nullptr) {
      if (of.starts != nullptr && rows > of.bound) {
        bad_element(
            of.starts_name, b + 1, of.starts[b + 1],
            text("the sequence before it has ", rows, " rows, and ", of.bound_name, " is ", of.bound));
      }
      continue;
    }
    const int64_t length = of.lengths[b];
    if (length < 0) bad_element(of.name, b, length, "it must not be negative");
    if (length > of.bound) {
      bad_element(of.name, b, length, text("it must be at most ", of.bound_name, ", which is ", of.bound));
    }
    if (of.starts != nullptr && length > rows) {
      bad_element(of.name, b, length,
                  text("between ", of.starts_name, "[", b, "] and the next there are ", rows, " rows"));
    }
  }
}

void check_pages(const calls::Problem &problem, const calls::Args &args, const TableNames &names = {}) {
  const bool may_miss = problem.flags & calls::missing_pages;
  for (int64_t b = 0; b < args.batch; ++b) {
    const Sequence sequence(problem, args, b);
    const int64_t pages = support::divide_up(sequence.kv_len(), int64_t{problem.page_size});
    if (args.page_starts != nullptr && int64_t{args.page_starts[b + 1]} - args.page_starts[b] < pages) {
      bad_element(
          names.starts, b + 1, args.page_starts[b + 1],
          text(names.owner, " ", b, " starts at ", args.page_starts[b], " and needs ", pages, " pages"));
    }
    for (int64_t head = 0; head < (args.page_table_head_stride != 0 ? problem.kv_heads : 1); ++head) {
      for (int64_t n = 0; n < pages; ++n) {
        const int64_t page = sequence.page(n, head);
        if (sequence.is_page_before_window(n) || (page < 0 && may_miss)) continue;
        check_page(sequence.page_entry(n, head), page, args.page_count, names);
      }
    }
  }
}

/// Kernels have V's scales per token or page in P. Beyond this one, keys would be lost from the denominator.
constexpr double most_value_scale = 0x1p40;

void check_value_scales(const calls::Problem &problem, const calls::Args &args) {
  const bool by_page = problem.v_scale_kind == SLUICE_SCALE_PER_PAGE;
  if (!by_page && problem.v_scale_kind != SLUICE_SCALE_PER_TOKEN) return;
  const bool paged = problem.mode == calls::paged;
  for (int64_t b = 0; b < args.batch; ++b) {
    const Sequence sequence(problem, args, b);
    for (int64_t head = 0; head < problem.kv_heads; ++head) {
      for (int64_t j = 0; j < sequence.kv_len(); j += by_page ? problem.page_size : 1) {
        if (paged && (sequence.is_page_before_window(j / problem.page_size) || sequence.is_missing(j, head)))
          continue;
        const double scale = sequence.v_scale(j, head);
        if (scale >= 0 && scale <= most_value_scale) continue;
        const Row row = sequence.kv_row(j, head);
        std::string field = text("v_scales[", row.outer, "][", row.inner, "][", head, "]");
        std::string message = text(field, " is ", scale, "; a scale of V must be from 0 to 2^40");
        throw support::Failure(support::Status::invalid_argument, std::move(field), std::move(message));
      }
    }
  }
}

void check_prefixes(const calls::Problem &problem, const calls::Args &args) {
  const int64_t count = args.prefix_count;
  check_starts("prefix_q_starts", args.prefix_q_starts, count, "the problem's max_q_tokens",
               problem.max_q_tokens);
  check_starts("prefix_q_starts", args.prefix_q_starts, count, "q_tokens", args.q_tokens);
  if (args.q_starts == nullptr)
    check_starts("prefix_q_starts", args.prefix_q_starts, count, "batch * q_len",
                 int64_t{args.batch} * args.q_len);
  check_starts("prefix_page_starts", args.prefix_page_starts, count);
  check_lengths({"prefix_lengths", args.prefix_lengths, {}, nullptr, "prefix_len", args.prefix_len}, count);
  if (problem.mode == calls::paged)
    check_pages(problem, prefixes_as_sequences(args), {"prefix_page_table", "prefix_page_starts", "group"});
  check_value_scales(problem, prefixes_as_sequences(args));
}

/// Checks the pages of some keys of sequence b, at least one.
template <typename Call> void check_pages(const Call &call, int64_t b, int64_t first_key, int64_t keys) {
  const int64_t first = first_key / call.page_size, last = (keys - 1) / call.page_size;
  const bool is_csr = call.page_table_kind == SLUICE_PAGE_TABLE_CSR;
  if (is_csr && int64_t{call.page_starts[b + 1]} - call.page_starts[b] <= last) {
    bad_element("page_starts", b + 1, call.page_starts[b + 1],
                text("sequence ", b, " starts at ", call.page_starts[b], " and needs ", last + 1, " pages"));
  }
  if (!is_csr && call.batch > 1 && call.page_table_stride != 0 && last >= call.page_table_stride) {
    bad_element("kv_lengths", b, keys,
                text("that is ", last + 1, " pages of ", call.page_size, ", and a row of the page table has ",
                     call.page_table_stride, " entries (page_table_stride)"));
  }
  const PageTable table = table_of(call);
  for (int64_t n = first; n <= last; ++n)
    check_page(table.place(b, n), table.page(table.place(b, n)), call.page_count);
}

/// Checks the new rows of sequence b, at least one, and the pages to which they go.
void check_new_rows(const calls::Append &call, int64_t b) {
  const int64_t rows = int64_t{call.starts[b + 1]} - call.starts[b], keys = call.kv_lengths[b];
  if (keys < rows) {
    bad_element("kv_lengths", b, keys, text("it counts the new keys too, and sequence ", b, " has ", rows));
  }
  check_pages(call, b, keys - rows, keys);
}

} // namespace

void check_contents(const calls::Problem &problem, const calls::Args &args) {
  check_starts("q_starts", args.q_starts, args.batch, "the problem's max_q_tokens", problem.max_q_tokens);
  check_starts("q_starts", args.q_starts, args.batch, "q_tokens", args.q_tokens);
  check_starts("kv_starts", args.kv_starts, args.batch, "kv_tokens", args.kv_tokens);
  check_starts("page_starts", args.page_starts, args.batch);
  check_lengths({"q_lengths", args.q_lengths, "q_starts", args.q_starts, "q_len", args.q_len}, args.batch);
  check_lengths({"kv_lengths", args.kv_lengths, "kv_starts", args.kv_starts, "kv_len", args.kv_len},
                args.batch);
  features::for_each<&features::Feature::check_contents>([&](auto check) { check(args); });
  if (problem.mode == calls::paged) check_pages(problem, args);
  check_value_scales(problem, args);
  if (problem.flags & calls::prefixes) check_prefixes(problem, args);
}

void check_contents(const calls::Append &call) {
  check_starts("starts", call.starts, call.batch, "tokens", call.tokens);
  check_starts("page_starts", call.page_starts, call.batch);
  if (call.slots != nullptr) {
    for (int64_t t = 0; t < call.tokens; ++t) {
      const int64_t page = call.slots[t] / call.page_size;
      if (call.slots[t] < 0 || call.page_count == 0 || page < call.page_count) continue;
      bad_element(
          "slots", t, call.slots[t],
          text("that is page ", page, "; it must be less than page_count, which is ", call.page_count));
    }
  } else {
    for (int64_t b = 0; b < call.batch; ++b) {
      if (call.starts[b] != call.starts[b + 1]) check_new_rows(call, b);
    }
  }
  for (int64_t t = 0; call.positions != nullptr && t < call.tokens; ++t) {
    if (call.positions[t] < 0) bad_element("positions", t, call.positions[t], "it must not be negative");
  }
}

void check_contents(const calls::PageCopy &call) {
  if (call.pairs == nullptr || call.page_count == 0) return;
  const PageTable pairs = pairs_of(call);
  for (int64_t i = 0; i < 2 * call.pair_count; ++i) {
    if (pairs.page(i) >= call.page_count)
      bad_element("pairs", i, pairs.page(i),
                  text("it must be less than page_count, which is ", call.page_count));
  }
}

void check_contents(const calls::Gather &call) {
  check_starts("out_starts", call.out_starts, call.batch, "tokens", call.tokens);
  check_starts("page_starts", call.page_starts, call.batch);
  for (int64_t b = 0; b < call.batch; ++b) {
    const int64_t first = call.first_keys != nullptr ? call.first_keys[b] : 0, keys = call.kv_lengths[b],
                  rows = int64_t{call.out_starts[b + 1]} - call.out_starts[b];
    if (keys < 0) bad_element("kv_lengths", b, keys, "it must not be negative");
    if (first < 0) bad_element("first_keys", b, first, "it must not be negative");
    if (keys - first > rows) {
      bad_element("kv_lengths", b, keys,
                  text("between out_starts[", b, "] and the next there are ", rows,
                       " rows for the keys from ", first, " on"));
    }
    if (first < keys) check_pages(call, b, first, keys);
  }
}

} // namespace sluice::reference
