// The pass decides the final order of instructions, including those that the code generator adds.
// RUN: sluice-kernelgen --compile %s -o %t.elf
// RUN: llvm-objdump -d --no-show-raw-insn %t.elf | FileCheck %s
// RUN: sluice-kernelgen --compile %s --emit llvm -o %t.ll
// RUN: llc -mtriple=amdgcn-amd-amdhsa -mcpu=gfx942 -O3 --pre-RA-sched=source --enable-misched=false --enable-post-misched=false %t.ll -o - | FileCheck %s --check-prefix=ALONE
// RUN: sed 's/attributes {gpu.kernel/attributes {passthrough = [["sluice-schedule", "window=8 waits_apart=20 reads_before=0"]], gpu.kernel/' %s > %t.own.mlir
// RUN: sluice-kernelgen --compile %t.own.mlir -o %t.own.elf
// RUN: llvm-objdump -d --no-show-raw-insn %t.own.elf | FileCheck %s --check-prefix=OWN

gpu.module @kernels attributes {llvm.data_layout = "e-p:64:64-p1:64:64-p2:32:32-p3:32:32-p4:64:64-p5:32:32-p6:32:32-p7:160:256:256:32-p8:128:128:128:48-p9:192:256:256:32-i64:64-v16:16-v24:32-v32:32-v48:64-v96:128-v192:256-v256:256-v512:512-v1024:1024-v2048:2048-n32:64-S32-A5-G1-ni:7:8:9"} {
  llvm.mlir.global internal @lds() {addr_space = 3 : i32, alignment = 128 : i64} : !llvm.array<32768 x i8>

  // Two waits for LDS reads follow each other at once. The first covers both reads: they were issued long ago. LLVM
  // puts only a wait state between the write of M0 and the copy that addresses LDS with it; an instruction from after
  // the copy takes its place. All of it comes before the second MFMA, while the matrix core is busy.
  // CHECK-LABEL: <order>:
  // CHECK:         ds_read_b128
  // CHECK-NEXT:    ds_read_b128
  // CHECK-NOT:     s_waitcnt
  // CHECK:         s_waitcnt lgkmcnt(0)
  // CHECK:         v_mfma_f32_32x32x8_f16
  // CHECK-NOT:     s_waitcnt
  // CHECK:         s_mov_b32 m0
  // CHECK-NEXT:    v_exp_f32
  // CHECK-NEXT:    buffer_load_dword {{.*}} lds
  // CHECK-NOT:     s_waitcnt
  // CHECK:         v_mfma_f32_32x32x8_f16
  // CHECK-NOT:     s_waitcnt
  // CHECK:         s_endpgm
  // ALONE-LABEL: order:
  // ALONE:         s_waitcnt lgkmcnt(1)
  // ALONE:         v_mfma_f32_32x32x8_f16
  // ALONE-NEXT:    s_waitcnt lgkmcnt(0)
  // ALONE-NEXT:    v_mfma_f32_32x32x8_f16
  // ALONE-NEXT:    s_mov_b32 m0
  // ALONE-NEXT:    s_nop 0
  // ALONE-NEXT:    buffer_load_dword {{.*}} lds
  llvm.func @order(%in: !llvm.ptr<1>, %out: !llvm.ptr<1>, %to: i32) attributes {gpu.kernel, gpu.known_block_size = array<i32: 64, 1, 1>, rocdl.flat_work_group_size = "64,64", rocdl.kernel, rocdl.reqd_work_group_size = array<i32: 64, 1, 1>} {
    %lds = llvm.mlir.addressof @lds : !llvm.ptr<3>
    %c0 = llvm.mlir.constant(0 : i32) : i32
    %c4 = llvm.mlir.constant(4 : i32) : i32
    %c16 = llvm.mlir.constant(16 : i32) : i32
    %stride = llvm.mlir.constant(0 : i16) : i16
    %flags = llvm.mlir.constant(159744 : i32) : i32
    %extent = llvm.mlir.constant(65536 : i64) : i64
    %zero = llvm.mlir.constant(dense<0.0> : vector<16xf32>) : vector<16xf32>
    %lane = rocdl.workitem.id.x : i32
    %rsrc = rocdl.make.buffer.rsrc %in, %stride, %extent, %flags : <1> to <8>
    %place = llvm.mul %lane, %c16 : i32
    %p0 = llvm.getelementptr %lds[%place] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i8
    %p1 = llvm.getelementptr %p0[4096] : (!llvm.ptr<3>) -> !llvm.ptr<3>, i8
    %r0 = llvm.load %p0 {alignment = 16 : i64} : !llvm.ptr<3> -> vector<8xf16>
    %r1 = llvm.load %p1 {alignment = 16 : i64} : !llvm.ptr<3> -> vector<8xf16>
    %a0 = llvm.shufflevector %r0, %r0 [0, 1, 2, 3] : vector<8xf16>
    %b0 = llvm.shufflevector %r0, %r0 [4, 5, 6, 7] : vector<8xf16>
    %a1 = llvm.shufflevector %r1, %r1 [0, 1, 2, 3] : vector<8xf16>
    %b1 = llvm.shufflevector %r1, %r1 [4, 5, 6, 7] : vector<8xf16>
    %bits = llvm.mlir.undef : vector<2xi32>
    %half = llvm.insertelement %lane, %bits[%c0 : i32] : vector<2xi32>
    %whole = llvm.shufflevector %half, %half [0, 0] : vector<2xi32>
    %own = llvm.bitcast %whole : vector<2xi32> to vector<4xf16>
    %first = rocdl.mfma.f32.32x32x8f16 %own, %own, %zero, %c0, %c0, %c0 : (vector<4xf16>, vector<4xf16>, vector<16xf32>, i32, i32, i32) -> vector<16xf32>
    %s0 = llvm.fmul %first, %first : vector<16xf32>
    %s1 = llvm.fmul %s0, %s0 : vector<16xf32>
    %s2 = llvm.fmul %s1, %s1 : vector<16xf32>
    %s3 = llvm.fmul %s2, %s2 : vector<16xf32>
    %m0 = rocdl.mfma.f32.32x32x8f16 %a0, %b0, %s3, %c0, %c0, %c0 : (vector<4xf16>, vector<4xf16>, vector<16xf32>, i32, i32, i32) -> vector<16xf32>
    %m1 = rocdl.mfma.f32.32x32x8f16 %a1, %b1, %m0, %c0, %c0, %c0 : (vector<4xf16>, vector<4xf16>, vector<16xf32>, i32, i32, i32) -> vector<16xf32>
    %slot = llvm.getelementptr %lds[%to] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i8
    rocdl.raw.ptr.buffer.load.lds %rsrc, %slot, %c4, %place, %c0, %c0, %c0
    %x = llvm.bitcast %lane : i32 to f32
    %e0 = rocdl.exp2 %x f32 -> f32
    %e1 = rocdl.exp2 %e0 f32 -> f32
    %o = llvm.getelementptr %out[%lane] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, vector<16xf32>
    llvm.store %m1, %o {alignment = 64 : i64} : vector<16xf32>, !llvm.ptr<1>
    llvm.store %e1, %out {alignment = 4 : i64} : f32, !llvm.ptr<1>
    llvm.return
  }

  // The second read has only just been issued when the first is needed: it keeps a separate wait, after an MFMA.
  // CHECK-LABEL: <soon>:
  // CHECK:         ds_read_b128
  // CHECK-NEXT:    ds_read_b128
  // CHECK:         s_waitcnt lgkmcnt(1)
  // CHECK-NEXT:    v_mfma_f32_32x32x8_f16
  // CHECK:         s_waitcnt lgkmcnt(0)
  // CHECK:         v_mfma_f32_32x32x8_f16
  // CHECK:         s_endpgm
  // A function with this attribute waits for both at once.
  // OWN-LABEL: <soon>:
  // OWN:         ds_read_b128
  // OWN-NEXT:    ds_read_b128
  // OWN-NOT:     s_waitcnt lgkmcnt(1)
  // OWN:         s_waitcnt lgkmcnt(0)
  // OWN-NOT:     s_waitcnt
  // OWN:         s_endpgm
  llvm.func @soon(%in: !llvm.ptr<1>, %out: !llvm.ptr<1>, %to: i32) attributes {gpu.kernel, gpu.known_block_size = array<i32: 64, 1, 1>, rocdl.flat_work_group_size = "64,64", rocdl.kernel, rocdl.reqd_work_group_size = array<i32: 64, 1, 1>} {
    %lds = llvm.mlir.addressof @lds : !llvm.ptr<3>
    %c0 = llvm.mlir.constant(0 : i32) : i32
    %c4 = llvm.mlir.constant(4 : i32) : i32
    %c16 = llvm.mlir.constant(16 : i32) : i32
    %stride = llvm.mlir.constant(0 : i16) : i16
    %flags = llvm.mlir.constant(159744 : i32) : i32
    %extent = llvm.mlir.constant(65536 : i64) : i64
    %zero = llvm.mlir.constant(dense<0.0> : vector<16xf32>) : vector<16xf32>
    %lane = rocdl.workitem.id.x : i32
    %rsrc = rocdl.make.buffer.rsrc %in, %stride, %extent, %flags : <1> to <8>
    %place = llvm.mul %lane, %c16 : i32
    %p0 = llvm.getelementptr %lds[%place] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i8
    %p1 = llvm.getelementptr %p0[4096] : (!llvm.ptr<3>) -> !llvm.ptr<3>, i8
    %r0 = llvm.load %p0 {alignment = 16 : i64} : !llvm.ptr<3> -> vector<8xf16>
    %r1 = llvm.load %p1 {alignment = 16 : i64} : !llvm.ptr<3> -> vector<8xf16>
    %a0 = llvm.shufflevector %r0, %r0 [0, 1, 2, 3] : vector<8xf16>
    %b0 = llvm.shufflevector %r0, %r0 [4, 5, 6, 7] : vector<8xf16>
    %a1 = llvm.shufflevector %r1, %r1 [0, 1, 2, 3] : vector<8xf16>
    %b1 = llvm.shufflevector %r1, %r1 [4, 5, 6, 7] : vector<8xf16>
    %m0 = rocdl.mfma.f32.32x32x8f16 %a0, %b0, %zero, %c0, %c0, %c0 : (vector<4xf16>, vector<4xf16>, vector<16xf32>, i32, i32, i32) -> vector<16xf32>
    %m1 = rocdl.mfma.f32.32x32x8f16 %a1, %b1, %m0, %c0, %c0, %c0 : (vector<4xf16>, vector<4xf16>, vector<16xf32>, i32, i32, i32) -> vector<16xf32>
    %slot = llvm.getelementptr %lds[%to] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i8
    rocdl.raw.ptr.buffer.load.lds %rsrc, %slot, %c4, %place, %c0, %c0, %c0
    %x = llvm.bitcast %lane : i32 to f32
    %e0 = rocdl.exp2 %x f32 -> f32
    %e1 = rocdl.exp2 %e0 f32 -> f32
    %o = llvm.getelementptr %out[%lane] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, vector<16xf32>
    llvm.store %m1, %o {alignment = 64 : i64} : vector<16xf32>, !llvm.ptr<1>
    llvm.store %e1, %out {alignment = 4 : i64} : f32, !llvm.ptr<1>
    llvm.return
  }

  // A block that does not multiply stays as it is.
  // CHECK-LABEL: <no_products>:
  // CHECK:         s_mov_b32 m0
  // CHECK-NEXT:    buffer_load_dword {{.*}} lds
  llvm.func @no_products(%in: !llvm.ptr<1>, %out: !llvm.ptr<1>, %to: i32) attributes {gpu.kernel, gpu.known_block_size = array<i32: 64, 1, 1>, rocdl.flat_work_group_size = "64,64", rocdl.kernel, rocdl.reqd_work_group_size = array<i32: 64, 1, 1>} {
    %lds = llvm.mlir.addressof @lds : !llvm.ptr<3>
    %c0 = llvm.mlir.constant(0 : i32) : i32
    %c4 = llvm.mlir.constant(4 : i32) : i32
    %c16 = llvm.mlir.constant(16 : i32) : i32
    %stride = llvm.mlir.constant(0 : i16) : i16
    %flags = llvm.mlir.constant(159744 : i32) : i32
    %extent = llvm.mlir.constant(65536 : i64) : i64
    %lane = rocdl.workitem.id.x : i32
    %rsrc = rocdl.make.buffer.rsrc %in, %stride, %extent, %flags : <1> to <8>
    %place = llvm.mul %lane, %c16 : i32
    %slot = llvm.getelementptr %lds[%to] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i8
    rocdl.raw.ptr.buffer.load.lds %rsrc, %slot, %c4, %place, %c0, %c0, %c0
    %x = llvm.bitcast %lane : i32 to f32
    %e0 = rocdl.exp2 %x f32 -> f32
    %e1 = rocdl.exp2 %e0 f32 -> f32
    llvm.store %e1, %out {alignment = 4 : i64} : f32, !llvm.ptr<1>
    llvm.return
  }
}
