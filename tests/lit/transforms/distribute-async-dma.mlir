// RUN: sluice-opt %s --pass-pipeline='builtin.module(gpu.module(gpu.func(distribute-async-dma,canonicalize,cse)))' | FileCheck %s

!row_per_wave = !sluice.lds_tile<16x128xf16, xor<8, 8>>
!two_rows_per_wave = !sluice.lds_tile<16x64xf16>
!bytes = !sluice.lds_tile<32x64xf8E4M3FNUZ, xor<16, 4, 2>>

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
  // Without a pipeline the wait is for all copies of all waves.
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

  // Close rows: one descriptor serves the two loads of a wave, rows 8 apart. It covers the rows from the wave's first
  // to its last below the limit. The tile's first row is added last, so that all arithmetic before it can leave a
  // loop. The lanes' offset steps by 8 strides from one load to the next. Sums saturate: an offset past every extent
  // stays there. LLVM is kept from computing each offset from the first, in separate registers.
  // CHECK-LABEL: gpu.func @close
  // CHECK-SAME:    %[[BASE:[a-z0-9]+]]: !llvm.ptr<1>, %[[FIRST:[a-z0-9]+]]: i32, %[[LIMIT:[a-z0-9]+]]: i32, %[[STRIDE:[a-z0-9]+]]: i64
  // CHECK:         %[[WAVE:.*]] = rocdl.readfirstlane
  // CHECK:         %[[BYTES:.*]] = arith.muli %[[STRIDE]], %c2_i64
  // CHECK:         %[[STEP:.*]] = arith.trunci %[[BYTES]] : i64 to i32
  // CHECK:         %[[OF_WAVE:.*]] = arith.subi %[[LIMIT]], %[[WAVE]]
  // CHECK:         %[[LAST:.*]] = arith.subi %[[OF_WAVE]], %c1_i32
  // CHECK:         %[[LEFT:.*]] = arith.subi %[[LAST]], %[[FIRST]]
  // CHECK:         %[[BEFORE:.*]] = arith.minsi %[[LEFT]], %c8_i32
  // CHECK:         %[[ROWS:.*]] = arith.muli %[[BEFORE]], %[[STEP]]
  // CHECK:         %[[COVERED:.*]] = arith.addi %[[ROWS]], %c256_i32
  // CHECK:         %[[EMPTY:.*]] = arith.cmpi slt, %[[LEFT]], %c0_i32
  // CHECK:         %[[WAVE_PLACE:.*]] = llvm.getelementptr %[[BASE]]
  // CHECK:         %[[PLACE:.*]] = llvm.getelementptr %[[WAVE_PLACE]]
  // CHECK:         %[[EXTENT:.*]] = arith.select %[[EMPTY]], %c0_i32, %[[COVERED]]
  // CHECK:         %[[WIDE:.*]] = arith.extui %[[EXTENT]]
  // CHECK:         %[[RESOURCE:.*]] = rocdl.make.buffer.rsrc %[[PLACE]], %{{.*}}, %[[WIDE]]
  // CHECK-NOT:     make.buffer.rsrc
  // CHECK:         %[[EIGHT:.*]] = arith.muli %[[STEP]], %c8
  // CHECK:         %[[FIRST_ROW:.*]] = llvm.inline_asm has_side_effects "", "=v,0" %
  // CHECK:         sluice.load_to_lds %[[RESOURCE]][%[[FIRST_ROW]]]
  // CHECK:         %[[SUM:.*]] = llvm.intr.uadd.sat(%[[FIRST_ROW]], %[[EIGHT]])
  // CHECK-NEXT:    %[[OFFSET:.*]] = llvm.inline_asm has_side_effects "", "=v,0" %[[SUM]]
  // CHECK-NOT:     make.buffer.rsrc
  // CHECK:         sluice.load_to_lds %[[RESOURCE]][%[[OFFSET]]]
  // CHECK-NOT:     sluice.load_to_lds
  // CHECK:         gpu.return
  gpu.func @close(%base: !llvm.ptr<1>, %first: i32, %limit: i32, %stride: i64) kernel
      attributes {known_block_size = array<i32: 512, 1, 1>} {
    %tile = sluice.lds_alloc : !row_per_wave
    %token = sluice.async_dma %base[%first] limit %limit stride %stride into %tile {close_rows} : !row_per_wave
    sluice.async_wait %token
    gpu.return
  }

  // Each instruction loads one row: its extent ends with the column limit, and nothing else is needed.
  // CHECK-LABEL: gpu.func @columns
  // CHECK-SAME:    i32, %[[COLUMNS:[a-z0-9]+]]: i32, %{{[a-z0-9]+}}: i64)
  // CHECK:         %[[COUNT:.*]] = arith.minsi %[[COLUMNS]], %c128_i32
  // CHECK:         %[[WIDE:.*]] = arith.extsi %[[COUNT]]
  // CHECK:         %[[BYTES:.*]] = arith.muli %[[WIDE]], %c2_i64
  // CHECK:         %[[EXTENT:.*]] = arith.select %{{.*}}, %[[BYTES]], %c0_i64
  // CHECK:         rocdl.make.buffer.rsrc %{{.*}}, %{{.*}}, %[[EXTENT]]
  // CHECK-NOT:     arith.select {{.*}} : i32
  // CHECK:         gpu.return
  gpu.func @columns(%base: !llvm.ptr<1>, %first: i32, %limit: i32, %columns: i32, %stride: i64) kernel
      attributes {known_block_size = array<i32: 512, 1, 1>} {
    %tile = sluice.lds_alloc : !row_per_wave
    %token = sluice.async_dma %base[%first] limit %limit columns %columns stride %stride into %tile : !row_per_wave
    sluice.async_wait %token
    gpu.return
  }

  // Two rows in one descriptor: the second row begins after the limit of the first. Lanes past the limit get an
  // offset that no extent covers, and that stays the largest when the row's offset is added.
  // CHECK-LABEL: gpu.func @columns_of_two_rows
  // CHECK-SAME:    i32, %[[COLUMNS:[a-z0-9]+]]: i32, %{{[a-z0-9]+}}: i64)
  // CHECK:         %[[INSIDE:.*]] = arith.cmpi slt, %{{.*}}, %[[COLUMNS]]
  // CHECK:         %[[IN_ROW:.*]] = arith.select %[[INSIDE]], %{{.*}}, %c-1_i32
  // CHECK:         %[[OFFSET:.*]] = llvm.intr.uadd.sat(%[[IN_ROW]], %{{.*}})
  // CHECK:         sluice.load_to_lds %{{.*}}[%[[OFFSET]]]
  gpu.func @columns_of_two_rows(%base: !llvm.ptr<1>, %first: i32, %limit: i32, %columns: i32, %stride: i64) kernel
      attributes {known_block_size = array<i32: 512, 1, 1>} {
    %tile = sluice.lds_alloc : !two_rows_per_wave
    %token = sluice.async_dma %base[%first] limit %limit columns %columns stride %stride into %tile : !two_rows_per_wave
    sluice.async_wait %token
    gpu.return
  }

  // Close rows, many in one descriptor: the same holds for the whole sum, from which the later rows step on.
  // CHECK-LABEL: gpu.func @close_columns
  // CHECK-SAME:    i32, %[[COLUMNS:[a-z0-9]+]]: i32, %{{[a-z0-9]+}}: i64)
  // CHECK:         %[[INSIDE:.*]] = arith.cmpi slt, %{{.*}}, %[[COLUMNS]]
  // CHECK:         %[[IN_ROW:.*]] = arith.select %[[INSIDE]], %{{.*}}, %c-1_i32
  // CHECK:         %[[ROW:.*]] = llvm.intr.uadd.sat(%[[IN_ROW]], %{{.*}})
  // CHECK:         %[[FIRST_ROW:.*]] = llvm.inline_asm has_side_effects "", "=v,0" %[[ROW]]
  // CHECK:         sluice.load_to_lds %{{.*}}[%[[FIRST_ROW]]]
  // CHECK:         %[[SUM:.*]] = llvm.intr.uadd.sat(%[[FIRST_ROW]], %{{.*}})
  // CHECK:         %[[OFFSET:.*]] = llvm.inline_asm has_side_effects "", "=v,0" %[[SUM]]
  // CHECK:         sluice.load_to_lds %{{.*}}[%[[OFFSET]]]
  gpu.func @close_columns(%base: !llvm.ptr<1>, %first: i32, %limit: i32, %columns: i32, %stride: i64) kernel
      attributes {known_block_size = array<i32: 512, 1, 1>} {
    %tile = sluice.lds_alloc : !row_per_wave
    %token = sluice.async_dma %base[%first] limit %limit columns %columns stride %stride into %tile {close_rows} : !row_per_wave
    sluice.async_wait %token
    gpu.return
  }

  // Elements of one byte: a lane has four, and a wave four rows of 64.
  // CHECK-LABEL: gpu.func @bytes
  // CHECK:         %[[COLUMN:.*]] = arith.muli %{{.*}}, %c4_i32
  // CHECK:         arith.minsi %{{.*}}, %c4_i32
  // CHECK:         %[[PHASE:.*]] = arith.andi %{{.*}}, %c3_i32
  // CHECK:         %[[FLIP:.*]] = arith.shli %[[PHASE]], %c4_i32
  // CHECK:         %[[SOURCE:.*]] = arith.xori %[[COLUMN]], %[[FLIP]]
  // CHECK:         %[[OFFSET:.*]] = llvm.intr.uadd.sat(%[[SOURCE]], %{{.*}})
  // CHECK:         sluice.load_to_lds %{{.*}}[%[[OFFSET]]] {{.*}} {bytes = 4 : i32}
  // CHECK-NOT:     sluice.load_to_lds
  // CHECK:         gpu.return
  gpu.func @bytes(%base: !llvm.ptr<1>, %first: i32, %limit: i32, %stride: i64) kernel
      attributes {known_block_size = array<i32: 512, 1, 1>} {
    %tile = sluice.lds_alloc : !bytes
    %token = sluice.async_dma %base[%first] limit %limit stride %stride into %tile : !bytes
    sluice.async_wait %token
    gpu.return
  }

  // A wave's number is found at the start of the kernel, so that values computed only from it can leave a loop.
  // CHECK-LABEL: gpu.func @wave_in_front
  // CHECK:         rocdl.readfirstlane
  // CHECK:         scf.for
  // CHECK-NOT:       rocdl.readfirstlane
  // CHECK:           sluice.load_to_lds
  // CHECK-NOT:     rocdl.readfirstlane
  // CHECK:         gpu.return
  gpu.func @wave_in_front(%base: !llvm.ptr<1>, %first: i32, %limit: i32, %stride: i64) kernel
      attributes {known_block_size = array<i32: 512, 1, 1>} {
    %tile = sluice.lds_alloc : !row_per_wave
    scf.for %row = %first to %limit step %limit : i32 {
      %token = sluice.async_dma %base[%row] limit %limit stride %stride into %tile {close_rows} : !row_per_wave
      sluice.async_wait %token
    }
    gpu.return
  }

  // Without registers to spare, it is found at each copy.
  // CHECK-LABEL: gpu.func @no_addresses
  // CHECK-NOT:     rocdl.readfirstlane
  // CHECK:         scf.for
  // CHECK:           rocdl.readfirstlane
  // CHECK:           sluice.load_to_lds
  // CHECK:         gpu.return
  gpu.func @no_addresses(%base: !llvm.ptr<1>, %first: i32, %limit: i32, %stride: i64) kernel
      attributes {known_block_size = array<i32: 512, 1, 1>, sluice.no_addresses} {
    %tile = sluice.lds_alloc : !row_per_wave
    scf.for %row = %first to %limit step %limit : i32 {
      %token = sluice.async_dma %base[%row] limit %limit stride %stride into %tile {close_rows} : !row_per_wave
      sluice.async_wait %token
    }
    gpu.return
  }
}
