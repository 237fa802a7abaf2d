// A transposition through padded tiles in LDS, with a template and a kernel of the same name in another file.
#include "program.h"

int run_other_tile(); // other_tile.cpp

template <class T, int tile> __global__ void transpose(const T *in, T *out, int rows, int columns) {
  __shared__ T values[tile][tile + 1];
  const int column = int(blockIdx.x) * tile + int(threadIdx.x),
            row = int(blockIdx.y) * tile + int(threadIdx.y);
  if (row < rows && column < columns) values[threadIdx.y][threadIdx.x] = in[row * columns + column];
  __syncthreads();
  const int out_column = int(blockIdx.y) * tile + int(threadIdx.x),
            out_row = int(blockIdx.x) * tile + int(threadIdx.y);
  if (out_row < columns && out_column < rows)
    out[out_row * rows + out_column] = values[threadIdx.x][threadIdx.y];
}

static __global__ void tile_size(int *out) {
  *out = 16;
}

template <class T> void run(int rows, int columns) {
  std::vector<T> in(size_t(rows * columns));
  for (size_t i = 0; i < in.size(); ++i)
    in[i] = T(i % 251);
  T *const device_in = to_device(in), *const device_out = to_device(std::vector<T>(in.size()));
  const dim3 grid((unsigned(columns) + 15) / 16, (unsigned(rows) + 15) / 16);
  transpose<T, 16><<<grid, dim3(16, 16)>>>(device_in, device_out, rows, columns);
  HIP(hipGetLastError());
  const std::vector<T> out = to_host(device_out, in.size());
  for (int row = 0; row < rows; ++row)
    for (int column = 0; column < columns; ++column)
      EXPECT(out[size_t(column * rows + row)] == in[size_t(row * columns + column)]);
}

int main() {
  run<float>(40, 70);
  run<double>(33, 16);
  run<short>(100, 31);
  int *const size = to_device(std::vector<int>(1));
  tile_size<<<1, 1>>>(size);
  HIP(hipGetLastError());
  EXPECT(to_host(size, 1)[0] == 16);
  EXPECT(run_other_tile() == 32);
  return 0;
}
