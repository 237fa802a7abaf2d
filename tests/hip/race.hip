// Mistakes whose lines reports must name; launch_test.cpp finds the lines by their comments.
#include "device.h"

inline __device__ void put(uint32 *at, uint32 value) {
  *at = value; // stores
}

KERNEL(128) race(uint32 *out) {
  __shared__ uint32 tile[128];
  put(&tile[threadIdx.x], out[threadIdx.x]); // calls
  // No barrier: half of the values come from the other wave.
  out[threadIdx.x] = tile[127 - threadIdx.x]; // loads
}
