//===- score_checks.cpp - what a call has that changes scores: bias, masks and scales -------------------===//
#include "abi/args_checks.h"
#include "calls/args.h"
#include "calls/problem.h"

#include "features/all.h"

#include <string_view>

namespace sluice::abi {
namespace {

using features::Feature;
using runtime::Rows;

/// Scales of K or V for each key, or numbers to subtract, found like the rows of k and v.
struct KeyScales {
  std::string_view name;
  const sluice_tensor &scales;
  uint32_t kind;
  int32_t head_dim;
};

/// A page has one scale for all its rows.
Shape shape_of(const calls::Problem &problem, const Rows &keys, const KeyScales &of) {
  const bool has_groups = of.kind == SLUICE_SCALE_PER_GROUP;
  return {of.name,
          of.scales,
          {keys.outer, of.kind == SLUICE_SCALE_PER_PAGE ? 1 : keys.inner, problem.kv_heads,
           has_groups ? of.head_dim / problem.scale_group : 1},
          has_groups ? uint32_t(sizeof(uint16_t)) : uint32_t(sizeof(float))};
}

void check_key_scales(const calls::Problem &problem, const TensorRules &rules, const Rows &keys,
                      const KeyScales &scales, std::string_view why_not) {
  if (scales.kind <= SLUICE_SCALE_PER_HEAD) return check_absent(scales.name, scales.scales, why_not);
  if (keys.none()) return;
  const Shape shape = shape_of(problem, keys, scales);
  check_given(shape);
  check_stride(shape, 3, 1);
  check_reach(shape, rules.address_end());
}

/// Numbers to subtract in each group, with the strides of the scales.
void check_zeros(const calls::Problem &problem, const TensorRules &rules, const Rows &keys,
                 const KeyScales &zeros, const sluice_tensor &scales, std::string_view why_not) {
  if (!(problem.flags & calls::zero_points))
    return check_absent(zeros.name, zeros.scales, "the problem's flags lack zero points");
  if (zeros.kind != SLUICE_SCALE_PER_GROUP) return check_absent(zeros.name, zeros.scales, why_not);
  check_key_scales(problem, rules, keys, zeros, why_not);
  check_same_strides(shape_of(problem, keys, zeros), scales);
}

} // namespace

void check_scores(const calls::Problem &problem, const TensorRules &rules, const calls::Args &args) {
  features::for_each<&Feature::check_call, features::call_order>(
      [&](auto check) { check(problem, rules, args); });
}

void check_scales(const calls::Problem &problem, const TensorRules &rules, const calls::Args &args,
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

void check_sequence_masks(const calls::Problem &problem, const TensorRules &rules, const calls::Args &args) {
  features::for_each<&Feature::check_sequences>([&](auto check) { check(problem, rules, args); });
}

} // namespace sluice::abi
