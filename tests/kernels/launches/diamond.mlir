// A diamond of kernels on two streams: A feeds B and C, both feed D. Each kernel's numbers are made of those of the
// kernels before it, and no two orders of the kernels but the right ones end in the same. `main` counts wrong elements.
module attributes {gpu.container_module} {
  gpu.module @kernels {
    // to[i] = from[i] + 1
    gpu.func @increment(%from: memref<64xi32>, %to: memref<64xi32>) kernel {
      %i = gpu.thread_id x
      %x = memref.load %from[%i] : memref<64xi32>
      %one = arith.constant 1 : i32
      %y = arith.addi %x, %one : i32
      memref.store %y, %to[%i] : memref<64xi32>
      gpu.return
    }
    // to[i] = from[i] * factor
    gpu.func @multiply(%from: memref<64xi32>, %to: memref<64xi32>, %factor: i32) kernel {
      %i = gpu.thread_id x
      %x = memref.load %from[%i] : memref<64xi32>
      %y = arith.muli %x, %factor : i32
      memref.store %y, %to[%i] : memref<64xi32>
      gpu.return
    }
    // to[i] = one[i] - other[i]
    gpu.func @subtract(%one: memref<64xi32>, %other: memref<64xi32>, %to: memref<64xi32>) kernel {
      %i = gpu.thread_id x
      %x = memref.load %one[%i] : memref<64xi32>
      %y = memref.load %other[%i] : memref<64xi32>
      %z = arith.subi %x, %y : i32
      memref.store %z, %to[%i] : memref<64xi32>
      gpu.return
    }
  }

  func.func private @make(%first: i32, %step: i32) -> memref<64xi32> {
    %m = memref.alloc() : memref<64xi32>
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c64 = arith.constant 64 : index
    scf.for %i = %c0 to %c64 step %c1 {
      %n = arith.index_cast %i : index to i32
      %s = arith.muli %n, %step : i32
      %x = arith.addi %first, %s : i32
      memref.store %x, %m[%i] : memref<64xi32>
    }
    %u = memref.cast %m : memref<64xi32> to memref<*xi32>
    gpu.host_register %u : memref<*xi32>
    return %m : memref<64xi32>
  }

  func.func private @drop(%m: memref<64xi32>) {
    %u = memref.cast %m : memref<64xi32> to memref<*xi32>
    gpu.host_unregister %u : memref<*xi32>
    memref.dealloc %m : memref<64xi32>
    return
  }

  func.func @main() -> i32 {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c64 = arith.constant 64 : index
    %zero = arith.constant 0 : i32
    %one = arith.constant 1 : i32
    %three = arith.constant 3 : i32
    %ten = arith.constant 10 : i32
    %in = func.call @make(%ten, %one) : (i32, i32) -> memref<64xi32>
    %ma = func.call @make(%zero, %zero) : (i32, i32) -> memref<64xi32>
    %mb = func.call @make(%zero, %zero) : (i32, i32) -> memref<64xi32>
    %mc = func.call @make(%zero, %zero) : (i32, i32) -> memref<64xi32>
    %md = func.call @make(%zero, %zero) : (i32, i32) -> memref<64xi32>

    %a = gpu.launch_func async @kernels::@increment blocks in (%c1, %c1, %c1) threads in (%c64, %c1, %c1)
      args(%in : memref<64xi32>, %ma : memref<64xi32>)
    %ea = sluice.record_event %a
    %b = gpu.launch_func async [%a] @kernels::@multiply blocks in (%c1, %c1, %c1) threads in (%c64, %c1, %c1)
      args(%ma : memref<64xi32>, %mb : memref<64xi32>, %ten : i32)
    %c = gpu.launch_func async [%ea] @kernels::@multiply blocks in (%c1, %c1, %c1) threads in (%c64, %c1, %c1)
      args(%ma : memref<64xi32>, %mc : memref<64xi32>, %three : i32)
    %d = gpu.launch_func async [%b, %c] @kernels::@subtract blocks in (%c1, %c1, %c1) threads in (%c64, %c1, %c1)
      args(%mb : memref<64xi32>, %mc : memref<64xi32>, %md : memref<64xi32>)
    gpu.wait [%d]

    // 10 (11 + i) - 3 (11 + i)
    %wrong = scf.for %i = %c0 to %c64 step %c1 iter_args(%sum = %zero) -> i32 {
      %n = arith.index_cast %i : index to i32
      %eleven = arith.constant 11 : i32
      %seven = arith.constant 7 : i32
      %m = arith.addi %n, %eleven : i32
      %expected = arith.muli %m, %seven : i32
      %found = memref.load %md[%i] : memref<64xi32>
      %differs = arith.cmpi ne, %found, %expected : i32
      %count = arith.extui %differs : i1 to i32
      %next = arith.addi %sum, %count : i32
      scf.yield %next : i32
    }
    func.call @drop(%md) : (memref<64xi32>) -> ()
    func.call @drop(%mc) : (memref<64xi32>) -> ()
    func.call @drop(%mb) : (memref<64xi32>) -> ()
    func.call @drop(%ma) : (memref<64xi32>) -> ()
    func.call @drop(%in) : (memref<64xi32>) -> ()
    return %wrong : i32
  }
}
