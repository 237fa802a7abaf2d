// Copies through registers: each lane loads 8 columns of its row, converts them if the types differ, and writes them
// where the swizzle places them.
// RUN: sluice-opt %s --allow-unregistered-dialect --pass-pipeline='builtin.module(gpu.module(gpu.func(distribute-async-dma,canonicalize,cse)))' | FileCheck %s

!tile = !sluice.lds_tile<32x128xf16, xor<8, 8>>
!brain = !sluice.lds_tile<32x64xbf16>
!bytes = !sluice.lds_tile<16x128xi8, xor<16, 8>>
!columns = !sluice.lds_tile<64x128xi8, by_columns>
!halves = !sluice.lds_tile<64x128xf16, by_columns>

gpu.module @m {
  // 16 lanes share a row, so a wave copies 4 rows and 4 waves 16: two loads. Strides, extents and offsets are in
  // bytes. A lane whose columns are at or past their limit is beyond every extent, with all of its 8 bytes. The fence
  // keeps the loads here.
  // CHECK-LABEL: gpu.func @fetch
  // CHECK-SAME:    %[[BASE:[a-z0-9]+]]: !llvm.ptr<1>, %[[FIRST:[a-z0-9]+]]: i32, %[[LIMIT:[a-z0-9]+]]: i32, %[[COLUMNS:[a-z0-9]+]]: i32, %[[STRIDE:[a-z0-9]+]]: i64
  // CHECK-DAG:     %[[IN_ROW:.*]] = arith.muli %{{.*}}, %c8_i32
  // CHECK-DAG:     %[[WAVE_ROW:.*]] = arith.muli %{{.*}}, %c4_i32
  // CHECK:         %[[OF_WAVE:.*]] = arith.subi %[[LIMIT]], %[[WAVE_ROW]]
  // CHECK:         %[[LAST:.*]] = arith.subi %[[OF_WAVE]], %c1_i32
  // CHECK:         %[[LEFT:.*]] = arith.subi %[[LAST]], %[[FIRST]]
  // CHECK:         arith.minsi %[[LEFT]], %c19_i32
  // CHECK:         arith.minsi %[[COLUMNS]], %c128_i32
  // CHECK:         %[[BUFFER:.*]] = rocdl.make.buffer.rsrc
  // CHECK:         %[[IS_THERE:.*]] = arith.cmpi slt, %[[IN_ROW]], %[[COLUMNS]]
  // CHECK:         %[[OFFSET:.*]] = arith.select %[[IS_THERE]], %{{.*}}, %c-8_i32
  // CHECK:         %[[A:.*]] = rocdl.raw.ptr.buffer.load %[[BUFFER]], %[[OFFSET]], %c0_i32, %c0_i32 {sluice.half_of_copy} : vector<2xi32>
  // CHECK-NOT:     rocdl.make.buffer.rsrc
  // CHECK:         %[[B:.*]] = rocdl.raw.ptr.buffer.load %[[BUFFER]]
  // CHECK-NOT:     rocdl.raw.ptr.buffer.load
  // CHECK:         llvm.fence syncscope("wavefront") acq_rel
  // CHECK-NEXT:    %[[ROWS:.*]] = vector.from_elements {{.*}} : vector<4xi32>
  // CHECK-NEXT:    "test.use"(%[[ROWS]])
  gpu.func @fetch(%base: !llvm.ptr<1>, %first: i32, %limit: i32, %columns: i32, %stride: i64) kernel
      attributes {known_block_size = array<i32: 256, 1, 1>} {
    %rows = sluice.fetch_rows %base[%first] limit %limit columns %columns stride %stride for !tile from f8E4M3FNUZ {close_rows} : vector<4xi32>
    "test.use"(%rows) : (vector<4xi32>) -> ()
    gpu.return
  }

  // Rows of pages: an address per lane, and zeros of the code object for a missing row.
  // CHECK-LABEL: gpu.func @gather
  // CHECK:         sluice.zeros 128
  // CHECK-COUNT-2: rocdl.ds_bpermute
  // CHECK:         llvm.load {{.*}} {alignment = 8 : i64, sluice.half_of_copy} : !llvm.ptr<1> -> vector<2xi32>
  // CHECK-COUNT-2: rocdl.ds_bpermute
  // CHECK:         llvm.load {{.*}} {alignment = 8 : i64, sluice.half_of_copy} : !llvm.ptr<1> -> vector<2xi32>
  // CHECK-NOT:     llvm.load
  // CHECK:         gpu.return
  gpu.func @gather(%base: !llvm.ptr<1>, %first: i32, %limit: i32, %stride: i64, %entries: vector<2xi32>, %n: i32) kernel
      attributes {known_block_size = array<i32: 256, 1, 1>} {
    %pages = sluice.pages of %n
    %rows = sluice.fetch_rows %base[%first] limit %limit stride %stride gather %entries in %pages stride %stride for !tile from f8E4M3FNUZ : vector<4xi32>
    "test.use"(%rows) : (vector<4xi32>) -> ()
    gpu.return
  }

  // The first two dwords are 8 columns of the lane's row in the first half of the tile. The write applies the swizzle.
  // CHECK-LABEL: gpu.func @land
  // CHECK-SAME:    %[[ROWS:[a-z0-9]+]]: vector<4xi32>
  // CHECK:         %[[TILE:.*]] = sluice.lds_alloc
  // CHECK-DAG:     %[[COLUMN:.*]] = arith.muli %{{.*}}, %c8_i32
  // CHECK-DAG:     %[[WAVE_ROW:.*]] = arith.muli %{{.*}}, %c4_i32
  // CHECK:         %[[FIRST:.*]] = vector.shuffle %[[ROWS]], %{{.*}} [0, 1]
  // CHECK-NEXT:    %[[BYTES:.*]] = vector.bitcast %[[FIRST]] : vector<2xi32> to vector<8xi8>
  // CHECK-NEXT:    %[[DWORDS:.*]] = llvm.bitcast %[[BYTES]]
  // CHECK-DAG:     %[[D0:.*]] = vector.extract %[[DWORDS]][0]
  // CHECK-DAG:     %[[D1:.*]] = vector.extract %[[DWORDS]][1]
  // CHECK:         rocdl.cvt.pk.f32.fp8 %[[D0]][false]
  // CHECK:         rocdl.cvt.pk.f32.fp8 %[[D0]][true]
  // CHECK:         rocdl.cvt.pk.f32.fp8 %[[D1]][false]
  // CHECK:         rocdl.cvt.pk.f32.fp8 %[[D1]][true]
  // CHECK:         %[[ROW:.*]] = arith.addi %[[WAVE_ROW]], %{{.*}}
  // CHECK:         sluice.lds_write %{{.*}}, %[[TILE]][%[[ROW]], %[[COLUMN]]] {sluice.half_of_copy} : vector<8xf16>
  // CHECK:         %[[SECOND:.*]] = vector.shuffle %[[ROWS]], %{{.*}} [2, 3]
  // CHECK-NEXT:    %[[BYTES2:.*]] = vector.bitcast %[[SECOND]]
  // CHECK-NEXT:    %[[DWORDS2:.*]] = llvm.bitcast %[[BYTES2]]
  // CHECK-DAG:     %[[D2:.*]] = vector.extract %[[DWORDS2]][0]
  // CHECK-DAG:     %[[D3:.*]] = vector.extract %[[DWORDS2]][1]
  // CHECK:         rocdl.cvt.pk.f32.fp8 %[[D2]][false]
  // CHECK:         rocdl.cvt.pk.f32.fp8 %[[D3]][true]
  // CHECK:         %[[ROW2:.*]] = arith.addi %[[ROW]], %c16_i32
  // CHECK:         sluice.lds_write %{{.*}}, %[[TILE]][%[[ROW2]], %[[COLUMN]]] {sluice.half_of_copy} : vector<8xf16>
  gpu.func @land(%rows: vector<4xi32>) kernel attributes {known_block_size = array<i32: 256, 1, 1>} {
    %tile = sluice.lds_alloc : !tile
    sluice.land_rows %rows into %tile from f8E4M3FNUZ : vector<4xi32>, !tile
    gpu.return
  }

  // Without a pipeline rows land at once, and the wait is for the other waves. Nothing is in flight, so the pass adds
  // no mark.
  // CHECK-LABEL: gpu.func @unpipelined
  // CHECK:         rocdl.raw.ptr.buffer.load
  // CHECK:         llvm.fence
  // CHECK:         rocdl.cvt.pk.f32.fp8
  // CHECK:         sluice.lds_write %{{.*}} : vector<8xbf16>
  // CHECK-NEXT:    "test.other"
  // CHECK-NEXT:    sluice.barrier
  // CHECK-NEXT:    gpu.return
  gpu.func @unpipelined(%base: !llvm.ptr<1>, %first: i32, %limit: i32, %stride: i64) kernel
      attributes {known_block_size = array<i32: 256, 1, 1>} {
    %tile = sluice.lds_alloc : !brain
    %token = sluice.async_dma %base[%first] limit %limit stride %stride into %tile from f8E4M3FNUZ : !brain
    "test.other"() : () -> ()
    sluice.async_wait %token
    gpu.return
  }

  // A tile by columns: each lane loads 8 columns of four rows, packs the four elements of a column into one dword,
  // and writes eight dwords.
  // CHECK-LABEL: gpu.func @by_columns
  // CHECK:         %[[BUFFER:.*]] = rocdl.make.buffer.rsrc
  // CHECK:         %[[R0:.*]] = rocdl.raw.ptr.buffer.load %[[BUFFER]], {{.*}} : vector<2xi32>
  // CHECK:         %[[A0:.*]] = vector.extract %[[R0]][0]
  // CHECK:         %[[R1:.*]] = rocdl.raw.ptr.buffer.load %[[BUFFER]], {{.*}} : vector<2xi32>
  // CHECK:         %[[A1:.*]] = vector.extract %[[R1]][0]
  // CHECK:         rocdl.raw.ptr.buffer.load %[[BUFFER]], {{.*}} : vector<2xi32>
  // CHECK:         rocdl.raw.ptr.buffer.load %[[BUFFER]], {{.*}} : vector<2xi32>
  // CHECK-NOT:     rocdl.raw.ptr.buffer.load
  // CHECK:         llvm.call_intrinsic "llvm.amdgcn.perm"(%[[A1]], %[[A0]],
  // CHECK-COUNT-3: llvm.call_intrinsic "llvm.amdgcn.perm"
  // CHECK-COUNT-8: sluice.lds_write %{{.*}} : vector<4xi8>
  // CHECK-NOT:     sluice.lds_write
  // CHECK:         gpu.return
  gpu.func @by_columns(%base: !llvm.ptr<1>, %first: i32, %limit: i32, %columns: i32, %stride: i64) kernel
      attributes {known_block_size = array<i32: 256, 1, 1>} {
    %tile = sluice.lds_alloc : !columns
    %token = sluice.async_dma %base[%first] limit %limit columns %columns stride %stride into %tile from i8 {close_rows} : !columns
    sluice.async_wait %token
    gpu.return
  }

  // With elements of two bytes, each of 512 lanes loads 4 columns of four rows, and a column is two dwords.
  // CHECK-LABEL: gpu.func @halves_by_columns
  // CHECK:         %[[BUFFER:.*]] = rocdl.make.buffer.rsrc
  // CHECK:         %[[R0:.*]] = rocdl.raw.ptr.buffer.load %[[BUFFER]], {{.*}} : vector<2xi32>
  // CHECK:         %[[A0:.*]] = vector.extract %[[R0]][0]
  // CHECK:         %[[R1:.*]] = rocdl.raw.ptr.buffer.load %[[BUFFER]], {{.*}} : vector<2xi32>
  // CHECK:         %[[A1:.*]] = vector.extract %[[R1]][0]
  // CHECK:         %[[R2:.*]] = rocdl.raw.ptr.buffer.load %[[BUFFER]], {{.*}} : vector<2xi32>
  // CHECK:         %[[A2:.*]] = vector.extract %[[R2]][0]
  // CHECK:         %[[R3:.*]] = rocdl.raw.ptr.buffer.load %[[BUFFER]], {{.*}} : vector<2xi32>
  // CHECK:         %[[A3:.*]] = vector.extract %[[R3]][0]
  // CHECK-NOT:     rocdl.raw.ptr.buffer.load
  // CHECK:         %[[FIRST:.*]] = llvm.call_intrinsic "llvm.amdgcn.perm"(%[[A1]], %[[A0]], %{{.*}})
  // CHECK:         %[[LAST:.*]] = llvm.call_intrinsic "llvm.amdgcn.perm"(%[[A3]], %[[A2]], %{{.*}})
  // CHECK:         vector.from_elements %[[FIRST]], %[[LAST]] : vector<2xi32>
  // CHECK-COUNT-4: sluice.lds_write %{{.*}} : vector<4xf16>
  // CHECK-NOT:     sluice.lds_write
  // CHECK:         gpu.return
  gpu.func @halves_by_columns(%base: !llvm.ptr<1>, %first: i32, %limit: i32, %columns: i32, %stride: i64) kernel
      attributes {known_block_size = array<i32: 512, 1, 1>} {
    %tile = sluice.lds_alloc : !halves
    %token = sluice.async_dma %base[%first] limit %limit columns %columns stride %stride into %tile from f16 {close_rows} : !halves
    sluice.async_wait %token
    gpu.return
  }

  // 8 columns of the tile's own type are 16 bytes, and all of them are beyond every extent if the lane has no column.
  // CHECK-LABEL: gpu.func @fetch_same
  // CHECK-SAME:    %[[BASE:[a-z0-9]+]]: !llvm.ptr<1>, %[[FIRST:[a-z0-9]+]]: i32, %[[LIMIT:[a-z0-9]+]]: i32, %[[COLUMNS:[a-z0-9]+]]: i32, %[[STRIDE:[a-z0-9]+]]: i64
  // CHECK:         %[[IN_ROW:.*]] = arith.muli %{{.*}}, %c8_i32
  // CHECK:         arith.muli %[[STRIDE]], %c2_i64
  // CHECK:         %[[IS_THERE:.*]] = arith.cmpi slt, %[[IN_ROW]], %[[COLUMNS]]
  // CHECK:         %[[OFFSET:.*]] = arith.select %[[IS_THERE]], %{{.*}}, %c-16_i32
  // CHECK:         rocdl.raw.ptr.buffer.load %{{.*}}, %[[OFFSET]], %c0_i32, %c0_i32 {sluice.half_of_copy} : vector<4xi32>
  // CHECK:         rocdl.raw.ptr.buffer.load {{.*}} : vector<4xi32>
  // CHECK-NOT:     rocdl.raw.ptr.buffer.load
  // CHECK:         llvm.fence syncscope("wavefront") acq_rel
  // CHECK-NEXT:    vector.from_elements {{.*}} : vector<8xi32>
  gpu.func @fetch_same(%base: !llvm.ptr<1>, %first: i32, %limit: i32, %columns: i32, %stride: i64) kernel
      attributes {known_block_size = array<i32: 256, 1, 1>} {
    %rows = sluice.fetch_rows %base[%first] limit %limit columns %columns stride %stride for !tile from f16 {close_rows} : vector<8xi32>
    "test.use"(%rows) : (vector<8xi32>) -> ()
    gpu.return
  }

  // With packs, column c is in pack c >> log2; zeros are read from their start.
  // CHECK-LABEL: gpu.func @gather_same
  // CHECK-SAME:    vector<2xi32>, %{{[a-z0-9]+}}: i32, %[[LOG2:[a-z0-9]+]]: i32, %[[PACK_STRIDE:[a-z0-9]+]]: i64
  // CHECK:         %[[PACK:.*]] = arith.shrui %{{.*}}, %[[LOG2]]
  // CHECK:         %[[STRIDE:.*]] = arith.trunci %[[PACK_STRIDE]]
  // CHECK:         arith.muli %[[PACK]], %[[STRIDE]]
  // CHECK:         %[[ZEROS:.*]] = sluice.zeros 256
  // CHECK-NEXT:    %[[PLACE:.*]] = arith.select %{{.*}}, %[[ZEROS]], %{{.*}} : !llvm.ptr<1>
  // CHECK:         llvm.load %[[PLACE]] {alignment = 16 : i64, sluice.half_of_copy} : !llvm.ptr<1> -> vector<4xi32>
  // CHECK-COUNT-2: rocdl.ds_bpermute
  // CHECK:         llvm.load {{.*}} {alignment = 16 : i64, sluice.half_of_copy} : !llvm.ptr<1> -> vector<4xi32>
  // CHECK-NOT:     llvm.load
  // CHECK:         gpu.return
  gpu.func @gather_same(%base: !llvm.ptr<1>, %first: i32, %limit: i32, %stride: i64, %entries: vector<2xi32>, %n: i32,
                        %log2: i32, %pack_stride: i64) kernel attributes {known_block_size = array<i32: 256, 1, 1>} {
    %pages = sluice.pages of %n
    %rows = sluice.fetch_rows %base[%first] limit %limit stride %stride gather %entries in %pages stride %stride packs %log2 stride %pack_stride for !tile from f16 : vector<8xi32>
    "test.use"(%rows) : (vector<8xi32>) -> ()
    gpu.return
  }

  // Loaded values are written without a change.
  // CHECK-LABEL: gpu.func @land_same
  // CHECK-SAME:    %[[ROWS:[a-z0-9]+]]: vector<8xi32>
  // CHECK-NOT:     rocdl.cvt
  // CHECK:         %[[A:.*]] = vector.shuffle %[[ROWS]], %{{.*}} [0, 1, 2, 3]
  // CHECK-NEXT:    %[[A8:.*]] = vector.bitcast %[[A]] : vector<4xi32> to vector<8xf16>
  // CHECK:         sluice.lds_write %[[A8]]
  // CHECK:         %[[B:.*]] = vector.shuffle %[[ROWS]], %{{.*}} [4, 5, 6, 7]
  // CHECK-NEXT:    %[[B8:.*]] = vector.bitcast %[[B]] : vector<4xi32> to vector<8xf16>
  // CHECK:         sluice.lds_write %[[B8]]
  // CHECK:         gpu.return
  gpu.func @land_same(%rows: vector<8xi32>) kernel attributes {known_block_size = array<i32: 256, 1, 1>} {
    %tile = sluice.lds_alloc : !tile
    sluice.land_rows %rows into %tile from f16 : vector<8xi32>, !tile
    gpu.return
  }

  // 8 columns of bytes are 8 bytes, in memory and in LDS.
  // CHECK-LABEL: gpu.func @bytes
  // CHECK:         arith.select %{{.*}}, %{{.*}}, %c-8_i32
  // CHECK:         rocdl.raw.ptr.buffer.load {{.*}} : vector<2xi32>
  // CHECK:         llvm.fence
  // CHECK-NOT:     rocdl.cvt
  // CHECK:         sluice.lds_write %{{.*}} : vector<8xi8>
  // CHECK:         sluice.barrier
  gpu.func @bytes(%base: !llvm.ptr<1>, %first: i32, %limit: i32, %columns: i32, %stride: i64) kernel
      attributes {known_block_size = array<i32: 256, 1, 1>} {
    %tile = sluice.lds_alloc : !bytes
    %token = sluice.async_dma %base[%first] limit %limit columns %columns stride %stride into %tile from i8 {close_rows} : !bytes
    sluice.async_wait %token
    gpu.return
  }
}
