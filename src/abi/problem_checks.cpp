//===- problem_checks.cpp - what a caller can get wrong in a problem ------------------------------------===//
#include "abi/cache_checks.h"
#include "abi/checks.h"
#include "calls/problem.h"

#include "features/all.h"
#include "runtime/dtype.h"
#include "support/failure.h"

#include <algorithm>
#include <string>
#include <string_view>

namespace sluice::abi {
namespace {

using features::Feature;
using runtime::dtype_text;
using support::Failure;
using support::Status;
using support::text;

constexpr uint32_t known_flags = features::known_flags | calls::write_lse | calls::page_index_64 |
                                 calls::v_in_k | calls::prefixes | calls::zero_points | calls::padded_rows |
                                 calls::lse_log2 | calls::batch_invariant;

[[noreturn]] void unsupported(std::string_view field, uint32_t value, std::string_view nearest) {
  throw Failure(Status::unsupported, std::string(field),
                text(field, " is ", value, "; nearest supported: ", nearest));
}

void check_bound(std::string_view field, int64_t value) {
  if (value < 0) invalid(field, text(field, " is ", value, "; it must be at least 1, or 0 for no bound"));
}

void check_types(const calls::Problem &problem) {
  check_dtype("q_type", problem.q_type);
  check_dtype("k_type", problem.k_type);
  check_dtype("v_type", problem.v_type);
  check_dtype("o_type", problem.o_type);
  if (problem.q_type >= SLUICE_I8) {
    throw Failure(Status::unsupported, "q_type",
                  text("q_type is ", dtype_text(problem.q_type),
                       ", which only K and V can have; nearest supported: ", dtype_text(SLUICE_F16)));
  }
  if (problem.o_type > SLUICE_E4M3FNUZ) {
    throw Failure(Status::unsupported, "o_type",
                  text("o_type is ", dtype_text(problem.o_type), "; nearest supported: ",
                       dtype_text(problem.q_type == SLUICE_BF16 ? SLUICE_BF16 : SLUICE_F16)));
  }
}

void check_heads(const calls::Problem &problem) {
  check_at_least("q_heads", problem.q_heads, 1);
  check_at_least("kv_heads", problem.kv_heads, 1);
  if (problem.q_heads % problem.kv_heads != 0) {
    invalid("q_heads", text("q_heads is ", problem.q_heads, "; it must be a multiple of kv_heads, which is ",
                            problem.kv_heads));
  }
  check_at_least("head_dim_qk", problem.head_dim_qk, 1);
  check_at_least("head_dim_v", problem.head_dim_v, 1);
}

/// Of K or V, which may have a scale for each key, if `has_keys`.
void check_scale_kind(const calls::Problem &problem, std::string_view field, uint32_t kind, bool has_keys) {
  if (kind <= SLUICE_SCALE_PER_HEAD) return;
  check_known(field, kind, SLUICE_SCALE_PER_GROUP, "SLUICE_SCALE_PER_GROUP (5)");
  if (!has_keys) unsupported(field, kind, "SLUICE_SCALE_PER_HEAD (2)");
  if (kind == SLUICE_SCALE_PER_PAGE && problem.mode != calls::paged) {
    invalid(field, text(field, " is SLUICE_SCALE_PER_PAGE (4), but page_size is 0"));
  }
}

/// 4-bit numbers have scales per group, and nothing else has.
void check_groups(std::string_view field, uint32_t kind, uint32_t type) {
  const bool is_u4 = type == SLUICE_U4;
  if (is_u4 != (kind == SLUICE_SCALE_PER_GROUP)) {
    invalid(field, text(field, " is ", kind,
                        is_u4 ? "; it must be SLUICE_SCALE_PER_GROUP (5) for u4"
                              : "; it must not be SLUICE_SCALE_PER_GROUP (5) unless the type is u4"));
  }
}

/// Rows of blocks are whole blocks or groups.
void check_blocks(const calls::Problem &problem, std::string_view field, int32_t dim, uint32_t type) {
  if (!runtime::is_in_blocks(type)) return;
  const int32_t multiple = type == SLUICE_U4 ? std::max(problem.scale_group, 32) : 32;
  if (dim % multiple != 0)
    invalid(field,
            text(field, " is ", dim, "; it must be a multiple of ", multiple, " for ", dtype_text(type)));
  if (problem.k_pack != 0)
    invalid("k_pack", text("k_pack is ", problem.k_pack, "; it must be 0 for ", dtype_text(type)));
}

void check_scales(const calls::Problem &problem) {
  check_scale_kind(problem, "q_scale_kind", problem.q_scale_kind, false);
  check_scale_kind(problem, "k_scale_kind", problem.k_scale_kind, true);
  check_scale_kind(problem, "v_scale_kind", problem.v_scale_kind, true);
  if (problem.o_scale_kind != SLUICE_SCALE_NONE && problem.o_type != SLUICE_E4M3FNUZ) {
    invalid("o_scale_kind", text("o_scale_kind is ", problem.o_scale_kind,
                                 "; it must be SLUICE_SCALE_NONE (0) ", "unless o_type is e4m3fnuz"));
  }
  check_scale_kind(problem, "o_scale_kind", problem.o_scale_kind, false);
  check_groups("k_scale_kind", problem.k_scale_kind, problem.k_type);
  check_groups("v_scale_kind", problem.v_scale_kind, problem.v_type);
  const bool has_groups =
      problem.k_scale_kind == SLUICE_SCALE_PER_GROUP || problem.v_scale_kind == SLUICE_SCALE_PER_GROUP;
  if (has_groups ? problem.scale_group != 32 && problem.scale_group != 64 : problem.scale_group != 0) {
    invalid("scale_group",
            text("scale_group is ", problem.scale_group,
                 has_groups ? "; it must be 32 or 64" : "; it must be 0 without scales per group"));
  }
  if (problem.flags & calls::zero_points && !has_groups)
    invalid("flags", "flags has zero points, but neither K nor V has scales of SLUICE_SCALE_PER_GROUP");
}

void check_no_pages(const calls::Problem &problem) {
  if (problem.page_size != 0)
    invalid("page_size", text("page_size is ", problem.page_size, "; it must be 0 without pages"));
  const auto only_paged = [](std::string_view field, int64_t value) {
    if (value != 0) invalid(field, text(field, " is ", value, ", but page_size is 0"));
  };
  only_paged("page_table_kind", problem.page_table_kind);
  only_paged("k_pack", problem.k_pack);
  const auto only_with_pages = [&](calls::Flag flag) {
    if (problem.flags & flag)
      invalid("flags", text("flags has ", calls::flag_name(flag), ", but page_size is 0"));
  };
  only_with_pages(calls::page_index_64);
  only_with_pages(calls::missing_pages);
}

void check_pages(const calls::Problem &problem) {
  check_at_least("page_size", problem.page_size, 1);
  if (problem.page_table_kind == SLUICE_PAGE_TABLE_NONE) {
    invalid("page_table_kind", "page_table_kind is missing; with a page_size it must be "
                               "SLUICE_PAGE_TABLE_BLOCK (1) or SLUICE_PAGE_TABLE_CSR (2)");
  }
  check_known("page_table_kind", problem.page_table_kind, SLUICE_PAGE_TABLE_CSR, "SLUICE_PAGE_TABLE_CSR (2)");
  if (problem.k_pack < 0 || (problem.k_pack != 0 && problem.head_dim_qk % problem.k_pack != 0)) {
    invalid("k_pack", text("k_pack is ", problem.k_pack, "; it must divide head_dim_qk, which is ",
                           problem.head_dim_qk, ", or be 0 for no packs"));
  }
}

void check_v_pack(const calls::Problem &problem) {
  const int32_t pack = problem.v_pack;
  if (pack == 0) return;
  const auto refuse = [&](std::string_view rule) {
    invalid("v_pack", text("v_pack is ", pack, "; it must be ", rule));
  };
  if (problem.flags & calls::v_in_k) refuse("0 with SLUICE_KV_V_IN_K");
  if (runtime::is_in_blocks(problem.v_type)) refuse(text("0 for ", dtype_text(problem.v_type)));
  if (problem.mode == calls::ragged) refuse("0 with SLUICE_ATTENTION_RAGGED");
  if (problem.mode == calls::dense) {
    if (pack != SLUICE_PACK_ALL) refuse("SLUICE_PACK_ALL (2^30) outside of pages, or 0 for rows");
    return;
  }
  check_v_pack_of_pages(pack, problem.page_size);
}

void check_v_in_k(const calls::Problem &problem) {
  if (problem.head_dim_v > problem.head_dim_qk) {
    invalid("head_dim_v",
            text("head_dim_v is ", problem.head_dim_v,
                 "; with SLUICE_KV_V_IN_K it must be at most head_dim_qk, which is ", problem.head_dim_qk));
  }
}

void check_no_prefix(const calls::Problem &problem) {
  check_needs_flag("max_prefixes", problem.max_prefixes, false, "SLUICE_ATTENTION_PREFIXES");
  check_needs_flag("max_prefix_len", problem.max_prefix_len, false, "SLUICE_ATTENTION_PREFIXES");
}

void check_prefix(const calls::Problem &problem) {
  const auto required = [](std::string_view field, int64_t value) {
    if (value <= 0)
      invalid(field, text(field, " is ", value, "; it must be at least 1 with SLUICE_ATTENTION_PREFIXES"));
  };
  required("max_prefixes", problem.max_prefixes);
  required("max_prefix_len", problem.max_prefix_len);
  required("max_q_tokens", problem.max_q_tokens);
  features::for_each<&Feature::check_with_prefix, features::prefix_order>(
      [&](auto check) { check(problem); });
  const auto only_in_pages = [&](std::string_view field, uint32_t kind) {
    if (kind != SLUICE_SCALE_PER_TOKEN || problem.mode == calls::paged) return;
    throw Failure(
        Status::unsupported, std::string(field),
        text(field, " is SLUICE_SCALE_PER_TOKEN (3), flags has SLUICE_ATTENTION_PREFIXES, and page_size is "
                    "0: keys of groups outside of pages have no such scales; nearest supported: "
                    "SLUICE_SCALE_PER_HEAD (2)"));
  };
  only_in_pages("k_scale_kind", problem.k_scale_kind);
  only_in_pages("v_scale_kind", problem.v_scale_kind);
  if (problem.k_scale_kind == SLUICE_SCALE_PER_GROUP && problem.mode != calls::paged) {
    throw Failure(Status::unsupported, "flags",
                  "flags has SLUICE_ATTENTION_PREFIXES, k_scale_kind is SLUICE_SCALE_PER_GROUP (5), and "
                  "page_size is 0: "
                  "keys "
                  "of groups outside of pages have no such scales; nearest supported: without "
                  "SLUICE_ATTENTION_PREFIXES");
  }
}

/// Keys that are split at fixed places take workspace, whose size follows from the bounds.
void check_determinism(const calls::Problem &problem) {
  if (!(problem.flags & calls::batch_invariant)) return;
  const auto required = [](std::string_view field, int32_t bound) {
    if (bound == 0) {
      invalid(field, text(field, " is 0 (unbounded); it must be at least 1 with "
                                 "SLUICE_ATTENTION_BATCH_INVARIANT, which splits keys at fixed places"));
    }
  };
  required("max_batch", problem.max_batch);
  required("max_kv_len", problem.max_kv_len);
}

} // namespace

void check_problem(const calls::Problem &problem) {
  if (problem.flags & ~known_flags) {
    throw Failure(Status::newer_struct, "flags",
                  text("flags has unknown bits ", support::hexadecimal(problem.flags & ~known_flags),
                       ": the library is older than the caller's header"));
  }
  check_types(problem);
  check_heads(problem);
  check_bound("max_batch", problem.max_batch);
  check_bound("max_q_len", problem.max_q_len);
  check_bound("max_kv_len", problem.max_kv_len);
  check_bound("max_q_tokens", problem.max_q_tokens);
  features::for_each<&Feature::check_problem, features::problem_order>([&](auto check) { check(problem); });
  check_scales(problem);
  check_blocks(problem, "head_dim_qk", problem.head_dim_qk, problem.k_type);
  check_blocks(problem, "head_dim_v", problem.head_dim_v, problem.v_type);
  if (problem.mode == calls::paged) {
    check_pages(problem);
  } else {
    check_no_pages(problem);
  }
  if (problem.flags & calls::v_in_k) check_v_in_k(problem);
  check_v_pack(problem);
  if (problem.flags & calls::prefixes) {
    check_prefix(problem);
  } else {
    check_no_prefix(problem);
  }
  check_determinism(problem);
}

} // namespace sluice::abi
