// Kernels for tests of the emulator's command line; the arguments are in the metadata.
#define LANE __builtin_amdgcn_workitem_id_x()
#define GROUP __builtin_amdgcn_workgroup_id_x()

// Flips all bits.
kernel void invert(global uint *data, uint count) {
  uint i = GROUP * 64 + LANE;
  if (i < count) data[i] = ~data[i];
}

// The place of each work-item, in workgroups of 4 x 2 x 2.
kernel void places(global uint *out, uint grid_x, uint grid_y) {
  uint x = LANE, y = __builtin_amdgcn_workitem_id_y(), z = __builtin_amdgcn_workitem_id_z();
  uint gx = GROUP, gy = __builtin_amdgcn_workgroup_id_y(), gz = __builtin_amdgcn_workgroup_id_z();
  uint group = (gz * grid_y + gy) * grid_x + gx;
  out[group * 16 + z * 8 + y * 4 + x] = gx | gy << 4 | gz << 8 | x << 12 | y << 16 | z << 20;
}

// Through LDS and back, the lanes in reverse.
kernel void reverse(global uint *data, local uint *lds) {
  lds[LANE] = data[LANE];
  data[LANE] = lds[63 - LANE];
}

// Counts to `count`, without a visible result.
kernel void spin(uint count) {
  for (uint i = 0; i < count; ++i) __asm__ volatile("s_nop 0");
}

// Each argument is followed by padding up to 16 bytes, as in kernels written in assembly.
kernel void padded(global uint *out, uint a0, uint a1, global const uint *in, uint b0, uint b1, uint count, uint c0,
                   uint c1, uint c2, uint factor, uint d0, uint d1, uint d2, global const uint *end, uint e0, uint e1,
                   uint addend, uint f0, uint f1, uint f2) {
  uint i = GROUP * 64 + LANE;
  if (i < count) out[i] = factor * in[i] + addend + (uint)(end - in) + (a0 | b1 | c2 | d0 | e1) + (f0 | f1 | f2);
}

// Workgroups take pieces of work from a counter until none are left.
kernel void claim(global uint *counter, uint pieces) {
  while (__scoped_atomic_fetch_add(counter, 1u, __ATOMIC_RELAXED, __MEMORY_SCOPE_DEVICE) < pieces)
    __builtin_amdgcn_s_sleep(1);
}
