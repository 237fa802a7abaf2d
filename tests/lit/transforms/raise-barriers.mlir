// A barrier after branches that multiply goes to their ends, once on every path.
// RUN: sluice-opt %s --allow-unregistered-dialect --pass-pipeline='builtin.module(gpu.module(gpu.func(raise-barriers)))' | FileCheck %s

!tile = !sluice.lds_tile<64x128xf16>

gpu.module @m {
  // It moves into the innermost branches that end with it; liveness marks do not stop it.
  // CHECK-LABEL: gpu.func @nested
  // CHECK:         scf.if
  // CHECK-NEXT:      scf.if
  // CHECK-NEXT:        amdgpu.mfma
  // CHECK-NEXT:        "test.use"
  // CHECK-NEXT:        sluice.wait_marks 1
  // CHECK-NEXT:        sluice.barrier
  // CHECK-NEXT:      } else {
  // CHECK-NEXT:        sluice.wait_marks 1
  // CHECK-NEXT:        sluice.barrier
  // CHECK-NEXT:      }
  // CHECK-NEXT:    } else {
  // CHECK-NEXT:      "test.inactive"
  // CHECK-NEXT:      sluice.wait_marks 1
  // CHECK-NEXT:      sluice.barrier
  // CHECK-NEXT:    }
  // CHECK-NOT:     sluice.barrier
  gpu.func @nested(%active: i1, %next: i1, %f: vector<4xf16>, %c: vector<16xf32>, %x: i32) kernel {
    %t = sluice.lds_alloc : !tile
    sluice.live_in %t : !tile
    scf.if %active {
      scf.if %next {
        %m = amdgpu.mfma 32x32x8 %f * %f + %c blgp = none : vector<4xf16>, vector<4xf16>, vector<16xf32>
        "test.use"(%m) : (vector<16xf32>) -> ()
      } else {
      }
    } else {
      "test.inactive"() : () -> ()
    }
    sluice.wait_marks 1
    sluice.live_out %t : !tile
    sluice.barrier
    gpu.return
  }

  // It does not pass a read, neither between the branch and itself nor after a branch inside, and every path has it.
  // CHECK-LABEL: gpu.func @walls
  // CHECK:         scf.if
  // CHECK:         }
  // CHECK:         sluice.lds_read
  // CHECK-NEXT:    sluice.barrier
  // CHECK-NEXT:    scf.if
  // CHECK-NEXT:      scf.if
  // CHECK:           } else {
  // CHECK-NEXT:      }
  // CHECK-NEXT:      sluice.lds_read
  // CHECK-NEXT:      sluice.barrier
  // CHECK-NEXT:    } else {
  // CHECK-NEXT:      sluice.barrier
  // CHECK-NEXT:    }
  // CHECK-NEXT:    scf.if
  // CHECK:         }
  // CHECK-NEXT:    sluice.barrier
  gpu.func @walls(%active: i1, %f: vector<4xf16>, %c: vector<16xf32>, %x: i32) kernel {
    %t = sluice.lds_alloc : !tile
    scf.if %active {
      %m = amdgpu.mfma 32x32x8 %f * %f + %c blgp = none : vector<4xf16>, vector<4xf16>, vector<16xf32>
      "test.use"(%m) : (vector<16xf32>) -> ()
    } else {
    }
    %a = sluice.lds_read %t[%x, %x] : !tile, vector<4xf16>
    sluice.barrier
    scf.if %active {
      scf.if %active {
        %m = amdgpu.mfma 32x32x8 %f * %f + %c blgp = none : vector<4xf16>, vector<4xf16>, vector<16xf32>
        "test.use"(%m) : (vector<16xf32>) -> ()
      } else {
      }
      %b = sluice.lds_read %t[%x, %x] : !tile, vector<4xf16>
    } else {
    }
    sluice.barrier
    scf.if %active {
      %m = amdgpu.mfma 32x32x8 %f * %f + %c blgp = none : vector<4xf16>, vector<4xf16>, vector<16xf32>
      "test.use"(%m) : (vector<16xf32>) -> ()
    }
    sluice.barrier
    gpu.return
  }

  // At the start of both sides of a branch it moves before the branch, past operations that do not use LDS, also
  // nested ones, and out of two branches. It does not pass a read, and stays if only one side has it.
  // CHECK-LABEL: gpu.func @both_ways
  // CHECK:         sluice.barrier
  // CHECK-NEXT:    scf.if
  // CHECK-NOT:       sluice.barrier
  // CHECK:           sluice.lds_read
  // CHECK-NOT:       sluice.barrier
  // CHECK:         sluice.barrier
  // CHECK-NEXT:    scf.if
  // CHECK-NOT:       sluice.barrier
  // CHECK:           "test.last"
  // CHECK-NOT:       sluice.barrier
  // CHECK:         scf.if
  // CHECK-NEXT:      scf.if
  // CHECK-NEXT:        sluice.lds_read
  // CHECK-NEXT:      }
  // CHECK-NEXT:      sluice.barrier
  // CHECK:         scf.if
  // CHECK-NEXT:      sluice.lds_read
  // CHECK-NEXT:      sluice.barrier
  // CHECK-NEXT:    } else {
  // CHECK-NEXT:      sluice.barrier
  // CHECK-NEXT:    }
  // CHECK-NEXT:    scf.if
  // CHECK-NEXT:      sluice.barrier
  // CHECK-NEXT:    } else {
  // CHECK-NEXT:    }
  gpu.func @both_ways(%wide: i1, %x: i32, %p: !llvm.ptr) kernel {
    %t = sluice.lds_alloc : !tile
    scf.if %wide {
      %l = llvm.load %p : !llvm.ptr -> i32
      sluice.barrier
      %a = sluice.lds_read %t[%x, %l] : !tile, vector<4xf16>
    } else {
      sluice.barrier
    }
    scf.if %wide {
      sluice.barrier
    } else {
      scf.if %wide {
        %scale = scf.if %wide -> (i32) {
          %s = llvm.load %p : !llvm.ptr -> i32
          scf.yield %s : i32
        } else {
          scf.yield %x : i32
        }
        sluice.barrier
        "test.use"(%scale) : (i32) -> ()
      } else {
        sluice.barrier
        "test.last"() : () -> ()
      }
    }
    scf.if %wide {
      scf.if %wide {
        %b = sluice.lds_read %t[%x, %x] : !tile, vector<4xf16>
      }
      sluice.barrier
    } else {
      sluice.barrier
    }
    scf.if %wide {
      %b = sluice.lds_read %t[%x, %x] : !tile, vector<4xf16>
      sluice.barrier
    } else {
      sluice.barrier
    }
    scf.if %wide {
      sluice.barrier
    } else {
    }
    gpu.return
  }
}
