// Calls that the compiler cannot see through: recursion, pointers to functions, virtual functions, stacks
// whose size is only known at run time.
#include "device.h"

#define SELF (blockIdx.x * blockDim.x + threadIdx.x)

__device__ __noinline__ uint32 fibonacci(uint32 n) { return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2); }

__device__ bool is_odd(uint32 n);
__device__ __noinline__ bool is_even(uint32 n) { return n == 0 || is_odd(n - 1); }
__device__ __noinline__ bool is_odd(uint32 n) { return n != 0 && is_even(n - 1); }

__device__ __noinline__ void quicksort(uint32 *first, uint32 *last) {
  if (last - first < 2) return;
  const uint32 pivot = first[(last - first) / 2];
  uint32 *low = first, *high = last - 1;
  while (low <= high) {
    while (*low < pivot) ++low;
    while (*high > pivot) --high;
    if (low > high) break;
    const uint32 t = *low;
    *low++ = *high;
    *high-- = t;
  }
  quicksort(first, high + 1);
  quicksort(low, last);
}

KERNEL(64) recursion(uint32 *out, const uint32 *in) {
  uint32 data[16];
  for (int i = 0; i < 16; ++i) data[i] = in[SELF * 16 + i];
  quicksort(data, data + 16);
  for (int i = 0; i < 16; ++i) out[SELF * 18 + i] = data[i];
  out[SELF * 18 + 16] = fibonacci(threadIdx.x % 11);
  out[SELF * 18 + 17] = is_even(threadIdx.x % 20);
}

using Function = uint32 (*)(uint32, uint32);
__device__ uint32 add(uint32 a, uint32 b) { return a + b; }
__device__ uint32 multiply(uint32 a, uint32 b) { return a * b; }
__device__ uint32 mix(uint32 a, uint32 b) {
  uint32 local[8];
  for (uint32 i = 0; i < 8; ++i) local[(i + b) & 7] = a >> i;
  return local[a & 7] ^ b;
}
__device__ uint32 deeper(uint32 a, uint32 b) { return fibonacci(a & 7) + multiply(a, b); }
__device__ Function functions[] = {add, multiply, mix, deeper};

// Lanes call different functions.
KERNEL(64) function_pointers(uint32 *out, const uint32 *in) {
  uint32 x = in[SELF];
  for (int i = 0; i < 4; ++i) x = functions[(x >> 3 ^ threadIdx.x) & 3](x, uint32(i) + 3);
  out[SELF] = x;
}

struct Shape {
  __device__ virtual float area() const { return 0; }
  __device__ virtual float scaled(float by) const { return area() * by; }
};
struct Square final : Shape {
  float side;
  __device__ explicit Square(float side) : side(side) {}
  __device__ float area() const override { return side * side; }
};
struct Rectangle final : Shape {
  float a, b;
  __device__ Rectangle(float a, float b) : a(a), b(b) {}
  __device__ float area() const override { return a * b; }
  __device__ float scaled(float by) const override { return a * by * b * by; }
};
KERNEL(64) virtual_functions(float *out, const float *in) {
  const Square square(in[SELF]);
  const Rectangle rectangle(in[SELF], 3);
  const Shape *shapes[] = {&square, &rectangle};
  const Shape *volatile chosen = shapes[threadIdx.x % 2];
  out[SELF] = chosen->area() + chosen->scaled(2) * 16;
}

// Memory on the stack whose size each lane decides.
KERNEL(64) dynamic_stack(uint32 *out) {
  const uint32 n = threadIdx.x % 13 + 1;
  uint32 *first = static_cast<uint32 *>(__builtin_alloca(n * 4));
  for (uint32 i = 0; i < n; ++i) first[i] = i * i + threadIdx.x;
  uint32 sum = fibonacci(n);
  for (uint32 i = 0; i < n; ++i) sum = sum * 3 + first[n - 1 - i];
  out[SELF] = sum;
}
