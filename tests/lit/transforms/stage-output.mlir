// RUN: sluice-opt %s --verify-diagnostics --pass-pipeline='builtin.module(gpu.module(gpu.func(stage-output,canonicalize)))' | FileCheck %s

!tile = !sluice.lds_tile<64x128xf16>

gpu.module @m {
  // Two waves hold 16 rows each: with eight lanes per row, a wave stores its rows 8 at a time.
  // CHECK-LABEL: gpu.func @staged
  // CHECK-SAME:    %[[BASE:[a-z0-9]+]]: !llvm.ptr<1>, %[[FIRST:[a-z0-9]+]]: i32, %[[LIMIT:[a-z0-9]+]]: i32, %[[STRIDE:[a-z0-9]+]]: i64, %[[ROW:[a-z0-9]+]]: i32, %[[C:[a-z0-9]+]]: i32, %[[D:[a-z0-9]+]]: i32, %[[V:[a-z0-9]+]]: vector<4xf16>, %[[W:[a-z0-9]+]]: vector<4xf16>
  // CHECK:         %[[TILE:.*]] = sluice.lds_alloc {label = "output"} : <32x64xf16, xor<8, 8>>
  // CHECK-NEXT:    sluice.lds_write %[[V]], %[[TILE]][%[[ROW]], %[[C]]]
  // CHECK-NEXT:    sluice.lds_write %[[W]], %[[TILE]][%[[ROW]], %[[D]]]
  // CHECK-NEXT:    llvm.fence syncscope("wavefront") acq_rel
  // CHECK:         %[[LANE:.*]] = arith.andi %{{.*}}, %c63
  // CHECK:         %[[WAVE:.*]] = arith.divui %{{.*}}, %c64
  // CHECK:         %[[ROW_OF_LANE:.*]] = arith.divui %[[LANE]], %c8
  // CHECK:         %[[ROW_OF_WAVE:.*]] = arith.muli %[[WAVE]], %c16
  // CHECK:         %[[ROW0:.*]] = arith.addi %[[ROW_OF_WAVE]], %[[ROW_OF_LANE]]
  // CHECK:         %[[PIECE:.*]] = arith.remui %[[LANE]], %c8
  // CHECK:         %[[COLUMN:.*]] = arith.muli %[[PIECE]], %c8
  // CHECK:         %[[X0:.*]] = sluice.lds_read %[[TILE]][%[[ROW0]], %[[COLUMN]]] : <32x64xf16, xor<8, 8>>, vector<8xf16>
  // CHECK:         %[[ROW1:.*]] = arith.addi %[[ROW0]], %c8
  // CHECK:         %[[X1:.*]] = sluice.lds_read %[[TILE]][%[[ROW1]], %[[COLUMN]]] : <32x64xf16, xor<8, 8>>, vector<8xf16>
  // One wait for all reads, and no barrier: the rows are the wave's own.
  // CHECK-NEXT:    sluice.lds_wait
  // CHECK-NOT:     sluice.
  // CHECK:         %[[N0:.*]] = arith.addi %[[FIRST]], %[[ROW0]]
  // CHECK:         %[[BELOW0:.*]] = arith.cmpi slt, %[[N0]], %[[LIMIT]]
  // CHECK:         scf.if %[[BELOW0]]
  // CHECK:           %[[N:.*]] = arith.addi %[[FIRST]], %[[ROW0]]
  // CHECK:           %[[N64:.*]] = arith.extsi %[[N]]
  // CHECK:           %[[C64:.*]] = arith.extui %[[COLUMN]]
  // CHECK:           %[[PRODUCT:.*]] = arith.muli %[[N64]], %[[STRIDE]]
  // CHECK:           %[[SUM:.*]] = arith.addi %[[PRODUCT]], %[[C64]]
  // CHECK:           %[[PLACE:.*]] = llvm.getelementptr %[[BASE]][%[[SUM]]] {{.*}}, f16
  // CHECK:           llvm.store %[[X0]], %[[PLACE]] {alignment = 16 : i64} : vector<8xf16>
  // CHECK:         %[[N1:.*]] = arith.addi %[[FIRST]], %[[ROW1]]
  // CHECK:         %[[BELOW1:.*]] = arith.cmpi slt, %[[N1]], %[[LIMIT]]
  // CHECK:         scf.if %[[BELOW1]]
  // CHECK:           llvm.store %[[X1]], %{{.*}} {alignment = 16 : i64} : vector<8xf16>
  // CHECK-NOT:     store
  // CHECK:         gpu.return
  gpu.func @staged(%o: !llvm.ptr<1>, %first: i32, %limit: i32, %stride: i64, %row: i32, %c: i32, %d: i32, %v: vector<4xf16>, %w: vector<4xf16>) kernel
      attributes {known_block_size = array<i32: 128, 1, 1>} {
    sluice.store_tile %o[%first] limit %limit stride %stride row %row columns(%c, %d) values(%v, %w : vector<4xf16>, vector<4xf16>) {tile_rows = 32 : i32, tile_columns = 64 : i32}
    gpu.return
  }

  // Rows of two pieces have two phases only.
  // CHECK-LABEL: gpu.func @bf16
  // CHECK:         sluice.lds_alloc {label = "output"} : <32x16xbf16, xor<8, 2, 4>>
  // CHECK:         sluice.lds_write {{.*}} : vector<8xbf16>
  // CHECK-NOT:     sluice.lds_write
  // CHECK:         sluice.lds_read {{.*}} vector<8xbf16>
  // CHECK:         sluice.lds_wait
  // CHECK:         llvm.getelementptr {{.*}}, bf16
  // CHECK:         llvm.store {{.*}} {alignment = 16 : i64} : vector<8xbf16>
  // CHECK-NOT:     store
  // CHECK:         gpu.return
  gpu.func @bf16(%o: !llvm.ptr<1>, %first: i32, %limit: i32, %stride: i64, %row: i32, %c: i32, %v: vector<8xbf16>) kernel
      attributes {known_block_size = array<i32: 64, 1, 1>} {
    sluice.store_tile %o[%first] limit %limit stride %stride row %row columns(%c) values(%v : vector<8xbf16>) {tile_rows = 32 : i32, tile_columns = 16 : i32}
    gpu.return
  }

  // 32768 bytes leave two workgroups, as many as the tiles of the kernel allow: they take 32768 bytes together.
  // CHECK-LABEL: gpu.func @beside_tiles
  // CHECK:         sluice.lds_alloc {label = "output"}
  // CHECK-COUNT-8: sluice.lds_read
  // CHECK:         sluice.lds_wait
  gpu.func @beside_tiles(%o: !llvm.ptr<1>, %n: i32, %stride: i64, %row: i32, %a: i32, %x: vector<4xf16>) kernel
      attributes {known_block_size = array<i32: 256, 1, 1>} {
    %t = sluice.lds_alloc : !tile
    %u = sluice.lds_alloc : !tile
    sluice.store_tile %o[%n] limit %n stride %stride row %row columns(%a) values(%x : vector<4xf16>) {tile_rows = 128 : i32, tile_columns = 128 : i32}
    gpu.return
  }

  // Likewise where reuse-lds has found that they take 32768 bytes, though the tile that is left has half of that.
  // CHECK-LABEL: gpu.func @as_reuse_found
  // CHECK:         sluice.lds_alloc {label = "output"}
  // CHECK-COUNT-8: sluice.lds_read
  // CHECK:         sluice.lds_wait
  gpu.func @as_reuse_found(%o: !llvm.ptr<1>, %n: i32, %stride: i64, %row: i32, %a: i32, %x: vector<4xf16>) kernel
      attributes {known_block_size = array<i32: 256, 1, 1>, sluice.lds = {arena_bytes = 32768 : i32}} {
    %t = sluice.lds_alloc {offset = 16384 : i32} : !tile
    sluice.store_tile %o[%n] limit %n stride %stride row %row columns(%a) values(%x : vector<4xf16>) {tile_rows = 128 : i32, tile_columns = 128 : i32}
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
