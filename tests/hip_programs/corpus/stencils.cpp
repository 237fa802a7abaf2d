// Sums of neighbours: with a halo in LDS, in two buffers, in place.
#include "corpus.h"

namespace {

constexpr int block = 128, blocks = 6, count = block * blocks;

template <Twin twin> __global__ void with_halo(const int *in, int *out) {
  __shared__ int values[block + 2];
  const int item = int(threadIdx.x), i = int(blockIdx.x) * block + item;
  values[item + 1] = in[i];
  if (item == 0) values[0] = i > 0 ? in[i - 1] : 0;
  // The wrong twin forgets the other end.
  if (twin == Twin::right && item == block - 1) values[block + 1] = i + 1 < count ? in[i + 1] : 0;
  __syncthreads();
  out[i] = values[item] + values[item + 1] + values[item + 2];
}

template <Twin twin> __global__ void in_two_buffers(const int *in, int *out) {
  const int i = int(blockIdx.x * blockDim.x + threadIdx.x);
  const bool last = twin == Twin::right && i + 1 == count;
  out[i] = (i > 0 ? in[i - 1] : 0) + in[i] + (last ? 0 : in[i + 1]);
}

std::vector<int> sums_of(const std::vector<int> &in) {
  std::vector<int> sums(in.size());
  for (size_t i = 0; i < in.size(); ++i)
    sums[i] = (i > 0 ? in[i - 1] : 0) + in[i] + (i + 1 < in.size() ? in[i + 1] : 0);
  return sums;
}

template <Twin twin> void halo() {
  const std::vector<int> in = random_ints(count, 7);
  int *const out = zeros<int>(count);
  with_halo<twin><<<blocks, block>>>(to_device(in), out);
  expect(twin, out, sums_of(in));
}

template <Twin twin> void two_buffers() {
  const std::vector<int> in = random_ints(count, 8);
  int *const out = zeros<int>(count);
  in_two_buffers<twin><<<blocks, block>>>(to_device(in), out);
  expect(twin, out, sums_of(in));
}

} // namespace

CASE(stencil_with_halo, "") {
  halo<Twin::right>();
}
CASE(stencil_with_half_a_halo, "lds_uninitialised") {
  halo<Twin::wrong>();
}
CASE(stencil_in_two_buffers, "") {
  two_buffers<Twin::right>();
}
CASE(stencil_past_the_end, "global_out_of_bounds") {
  two_buffers<Twin::wrong>();
}
CASE(stencil_in_place, "global_race") {
  int *const values = to_device(random_ints(count, 9));
  in_two_buffers<Twin::right><<<blocks, block>>>(values, values);
  finish();
}
CASE(stencil_of_fresh_memory, "register_uninitialised") {
  in_two_buffers<Twin::right><<<blocks, block>>>(fresh<int>(count), zeros<int>(count));
  finish();
}
