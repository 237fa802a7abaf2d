// Independent work-items: wide integers, floating point, private memory, divergent control flow.
#include "device.h"

#define SELF (blockIdx.x * blockDim.x + threadIdx.x)

KERNEL(64) wide_integers(uint64 *out, const uint64 *in) {
  const uint64 a = in[2 * SELF], b = in[2 * SELF + 1] | 1;
  uint64 *o = out + 10 * SELF;
  o[0] = a * b;
  o[1] = a / b;
  o[2] = a % b;
  o[3] = uint64(int64(a) / int64(b >> 7 | 1));
  o[4] = uint64((unsigned __int128)a * b >> 64);
  o[5] = a << (b & 63) | a >> (64 - (b & 63)) % 64;
  o[6] = uint64(int64(a) >> (b & 63));
  o[7] = uint64(__builtin_popcountl(a) + __builtin_clzl(b) * 100 + __builtin_ctzl(b << 3) * 10000);
  o[8] = __builtin_bswap64(a) ^ __builtin_bitreverse64(b);
  o[9] = uint64(int(a) / (int(b) | 1)) + uint32(a) % uint16(b);
}

KERNEL(64) doubles(double *out, const double *in) {
  const double a = in[2 * SELF], b = in[2 * SELF + 1];
  double *o = out + 8 * SELF;
  o[0] = a / b;
  o[1] = __builtin_sqrt(__builtin_fabs(a));
  o[2] = __builtin_fma(a, b, -a);
  o[3] = double(int64(a)) + double(uint64(__builtin_fabs(b)));
  o[4] = double(float(a)) - double(int(b));
  o[5] = __builtin_floor(a) * 3 + __builtin_ceil(b) + __builtin_trunc(a) + __builtin_rint(b);
  o[6] = a < b ? __builtin_fmin(a, 0.25) : __builtin_fmax(b, -0.25);
  o[7] = __builtin_ldexp(a, int(b) % 64);
}

using half2 = _Float16 __attribute__((ext_vector_type(2)));
KERNEL(64) floats(float *out, const float *in) {
  const float a = in[2 * SELF], b = in[2 * SELF + 1];
  float *o = out + 6 * SELF;
  const half2 x = {_Float16(a), _Float16(b)};
  const half2 y = x * half2{2, 0.5f} + x.yx;
  o[0] = float(y.x);
  o[1] = float(y.y);
  o[2] = float(__bf16(a));
  o[3] = __builtin_sqrtf(__builtin_fabsf(a));
  o[4] = a / b;
  o[5] = __builtin_exp2f(b) + __builtin_log2f(__builtin_fabsf(a));
}

struct Matrix {
  float m[3][4];
};
struct __attribute__((packed)) Packed {
  uint8 tag;
  uint32 value; // at an odd address
  uint16 bits : 5;
  uint16 more : 11;
};
struct Scene {
  Matrix transform;
  struct Light {
    float direction[3];
    uint8 on;
  } lights[3];
  Packed packed;
  double scale;
};
__device__ __noinline__ Matrix multiply(Matrix a, Matrix b) {
  Matrix c;
  for (int i = 0; i < 3; ++i)
    for (int j = 0; j < 4; ++j) {
      c.m[i][j] = j == 3 ? a.m[i][3] : 0;
      for (int k = 0; k < 3; ++k) c.m[i][j] += a.m[i][k] * b.m[k][j];
    }
  return c;
}
KERNEL(64) structs(float *out, Scene scene, const Packed *packed) {
  Matrix m = scene.transform;
  for (uint32 i = 0; i < (threadIdx.x & 3); ++i) m = multiply(m, scene.transform);
  const Packed p = packed[SELF];
  float sum = float(p.value % 1000) + float(p.bits) * 2 + float(p.more) + float(scene.packed.value) + p.tag;
  for (auto &light : scene.lights)
    if (light.on)
      for (int i = 0; i < 3; ++i) sum += light.direction[i] * m.m[i][3];
  out[SELF] = sum * float(scene.scale);
}

// With optimisation in registers that are indexed at run time, without it in scratch.
KERNEL(64) local_array(uint32 *out, const uint32 *in) {
  uint32 sorted[24];
  for (int i = 0; i < 24; ++i) {
    const uint32 value = in[SELF * 24 + i];
    int at = i;
    for (; at > 0 && sorted[at - 1] > value; --at) sorted[at] = sorted[at - 1];
    sorted[at] = value;
  }
  for (int i = 0; i < 24; ++i) out[SELF * 24 + i] = sorted[i];
}

// Lanes run different programs of a small stack machine.
enum : uint8 { op_push, op_add, op_sub, op_mul, op_dup, op_swap, op_shr, op_xor, op_jump_unless, op_rotate, op_not, op_end };
KERNEL(64) interpreter(uint32 *out, const uint8 *programs, uint32 length) {
  const uint8 *program = programs + SELF * length;
  volatile uint32 stack[16]; // stays in scratch
  uint32 top = 0, steps = 0;
  for (int i = 0; i < 16; ++i) stack[i] = uint32(SELF) * 77 + i;
  for (uint32 pc = 0; pc < length && steps < 200; ++steps) {
    const uint8 op = program[pc++];
    volatile uint32 &a = stack[top & 15], &b = stack[(top - 1) & 15];
    switch (op % 12) {
    case op_push: stack[++top & 15] = op; break;
    case op_add: b = b + a, --top; break;
    case op_sub: b = b - a, --top; break;
    case op_mul: b = b * a, --top; break;
    case op_dup: stack[(top + 1) & 15] = a, ++top; break;
    case op_swap: { const uint32 t = a; a = b; b = t; break; }
    case op_shr: a = a >> (op & 7); break;
    case op_xor: b = b ^ a, --top; break;
    case op_jump_unless: if ((a & 1) == 0 && pc >= 3) { pc -= 3; a = a + 3; } break;
    case op_rotate: a = a << 5 | a >> 27; break;
    case op_not: a = ~a; break;
    case op_end: pc = length; break;
    }
  }
  out[SELF] = stack[top & 15] * 31 + steps;
}

// Nested loops with every kind of exit.
KERNEL(256) divergence(uint32 *out, const uint32 *in) {
  uint32 x = in[SELF], sum = 0;
  for (uint32 i = 0; i < (x & 7); ++i) {
    if (((x >> i) & 3) == 1) continue;
    for (uint32 j = i;; ++j) {
      sum += x * j;
      if (sum % 5 == 0) goto out_of_both;
      if (j > (x >> 8 & 15)) break;
      if (((j ^ sum) & 7) == 3) {
        x = x * 5 + 1;
        do { sum ^= x; x >>= 1; } while (x & 1);
      }
    }
    if (sum > 0xf0000000) { out[SELF] = sum; return; }
  }
  sum += 1000;
out_of_both:
  out[SELF] = sum ^ x;
}
