//===- args_checks.cpp - what a caller can get wrong in a call ------------------------------------------===//
//
// On the path of every run: no allocation unless something is wrong.
//
//===----------------------------------------------------------------------------------------------------===//
#include "abi/checks.h"
#include "abi/tensor_checks.h"

#include "support/checked.h"
#include "support/failure.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numbers>
#include <optional>
#include <string>
#include <string_view>

namespace sluice::abi {
namespace {

using support::Failure;
using support::Status;
using support::text;

constexpr uint32_t max_grid_yz = 65535;
constexpr int64_t max_lengths = (int64_t{1} << 31) - 512;
// A buffer descriptor holds 48 address bits (CDNA3 ISA, buffer resource): what lies above would wrap.
constexpr uint64_t device_address_end = uint64_t{1} << 48;
// One buffer descriptor serves a tile of K or V: its 64 rows of 16-bit elements span less than 4 GiB.
constexpr int64_t kv_row_stride_end = int64_t{1} << 25;

constexpr uint32_t bytes_of(uint32_t type) {
  return type == SLUICE_F32 ? 4 : type == SLUICE_F16 || type == SLUICE_BF16 ? 2 : 1;
}

void check_extent(std::string_view field, int32_t value, int64_t bound) {
  if (value <= 0) invalid(std::string(field), text(field, " is ", value, "; it must be at least 1"));
  if (bound != 0 && value > bound) {
    invalid(std::string(field), text(field, " is ", value, "; the problem's max_", field, " is ", bound));
  }
}

void check_extents(const sluice_problem &problem, uint32_t tile_q, const sluice_args &args) {
  check_extent("batch", args.batch, problem.max_batch);
  check_extent("q_len", args.q_len, problem.max_q_len);
  check_extent("kv_len", args.kv_len, problem.max_kv_len);
  const int64_t tokens = int64_t{args.batch} * args.q_len;
  if (problem.max_q_tokens != 0 && tokens > problem.max_q_tokens) {
    invalid("batch",
            text("batch * q_len is ", tokens, "; the problem's max_q_tokens is ", problem.max_q_tokens));
  }
  if (tile_q == 0) return;
  if (uint32_t(args.batch) > max_grid_yz) {
    invalid("batch", text("batch is ", args.batch, "; it must be at most ", max_grid_yz));
  }
  const uint32_t tiles = support::divide_up(uint32_t(args.q_len), tile_q);
  if (tiles > max_grid_yz) {
    invalid("q_len", text("q_len is ", args.q_len, "; it must be at most ", uint64_t{max_grid_yz} * tile_q,
                          ", which is ", max_grid_yz, " tiles of ", tile_q, " rows"));
  }
  if (int64_t{args.q_len} + args.kv_len > max_lengths) {
    invalid("kv_len", text("kv_len is ", args.kv_len, " and q_len ", args.q_len,
                           "; their sum must be at most ", max_lengths));
  }
}

void check_tensor(const Shape &shape, const TensorRules &rules) {
  check_pointer(shape, rules.pointer_alignment != 0 ? rules.pointer_alignment : shape.element_bytes);
  if (rules.unit_dim_stride && shape.tensor.stride[3] != 1) bad_stride(shape, 3, "it must be 1");
  check_reach(shape, rules.tile_q != 0 ? device_address_end : UINT64_MAX);
  for (size_t i = 0; i < 3; ++i) {
    if (shape.tensor.stride[i] % rules.stride_multiple != 0) {
      bad_stride(shape, i, text("it must be a multiple of ", rules.stride_multiple));
    }
  }
}

void check_close_rows(const Shape &shape) {
  if (shape.tensor.stride[1] >= kv_row_stride_end) {
    bad_stride(shape, 1, text("it must be less than ", kv_row_stride_end));
  }
}

void check_lse(const sluice_problem &problem, const sluice_args &args) {
  if (!(problem.flags & SLUICE_WRITE_LSE)) {
    if (args.lse.data != nullptr) {
      invalid("lse.data", "lse.data is given, but the problem's flags lack SLUICE_WRITE_LSE");
    }
    return;
  }
  const Shape shape = {"lse", args.lse, {args.batch, args.q_len, problem.q_heads, 1}, sizeof(float)};
  check_pointer(shape, sizeof(float));
  if (args.lse.stride[3] != 0 && args.lse.stride[3] != 1) bad_stride(shape, 3, "it must be 0 or 1");
  check_reach(shape, UINT64_MAX);
  check_disjoint(shape);
}

void check_scale(float scale) {
  if (!std::isfinite(scale)) invalid("scale", text("scale is ", scale, "; it must be finite"));
  if (scale < 0) {
    throw Failure(Status::unsupported, "scale",
                  text("scale is ", scale,
                       "; it must not be negative; nearest supported: 0, for 1 / sqrt(head_dim_qk)"));
  }
  if (!std::isfinite(float(double{scale} * std::numbers::log2e))) {
    invalid("scale", text("scale is ", scale, "; scale * log2(e) must be finite"));
  }
}

} // namespace

void check_args(const sluice_problem &problem, const TensorRules &rules, const sluice_args &args) {
  if (args.flags != 0) {
    throw Failure(
        Status::newer_struct, "flags",
        text("flags is ", support::hexadecimal(args.flags), "; this library knows no flags of a call"));
  }
  check_extents(problem, rules.tile_q, args);
  check_scale(args.scale);
  const Shape q = {
      "q", args.q, {args.batch, args.q_len, problem.q_heads, problem.head_dim_qk}, bytes_of(problem.q_type)};
  const Shape k = {"k",
                   args.k,
                   {args.batch, args.kv_len, problem.kv_heads, problem.head_dim_qk},
                   bytes_of(problem.k_type)};
  const Shape v = {
      "v", args.v, {args.batch, args.kv_len, problem.kv_heads, problem.head_dim_v}, bytes_of(problem.v_type)};
  const Shape o = {
      "o", args.o, {args.batch, args.q_len, problem.q_heads, problem.head_dim_v}, bytes_of(problem.o_type)};
  check_tensor(q, rules);
  check_tensor(k, rules);
  check_tensor(v, rules);
  check_tensor(o, rules);
  check_disjoint(o);
  if (rules.tile_q != 0) {
    check_close_rows(k);
    check_close_rows(v);
  }
  check_lse(problem, args);
}

void check_launch(uint64_t workspace_bytes, uint32_t workspace_alignment, const sluice_launch &launch) {
  if (launch.workspace_bytes < workspace_bytes) {
    throw Failure(Status::workspace_too_small, "workspace_bytes",
                  text("workspace_bytes is ", launch.workspace_bytes, "; the plan needs ", workspace_bytes));
  }
  if (launch.workspace == nullptr && launch.workspace_bytes != 0) {
    invalid("workspace", text("workspace is NULL, but workspace_bytes is ", launch.workspace_bytes));
  }
  const uint64_t address = reinterpret_cast<uint64_t>(launch.workspace);
  if (address % workspace_alignment != 0) {
    invalid("workspace", text("workspace is ", support::hexadecimal(address), "; it must be aligned to ",
                              workspace_alignment, " bytes"));
  }
  check_dependencies(launch);
}

void check_dependencies(const sluice_launch &launch) {
  if (launch.dependency_count != 0 && launch.dependencies == nullptr) {
    invalid("dependencies", text("dependencies is NULL, but dependency_count is ", launch.dependency_count));
  }
  for (uint32_t i = 0; i < launch.dependency_count; ++i) {
    const sluice_dependency &dependency = launch.dependencies[i];
    const auto bad = [i](std::string_view field, const auto &...message) {
      std::string name = text("dependencies[", i, "].", field);
      std::string sentence = text(name, message...);
      invalid(std::move(name), std::move(sentence));
    };
    if (dependency.kind != SLUICE_DEPENDS_ON_EVENT && dependency.kind != SLUICE_DEPENDS_ON_STREAM) {
      bad("kind", " is ", dependency.kind,
          "; it is SLUICE_DEPENDS_ON_EVENT (1) or SLUICE_DEPENDS_ON_STREAM (2)");
    }
    if (dependency.reserved != 0) bad("reserved", " is ", dependency.reserved, "; it must be 0");
    if (dependency.event == nullptr)
      bad("event", " is NULL; both kinds of dependency need an event of the caller's");
    if (dependency.kind == SLUICE_DEPENDS_ON_EVENT && dependency.stream != nullptr) {
      bad("stream", " is given; it must be NULL for SLUICE_DEPENDS_ON_EVENT");
    }
  }
}

} // namespace sluice::abi
