// RUN: sluice-opt %s --split-input-file --verify-diagnostics --pass-pipeline='builtin.module(gpu.module(gpu.func(lower-async-marks),lower-sluice-to-rocdl))'

!tile = !sluice.lds_tile<16x128xf16>
gpu.module @m {
  gpu.func @undistributed(%base: !llvm.ptr<1>, %n: i32, %stride: i64) kernel {
    %tile = sluice.lds_alloc : !tile
    // expected-error@+1 {{must be distributed before marks can be counted}}
    %token = sluice.async_dma %base[%n] limit %n stride %stride into %tile : !tile
    gpu.return
  }
}

// -----

!tile = !sluice.lds_tile<256x144xf16>
gpu.module @m {
  // expected-error@+1 {{needs 73728 bytes of LDS; gfx942 has 65536}}
  gpu.func @too_much_lds() kernel {
    %tile = sluice.lds_alloc : !tile
    gpu.return
  }
}

// -----

!tile = !sluice.lds_tile<16x128xf16>
gpu.module @m {
  // expected-error@+1 {{has an offset for 1 of 2 LDS tiles; all or none must have one}}
  gpu.func @some_offsets() kernel {
    %a = sluice.lds_alloc {offset = 0 : i32} : !tile
    %b = sluice.lds_alloc : !tile
    gpu.return
  }
}

// -----

!tile = !sluice.lds_tile<16x128xf16>
gpu.module @m {
  gpu.func @unaligned() kernel {
    // expected-error@+1 {{offset 64 is not a multiple of 128}}
    %a = sluice.lds_alloc {offset = 64 : i32} : !tile
    gpu.return
  }
}

// -----

gpu.module @m {
  // expected-error@+1 {{marks are counted in structured control flow only}}
  gpu.func @unstructured(%c: i1) kernel {
    cf.cond_br %c, ^then, ^end
  ^then:
    sluice.async_mark
    cf.br ^end
  ^end:
    sluice.wait_marks 0
    gpu.return
  }
}
