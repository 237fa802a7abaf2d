//===- spans.h - keys that see each other in both directions --------------------------------------------===//
#pragma once

#include "calls/args.h"
#include "calls/problem.h"
#include "features/feature.h"

namespace sluice::features {

inline constexpr int64_t most_spans = 1 << 20;

inline constexpr Need spans_needs[] = {SLUICE_FLAG_NEED(names::spans, calls::spans)};
inline constexpr Question spans_questions[] = {
    {"spans visible in both directions", "`SLUICE_MASK_SPANS`", names::spans,
     [](calls::Problem &p) { p.flags |= calls::causal | calls::spans; }, "*_spans*"}};

inline void check_spans(const calls::Problem &problem, const tensors::TensorRules &,
                        const calls::Args &args) {
  const bool has_spans = problem.flags & calls::spans;
  if (!has_spans || args.span_count != 0)
    tensors::check_given("spans", args.spans, has_spans, "the problem's flags lack SLUICE_MASK_SPANS");
  if (has_spans && (args.span_count < 0 || args.span_count > most_spans))
    tensors::invalid("span_count",
                     support::text("span_count is ", args.span_count,
                                   "; with SLUICE_MASK_SPANS it must be from 0 to ", most_spans));
  if (!has_spans && args.span_count != 0)
    tensors::invalid("span_count", support::text("span_count is ", args.span_count,
                                                 ", but the problem's flags lack SLUICE_MASK_SPANS"));
}

/// Spans are in order; empty ones may be anywhere.
inline void check_order_of_spans(const calls::Args &args) {
  for (int64_t b = 0; b < args.batch; ++b) {
    int32_t end = 0; // of the spans so far
    for (int64_t n = 0; n < args.span_count; ++n) {
      const int64_t at = 2 * (b * args.span_count + n);
      if (args.spans[at] >= args.spans[at + 1]) continue;
      if (args.spans[at] < end) {
        tensors::bad_element("spans", at, args.spans[at],
                             support::text("the spans of a sequence must be in ascending order and not "
                                           "overlap: it must be at least ",
                                           end));
      }
      end = args.spans[at + 1];
    }
  }
}

inline void fill_spans(package::AttentionKernargs &out, const calls::Problem &, const calls::Args &call) {
  out.spans = call.span_count != 0 ? address_of(call.spans) : 0;
  out.span_stride = 2 * call.span_count;
}

/// The span of a sequence that has a key; the empty one at the key if none has.
struct Span {
  int64_t first, end;
};
inline Span span_of(const calls::Args &args, int64_t sequence, int64_t key) {
  for (int64_t n = 0; n < args.span_count; ++n) {
    const int32_t *const span = args.spans + 2 * (sequence * args.span_count + n);
    if (span[0] <= key && key < span[1]) return {span[0], span[1]};
  }
  return {key, key};
}

inline bool span_reveals(const calls::Problem &, const calls::Args &args, const Place &at) {
  const Span span = span_of(args, at.sequence, at.diagonal);
  return span.first <= at.key && at.key < span.end;
}

inline constexpr Feature spans = {
    .flags = calls::spans,
    .needs = spans_needs,
    .questions = spans_questions,
    .check_sequences = check_spans,
    .check_contents = check_order_of_spans,
    .fill_call = fill_spans,
    .reveals = span_reveals,
};

} // namespace sluice::features
