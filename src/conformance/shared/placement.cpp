//===- placement.cpp - the positions of a tensor's elements ---------------------------------------------===//

#include "conformance/shared/placement.h"

namespace sluice::conformance {

namespace {

// The capacity layout has this many further tokens, more than a KV tile, and this many elements before the
// tensor.
constexpr int64_t spare_tokens = 70;
constexpr int64_t lead_elements = 64;

} // namespace

Placed place(const Extents &e, Layout layout) {
  const int64_t row = e.heads * e.d;
  switch (layout) {
  case Layout::bshd:
  case Layout::packed: // tensors that do not share its buffer have this layout
  case Layout::broadcast:
    return {{.stride = {e.rows * row, row, e.d, 1}}, e.outer * e.rows * row};
  case Layout::bhsd:
    return {{.stride = {e.rows * row, e.d, e.rows * e.d, 1}}, e.outer * e.rows * row};
  case Layout::sbhd:
    return {{.stride = {row, e.outer * row, e.d, 1}}, e.outer * e.rows * row};
  case Layout::padded: {
    // Only the outermost step keeps the 16-byte alignment that the beginning of a sequence has, even for FP8.
    const int64_t head = e.d + 8, token = e.heads * head + 16, outer = (e.rows * token + 24 + 15) / 16 * 16;
    return {{.offset = lead_elements, .stride = {outer, token, head, 1}},
            lead_elements + e.outer * outer + 128};
  }
  case Layout::capacity: {
    const int64_t outer = (e.rows + spare_tokens) * row;
    return {{.offset = lead_elements, .stride = {outer, row, e.d, 1}}, lead_elements + e.outer * outer};
  }
  }
  __builtin_unreachable();
}

PackedTogether place_together(const std::array<Extents, 3> &extents) {
  const auto [outer, rows, heads, d] = extents.back();
  int64_t row = 0;
  PackedTogether result;
  for (size_t i = 0; i < extents.size(); ++i) {
    result.placements[i].offset = row;
    row += extents[i].heads * extents[i].d;
  }
  for (size_t i = 0; i < extents.size(); ++i)
    result.placements[i].stride = {rows * row, row, extents[i].d, 1};
  result.buffer_elements = outer * rows * row;
  return result;
}

Placed place_x_packed(const Extents &e, int pack, Layout layout) {
  const int64_t packs = e.rows * pack, head = e.d / pack * packs;
  const int64_t page = e.heads * head + (layout == Layout::padded ? 8 * pack : 0);
  return {{.stride = {page, pack, head, packs}, .pack = pack}, e.outer * page};
}

Placed place_by_columns(const Extents &e, int pack, Layout layout) {
  const bool has_lead = layout == Layout::padded || layout == Layout::capacity;
  const int64_t lead = has_lead ? lead_elements : 0;
  const int64_t rows = e.rows + (layout == Layout::capacity && pack == 0 ? spare_tokens : 0);
  const int64_t tokens = pack != 0 ? pack : (rows + 7) / 8 * 8, packs = (rows + tokens - 1) / tokens;
  const int64_t column = tokens + (layout == Layout::padded ? 16 : 0);
  std::array<int64_t, 4> stride{};
  if (layout == Layout::sbhd)
    stride = {packs * e.d * e.heads * column, e.d * e.heads * column, column, e.heads * column};
  else
    stride = {e.heads * packs * e.d * column, e.d * column, packs * e.d * column, column};
  // Only the outermost step keeps the 16-byte alignment of the beginning of a sequence.
  stride[0] = (stride[0] + (has_lead ? 24 : 0) + 15) / 16 * 16;
  if (pack == 0) stride[1] = 1;
  return {{.offset = lead, .stride = stride, .tokens = pack}, lead + e.outer * stride[0]};
}

Placed place_lse(const Extents &e, Layout layout) {
  if (layout == Layout::sbhd)
    return {{.stride = {e.rows * e.heads, e.heads, 1, 1}}, e.outer * e.rows * e.heads};
  if (layout != Layout::padded)
    return {{.stride = {e.heads * e.rows, 1, e.rows, 1}}, e.outer * e.rows * e.heads};
  const int64_t head = e.rows + 3, outer = e.heads * head + 5;
  return {{.offset = 7, .stride = {outer, 1, head, 1}}, 7 + e.outer * outer + 11};
}

Placed place_matrix(const std::array<int, 4> &extent, int64_t columns) {
  const int64_t row = columns + 3;
  const std::array<int64_t, 4> full = {extent[1] * extent[2] * row, extent[2] * row, row, 1};
  Placed placed{{.offset = 5}, 5 + extent[0] * full[0]};
  for (size_t dim = 0; dim < 4; ++dim)
    placed.placement.stride[dim] = extent[dim] == 1 ? 0 : full[dim];
  return placed;
}

} // namespace sluice::conformance
