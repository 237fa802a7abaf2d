//===- call_rows.h - how much of its tensors a call uses ------------------------------------------------===//
//
// The checks of a call and the arguments of its kernels ask here how far each index of a tensor goes. The
// stride of an index that is always 0 means nothing: it is neither checked nor passed on.
//
//===----------------------------------------------------------------------------------------------------===//
#pragma once

#include "calls/args.h"
#include "calls/problem.h"

#include <sluice/sluice.h>

#include <cstdint>

namespace sluice::runtime {

/// The first two extents of a tensor: sequences, pages or prefixes, and the rows of each. With starts, one
/// and all rows. Where only the device knows how many there are, two stand for any number.
struct Rows {
  int64_t outer, inner;

  constexpr bool none() const { return outer == 0 || inner == 0; }
};

constexpr Rows started_rows(int64_t tokens) {
  return {1, tokens != 0 ? tokens : 2};
}

constexpr Rows q_rows(const calls::Args &args) {
  return args.q_starts != nullptr ? started_rows(args.q_tokens) : Rows{args.batch, args.q_len};
}

constexpr Rows page_rows(const calls::Problem &problem, const calls::Args &args) {
  return {args.page_count != 0 ? args.page_count : 2, problem.page_size};
}

/// Of k and v, and of the scales of their keys.
constexpr Rows kv_rows(const calls::Problem &problem, const calls::Args &args) {
  if (args.kv_len == 0) return {0, 0};
  if (problem.mode == calls::paged) return page_rows(problem, args);
  return args.kv_starts != nullptr ? started_rows(args.kv_tokens) : Rows{args.batch, args.kv_len};
}

/// Of the keys of prefixes.
constexpr Rows prefix_kv_rows(const calls::Problem &problem, const calls::Args &args) {
  if (args.prefix_len == 0) return {0, 0};
  if (problem.mode == calls::paged) return page_rows(problem, args);
  return {args.prefix_count, args.prefix_len};
}

/// A call without rows has nothing to compute or to store.
constexpr bool has_no_rows(const calls::Args &args) {
  return args.batch == 0 || args.q_len == 0;
}

/// The tensor with strides of contiguous rows, of `row` elements in each of `heads`, for indices that are
/// always 0.
constexpr sluice_tensor with_used_strides(const sluice_tensor &tensor, const Rows &rows, int64_t heads,
                                          int64_t row) {
  const auto &stride = tensor.stride;
  return {tensor.data,
          {rows.outer <= 1 ? 0 : stride[0], rows.inner <= 1 ? row * heads : stride[1],
           heads <= 1 ? row : stride[2], stride[3]}};
}

} // namespace sluice::runtime
