// Programs as a compiler generates them, at -O3, without any library: each has a counterpart on the host in
// programs_test.cpp.
#pragma OPENCL EXTENSION cl_khr_fp16 : enable

typedef _Float16 half4_ __attribute__((ext_vector_type(4)));
typedef float float4_ __attribute__((ext_vector_type(4)));
typedef float float16_ __attribute__((ext_vector_type(16)));
typedef short short4_ __attribute__((ext_vector_type(4)));

#define LANE __builtin_amdgcn_workitem_id_x()
#define GROUP __builtin_amdgcn_workgroup_id_x()

static void group_barrier(void) {
  __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup");
  __builtin_amdgcn_s_barrier();
  __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup");
}

static float from_lane(float x, int lane) {
  return __builtin_bit_cast(float, __builtin_amdgcn_ds_bpermute(lane * 4, __builtin_bit_cast(int, x)));
}

__attribute__((reqd_work_group_size(256, 1, 1))) kernel void softmax(global float *out, global const float *in,
                                                                     int columns) {
  local float part[4];
  const int t = LANE;
  global const float *row = in + GROUP * columns;
  float largest = -__builtin_inff();
  for (int i = t; i < columns; i += 256) largest = __builtin_fmaxf(largest, row[i]);
  for (int s = 32; s > 0; s >>= 1) largest = __builtin_fmaxf(largest, from_lane(largest, (t & 63) ^ s));
  if ((t & 63) == 0) part[t / 64] = largest;
  group_barrier();
  largest = __builtin_fmaxf(__builtin_fmaxf(part[0], part[1]), __builtin_fmaxf(part[2], part[3]));
  group_barrier();
  float sum = 0;
  for (int i = t; i < columns; i += 256) sum += __builtin_amdgcn_exp2f((row[i] - largest) * 1.44269504f);
  for (int s = 32; s > 0; s >>= 1) sum += from_lane(sum, (t & 63) ^ s);
  if ((t & 63) == 0) part[t / 64] = sum;
  group_barrier();
  sum = part[0] + part[1] + part[2] + part[3];
  for (int i = t; i < columns; i += 256)
    out[GROUP * columns + i] = __builtin_amdgcn_exp2f((row[i] - largest) * 1.44269504f) / sum;
}

// The sum of a whole array by atomics, and a histogram in LDS.
__attribute__((reqd_work_group_size(256, 1, 1))) kernel void histogram(global unsigned *bins, global const unsigned char *in,
                                                                       int n) {
  local unsigned mine[256];
  mine[LANE] = 0;
  group_barrier();
  for (int i = GROUP * 256 + LANE; i < n; i += 1024)
    __scoped_atomic_fetch_add(&mine[in[i]], 1u, __ATOMIC_RELAXED, __MEMORY_SCOPE_WRKGRP);
  group_barrier();
  __scoped_atomic_fetch_add(&bins[LANE], mine[LANE], __ATOMIC_RELAXED, __MEMORY_SCOPE_DEVICE);
}

// Loops of different lengths per lane, 64-bit arithmetic, early exits.
__attribute__((reqd_work_group_size(64, 1, 1))) kernel void collatz(global unsigned *steps, global const unsigned *start) {
  const int i = GROUP * 64 + LANE;
  unsigned long x = start[i];
  unsigned count = 0;
  while (x != 1) {
    if (x & 1) x = 3 * x + 1;
    else x >>= 1;
    if (++count == 10000) break;
  }
  steps[i] = count;
}

// Integer division and remainder, signed and unsigned, 32 and 64 bits.
__attribute__((reqd_work_group_size(64, 1, 1))) kernel void divide(global long *out, global const long *in) {
  const int i = GROUP * 64 + LANE;
  const long a = in[2 * i], b = in[2 * i + 1];
  out[6 * i] = a / b;
  out[6 * i + 1] = a % b;
  out[6 * i + 2] = (long)((unsigned long)a / (unsigned long)b);
  out[6 * i + 3] = (int)a / ((int)b | 1);
  out[6 * i + 4] = (unsigned)a % ((unsigned)b | 1);
  out[6 * i + 5] = (long)(a * b + (long)((float)a / (float)b));
}

// An array per lane that is indexed at run time: scratch.
__attribute__((reqd_work_group_size(64, 1, 1))) kernel void permute_private(global unsigned *out, global const unsigned *in) {
  volatile unsigned table[16];
  const int i = LANE;
  for (int k = 0; k < 16; ++k) table[k] = in[i * 16 + k];
  unsigned at = i & 15, sum = 0;
  for (int k = 0; k < 16; ++k) {
    at = table[at] & 15;
    table[at] += k;
    sum = sum * 31 + table[at];
  }
  out[i] = sum;
}

// C = A * B with 32x32x8 MFMAs; A is M x K, B is K x N, row by row; one wave per 32 x 32 tile.
__attribute__((reqd_work_group_size(64, 1, 1))) kernel void matmul_f16(global float *c, global const _Float16 *a,
                                                                       global const _Float16 *b, int n, int k) {
  const int lane = LANE, row0 = __builtin_amdgcn_workgroup_id_y() * 32, column0 = GROUP * 32;
  float16_ sum = 0;
  for (int kk = 0; kk < k; kk += 8) {
    half4_ x, y;
    for (int e = 0; e < 4; ++e) {
      x[e] = a[(row0 + (lane & 31)) * k + kk + (lane >> 5) * 4 + e];
      y[e] = b[(kk + (lane >> 5) * 4 + e) * n + column0 + (lane & 31)];
    }
    sum = __builtin_amdgcn_mfma_f32_32x32x8f16(x, y, sum, 0, 0, 0);
  }
  for (int r = 0; r < 16; ++r)
    c[(row0 + 8 * (r / 4) + 4 * (lane >> 5) + r % 4) * n + column0 + (lane & 31)] = sum[r];
}

__attribute__((reqd_work_group_size(64, 1, 1))) kernel void matmul_bf16(global float *c, global const short *a,
                                                                        global const short *b, int n, int k) {
  const int lane = LANE, row0 = __builtin_amdgcn_workgroup_id_y() * 16, column0 = GROUP * 16;
  float4_ sum = 0;
  for (int kk = 0; kk < k; kk += 16) {
    short4_ x, y;
    for (int e = 0; e < 4; ++e) {
      x[e] = a[(row0 + (lane & 15)) * k + kk + (lane >> 4) * 4 + e];
      y[e] = b[(kk + (lane >> 4) * 4 + e) * n + column0 + (lane & 15)];
    }
    sum = __builtin_amdgcn_mfma_f32_16x16x16bf16_1k(x, y, sum, 0, 0, 0);
  }
  for (int r = 0; r < 4; ++r) c[(row0 + 4 * (lane >> 4) + r) * n + column0 + (lane & 15)] = sum[r];
}

__attribute__((reqd_work_group_size(64, 1, 1))) kernel void matmul_f32(global float *c, global const float *a,
                                                                       global const float *b, int n, int k) {
  const int lane = LANE, row0 = __builtin_amdgcn_workgroup_id_y() * 16, column0 = GROUP * 16;
  float4_ sum = 0;
  for (int kk = 0; kk < k; kk += 4)
    sum = __builtin_amdgcn_mfma_f32_16x16x4f32(a[(row0 + (lane & 15)) * k + kk + (lane >> 4)],
                                               b[(kk + (lane >> 4)) * n + column0 + (lane & 15)], sum, 0, 0, 0);
  for (int r = 0; r < 4; ++r) c[(row0 + 4 * (lane >> 4) + r) * n + column0 + (lane & 15)] = sum[r];
}

// The other types of the matrix core, one wave per tile; B comes as columns.
typedef double double4_ __attribute__((ext_vector_type(4)));
typedef float float2_ __attribute__((ext_vector_type(2)));
typedef int int4_ __attribute__((ext_vector_type(4)));
typedef _Float16 half8_ __attribute__((ext_vector_type(8)));

__attribute__((reqd_work_group_size(64, 1, 1))) kernel void matmul_f64(global double *c, global const double *a,
                                                                       global const double *b, int n, int k) {
  const int lane = LANE, row0 = __builtin_amdgcn_workgroup_id_y() * 16, column0 = GROUP * 16;
  double4_ sum = 0;
  for (int kk = lane >> 4; kk < k; kk += 4)
    sum = __builtin_amdgcn_mfma_f64_16x16x4f64(a[(row0 + (lane & 15)) * k + kk], b[(column0 + (lane & 15)) * k + kk],
                                               sum, 0, 0, 0);
  for (int r = 0; r < 4; ++r) c[(row0 + 4 * r + (lane >> 4)) * n + column0 + (lane & 15)] = sum[r];
}

__attribute__((reqd_work_group_size(64, 1, 1))) kernel void matmul_xf32(global float *c, global const float *a,
                                                                        global const float *b, int n, int k) {
  const int lane = LANE, row0 = __builtin_amdgcn_workgroup_id_y() * 16, column0 = GROUP * 16;
  float4_ sum = 0;
  for (int kk = (lane >> 4) * 2; kk < k; kk += 8)
    sum = __builtin_amdgcn_mfma_f32_16x16x8_xf32(*(global const float2_ *)(a + (row0 + (lane & 15)) * k + kk),
                                                 *(global const float2_ *)(b + (column0 + (lane & 15)) * k + kk), sum, 0,
                                                 0, 0);
  for (int r = 0; r < 4; ++r) c[(row0 + 4 * (lane >> 4) + r) * n + column0 + (lane & 15)] = sum[r];
}

__attribute__((reqd_work_group_size(64, 1, 1))) kernel void matmul_i8(global int *c, global const char *a,
                                                                      global const char *b, int n, int k) {
  const int lane = LANE, row0 = __builtin_amdgcn_workgroup_id_y() * 16, column0 = GROUP * 16;
  int4_ sum = 0;
  for (int kk = (lane >> 4) * 8; kk < k; kk += 32)
    sum = __builtin_amdgcn_mfma_i32_16x16x32_i8(*(global const long *)(a + (row0 + (lane & 15)) * k + kk),
                                                *(global const long *)(b + (column0 + (lane & 15)) * k + kk), sum, 0, 0, 0);
  for (int r = 0; r < 4; ++r) c[(row0 + 4 * (lane >> 4) + r) * n + column0 + (lane & 15)] = sum[r];
}

__attribute__((reqd_work_group_size(64, 1, 1))) kernel void matmul_fp8_bf8(global float *c, global const char *a,
                                                                           global const char *b, int n, int k) {
  const int lane = LANE, row0 = __builtin_amdgcn_workgroup_id_y() * 32, column0 = GROUP * 32;
  float16_ sum = 0;
  for (int kk = (lane >> 5) * 8; kk < k; kk += 16)
    sum = __builtin_amdgcn_mfma_f32_32x32x16_fp8_bf8(*(global const long *)(a + (row0 + (lane & 31)) * k + kk),
                                                     *(global const long *)(b + (column0 + (lane & 31)) * k + kk), sum, 0,
                                                     0, 0);
  for (int r = 0; r < 16; ++r)
    c[(row0 + 8 * (r / 4) + 4 * (lane >> 5) + r % 4) * n + column0 + (lane & 31)] = sum[r];
}

// A stores two of each four k; `places` has a byte for each eight k of a row.
__attribute__((reqd_work_group_size(64, 1, 1))) kernel void matmul_sparse(global float *c, global const _Float16 *a,
                                                                          global const _Float16 *b,
                                                                          global const unsigned char *places, int n, int k) {
  const int lane = LANE, row = __builtin_amdgcn_workgroup_id_y() * 16 + (lane & 15), column0 = GROUP * 16;
  float4_ sum = 0;
  for (int kk = (lane >> 4) * 8; kk < k; kk += 32)
    sum = __builtin_amdgcn_smfmac_f32_16x16x32_f16(*(global const half4_ *)(a + (row * k + kk) / 2),
                                                   *(global const half8_ *)(b + (column0 + (lane & 15)) * k + kk), sum,
                                                   places[(row * k + kk) / 8], 0, 0);
  for (int r = 0; r < 4; ++r)
    c[(__builtin_amdgcn_workgroup_id_y() * 16 + 4 * (lane >> 4) + r) * n + column0 + (lane & 15)] = sum[r];
}

// Transposes 64 x 64 tiles that four waves copy straight into LDS.
__attribute__((reqd_work_group_size(256, 1, 1))) kernel void transpose_copied(global unsigned *out, global unsigned *in,
                                                                              int n) {
  local unsigned tile[64 * 64];
  const int lane = LANE & 63, wave = __builtin_amdgcn_readfirstlane(LANE >> 6);
  const int row0 = __builtin_amdgcn_workgroup_id_y() * 64, column0 = GROUP * 64;
  __amdgpu_buffer_rsrc_t rows = __builtin_amdgcn_make_buffer_rsrc(in, 0, n * n * 4, 0x00027000);
  for (int r = wave; r < 64; r += 4)
    __builtin_amdgcn_raw_ptr_buffer_load_lds(rows, tile + r * 64, 4, (column0 + lane) * 4, (row0 + r) * n * 4, 0, 0);
  __builtin_amdgcn_s_waitcnt(0x0f70); // vmcnt(0)
  group_barrier();
  for (int r = wave; r < 64; r += 4) out[(column0 + r) * n + row0 + lane] = tile[lane * 64 + r];
}

// Double precision, with the compiler's own division and square root.
__attribute__((reqd_work_group_size(64, 1, 1))) kernel void doubles(global double *out, global const double *in) {
  const int i = GROUP * 64 + LANE;
  const double a = in[2 * i], b = in[2 * i + 1];
  out[4 * i] = a / b;
  out[4 * i + 1] = __builtin_fma(a, b, 1.0);
  out[4 * i + 2] = __builtin_floor(a) + __builtin_rint(b) - __builtin_trunc(a * b);
  out[4 * i + 3] = a < b ? a * 2 : b - a;
}

// Single and half precision division, conversions, comparisons.
__attribute__((reqd_work_group_size(64, 1, 1))) kernel void singles(global float *out, global const float *in) {
  const int i = GROUP * 64 + LANE;
  const float a = in[2 * i], b = in[2 * i + 1];
  out[5 * i] = a / b;
  out[5 * i + 1] = (float)((_Float16)a * (_Float16)b + (_Float16)1.0f);
  out[5 * i + 2] = (float)(int)a + (float)(unsigned)__builtin_fabsf(b) + __builtin_rintf(a);
  out[5 * i + 3] = __builtin_isnan(a) || a > b ? __builtin_fminf(a, b) : __builtin_fmaxf(a, -b);
  out[5 * i + 4] = (float)(__bf16)a;
}
