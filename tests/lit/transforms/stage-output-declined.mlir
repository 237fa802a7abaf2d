// Output tiles that lanes store from registers, each with a remark that gives the reason.
// RUN: sluice-opt %s --split-input-file --verify-diagnostics --pass-pipeline='builtin.module(gpu.module(gpu.func(stage-output)))' | FileCheck %s

// 96 columns are 12 pieces of 16 bytes: 64 lanes are not a multiple of 12.
// CHECK-LABEL: gpu.func @columns
// CHECK-NOT:     sluice.
// Each value is stored after its row's check, with the alignment of its 8 bytes.
// CHECK:         scf.if
// CHECK-COUNT-2:   llvm.store %{{.*}} {alignment = 8 : i64} : vector<4xf16>, !llvm.ptr<1>
// CHECK-NOT:     sluice.
// CHECK:         gpu.return
gpu.module @m {
  gpu.func @columns(%o: !llvm.ptr<1>, %n: i32, %row: i32, %a: i32, %b: i32, %x: vector<4xf16>, %y: vector<4xf16>) kernel
      attributes {known_block_size = array<i32: 128, 1, 1>} {
    // expected-remark@+1 {{stored from registers: a row of 96 elements is not a power of two of 16-byte pieces}}
    sluice.store_tile %o row %row limit %n columns(%a, %b) limit %n values(%x, %y : vector<4xf16>, vector<4xf16>) {tile_rows = 64 : i32, panel_columns = 96 : i32, panel_values = array<i32: 2>}
    gpu.return
  }
}

// -----

// A row that is not a whole number of pieces.
// CHECK-LABEL: gpu.func @pieces
// CHECK-NOT:     sluice.
// CHECK:         gpu.return
gpu.module @m {
  gpu.func @pieces(%o: !llvm.ptr<1>, %n: i32, %row: i32, %a: i32, %x: vector<4xf16>) kernel
      attributes {known_block_size = array<i32: 128, 1, 1>} {
    // expected-remark@+1 {{stored from registers: a row of 68 elements is not a power of two of 16-byte pieces}}
    sluice.store_tile %o row %row limit %n columns(%a) limit %n values(%x : vector<4xf16>) {tile_rows = 64 : i32, panel_columns = 68 : i32, panel_values = array<i32: 1>}
    gpu.return
  }
}

// -----

// CHECK-LABEL: gpu.func @wide_values
// CHECK-NOT:     sluice.
// CHECK:         gpu.return
gpu.module @m {
  gpu.func @wide_values(%o: !llvm.ptr<1>, %n: i32, %row: i32, %a: i32, %x: vector<16xf16>) kernel
      attributes {known_block_size = array<i32: 128, 1, 1>} {
    // expected-remark@+1 {{stored from registers: lanes hold more than 16 neighbouring bytes at a time}}
    sluice.store_tile %o row %row limit %n columns(%a) limit %n values(%x : vector<16xf16>) {tile_rows = 64 : i32, panel_columns = 64 : i32, panel_values = array<i32: 1>}
    gpu.return
  }
}

// -----

// Eight rows of 64 elements are one store of a wave: 24 rows of two waves are one and a half.
// CHECK-LABEL: gpu.func @rows_of_a_store
// CHECK-NOT:     sluice.
// CHECK:         gpu.return
gpu.module @m {
  gpu.func @rows_of_a_store(%o: !llvm.ptr<1>, %n: i32, %row: i32, %a: i32, %x: vector<4xf16>) kernel
      attributes {known_block_size = array<i32: 128, 1, 1>} {
    // expected-remark@+1 {{stored from registers: 24 rows do not divide into stores of 2 waves}}
    sluice.store_tile %o row %row limit %n columns(%a) limit %n values(%x : vector<4xf16>) {tile_rows = 24 : i32, panel_columns = 64 : i32, panel_values = array<i32: 1>}
    gpu.return
  }
}

// -----

// CHECK-LABEL: gpu.func @rows_of_a_wave
// CHECK-NOT:     sluice.
// CHECK:         gpu.return
gpu.module @m {
  gpu.func @rows_of_a_wave(%o: !llvm.ptr<1>, %n: i32, %row: i32, %a: i32, %x: vector<4xf16>) kernel
      attributes {known_block_size = array<i32: 192, 1, 1>} {
    // expected-remark@+1 {{stored from registers: 64 rows do not divide into stores of 3 waves}}
    sluice.store_tile %o row %row limit %n columns(%a) limit %n values(%x : vector<4xf16>) {tile_rows = 64 : i32, panel_columns = 64 : i32, panel_values = array<i32: 1>}
    gpu.return
  }
}

// -----

// The number of waves is not known.
// CHECK-LABEL: gpu.func @no_waves
// CHECK-NOT:     sluice.
// CHECK:         gpu.return
gpu.module @m {
  gpu.func @no_waves(%o: !llvm.ptr<1>, %n: i32, %row: i32, %a: i32, %x: vector<4xf16>) kernel {
    // expected-remark@+1 {{stored from registers: 64 rows do not divide into stores of 0 waves}}
    sluice.store_tile %o row %row limit %n columns(%a) limit %n values(%x : vector<4xf16>) {tile_rows = 64 : i32, panel_columns = 64 : i32, panel_values = array<i32: 1>}
    gpu.return
  }
}

// -----

!tile = !sluice.lds_tile<64x128xf16>
// Four workgroups fit with the tile of 16384 bytes, two with an output of 32768.
// CHECK-LABEL: gpu.func @fewer_workgroups
// CHECK-NOT:     lds_write
// CHECK:         gpu.return
gpu.module @m {
  gpu.func @fewer_workgroups(%o: !llvm.ptr<1>, %n: i32, %row: i32, %a: i32, %x: vector<4xf16>) kernel
      attributes {known_block_size = array<i32: 256, 1, 1>} {
    %t = sluice.lds_alloc : !tile
    // expected-remark@+1 {{stored from registers: staging takes 32768 bytes of LDS where the kernel has 16384}}
    sluice.store_tile %o row %row limit %n columns(%a) limit %n values(%x : vector<4xf16>) {tile_rows = 128 : i32, panel_columns = 128 : i32, panel_values = array<i32: 1>}
    gpu.return
  }
}

// -----

!tile = !sluice.lds_tile<64x128xf16>
// The registers are those of three waves per SIMD, so three of the four workgroups have room, but not with 32768
// bytes each.
// CHECK-LABEL: gpu.func @fewer_workgroups_than_registers_leave
// CHECK-NOT:     lds_write
// CHECK:         gpu.return
gpu.module @m {
  gpu.func @fewer_workgroups_than_registers_leave(%o: !llvm.ptr<1>, %n: i32, %row: i32, %a: i32, %x: vector<4xf16>) kernel
      attributes {known_block_size = array<i32: 256, 1, 1>, sluice.waves_per_simd = 3 : i32} {
    %t = sluice.lds_alloc : !tile
    // expected-remark@+1 {{stored from registers: staging takes 32768 bytes of LDS where the kernel has 16384}}
    sluice.store_tile %o row %row limit %n columns(%a) limit %n values(%x : vector<4xf16>) {tile_rows = 128 : i32, panel_columns = 128 : i32, panel_values = array<i32: 1>}
    gpu.return
  }
}

// -----

!tile = !sluice.lds_tile<64x128xf16>
// The LDS size that reuse-lds has found counts, not the sum of the tiles, which would leave room here.
// CHECK-LABEL: gpu.func @fewer_workgroups_than_reuse_leaves
// CHECK-NOT:     lds_write
// CHECK:         gpu.return
gpu.module @m {
  gpu.func @fewer_workgroups_than_reuse_leaves(%o: !llvm.ptr<1>, %n: i32, %row: i32, %a: i32, %x: vector<4xf16>) kernel
      attributes {known_block_size = array<i32: 256, 1, 1>, sluice.lds = {arena_bytes = 16384 : i32}} {
    %t = sluice.lds_alloc {offset = 0 : i32} : !tile
    %u = sluice.lds_alloc {offset = 0 : i32} : !tile
    // expected-remark@+1 {{stored from registers: staging takes 32768 bytes of LDS where the kernel has 16384}}
    sluice.store_tile %o row %row limit %n columns(%a) limit %n values(%x : vector<4xf16>) {tile_rows = 128 : i32, panel_columns = 128 : i32, panel_values = array<i32: 1>}
    gpu.return
  }
}

// -----

// 128 KiB are more than gfx942 has, even without tiles in the way.
// CHECK-LABEL: gpu.func @too_large
// CHECK-NOT:     lds_write
// CHECK:         gpu.return
gpu.module @m {
  gpu.func @too_large(%o: !llvm.ptr<1>, %n: i32, %row: i32, %a: i32, %x: vector<4xf16>) kernel
      attributes {known_block_size = array<i32: 256, 1, 1>} {
    // expected-remark@+1 {{stored from registers: staging takes 131072 bytes of LDS where the kernel has 0}}
    sluice.store_tile %o row %row limit %n columns(%a) limit %n values(%x : vector<4xf16>) {tile_rows = 512 : i32, panel_columns = 128 : i32, panel_values = array<i32: 1>}
    gpu.return
  }
}
