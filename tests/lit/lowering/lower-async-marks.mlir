// simm16 of s_waitcnt: vmcnt in [15:14][3:0]; expcnt 7 and lgkmcnt 15 mean no wait. 3952 (0xf70) is only vmcnt(0).
// RUN: sluice-opt %s --pass-pipeline='builtin.module(gpu.module(gpu.func(lower-async-marks)))' | FileCheck %s

!tile = !sluice.lds_tile<16x128xf16>
!rsrc = !llvm.ptr<8>

gpu.module @m {
  // Two loads after the awaited mark may stay in flight: vmcnt(2).
  // CHECK-LABEL: gpu.func @straight
  // CHECK-NOT:   sluice.async_mark
  // CHECK:       rocdl.s.waitcnt 3954
  gpu.func @straight(%r: !rsrc, %o: i32, %tile_offset: i32) kernel {
    %t = sluice.lds_alloc : !tile
    sluice.load_to_lds %r[%o] into %t[%tile_offset] {bytes = 4 : i32} : !tile
    sluice.async_mark
    sluice.load_to_lds %r[%o] into %t[%tile_offset] {bytes = 4 : i32} : !tile
    sluice.load_to_lds %r[%o] into %t[%tile_offset] {bytes = 4 : i32} : !tile
    sluice.async_mark
    sluice.wait_marks 1
    gpu.return
  }

  // Loads after the youngest mark are younger than every mark: they stay in flight as well.
  // CHECK-LABEL: gpu.func @unmarked_tail
  // CHECK:       rocdl.s.waitcnt 3953
  gpu.func @unmarked_tail(%r: !rsrc, %o: i32, %tile_offset: i32) kernel {
    %t = sluice.lds_alloc : !tile
    sluice.load_to_lds %r[%o] into %t[%tile_offset] {bytes = 4 : i32} : !tile
    sluice.async_mark
    sluice.load_to_lds %r[%o] into %t[%tile_offset] {bytes = 4 : i32} : !tile
    sluice.wait_marks 0
    gpu.return
  }

  // One branch issues a load, the other does not: only certain loads count. vmcnt(0).
  // CHECK-LABEL: gpu.func @joined
  // CHECK:       rocdl.s.waitcnt 3952
  gpu.func @joined(%r: !rsrc, %o: i32, %tile_offset: i32, %c: i1) kernel {
    %t = sluice.lds_alloc : !tile
    sluice.load_to_lds %r[%o] into %t[%tile_offset] {bytes = 4 : i32} : !tile
    sluice.async_mark
    scf.if %c {
      sluice.load_to_lds %r[%o] into %t[%tile_offset] {bytes = 4 : i32} : !tile
    }
    sluice.wait_marks 0
    gpu.return
  }

  // Around the back edge: the first iteration waits for the prologue's group, after which nothing was issued. So the
  // wait in the loop is vmcnt(0), although later iterations could allow one load.
  // CHECK-LABEL: gpu.func @loop_minimum
  // CHECK:       scf.for
  // CHECK:         rocdl.s.waitcnt 3952
  gpu.func @loop_minimum(%r: !rsrc, %o: i32, %tile_offset: i32, %n: i32) kernel {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %t = sluice.lds_alloc : !tile
    sluice.load_to_lds %r[%o] into %t[%tile_offset] {bytes = 4 : i32} : !tile
    sluice.async_mark
    scf.for %i = %c0 to %n step %c1 : i32 {
      sluice.wait_marks 0
      sluice.load_to_lds %r[%o] into %t[%tile_offset] {bytes = 4 : i32} : !tile
      sluice.async_mark
      sluice.load_to_lds %r[%o] into %t[%tile_offset] {bytes = 4 : i32} : !tile
    }
    gpu.return
  }

  // More marks than the analysis keeps: the oldest mark it keeps represents those before it. vmcnt(15), not no wait.
  // CHECK-LABEL: gpu.func @beyond_the_depth
  // CHECK:       rocdl.s.waitcnt 3967
  gpu.func @beyond_the_depth(%r: !rsrc, %o: i32, %tile_offset: i32) kernel {
    %t = sluice.lds_alloc : !tile
    sluice.load_to_lds %r[%o] into %t[%tile_offset] {bytes = 4 : i32} : !tile
    sluice.async_mark
    sluice.load_to_lds %r[%o] into %t[%tile_offset] {bytes = 4 : i32} : !tile
    sluice.async_mark
    sluice.load_to_lds %r[%o] into %t[%tile_offset] {bytes = 4 : i32} : !tile
    sluice.async_mark
    sluice.load_to_lds %r[%o] into %t[%tile_offset] {bytes = 4 : i32} : !tile
    sluice.async_mark
    sluice.load_to_lds %r[%o] into %t[%tile_offset] {bytes = 4 : i32} : !tile
    sluice.async_mark
    sluice.load_to_lds %r[%o] into %t[%tile_offset] {bytes = 4 : i32} : !tile
    sluice.async_mark
    sluice.load_to_lds %r[%o] into %t[%tile_offset] {bytes = 4 : i32} : !tile
    sluice.async_mark
    sluice.load_to_lds %r[%o] into %t[%tile_offset] {bytes = 4 : i32} : !tile
    sluice.async_mark
    sluice.load_to_lds %r[%o] into %t[%tile_offset] {bytes = 4 : i32} : !tile
    sluice.async_mark
    sluice.load_to_lds %r[%o] into %t[%tile_offset] {bytes = 4 : i32} : !tile
    sluice.async_mark
    sluice.load_to_lds %r[%o] into %t[%tile_offset] {bytes = 4 : i32} : !tile
    sluice.async_mark
    sluice.load_to_lds %r[%o] into %t[%tile_offset] {bytes = 4 : i32} : !tile
    sluice.async_mark
    sluice.load_to_lds %r[%o] into %t[%tile_offset] {bytes = 4 : i32} : !tile
    sluice.async_mark
    sluice.load_to_lds %r[%o] into %t[%tile_offset] {bytes = 4 : i32} : !tile
    sluice.async_mark
    sluice.load_to_lds %r[%o] into %t[%tile_offset] {bytes = 4 : i32} : !tile
    sluice.async_mark
    sluice.load_to_lds %r[%o] into %t[%tile_offset] {bytes = 4 : i32} : !tile
    sluice.async_mark
    sluice.load_to_lds %r[%o] into %t[%tile_offset] {bytes = 4 : i32} : !tile
    sluice.async_mark
    sluice.load_to_lds %r[%o] into %t[%tile_offset] {bytes = 4 : i32} : !tile
    sluice.async_mark
    sluice.wait_marks 16
    gpu.return
  }

  // Without any mark the wait is for nothing, vmcnt(63).
  // CHECK-LABEL: gpu.func @nothing_marked
  // CHECK:       rocdl.s.waitcnt 53119
  gpu.func @nothing_marked() kernel {
    sluice.wait_marks 0
    gpu.return
  }

  // A load of entries of a page table is one instruction that stays in its place: it counts. vmcnt(3).
  // CHECK-LABEL: gpu.func @counted_loads
  // CHECK:       rocdl.s.waitcnt 3955
  gpu.func @counted_loads(%r: !rsrc, %o: i32) kernel {
    %t = sluice.lds_alloc : !tile
    %before = sluice.counted_load %r[%o]
    sluice.load_to_lds %r[%o] into %t[%o] {bytes = 4 : i32} : !tile
    sluice.async_mark
    %low = sluice.counted_load %r[%o]
    %high = sluice.counted_load %r[%o]
    sluice.load_to_lds %r[%o] into %t[%o] {bytes = 4 : i32} : !tile
    sluice.wait_marks 0
    gpu.return
  }

  // LLVM may sink a load whose value enters a loop past a wait before the loop: vmcnt(1), of the second copy. In the
  // loop it has been issued: vmcnt(3) for the first round, which has the fewest instructions after the second copy's
  // mark.
  // CHECK-LABEL: gpu.func @load_of_a_loop
  // CHECK:       rocdl.s.waitcnt 3953
  // CHECK:       scf.for
  // CHECK:       rocdl.s.waitcnt 3955
  gpu.func @load_of_a_loop(%r: !rsrc, %o: i32) kernel {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %t = sluice.lds_alloc : !tile
    sluice.load_to_lds %r[%o] into %t[%o] {bytes = 4 : i32} : !tile
    sluice.async_mark
    sluice.load_to_lds %r[%o] into %t[%o] {bytes = 4 : i32} : !tile
    sluice.async_mark
    %entry = sluice.counted_load %r[%o]
    %next = arith.addi %entry, %c1 : i32
    sluice.wait_marks 1
    %last = scf.for %i = %c0 to %o step %c1 iter_args(%place = %next) -> i32 : i32 {
      sluice.load_to_lds %r[%place] into %t[%o] {bytes = 4 : i32} : !tile
      sluice.async_mark
      %following = sluice.counted_load %r[%o]
      sluice.wait_marks 1
      scf.yield %following : i32
    }
    gpu.return
  }

  // Otherwise only direct-to-LDS loads count, in every form. Other memory accesses between a mark and its wait may
  // become any number of instructions: vmcnt(4), which waits for those too if they exist.
  // CHECK-LABEL: gpu.func @other_accesses
  // CHECK:       rocdl.s.waitcnt 3956
  gpu.func @other_accesses(%r: !rsrc, %o: i32, %p: !llvm.ptr<1>, %l: !llvm.ptr<3>) kernel {
    %c4 = arith.constant 4 : i32
    %t = sluice.lds_alloc : !tile
    sluice.load_to_lds %r[%o] into %t[%o] {bytes = 4 : i32} : !tile
    sluice.async_mark
    %x = llvm.load %p : !llvm.ptr<1> -> vector<4xf32>
    sluice.load_to_lds %r[%o] into %t[%o] {bytes = 4 : i32} : !tile
    %y = llvm.load volatile %p : !llvm.ptr<1> -> i32
    sluice.gather_to_lds %p into %t[%o] {bytes = 4 : i32} : !tile
    %z = rocdl.raw.ptr.buffer.load %r, %o, %o, %o : vector<4xi32>
    rocdl.global.load.lds %p, %l, 4, 0, 0
    llvm.store %x, %p : vector<4xf32>, !llvm.ptr<1>
    rocdl.raw.ptr.buffer.load.lds %r, %l, %c4, %o, %o, %o, %o
    sluice.wait_marks 0
    gpu.return
  }

  // A loop whose condition is a separate region: it may never run, and both regions issue loads. vmcnt(1).
  // CHECK-LABEL: gpu.func @while_loop
  // CHECK:       rocdl.s.waitcnt 3953
  gpu.func @while_loop(%r: !rsrc, %o: i32, %c: i1) kernel {
    %t = sluice.lds_alloc : !tile
    sluice.load_to_lds %r[%o] into %t[%o] {bytes = 4 : i32} : !tile
    sluice.async_mark
    sluice.load_to_lds %r[%o] into %t[%o] {bytes = 4 : i32} : !tile
    scf.while : () -> () {
      sluice.load_to_lds %r[%o] into %t[%o] {bytes = 4 : i32} : !tile
      scf.condition(%c)
    } do {
      sluice.load_to_lds %r[%o] into %t[%o] {bytes = 4 : i32} : !tile
      scf.yield
    }
    sluice.wait_marks 0
    gpu.return
  }
}
