//===- matrices.cpp - numbers for each row and key ------------------------------------------------------===//

#include "conformance/attention/scores/matrices.h"

namespace sluice::conformance {

std::string shared_text(uint8_t shared) {
  std::string result;
  for (int bit = 0; bit < 4; ++bit)
    if (shared >> bit & 1) result += "bhrc"[bit];
  return result.empty() ? "" : "-" + result;
}

Matrix make_matrix(const Case &c, uint8_t shared, int keys) {
  Matrix matrix;
  matrix.extent = {shared & share_batch ? 1 : c.batch, shared & share_head ? 1 : c.q_heads,
                   shared & share_row ? 1 : c.q_len, shared & share_column ? 1 : keys};
  size_t count = 1;
  for (int extent : matrix.extent)
    count *= size_t(extent);
  matrix.values.resize(count);
  return matrix;
}

} // namespace sluice::conformance
