// RUN: sluice-opt %s --pass-pipeline='builtin.module(gpu.module(gpu.func(distribute-async-dma,canonicalize,cse)))' | FileCheck %s

!row_per_wave = !sluice.lds_tile<16x128xf16, xor<8, 8>>
!two_rows_per_wave = !sluice.lds_tile<16x64xf16>

gpu.module @m {
  // 16 rows of 256 bytes over 8 waves: a wave instruction moves one row, each wave issues two. Rows 8 apart share
  // their swizzle phase, so one lane offset serves both; the row's descriptor is empty at or past the limit.
  // CHECK-LABEL: gpu.func @swizzled
  // CHECK-SAME:    %[[BASE:[a-z0-9]+]]: !llvm.ptr<1>, %[[FIRST:[a-z0-9]+]]: i32, %[[LIMIT:[a-z0-9]+]]: i32
  // CHECK:         %[[WAVE:.*]] = rocdl.readfirstlane
  // CHECK:         %[[ROW:.*]] = arith.addi %[[FIRST]], %[[WAVE]]
  // CHECK:         %[[LEFT:.*]] = arith.subi %[[LIMIT]], %[[ROW]]
  // CHECK:         %[[VALID:.*]] = arith.cmpi sgt, %[[LEFT]], %c0
  // CHECK:         %[[EXTENT:.*]] = arith.select %[[VALID]], %c256{{.*}}, %c0
  // CHECK:         rocdl.make.buffer.rsrc %{{.*}}, %{{.*}}, %[[EXTENT]]
  // The lane that owns cell c of row r loads column c ^ ((r % 8) * 8).
  // CHECK:         arith.xori
  // CHECK:         sluice.load_to_lds {{.*}} {bytes = 4 : i32}
  // CHECK:         sluice.load_to_lds {{.*}} {bytes = 4 : i32}
  // CHECK-NOT:     sluice.load_to_lds
  // Without a pipeline the wait is for everything, and for everybody.
  // CHECK:         sluice.async_mark
  // CHECK-NEXT:    sluice.wait_marks 0
  // CHECK-NEXT:    sluice.barrier
  gpu.func @swizzled(%base: !llvm.ptr<1>, %first: i32, %limit: i32, %stride: i64) kernel
      attributes {known_block_size = array<i32: 512, 1, 1>} {
    %tile = sluice.lds_alloc : !row_per_wave
    %token = sluice.async_dma %base[%first] limit %limit stride %stride into %tile : !row_per_wave
    sluice.async_wait %token
    gpu.return
  }

  // Rows of 128 bytes: two per instruction. The extent covers one stride more for the second row, and the lane
  // offset of the upper half of the wave is one stride.
  // CHECK-LABEL: gpu.func @two_rows
  // CHECK:         arith.minsi %{{.*}}, %c2
  // CHECK-NOT:     arith.xori
  // CHECK:         sluice.load_to_lds
  // CHECK-NOT:     sluice.load_to_lds
  gpu.func @two_rows(%base: !llvm.ptr<1>, %first: i32, %limit: i32, %stride: i64) kernel
      attributes {known_block_size = array<i32: 512, 1, 1>} {
    %tile = sluice.lds_alloc : !two_rows_per_wave
    %token = sluice.async_dma %base[%first] limit %limit stride %stride into %tile : !two_rows_per_wave
    sluice.async_wait %token
    gpu.return
  }
}
