// Copies before branches that multiply go into them, once on every path.
// RUN: sluice-opt %s --allow-unregistered-dialect --pass-pipeline='builtin.module(gpu.module(gpu.func(sink-copies)))' | FileCheck %s

!tile = !sluice.lds_tile<64x128xf16>

gpu.module @m {
  // Operations that only the copies need move with them, in order; the first copy's place is before the first MFMA.
  // CHECK-LABEL: gpu.func @branches
  // CHECK:         sluice.barrier
  // CHECK-NEXT:    %[[SHARED:.*]] = arith.muli
  // CHECK-NEXT:    scf.if
  // CHECK-NEXT:      "test.first"
  // CHECK-NEXT:      %[[A:.*]] = arith.addi %[[SHARED]]
  // CHECK-NEXT:      sluice.load_to_lds %{{.*}}[%[[A]]] into
  // CHECK-NEXT:      %[[S:.*]] = llvm.inline_asm has_side_effects
  // CHECK-NEXT:      sluice.load_to_lds %{{.*}}[%[[S]]] into
  // CHECK-NEXT:      sluice.async_mark
  // CHECK-NEXT:      amdgpu.mfma
  // CHECK-NEXT:      scf.yield
  // CHECK-NEXT:    } else {
  // CHECK-NEXT:      arith.addi
  // CHECK-NEXT:      sluice.load_to_lds
  // CHECK-NEXT:      llvm.inline_asm
  // CHECK-NEXT:      sluice.load_to_lds
  // CHECK-NEXT:      sluice.async_mark
  // CHECK-NEXT:      scf.yield
  // CHECK-NEXT:    }
  // CHECK-NEXT:    "test.use"(%{{.*}}, %[[SHARED]])
  gpu.func @branches(%active: i1, %f: vector<4xf16>, %c: vector<16xf32>, %r: !llvm.ptr<8>, %x: i32) kernel {
    %t = sluice.lds_alloc : !tile
    sluice.barrier
    %shared = arith.muli %x, %x : i32
    %a = arith.addi %shared, %x : i32
    sluice.load_to_lds %r[%a] into %t[%x] {bytes = 4 : i32} : !tile
    %s = llvm.inline_asm has_side_effects "", "=s,0" %x : (i32) -> i32
    sluice.load_to_lds %r[%s] into %t[%x] {bytes = 4 : i32} : !tile
    sluice.async_mark
    %y = scf.if %active -> vector<16xf32> {
      "test.first"() : () -> ()
      %m = amdgpu.mfma 32x32x8 %f * %f + %c blgp = none : vector<4xf16>, vector<4xf16>, vector<16xf32>
      scf.yield %m : vector<16xf32>
    } else {
      scf.yield %c : vector<16xf32>
    }
    "test.use"(%y, %shared) : (vector<16xf32>, i32) -> ()
    gpu.return
  }

  // Copies move into the innermost branches, past branches without MFMAs and branches with MFMAs only in a loop.
  // CHECK-LABEL: gpu.func @nested
  // CHECK:         sluice.barrier
  // CHECK-NEXT:    scf.if
  // CHECK-NEXT:      scf.if
  // CHECK-NEXT:        "test.mask"
  // CHECK:           scf.if
  // CHECK-NEXT:        scf.for
  // CHECK-NEXT:          amdgpu.mfma
  // CHECK:           } else {
  // CHECK-NEXT:      }
  // CHECK-NEXT:      scf.if
  // CHECK-NEXT:        sluice.load_to_lds
  // CHECK-NEXT:        sluice.async_mark
  // CHECK-NEXT:        amdgpu.mfma
  // CHECK-NEXT:        "test.use"
  // CHECK-NEXT:      } else {
  // CHECK-NEXT:        sluice.load_to_lds
  // CHECK-NEXT:        sluice.async_mark
  // CHECK-NEXT:      }
  // CHECK-NEXT:    } else {
  // CHECK-NEXT:      sluice.load_to_lds
  // CHECK-NEXT:      sluice.async_mark
  // CHECK-NEXT:      "test.inactive"
  // CHECK-NEXT:    }
  // CHECK-NEXT:    gpu.return
  gpu.func @nested(%active: i1, %masked: i1, %next: i1, %f: vector<4xf16>, %c: vector<16xf32>, %r: !llvm.ptr<8>, %x: i32,
                   %n: index) kernel {
    %t = sluice.lds_alloc : !tile
    sluice.barrier
    sluice.load_to_lds %r[%x] into %t[%x] {bytes = 4 : i32} : !tile
    sluice.async_mark
    scf.if %active {
      scf.if %masked {
        "test.mask"() : () -> ()
      }
      scf.if %masked {
        scf.for %i = %n to %n step %n {
          %m = amdgpu.mfma 32x32x8 %f * %f + %c blgp = none : vector<4xf16>, vector<4xf16>, vector<16xf32>
          "test.use"(%m) : (vector<16xf32>) -> ()
        }
      } else {
      }
      scf.if %next {
        %m = amdgpu.mfma 32x32x8 %f * %f + %c blgp = none : vector<4xf16>, vector<4xf16>, vector<16xf32>
        "test.use"(%m) : (vector<16xf32>) -> ()
      } else {
      }
    } else {
      "test.inactive"() : () -> ()
    }
    gpu.return
  }

  // Halves of copies through registers: rows leave all branches around them, and so do values computed from them. The
  // fence that kept them in their place is removed.
  // CHECK-LABEL: gpu.func @halves
  // CHECK:         sluice.barrier
  // CHECK-NEXT:    %[[OUTER:.*]]:2 = scf.if %{{.*}} -> (vector<16xf32>, i32) {
  // CHECK-NEXT:      %[[INNER:.*]]:2 = scf.if %{{.*}} -> (vector<16xf32>, i32) {
  // CHECK-NEXT:        sluice.lds_write
  // CHECK-NEXT:        %[[ROWS:.*]] = rocdl.raw.ptr.buffer.load
  // CHECK-NEXT:        %[[ROW:.*]] = vector.extract %[[ROWS]]
  // CHECK-NEXT:        %[[PRODUCT:.*]] = amdgpu.mfma
  // CHECK-NEXT:        scf.yield %[[PRODUCT]], %[[ROW]]
  // CHECK-NEXT:      } else {
  // CHECK-NEXT:        sluice.lds_write
  // CHECK-NEXT:        rocdl.raw.ptr.buffer.load
  // CHECK:             scf.yield
  // CHECK:           scf.yield %[[INNER]]#0, %[[INNER]]#1
  // CHECK-NEXT:    } else {
  // CHECK-NEXT:      sluice.lds_write
  // CHECK-NEXT:      rocdl.raw.ptr.buffer.load
  // CHECK:           scf.yield
  // CHECK-NEXT:    }
  // CHECK-NEXT:    "test.use"(%[[OUTER]]#0, %[[OUTER]]#1)
  gpu.func @halves(%active: i1, %next: i1, %f: vector<4xf16>, %c: vector<16xf32>, %r: !llvm.ptr<8>, %x: i32,
                   %earlier: vector<8xf16>) kernel {
    %t = sluice.lds_alloc : !tile
    sluice.barrier
    sluice.lds_write %earlier, %t[%x, %x] {sluice.half_of_copy} : vector<8xf16>, !tile
    %rows = rocdl.raw.ptr.buffer.load %r, %x, %x, %x {sluice.half_of_copy} : vector<4xi32>
    llvm.fence syncscope("wavefront") acq_rel
    %row = vector.extract %rows[0] : i32 from vector<4xi32>
    %y = scf.if %active -> vector<16xf32> {
      %z = scf.if %next -> vector<16xf32> {
        %m = amdgpu.mfma 32x32x8 %f * %f + %c blgp = none : vector<4xf16>, vector<4xf16>, vector<16xf32>
        scf.yield %m : vector<16xf32>
      } else {
        scf.yield %c : vector<16xf32>
      }
      scf.yield %z : vector<16xf32>
    } else {
      scf.yield %c : vector<16xf32>
    }
    "test.use"(%y, %row) : (vector<16xf32>, i32) -> ()
    gpu.return
  }

  // A look-up stays before the copies: it is not part of them.
  // CHECK-LABEL: gpu.func @look_up
  // CHECK:         sluice.barrier
  // CHECK-NEXT:    sluice.counted_load
  // CHECK-NEXT:    scf.if
  // CHECK-NEXT:      sluice.load_to_lds
  // CHECK-NEXT:      sluice.async_mark
  // CHECK-NEXT:      amdgpu.mfma
  gpu.func @look_up(%active: i1, %f: vector<4xf16>, %c: vector<16xf32>, %r: !llvm.ptr<8>, %x: i32) kernel {
    %t = sluice.lds_alloc : !tile
    sluice.barrier
    sluice.load_to_lds %r[%x] into %t[%x] {bytes = 4 : i32} : !tile
    sluice.async_mark
    %entry = sluice.counted_load %r[%x]
    scf.if %active {
      %m = amdgpu.mfma 32x32x8 %f * %f + %c blgp = none : vector<4xf16>, vector<4xf16>, vector<16xf32>
      "test.use"(%m) : (vector<16xf32>) -> ()
    } else {
    }
    "test.use"(%entry) : (i32) -> ()
    gpu.return
  }

  // Copies do not pass a barrier, a wait or a write, and every path must have them.
  // CHECK-LABEL: gpu.func @walls
  // CHECK:         sluice.load_to_lds
  // CHECK-NEXT:    sluice.async_mark
  // CHECK-NEXT:    sluice.barrier
  // CHECK-NEXT:    scf.if
  // CHECK:         sluice.load_to_lds
  // CHECK-NEXT:    sluice.async_mark
  // CHECK-NEXT:    sluice.wait_marks 0
  // CHECK-NEXT:    scf.if
  // CHECK:         sluice.load_to_lds
  // CHECK-NEXT:    sluice.async_mark
  // CHECK-NEXT:    sluice.lds_write
  // CHECK-NEXT:    scf.if
  // CHECK:         sluice.load_to_lds
  // CHECK-NEXT:    sluice.async_mark
  // CHECK-NEXT:    scf.if
  // CHECK-NOT:     sluice.load_to_lds
  gpu.func @walls(%active: i1, %f: vector<4xf16>, %c: vector<16xf32>, %r: !llvm.ptr<8>, %x: i32) kernel {
    %t = sluice.lds_alloc : !tile
    sluice.load_to_lds %r[%x] into %t[%x] {bytes = 4 : i32} : !tile
    sluice.async_mark
    sluice.barrier
    scf.if %active {
      %m = amdgpu.mfma 32x32x8 %f * %f + %c blgp = none : vector<4xf16>, vector<4xf16>, vector<16xf32>
      "test.use"(%m) : (vector<16xf32>) -> ()
    } else {
    }
    sluice.load_to_lds %r[%x] into %t[%x] {bytes = 4 : i32} : !tile
    sluice.async_mark
    sluice.wait_marks 0
    scf.if %active {
      %m = amdgpu.mfma 32x32x8 %f * %f + %c blgp = none : vector<4xf16>, vector<4xf16>, vector<16xf32>
      "test.use"(%m) : (vector<16xf32>) -> ()
    } else {
    }
    sluice.load_to_lds %r[%x] into %t[%x] {bytes = 4 : i32} : !tile
    sluice.async_mark
    sluice.lds_write %f, %t[%x, %x] : vector<4xf16>, !tile
    scf.if %active {
      %m = amdgpu.mfma 32x32x8 %f * %f + %c blgp = none : vector<4xf16>, vector<4xf16>, vector<16xf32>
      "test.use"(%m) : (vector<16xf32>) -> ()
    } else {
    }
    sluice.load_to_lds %r[%x] into %t[%x] {bytes = 4 : i32} : !tile
    sluice.async_mark
    scf.if %active {
      %m = amdgpu.mfma 32x32x8 %f * %f + %c blgp = none : vector<4xf16>, vector<4xf16>, vector<16xf32>
      "test.use"(%m) : (vector<16xf32>) -> ()
    }
    gpu.return
  }
}
