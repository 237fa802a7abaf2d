// The places of a tensor's elements, for each of the layouts of docs/concepts/structs.md. Needs no device.
#include <sluice/make.h>

#include <cstdint>
#include <cstdio>
#include <vector>

namespace {

/// The element of memory that is [a][b][c][d].
int64_t place(const sluice_tensor &tensor, int64_t a, int64_t b, int64_t c, int64_t d) {
  return a * tensor.stride[0] + b * tensor.stride[1] + c * tensor.stride[2] + d * tensor.stride[3];
}

} // namespace

int main() {
  std::vector<uint16_t> memory(2 * 3 * 2 * 8);
  // <dense>
  // Sequences of 3 tokens, 2 heads of 8 elements.
  const sluice_tensor bshd = sluice_bshd(memory.data(), 3, 2, 8); // {48, 16, 8, 1}
  const sluice_tensor bhsd = sluice_bhsd(memory.data(), 3, 2, 8); // {48, 8, 24, 1}
  // </dense>
  // <ragged>
  // Sequences of 4 and 2 tokens in a row: starts are {0, 4, 6}.
  const sluice_tensor ragged = sluice_packed(memory.data(), 2, 8); // {0, 16, 8, 1}
  // </ragged>
  // <fused>
  // K is the middle third of rows that hold Q, K and V of 2 heads each.
  std::vector<uint16_t> rows(2 * 3 * (3 * 2 * 8));
  const sluice_tensor k =
      sluice_make_tensor(rows.data() + 2 * 8, 3 * (3 * 2 * 8), 3 * 2 * 8, 8, 1); // {144, 48, 8, 1}
  // </fused>
  std::printf("[1][2][0][5]: bshd %lld, bhsd %lld; ragged row 5: %lld; fused %lld\n",
              static_cast<long long>(place(bshd, 1, 2, 0, 5)),
              static_cast<long long>(place(bhsd, 1, 2, 0, 5)),
              static_cast<long long>(place(ragged, 0, 5, 0, 5)),
              static_cast<long long>(static_cast<uint16_t *>(k.data) - rows.data() + place(k, 1, 2, 0, 5)));
}
