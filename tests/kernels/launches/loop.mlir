// Launches in control flow. Every iteration adds in(i) to the sum on a stream of its own that depends on the tokens
// before the loop: what the program creates, it destroys, however often the loop runs.
module attributes {gpu.container_module} {
  gpu.module @kernels {
    // to[i] += from[i] * factor
    gpu.func @add(%from: memref<64xi32>, %to: memref<64xi32>, %factor: i32) kernel {
      %i = gpu.thread_id x
      %x = memref.load %from[%i] : memref<64xi32>
      %y = memref.load %to[%i] : memref<64xi32>
      %z = arith.muli %x, %factor : i32
      %sum = arith.addi %y, %z : i32
      memref.store %sum, %to[%i] : memref<64xi32>
      gpu.return
    }
  }

  func.func private @make(%value: i32) -> memref<64xi32> {
    %m = memref.alloc() : memref<64xi32>
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c64 = arith.constant 64 : index
    scf.for %i = %c0 to %c64 step %c1 {
      memref.store %value, %m[%i] : memref<64xi32>
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
    %c2 = arith.constant 2 : index
    %c5 = arith.constant 5 : index
    %c64 = arith.constant 64 : index
    %zero = arith.constant 0 : i32
    %one = arith.constant 1 : i32
    %two = arith.constant 2 : i32
    %hundred = arith.constant 100 : i32
    %ones = func.call @make(%one) : (i32) -> memref<64xi32>
    %x = func.call @make(%zero) : (i32) -> memref<64xi32>
    %y = func.call @make(%zero) : (i32) -> memref<64xi32>
    %sum = func.call @make(%zero) : (i32) -> memref<64xi32>

    // x = 100 and y = 2, each on its own stream.
    %a = gpu.launch_func async @kernels::@add blocks in (%c1, %c1, %c1) threads in (%c64, %c1, %c1)
      args(%ones : memref<64xi32>, %x : memref<64xi32>, %hundred : i32)
    %b = gpu.launch_func async @kernels::@add blocks in (%c1, %c1, %c1) threads in (%c64, %c1, %c1)
      args(%ones : memref<64xi32>, %y : memref<64xi32>, %two : i32)
    scf.for %i = %c0 to %c5 step %c1 {
      // sum += x, and on odd iterations also y; the iteration ends when its stream has.
      %w = gpu.wait async [%a]
      %s = gpu.launch_func async [%w, %b, %a] @kernels::@add blocks in (%c1, %c1, %c1) threads in (%c64, %c1, %c1)
        args(%x : memref<64xi32>, %sum : memref<64xi32>, %one : i32)
      %r = arith.remui %i, %c2 : index
      %odd = arith.cmpi eq, %r, %c1 : index
      scf.if %odd {
        gpu.launch_func [%s, %b] @kernels::@add blocks in (%c1, %c1, %c1) threads in (%c64, %c1, %c1)
          args(%y : memref<64xi32>, %sum : memref<64xi32>, %one : i32)
      }
    }

    // Five times 100 and twice 2.
    %found = memref.load %sum[%c2] : memref<64xi32>
    %expected = arith.constant 504 : i32
    %difference = arith.subi %found, %expected : i32
    func.call @drop(%sum) : (memref<64xi32>) -> ()
    func.call @drop(%y) : (memref<64xi32>) -> ()
    func.call @drop(%x) : (memref<64xi32>) -> ()
    func.call @drop(%ones) : (memref<64xi32>) -> ()
    return %difference : i32
  }
}
