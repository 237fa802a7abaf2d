//===- bias.h - a matrix that is added to the scores, and a factor for each head ------------------------===//
#pragma once

#include "calls/args.h"
#include "calls/problem.h"
#include "features/feature.h"
#include "package/dtypes.h"
#include "tensors/elements.h"

#include <limits>
#include <numbers>

namespace sluice::features {

inline constexpr Need bias_needs[] = {
    SLUICE_FIELD_NEED(names::bias, bias_type, p.bias_type != 0, "0 (no bias)")};
inline constexpr Need bias_scale_needs[] = {SLUICE_FLAG_NEED(names::bias_scale, calls::bias_scale)};
inline constexpr Question bias_questions[] = {
    {"bias of F32", "`bias_type`", names::bias, [](calls::Problem &p) { p.bias_type = SLUICE_F32; },
     "*_biasf32*"},
    {"bias of F16", "`bias_type`", names::bias, [](calls::Problem &p) { p.bias_type = SLUICE_F16; },
     "*_biasf16*"},
    {"bias of BF16", "`bias_type`", names::bias, [](calls::Problem &p) { p.bias_type = SLUICE_BF16; },
     "*_biasbf16*"}};
inline constexpr Question bias_scale_questions[] = {{"scales of a bias", "`SLUICE_SCORES_BIAS_SCALE`",
                                                     names::bias_scale,
                                                     [](calls::Problem &p) {
                                                       p.bias_type = SLUICE_F16;
                                                       p.flags |= calls::bias_scale;
                                                     },
                                                     "*_scaled*"}};

inline void check_bias_type(const calls::Problem &problem) {
  tensors::check_known_dtype("bias_type", problem.bias_type);
  if (problem.bias_type <= SLUICE_F32) return;
  tensors::invalid("bias_type", support::text("bias_type is ", package::dtype_text(problem.bias_type),
                                              "; it must be f32, f16 or bf16, or 0 for no bias"));
}

inline void check_scaled_bias(const calls::Problem &problem) {
  if (problem.flags & calls::bias_scale && problem.bias_type == 0)
    tensors::invalid("flags", "flags has SLUICE_SCORES_BIAS_SCALE, but bias_type is 0");
}

inline void check_bias_with_prefix(const calls::Problem &problem) {
  if (problem.bias_type == 0) return;
  tensors::unsupported(
      "bias_type",
      support::text("bias_type is ", package::dtype_text(problem.bias_type),
                    ", and flags has SLUICE_ATTENTION_PREFIXES; nearest supported: 0 (no bias)"));
}

inline void check_bias(const calls::Problem &problem, const tensors::TensorRules &rules,
                       const calls::Args &args) {
  if (problem.bias_type == 0) return tensors::check_absent("bias", args.bias, "the problem's bias_type is 0");
  if (args.kv_len == 0) return;
  const tensors::Shape shape = {"bias",
                                args.bias,
                                {args.batch, problem.q_heads, args.q_len, args.kv_len},
                                package::dtype_bytes(problem.bias_type)};
  check_given(shape);
  if (args.kv_len > 1 && args.bias.stride[3] != 0 && args.bias.stride[3] != 1)
    bad_stride(shape, 3, "it must be 0 or 1");
  check_reach(shape, rules.address_end());
}

inline void fill_bias_type(package::AttentionKernargs &out, const calls::Problem &problem) {
  if (problem.bias_type == SLUICE_F16) out.score_flags |= package::score_bias_f16;
  if (problem.bias_type == SLUICE_BF16) out.score_flags |= package::score_bias_bf16;
}

inline void fill_bias(package::AttentionKernargs &out, const calls::Problem &problem,
                      const calls::Args &call) {
  // Without keys, rows of a bias have no elements.
  out.bias = call.kv_len != 0 ? address_of(call.bias.data) : 0;
  out.bias_batch_stride = used_stride(call.batch, call.bias.stride[0]);
  out.bias_head_stride = used_stride(problem.q_heads, call.bias.stride[1]);
  out.bias_row_stride = used_stride(call.q_len, call.bias.stride[2]);
  out.bias_key_stride = used_stride(call.kv_len, call.bias.stride[3]);
}

inline double bias_at(const calls::Problem &problem, const calls::Args &args, const Place &at) {
  return tensors::load(args.bias.data, problem.bias_type,
                       tensors::index_of(args.bias, at.sequence, at.q_head, at.row, at.key));
}

inline double biased_score(const calls::Problem &problem, const calls::Args &args, const Place &at,
                           double score) {
  if (problem.bias_type == 0) return score;
  const bool has_factors = problem.flags & calls::bias_scale;
  const double factor =
      has_factors ? args.bias_scale[at.sequence * args.bias_scale_batch_stride + at.q_head] : 1;
  return score + factor * bias_at(problem, args, at);
}

/// As kernels compute it, with scores to base 2: a finite bias also hides a key if it is beyond F32's range
/// then.
inline bool bias_hides(const calls::Problem &problem, const calls::Args &args, const Place &at) {
  if (problem.bias_type == 0) return false;
  const float to_base_2 = float(bias_at(problem, args, at)) * std::numbers::log2e_v<float>;
  return to_base_2 == -std::numeric_limits<float>::infinity();
}

inline constexpr Feature bias = {
    .needs = bias_needs,
    .questions = bias_questions,
    .check_problem = check_bias_type,
    .check_with_prefix = check_bias_with_prefix,
    .check_call = check_bias,
    .changes_scores = [](const calls::Problem &problem) { return problem.bias_type != 0; },
    .fill_problem = fill_bias_type,
    .fill_call = fill_bias,
    .changed_score = biased_score,
    .hides = bias_hides,
};

/// Its factors, which `bias` applies.
inline constexpr Feature bias_scale = {
    .flags = calls::bias_scale,
    .needs = bias_scale_needs,
    .questions = bias_scale_questions,
    .check_problem = check_scaled_bias,
    .check_with_prefix =
        [](const calls::Problem &problem) { refuse_with_prefix(problem, calls::bias_scale); },
    .check_call =
        [](const calls::Problem &problem, const tensors::TensorRules &, const calls::Args &args) {
          tensors::check_given("bias_scale", args.bias_scale, problem.flags & calls::bias_scale,
                               "the problem's flags lack SLUICE_SCORES_BIAS_SCALE");
        },
    .fill_call = [](package::AttentionKernargs &out, const calls::Problem &,
                    const calls::Args &call) { out.bias_scale = address_of(call.bias_scale); },
};

/// Other factors for each sequence.
inline constexpr Feature bias_scale_by_sequence = {
    .check_call =
        [](const calls::Problem &, const tensors::TensorRules &, const calls::Args &args) {
          tensors::check_batch_stride("bias_scale_batch_stride", args.bias_scale_batch_stride, args.batch,
                                      args.bias_scale, "bias_scale");
        },
    .fill_call =
        [](package::AttentionKernargs &out, const calls::Problem &, const calls::Args &call) {
          out.bias_scale_batch_stride = used_stride(call.batch, call.bias_scale_batch_stride);
        },
};

} // namespace sluice::features
