//===- merge_checks.cpp - what a caller can get wrong in a merge ----------------------------------------===//
#include "abi/cache_op_checks.h"
#include "abi/tensor_checks.h"
#include "package/cache_op_kernargs.h"
#include "runtime/dtype.h"
#include "support/failure.h"

#include <limits>

namespace sluice::abi {
namespace {

using runtime::dtype_name;
using support::Failure;
using support::Status;
using support::text;

constexpr int32_t chunk = package::cache_op_chunk_elements;
constexpr int32_t max_parts = 65536;
constexpr uint32_t pointer_alignment = 16;

void check_positive(std::string_view field, int32_t value) {
  if (value <= 0) invalid(std::string(field), text(field, " is ", value, "; it must be at least 1"));
}

void check_type(std::string_view field, uint32_t type) {
  if (type == 0) invalid(std::string(field), text(field, " is missing; it must be a sluice_dtype"));
  if (type > SLUICE_F32) {
    throw Failure(Status::unsupported, std::string(field),
                  text(field, " is ", runtime::dtype_text(type), "; nearest supported: bf16"));
  }
}

void check_types(const sluice_merge &merge) {
  check_type("partial_type", merge.partial_type);
  check_type("o_type", merge.o_type);
  if (merge.partial_type != SLUICE_F32 && merge.o_type != merge.partial_type) {
    throw Failure(Status::unsupported, "o_type",
                  text("o_type is ", dtype_name(merge.o_type), " and partial_type ",
                       dtype_name(merge.partial_type),
                       "; nearest supported: ", dtype_name(merge.partial_type)));
  }
}

void check_extents(const sluice_merge &merge) {
  check_positive("parts", merge.parts);
  if (merge.parts > max_parts) {
    throw Failure(Status::unsupported, "parts",
                  text("parts is ", merge.parts, "; nearest supported: ", max_parts));
  }
  check_positive("tokens", merge.tokens);
  check_positive("heads", merge.heads);
  if (int64_t{merge.tokens} * merge.heads > std::numeric_limits<int32_t>::max()) {
    throw Failure(Status::unsupported, "tokens",
                  text("tokens is ", merge.tokens, " and heads ", merge.heads, "; nearest supported: ",
                       std::numeric_limits<int32_t>::max() / merge.heads, " tokens"));
  }
  check_positive("head_dim_v", merge.head_dim_v);
  if (merge.head_dim_v % chunk != 0) {
    invalid("head_dim_v", text("head_dim_v is ", merge.head_dim_v, "; it must be a multiple of ", chunk));
  }
  if (merge.lse_base > SLUICE_LSE_BASE_2) {
    throw Failure(Status::unsupported, "lse_base",
                  text("lse_base is ", merge.lse_base, "; nearest supported: SLUICE_LSE_BASE_2 (1)"));
  }
}

void check_rows(const Shape &rows) {
  check_pointer(rows, pointer_alignment);
  if (rows.tensor.stride[3] != 1) bad_stride(rows, 3, "it must be 1");
  check_reach(rows, UINT64_MAX);
  for (size_t i = 0; i < 3; ++i) {
    if (rows.tensor.stride[i] % chunk != 0) bad_stride(rows, i, "it must be a multiple of 8");
  }
}

void check_numbers(const Shape &numbers) {
  check_pointer(numbers, sizeof(float));
  if (numbers.tensor.stride[3] != 0 && numbers.tensor.stride[3] != 1)
    bad_stride(numbers, 3, "it must be 0 or 1");
  check_reach(numbers, UINT64_MAX);
}

void check_output(const Shape &output) {
  if (output.tensor.stride[0] != 0) bad_stride(output, 0, "it must be 0");
  check_disjoint(output);
}

} // namespace

void check_merge(const sluice_merge &merge) {
  if (merge.flags != 0) {
    throw Failure(
        Status::newer_struct, "flags",
        text("flags is ", support::hexadecimal(merge.flags), "; this library knows no flags of a merge"));
  }
  if (merge.reserved != 0) {
    throw Failure(Status::newer_struct, "reserved",
                  text("reserved is ", merge.reserved, "; it is reserved in this version, and must be 0"));
  }
  check_types(merge);
  check_extents(merge);
  const int64_t parts = merge.parts, tokens = merge.tokens, heads = merge.heads, dim = merge.head_dim_v;
  check_rows(
      {"partial", merge.partial, {parts, tokens, heads, dim}, merge.partial_type == SLUICE_F32 ? 4u : 2u});
  check_numbers({"partial_lse", merge.partial_lse, {parts, tokens, heads, 1}, sizeof(float)});
  const Shape o = {"o", merge.o, {1, tokens, heads, dim}, merge.o_type == SLUICE_F32 ? 4u : 2u};
  check_rows(o);
  check_output(o);
  const Shape lse = {"lse", merge.lse, {1, tokens, heads, 1}, sizeof(float)};
  if (merge.lse.data != nullptr) {
    check_numbers(lse);
    check_output(lse);
  } else {
    for (size_t i = 0; i < 4; ++i) {
      if (merge.lse.stride[i] != 0) bad_stride(lse, i, "it must be 0 where lse.data is NULL");
    }
  }
  const uint64_t sinks = reinterpret_cast<uint64_t>(merge.sink_logits);
  if (sinks % sizeof(float) != 0) {
    invalid("sink_logits",
            text("sink_logits is ", support::hexadecimal(sinks), "; it must be aligned to 4 bytes"));
  }
}

} // namespace sluice::abi
