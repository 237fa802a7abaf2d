// A block is one piece across its waits and barriers: reads and copies stay on their side of them, everything else
// passes.
// RUN: sluice-opt %s --allow-unregistered-dialect --pass-pipeline='builtin.module(gpu.module(gpu.func(interleave-mfma)))' | FileCheck %s

!tile = !sluice.lds_tile<64x128xf16>

gpu.module @m {
  // A barrier in the middle of a block rises over the MFMAs of its phase, to where the reads before it are answered.
  // So the read after it is issued eight MFMAs before the one that needs it, between MFMAs of the previous phase.
  // CHECK-LABEL: gpu.func @rises
  // CHECK:         sluice.lds_read {{.*}} {id = 0 : i64}
  // CHECK-NEXT:    amdgpu.mfma {{.*}} {id = 10 : i64}
  // CHECK-NEXT:    sluice.wait_marks 1
  // CHECK-NEXT:    sluice.barrier
  // CHECK-NEXT:    amdgpu.mfma {{.*}} {id = 11 : i64}
  // CHECK-NEXT:    amdgpu.mfma {{.*}} {id = 12 : i64}
  // CHECK-NEXT:    sluice.lds_read {{.*}} {id = 1 : i64}
  // CHECK-NEXT:    amdgpu.mfma {{.*}} {id = 13 : i64}
  // CHECK-NEXT:    amdgpu.mfma {{.*}} {id = 14 : i64}
  // CHECK-NEXT:    amdgpu.mfma {{.*}} {id = 15 : i64}
  // CHECK-NEXT:    amdgpu.mfma {{.*}} {id = 16 : i64}
  // CHECK-NEXT:    amdgpu.mfma {{.*}} {id = 17 : i64}
  // CHECK-NEXT:    amdgpu.mfma {{.*}} {id = 18 : i64}
  // CHECK-NEXT:    amdgpu.mfma {{.*}} {id = 19 : i64}
  // CHECK-NEXT:    amdgpu.mfma {{.*}} {id = 20 : i64}
  // CHECK-NEXT:    amdgpu.mfma {{.*}} {id = 21 : i64}
  // CHECK-NEXT:    "test.use"
  gpu.func @rises(%a: vector<4xf16>, %c: vector<16xf32>, %row: i32) kernel {
    %t = sluice.lds_alloc : !tile
    %r0 = sluice.lds_read %t[%row, %row] {id = 0} : !tile, vector<4xf16>
    %m0 = amdgpu.mfma 32x32x8 %a * %r0 + %c {id = 10} blgp = none : vector<4xf16>, vector<4xf16>, vector<16xf32>
    %m1 = amdgpu.mfma 32x32x8 %a * %a + %m0 {id = 11} blgp = none : vector<4xf16>, vector<4xf16>, vector<16xf32>
    %m2 = amdgpu.mfma 32x32x8 %a * %a + %m1 {id = 12} blgp = none : vector<4xf16>, vector<4xf16>, vector<16xf32>
    %m3 = amdgpu.mfma 32x32x8 %a * %a + %m2 {id = 13} blgp = none : vector<4xf16>, vector<4xf16>, vector<16xf32>
    %m4 = amdgpu.mfma 32x32x8 %a * %a + %m3 {id = 14} blgp = none : vector<4xf16>, vector<4xf16>, vector<16xf32>
    %m5 = amdgpu.mfma 32x32x8 %a * %a + %m4 {id = 15} blgp = none : vector<4xf16>, vector<4xf16>, vector<16xf32>
    %m6 = amdgpu.mfma 32x32x8 %a * %a + %m5 {id = 16} blgp = none : vector<4xf16>, vector<4xf16>, vector<16xf32>
    %m7 = amdgpu.mfma 32x32x8 %a * %a + %m6 {id = 17} blgp = none : vector<4xf16>, vector<4xf16>, vector<16xf32>
    %m8 = amdgpu.mfma 32x32x8 %a * %a + %m7 {id = 18} blgp = none : vector<4xf16>, vector<4xf16>, vector<16xf32>
    %m9 = amdgpu.mfma 32x32x8 %a * %a + %m8 {id = 19} blgp = none : vector<4xf16>, vector<4xf16>, vector<16xf32>
    sluice.wait_marks 1
    sluice.barrier
    %r1 = sluice.lds_read %t[%row, %row] {id = 1} : !tile, vector<4xf16>
    %m10 = amdgpu.mfma 32x32x8 %a * %r1 + %m9 {id = 20} blgp = none : vector<4xf16>, vector<4xf16>, vector<16xf32>
    %m11 = amdgpu.mfma 32x32x8 %a * %a + %m10 {id = 21} blgp = none : vector<4xf16>, vector<4xf16>, vector<16xf32>
    "test.use"(%m11) : (vector<16xf32>) -> ()
    gpu.return
  }

  // Here the last read has its place from the fourth MFMA, and the barrier comes late. MFMAs and arithmetic of the
  // next phase pass it. The next phase's copy and read could be issued long before, but wait for the barrier: only
  // then has every wave read the data that the copy overwrites, and the data for the read is in place.
  // CHECK-LABEL: gpu.func @behind_a_late_barrier
  // CHECK:         amdgpu.mfma {{.*}} {id = 10 : i64}
  // CHECK-NEXT:    arith.mulf {{.*}} {id = 0 : i64}
  // CHECK-NEXT:    amdgpu.mfma {{.*}} {id = 11 : i64}
  // CHECK-NEXT:    amdgpu.mfma {{.*}} {id = 12 : i64}
  // CHECK-NEXT:    amdgpu.mfma {{.*}} {id = 13 : i64}
  // CHECK-NEXT:    vector.extract
  // CHECK-NEXT:    amdgpu.mfma {{.*}} {id = 14 : i64}
  // CHECK-NEXT:    arith.fptosi
  // CHECK-NEXT:    sluice.lds_read {{.*}} {id = 0 : i64}
  // CHECK-NEXT:    amdgpu.mfma {{.*}} {id = 15 : i64}
  // CHECK-NEXT:    sluice.wait_marks 1
  // CHECK-NEXT:    sluice.barrier
  // CHECK-NEXT:    sluice.load_to_lds {{.*}} {bytes = 4 : i32, id = 0 : i64}
  // CHECK-NEXT:    sluice.async_mark
  // CHECK-NEXT:    sluice.lds_read {{.*}} {id = 1 : i64}
  // CHECK-NEXT:    amdgpu.mfma {{.*}} {id = 16 : i64}
  // CHECK-NEXT:    amdgpu.mfma {{.*}} {id = 17 : i64}
  // CHECK-NEXT:    "test.use"
  gpu.func @behind_a_late_barrier(%a: vector<4xf16>, %c: vector<16xf32>, %x: f32, %row: i32, %r: !llvm.ptr<8>) kernel {
    %s = sluice.lds_alloc : !tile
    %t = sluice.lds_alloc : !tile
    %m0 = amdgpu.mfma 32x32x8 %a * %a + %c {id = 10} blgp = none : vector<4xf16>, vector<4xf16>, vector<16xf32>
    %m1 = amdgpu.mfma 32x32x8 %a * %a + %m0 {id = 11} blgp = none : vector<4xf16>, vector<4xf16>, vector<16xf32>
    %m2 = amdgpu.mfma 32x32x8 %a * %a + %m1 {id = 12} blgp = none : vector<4xf16>, vector<4xf16>, vector<16xf32>
    %m3 = amdgpu.mfma 32x32x8 %a * %a + %m2 {id = 13} blgp = none : vector<4xf16>, vector<4xf16>, vector<16xf32>
    %f = vector.extract %m3[0] : f32 from vector<16xf32>
    %place = arith.fptosi %f : f32 to i32
    %r0 = sluice.lds_read %t[%place, %row] {id = 0} : !tile, vector<4xf16>
    sluice.wait_marks 1
    sluice.barrier
    sluice.load_to_lds %r[%row] into %s[%row] {bytes = 4 : i32, id = 0} : !tile
    sluice.async_mark
    %r1 = sluice.lds_read %t[%row, %row] {id = 1} : !tile, vector<4xf16>
    %p = arith.mulf %x, %x {id = 0} : f32
    %m4 = amdgpu.mfma 32x32x8 %a * %a + %c {id = 14} blgp = none : vector<4xf16>, vector<4xf16>, vector<16xf32>
    %m5 = amdgpu.mfma 32x32x8 %a * %a + %m4 {id = 15} blgp = none : vector<4xf16>, vector<4xf16>, vector<16xf32>
    %m6 = amdgpu.mfma 32x32x8 %a * %r1 + %m5 {id = 16} blgp = none : vector<4xf16>, vector<4xf16>, vector<16xf32>
    %m7 = amdgpu.mfma 32x32x8 %a * %a + %m6 {id = 17} blgp = none : vector<4xf16>, vector<4xf16>, vector<16xf32>
    "test.use"(%r0, %m7, %p) : (vector<4xf16>, vector<16xf32>, f32) -> ()
    gpu.return
  }

  // Copies are spread over the MFMAs of their own phase: copies after the barrier do not follow it when it has risen.
  // CHECK-LABEL: gpu.func @copies_of_phases
  // CHECK:         amdgpu.mfma {{.*}} {id = 10 : i64}
  // CHECK-NEXT:    sluice.load_to_lds {{.*}} {bytes = 4 : i32, id = 0 : i64}
  // CHECK-NEXT:    amdgpu.mfma {{.*}} {id = 11 : i64}
  // CHECK-NEXT:    sluice.load_to_lds {{.*}} {bytes = 4 : i32, id = 1 : i64}
  // CHECK-NEXT:    sluice.async_mark
  // CHECK-NEXT:    sluice.wait_marks 1
  // CHECK-NEXT:    sluice.barrier
  // CHECK-NEXT:    amdgpu.mfma {{.*}} {id = 12 : i64}
  // CHECK-NEXT:    sluice.lds_read {{.*}} {id = 1 : i64}
  // CHECK-NEXT:    amdgpu.mfma {{.*}} {id = 13 : i64}
  // CHECK-NEXT:    amdgpu.mfma {{.*}} {id = 14 : i64}
  // CHECK-NEXT:    amdgpu.mfma {{.*}} {id = 15 : i64}
  // CHECK-NEXT:    amdgpu.mfma {{.*}} {id = 16 : i64}
  // CHECK-NEXT:    amdgpu.mfma {{.*}} {id = 17 : i64}
  // CHECK-NEXT:    sluice.load_to_lds {{.*}} {bytes = 4 : i32, id = 2 : i64}
  // CHECK-NEXT:    amdgpu.mfma {{.*}} {id = 18 : i64}
  // CHECK-NEXT:    amdgpu.mfma {{.*}} {id = 19 : i64}
  // CHECK-NEXT:    sluice.load_to_lds {{.*}} {bytes = 4 : i32, id = 3 : i64}
  // CHECK-NEXT:    sluice.async_mark
  // CHECK-NEXT:    amdgpu.mfma {{.*}} {id = 20 : i64}
  gpu.func @copies_of_phases(%a: vector<4xf16>, %c: vector<16xf32>, %row: i32, %r: !llvm.ptr<8>) kernel {
    %s = sluice.lds_alloc : !tile
    %t = sluice.lds_alloc : !tile
    sluice.load_to_lds %r[%row] into %s[%row] {bytes = 4 : i32, id = 0} : !tile
    sluice.load_to_lds %r[%row] into %s[%row] {bytes = 4 : i32, id = 1} : !tile
    sluice.async_mark
    %m0 = amdgpu.mfma 32x32x8 %a * %a + %c {id = 10} blgp = none : vector<4xf16>, vector<4xf16>, vector<16xf32>
    %m1 = amdgpu.mfma 32x32x8 %a * %a + %m0 {id = 11} blgp = none : vector<4xf16>, vector<4xf16>, vector<16xf32>
    %m2 = amdgpu.mfma 32x32x8 %a * %a + %m1 {id = 12} blgp = none : vector<4xf16>, vector<4xf16>, vector<16xf32>
    %m3 = amdgpu.mfma 32x32x8 %a * %a + %m2 {id = 13} blgp = none : vector<4xf16>, vector<4xf16>, vector<16xf32>
    %m4 = amdgpu.mfma 32x32x8 %a * %a + %m3 {id = 14} blgp = none : vector<4xf16>, vector<4xf16>, vector<16xf32>
    %m5 = amdgpu.mfma 32x32x8 %a * %a + %m4 {id = 15} blgp = none : vector<4xf16>, vector<4xf16>, vector<16xf32>
    %m6 = amdgpu.mfma 32x32x8 %a * %a + %m5 {id = 16} blgp = none : vector<4xf16>, vector<4xf16>, vector<16xf32>
    %m7 = amdgpu.mfma 32x32x8 %a * %a + %m6 {id = 17} blgp = none : vector<4xf16>, vector<4xf16>, vector<16xf32>
    sluice.wait_marks 1
    sluice.barrier
    sluice.load_to_lds %r[%row] into %s[%row] {bytes = 4 : i32, id = 2} : !tile
    sluice.load_to_lds %r[%row] into %s[%row] {bytes = 4 : i32, id = 3} : !tile
    sluice.async_mark
    %r1 = sluice.lds_read %t[%row, %row] {id = 1} : !tile, vector<4xf16>
    %m8 = amdgpu.mfma 32x32x8 %a * %r1 + %m7 {id = 18} blgp = none : vector<4xf16>, vector<4xf16>, vector<16xf32>
    %m9 = amdgpu.mfma 32x32x8 %a * %a + %m8 {id = 19} blgp = none : vector<4xf16>, vector<4xf16>, vector<16xf32>
    %m10 = amdgpu.mfma 32x32x8 %a * %a + %m9 {id = 20} blgp = none : vector<4xf16>, vector<4xf16>, vector<16xf32>
    %m11 = amdgpu.mfma 32x32x8 %a * %a + %m10 {id = 21} blgp = none : vector<4xf16>, vector<4xf16>, vector<16xf32>
    %m12 = amdgpu.mfma 32x32x8 %a * %a + %m11 {id = 22} blgp = none : vector<4xf16>, vector<4xf16>, vector<16xf32>
    %m13 = amdgpu.mfma 32x32x8 %a * %a + %m12 {id = 23} blgp = none : vector<4xf16>, vector<4xf16>, vector<16xf32>
    %m14 = amdgpu.mfma 32x32x8 %a * %a + %m13 {id = 24} blgp = none : vector<4xf16>, vector<4xf16>, vector<16xf32>
    %m15 = amdgpu.mfma 32x32x8 %a * %a + %m14 {id = 25} blgp = none : vector<4xf16>, vector<4xf16>, vector<16xf32>
    "test.use"(%m15) : (vector<16xf32>) -> ()
    gpu.return
  }

  // The order is by due time, for operands of MFMAs and everything else: a long chain has to begin at once to be done
  // when the last MFMA issues, and the operands of that MFMA have time.
  // CHECK-LABEL: gpu.func @due
  // CHECK-NEXT:    amdgpu.mfma {{.*}} {id = 10 : i64}
  // CHECK-NEXT:    llvm.call_intrinsic "llvm.amdgcn.exp2"({{.*}}) {id = 0 : i64}
  // CHECK-NEXT:    arith.mulf {{.*}} {id = 20 : i64}
  // CHECK-NEXT:    llvm.call_intrinsic "llvm.amdgcn.exp2"({{.*}}) {id = 1 : i64}
  // CHECK-NEXT:    amdgpu.mfma {{.*}} {id = 11 : i64}
  // CHECK-NEXT:    llvm.call_intrinsic "llvm.amdgcn.exp2"({{.*}}) {id = 2 : i64}
  // CHECK-NEXT:    amdgpu.mfma {{.*}} {id = 12 : i64}
  // CHECK-NEXT:    llvm.call_intrinsic "llvm.amdgcn.exp2"({{.*}}) {id = 3 : i64}
  // CHECK-NEXT:    amdgpu.mfma {{.*}} {id = 13 : i64}
  // CHECK-NEXT:    "test.use"
  gpu.func @due(%a: vector<4xf16>, %c: vector<16xf32>, %x: f32, %h: vector<4xf16>) kernel {
    %f0 = arith.mulf %h, %h {id = 20} : vector<4xf16>
    %e0 = llvm.call_intrinsic "llvm.amdgcn.exp2"(%x) {id = 0} : (f32) -> f32
    %e1 = llvm.call_intrinsic "llvm.amdgcn.exp2"(%e0) {id = 1} : (f32) -> f32
    %e2 = llvm.call_intrinsic "llvm.amdgcn.exp2"(%e1) {id = 2} : (f32) -> f32
    %e3 = llvm.call_intrinsic "llvm.amdgcn.exp2"(%e2) {id = 3} : (f32) -> f32
    %m0 = amdgpu.mfma 32x32x8 %a * %a + %c {id = 10} blgp = none : vector<4xf16>, vector<4xf16>, vector<16xf32>
    %m1 = amdgpu.mfma 32x32x8 %a * %a + %m0 {id = 11} blgp = none : vector<4xf16>, vector<4xf16>, vector<16xf32>
    %m2 = amdgpu.mfma 32x32x8 %a * %a + %m1 {id = 12} blgp = none : vector<4xf16>, vector<4xf16>, vector<16xf32>
    %m3 = amdgpu.mfma 32x32x8 %a * %f0 + %m2 {id = 13} blgp = none : vector<4xf16>, vector<4xf16>, vector<16xf32>
    "test.use"(%m3, %e3) : (vector<16xf32>, f32) -> ()
    gpu.return
  }

  // A transcendental keeps the vector port for four turns: others of its kind, floating-point arithmetic and MFMAs wait
  // for it. Integers, which are scalars, do not.
  // CHECK-LABEL: gpu.func @port
  // CHECK:         amdgpu.mfma {{.*}} {id = 10 : i64}
  // CHECK-NEXT:    llvm.call_intrinsic "llvm.amdgcn.exp2"({{.*}}) {id = 20 : i64}
  // CHECK-NEXT:    arith.addi {{.*}} {id = 30 : i64}
  // CHECK-NEXT:    arith.addi {{.*}} {id = 31 : i64}
  // CHECK-NEXT:    arith.addi {{.*}} {id = 32 : i64}
  // CHECK-NEXT:    llvm.call_intrinsic "llvm.amdgcn.exp2"({{.*}}) {id = 21 : i64}
  // CHECK-NEXT:    arith.addi {{.*}} {id = 33 : i64}
  // CHECK-NEXT:    amdgpu.mfma {{.*}} {id = 11 : i64}
  // CHECK-NEXT:    llvm.call_intrinsic "llvm.amdgcn.exp2"({{.*}}) {id = 22 : i64}
  // CHECK-NEXT:    arith.mulf {{.*}} {id = 0 : i64}
  // CHECK-NEXT:    "test.use"
  gpu.func @port(%a: vector<4xf16>, %c: vector<16xf32>, %x: f32, %n: i32) kernel {
    scf.for %i = %n to %n step %n : i32 {
      %e0 = llvm.call_intrinsic "llvm.amdgcn.exp2"(%x) {id = 20} : (f32) -> f32
      %e1 = llvm.call_intrinsic "llvm.amdgcn.exp2"(%x) {id = 21} : (f32) -> f32
      %e2 = llvm.call_intrinsic "llvm.amdgcn.exp2"(%x) {id = 22} : (f32) -> f32
      %p0 = arith.mulf %x, %x {id = 0} : f32
      %i0 = arith.addi %i, %n {id = 30} : i32
      %i1 = arith.addi %i, %n {id = 31} : i32
      %i2 = arith.addi %i, %n {id = 32} : i32
      %i3 = arith.addi %i, %n {id = 33} : i32
      %m0 = amdgpu.mfma 32x32x8 %a * %a + %c {id = 10} blgp = none : vector<4xf16>, vector<4xf16>, vector<16xf32>
      %m1 = amdgpu.mfma 32x32x8 %a * %a + %m0 {id = 11} blgp = none : vector<4xf16>, vector<4xf16>, vector<16xf32>
      "test.use"(%m1, %e0, %e1, %e2, %p0, %i0, %i1, %i2, %i3) : (vector<16xf32>, f32, f32, f32, f32, i32, i32, i32, i32) -> ()
    }
    gpu.return
  }

  // With few registers nothing begins early: a barrier in the middle of a block splits it.
  // CHECK-LABEL: gpu.func @rises_few
  // CHECK:         sluice.lds_read {{.*}} {id = 0 : i64}
  // CHECK-NEXT:    amdgpu.mfma {{.*}} {id = 10 : i64}
  // CHECK-NEXT:    amdgpu.mfma {{.*}} {id = 11 : i64}
  // CHECK-NEXT:    amdgpu.mfma {{.*}} {id = 12 : i64}
  // CHECK-NEXT:    amdgpu.mfma {{.*}} {id = 13 : i64}
  // CHECK-NEXT:    amdgpu.mfma {{.*}} {id = 14 : i64}
  // CHECK-NEXT:    amdgpu.mfma {{.*}} {id = 15 : i64}
  // CHECK-NEXT:    amdgpu.mfma {{.*}} {id = 16 : i64}
  // CHECK-NEXT:    amdgpu.mfma {{.*}} {id = 17 : i64}
  // CHECK-NEXT:    amdgpu.mfma {{.*}} {id = 18 : i64}
  // CHECK-NEXT:    amdgpu.mfma {{.*}} {id = 19 : i64}
  // CHECK-NEXT:    sluice.wait_marks 1
  // CHECK-NEXT:    sluice.barrier
  // CHECK-NEXT:    sluice.lds_read {{.*}} {id = 1 : i64}
  // CHECK-NEXT:    amdgpu.mfma {{.*}} {id = 20 : i64}
  // CHECK-NEXT:    amdgpu.mfma {{.*}} {id = 21 : i64}
  // CHECK-NEXT:    "test.use"
  gpu.func @rises_few(%a: vector<4xf16>, %c: vector<16xf32>, %row: i32) kernel attributes {sluice.few_registers} {
    %t = sluice.lds_alloc : !tile
    %r0 = sluice.lds_read %t[%row, %row] {id = 0} : !tile, vector<4xf16>
    %m0 = amdgpu.mfma 32x32x8 %a * %r0 + %c {id = 10} blgp = none : vector<4xf16>, vector<4xf16>, vector<16xf32>
    %m1 = amdgpu.mfma 32x32x8 %a * %a + %m0 {id = 11} blgp = none : vector<4xf16>, vector<4xf16>, vector<16xf32>
    %m2 = amdgpu.mfma 32x32x8 %a * %a + %m1 {id = 12} blgp = none : vector<4xf16>, vector<4xf16>, vector<16xf32>
    %m3 = amdgpu.mfma 32x32x8 %a * %a + %m2 {id = 13} blgp = none : vector<4xf16>, vector<4xf16>, vector<16xf32>
    %m4 = amdgpu.mfma 32x32x8 %a * %a + %m3 {id = 14} blgp = none : vector<4xf16>, vector<4xf16>, vector<16xf32>
    %m5 = amdgpu.mfma 32x32x8 %a * %a + %m4 {id = 15} blgp = none : vector<4xf16>, vector<4xf16>, vector<16xf32>
    %m6 = amdgpu.mfma 32x32x8 %a * %a + %m5 {id = 16} blgp = none : vector<4xf16>, vector<4xf16>, vector<16xf32>
    %m7 = amdgpu.mfma 32x32x8 %a * %a + %m6 {id = 17} blgp = none : vector<4xf16>, vector<4xf16>, vector<16xf32>
    %m8 = amdgpu.mfma 32x32x8 %a * %a + %m7 {id = 18} blgp = none : vector<4xf16>, vector<4xf16>, vector<16xf32>
    %m9 = amdgpu.mfma 32x32x8 %a * %a + %m8 {id = 19} blgp = none : vector<4xf16>, vector<4xf16>, vector<16xf32>
    sluice.wait_marks 1
    sluice.barrier
    %r1 = sluice.lds_read %t[%row, %row] {id = 1} : !tile, vector<4xf16>
    %m10 = amdgpu.mfma 32x32x8 %a * %r1 + %m9 {id = 20} blgp = none : vector<4xf16>, vector<4xf16>, vector<16xf32>
    %m11 = amdgpu.mfma 32x32x8 %a * %a + %m10 {id = 21} blgp = none : vector<4xf16>, vector<4xf16>, vector<16xf32>
    "test.use"(%m11) : (vector<16xf32>) -> ()
    gpu.return
  }

  // With few registers operands of MFMAs come first, since their registers are free again after the MFMA.
  // CHECK-LABEL: gpu.func @due_few
  // CHECK-NEXT:    amdgpu.mfma {{.*}} {id = 10 : i64}
  // CHECK-NEXT:    arith.mulf {{.*}} {id = 20 : i64}
  // CHECK-NEXT:    llvm.call_intrinsic "llvm.amdgcn.exp2"({{.*}}) {id = 0 : i64}
  // CHECK-NEXT:    amdgpu.mfma {{.*}} {id = 11 : i64}
  // CHECK-NEXT:    llvm.call_intrinsic "llvm.amdgcn.exp2"({{.*}}) {id = 1 : i64}
  // CHECK-NEXT:    llvm.call_intrinsic "llvm.amdgcn.exp2"({{.*}}) {id = 2 : i64}
  // CHECK-NEXT:    amdgpu.mfma {{.*}} {id = 12 : i64}
  // CHECK-NEXT:    llvm.call_intrinsic "llvm.amdgcn.exp2"({{.*}}) {id = 3 : i64}
  // CHECK-NEXT:    amdgpu.mfma {{.*}} {id = 13 : i64}
  // CHECK-NEXT:    "test.use"
  gpu.func @due_few(%a: vector<4xf16>, %c: vector<16xf32>, %x: f32, %h: vector<4xf16>) kernel attributes {sluice.few_registers} {
    %f0 = arith.mulf %h, %h {id = 20} : vector<4xf16>
    %e0 = llvm.call_intrinsic "llvm.amdgcn.exp2"(%x) {id = 0} : (f32) -> f32
    %e1 = llvm.call_intrinsic "llvm.amdgcn.exp2"(%e0) {id = 1} : (f32) -> f32
    %e2 = llvm.call_intrinsic "llvm.amdgcn.exp2"(%e1) {id = 2} : (f32) -> f32
    %e3 = llvm.call_intrinsic "llvm.amdgcn.exp2"(%e2) {id = 3} : (f32) -> f32
    %m0 = amdgpu.mfma 32x32x8 %a * %a + %c {id = 10} blgp = none : vector<4xf16>, vector<4xf16>, vector<16xf32>
    %m1 = amdgpu.mfma 32x32x8 %a * %a + %m0 {id = 11} blgp = none : vector<4xf16>, vector<4xf16>, vector<16xf32>
    %m2 = amdgpu.mfma 32x32x8 %a * %a + %m1 {id = 12} blgp = none : vector<4xf16>, vector<4xf16>, vector<16xf32>
    %m3 = amdgpu.mfma 32x32x8 %a * %f0 + %m2 {id = 13} blgp = none : vector<4xf16>, vector<4xf16>, vector<16xf32>
    "test.use"(%m3, %e3) : (vector<16xf32>, f32) -> ()
    gpu.return
  }
}
