// RUN: sluice-opt %s --allow-unregistered-dialect --split-input-file --verify-diagnostics --pass-pipeline='builtin.module(gpu.module(gpu.func(annotate-lds-liveness)))'

!tile = !sluice.lds_tile<64x128xf16>
gpu.module @m {
  gpu.func @read_before_write(%v: vector<4xf16>, %n: i32) kernel {
    // expected-note@+1 {{the tile}}
    %a = sluice.lds_alloc : !tile
    // expected-error@+1 {{on some path nothing was written to tile 0 (64x128xf16, 16384 bytes) before this read}}
    %x = sluice.lds_read %a[%n, %n] : !tile, vector<4xf16>
    sluice.lds_write %v, %a[%n, %n] : vector<4xf16>, !tile
    %y = sluice.lds_read %a[%n, %n] : !tile, vector<4xf16>
    gpu.return
  }
}

// -----

!tile = !sluice.lds_tile<64x128xf16>
gpu.module @m {
  gpu.func @written_in_one_branch(%v: vector<4xf16>, %n: i32, %p: i1) kernel {
    // expected-note@+1 {{the tile}}
    %a = sluice.lds_alloc : !tile
    scf.if %p {
      sluice.lds_write %v, %a[%n, %n] : vector<4xf16>, !tile
    }
    // expected-error@+1 {{on some path nothing was written to tile 0}}
    %x = sluice.lds_read %a[%n, %n] : !tile, vector<4xf16>
    gpu.return
  }
}

// -----

!tile = !sluice.lds_tile<64x128xf16>
gpu.module @m {
  gpu.func @loop_that_may_not_run(%v: vector<4xf16>, %n: i32) kernel {
    // expected-note@+1 {{the tile}}
    %a = sluice.lds_alloc : !tile
    scf.for %t = %n to %n step %n : i32 {
      sluice.lds_write %v, %a[%n, %n] : vector<4xf16>, !tile
    }
    // expected-error@+1 {{on some path nothing was written to tile 0}}
    %x = sluice.lds_read %a[%n, %n] : !tile, vector<4xf16>
    gpu.return
  }
}

// -----

// The first iteration has no previous one.
!tile = !sluice.lds_tile<64x128xf16>
gpu.module @m {
  gpu.func @read_of_the_previous_iteration(%v: vector<4xf16>, %n: i32) kernel {
    // expected-note@+1 {{the tile}}
    %a = sluice.lds_alloc : !tile
    scf.for %t = %n to %n step %n : i32 {
      // expected-error@+1 {{on some path nothing was written to tile 0}}
      %x = sluice.lds_read %a[%n, %n] : !tile, vector<4xf16>
      sluice.lds_write %v, %a[%n, %n] : vector<4xf16>, !tile
    }
    gpu.return
  }
}

// -----

!tile = !sluice.lds_tile<64x128xf16>
gpu.module @m {
  gpu.func @never_read(%v: vector<4xf16>, %n: i32, %k: !llvm.ptr<1>, %s: i64) kernel {
    // expected-note@+1 {{the tile}}
    %a = sluice.lds_alloc : !tile
    // expected-note@+1 {{the tile}}
    %b = sluice.lds_alloc : !tile
    sluice.lds_write %v, %a[%n, %n] : vector<4xf16>, !tile
    %x = sluice.lds_read %a[%n, %n] : !tile, vector<4xf16>
    // expected-error@+1 {{nothing reads what this writes to tile 0 (64x128xf16, 16384 bytes)}}
    sluice.lds_write %v, %a[%n, %n] : vector<4xf16>, !tile
    // expected-error@+1 {{nothing reads what this writes to tile 1}}
    %c = sluice.async_dma %k[%n] limit %n stride %s into %b : !tile
    sluice.async_wait %c
    gpu.return
  }
}

// -----

!tile = !sluice.lds_tile<64x128xf16>
gpu.module @m {
  gpu.func @parameter(%a: !tile, %n: i32) kernel {
    // expected-error@+1 {{uses an LDS tile that is not the result of a sluice.lds_alloc}}
    %x = sluice.lds_read %a[%n, %n] : !tile, vector<4xf16>
    gpu.return
  }
}

// -----

!tile = !sluice.lds_tile<64x128xf16>
gpu.module @m {
  gpu.func @unknown_use(%n: i32) kernel {
    %a = sluice.lds_alloc : !tile
    // expected-error@+1 {{uses an LDS tile, but does not say how}}
    "test.use"(%a) : (!tile) -> ()
    gpu.return
  }
}

// -----

gpu.module @m {
  gpu.func @unknown_regions() kernel {
    %a = sluice.lds_alloc : !sluice.lds_tile<64x128xf16>
    // expected-error@+1 {{does not say how control goes through its regions}}
    "test.op"() ({
      "test.end"() : () -> ()
    }) : () -> ()
    gpu.return
  }
}

// -----

gpu.module @m {
  // expected-error@+1 {{has branches between blocks; only structured control flow can be followed}}
  gpu.func @blocks() kernel {
    %a = sluice.lds_alloc : !sluice.lds_tile<64x128xf16>
    cf.br ^next
  ^next:
    gpu.return
  }
}

// -----

// Without tiles the shape of a kernel does not matter.
gpu.module @m {
  gpu.func @blocks_without_tiles() kernel {
    cf.br ^next
  ^next:
    gpu.return
  }
}
