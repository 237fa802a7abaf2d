//===- comparison_instructions.cpp - the comparisons ----------------------------------------------------===//
#include "emulator/isa/instructions.h"

namespace sluice::emulator::detail {

namespace {

using enum Pipe;
using enum Role;
using enum Fact;

// clang-format off
// A comparison, and the one that writes EXEC too and otherwise has the same effect.
#define COMPARISON(name, facts) \
    {"v_cmp_" name, valu, plain, facts}, \
    {"v_cmpx_" name, valu, compare_exec, facts, {}, 0, {}, "v_cmp_" name}

constexpr InstructionFacts rows[] = {
    // VOPC, also as VOP3
    COMPARISON("class_f16", keeps_bits | saturates),
    COMPARISON("class_f32", keeps_bits | saturates),
    COMPARISON("class_f64", keeps_bits | saturates),
    COMPARISON("eq_f16", saturates),
    COMPARISON("eq_f32", saturates),
    COMPARISON("eq_f64", saturates),
    COMPARISON("eq_i16", saturates),
    COMPARISON("eq_i32", saturates),
    COMPARISON("eq_i64", saturates),
    COMPARISON("eq_u16", saturates),
    COMPARISON("eq_u32", saturates),
    COMPARISON("eq_u64", saturates),
    COMPARISON("f_f16", saturates),
    COMPARISON("f_f32", saturates),
    COMPARISON("f_f64", saturates),
    COMPARISON("f_i16", saturates),
    COMPARISON("f_i32", saturates),
    COMPARISON("f_i64", saturates),
    COMPARISON("f_u16", saturates),
    COMPARISON("f_u32", saturates),
    COMPARISON("f_u64", saturates),
    COMPARISON("ge_f16", saturates),
    COMPARISON("ge_f32", saturates),
    COMPARISON("ge_f64", saturates),
    COMPARISON("ge_i16", saturates),
    COMPARISON("ge_i32", saturates),
    COMPARISON("ge_i64", saturates),
    COMPARISON("ge_u16", saturates),
    COMPARISON("ge_u32", saturates),
    COMPARISON("ge_u64", saturates),
    COMPARISON("gt_f16", saturates),
    COMPARISON("gt_f32", saturates),
    COMPARISON("gt_f64", saturates),
    COMPARISON("gt_i16", saturates),
    COMPARISON("gt_i32", saturates),
    COMPARISON("gt_i64", saturates),
    COMPARISON("gt_u16", saturates),
    COMPARISON("gt_u32", saturates),
    COMPARISON("gt_u64", saturates),
    COMPARISON("le_f16", saturates),
    COMPARISON("le_f32", saturates),
    COMPARISON("le_f64", saturates),
    COMPARISON("le_i16", saturates),
    COMPARISON("le_i32", saturates),
    COMPARISON("le_i64", saturates),
    COMPARISON("le_u16", saturates),
    COMPARISON("le_u32", saturates),
    COMPARISON("le_u64", saturates),
    COMPARISON("lg_f16", saturates),
    COMPARISON("lg_f32", saturates),
    COMPARISON("lg_f64", saturates),
    COMPARISON("lt_f16", saturates),
    COMPARISON("lt_f32", saturates),
    COMPARISON("lt_f64", saturates),
    COMPARISON("lt_i16", saturates),
    COMPARISON("lt_i32", saturates),
    COMPARISON("lt_i64", saturates),
    COMPARISON("lt_u16", saturates),
    COMPARISON("lt_u32", saturates),
    COMPARISON("lt_u64", saturates),
    COMPARISON("ne_i16", saturates),
    COMPARISON("ne_i32", saturates),
    COMPARISON("ne_i64", saturates),
    COMPARISON("ne_u16", saturates),
    COMPARISON("ne_u32", saturates),
    COMPARISON("ne_u64", saturates),
    COMPARISON("neq_f16", saturates),
    COMPARISON("neq_f32", saturates),
    COMPARISON("neq_f64", saturates),
    COMPARISON("nge_f16", saturates),
    COMPARISON("nge_f32", saturates),
    COMPARISON("nge_f64", saturates),
    COMPARISON("ngt_f16", saturates),
    COMPARISON("ngt_f32", saturates),
    COMPARISON("ngt_f64", saturates),
    COMPARISON("nle_f16", saturates),
    COMPARISON("nle_f32", saturates),
    COMPARISON("nle_f64", saturates),
    COMPARISON("nlg_f16", saturates),
    COMPARISON("nlg_f32", saturates),
    COMPARISON("nlg_f64", saturates),
    COMPARISON("nlt_f16", saturates),
    COMPARISON("nlt_f32", saturates),
    COMPARISON("nlt_f64", saturates),
    COMPARISON("o_f16", saturates),
    COMPARISON("o_f32", saturates),
    COMPARISON("o_f64", saturates),
    COMPARISON("t_i16", saturates),
    COMPARISON("t_i32", saturates),
    COMPARISON("t_i64", saturates),
    COMPARISON("t_u16", saturates),
    COMPARISON("t_u32", saturates),
    COMPARISON("t_u64", saturates),
    COMPARISON("tru_f16", saturates),
    COMPARISON("tru_f32", saturates),
    COMPARISON("tru_f64", saturates),
    COMPARISON("u_f16", saturates),
    COMPARISON("u_f32", saturates),
    COMPARISON("u_f64", saturates),
};
#undef COMPARISON
// clang-format on

} // namespace

std::span<const InstructionFacts> comparison_instructions() {
  return rows;
}

} // namespace sluice::emulator::detail
