// The places of a tensor's elements, for each of the layouts of docs/concepts/structs.md. Needs no device.
#include <sluice/sluice.hpp>

#include <cstdint>
#include <cstdio>
#include <vector>

namespace {

using sluice::TensorView;

/// The element of memory that is [a][b][c][d].
int64_t place(const sluice_tensor &tensor, int64_t a, int64_t b, int64_t c, int64_t d) {
  return a * tensor.stride[0] + b * tensor.stride[1] + c * tensor.stride[2] + d * tensor.stride[3];
}

} // namespace

int main() {
  std::vector<uint16_t> memory(2 * 3 * 2 * 8);
  // <dense>
  // 2 sequences of 3 tokens, 2 heads of 8 elements.
  const TensorView bshd = TensorView::bshd(memory.data(), SLUICE_F16, 2, 3, 2, 8); // {48, 16, 8, 1}
  const TensorView bhsd = TensorView::bhsd(memory.data(), SLUICE_F16, 2, 3, 2, 8); // {48, 8, 24, 1}
  // </dense>
  // <ragged>
  // Sequences of 4 and 2 tokens in a row: q_starts is {0, 4, 6}.
  const TensorView ragged = TensorView::ragged(memory.data(), SLUICE_F16, 6, 2, 8); // {0, 16, 8, 1}
  // </ragged>
  // <fused>
  // K is the middle third of rows that hold Q, K and V of 2 heads each.
  std::vector<uint16_t> rows(2 * 3 * (3 * 2 * 8));
  sluice_tensor k = TensorView::bshd(rows.data() + 2 * 8, SLUICE_F16, 2, 3, 2, 8);
  k.stride[0] = 3 * (3 * 2 * 8);
  k.stride[1] = 3 * 2 * 8;
  // </fused>
  std::printf("[1][2][0][5]: bshd %lld, bhsd %lld; ragged row 5: %lld; fused %lld\n",
              static_cast<long long>(place(bshd, 1, 2, 0, 5)),
              static_cast<long long>(place(bhsd, 1, 2, 0, 5)),
              static_cast<long long>(place(ragged, 0, 5, 0, 5)),
              static_cast<long long>(static_cast<uint16_t *>(k.data) - rows.data() + place(k, 1, 2, 0, 5)));
}
