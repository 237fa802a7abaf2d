//===- problem_checks.cpp - what a caller can get wrong in a problem ------------------------------------===//
#include "abi/checks.h"

#include "support/failure.h"

#include <cmath>
#include <string>
#include <string_view>

namespace sluice::abi {
namespace {

using support::Failure;
using support::Status;
using support::text;

constexpr uint32_t known_flags = SLUICE_CAUSAL | SLUICE_WRITE_LSE | SLUICE_HAS_WINDOW_LEFT |
                                 SLUICE_HAS_WINDOW_RIGHT | SLUICE_ALIBI | SLUICE_SINK_LOGITS;

[[noreturn]] void invalid(std::string_view field, std::string message) {
  throw Failure(Status::invalid_argument, std::string(field), std::move(message));
}

template <typename Value>
[[noreturn]] void unsupported(std::string_view field, Value value, std::string_view nearest) {
  throw Failure(Status::unsupported, std::string(field),
                text(field, " is ", value, "; nearest supported: ", nearest));
}

void check_type(std::string_view field, uint32_t type) {
  if (type == 0) invalid(field, text(field, " is missing; it is a sluice_dtype"));
  if (type > SLUICE_E5M2) unsupported(field, type, "SLUICE_F16 (1)");
}

void check_positive(std::string_view field, int32_t value) {
  if (value <= 0) invalid(field, text(field, " is ", value, "; it must be at least 1"));
}

void check_bound(std::string_view field, int64_t value) {
  if (value < 0) invalid(field, text(field, " is ", value, "; a bound is at least 1, or 0 for none"));
}

void check_window(const sluice_problem &problem, std::string_view field, int32_t width, uint32_t flag,
                  std::string_view flag_name) {
  if (!(problem.flags & flag)) {
    if (width != 0) invalid(field, text(field, " is ", width, ", but flags lacks ", flag_name));
    return;
  }
  if (width < 0) invalid(field, text(field, " is ", width, "; a width is at least 0"));
  throw Failure(Status::unsupported, "flags",
                text("flags has ", flag_name, " (", field, " ", width, "); nearest supported: no window"));
}

void check_flag(const sluice_problem &problem, uint32_t flag, std::string_view flag_name) {
  if (problem.flags & flag) {
    throw Failure(Status::unsupported, "flags",
                  text("flags has ", flag_name, "; nearest supported: without it"));
  }
}

void check_pages(const sluice_problem &problem) {
  const auto only_paged = [](std::string_view field, int64_t value) {
    if (value != 0)
      invalid(field, text(field, " is ", value, "; it must be 0 unless mode is SLUICE_MODE_PAGED"));
  };
  only_paged("page_size", problem.page_size);
  only_paged("page_table_kind", problem.page_table_kind);
  only_paged("k_pack", problem.k_pack);
}

void check_mask(const sluice_problem &problem) {
  if (problem.mask_alignment > SLUICE_TOP_LEFT) {
    unsupported("mask_alignment", problem.mask_alignment, "SLUICE_TOP_LEFT (1)");
  }
  check_window(problem, "window_left", problem.window_left, SLUICE_HAS_WINDOW_LEFT, "SLUICE_HAS_WINDOW_LEFT");
  check_window(problem, "window_right", problem.window_right, SLUICE_HAS_WINDOW_RIGHT,
               "SLUICE_HAS_WINDOW_RIGHT");
  if (problem.sink_tokens < 0) {
    invalid("sink_tokens", text("sink_tokens is ", problem.sink_tokens, "; it is at least 0"));
  }
  if (problem.sink_tokens != 0) unsupported("sink_tokens", problem.sink_tokens, "0");
}

void check_scores(const sluice_problem &problem) {
  if (!std::isfinite(problem.soft_cap) || problem.soft_cap < 0) {
    invalid("soft_cap", text("soft_cap is ", problem.soft_cap, "; it is finite and at least 0"));
  }
  if (problem.soft_cap != 0) unsupported("soft_cap", problem.soft_cap, "0");
  check_flag(problem, SLUICE_ALIBI, "SLUICE_ALIBI");
  check_flag(problem, SLUICE_SINK_LOGITS, "SLUICE_SINK_LOGITS");
  if (problem.bias_type != 0) unsupported("bias_type", problem.bias_type, "0 (no bias)");
  const auto no_scale = [](std::string_view field, uint32_t kind) {
    if (kind != SLUICE_SCALE_NONE) unsupported(field, kind, "SLUICE_SCALE_NONE (0)");
  };
  no_scale("q_scale_kind", problem.q_scale_kind);
  no_scale("k_scale_kind", problem.k_scale_kind);
  no_scale("v_scale_kind", problem.v_scale_kind);
}

} // namespace

void check_problem(const sluice_problem &problem) {
  if (problem.flags & ~known_flags) {
    throw Failure(Status::newer_struct, "flags",
                  text("flags has bits ", support::hexadecimal(problem.flags & ~known_flags),
                       " that this library does not know: it is older than the caller's header"));
  }
  if (problem.mode != SLUICE_MODE_DENSE) unsupported("mode", problem.mode, "SLUICE_MODE_DENSE (0)");
  check_type("q_type", problem.q_type);
  check_type("k_type", problem.k_type);
  check_type("v_type", problem.v_type);
  check_type("o_type", problem.o_type);
  check_positive("q_heads", problem.q_heads);
  check_positive("kv_heads", problem.kv_heads);
  if (problem.q_heads % problem.kv_heads != 0) {
    invalid("q_heads", text("q_heads is ", problem.q_heads, "; it must be a multiple of kv_heads, which is ",
                            problem.kv_heads));
  }
  check_positive("head_dim_qk", problem.head_dim_qk);
  check_positive("head_dim_v", problem.head_dim_v);
  check_bound("max_batch", problem.max_batch);
  check_bound("max_q_len", problem.max_q_len);
  check_bound("max_kv_len", problem.max_kv_len);
  check_bound("max_q_tokens", problem.max_q_tokens);
  check_mask(problem);
  check_scores(problem);
  check_pages(problem);
  if (problem.lse_base != SLUICE_LSE_BASE_E)
    unsupported("lse_base", problem.lse_base, "SLUICE_LSE_BASE_E (0)");
  if (problem.determinism > SLUICE_DETERMINISM_BATCH_INVARIANT) {
    unsupported("determinism", problem.determinism, "SLUICE_DETERMINISM_BATCH_INVARIANT (1)");
  }
}

} // namespace sluice::abi
