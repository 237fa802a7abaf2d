// RUN: sluice-opt %s --allow-unregistered-dialect --pass-pipeline='builtin.module(gpu.module(lower-sluice-to-rocdl))' | FileCheck %s

!a = !sluice.lds_tile<4x64xf16, xor<8, 4>>
!b = !sluice.lds_tile<4x64xf16>

// Two tiles of 512 bytes share one array. Each has its own scope; a read is noalias with the other tile only.
// CHECK-DAG:   #[[SA:.*]] = #llvm.alias_scope<id = distinct[[A:.*]]<>, domain
// CHECK-DAG:   #[[SB:.*]] = #llvm.alias_scope<id = distinct[[B:.*]]<>, domain
// CHECK:       llvm.mlir.global internal @kernel_lds() {addr_space = 3 : i32, alignment = 128 : i64} : !llvm.array<1024 x i8>
// CHECK-LABEL: gpu.func @kernel
// CHECK:         rocdl.raw.ptr.buffer.load.lds {{.*}} {alias_scopes = [#[[LOADED:.*]]], noalias_scopes = [#[[OTHER:.*]]]}
// CHECK:         fence
// CHECK-SAME:    syncscope("wavefront")
// Only lgkmcnt(0): the copy stays in flight.
// CHECK:         rocdl.s.waitcnt 49279
// CHECK-NEXT:    rocdl.s.barrier
// CHECK:         arith.xori
// CHECK:         llvm.load {{.*}} {alias_scopes = [#[[LOADED]]], alignment = 16 : i64, noalias_scopes = [#[[OTHER]]]} : !llvm.ptr<3> -> vector<8xf16>
// The second tile starts 512 bytes later and is not swizzled.
// CHECK-NOT:     arith.xori
// CHECK:         llvm.getelementptr inbounds {{.*}}[512]
// CHECK:         llvm.load {{.*}} {alias_scopes = [#[[OTHER]]], alignment = 8 : i64, noalias_scopes = [#[[LOADED]]]}
gpu.module @m {
  gpu.func @kernel(%r: !llvm.ptr<8>, %o: i32, %row: i32, %column: i32) kernel {
    %a = sluice.lds_alloc : !a
    %b = sluice.lds_alloc : !b
    sluice.load_to_lds %r[%o] into %a[%o] {bytes = 4 : i32} : !a
    sluice.barrier
    %x = sluice.lds_read %a[%row, %column] : !a, vector<8xf16>
    %y = sluice.lds_read %b[%row, %column] : !b, vector<4xf16>
    "test.use"(%x, %y) : (vector<8xf16>, vector<4xf16>) -> ()
    gpu.return
  }
}

// An address per lane: no LDS access may be in flight when the load is issued (49279 is only lgkmcnt(0)), nor move up
// over it. A kernel has one array of zeros, as long as the longest request.
// CHECK:       llvm.mlir.global internal constant @gathers_zeros() {addr_space = 1 : i32, alignment = 16 : i64} : !llvm.array<128 x i8>
// CHECK-LABEL: gpu.func @gathers
// CHECK-COUNT-2: llvm.mlir.addressof @gathers_zeros : !llvm.ptr<1>
// CHECK:         rocdl.s.waitcnt 49279
// CHECK-NEXT:    rocdl.global.load.lds {{.*}} {alias_scopes
// CHECK-NEXT:    rocdl.sched.barrier 1034
gpu.module @gather {
  gpu.func @gathers(%o: i32) kernel {
    %a = sluice.lds_alloc : !a
    %short = sluice.zeros 4
    %long = sluice.zeros 128
    sluice.gather_to_lds %long into %a[%o] {bytes = 4 : i32} : !a
    sluice.gather_to_lds %short into %a[%o] {bytes = 4 : i32} : !a
    gpu.return
  }
}

// A write uses the address at which a read of the same element looks, in the scope of its tile. It is noalias with
// other tiles only.
// CHECK-LABEL: gpu.func @writes
// CHECK-SAME:    %[[ROW:[a-z0-9]+]]: i32, %[[COLUMN:[a-z0-9]+]]: i32, %[[VALUE:[a-z0-9]+]]: vector<8xf16>
// CHECK:         %[[PHASE:.*]] = arith.andi %[[ROW]], %c3
// CHECK:         %[[FLIP:.*]] = arith.shli %[[PHASE]], %c3
// CHECK:         %[[STORED:.*]] = arith.xori %[[COLUMN]], %[[FLIP]]
// CHECK:         %[[ROW_BYTES:.*]] = arith.muli %[[ROW]], %c128
// CHECK:         %[[COLUMN_BYTES:.*]] = arith.muli %[[STORED]], %c2
// CHECK:         %[[OFFSET:.*]] = arith.addi %[[ROW_BYTES]], %[[COLUMN_BYTES]]
// CHECK:         %[[START:.*]] = llvm.getelementptr inbounds %{{.*}}[0]
// CHECK:         %[[PLACE:.*]] = llvm.getelementptr inbounds %[[START]][%[[OFFSET]]]
// CHECK-NEXT:    llvm.store %[[VALUE]], %[[PLACE]] {alias_scopes = [#[[FIRST:.*]]], alignment = 16 : i64, noalias_scopes = [#[[SECOND:.*]]]} : vector<8xf16>, !llvm.ptr<3>
// Only lgkmcnt(0), and no barrier.
// CHECK-NEXT:    llvm.fence syncscope("wavefront") acq_rel
// CHECK-NEXT:    rocdl.s.waitcnt 49279
// CHECK-NEXT:    llvm.fence syncscope("wavefront") acq_rel
// CHECK-NOT:     rocdl.
// CHECK:         %[[READ:.*]] = llvm.load {{.*}} {alias_scopes = [#[[FIRST]]], {{.*}}noalias_scopes = [#[[SECOND]]]}
// CHECK:         llvm.getelementptr inbounds {{.*}}[512]
// CHECK:         llvm.store %[[READ]], {{.*}} {alias_scopes = [#[[SECOND]]], alignment = 16 : i64, noalias_scopes = [#[[FIRST]]]}
// CHECK-NOT:     sluice.
// CHECK:         gpu.return
gpu.module @write {
  gpu.func @writes(%row: i32, %column: i32, %value: vector<8xf16>) kernel {
    %a = sluice.lds_alloc : !a
    %b = sluice.lds_alloc : !b
    sluice.lds_write %value, %a[%row, %column] : vector<8xf16>, !a
    sluice.lds_wait
    %x = sluice.lds_read %a[%row, %column] : !a, vector<8xf16>
    sluice.lds_write %x, %b[%row, %column] : vector<8xf16>, !b
    gpu.return
  }
}

// LLVM has no floats of 8 bits: memory holds their bytes.
// CHECK-LABEL: gpu.func @floats_of_8_bits
// CHECK-SAME:    %[[VALUE:[a-z0-9]+]]: vector<16xf8E4M3FNUZ>
// CHECK:         %[[BYTES:.*]] = arith.bitcast %[[VALUE]] : vector<16xf8E4M3FNUZ> to vector<16xi8>
// CHECK:         llvm.store %[[BYTES]], %{{.*}} {{.*}}alignment = 16 : i64{{.*}} : vector<16xi8>, !llvm.ptr<3>
// CHECK:         %[[READ:.*]] = llvm.load %{{.*}} {{.*}}alignment = 16 : i64{{.*}} : !llvm.ptr<3> -> vector<16xi8>
// CHECK:         %[[FLOATS:.*]] = arith.bitcast %[[READ]] : vector<16xi8> to vector<16xf8E4M3FNUZ>
// CHECK:         "test.use"(%[[FLOATS]])
gpu.module @bytes {
  gpu.func @floats_of_8_bits(%row: i32, %column: i32, %value: vector<16xf8E4M3FNUZ>) kernel {
    %tile = sluice.lds_alloc : !sluice.lds_tile<4x128xf8E4M3FNUZ, xor<16, 8>>
    sluice.lds_write %value, %tile[%row, %column] : vector<16xf8E4M3FNUZ>, !sluice.lds_tile<4x128xf8E4M3FNUZ, xor<16, 8>>
    %read = sluice.lds_read %tile[%row, %column] : !sluice.lds_tile<4x128xf8E4M3FNUZ, xor<16, 8>>, vector<16xf8E4M3FNUZ>
    "test.use"(%read) : (vector<16xf8E4M3FNUZ>) -> ()
    gpu.return
  }
}

// An atomic load: LLVM does not merge, move or drop it, though the second one is unused. It uses the resource, whose
// range check gives lanes beyond it 0.
// CHECK-LABEL: gpu.func @counted_loads
// CHECK-SAME:    %[[RESOURCE:[a-z0-9]+]]: !llvm.ptr<8>, %[[OFFSET:[a-z0-9]+]]: i32
// CHECK:         %[[ZERO:.*]] = arith.constant 0 : i32
// CHECK-NEXT:    %[[VALUE:.*]] = llvm.call_intrinsic "llvm.amdgcn.raw.ptr.atomic.buffer.load"(%[[RESOURCE]], %[[OFFSET]], %[[ZERO]], %[[ZERO]]) : (!llvm.ptr<8>, i32, i32, i32) -> i32
// CHECK:         llvm.call_intrinsic "llvm.amdgcn.raw.ptr.atomic.buffer.load"(%[[RESOURCE]], %[[OFFSET]],
// CHECK-NEXT:    "test.use"(%[[VALUE]])
gpu.module @counted {
  gpu.func @counted_loads(%r: !llvm.ptr<8>, %o: i32) kernel {
    %value = sluice.counted_load %r[%o]
    %unused = sluice.counted_load %r[%o]
    "test.use"(%value) : (i32) -> ()
    gpu.return
  }
}

// Columns a whole number of phases apart share their swizzled part: 40 is 32 and a chunk of the swizzle.
// CHECK-LABEL: gpu.func @phases
// CHECK:         %[[REST:.*]] = arith.addi %c8_i32{{.*}}, %{{.*}} : i32
// CHECK:         %[[STORED:.*]] = arith.xori %[[REST]]
// CHECK:         %[[OF_COLUMN:.*]] = arith.muli %[[STORED]]
// CHECK:         %[[OFFSET:.*]] = arith.addi %{{.*}}, %[[OF_COLUMN]]
// CHECK:         arith.addi %[[OFFSET]], %c64_i32
gpu.module @swizzled {
  gpu.func @phases(%row: i32, %column: i32) kernel attributes {sluice.tiles_take_turns} {
    %a = sluice.lds_alloc : !a
    %c40 = arith.constant 40 : i32
    %sum = arith.addi %c40, %column : i32
    %x = sluice.lds_read %a[%row, %sum] : !a, vector<8xf16>
    "test.use"(%x) : (vector<8xf16>) -> ()
    gpu.return
  }
}
