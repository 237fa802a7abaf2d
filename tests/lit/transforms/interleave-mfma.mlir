// RUN: sluice-opt %s --allow-unregistered-dialect --pass-pipeline='builtin.module(gpu.module(gpu.func(interleave-mfma)))' | FileCheck %s

!tile = !sluice.lds_tile<64x128xf16>

gpu.module @m {
  // Reads move to the front; vector work that does not need them fills the time until they answer.
  // CHECK-LABEL: gpu.func @softmax_between
  // CHECK:         %[[R0:.*]] = sluice.lds_read %{{.*}}[%{{.*}}, %c0_i32]
  // CHECK-NEXT:    %[[R1:.*]] = sluice.lds_read %{{.*}}[%{{.*}}, %c4_i32]
  // CHECK-NEXT:    arith.mulf {{.*}} {id = 0 : i64}
  // CHECK-NEXT:    arith.mulf {{.*}} {id = 1 : i64}
  // MFMAs keep their order: the last one could issue first.
  // CHECK-NEXT:    %[[M0:.*]] = amdgpu.mfma {{.*}} * %[[R0]] + {{.*}} {id = 10 : i64}
  // CHECK-NEXT:    amdgpu.mfma {{.*}} * %[[R1]] + %[[M0]] {id = 11 : i64}
  // CHECK-NEXT:    amdgpu.mfma {{.*}} {id = 12 : i64}
  // CHECK-NEXT:    "test.use"
  gpu.func @softmax_between(%a: vector<4xf16>, %c: vector<16xf32>, %x: f32, %row: i32) kernel {
    %c0 = arith.constant 0 : i32
    %c4 = arith.constant 4 : i32
    %t = sluice.lds_alloc : !tile
    %p0 = arith.mulf %x, %x {id = 0} : f32
    %p1 = arith.mulf %x, %x {id = 1} : f32
    %r0 = sluice.lds_read %t[%row, %c0] : !tile, vector<4xf16>
    %r1 = sluice.lds_read %t[%row, %c4] : !tile, vector<4xf16>
    %m0 = amdgpu.mfma 32x32x8 %a * %r0 + %c {id = 10} blgp = none : vector<4xf16>, vector<4xf16>, vector<16xf32>
    %m1 = amdgpu.mfma 32x32x8 %a * %r1 + %m0 {id = 11} blgp = none : vector<4xf16>, vector<4xf16>, vector<16xf32>
    %m2 = amdgpu.mfma 32x32x8 %a * %a + %c {id = 12} blgp = none : vector<4xf16>, vector<4xf16>, vector<16xf32>
    "test.use"(%m1, %m2, %p0, %p1) : (vector<16xf32>, vector<16xf32>, f32, f32) -> ()
    gpu.return
  }

  // Operands of an MFMA come before other vector work. Seven turns fit between two MFMAs of 8 passes; the rest
  // follows the last.
  // CHECK-LABEL: gpu.func @feeding
  // CHECK-NEXT:    amdgpu.mfma {{.*}} {id = 10 : i64}
  // CHECK-NEXT:    %[[FED:.*]] = arith.mulf {{.*}} {id = 20 : i64}
  // CHECK-NEXT:    arith.mulf {{.*}} {id = 0 : i64}
  // CHECK-NEXT:    arith.mulf {{.*}} {id = 1 : i64}
  // CHECK-NEXT:    arith.mulf {{.*}} {id = 2 : i64}
  // CHECK-NEXT:    arith.mulf {{.*}} {id = 3 : i64}
  // CHECK-NEXT:    arith.mulf {{.*}} {id = 4 : i64}
  // CHECK-NEXT:    arith.mulf {{.*}} {id = 5 : i64}
  // CHECK-NEXT:    amdgpu.mfma {{.*}} * %[[FED]] + {{.*}} {id = 11 : i64}
  // CHECK-NEXT:    arith.mulf {{.*}} {id = 6 : i64}
  // CHECK-NEXT:    arith.mulf {{.*}} {id = 7 : i64}
  // CHECK-NEXT:    arith.mulf {{.*}} {id = 8 : i64}
  // CHECK-NEXT:    "test.use"
  gpu.func @feeding(%a: vector<4xf16>, %c: vector<16xf32>, %x: f32, %h: vector<4xf16>) kernel {
    %p0 = arith.mulf %x, %x {id = 0} : f32
    %p1 = arith.mulf %x, %x {id = 1} : f32
    %p2 = arith.mulf %x, %x {id = 2} : f32
    %p3 = arith.mulf %x, %x {id = 3} : f32
    %p4 = arith.mulf %x, %x {id = 4} : f32
    %p5 = arith.mulf %x, %x {id = 5} : f32
    %p6 = arith.mulf %x, %x {id = 6} : f32
    %p7 = arith.mulf %x, %x {id = 7} : f32
    %p8 = arith.mulf %x, %x {id = 8} : f32
    %f0 = arith.mulf %h, %h {id = 20} : vector<4xf16>
    %m0 = amdgpu.mfma 32x32x8 %a * %a + %c {id = 10} blgp = none : vector<4xf16>, vector<4xf16>, vector<16xf32>
    %m1 = amdgpu.mfma 32x32x8 %a * %f0 + %m0 {id = 11} blgp = none : vector<4xf16>, vector<4xf16>, vector<16xf32>
    "test.use"(%m1, %p0, %p1, %p2, %p3, %p4, %p5, %p6, %p7, %p8) : (vector<16xf32>, f32, f32, f32, f32, f32, f32, f32, f32, f32) -> ()
    gpu.return
  }

  // A read is issued eight MFMAs before the one that needs it, not earlier: it holds registers.
  // CHECK-LABEL: gpu.func @read_ahead
  // CHECK:         sluice.lds_read %{{.*}} {id = 20 : i64}
  // CHECK-NEXT:    amdgpu.mfma {{.*}} {id = 0 : i64}
  // CHECK-NEXT:    sluice.lds_read %{{.*}} {id = 28 : i64}
  // CHECK-NEXT:    amdgpu.mfma {{.*}} {id = 1 : i64}
  gpu.func @read_ahead(%a: vector<4xf16>, %c: vector<16xf32>, %row: i32) kernel {
    %t = sluice.lds_alloc : !tile
    %r8 = sluice.lds_read %t[%row, %row] {id = 28} : !tile, vector<4xf16>
    %r0 = sluice.lds_read %t[%row, %row] {id = 20} : !tile, vector<4xf16>
    %m0 = amdgpu.mfma 32x32x8 %a * %r0 + %c {id = 0} blgp = none : vector<4xf16>, vector<4xf16>, vector<16xf32>
    %m1 = amdgpu.mfma 32x32x8 %a * %a + %m0 {id = 1} blgp = none : vector<4xf16>, vector<4xf16>, vector<16xf32>
    %m2 = amdgpu.mfma 32x32x8 %a * %a + %m1 {id = 2} blgp = none : vector<4xf16>, vector<4xf16>, vector<16xf32>
    %m3 = amdgpu.mfma 32x32x8 %a * %a + %m2 {id = 3} blgp = none : vector<4xf16>, vector<4xf16>, vector<16xf32>
    %m4 = amdgpu.mfma 32x32x8 %a * %a + %m3 {id = 4} blgp = none : vector<4xf16>, vector<4xf16>, vector<16xf32>
    %m5 = amdgpu.mfma 32x32x8 %a * %a + %m4 {id = 5} blgp = none : vector<4xf16>, vector<4xf16>, vector<16xf32>
    %m6 = amdgpu.mfma 32x32x8 %a * %a + %m5 {id = 6} blgp = none : vector<4xf16>, vector<4xf16>, vector<16xf32>
    %m7 = amdgpu.mfma 32x32x8 %a * %a + %m6 {id = 7} blgp = none : vector<4xf16>, vector<4xf16>, vector<16xf32>
    %m8 = amdgpu.mfma 32x32x8 %a * %r8 + %m7 {id = 8} blgp = none : vector<4xf16>, vector<4xf16>, vector<16xf32>
    "test.use"(%m8) : (vector<16xf32>) -> ()
    gpu.return
  }

  // Reads and arithmetic do not cross a write or a nested region. Work between two of them is ordered separately,
  // also inside the region. A barrier and a wait separate only reads.
  // CHECK-LABEL: gpu.func @walls
  // CHECK-NEXT:    sluice.lds_alloc
  // CHECK-NEXT:    amdgpu.mfma {{.*}} {id = 10 : i64}
  // CHECK-NEXT:    sluice.barrier
  // CHECK-NEXT:    arith.mulf {{.*}} {id = 0 : i64}
  // CHECK-NEXT:    sluice.lds_read {{.*}} {id = 1 : i64}
  // CHECK-NEXT:    arith.mulf {{.*}} {id = 1 : i64}
  // CHECK-NEXT:    arith.mulf {{.*}} {id = 2 : i64}
  // CHECK-NEXT:    amdgpu.mfma {{.*}} {id = 11 : i64}
  // CHECK-NEXT:    amdgpu.mfma {{.*}} {id = 12 : i64}
  // CHECK-NEXT:    amdgpu.mfma {{.*}} {id = 13 : i64}
  // CHECK-NEXT:    sluice.wait_marks 0
  // CHECK-NEXT:    sluice.lds_read {{.*}} {id = 2 : i64}
  // CHECK-NEXT:    amdgpu.mfma {{.*}} {id = 14 : i64}
  // CHECK-NEXT:    amdgpu.mfma {{.*}} {id = 15 : i64}
  // CHECK-NEXT:    sluice.lds_write
  // CHECK-NEXT:    amdgpu.mfma {{.*}} {id = 16 : i64}
  // CHECK-NEXT:    sluice.lds_read {{.*}} {id = 3 : i64}
  // CHECK-NEXT:    arith.mulf {{.*}} {id = 3 : i64}
  // CHECK-NEXT:    amdgpu.mfma {{.*}} {id = 17 : i64}
  // CHECK-NEXT:    scf.if
  // CHECK-NEXT:      amdgpu.mfma {{.*}} {id = 20 : i64}
  // CHECK-NEXT:      arith.mulf {{.*}} {id = 5 : i64}
  // CHECK-NEXT:      amdgpu.mfma {{.*}} {id = 21 : i64}
  // CHECK-NEXT:      "test.use"
  // CHECK-NEXT:    }
  // CHECK-NEXT:    amdgpu.mfma {{.*}} {id = 18 : i64}
  // CHECK-NEXT:    sluice.lds_read {{.*}} {id = 4 : i64}
  // CHECK-NEXT:    arith.mulf {{.*}} {id = 4 : i64}
  // CHECK-NEXT:    amdgpu.mfma {{.*}} {id = 19 : i64}
  gpu.func @walls(%a: vector<4xf16>, %c: vector<16xf32>, %x: f32, %row: i32, %p: i1) kernel {
    %t = sluice.lds_alloc : !tile
    %m0 = amdgpu.mfma 32x32x8 %a * %a + %c {id = 10} blgp = none : vector<4xf16>, vector<4xf16>, vector<16xf32>
    %m1 = amdgpu.mfma 32x32x8 %a * %a + %m0 {id = 11} blgp = none : vector<4xf16>, vector<4xf16>, vector<16xf32>
    %p0 = arith.mulf %x, %x {id = 0} : f32
    sluice.barrier
    %p1 = arith.mulf %x, %x {id = 1} : f32
    %r1 = sluice.lds_read %t[%row, %row] {id = 1} : !tile, vector<4xf16>
    %m2 = amdgpu.mfma 32x32x8 %a * %a + %m1 {id = 12} blgp = none : vector<4xf16>, vector<4xf16>, vector<16xf32>
    %m3 = amdgpu.mfma 32x32x8 %a * %r1 + %m2 {id = 13} blgp = none : vector<4xf16>, vector<4xf16>, vector<16xf32>
    sluice.wait_marks 0
    %p2 = arith.mulf %x, %x {id = 2} : f32
    %r2 = sluice.lds_read %t[%row, %row] {id = 2} : !tile, vector<4xf16>
    %m4 = amdgpu.mfma 32x32x8 %a * %a + %m3 {id = 14} blgp = none : vector<4xf16>, vector<4xf16>, vector<16xf32>
    %m5 = amdgpu.mfma 32x32x8 %a * %r2 + %m4 {id = 15} blgp = none : vector<4xf16>, vector<4xf16>, vector<16xf32>
    sluice.lds_write %a, %t[%row, %row] : vector<4xf16>, !tile
    %p3 = arith.mulf %x, %x {id = 3} : f32
    %r3 = sluice.lds_read %t[%row, %row] {id = 3} : !tile, vector<4xf16>
    %m6 = amdgpu.mfma 32x32x8 %a * %a + %m5 {id = 16} blgp = none : vector<4xf16>, vector<4xf16>, vector<16xf32>
    %m7 = amdgpu.mfma 32x32x8 %a * %r3 + %m6 {id = 17} blgp = none : vector<4xf16>, vector<4xf16>, vector<16xf32>
    scf.if %p {
      %q = arith.mulf %x, %x {id = 5} : f32
      %n0 = amdgpu.mfma 32x32x8 %a * %a + %c {id = 20} blgp = none : vector<4xf16>, vector<4xf16>, vector<16xf32>
      %n1 = amdgpu.mfma 32x32x8 %a * %a + %n0 {id = 21} blgp = none : vector<4xf16>, vector<4xf16>, vector<16xf32>
      "test.use"(%n1, %q) : (vector<16xf32>, f32) -> ()
    }
    %p4 = arith.mulf %x, %x {id = 4} : f32
    %r4 = sluice.lds_read %t[%row, %row] {id = 4} : !tile, vector<4xf16>
    %m8 = amdgpu.mfma 32x32x8 %a * %a + %m7 {id = 18} blgp = none : vector<4xf16>, vector<4xf16>, vector<16xf32>
    %m9 = amdgpu.mfma 32x32x8 %a * %r4 + %m8 {id = 19} blgp = none : vector<4xf16>, vector<4xf16>, vector<16xf32>
    "test.use"(%m9, %p0, %p1, %p2, %p3, %p4) : (vector<16xf32>, f32, f32, f32, f32, f32) -> ()
    gpu.return
  }

  // A region without effects is a wall as well.
  // CHECK-LABEL: gpu.func @pure_region
  // CHECK-NEXT:    amdgpu.mfma {{.*}} {id = 10 : i64}
  // CHECK-NEXT:    amdgpu.mfma {{.*}} {id = 11 : i64}
  // CHECK-NEXT:    scf.if
  // CHECK:         "test.use"
  gpu.func @pure_region(%a: vector<4xf16>, %c: vector<16xf32>, %x: f32, %p: i1) kernel {
    %m0 = amdgpu.mfma 32x32x8 %a * %a + %c {id = 10} blgp = none : vector<4xf16>, vector<4xf16>, vector<16xf32>
    %m1 = amdgpu.mfma 32x32x8 %a * %a + %m0 {id = 11} blgp = none : vector<4xf16>, vector<4xf16>, vector<16xf32>
    %y = scf.if %p -> f32 {
      %z = arith.mulf %x, %x : f32
      scf.yield %z : f32
    } else {
      scf.yield %x : f32
    }
    "test.use"(%m1, %y) : (vector<16xf32>, f32) -> ()
    gpu.return
  }

  // Copies are spread, one after every second MFMA; they keep their order and stay before their mark. They pass reads
  // and MFMAs, never a barrier or a wait. Operations that only a copy needs move with it.
  // CHECK-LABEL: gpu.func @copies
  // CHECK:         amdgpu.mfma {{.*}} {id = 10 : i64}
  // CHECK-NEXT:    sluice.barrier
  // CHECK-NEXT:    sluice.load_to_lds {{.*}} {bytes = 4 : i32, id = 0 : i64}
  // CHECK-NEXT:    sluice.lds_read
  // CHECK-NEXT:    amdgpu.mfma {{.*}} {id = 11 : i64}
  // CHECK-NEXT:    %[[PLACE:.*]] = llvm.add
  // CHECK-NEXT:    sluice.load_to_lds %{{.*}}[%[[PLACE]]] {{.*}} {bytes = 4 : i32, id = 1 : i64}
  // CHECK-NEXT:    sluice.async_mark
  // CHECK-NEXT:    amdgpu.mfma {{.*}} {id = 12 : i64}
  // CHECK:         amdgpu.mfma {{.*}} {id = 19 : i64}
  // CHECK-NEXT:    sluice.wait_marks 1
  // CHECK-NEXT:    sluice.barrier
  // CHECK:         sluice.load_to_lds {{.*}} {bytes = 4 : i32, id = 2 : i64}
  gpu.func @copies(%a: vector<4xf16>, %c: vector<16xf32>, %row: i32, %r: !llvm.ptr<8>) kernel {
    %s = sluice.lds_alloc : !tile
    %t = sluice.lds_alloc : !tile
    sluice.barrier
    sluice.load_to_lds %r[%row] into %s[%row] {bytes = 4 : i32, id = 0} : !tile
    %place = llvm.add %row, %row : i32
    sluice.load_to_lds %r[%place] into %s[%row] {bytes = 4 : i32, id = 1} : !tile
    sluice.async_mark
    %m0 = amdgpu.mfma 32x32x8 %a * %a + %c {id = 10} blgp = none : vector<4xf16>, vector<4xf16>, vector<16xf32>
    %m1 = amdgpu.mfma 32x32x8 %a * %a + %m0 {id = 11} blgp = none : vector<4xf16>, vector<4xf16>, vector<16xf32>
    %m2 = amdgpu.mfma 32x32x8 %a * %a + %m1 {id = 12} blgp = none : vector<4xf16>, vector<4xf16>, vector<16xf32>
    %m3 = amdgpu.mfma 32x32x8 %a * %a + %m2 {id = 13} blgp = none : vector<4xf16>, vector<4xf16>, vector<16xf32>
    %m4 = amdgpu.mfma 32x32x8 %a * %a + %m3 {id = 14} blgp = none : vector<4xf16>, vector<4xf16>, vector<16xf32>
    %m5 = amdgpu.mfma 32x32x8 %a * %a + %m4 {id = 15} blgp = none : vector<4xf16>, vector<4xf16>, vector<16xf32>
    %m6 = amdgpu.mfma 32x32x8 %a * %a + %m5 {id = 16} blgp = none : vector<4xf16>, vector<4xf16>, vector<16xf32>
    %m7 = amdgpu.mfma 32x32x8 %a * %a + %m6 {id = 17} blgp = none : vector<4xf16>, vector<4xf16>, vector<16xf32>
    %read = sluice.lds_read %t[%row, %row] : !tile, vector<4xf16>
    %m8 = amdgpu.mfma 32x32x8 %a * %read + %m7 {id = 18} blgp = none : vector<4xf16>, vector<4xf16>, vector<16xf32>
    %m9 = amdgpu.mfma 32x32x8 %a * %a + %m8 {id = 19} blgp = none : vector<4xf16>, vector<4xf16>, vector<16xf32>
    sluice.wait_marks 1
    sluice.barrier
    %m10 = amdgpu.mfma 32x32x8 %a * %a + %m9 {id = 20} blgp = none : vector<4xf16>, vector<4xf16>, vector<16xf32>
    %m11 = amdgpu.mfma 32x32x8 %a * %a + %m10 {id = 21} blgp = none : vector<4xf16>, vector<4xf16>, vector<16xf32>
    sluice.load_to_lds %r[%row] into %s[%row] {bytes = 4 : i32, id = 2} : !tile
    "test.use"(%m11) : (vector<16xf32>) -> ()
    gpu.return
  }

  // Copies that the segment itself waits for are not spread: memory needs the time.
  // CHECK-LABEL: gpu.func @copies_waited_for
  // CHECK:         amdgpu.mfma {{.*}} {id = 10 : i64}
  // CHECK-NEXT:    sluice.barrier
  // CHECK-NEXT:    sluice.load_to_lds {{.*}} {bytes = 4 : i32, id = 0 : i64}
  // CHECK-NEXT:    sluice.load_to_lds {{.*}} {bytes = 4 : i32, id = 1 : i64}
  // CHECK-NEXT:    amdgpu.mfma {{.*}} {id = 11 : i64}
  // CHECK-NEXT:    sluice.load_to_lds {{.*}} {bytes = 4 : i32, id = 2 : i64}
  // CHECK-NEXT:    sluice.async_mark
  gpu.func @copies_waited_for(%a: vector<4xf16>, %c: vector<16xf32>, %row: i32, %r: !llvm.ptr<8>) kernel {
    %s = sluice.lds_alloc : !tile
    sluice.barrier
    sluice.load_to_lds %r[%row] into %s[%row] {bytes = 4 : i32, id = 0} : !tile
    sluice.load_to_lds %r[%row] into %s[%row] {bytes = 4 : i32, id = 1} : !tile
    sluice.load_to_lds %r[%row] into %s[%row] {bytes = 4 : i32, id = 2} : !tile
    sluice.async_mark
    %m0 = amdgpu.mfma 32x32x8 %a * %a + %c {id = 10} blgp = none : vector<4xf16>, vector<4xf16>, vector<16xf32>
    %m1 = amdgpu.mfma 32x32x8 %a * %a + %m0 {id = 11} blgp = none : vector<4xf16>, vector<4xf16>, vector<16xf32>
    %m2 = amdgpu.mfma 32x32x8 %a * %a + %m1 {id = 12} blgp = none : vector<4xf16>, vector<4xf16>, vector<16xf32>
    %m3 = amdgpu.mfma 32x32x8 %a * %a + %m2 {id = 13} blgp = none : vector<4xf16>, vector<4xf16>, vector<16xf32>
    %m4 = amdgpu.mfma 32x32x8 %a * %a + %m3 {id = 14} blgp = none : vector<4xf16>, vector<4xf16>, vector<16xf32>
    %m5 = amdgpu.mfma 32x32x8 %a * %a + %m4 {id = 15} blgp = none : vector<4xf16>, vector<4xf16>, vector<16xf32>
    %m6 = amdgpu.mfma 32x32x8 %a * %a + %m5 {id = 16} blgp = none : vector<4xf16>, vector<4xf16>, vector<16xf32>
    %m7 = amdgpu.mfma 32x32x8 %a * %a + %m6 {id = 17} blgp = none : vector<4xf16>, vector<4xf16>, vector<16xf32>
    sluice.wait_marks 0
    sluice.barrier
    "test.use"(%m7) : (vector<16xf32>) -> ()
    gpu.return
  }

  // A wait and a barrier at the end of a block rise over the last MFMAs, to where all copies are issued and all reads
  // are answered.
  // CHECK-LABEL: gpu.func @last_barrier
  // CHECK:         sluice.load_to_lds
  // CHECK:         sluice.lds_read
  // CHECK:         amdgpu.mfma {{.*}} {id = 14 : i64}
  // CHECK-NEXT:    sluice.wait_marks 1
  // CHECK-NEXT:    amdgpu.mfma {{.*}} {id = 15 : i64}
  // CHECK-NEXT:    sluice.barrier
  // CHECK-NEXT:    amdgpu.mfma {{.*}} {id = 16 : i64}
  // CHECK-NEXT:    amdgpu.mfma {{.*}} {id = 17 : i64}
  // CHECK-NEXT:    amdgpu.mfma {{.*}} {id = 18 : i64}
  // CHECK-NEXT:    amdgpu.mfma {{.*}} {id = 19 : i64}
  // CHECK-NEXT:    gpu.return
  gpu.func @last_barrier(%a: vector<4xf16>, %c: vector<16xf32>, %row: i32, %r: !llvm.ptr<8>) kernel {
    %s = sluice.lds_alloc : !tile
    %t = sluice.lds_alloc : !tile
    sluice.barrier
    sluice.load_to_lds %r[%row] into %s[%row] {bytes = 4 : i32} : !tile
    sluice.async_mark
    %m0 = amdgpu.mfma 32x32x8 %a * %a + %c {id = 10} blgp = none : vector<4xf16>, vector<4xf16>, vector<16xf32>
    %m1 = amdgpu.mfma 32x32x8 %a * %a + %m0 {id = 11} blgp = none : vector<4xf16>, vector<4xf16>, vector<16xf32>
    %m2 = amdgpu.mfma 32x32x8 %a * %a + %m1 {id = 12} blgp = none : vector<4xf16>, vector<4xf16>, vector<16xf32>
    %m3 = amdgpu.mfma 32x32x8 %a * %a + %m2 {id = 13} blgp = none : vector<4xf16>, vector<4xf16>, vector<16xf32>
    %m4 = amdgpu.mfma 32x32x8 %a * %a + %m3 {id = 14} blgp = none : vector<4xf16>, vector<4xf16>, vector<16xf32>
    %m5 = amdgpu.mfma 32x32x8 %a * %a + %m4 {id = 15} blgp = none : vector<4xf16>, vector<4xf16>, vector<16xf32>
    %m6 = amdgpu.mfma 32x32x8 %a * %a + %m5 {id = 16} blgp = none : vector<4xf16>, vector<4xf16>, vector<16xf32>
    %m7 = amdgpu.mfma 32x32x8 %a * %a + %m6 {id = 17} blgp = none : vector<4xf16>, vector<4xf16>, vector<16xf32>
    %read = sluice.lds_read %t[%row, %row] : !tile, vector<4xf16>
    %m8 = amdgpu.mfma 32x32x8 %a * %read + %m7 {id = 18} blgp = none : vector<4xf16>, vector<4xf16>, vector<16xf32>
    %m9 = amdgpu.mfma 32x32x8 %a * %a + %m8 {id = 19} blgp = none : vector<4xf16>, vector<4xf16>, vector<16xf32>
    sluice.wait_marks 1
    sluice.barrier
    gpu.return
  }

  // One MFMA has nothing to fill: the block does not change.
  // CHECK-LABEL: gpu.func @one
  // CHECK-NEXT:    sluice.lds_alloc
  // CHECK-NEXT:    arith.mulf
  // CHECK-NEXT:    sluice.lds_read
  // CHECK-NEXT:    amdgpu.mfma
  // CHECK-NEXT:    "test.use"
  gpu.func @one(%a: vector<4xf16>, %c: vector<16xf32>, %x: f32, %row: i32) kernel {
    %t = sluice.lds_alloc : !tile
    %p0 = arith.mulf %x, %x {id = 0} : f32
    %r0 = sluice.lds_read %t[%row, %row] : !tile, vector<4xf16>
    %m0 = amdgpu.mfma 32x32x8 %a * %a + %c {id = 10} blgp = none : vector<4xf16>, vector<4xf16>, vector<16xf32>
    "test.use"(%p0, %r0, %m0) : (f32, vector<4xf16>, vector<16xf32>) -> ()
    gpu.return
  }

  // CHECK-LABEL: gpu.func @none
  // CHECK-NEXT:    sluice.lds_alloc
  // CHECK-NEXT:    arith.mulf
  // CHECK-NEXT:    sluice.lds_read
  // CHECK-NEXT:    "test.use"
  gpu.func @none(%x: f32, %row: i32) kernel {
    %t = sluice.lds_alloc : !tile
    %p0 = arith.mulf %x, %x {id = 0} : f32
    %r0 = sluice.lds_read %t[%row, %row] : !tile, vector<4xf16>
    "test.use"(%p0, %r0) : (f32, vector<4xf16>) -> ()
    gpu.return
  }

  // 16x16x32 of E4M3 has 4 passes: three turns.
  // CHECK-LABEL: gpu.func @small_bytes
  // CHECK-NEXT:    amdgpu.mfma {{.*}} {id = 10 : i64}
  // CHECK-COUNT-3: arith.mulf
  // CHECK-NEXT:    amdgpu.mfma {{.*}} {id = 11 : i64}
  // CHECK-NEXT:    arith.mulf {{.*}} {id = 3 : i64}
  gpu.func @small_bytes(%a: vector<8xf8E4M3FNUZ>, %c: vector<4xf32>, %x: f32) kernel {
    %p0 = arith.mulf %x, %x {id = 0} : f32
    %p1 = arith.mulf %x, %x {id = 1} : f32
    %p2 = arith.mulf %x, %x {id = 2} : f32
    %p3 = arith.mulf %x, %x {id = 3} : f32
    %p4 = arith.mulf %x, %x {id = 4} : f32
    %m0 = amdgpu.mfma 16x16x32 %a * %a + %c {id = 10} blgp = none : vector<8xf8E4M3FNUZ>, vector<8xf8E4M3FNUZ>, vector<4xf32>
    %m1 = amdgpu.mfma 16x16x32 %a * %a + %m0 {id = 11} blgp = none : vector<8xf8E4M3FNUZ>, vector<8xf8E4M3FNUZ>, vector<4xf32>
    "test.use"(%m1, %p0, %p1, %p2, %p3, %p4) : (vector<4xf32>, f32, f32, f32, f32, f32) -> ()
    gpu.return
  }
}
