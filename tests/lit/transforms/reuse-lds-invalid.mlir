// RUN: sluice-opt %s --split-input-file --verify-diagnostics --pass-pipeline='builtin.module(gpu.module(gpu.func(reuse-lds)))'

!tile = !sluice.lds_tile<64x128xf16>
gpu.module @m {
  gpu.func @no_marks(%v: vector<4xf16>, %n: i32) kernel {
    %a = sluice.lds_alloc : !tile
    // expected-error@+1 {{accesses tile 0 (64x128xf16, 16384 bytes) outside its live ranges; annotate-lds-liveness marks them}}
    sluice.lds_write %v, %a[%n, %n] : vector<4xf16>, !tile
    gpu.return
  }
}

// -----

// The mark is only on one of the paths to the read.
!tile = !sluice.lds_tile<64x128xf16>
gpu.module @m {
  gpu.func @mark_on_one_path(%v: vector<4xf16>, %n: i32, %p: i1) kernel {
    %a = sluice.lds_alloc : !tile
    scf.if %p {
      sluice.barrier
      sluice.live_in %a : !tile
      sluice.lds_write %v, %a[%n, %n] : vector<4xf16>, !tile
    }
    // expected-error@+1 {{accesses tile 0 (64x128xf16, 16384 bytes) outside its live ranges}}
    %x = sluice.lds_read %a[%n, %n] : !tile, vector<4xf16>
    gpu.return
  }
}

// -----

!tile = !sluice.lds_tile<128x128xf16>
!other = !sluice.lds_tile<64x128xf16>
gpu.module @m {
  // expected-error@+1 {{needs 81920 bytes of LDS; gfx942 has 65536; live at once, in 81920 bytes: tile 0 (64x128xf16, 16384 bytes), tile 2 (128x128xf16, 32768 bytes), tile 3 (128x128xf16, 32768 bytes)}}
  gpu.func @too_much(%v: vector<4xf16>, %n: i32) kernel {
    %a = sluice.lds_alloc : !other
    %b = sluice.lds_alloc : !tile
    %c = sluice.lds_alloc : !tile
    %d = sluice.lds_alloc : !tile
    sluice.live_in %a : !other
    sluice.live_in %b : !tile
    sluice.live_out %b : !tile
    sluice.live_in %c : !tile
    sluice.live_in %d : !tile
    gpu.return
  }
}

// -----

// The marks end %a while its copy is in flight. No barrier helps.
!tile = !sluice.lds_tile<64x128xf16>
gpu.module @m {
  gpu.func @in_flight(%k: !llvm.ptr<1>, %n: i32, %s: i64, %v: vector<4xf16>) kernel {
    %a = sluice.lds_alloc : !tile
    %b = sluice.lds_alloc : !tile
    sluice.live_in %a : !tile
    %c = sluice.async_dma %k[%n] limit %n stride %s into %a : !tile
    sluice.live_out %a : !tile
    // expected-error@+1 {{tile 1 (64x128xf16, 16384 bytes) takes over bytes of tile 0 (64x128xf16, 16384 bytes), into which a copy is still in flight}}
    sluice.live_in %b : !tile
    sluice.lds_write %v, %b[%n, %n] : vector<4xf16>, !tile
    gpu.return
  }
}

// -----

!tile = !sluice.lds_tile<64x128xf16>
gpu.module @m {
  gpu.func @no_place_for_a_barrier(%n: i32, %v: vector<4xf16>, %p: i1) kernel {
    %a = sluice.lds_alloc : !tile
    %b = sluice.lds_alloc : !tile
    scf.if %p {
      sluice.live_in %a : !tile
      sluice.lds_write %v, %a[%n, %n] : vector<4xf16>, !tile
      sluice.live_out %a : !tile
      // expected-error@+1 {{tile 1 (64x128xf16, 16384 bytes) takes over bytes where not all waves may come, and needs a barrier}}
      sluice.live_in %b : !tile
      sluice.lds_write %v, %b[%n, %n] : vector<4xf16>, !tile
    }
    gpu.return
  }
}
