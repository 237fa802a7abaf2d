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

  // Rows of 256 bytes: one row and so one page per instruction, whatever page_rows is. Two divisions find the digits
  // of the wave's first row and of the step between batches; the second batch adds them with carry.
  // CHECK-LABEL: gpu.func @one_page
  // CHECK-SAME:    %[[BASE:[a-z0-9]+]]: !llvm.ptr<1>, %[[TABLE:[a-z0-9]+]]: !llvm.ptr<1>, %[[FIRST:[a-z0-9]+]]: i32, %[[LIMIT:[a-z0-9]+]]: i32, %{{.*}}: i64, %[[ROWS:[a-z0-9]+]]: i32
  // CHECK:         arith.divui %c8{{.*}}, %[[ROWS]]
  // CHECK:         arith.divui %{{.*}}, %[[ROWS]]
  // CHECK-NOT:     arith.divui
  // CHECK:         %[[CARRY:.*]] = arith.cmpi uge, %{{.*}}, %[[ROWS]]
  // CHECK:         arith.extui %[[CARRY]] : i1 to i32
  // The entry of a row past the limit is read from zeros; the constant address space makes it a scalar load.
  // CHECK:         %[[ZEROS:.*]] = sluice.zeros 4
  // CHECK:         %[[ENTRY:.*]] = arith.select %{{.*}}, %{{.*}}, %[[ZEROS]]
  // CHECK:         %[[SCALAR:.*]] = llvm.addrspacecast %[[ENTRY]] : !llvm.ptr<1> to !llvm.ptr<4>
  // CHECK:         %[[PAGE0:.*]] = llvm.load %[[SCALAR]] {alignment = 4 : i64} : !llvm.ptr<4> -> i32
  // CHECK:         %[[PAGE1:.*]] = llvm.load %{{.*}} {alignment = 4 : i64} : !llvm.ptr<4> -> i32
  // Both are waited for once.
  // CHECK:         %[[BOTH:.*]] = llvm.inline_asm {{.*}}"", "=s,=s,0,1" %[[PAGE0]], %[[PAGE1]]
  // CHECK:         %[[PAGE:.*]] = llvm.extractvalue %[[BOTH]][0]
  // CHECK:         arith.extui %[[PAGE]] : i32 to i64
  // CHECK:         rocdl.make.buffer.rsrc
  // CHECK:         sluice.load_to_lds
  // CHECK:         sluice.load_to_lds
  // CHECK-NOT:     _to_lds
  gpu.func @one_page(%base: !llvm.ptr<1>, %table: !llvm.ptr<1>, %first: i32, %limit: i32, %stride: i64, %rows: i32,
                     %page: i64) kernel attributes {known_block_size = array<i32: 512, 1, 1>} {
    %tile = sluice.lds_alloc : !row_per_wave
    %token = sluice.async_dma %base[%first] limit %limit stride %stride gather %table of i32 rows %rows stride %page into %tile : !row_per_wave
    sluice.async_wait %token
    gpu.return
  }

  // Two rows per instruction that may lie in two pages: both are looked up, each lane picks the address of its row, and
  // a row past the limit is read from zeros. 64-bit entries are used as they are.
  // CHECK-LABEL: gpu.func @two_pages
  // CHECK-COUNT-2: llvm.load %{{.*}} {alignment = 8 : i64} : !llvm.ptr<4> -> i64
  // CHECK:         %[[ZEROS:.*]] = sluice.zeros 128
  // CHECK:         %[[FIRST_ROW:.*]] = arith.select %{{.*}}, %{{.*}}, %[[ZEROS]]
  // CHECK:         %[[SECOND_ROW:.*]] = arith.select %{{.*}}, %{{.*}}, %[[ZEROS]]
  // CHECK:         %[[MINE:.*]] = arith.cmpi eq, %{{.*}}, %c1
  // CHECK:         arith.select %[[MINE]], %[[SECOND_ROW]], %[[FIRST_ROW]]
  // CHECK-NOT:     make.buffer.rsrc
  // CHECK:         sluice.gather_to_lds %{{.*}} into {{.*}} {bytes = 4 : i32}
  // CHECK-NOT:     _to_lds
  gpu.func @two_pages(%base: !llvm.ptr<1>, %table: !llvm.ptr<1>, %first: i32, %limit: i32, %stride: i64, %rows: i32,
                      %page: i64) kernel attributes {known_block_size = array<i32: 512, 1, 1>} {
    %tile = sluice.lds_alloc : !two_rows_per_wave
    %token = sluice.async_dma %base[%first] limit %limit stride %stride gather %table of i64 rows %rows stride %page into %tile : !two_rows_per_wave
    sluice.async_wait %token
    gpu.return
  }

  // The two rows of an instruction divide what divides the pages: they share one, and a descriptor.
  // CHECK-LABEL: gpu.func @two_rows_of_a_page
  // CHECK:         rocdl.make.buffer.rsrc
  // CHECK:         sluice.load_to_lds
  // CHECK-NOT:     _to_lds
  gpu.func @two_rows_of_a_page(%base: !llvm.ptr<1>, %table: !llvm.ptr<1>, %first: i32, %limit: i32, %stride: i64,
                               %rows: i32, %page: i64) kernel
      attributes {known_block_size = array<i32: 512, 1, 1>} {
    %tile = sluice.lds_alloc : !two_rows_per_wave
    %token = sluice.async_dma %base[%first] limit %limit stride %stride gather %table of i32 rows %rows stride %page into %tile {page_divisor = 2 : i32} : !two_rows_per_wave
    sluice.async_wait %token
    gpu.return
  }

  // Close rows: one descriptor serves the two loads of a wave, rows 8 apart. It covers the rows from the wave's first
  // to its last below the limit, and the lanes' offset steps by 8 strides from one load to the next.
  // CHECK-LABEL: gpu.func @close
  // CHECK-SAME:    %[[BASE:[a-z0-9]+]]: !llvm.ptr<1>, %[[FIRST:[a-z0-9]+]]: i32, %[[LIMIT:[a-z0-9]+]]: i32, %[[STRIDE:[a-z0-9]+]]: i64
  // CHECK:         %[[WAVE:.*]] = rocdl.readfirstlane
  // CHECK:         %[[BYTES:.*]] = arith.muli %[[STRIDE]], %c2_i64
  // CHECK:         %[[ROW:.*]] = arith.addi %[[FIRST]], %[[WAVE]]
  // CHECK:         %[[STEP:.*]] = arith.trunci %[[BYTES]] : i64 to i32
  // CHECK:         %[[LEFT:.*]] = arith.subi %[[LIMIT]], %[[ROW]]
  // CHECK:         %[[COVERED:.*]] = arith.minsi %[[LEFT]], %c16
  // CHECK:         %[[VALID:.*]] = arith.cmpi sgt, %[[LEFT]], %c0
  // CHECK:         %[[EXTENT:.*]] = arith.select %[[VALID]], %{{.*}}, %c0
  // CHECK:         %[[RESOURCE:.*]] = rocdl.make.buffer.rsrc %{{.*}}, %{{.*}}, %[[EXTENT]]
  // CHECK-NOT:     make.buffer.rsrc
  // CHECK:         sluice.load_to_lds %[[RESOURCE]][
  // CHECK:         %[[EIGHT:.*]] = arith.muli %[[STEP]], %c8
  // CHECK:         %[[ROWS:.*]] = arith.addi %{{.*}}, %[[EIGHT]]
  // CHECK:         %[[OFFSET:.*]] = arith.addi %{{.*}}, %[[ROWS]]
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

  // Rows of one instruction each: their extent ends with the column limit, and nothing else is needed.
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

  // Two rows in one descriptor: behind the limit of the first begins the second, so the lanes there get an offset that
  // no extent covers.
  // CHECK-LABEL: gpu.func @columns_of_two_rows
  // CHECK-SAME:    i32, %[[COLUMNS:[a-z0-9]+]]: i32, %{{[a-z0-9]+}}: i64)
  // CHECK:         %[[INSIDE:.*]] = arith.cmpi slt, %{{.*}}, %[[COLUMNS]]
  // CHECK:         %[[OFFSET:.*]] = arith.select %[[INSIDE]], %{{.*}}, %c-1_i32
  // CHECK:         sluice.load_to_lds %{{.*}}[%[[OFFSET]]]
  gpu.func @columns_of_two_rows(%base: !llvm.ptr<1>, %first: i32, %limit: i32, %columns: i32, %stride: i64) kernel
      attributes {known_block_size = array<i32: 512, 1, 1>} {
    %tile = sluice.lds_alloc : !two_rows_per_wave
    %token = sluice.async_dma %base[%first] limit %limit columns %columns stride %stride into %tile : !two_rows_per_wave
    sluice.async_wait %token
    gpu.return
  }

  // Close rows, many in one descriptor: likewise, for the whole sum.
  // CHECK-LABEL: gpu.func @close_columns
  // CHECK-SAME:    i32, %[[COLUMNS:[a-z0-9]+]]: i32, %{{[a-z0-9]+}}: i64)
  // CHECK:         sluice.load_to_lds
  // CHECK:         %[[INSIDE:.*]] = arith.cmpi slt, %{{.*}}, %[[COLUMNS]]
  // CHECK:         %[[OFFSET:.*]] = arith.select %[[INSIDE]], %{{.*}}, %c-1_i32
  // CHECK:         sluice.load_to_lds %{{.*}}[%[[OFFSET]]]
  gpu.func @close_columns(%base: !llvm.ptr<1>, %first: i32, %limit: i32, %columns: i32, %stride: i64) kernel
      attributes {known_block_size = array<i32: 512, 1, 1>} {
    %tile = sluice.lds_alloc : !row_per_wave
    %token = sluice.async_dma %base[%first] limit %limit columns %columns stride %stride into %tile {close_rows} : !row_per_wave
    sluice.async_wait %token
    gpu.return
  }

  // Addresses of their own: zeros are where the limit sends a lane.
  // CHECK-LABEL: gpu.func @columns_of_two_pages
  // CHECK-SAME:    i32, %[[COLUMNS:[a-z0-9]+]]: i32, %{{[a-z0-9]+}}: i64, %{{[a-z0-9]+}}: i32, %{{[a-z0-9]+}}: i64)
  // CHECK:         %[[ZEROS:.*]] = sluice.zeros 128
  // CHECK:         %[[INSIDE:.*]] = arith.cmpi slt, %{{.*}}, %[[COLUMNS]]
  // CHECK:         %[[ROW:.*]] = arith.select %[[INSIDE]], %{{.*}}, %[[ZEROS]]
  // CHECK:         %[[ADDRESS:.*]] = llvm.getelementptr %[[ROW]]
  // CHECK:         sluice.gather_to_lds %[[ADDRESS]]
  gpu.func @columns_of_two_pages(%base: !llvm.ptr<1>, %table: !llvm.ptr<1>, %first: i32, %limit: i32, %columns: i32,
                                 %stride: i64, %rows: i32, %page: i64) kernel
      attributes {known_block_size = array<i32: 512, 1, 1>} {
    %tile = sluice.lds_alloc : !two_rows_per_wave
    %token = sluice.async_dma %base[%first] limit %limit columns %columns stride %stride gather %table of i32 rows %rows stride %page into %tile : !two_rows_per_wave
    sluice.async_wait %token
    gpu.return
  }

  // A divisor that the host has prepared: both divisions are multiplications, and scalar as they are.
  // CHECK-LABEL: gpu.func @magic
  // CHECK-SAME:    %[[ROWS:[a-z0-9]+]]: i32, %{{[a-z0-9]+}}: i64, %[[MAGIC:[a-z0-9]+]]: i32, %[[SHIFT:[a-z0-9]+]]: i32)
  // CHECK-NOT:     arith.divui {{.*}}, %[[ROWS]]
  // CHECK:         %[[LOW:.*]], %[[STEP:.*]] = arith.mului_extended %[[MAGIC]], %c16_i32
  // CHECK:         arith.shrui %[[STEP]], %[[SHIFT]]
  // CHECK:         %[[ROW:.*]] = arith.addi
  // CHECK-NEXT:    %[[TWICE:.*]] = arith.shli %[[ROW]], %c1_i32
  // CHECK-NEXT:    %[[LOW2:.*]], %[[HIGH:.*]] = arith.mului_extended %[[TWICE]], %[[MAGIC]]
  // CHECK-NEXT:    %[[PAGE:.*]] = arith.shrui %[[HIGH]], %[[SHIFT]]
  // CHECK-NEXT:    %[[BEFORE:.*]] = arith.muli %[[PAGE]], %[[ROWS]]
  // CHECK-NEXT:    arith.subi %[[ROW]], %[[BEFORE]]
  // CHECK-NOT:     arith.divui
  // CHECK:         gpu.return
  gpu.func @magic(%base: !llvm.ptr<1>, %table: !llvm.ptr<1>, %first: i32, %limit: i32, %stride: i64, %rows: i32,
                  %page: i64, %magic: i32, %shift: i32) kernel attributes {known_block_size = array<i32: 512, 1, 1>} {
    %tile = sluice.lds_alloc : !row_per_wave
    %token = sluice.async_dma %base[%first] limit %limit stride %stride gather %table of i32 rows %rows stride %page magic %magic shift %shift into %tile : !row_per_wave
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
  // CHECK:         %[[OFFSET:.*]] = arith.addi %[[SOURCE]], %{{.*}}
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
}
