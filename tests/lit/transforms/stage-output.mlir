// RUN: sluice-opt %s --verify-diagnostics --pass-pipeline='builtin.module(gpu.module(gpu.func(stage-output,canonicalize,cse)))' | FileCheck %s

!tile = !sluice.lds_tile<64x128xf16>

gpu.module @m {
  // Two waves have 16 rows each: with eight lanes per row, a wave stores its rows 8 at a time.
  // CHECK-LABEL: gpu.func @staged
  // CHECK-SAME:    %[[ADDRESS:[a-z0-9]+]]: !llvm.ptr<1>, %[[LIMIT:[a-z0-9]+]]: i32, %[[COLUMNS:[a-z0-9]+]]: i32, %[[ROW:[a-z0-9]+]]: i32, %[[C:[a-z0-9]+]]: i32, %[[D:[a-z0-9]+]]: i32, %[[V:[a-z0-9]+]]: vector<4xf16>, %[[W:[a-z0-9]+]]: vector<4xf16>
  // CHECK:         sluice.barrier
  // CHECK-NEXT:    %[[TILE:.*]] = sluice.lds_alloc {label = "output"} : <32x64xf16, xor<8, 8>>
  // CHECK:         %[[LANE:.*]] = arith.andi %{{.*}}, %c63
  // CHECK:         %[[WAVE:.*]] = arith.shrui %{{.*}}, %c6
  // CHECK:         %[[ROW_OF_WAVE:.*]] = arith.muli %[[WAVE]], %c16
  // CHECK:         %[[ROW_OF_LANE:.*]] = arith.divui %[[LANE]], %c8
  // CHECK:         %[[PIECE:.*]] = arith.remui %[[LANE]], %c8
  // CHECK:         %[[COLUMN:.*]] = arith.muli %[[PIECE]], %c8
  // The lane of the row gives the start of the row.
  // CHECK:         %[[OWNER0:.*]] = arith.shli %[[ROW_OF_LANE]], %c2
  // CHECK:         %[[LOW0:.*]] = rocdl.ds_bpermute %[[OWNER0]],
  // CHECK:         %[[HIGH0:.*]] = rocdl.ds_bpermute %[[OWNER0]],
  // CHECK-DAG:     %[[ADDRESS0:.*]] = llvm.inttoptr
  // CHECK-DAG:     %[[ROW0:.*]] = arith.addi %[[ROW_OF_WAVE]], %[[ROW_OF_LANE]]
  // CHECK:         %[[IN_WAVE1:.*]] = arith.addi %[[ROW_OF_LANE]], %c8
  // CHECK:         %[[OWNER1:.*]] = arith.shli %[[IN_WAVE1]], %c2
  // CHECK-COUNT-2: rocdl.ds_bpermute %[[OWNER1]],
  // CHECK:         %[[ROW1:.*]] = arith.addi %[[ROW_OF_WAVE]], %[[IN_WAVE1]]
  // The first panel.
  // CHECK:         sluice.lds_write %[[V]], %[[TILE]][%[[ROW]], %[[C]]]
  // CHECK-NEXT:    llvm.fence syncscope("wavefront") acq_rel
  // CHECK-NEXT:    %[[X0:.*]] = sluice.lds_read %[[TILE]][%[[ROW0]], %[[COLUMN]]] : <32x64xf16, xor<8, 8>>, vector<8xf16>
  // CHECK-NEXT:    %[[X1:.*]] = sluice.lds_read %[[TILE]][%[[ROW1]], %[[COLUMN]]] : <32x64xf16, xor<8, 8>>, vector<8xf16>
  // One wait for all reads, and no barrier: the rows are the wave's own.
  // CHECK-NEXT:    sluice.lds_wait
  // CHECK-NOT:     sluice.
  // CHECK:         %[[IN_ROW:.*]] = arith.cmpi slt, %[[COLUMN]], %[[COLUMNS]]
  // CHECK:         %[[BELOW0:.*]] = arith.cmpi slt, %[[ROW0]], %[[LIMIT]]
  // CHECK:         %[[STORES0:.*]] = arith.andi %[[BELOW0]], %[[IN_ROW]]
  // CHECK:         scf.if %[[STORES0]]
  // CHECK:           %[[PLACE:.*]] = llvm.getelementptr %[[ADDRESS0]]
  // CHECK:           llvm.store %[[X0]], %[[PLACE]] {alignment = 16 : i64} : vector<8xf16>
  // CHECK:         arith.cmpi slt, %[[ROW1]], %[[LIMIT]]
  // CHECK:         scf.if
  // CHECK:           llvm.store %[[X1]], %{{.*}} {alignment = 16 : i64} : vector<8xf16>
  // The second panel, 64 columns further.
  // CHECK:         %[[IN_PANEL:.*]] = arith.subi %[[D]], %c64
  // CHECK:         sluice.lds_write %[[W]], %[[TILE]][%[[ROW]], %[[IN_PANEL]]]
  // CHECK-COUNT-2: sluice.lds_read
  // CHECK:         %[[COLUMN2:.*]] = arith.addi %[[COLUMN]], %c64
  // CHECK:         arith.cmpi slt, %[[COLUMN2]], %[[COLUMNS]]
  // CHECK-COUNT-2: llvm.store
  // CHECK-NOT:     store
  // CHECK:         gpu.return
  gpu.func @staged(%o: !llvm.ptr<1>, %limit: i32, %columns: i32, %row: i32, %c: i32, %d: i32, %v: vector<4xf16>, %w: vector<4xf16>) kernel
      attributes {known_block_size = array<i32: 128, 1, 1>} {
    sluice.store_tile %o row %row limit %limit columns(%c, %d) limit %columns values(%v, %w : vector<4xf16>, vector<4xf16>) {tile_rows = 32 : i32, panel_columns = 64 : i32, panel_values = array<i32: 1, 1>}
    gpu.return
  }

  // Rows of two pieces have two phases only.
  // CHECK-LABEL: gpu.func @bf16
  // CHECK:         sluice.lds_alloc {label = "output"} : <32x16xbf16, xor<8, 2, 4>>
  // CHECK:         sluice.lds_write {{.*}} : vector<8xbf16>
  // CHECK-NOT:     sluice.lds_write
  // CHECK:         sluice.lds_read {{.*}} vector<8xbf16>
  // CHECK:         sluice.lds_wait
  // CHECK:         llvm.store {{.*}} {alignment = 16 : i64} : vector<8xbf16>
  // CHECK-NOT:     store
  // CHECK:         gpu.return
  gpu.func @bf16(%o: !llvm.ptr<1>, %limit: i32, %row: i32, %c: i32, %v: vector<8xbf16>) kernel
      attributes {known_block_size = array<i32: 64, 1, 1>} {
    sluice.store_tile %o row %row limit %limit columns(%c) limit %limit values(%v : vector<8xbf16>) {tile_rows = 32 : i32, panel_columns = 16 : i32, panel_values = array<i32: 1>}
    gpu.return
  }

  // 32768 bytes leave two workgroups, as many as the tiles of the kernel allow: both take 32768 bytes.
  // CHECK-LABEL: gpu.func @beside_tiles
  // CHECK:         sluice.lds_alloc {label = "output"}
  // CHECK-COUNT-8: sluice.lds_read
  // CHECK:         sluice.lds_wait
  gpu.func @beside_tiles(%o: !llvm.ptr<1>, %n: i32, %row: i32, %a: i32, %x: vector<4xf16>) kernel
      attributes {known_block_size = array<i32: 256, 1, 1>} {
    %t = sluice.lds_alloc : !tile
    %u = sluice.lds_alloc : !tile
    sluice.store_tile %o row %row limit %n columns(%a) limit %n values(%x : vector<4xf16>) {tile_rows = 128 : i32, panel_columns = 128 : i32, panel_values = array<i32: 1>}
    gpu.return
  }

  // The same holds if reuse-lds has found that they take 32768 bytes, though the remaining tile has half of that.
  // CHECK-LABEL: gpu.func @as_reuse_found
  // CHECK:         sluice.lds_alloc {label = "output"}
  // CHECK-COUNT-8: sluice.lds_read
  // CHECK:         sluice.lds_wait
  gpu.func @as_reuse_found(%o: !llvm.ptr<1>, %n: i32, %row: i32, %a: i32, %x: vector<4xf16>) kernel
      attributes {known_block_size = array<i32: 256, 1, 1>, sluice.lds = {arena_bytes = 32768 : i32}} {
    %t = sluice.lds_alloc {offset = 16384 : i32} : !tile
    sluice.store_tile %o row %row limit %n columns(%a) limit %n values(%x : vector<4xf16>) {tile_rows = 128 : i32, panel_columns = 128 : i32, panel_values = array<i32: 1>}
    gpu.return
  }

  // Four workgroups have room with tiles of 16384 bytes, and two with the output: as many as the registers of two
  // waves per SIMD leave.
  // CHECK-LABEL: gpu.func @as_many_as_registers_leave
  // CHECK:         sluice.lds_alloc {label = "output"}
  gpu.func @as_many_as_registers_leave(%o: !llvm.ptr<1>, %n: i32, %row: i32, %a: i32, %x: vector<4xf16>) kernel
      attributes {known_block_size = array<i32: 256, 1, 1>, sluice.waves_per_simd = 2 : i32} {
    %t = sluice.lds_alloc : !tile
    sluice.store_tile %o row %row limit %n columns(%a) limit %n values(%x : vector<4xf16>) {tile_rows = 128 : i32, panel_columns = 128 : i32, panel_values = array<i32: 1>}
    gpu.return
  }

  // CHECK-LABEL: gpu.func @no_output
  // CHECK-NEXT:    sluice.lds_alloc
  // CHECK-NEXT:    sluice.lds_read
  // CHECK-NEXT:    sluice.lds_write
  // CHECK-NEXT:    gpu.return
  gpu.func @no_output(%row: i32, %c: i32) kernel {
    %t = sluice.lds_alloc : !tile
    %x = sluice.lds_read %t[%row, %c] : !tile, vector<4xf16>
    sluice.lds_write %x, %t[%c, %row] : vector<4xf16>, !tile
    gpu.return
  }
}
