// Values that compilers take from the launch: coordinates, sizes, address windows, arguments in registers.
#include "device.h"

struct Seen {
  uint32 thread[3], block[3], block_dim[3], grid_dim[3];
  uint32 windows, queue_knows_lds, marker, packet_grid_x;
};

// By every work-item, in a grid of any shape.
KERNEL(256) coordinates(Seen *seen, uint32 marker) {
  __shared__ uint32 shared;
  volatile uint32 own = marker;
  const uint32 block = (blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x;
  const uint32 thread = (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;
  Seen &mine = seen[block * blockDim.x * blockDim.y * blockDim.z + thread];
  mine.thread[0] = threadIdx.x, mine.thread[1] = threadIdx.y, mine.thread[2] = threadIdx.z;
  mine.block[0] = blockIdx.x, mine.block[1] = blockIdx.y, mine.block[2] = blockIdx.z;
  mine.block_dim[0] = blockDim.x, mine.block_dim[1] = blockDim.y, mine.block_dim[2] = blockDim.z;
  mine.grid_dim[0] = gridDim.x, mine.grid_dim[1] = gridDim.y, mine.grid_dim[2] = gridDim.z;
  void *pointers[] = {&shared, const_cast<uint32 *>(&own), seen};
  mine.windows = 0;
  for (int i = 0; i < 3; ++i)
    mine.windows |= (__builtin_amdgcn_is_shared(pointers[i]) | __builtin_amdgcn_is_private(pointers[i]) << 1) << 2 * i;
  const auto *queue = (const uint32 *)(__builtin_amdgcn_queue_ptr());
  mine.queue_knows_lds = queue[16] == uint32(reinterpret_cast<uint64>(&shared) >> 32);
  mine.marker = own;
  const auto *packet = (const uint32 *)(__builtin_amdgcn_dispatch_ptr());
  mine.packet_grid_x = packet[3];
}

// Enough arguments to fill the registers, of several sizes and alignments.
KERNEL(64) many_arguments(uint64 *out, uint32 a, uint16 b, uint8 c, uint64 d, float e, double f, uint32 g) {
  out[blockIdx.x * 64 + threadIdx.x] = a + b * 2ul + c * 3ul + d * 5 + uint64(e) * 7 + uint64(f) * 11 + g * 13ul;
}
