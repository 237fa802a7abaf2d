// Rows of a page table: each lane finds one row, and the loads of a tile take the rows from the lanes.
// RUN: sluice-opt %s --allow-unregistered-dialect --pass-pipeline='builtin.module(gpu.module(gpu.func(distribute-async-dma,canonicalize,cse)))' | FileCheck %s

!row_per_instruction = !sluice.lds_tile<16x128xf16, xor<8, 8>>
!two_rows_per_instruction = !sluice.lds_tile<16x64xf16>

gpu.module @m {
  // Lane l reads the entry of row first + l, through a descriptor whose base is the entry of the first row's page,
  // which is uniform. Lanes whose row is at or past the limit are out of range. One load serves all.
  // CHECK-LABEL: gpu.func @lookup
  // CHECK-SAME:    %[[TABLE:[a-z0-9]+]]: !llvm.ptr<1>, %[[FIRST:[a-z0-9]+]]: i32, %[[LIMIT:[a-z0-9]+]]: i32, %[[ROWS:[a-z0-9]+]]: i32
  // CHECK:         %[[LANE:.*]] = arith.andi %{{.*}}, %c63_i32
  // CHECK-NEXT:    %[[ROW:.*]] = arith.addi %[[FIRST]], %[[LANE]]
  // CHECK-NEXT:    %[[PAGE:.*]] = arith.divui %[[ROW]], %[[ROWS]]
  // CHECK-NEXT:    %[[LEFT:.*]] = arith.subi %[[LIMIT]], %[[ROW]]
  // CHECK-NEXT:    %[[EXISTS:.*]] = arith.cmpi sgt, %[[LEFT]], %c0_i32
  // CHECK-NEXT:    %[[FIRST_PAGE:.*]] = rocdl.readfirstlane %[[PAGE]]
  // CHECK-NEXT:    %[[WIDE_PAGE:.*]] = arith.extui %[[FIRST_PAGE]]
  // CHECK-NEXT:    %[[BYTES:.*]] = arith.shli %[[WIDE_PAGE]], %c2_i64
  // CHECK-NEXT:    %[[START:.*]] = llvm.getelementptr %[[TABLE]][%[[BYTES]]]
  // CHECK-NEXT:    %[[BUFFER:.*]] = rocdl.make.buffer.rsrc %[[START]], %{{.*}}, %c512_i64
  // CHECK-NEXT:    %[[AFTER:.*]] = arith.subi %[[PAGE]], %[[FIRST_PAGE]]
  // CHECK-NEXT:    %[[OFFSET:.*]] = arith.shli %[[AFTER]], %c2_i32
  // CHECK-NEXT:    %[[PLACE:.*]] = arith.select %[[EXISTS]], %[[OFFSET]], %c-1_i32
  // CHECK-NEXT:    %[[ENTRY:.*]] = sluice.counted_load %[[BUFFER]][%[[PLACE]]]
  // CHECK-NEXT:    %[[ENTRIES:.*]] = vector.from_elements %[[ENTRY]], %c0_i32
  // CHECK-NEXT:    "test.use"(%[[ENTRIES]])
  gpu.func @lookup(%table: !llvm.ptr<1>, %first: i32, %limit: i32, %rows: i32) kernel {
    %pages = sluice.pages of %rows
    %entries = sluice.page_lookup %table[%first] limit %limit in %pages
    "test.use"(%entries) : (vector<2xi32>) -> ()
    gpu.return
  }

  // A divisor that the host has prepared: a multiplication and a shift.
  // CHECK-LABEL: gpu.func @magic
  // CHECK-SAME:    %[[MAGIC:[a-z0-9]+]]: i32, %[[SHIFT:[a-z0-9]+]]: i32)
  // CHECK:         %[[ROW:.*]] = arith.addi
  // CHECK-NEXT:    %[[TWICE:.*]] = arith.shli %[[ROW]], %c1_i32
  // CHECK-NEXT:    %{{.*}}, %[[HIGH:.*]] = arith.mului_extended %[[TWICE]], %[[MAGIC]]
  // CHECK-NEXT:    %[[PAGE:.*]] = arith.shrui %[[HIGH]], %[[SHIFT]]
  // CHECK:         rocdl.readfirstlane %[[PAGE]]
  // CHECK-NOT:     arith.divui
  // CHECK:         gpu.return
  gpu.func @magic(%table: !llvm.ptr<1>, %first: i32, %limit: i32, %rows: i32, %magic: i32, %shift: i32) kernel {
    %pages = sluice.pages of %rows magic %magic shift %shift
    %entries = sluice.page_lookup %table[%first] limit %limit in %pages
    "test.use"(%entries) : (vector<2xi32>) -> ()
    gpu.return
  }

  // Rows from the hole's begin up to its end have no entry either.
  // CHECK-LABEL: gpu.func @hole
  // CHECK-SAME:    %[[BEGIN:[a-z0-9]+]]: i32, %[[END:[a-z0-9]+]]: i32)
  // CHECK:         %[[ROW:.*]] = arith.addi
  // CHECK:         %[[BELOW:.*]] = arith.cmpi sgt
  // CHECK-DAG:     %[[FROM:.*]] = arith.cmpi sge, %[[ROW]], %[[BEGIN]]
  // CHECK-DAG:     %[[TO:.*]] = arith.cmpi slt, %[[ROW]], %[[END]]
  // CHECK:         %[[INSIDE:.*]] = arith.andi %[[TO]], %[[FROM]]
  // CHECK-NEXT:    %[[OUTSIDE:.*]] = arith.xori %[[INSIDE]], %true
  // CHECK-NEXT:    %[[EXISTS:.*]] = arith.andi %[[BELOW]], %[[OUTSIDE]]
  // CHECK:         %[[PLACE:.*]] = arith.select %[[EXISTS]], %{{.*}}, %c-1_i32
  // CHECK:         sluice.counted_load %{{.*}}[%[[PLACE]]]
  gpu.func @hole(%table: !llvm.ptr<1>, %first: i32, %limit: i32, %rows: i32, %begin: i32, %end: i32) kernel {
    %pages = sluice.pages of %rows hole %begin to %end
    %entries = sluice.page_lookup %table[%first] limit %limit in %pages
    "test.use"(%entries) : (vector<2xi32>) -> ()
    gpu.return
  }

  // Entries may be wide: then the distance doubles, and a second load reads the upper halves. For narrow entries the
  // second load is out of range. Both loads are always issued, so marks count two.
  // CHECK-LABEL: gpu.func @wide
  // CHECK-SAME:    %[[TABLE:[a-z0-9]+]]: !llvm.ptr<1>, {{.*}}, %[[WIDE:[a-z0-9]+]]: i1)
  // CHECK:         %[[EXISTS:.*]] = arith.cmpi sgt
  // CHECK:         %[[LOG2:.*]] = arith.select %[[WIDE]], %c3_i32, %c2_i32
  // CHECK-DAG:     %[[FIRST_PAGE:.*]] = rocdl.readfirstlane %[[PAGE:.*]] :
  // CHECK-DAG:     %[[LOG2_64:.*]] = arith.extui %[[LOG2]]
  // CHECK:         %[[BYTES:.*]] = arith.shli %{{.*}}, %[[LOG2_64]]
  // CHECK-NEXT:    %[[START:.*]] = llvm.getelementptr %[[TABLE]][%[[BYTES]]]
  // CHECK-NEXT:    %[[BUFFER:.*]] = rocdl.make.buffer.rsrc %[[START]]
  // CHECK-NEXT:    %[[AFTER:.*]] = arith.subi %[[PAGE]], %[[FIRST_PAGE]]
  // CHECK-NEXT:    %[[OFFSET:.*]] = arith.shli %[[AFTER]], %[[LOG2]]
  // CHECK-NEXT:    %[[PLACE:.*]] = arith.select %[[EXISTS]], %[[OFFSET]], %c-1_i32
  // CHECK-NEXT:    %[[LOW:.*]] = sluice.counted_load %[[BUFFER]][%[[PLACE]]]
  // CHECK-NEXT:    %[[AWAY:.*]] = arith.select %[[WIDE]], %c4_i32, %c1073741824_i32
  // CHECK-NEXT:    %[[HIGH_OFFSET:.*]] = arith.addi %[[OFFSET]], %[[AWAY]]
  // CHECK-NEXT:    %[[HIGH_PLACE:.*]] = arith.select %[[EXISTS]], %[[HIGH_OFFSET]], %c-1_i32
  // CHECK-NEXT:    %[[HIGH:.*]] = sluice.counted_load %[[BUFFER]][%[[HIGH_PLACE]]]
  // CHECK-NEXT:    vector.from_elements %[[LOW]], %[[HIGH]]
  gpu.func @wide(%table: !llvm.ptr<1>, %first: i32, %limit: i32, %rows: i32, %wide: i1) kernel {
    %pages = sluice.pages of %rows
    %entries = sluice.page_lookup %table[%first] limit %limit in %pages wide %wide
    "test.use"(%entries) : (vector<2xi32>) -> ()
    gpu.return
  }

  // A bit for each of the first 32 lanes: whether both halves of its entry are at most the last page's, or always 1.
  // CHECK-LABEL: gpu.func @found
  // CHECK-SAME:    %[[LOW:[a-z0-9]+]]: i32, %[[HIGH:[a-z0-9]+]]: i32, %[[ALL:[a-z0-9]+]]: i1)
  // CHECK:         %[[L:.*]] = sluice.counted_load
  // CHECK-DAG:     %[[IN_LOW:.*]] = arith.cmpi ule, %[[L]], %[[LOW]]
  // CHECK-DAG:     %[[IN_HIGH:.*]] = arith.cmpi uge, %[[HIGH]], %c0_i32
  // CHECK:         %[[IS:.*]] = arith.andi %[[IN_LOW]], %[[IN_HIGH]]
  // CHECK:         %[[BIT:.*]] = arith.ori %[[IS]], %[[ALL]]
  // CHECK:         %[[WAVE:.*]] = rocdl.ballot %[[BIT]]
  // CHECK-NEXT:    %[[FOUND:.*]] = arith.trunci %[[WAVE]]
  // CHECK-NEXT:    "test.use"(%[[FOUND]])
  gpu.func @found(%table: !llvm.ptr<1>, %first: i32, %limit: i32, %rows: i32, %low: i32, %high: i32, %all: i1) kernel {
    %pages = sluice.pages of %rows last %low and %high
    %entries = sluice.page_lookup %table[%first] limit %limit in %pages
    %found = sluice.found_rows %entries in %pages or %all
    "test.use"(%found) : (i32) -> ()
    gpu.return
  }

  // An entry beyond the last page, or with an upper half beyond it, leads to zeros like a missing one.
  // CHECK-LABEL: gpu.func @last
  // CHECK-SAME:    %[[LAST_LOW:[a-z0-9]+]]: i32, %[[LAST_HIGH:[a-z0-9]+]]: i32)
  // CHECK:         %[[ZEROS:.*]] = sluice.zeros 160
  // CHECK:         %[[EXISTS:.*]] = arith.cmpi sgt
  // CHECK-DAG:     %[[LOW:.*]] = vector.extract %[[ENTRIES:.*]][0]
  // CHECK-DAG:     %[[HIGH:.*]] = vector.extract %[[ENTRIES]][1]
  // CHECK:         %[[LOW_IS:.*]] = arith.cmpi ule, %[[LOW]], %[[LAST_LOW]]
  // CHECK-NEXT:    %[[BOTH:.*]] = arith.andi %[[EXISTS]], %[[LOW_IS]]
  // CHECK-NEXT:    %[[HIGH_IS:.*]] = arith.cmpi ule, %[[HIGH]], %[[LAST_HIGH]]
  // CHECK-NEXT:    %[[THERE:.*]] = arith.andi %[[BOTH]], %[[HIGH_IS]]
  // CHECK:         arith.select %[[THERE]], %{{.*}}, %[[ZEROS]]
  gpu.func @last(%base: !llvm.ptr<1>, %first: i32, %limit: i32, %stride: i64, %entries: vector<2xi32>, %rows: i32,
                 %page_stride: i64, %low: i32, %high: i32) kernel {
    %pages = sluice.pages of %rows last %low and %high
    %addresses = sluice.row_addresses %base[%first] limit %limit stride %stride gather %entries in %pages
                                      stride %page_stride {element_bytes = 2 : i32, row_bytes = 160 : i32}
    "test.use"(%addresses) : (!llvm.ptr<1>) -> ()
    gpu.return
  }

  // base + entry * page stride + row in page * row stride, in 64 bits; zeros where no entry was read.
  // CHECK-LABEL: gpu.func @addresses
  // CHECK-SAME:    %[[BASE:[a-z0-9]+]]: !llvm.ptr<1>, %[[FIRST:[a-z0-9]+]]: i32, %[[LIMIT:[a-z0-9]+]]: i32, %[[STRIDE:[a-z0-9]+]]: i64, %[[ENTRIES:[a-z0-9]+]]: vector<2xi32>, %[[ROWS:[a-z0-9]+]]: i32, %[[PAGE_STRIDE:[a-z0-9]+]]: i64)
  // CHECK:         %[[ZEROS:.*]] = sluice.zeros 160
  // CHECK:         %[[ROW:.*]] = arith.addi %[[FIRST]]
  // CHECK-NEXT:    %[[PAGE:.*]] = arith.divui %[[ROW]], %[[ROWS]]
  // CHECK-NEXT:    %[[BEFORE:.*]] = arith.muli %[[PAGE]], %[[ROWS]]
  // CHECK-NEXT:    %[[IN_PAGE:.*]] = arith.subi %[[ROW]], %[[BEFORE]]
  // CHECK-NEXT:    %[[LEFT:.*]] = arith.subi %[[LIMIT]], %[[ROW]]
  // CHECK-NEXT:    %[[EXISTS:.*]] = arith.cmpi sgt, %[[LEFT]], %c0_i32
  // CHECK-DAG:     %[[ROW_BYTES:.*]] = arith.muli %[[STRIDE]], %c2_i64
  // CHECK-DAG:     %[[PAGE_BYTES:.*]] = arith.muli %[[PAGE_STRIDE]], %c2_i64
  // CHECK-DAG:     %[[HIGH:.*]] = vector.extract %[[ENTRIES]][1]
  // CHECK-DAG:     %[[LOW:.*]] = vector.extract %[[ENTRIES]][0]
  // CHECK-DAG:     %[[HIGH_64:.*]] = arith.extui %[[HIGH]]
  // CHECK-DAG:     %[[UPPER:.*]] = arith.shli %[[HIGH_64]], %c32_i64
  // CHECK-DAG:     %[[LOWER:.*]] = arith.extui %[[LOW]]
  // CHECK:         %[[ENTRY:.*]] = arith.ori %[[LOWER]], %[[UPPER]]
  // CHECK-DAG:     %[[IN_PAGE_64:.*]] = arith.extui %[[IN_PAGE]]
  // CHECK-DAG:     %[[OF_ROW:.*]] = arith.muli %[[IN_PAGE_64]], %[[ROW_BYTES]]
  // CHECK-DAG:     %[[OF_PAGE:.*]] = arith.muli %[[ENTRY]], %[[PAGE_BYTES]]
  // CHECK:         %[[OFFSET:.*]] = arith.addi %[[OF_PAGE]], %[[OF_ROW]]
  // CHECK-NEXT:    %[[PLACE:.*]] = llvm.getelementptr %[[BASE]][%[[OFFSET]]]
  // CHECK-NEXT:    %[[ADDRESS:.*]] = arith.select %[[EXISTS]], %[[PLACE]], %[[ZEROS]]
  // CHECK-NEXT:    "test.use"(%[[ADDRESS]])
  gpu.func @addresses(%base: !llvm.ptr<1>, %first: i32, %limit: i32, %stride: i64, %entries: vector<2xi32>, %rows: i32,
                      %page: i64) kernel {
    %pages = sluice.pages of %rows
    %addresses = sluice.row_addresses %base[%first] limit %limit stride %stride gather %entries in %pages stride %page {element_bytes = 2 : i32, row_bytes = 160 : i32}
    "test.use"(%addresses) : (!llvm.ptr<1>) -> ()
    gpu.return
  }

  // Packs of rows: the row stride is between them, and their rows are neighbours.
  // CHECK-LABEL: gpu.func @addresses_in_packs
  // CHECK-SAME:    %[[STRIDE:[a-z0-9]+]]: i64, %{{[a-z0-9]+}}: vector<2xi32>, %{{[a-z0-9]+}}: i32, %{{[a-z0-9]+}}: i64, %[[LOG2:[a-z0-9]+]]: i32)
  // CHECK:         %[[IN_PAGE:.*]] = arith.subi
  // CHECK-DAG:     %[[PACK_BYTES:.*]] = arith.muli %[[STRIDE]], %c2_i64
  // CHECK:         %[[NUMBER:.*]] = arith.shrui %[[IN_PAGE]], %[[LOG2]]
  // CHECK:         %[[NUMBER_64:.*]] = arith.extui %[[NUMBER]]
  // CHECK:         %[[OF_PACK:.*]] = arith.muli %[[NUMBER_64]], %[[PACK_BYTES]]
  // CHECK:         %[[TO_PACK:.*]] = arith.addi %{{.*}}, %[[OF_PACK]]
  // CHECK:         %[[BEFORE:.*]] = arith.shli %[[NUMBER]], %[[LOG2]]
  // CHECK-NEXT:    %[[IN_PACK:.*]] = arith.subi %[[IN_PAGE]], %[[BEFORE]]
  // CHECK-NEXT:    %[[IN_PACK_64:.*]] = arith.extui %[[IN_PACK]]
  // CHECK-NEXT:    %[[OF_ROW:.*]] = arith.muli %[[IN_PACK_64]], %c2_i64
  // CHECK-NEXT:    %[[OFFSET:.*]] = arith.addi %[[TO_PACK]], %[[OF_ROW]]
  // CHECK:         llvm.getelementptr %{{.*}}[%[[OFFSET]]]
  gpu.func @addresses_in_packs(%base: !llvm.ptr<1>, %first: i32, %limit: i32, %stride: i64, %entries: vector<2xi32>,
                               %rows: i32, %page: i64, %log2: i32) kernel {
    %pages = sluice.pages of %rows
    %addresses = sluice.row_addresses %base[%first] limit %limit stride %stride gather %entries in %pages
                                      stride %page packs %log2 {element_bytes = 2 : i32, row_bytes = 8 : i32}
    "test.use"(%addresses) : (!llvm.ptr<1>) -> ()
    gpu.return
  }

  // Rows in the hole, in addresses of bytes.
  // CHECK-LABEL: gpu.func @addresses_around_a_hole
  // CHECK-SAME:    %[[BEGIN:[a-z0-9]+]]: i32, %[[END:[a-z0-9]+]]: i32)
  // CHECK:         %[[ZEROS:.*]] = sluice.zeros 64
  // CHECK-DAG:     %[[FROM:.*]] = arith.cmpi sge, %{{.*}}, %[[BEGIN]]
  // CHECK-DAG:     %[[TO:.*]] = arith.cmpi slt, %{{.*}}, %[[END]]
  // CHECK:         %[[INSIDE:.*]] = arith.andi %[[TO]], %[[FROM]]
  // CHECK-NEXT:    %[[OUTSIDE:.*]] = arith.xori %[[INSIDE]], %true
  // CHECK-NEXT:    %[[EXISTS:.*]] = arith.andi %{{.*}}, %[[OUTSIDE]]
  // CHECK-NOT:     arith.muli {{.*}}, %c2_i64
  // CHECK:         arith.select %[[EXISTS]], %{{.*}}, %[[ZEROS]]
  gpu.func @addresses_around_a_hole(%base: !llvm.ptr<1>, %first: i32, %limit: i32, %stride: i64,
                                    %entries: vector<2xi32>, %rows: i32, %page: i64, %begin: i32, %end: i32) kernel {
    %pages = sluice.pages of %rows hole %begin to %end
    %addresses = sluice.row_addresses %base[%first] limit %limit stride %stride gather %entries in %pages stride %page {element_bytes = 1 : i32, row_bytes = 64 : i32}
    "test.use"(%addresses) : (!llvm.ptr<1>) -> ()
    gpu.return
  }

  // One row per instruction. Its address, which is null for a missing row, is read from the lane that has found it:
  // the wave's lane for the first load, and the lane 8 further for the second. A null address makes an empty
  // descriptor. The second address is read after the first load: an assembly without instructions, whose side effects
  // keep it there, passes the lane on. Nothing is divided more than once, for every page_rows.
  // CHECK-LABEL: gpu.func @one_row
  // CHECK:         %[[WAVE:.*]] = rocdl.readfirstlane
  // CHECK:         %[[EXISTS:.*]] = arith.cmpi sgt
  // CHECK:         %[[NULL:.*]] = llvm.inttoptr %c0_i64
  // CHECK:         %[[ADDRESS:.*]] = arith.select %[[EXISTS]], %{{.*}}, %[[NULL]] : !llvm.ptr<1>
  // CHECK:         %[[BITS:.*]] = llvm.ptrtoint %[[ADDRESS]]
  // CHECK:         %[[LOW:.*]] = arith.trunci %[[BITS]]
  // CHECK:         %[[SHIFTED:.*]] = arith.shrui %[[BITS]], %c32_i64
  // CHECK:         %[[HIGH:.*]] = arith.trunci %[[SHIFTED]]
  // CHECK:         %[[ROW0:.*]] = llvm.inline_asm has_side_effects "", "=s,0" %[[WAVE]] : (i32) -> i32
  // CHECK-DAG:     %[[HIGH0:.*]] = rocdl.readlane %[[HIGH]], %[[ROW0]]
  // CHECK-DAG:     %[[LOW0:.*]] = rocdl.readlane %[[LOW]], %[[ROW0]]
  // CHECK:         %[[ANY:.*]] = arith.ori %[[LOW0]], %[[HIGH0]]
  // CHECK-NEXT:    %[[THERE:.*]] = arith.cmpi ne, %[[ANY]], %c0_i32
  // CHECK-NEXT:    %[[EXTENT:.*]] = arith.select %[[THERE]], %c256_i64, %c0_i64
  // CHECK:         %[[POINTER:.*]] = llvm.inttoptr
  // CHECK-NEXT:    %[[RESOURCE:.*]] = rocdl.make.buffer.rsrc %[[POINTER]], %{{.*}}, %[[EXTENT]]
  // CHECK:         sluice.load_to_lds %[[RESOURCE]]{{.*}} {bytes = 4 : i32}
  // CHECK-NEXT:    %[[LATER:.*]] = llvm.inline_asm has_side_effects "", "=s,0" %[[ROW0]] : (i32) -> i32
  // CHECK-NEXT:    %[[ROW1:.*]] = arith.addi %[[LATER]], %c8_i32
  // CHECK-DAG:     rocdl.readlane %[[HIGH]], %[[ROW1]]
  // CHECK-DAG:     rocdl.readlane %[[LOW]], %[[ROW1]]
  // CHECK:         %[[OTHER:.*]] = rocdl.make.buffer.rsrc
  // CHECK:         sluice.load_to_lds %[[OTHER]]{{.*}} {bytes = 4 : i32}
  // CHECK-NOT:     _to_lds
  // CHECK-NOT:     arith.divui
  // CHECK:         sluice.async_mark
  gpu.func @one_row(%base: !llvm.ptr<1>, %first: i32, %limit: i32, %stride: i64, %entries: vector<2xi32>, %rows: i32,
                    %page: i64) kernel attributes {known_block_size = array<i32: 512, 1, 1>} {
    %pages = sluice.pages of %rows
    %tile = sluice.lds_alloc : !row_per_instruction
    %token = sluice.async_dma %base[%first] limit %limit stride %stride gather %entries in %pages stride %page into %tile : !row_per_instruction
    sluice.async_wait %token
    gpu.return
  }

  // Two rows per instruction. Each lane reads its own address from the lane that has found it: wave * 2, or one more
  // for the upper half of the lanes. Lanes of a missing row read zeros.
  // CHECK-LABEL: gpu.func @two_rows
  // CHECK:         %[[WAVE:.*]] = rocdl.readfirstlane
  // CHECK:         %[[HALF:.*]] = arith.divui %{{.*}}, %c32_i32
  // CHECK:         %[[FIRST_ROW:.*]] = arith.muli %[[WAVE]], %c2_i32
  // CHECK:         %[[EXISTS:.*]] = arith.cmpi sgt
  // CHECK:         %[[ZEROS:.*]] = sluice.zeros 128
  // CHECK:         %[[ADDRESS:.*]] = arith.select %[[EXISTS]], %{{.*}}, %[[ZEROS]]
  // CHECK:         %[[BITS:.*]] = llvm.ptrtoint %[[ADDRESS]]
  // CHECK:         %[[LOW:.*]] = arith.trunci %[[BITS]]
  // CHECK:         %[[HIGH:.*]] = arith.trunci %{{.*}}
  // CHECK:         %[[LANE:.*]] = arith.addi %[[FIRST_ROW]], %[[HALF]]
  // CHECK-NEXT:    %[[PLACE:.*]] = arith.shli %[[LANE]], %c2_i32
  // CHECK-DAG:     %[[MY_HIGH:.*]] = rocdl.ds_bpermute %[[PLACE]], %[[HIGH]]
  // CHECK-DAG:     %[[MY_LOW:.*]] = rocdl.ds_bpermute %[[PLACE]], %[[LOW]]
  // CHECK:         %[[ROW:.*]] = llvm.inttoptr
  // CHECK:         %[[SOURCE:.*]] = llvm.getelementptr %[[ROW]]
  // CHECK-NOT:     make.buffer.rsrc
  // CHECK:         sluice.gather_to_lds %[[SOURCE]] into {{.*}} {bytes = 4 : i32}
  // CHECK-NOT:     _to_lds
  // CHECK:         sluice.async_mark
  gpu.func @two_rows(%base: !llvm.ptr<1>, %first: i32, %limit: i32, %stride: i64, %entries: vector<2xi32>, %rows: i32,
                     %page: i64) kernel attributes {known_block_size = array<i32: 512, 1, 1>} {
    %pages = sluice.pages of %rows
    %tile = sluice.lds_alloc : !two_rows_per_instruction
    %token = sluice.async_dma %base[%first] limit %limit stride %stride gather %entries in %pages stride %page into %tile : !two_rows_per_instruction
    sluice.async_wait %token
    gpu.return
  }

  // The extent of a row ends with the column limit.
  // CHECK-LABEL: gpu.func @columns_of_a_row
  // CHECK-SAME:    i32, %[[COLUMNS:[a-z0-9]+]]: i32, %{{[a-z0-9]+}}: i64
  // CHECK:         %[[THERE:.*]] = arith.cmpi ne
  // CHECK-NEXT:    %[[COUNT:.*]] = arith.minsi %[[COLUMNS]], %c128_i32
  // CHECK-NEXT:    %[[WIDE:.*]] = arith.extsi %[[COUNT]]
  // CHECK-NEXT:    %[[BYTES:.*]] = arith.muli %[[WIDE]], %c2_i64
  // CHECK-NEXT:    %[[EXTENT:.*]] = arith.select %[[THERE]], %[[BYTES]], %c0_i64
  // CHECK:         rocdl.make.buffer.rsrc %{{.*}}, %{{.*}}, %[[EXTENT]]
  // CHECK-NOT:     arith.select {{.*}} : i32
  // CHECK:         gpu.return
  gpu.func @columns_of_a_row(%base: !llvm.ptr<1>, %first: i32, %limit: i32, %columns: i32, %stride: i64,
                             %entries: vector<2xi32>, %rows: i32, %page: i64) kernel
      attributes {known_block_size = array<i32: 512, 1, 1>} {
    %pages = sluice.pages of %rows
    %tile = sluice.lds_alloc : !row_per_instruction
    %token = sluice.async_dma %base[%first] limit %limit columns %columns stride %stride gather %entries in %pages stride %page into %tile : !row_per_instruction
    gpu.return
  }

  // An address per lane: lanes at or past the limit read zeros.
  // CHECK-LABEL: gpu.func @columns_of_two_rows
  // CHECK-SAME:    i32, %[[COLUMNS:[a-z0-9]+]]: i32, %{{[a-z0-9]+}}: i64
  // CHECK:         %[[ZEROS:.*]] = sluice.zeros 128
  // CHECK:         %[[SOURCE:.*]] = llvm.getelementptr %{{.*}} : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, i8
  // CHECK:         %[[PAST:.*]] = arith.cmpi sge, %{{.*}}, %[[COLUMNS]]
  // CHECK-NEXT:    %[[ADDRESS:.*]] = arith.select %[[PAST]], %[[ZEROS]], %{{.*}}
  // CHECK:         sluice.gather_to_lds %[[ADDRESS]]
  gpu.func @columns_of_two_rows(%base: !llvm.ptr<1>, %first: i32, %limit: i32, %columns: i32, %stride: i64,
                                %entries: vector<2xi32>, %rows: i32, %page: i64) kernel
      attributes {known_block_size = array<i32: 512, 1, 1>} {
    %pages = sluice.pages of %rows
    %tile = sluice.lds_alloc : !two_rows_per_instruction
    %token = sluice.async_dma %base[%first] limit %limit columns %columns stride %stride gather %entries in %pages stride %page into %tile : !two_rows_per_instruction
    gpu.return
  }

  // Column c is at (c >> log2) * stride + c % 2^log2. Packs are anywhere within 2 GiB, so the extent cannot end with
  // the limit: lanes past the limit get an offset that no extent covers.
  // CHECK-LABEL: gpu.func @packs_of_a_row
  // CHECK-SAME:    i32, %[[COLUMNS:[a-z0-9]+]]: i32, %{{[a-z0-9]+}}: i64, {{.*}}, %[[LOG2:[a-z0-9]+]]: i32, %[[STRIDE:[a-z0-9]+]]: i64)
  // CHECK:         %[[THERE:.*]] = arith.cmpi ne
  // CHECK-NEXT:    %[[EXTENT:.*]] = arith.select %[[THERE]], %c2147483647_i64, %c0_i64
  // CHECK:         %[[RESOURCE:.*]] = rocdl.make.buffer.rsrc %{{.*}}, %{{.*}}, %[[EXTENT]]
  // CHECK:         %[[COLUMN:.*]] = arith.xori
  // CHECK-NEXT:    %[[PACK:.*]] = arith.shrui %[[COLUMN]], %[[LOG2]]
  // CHECK-NEXT:    %[[BEFORE:.*]] = arith.shli %[[PACK]], %[[LOG2]]
  // CHECK-NEXT:    %[[IN_PACK:.*]] = arith.subi %[[COLUMN]], %[[BEFORE]]
  // CHECK-NEXT:    %[[STRIDE_32:.*]] = arith.trunci %[[STRIDE]]
  // CHECK-NEXT:    %[[OF_PACK:.*]] = arith.muli %[[PACK]], %[[STRIDE_32]]
  // CHECK-NEXT:    %[[ELEMENT:.*]] = arith.addi %[[OF_PACK]], %[[IN_PACK]]
  // CHECK-NEXT:    %[[BYTES:.*]] = arith.muli %[[ELEMENT]], %c2_i32
  // CHECK-NEXT:    %[[INSIDE:.*]] = arith.cmpi slt, %[[COLUMN]], %[[COLUMNS]]
  // CHECK-NEXT:    %[[IN_ROW:.*]] = arith.select %[[INSIDE]], %[[BYTES]], %c-1_i32
  // CHECK-NEXT:    %[[OFFSET:.*]] = llvm.intr.uadd.sat(%[[IN_ROW]], %c0_i32)
  // CHECK:         sluice.load_to_lds %[[RESOURCE]][%[[OFFSET]]]
  gpu.func @packs_of_a_row(%base: !llvm.ptr<1>, %first: i32, %limit: i32, %columns: i32, %stride: i64,
                           %entries: vector<2xi32>, %rows: i32, %page: i64, %log2: i32, %pack: i64) kernel
      attributes {known_block_size = array<i32: 512, 1, 1>} {
    %pages = sluice.pages of %rows
    %tile = sluice.lds_alloc : !row_per_instruction
    %token = sluice.async_dma %base[%first] limit %limit columns %columns stride %stride gather %entries in %pages stride %page packs %log2 stride %pack into %tile : !row_per_instruction
    gpu.return
  }

  // Packs extend beyond the zeros: a lane whose row is missing reads the zeros from their start, like a lane past the
  // limit.
  // CHECK-LABEL: gpu.func @packs_of_two_rows
  // CHECK-SAME:    i32, %[[COLUMNS:[a-z0-9]+]]: i32, %{{[a-z0-9]+}}: i64, {{.*}}, %[[LOG2:[a-z0-9]+]]: i32, %[[STRIDE:[a-z0-9]+]]: i64)
  // CHECK:         %[[NULL:.*]] = llvm.inttoptr %c0_i64
  // CHECK:         arith.select %{{.*}}, %{{.*}}, %[[NULL]] : !llvm.ptr<1>
  // CHECK-COUNT-2: rocdl.ds_bpermute
  // CHECK:         %[[BITS:.*]] = arith.ori
  // CHECK-NEXT:    %[[MISSING:.*]] = arith.cmpi eq, %[[BITS]], %c0_i64
  // CHECK-NEXT:    %[[PACK:.*]] = arith.shrui %{{.*}}, %[[LOG2]]
  // CHECK:         %[[OFFSET:.*]] = arith.extui
  // CHECK-NEXT:    %[[ROW:.*]] = llvm.inttoptr %[[BITS]]
  // CHECK-NEXT:    %[[PLACE:.*]] = llvm.getelementptr %[[ROW]][%[[OFFSET]]]
  // CHECK-NEXT:    %[[PAST:.*]] = arith.cmpi sge, %{{.*}}, %[[COLUMNS]]
  // CHECK-NEXT:    %[[ZERO:.*]] = arith.ori %[[MISSING]], %[[PAST]]
  // CHECK-NEXT:    %[[ZEROS:.*]] = sluice.zeros 128
  // CHECK-NEXT:    %[[SOURCE:.*]] = arith.select %[[ZERO]], %[[ZEROS]], %[[PLACE]]
  // CHECK:         sluice.gather_to_lds %[[SOURCE]]
  gpu.func @packs_of_two_rows(%base: !llvm.ptr<1>, %first: i32, %limit: i32, %columns: i32, %stride: i64,
                              %entries: vector<2xi32>, %rows: i32, %page: i64, %log2: i32, %pack: i64) kernel
      attributes {known_block_size = array<i32: 512, 1, 1>} {
    %pages = sluice.pages of %rows
    %tile = sluice.lds_alloc : !two_rows_per_instruction
    %token = sluice.async_dma %base[%first] limit %limit columns %columns stride %stride gather %entries in %pages stride %page packs %log2 stride %pack into %tile : !two_rows_per_instruction
    gpu.return
  }
}
