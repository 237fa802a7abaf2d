//===- contents.cpp - what a caller can get wrong in lengths, starts and tables -------------------------===//
#include "reference/contents.h"

#include "reference/tensors.h"
#include "support/checked.h"
#include "support/failure.h"

#include <cstdint>
#include <string>
#include <string_view>

namespace sluice::reference {
namespace {

using support::text;

[[noreturn]] void invalid(std::string_view array, int64_t index, int64_t value, const std::string &rule) {
  std::string field = text(array, "[", index, "]");
  std::string message = text(field, " is ", value, "; ", rule);
  throw support::Failure(support::Status::invalid_argument, std::move(field), std::move(message));
}

void check_starts(std::string_view name, const int32_t *starts, int64_t batch) {
  if (starts == nullptr) return;
  if (starts[0] < 0) invalid(name, 0, starts[0], "it must not be negative");
  for (int64_t b = 1; b <= batch; ++b) {
    if (starts[b] < starts[b - 1]) {
      invalid(name, b, starts[b], text("starts must not fall, and the one before is ", starts[b - 1]));
    }
  }
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
      if (rows > of.bound) {
        invalid(of.starts_name, b + 1, of.starts[b + 1],
                text("the sequence before it has ", rows, " rows, and ", of.bound_name, " is ", of.bound));
      }
      continue;
    }
    const int64_t length = of.lengths[b];
    if (length < 0) invalid(of.name, b, length, "it must not be negative");
    if (length > of.bound) {
      invalid(of.name, b, length, text("it must be at most ", of.bound_name, ", which is ", of.bound));
    }
    if (of.starts != nullptr && length > rows) {
      invalid(of.name, b, length,
              text("between ", of.starts_name, "[", b, "] and the next there are ", rows, " rows"));
    }
  }
}

void check_pages(const sluice_problem &problem, const sluice_args &args) {
  for (int64_t b = 0; b < args.batch; ++b) {
    const Sequence sequence(problem, args, b);
    const int64_t pages = support::divide_up(sequence.kv_len(), int64_t{problem.page_size});
    if (args.page_starts != nullptr && int64_t{args.page_starts[b + 1]} - args.page_starts[b] < pages) {
      invalid("page_starts", b + 1, args.page_starts[b + 1],
              text("sequence ", b, " starts at ", args.page_starts[b], " and needs ", pages, " pages"));
    }
    for (int64_t n = 0; n < pages; ++n) {
      if (sequence.is_page_before_window(n) || sequence.page(n) >= 0) continue;
      invalid("page_table", sequence.page_entry(n), sequence.page(n), "a page number must not be negative");
    }
  }
}

} // namespace

void check_contents(const sluice_problem &problem, const sluice_args &args) {
  check_starts("q_starts", args.q_starts, args.batch);
  check_starts("kv_starts", args.kv_starts, args.batch);
  check_starts("page_starts", args.page_starts, args.batch);
  check_lengths({"q_lengths", args.q_lengths, "q_starts", args.q_starts, "q_len", args.q_len}, args.batch);
  check_lengths({"kv_lengths", args.kv_lengths, "kv_starts", args.kv_starts, "kv_len", args.kv_len},
                args.batch);
  if (args.q_starts != nullptr && problem.max_q_tokens != 0 &&
      args.q_starts[args.batch] > problem.max_q_tokens) {
    invalid("q_starts", args.batch, args.q_starts[args.batch],
            text("it must be at most the problem's max_q_tokens, which is ", problem.max_q_tokens));
  }
  if (problem.mode == SLUICE_MODE_PAGED) check_pages(problem, args);
}

} // namespace sluice::reference
