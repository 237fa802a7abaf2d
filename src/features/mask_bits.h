//===- mask_bits.h - a bit for each row and key says whether the row sees it ----------------------------===//
#pragma once

#include "features/feature.h"
#include "support/checked.h"
#include "tensors/elements.h"

namespace sluice::features {

inline constexpr Need mask_needs[] = {SLUICE_FLAG_NEED(names::mask, SLUICE_BOOL_MASK)};
inline constexpr Need mask_new_rows_needs[] = {SLUICE_FLAG_NEED(names::mask_new_rows, SLUICE_MASK_NEW_ROWS)};
inline constexpr Question mask_questions[] = {{"mask of bits", "`SLUICE_BOOL_MASK`", names::mask,
                                               [](sluice_problem &p) { p.flags |= SLUICE_BOOL_MASK; },
                                               "*_bits*"}};
inline constexpr Question mask_new_rows_questions[] = {
    {"mask of the new rows only", "`SLUICE_MASK_NEW_ROWS`", names::mask_new_rows,
     [](sluice_problem &p) { p.flags |= SLUICE_BOOL_MASK | SLUICE_MASK_NEW_ROWS; }, "*_newbits*"}};

inline void check_mask_bits(const sluice_problem &problem, const tensors::TensorRules &rules,
                            const sluice_args &args) {
  if (!(problem.flags & SLUICE_BOOL_MASK))
    return tensors::check_absent("mask", args.mask, "the problem's flags lack SLUICE_BOOL_MASK");
  const int32_t keys = problem.flags & SLUICE_MASK_NEW_ROWS ? args.q_len : args.kv_len;
  if (keys == 0) return;
  const tensors::Shape shape = {
      "mask", args.mask, {args.batch, problem.q_heads, args.q_len, support::divide_up(keys, 8)}, 1};
  check_pointer(shape, 1);
  if (shape.extent[3] > 1 && args.mask.stride[3] != 1)
    bad_stride(shape, 3, "it must be 1: the bits of a row are contiguous");
  check_reach(shape, rules.address_end());
}

inline void check_mask_of_new_rows(const sluice_problem &problem) {
  if (problem.flags & SLUICE_MASK_NEW_ROWS && !(problem.flags & SLUICE_BOOL_MASK))
    tensors::invalid("flags", "flags has SLUICE_MASK_NEW_ROWS, but lacks SLUICE_BOOL_MASK");
}

inline void fill_mask(package::AttentionKernargs &out, const sluice_problem &problem,
                      const sluice_args &call) {
  // Without keys, rows of a mask have no bits.
  out.mask = call.kv_len != 0 ? address_of(call.mask.data) : 0;
  out.mask_batch_stride = used_stride(call.batch, call.mask.stride[0]);
  out.mask_head_stride = used_stride(problem.q_heads, call.mask.stride[1]);
  out.mask_row_stride = used_stride(call.q_len, call.mask.stride[2]);
}

inline bool mask_hides(const sluice_problem &problem, const sluice_args &args, const Place &at) {
  if (!(problem.flags & SLUICE_BOOL_MASK)) return false;
  const int64_t first_masked = problem.flags & SLUICE_MASK_NEW_ROWS ? at.keys - at.rows : 0;
  const int64_t bit = at.key - first_masked;
  if (bit < 0) return false;
  const int64_t byte = tensors::index_of(args.mask, at.sequence, at.q_head, at.row, bit / 8);
  return (static_cast<const uint8_t *>(args.mask.data)[byte] >> (bit % 8) & 1) == 0;
}

inline constexpr Feature mask_bits = {
    .flags = SLUICE_BOOL_MASK,
    .needs = mask_needs,
    .questions = mask_questions,
    .check_with_prefix =
        [](const sluice_problem &problem) {
          refuse_with_prefix(problem, SLUICE_BOOL_MASK, "SLUICE_BOOL_MASK", "without SLUICE_BOOL_MASK");
        },
    .check_call = check_mask_bits,
    .changes_scores = [](const sluice_problem &problem) { return (problem.flags & SLUICE_BOOL_MASK) != 0; },
    .fill_call = fill_mask,
    .hides = mask_hides,
};

/// The bits are only those of the newest keys, as many as there are rows.
inline constexpr Feature mask_new_rows = {
    .flags = SLUICE_MASK_NEW_ROWS,
    .needs = mask_new_rows_needs,
    .questions = mask_new_rows_questions,
    .check_problem = check_mask_of_new_rows,
    .check_with_prefix =
        [](const sluice_problem &problem) {
          refuse_with_prefix(problem, SLUICE_MASK_NEW_ROWS, "SLUICE_MASK_NEW_ROWS",
                             "without SLUICE_MASK_NEW_ROWS");
        },
    .fill_problem =
        [](package::AttentionKernargs &out, const sluice_problem &problem) {
          if (problem.flags & SLUICE_MASK_NEW_ROWS) out.score_flags |= package::score_mask_new_rows;
        },
};

} // namespace sluice::features
