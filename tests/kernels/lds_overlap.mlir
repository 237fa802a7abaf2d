// Two waves. Each writes its rows of %first and reads those of the other wave; then the same with %second, the other
// way round. The two tiles are never live together, and nothing but reuse-lds puts a barrier between them.
!tile = !sluice.lds_tile<128x4xf16>
gpu.module @kernels {
  gpu.func @one_after_the_other(%out: !llvm.ptr<1>) kernel attributes {known_block_size = array<i32: 128, 1, 1>} {
    %c0 = arith.constant 0 : i32
    %c64 = arith.constant 64 : i32
    %thread = rocdl.workitem.id.x : i32
    %other = arith.xori %thread, %c64 : i32
    %lane = arith.sitofp %thread : i32 to f16
    %ones = arith.constant dense<1.0> : vector<4xf16>
    %undef = llvm.mlir.poison : vector<4xf16>
    %one = llvm.insertelement %lane, %undef[%c0 : i32] : vector<4xf16>
    %mine = llvm.shufflevector %one, %undef [0, 0, 0, 0] : vector<4xf16>
    %more = arith.addf %mine, %ones : vector<4xf16>

    %first = sluice.lds_alloc : !tile
    %second = sluice.lds_alloc : !tile
    sluice.lds_write %mine, %first[%thread, %c0] : vector<4xf16>, !tile
    sluice.barrier
    %a = sluice.lds_read %first[%other, %c0] : !tile, vector<4xf16>
    sluice.lds_write %more, %second[%thread, %c0] : vector<4xf16>, !tile
    sluice.barrier
    %b = sluice.lds_read %second[%other, %c0] : !tile, vector<4xf16>

    %place = llvm.getelementptr %out[%thread] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, !llvm.array<2 x vector<4xf16>>
    %behind = llvm.getelementptr %place[1] : (!llvm.ptr<1>) -> !llvm.ptr<1>, vector<4xf16>
    llvm.store %a, %place : vector<4xf16>, !llvm.ptr<1>
    llvm.store %b, %behind : vector<4xf16>, !llvm.ptr<1>
    gpu.return
  }

  // The same with both tiles live at once; each wave writes the rows of %second that the other reads.
  gpu.func @at_once(%out: !llvm.ptr<1>) kernel attributes {known_block_size = array<i32: 128, 1, 1>} {
    %c0 = arith.constant 0 : i32
    %c64 = arith.constant 64 : i32
    %thread = rocdl.workitem.id.x : i32
    %other = arith.xori %thread, %c64 : i32
    %lane = arith.sitofp %thread : i32 to f16
    %ones = arith.constant dense<1.0> : vector<4xf16>
    %undef = llvm.mlir.poison : vector<4xf16>
    %one = llvm.insertelement %lane, %undef[%c0 : i32] : vector<4xf16>
    %mine = llvm.shufflevector %one, %undef [0, 0, 0, 0] : vector<4xf16>
    %more = arith.addf %mine, %ones : vector<4xf16>

    %first = sluice.lds_alloc : !tile
    %second = sluice.lds_alloc : !tile
    sluice.lds_write %mine, %first[%thread, %c0] : vector<4xf16>, !tile
    sluice.lds_write %more, %second[%other, %c0] : vector<4xf16>, !tile
    sluice.barrier
    %a = sluice.lds_read %first[%other, %c0] : !tile, vector<4xf16>
    %b = sluice.lds_read %second[%thread, %c0] : !tile, vector<4xf16>

    %place = llvm.getelementptr %out[%thread] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, !llvm.array<2 x vector<4xf16>>
    %behind = llvm.getelementptr %place[1] : (!llvm.ptr<1>) -> !llvm.ptr<1>, vector<4xf16>
    llvm.store %a, %place : vector<4xf16>, !llvm.ptr<1>
    llvm.store %b, %behind : vector<4xf16>, !llvm.ptr<1>
    gpu.return
  }
}
