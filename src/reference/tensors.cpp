//===- tensors.cpp - where the rows of a sequence are, and what their elements are ----------------------===//
#include "reference/tensors.h"

#include "calls/args.h"
#include "calls/problem.h"
#include "features/diagonal.h"
#include "features/spans.h"

#include <algorithm>
#include <cstddef>
#include <limits>

namespace sluice::reference {
namespace {

int64_t length_of(const int32_t *lengths, const int32_t *starts, int32_t otherwise, int64_t b) {
  if (lengths != nullptr) return lengths[b];
  if (starts != nullptr) return int64_t{starts[b + 1]} - starts[b];
  return otherwise;
}

/// Element(j, d) for all rows and dims.
template <typename Element>
std::vector<double> load_rows(int64_t rows, int64_t dims, const Element &element) {
  std::vector<double> out;
  out.reserve(size_t(rows * dims));
  for (int64_t row = 0; row < rows; ++row) {
    for (int64_t dim = 0; dim < dims; ++dim)
      out.push_back(element(row, dim));
  }
  return out;
}

} // namespace

int64_t packed_index(const sluice_tensor &tensor, int64_t pack, int64_t a, int64_t b, int64_t head,
                     int64_t dim) {
  return pack == 0 ? index_of(tensor, a, b, head, dim)
                   : index_of(tensor, a, b, head, dim / pack) + dim % pack;
}

int64_t column_index(const sluice_tensor &tensor, int64_t pack, int64_t a, int64_t token, int64_t head,
                     int64_t dim) {
  if (pack == 0 || pack == SLUICE_PACK_ALL) return index_of(tensor, a, token, head, dim);
  return index_of(tensor, a, token / pack, head, dim) + token % pack;
}

Sequence::Sequence(const calls::Problem &problem, const calls::Args &args, int64_t number)
    : problem(problem), args(args), b(number),
      q_rows(length_of(args.q_lengths, args.q_starts, args.q_len, number)),
      keys(length_of(args.kv_lengths, args.kv_starts, args.kv_len, number)) {}

Row Sequence::q_row(int64_t i) const {
  if (args.q_starts != nullptr) return {0, args.q_starts[b] + i};
  return {b, i};
}

int64_t Sequence::q_number(int64_t i) const {
  return args.q_starts != nullptr ? args.q_starts[b] + i : b * args.q_len + i;
}

PageTable Sequence::table() const {
  return {args.page_table,
          (problem.flags & calls::page_index_64) != 0,
          problem.page_table_kind == SLUICE_PAGE_TABLE_CSR,
          args.page_table_stride,
          args.page_starts,
          args.page_table_head_stride};
}

int64_t Sequence::page_entry(int64_t n, int64_t head) const {
  return table().place(b, n, head);
}

int64_t Sequence::page(int64_t n, int64_t head) const {
  return table().page(page_entry(n, head));
}

bool Sequence::is_missing(int64_t j, int64_t head) const {
  return problem.mode == calls::paged && page(j / problem.page_size, head) < 0;
}

bool Sequence::is_page_before_window(int64_t n) const {
  const bool from_bottom = problem.mask_alignment != SLUICE_TOP_LEFT;
  if (!(problem.flags & calls::window_left) || !from_bottom) return false;
  // By row 0; no row sees keys before it.
  const int64_t first_seen =
      std::min(shift() - problem.window_left, features::span_of(args, b, shift()).first);
  return n * problem.page_size >= problem.sink_tokens && (n + 1) * problem.page_size <= first_seen;
}

int64_t Sequence::shift() const {
  return features::first_diagonal(problem, args, b, q_rows, keys);
}

Row Sequence::kv_row(int64_t j, int64_t head) const {
  if (problem.mode == calls::paged) return {page(j / problem.page_size, head), j % problem.page_size};
  if (args.kv_starts != nullptr) return {0, args.kv_starts[b] + j};
  return {b, j};
}

int64_t Sequence::k_index(int64_t j, int64_t head, int64_t dim) const {
  const Row row = kv_row(j, head);
  return packed_index(args.k, problem.k_pack, row.outer, row.inner, head, dim);
}

template <typename Element>
std::vector<double> Sequence::load_keys(int64_t head, int64_t dims, const Element &element) const {
  return load_rows(keys, dims, [&](int64_t j, int64_t dim) {
    const bool paged = problem.mode == calls::paged;
    if (paged && (is_page_before_window(j / problem.page_size) || is_missing(j, head)))
      return std::numeric_limits<double>::quiet_NaN();
    return element(j, dim);
  });
}

std::vector<double> Sequence::load_q(int64_t head) const {
  return load_rows(q_rows, problem.head_dim_qk, [&](int64_t i, int64_t dim) {
    const Row row = q_row(i);
    return load(args.q.data, problem.q_type, index_of(args.q, row.outer, row.inner, head, dim));
  });
}

std::vector<double> Sequence::load_k(int64_t head) const {
  return load_keys(head, problem.head_dim_qk, [&](int64_t j, int64_t dim) {
    return in_group(problem.k_scale_kind, args.k_scales, args.k_zeros, j, head, dim,
                    load(args.k.data, problem.k_type, k_index(j, head, dim)));
  });
}

std::vector<double> Sequence::load_v(int64_t head) const {
  return load_keys(head, problem.head_dim_v, [&](int64_t j, int64_t dim) {
    const Row row = kv_row(j, head);
    const double number = problem.flags & calls::v_in_k
                              ? load(args.k.data, problem.v_type, k_index(j, head, dim))
                              : load(args.v.data, problem.v_type,
                                     column_index(args.v, problem.v_pack, row.outer, row.inner, head, dim));
    return in_group(problem.v_scale_kind, args.v_scales, args.v_zeros, j, head, dim, number);
  });
}

double Sequence::in_group(uint32_t kind, const sluice_tensor &scales, const sluice_tensor &zeros, int64_t j,
                          int64_t head, int64_t dim, double number) const {
  if (kind != SLUICE_SCALE_PER_GROUP) return number;
  const Row row = kv_row(j, head);
  const int64_t at = index_of(scales, row.outer, row.inner, head, dim / problem.scale_group);
  const double zero = problem.flags & calls::zero_points ? load(zeros.data, SLUICE_F16, at) : 8;
  return load(scales.data, SLUICE_F16, at) * (number - zero);
}

double Sequence::key_scale(uint32_t kind, const float *few, const sluice_tensor &scales, int64_t j,
                           int64_t head) const {
  if (kind == SLUICE_SCALE_NONE || kind == SLUICE_SCALE_PER_GROUP) return 1;
  if (kind == SLUICE_SCALE_PER_TENSOR) return few[0];
  if (kind == SLUICE_SCALE_PER_HEAD) return few[head];
  const Row row = kv_row(j, head);
  return load(scales.data, SLUICE_F32, index_of(scales, row.outer, row.inner, head, 0));
}

double Sequence::k_scale(int64_t j, int64_t head) const {
  return key_scale(problem.k_scale_kind, args.k_scale, args.k_scales, j, head);
}

double Sequence::v_scale(int64_t j, int64_t head) const {
  return key_scale(problem.v_scale_kind, args.v_scale, args.v_scales, j, head);
}

calls::Args prefixes_as_sequences(const calls::Args &args) {
  calls::Args out = args;
  out.batch = args.prefix_count;
  out.kv_len = args.prefix_len;
  out.q_starts = args.prefix_q_starts;
  out.q_lengths = nullptr;
  out.kv_starts = nullptr;
  out.kv_lengths = args.prefix_lengths;
  if (args.prefix_k.data != nullptr) { // else they are in the pages of k and v
    out.k = args.prefix_k;
    out.v = args.prefix_v;
  }
  out.page_table = args.prefix_page_table;
  out.page_table_stride = args.prefix_page_table_stride;
  out.page_table_head_stride = 0; // heads share the tables of prefixes
  out.page_starts = args.prefix_page_starts;
  return out;
}

std::optional<int64_t> prefix_of(const calls::Problem &problem, const calls::Args &args, int64_t q_number) {
  if (!(problem.flags & calls::prefixes)) return std::nullopt;
  for (int64_t p = 0; p < args.prefix_count; ++p) {
    if (args.prefix_q_starts[p] <= q_number && q_number < args.prefix_q_starts[p + 1]) return p;
  }
  return std::nullopt;
}

} // namespace sluice::reference
