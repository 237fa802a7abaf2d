// Second fat binary of transpose.cpp, with a kernel whose name the first has too.
#include "program.h"

static __global__ void tile_size(int *out) {
  *out = 32;
}

int run_other_tile() {
  int *const size = to_device(std::vector<int>(1));
  tile_size<<<1, 1>>>(size);
  HIP(hipGetLastError());
  return to_host(size, 1)[0];
}
