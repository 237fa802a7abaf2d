//===- mask_bits.h - a bit for each row and key says whether the row sees it ----------------------------===//
#pragma once

#include "calls/args.h"
#include "calls/problem.h"
#include "features/feature.h"
#include "support/checked.h"
#include "tensors/elements.h"

namespace sluice::features {

inline constexpr Need mask_needs[] = {SLUICE_FLAG_NEED(names::mask, calls::mask_bits)};
inline constexpr Need mask_new_rows_needs[] = {
    SLUICE_FLAG_NEED(names::mask_new_rows, calls::mask_bits_of_new)};
inline constexpr Question mask_questions[] = {{"mask of bits", "`SLUICE_MASK_BITS`", names::mask,
                                               [](calls::Problem &p) { p.flags |= calls::mask_bits; },
                                               "*_bits*"}};
inline constexpr Question mask_new_rows_questions[] = {
    {"mask of the new rows only", "`SLUICE_MASK_BITS_OF_NEW`", names::mask_new_rows,
     [](calls::Problem &p) { p.flags |= calls::mask_bits | calls::mask_bits_of_new; }, "*_newbits*"}};

inline void check_mask_bits(const calls::Problem &problem, const tensors::TensorRules &rules,
                            const calls::Args &args) {
  if (!(problem.flags & calls::mask_bits))
    return tensors::check_absent("mask", args.mask, "the problem's flags lack SLUICE_MASK_BITS");
  const int32_t keys = problem.flags & calls::mask_bits_of_new ? args.q_len : args.kv_len;
  if (keys == 0) return;
  const tensors::Shape shape = {
      "mask", args.mask, {args.batch, problem.q_heads, args.q_len, support::divide_up(keys, 8)}, 1};
  check_given(shape);
  if (shape.extent[3] > 1 && args.mask.stride[3] != 1)
    bad_stride(shape, 3, "it must be 1: the bits of a row are contiguous");
  check_reach(shape, rules.address_end());
}

inline void check_mask_of_new_rows(const calls::Problem &problem) {
  if (problem.flags & calls::mask_bits_of_new && !(problem.flags & calls::mask_bits))
    tensors::invalid("flags", "flags has SLUICE_MASK_BITS_OF_NEW, but lacks SLUICE_MASK_BITS");
}

inline void fill_mask(package::AttentionKernargs &out, const calls::Problem &problem,
                      const calls::Args &call) {
  // Without keys, rows of a mask have no bits.
  out.mask = call.kv_len != 0 ? address_of(call.mask.data) : 0;
  out.mask_batch_stride = used_stride(call.batch, call.mask.stride[0]);
  out.mask_head_stride = used_stride(problem.q_heads, call.mask.stride[1]);
  out.mask_row_stride = used_stride(call.q_len, call.mask.stride[2]);
}

inline bool mask_hides(const calls::Problem &problem, const calls::Args &args, const Place &at) {
  if (!(problem.flags & calls::mask_bits)) return false;
  const int64_t first_masked = problem.flags & calls::mask_bits_of_new ? at.keys - at.rows : 0;
  const int64_t bit = at.key - first_masked;
  if (bit < 0) return false;
  const int64_t byte = tensors::index_of(args.mask, at.sequence, at.q_head, at.row, bit / 8);
  return (static_cast<const uint8_t *>(args.mask.data)[byte] >> (bit % 8) & 1) == 0;
}

inline constexpr Feature mask_bits = {
    .flags = calls::mask_bits,
    .needs = mask_needs,
    .questions = mask_questions,
    .check_with_prefix = [](const calls::Problem &problem) { refuse_with_prefix(problem, calls::mask_bits); },
    .check_call = check_mask_bits,
    .changes_scores = [](const calls::Problem &problem) { return (problem.flags & calls::mask_bits) != 0; },
    .fill_call = fill_mask,
    .hides = mask_hides,
};

/// The bits are only those of the newest keys, as many as there are rows.
inline constexpr Feature mask_new_rows = {
    .flags = calls::mask_bits_of_new,
    .needs = mask_new_rows_needs,
    .questions = mask_new_rows_questions,
    .check_problem = check_mask_of_new_rows,
    .check_with_prefix =
        [](const calls::Problem &problem) { refuse_with_prefix(problem, calls::mask_bits_of_new); },
    .fill_problem =
        [](package::AttentionKernargs &out, const calls::Problem &problem) {
          if (problem.flags & calls::mask_bits_of_new) out.score_flags |= package::score_mask_new_rows;
        },
};

} // namespace sluice::features
