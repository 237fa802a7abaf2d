//===- merge_checks.cpp - what a caller can get wrong in a merge ----------------------------------------===//
#include "abi/cache_checks.h"
#include "abi/cache_op_checks.h"
#include "abi/kv_values.h"
#include "package/cache_op_kernargs.h"
#include "runtime/cache_ops.h"
#include "runtime/dtype.h"
#include "support/checked.h"
#include "support/failure.h"

#include <limits>

namespace sluice::abi {
namespace {

using runtime::dtype_name;
using runtime::dtype_text;
using support::Failure;
using support::Status;
using support::text;

constexpr int32_t chunk = package::cache_op_chunk_elements;
constexpr int32_t max_parts = 65536;
constexpr uint32_t pointer_alignment = 16;

void check_types(const sluice_merge_args &merge) {
  check_dtype("parts.type", merge.parts.type);
  check_dtype("o_format.type", merge.o_format.type);
  if (merge.parts.type > SLUICE_F32) unsupported_value("parts.type", dtype_text(merge.parts.type), "bf16");
  if (merge.parts.type != SLUICE_F32 && merge.o_format.type != merge.parts.type) {
    const std::string_view partial_type = dtype_name(merge.parts.type);
    unsupported_value("o_format.type",
                      text(dtype_text(merge.o_format.type), " and parts.type ", partial_type), partial_type);
  }
  if (merge.o_format.type > SLUICE_F32 && merge.o_format.type != SLUICE_E4M3FNUZ)
    unsupported_value("o_format.type", dtype_text(merge.o_format.type), "e4m3fnuz");
  check_scale("o_format.scale_kind", merge.o_format.scale_kind, "o_scale", merge.o_scale,
              merge.o_format.type == SLUICE_E4M3FNUZ, "unless o_format.type is e4m3fnuz");
}

void check_extents(const sluice_merge_args &merge) {
  check_at_least("parts.count", merge.parts.count, 1);
  if (merge.parts.count > max_parts) {
    throw Failure(Status::unsupported, "parts.count",
                  text("parts.count is ", merge.parts.count, "; nearest supported: ", max_parts));
  }
  check_not_negative("tokens", merge.tokens);
  check_at_least("heads", merge.heads, 1);
  if (int64_t{merge.tokens} * merge.heads > std::numeric_limits<int32_t>::max()) {
    throw Failure(Status::unsupported, "tokens",
                  text("tokens is ", merge.tokens, " and heads ", merge.heads, "; nearest supported: ",
                       std::numeric_limits<int32_t>::max() / merge.heads, " tokens"));
  }
  check_at_least("head_dim", merge.head_dim, 1);
  if (merge.head_dim % chunk != 0) {
    invalid("head_dim", text("head_dim is ", merge.head_dim, "; it must be a multiple of ", chunk));
  }
  if (merge.lse_base == SLUICE_LSE_NONE)
    invalid("lse_base",
            "lse_base is SLUICE_LSE_NONE (0); it must be SLUICE_LSE_LN (1) or SLUICE_LSE_LOG2 (2)");
  check_known("lse_base", merge.lse_base, SLUICE_LSE_LOG2, "SLUICE_LSE_LOG2 (2)");
}

/// Part 0 and the last part are within the address space, and so are those between them. Parts may follow one
/// another backwards.
void check_parts_reach(const Shape &parts) {
  sluice_tensor first = parts.tensor;
  first.stride[0] = 0;
  check_reach({parts.name, first, parts.extent, parts.element_bytes}, UINT64_MAX);
  const int64_t stride = parts.tensor.stride[0];
  if (parts.extent[0] <= 1) return;
  if (stride >= 0) return check_reach(parts, UINT64_MAX);
  const auto elements = support::checked_multiply(stride, parts.extent[0] - 1);
  const auto bytes =
      elements ? support::checked_multiply<int64_t>(*elements, parts.element_bytes) : std::nullopt;
  if (!bytes || 0 - uint64_t(*bytes) > reinterpret_cast<uint64_t>(first.data))
    invalid(text(parts.name, ".stride"), text(parts.name, " would reach beyond the address space"));
}

void check_row_strides(const Shape &rows) {
  check_stride(rows, 3, 1);
  for (size_t i = 0; i < 3; ++i)
    check_multiple(rows, i, chunk);
}

/// LSEs of several sequences: the strides of `shape` are those within a sequence.
struct Sequences {
  std::string_view stride_field;
  int64_t count, stride;
};

/// Calls `check` for the first sequence of LSEs, or of all there are, and for the last.
void check_ends(const Shape &lses, const Sequences &sequences, void (*check)(const Shape &)) {
  check(lses);
  if (sequences.count == 1) return;
  const auto elements = support::checked_multiply(sequences.stride, sequences.count - 1);
  const auto bytes = elements ? support::checked_multiply<int64_t>(*elements, sizeof(float)) : std::nullopt;
  const auto address =
      bytes ? support::checked_add(reinterpret_cast<uint64_t>(lses.tensor.data), uint64_t(*bytes))
            : std::nullopt;
  if (!address) {
    invalid(sequences.stride_field, text(sequences.stride_field, " is ", sequences.stride, "; ", lses.name,
                                         " would reach beyond the address space"));
  }
  sluice_tensor last = lses.tensor;
  last.data = reinterpret_cast<void *>(*address);
  check({lses.name, last, lses.extent, lses.element_bytes});
}

/// Calls `check` for the parts as a whole, or for each of a list.
template <typename Check>
void check_parts(const Shape &parts, std::string_view list_field, const void *const *list, uint32_t alignment,
                 Check check) {
  if (list == nullptr) {
    check_pointer(parts, alignment);
    return check(parts);
  }
  const std::string_view why = "each part has a pointer of its own";
  if (parts.tensor.data != nullptr)
    invalid(text(parts.name, ".data"), text(parts.name, ".data is given; it must be NULL where ", why));
  if (parts.tensor.stride[0] != 0) bad_stride(parts, 0, text("it must be 0 where ", why));
  for (int64_t part = 0; part < parts.extent[0]; ++part) {
    const uint64_t address = reinterpret_cast<uint64_t>(list[part]);
    if (address == 0 || address % alignment != 0) {
      std::string field = text(list_field, "[", part, "]");
      std::string message = address == 0 ? text(field, " is NULL")
                                         : text(field, " is ", support::hexadecimal(address),
                                                "; it must be aligned to ", uint64_t{alignment}, " bytes");
      invalid(std::move(field), std::move(message));
    }
    sluice_tensor one = parts.tensor;
    one.data = const_cast<void *>(list[part]);
    check({parts.name, one, {1, parts.extent[1], parts.extent[2], parts.extent[3]}, parts.element_bytes});
  }
}

/// The LSEs of all sequences are [sequence][token][head]. No two of them overlap.
void check_disjoint_sequences(const Shape &lse, const Sequences &sequences) {
  check_disjoint(lse);
  if (sequences.count == 1) return;
  // Either a sequence's LSEs end before the next one's begin, or its sequences are within the steps of tokens
  // or heads: any order of the three dimensions is allowed, as with tensors.
  sluice_tensor all = lse.tensor;
  all.stride[0] = sequences.stride;
  if (overlapping({lse.name, all, {sequences.count, lse.extent[1], lse.extent[2], 1}, lse.element_bytes})) {
    invalid(sequences.stride_field,
            text(sequences.stride_field, " is ", sequences.stride, "; elements of an output would overlap"));
  }
}

void check_flags(const sluice_merge_args &merge) {
  constexpr uint32_t known = SLUICE_MERGE_INFINITY_IS_EMPTY;
  if (merge.flags & ~known) {
    throw Failure(Status::newer_struct, "flags",
                  text("flags has unknown bits ", support::hexadecimal(merge.flags & ~known),
                       ": the library is older than the caller's header"));
  }
  check_zero_member("args", ".reserved", merge.reserved, "it is reserved");
  check_plain_format("o_format", merge.o_format);
}

void check_lists(const sluice_merge_args &merge) {
  const bool has_rows = merge.parts.o_list != nullptr;
  if (has_rows != (merge.parts.lse_list != nullptr)) {
    invalid(has_rows ? "parts.lse_list" : "parts.o_list",
            text(has_rows ? "parts.lse_list" : "parts.o_list",
                 " is NULL; parts.o_list and parts.lse_list are both given or both NULL"));
  }
  constexpr int32_t most = package::merge_most_listed_parts;
  if (has_rows && merge.parts.count > most) {
    throw Failure(
        Status::unsupported, "parts.count",
        text("parts.count is ", merge.parts.count, " with parts.o_list; nearest supported: ", most));
  }
}

/// The sequences of LSEs with this stride.
Sequences check_sequences(const sluice_merge_args &merge, std::string_view field, int64_t stride) {
  const int32_t tokens = merge.sequence_tokens;
  if (tokens < 0 || (tokens != 0 && merge.tokens % tokens != 0)) {
    invalid("sequence_tokens", text("sequence_tokens is ", tokens, "; it must divide tokens, which is ",
                                    merge.tokens, ", or be 0 for tokens of one sequence"));
  }
  check_not_negative(field, stride);
  if (tokens == 0 && stride != 0)
    invalid(field, text(field, " is ", stride, "; it must be 0 without sequence_tokens"));
  return {field, tokens == 0 ? 1 : merge.tokens / tokens, stride};
}

} // namespace

void check_merge(const sluice_merge_args &merge) {
  check_flags(merge);
  check_types(merge);
  check_extents(merge);
  if (runtime::has_nothing_to_do(merge)) return; // nothing else is used
  check_lists(merge);
  const int64_t parts = merge.parts.count, tokens = merge.tokens, heads = merge.heads, dim = merge.head_dim;
  const Sequences part_sequences =
      check_sequences(merge, "parts.lse_sequence_stride", merge.parts.lse_sequence_stride);
  const Sequences result_sequences = check_sequences(merge, "lse_sequence_stride", merge.lse_sequence_stride);
  const int64_t lse_tokens = merge.sequence_tokens == 0 ? tokens : merge.sequence_tokens;

  const Shape partial = {
      "parts.o", merge.parts.o, {parts, tokens, heads, dim}, runtime::dtype_bytes(merge.parts.type)};
  check_parts(partial, "parts.o_list", merge.parts.o_list, pointer_alignment, [](const Shape &rows) {
    check_row_strides(rows);
    check_parts_reach(rows);
  });
  const Shape partial_lse = {"parts.lse", merge.parts.lse, {parts, lse_tokens, heads, 1}, sizeof(float)};
  check_parts(partial_lse, "parts.lse_list", merge.parts.lse_list, sizeof(float),
              [&](const Shape &lses) { check_ends(lses, part_sequences, check_parts_reach); });

  const auto check_result_reach = [](const Shape &result) { check_reach(result, UINT64_MAX); };
  const Shape o = {"o", merge.o, {1, tokens, heads, dim}, runtime::dtype_bytes(merge.o_format.type)};
  check_pointer(o, pointer_alignment);
  check_row_strides(o);
  check_result_reach(o);
  check_disjoint(o);
  const Shape lse = {"lse", merge.lse, {1, lse_tokens, heads, 1}, sizeof(float)};
  if (merge.lse.data != nullptr) {
    check_pointer(lse, sizeof(float));
    check_ends(lse, result_sequences, check_result_reach);
    check_disjoint_sequences(lse, result_sequences);
  } else {
    for (size_t i = 0; i < 4; ++i) {
      if (merge.lse.stride[i] != 0) bad_stride(lse, i, "it must be 0 where lse.data is NULL");
    }
    if (merge.lse_sequence_stride != 0) {
      invalid("lse_sequence_stride", text("lse_sequence_stride is ", merge.lse_sequence_stride,
                                          "; it must be 0 where lse.data is NULL"));
    }
  }
  const uint64_t sinks = reinterpret_cast<uint64_t>(merge.sinks);
  if (sinks % sizeof(float) != 0) {
    invalid("sinks", text("sinks is ", support::hexadecimal(sinks), "; it must be aligned to 4 bytes"));
  }
}

} // namespace sluice::abi
