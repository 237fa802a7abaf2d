//===- placement.h - the positions of a tensor's elements -----------------------------------------------===//
#pragma once

#include "conformance/shared/tensors.h"

#include <array>
#include <cstddef>
#include <cstdint>

namespace sluice::conformance {

/// Element [a][b][c][d] is at offset + a * stride[0] + b * stride[1] + c * stride[2] + d * stride[3]; with
/// packs, d counts them, and the elements of one are adjacent; with tokens, b counts groups of `tokens`, and
/// the elements of one with equal d are adjacent.
struct Placement {
  int buffer = 0;
  int64_t offset = 0;
  std::array<int64_t, 4> stride{0, 0, 0, 1};
  int pack = 0;
  int64_t tokens = 0;

  int64_t at(int64_t a, int64_t b, int64_t c, int64_t d) const {
    const int64_t row = tokens == 0 ? b * stride[1] : b / tokens * stride[1] + b % tokens;
    const int64_t outer = offset + a * stride[0] + row + c * stride[2];
    return pack == 0 ? outer + d * stride[3] : outer + d / pack * stride[3] + d % pack;
  }
};

struct Extents {
  int64_t outer, rows, heads, d;
};

/// A tensor in a buffer of its own.
struct Placed {
  Placement placement;
  int64_t buffer_elements;
};

Placed place(const Extents &e, Layout layout);

/// Three tensors in one buffer, interleaved by row; the first two may have no heads.
struct PackedTogether {
  std::array<Placement, 3> placements;
  int64_t buffer_elements;
};
PackedTogether place_together(const std::array<Extents, 3> &extents);

/// [page][head][d / pack][row][pack], as in vLLM's paged attention.
Placed place_x_packed(const Extents &e, int pack, Layout layout);

/// [outer][head][row / pack][d][pack], or [outer][head][d][row] with a pack of 0, where the rows of a column
/// have memory up to a multiple of 8; in the order of sbhd, d comes before the head.
Placed place_by_columns(const Extents &e, int pack, Layout layout);

/// LSE, [outer][row][head]; its last element ends the buffer exactly, unless the layout itself leaves space
/// after it.
Placed place_lse(const Extents &e, Layout layout);

/// A bias or mask, [batch][head][row][column], with extent 1 for a dimension that repeats; rows are not
/// adjacent.
Placed place_matrix(const std::array<int, 4> &extent, int64_t columns);

} // namespace sluice::conformance
