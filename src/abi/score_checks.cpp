//===- score_checks.cpp - what a call has that changes scores: bias, masks and scales -------------------===//
#include "abi/args_checks.h"

#include "runtime/dtype.h"
#include "support/checked.h"
#include "support/failure.h"

#include <string>
#include <string_view>

namespace sluice::abi {
namespace {

using runtime::dtype_bytes;
using runtime::Rows;
using support::divide_up;
using support::text;

// Kernels add the number of a row to that of a key on the diagonal, which is at most as large.
constexpr int32_t most_rows_with_diagonal = 1 << 30;
constexpr int64_t most_spans = 1 << 20;

void check_bias(const sluice_problem &problem, const sluice_args &args, uint64_t address_end) {
  if (args.kv_len == 0) return;
  const Shape shape = {"bias",
                       args.bias,
                       {args.batch, problem.q_heads, args.q_len, args.kv_len},
                       dtype_bytes(problem.bias_type)};
  check_pointer(shape, shape.element_bytes);
  if (args.kv_len > 1 && args.bias.stride[3] != 0 && args.bias.stride[3] != 1)
    bad_stride(shape, 3, "it must be 0 or 1");
  check_reach(shape, address_end);
}

void check_mask(const sluice_problem &problem, const sluice_args &args, uint64_t address_end) {
  const int32_t keys = problem.flags & SLUICE_MASK_NEW_ROWS ? args.q_len : args.kv_len;
  if (keys == 0) return;
  const Shape shape = {"mask", args.mask, {args.batch, problem.q_heads, args.q_len, divide_up(keys, 8)}, 1};
  check_pointer(shape, 1);
  if (shape.extent[3] > 1 && args.mask.stride[3] != 1)
    bad_stride(shape, 3, "it must be 1: the bits of a row are contiguous");
  check_reach(shape, address_end);
}

void check_given(std::string_view field, const void *pointer, bool is_asked, std::string_view why_not) {
  if (is_asked) {
    check_pointer(field, pointer, sizeof(float)); // or int32_t
  } else {
    check_absent(field, pointer, why_not);
  }
}

void check_batch_stride(std::string_view field, int64_t stride, int32_t batch, const float *array,
                        std::string_view name) {
  if (batch <= 1 && array != nullptr) return;
  check_not_negative(field, stride);
  if (stride != 0 && array == nullptr)
    invalid(field, text(field, " is ", stride, ", but ", name, " is NULL"));
}

/// Scales of K or V for each key, or numbers to subtract, found like the rows of k and v.
struct KeyScales {
  std::string_view name;
  const sluice_tensor &scales;
  uint32_t kind;
  int32_t head_dim;
};

/// A page has one scale for all its rows.
Shape shape_of(const sluice_problem &problem, const Rows &keys, const KeyScales &of) {
  const bool has_groups = of.kind == SLUICE_SCALE_PER_GROUP;
  return {of.name,
          of.scales,
          {keys.outer, of.kind == SLUICE_SCALE_PER_PAGE ? 1 : keys.inner, problem.kv_heads,
           has_groups ? of.head_dim / problem.scale_group : 1},
          has_groups ? uint32_t(sizeof(uint16_t)) : uint32_t(sizeof(float))};
}

void check_key_scales(const sluice_problem &problem, const TensorRules &rules, const Rows &keys,
                      const KeyScales &scales, std::string_view why_not) {
  if (scales.kind <= SLUICE_SCALE_PER_HEAD) return check_absent(scales.name, scales.scales, why_not);
  if (keys.none()) return;
  const Shape shape = shape_of(problem, keys, scales);
  check_pointer(shape, shape.element_bytes);
  check_stride(shape, 3, 1);
  check_reach(shape, rules.address_end());
}

/// Numbers to subtract in each group, with the strides of the scales.
void check_zeros(const sluice_problem &problem, const TensorRules &rules, const Rows &keys,
                 const KeyScales &zeros, const sluice_tensor &scales, std::string_view why_not) {
  if (!(problem.flags & SLUICE_ZERO_POINTS))
    return check_absent(zeros.name, zeros.scales, "the problem's flags lack SLUICE_ZERO_POINTS");
  if (zeros.kind != SLUICE_SCALE_PER_GROUP) return check_absent(zeros.name, zeros.scales, why_not);
  check_key_scales(problem, rules, keys, zeros, why_not);
  check_same_strides(shape_of(problem, keys, zeros), scales);
}

} // namespace

void check_scores(const sluice_problem &problem, const TensorRules &rules, const sluice_args &args) {
  const uint64_t address_end = rules.address_end();
  if (problem.bias_type != 0) {
    check_bias(problem, args, address_end);
  } else {
    check_absent("bias", args.bias, "the problem's bias_type is 0");
  }
  if (problem.flags & SLUICE_BOOL_MASK) {
    check_mask(problem, args, address_end);
  } else {
    check_absent("mask", args.mask, "the problem's flags lack SLUICE_BOOL_MASK");
  }
  check_given("alibi_slopes", args.alibi_slopes, problem.flags & SLUICE_ALIBI,
              "the problem's flags lack SLUICE_ALIBI");
  check_given("sink_logits", args.sink_logits, problem.flags & SLUICE_SINK_LOGITS,
              "the problem's flags lack SLUICE_SINK_LOGITS");
  check_given("bias_scale", args.bias_scale, problem.flags & SLUICE_BIAS_SCALE,
              "the problem's flags lack SLUICE_BIAS_SCALE");
  check_batch_stride("alibi_batch_stride", args.alibi_batch_stride, args.batch, args.alibi_slopes,
                     "alibi_slopes");
  check_batch_stride("bias_scale_batch_stride", args.bias_scale_batch_stride, args.batch, args.bias_scale,
                     "bias_scale");
}

void check_scales(const sluice_problem &problem, const TensorRules &rules, const sluice_args &args,
                  const Rows &keys) {
  const auto has_few = [](uint32_t kind) {
    return kind == SLUICE_SCALE_PER_TENSOR || kind == SLUICE_SCALE_PER_HEAD;
  };
  constexpr std::string_view q_has_none = "the problem's q_scale_kind is SLUICE_SCALE_NONE";
  constexpr std::string_view k_has_none = "the problem's k_scale_kind is not PER_TENSOR or PER_HEAD";
  constexpr std::string_view v_has_none = "the problem's v_scale_kind is not PER_TENSOR or PER_HEAD";
  constexpr std::string_view o_has_none = "the problem's o_scale_kind is SLUICE_SCALE_NONE";
  check_given("q_scale", args.q_scale, has_few(problem.q_scale_kind), q_has_none);
  check_given("k_scale", args.k_scale, has_few(problem.k_scale_kind), k_has_none);
  check_given("v_scale", args.v_scale, has_few(problem.v_scale_kind), v_has_none);
  check_given("o_scale", args.o_scale, has_few(problem.o_scale_kind), o_has_none);
  const uint32_t k_kind = problem.k_scale_kind, v_kind = problem.v_scale_kind;
  const int32_t qk = problem.head_dim_qk, v = problem.head_dim_v;
  check_key_scales(problem, rules, keys, {"k_scales", args.k_scales, k_kind, qk},
                   "the problem's k_scale_kind is not PER_TOKEN, PER_PAGE or PER_GROUP");
  check_key_scales(problem, rules, keys, {"v_scales", args.v_scales, v_kind, v},
                   "the problem's v_scale_kind is not PER_TOKEN, PER_PAGE or PER_GROUP");
  check_zeros(problem, rules, keys, {"k_zeros", args.k_zeros, k_kind, qk}, args.k_scales,
              "the problem's k_scale_kind is not PER_GROUP");
  check_zeros(problem, rules, keys, {"v_zeros", args.v_zeros, v_kind, v}, args.v_scales,
              "the problem's v_scale_kind is not PER_GROUP");
}

void check_sequence_masks(const sluice_problem &problem, const TensorRules &rules, const sluice_args &args) {
  const bool has_diagonals = problem.mask_alignment == SLUICE_GIVEN_DIAGONAL;
  check_given("diagonals", args.diagonals, has_diagonals,
              "the problem's mask_alignment is not SLUICE_GIVEN_DIAGONAL");
  if (rules.on_device() && has_diagonals && args.q_len > most_rows_with_diagonal) {
    unsupported("q_len", text("q_len is ", args.q_len,
                              " with SLUICE_GIVEN_DIAGONAL; nearest supported: ", most_rows_with_diagonal));
  }
  check_given("causal", args.causal, problem.flags & SLUICE_CAUSAL_BY_SEQUENCE,
              "the problem's flags lack SLUICE_CAUSAL_BY_SEQUENCE");
  const bool has_spans = problem.flags & SLUICE_SPANS;
  if (!has_spans || args.span_count != 0)
    check_given("spans", args.spans, has_spans, "the problem's flags lack SLUICE_SPANS");
  if (has_spans && (args.span_count < 0 || args.span_count > most_spans))
    invalid("span_count",
            text("span_count is ", args.span_count, "; with SLUICE_SPANS it must be from 0 to ", most_spans));
  if (!has_spans && args.span_count != 0)
    invalid("span_count",
            text("span_count is ", args.span_count, ", but the problem's flags lack SLUICE_SPANS"));
}

} // namespace sluice::abi
