// RUN: sluice-opt %s --launch-to-runtime | FileCheck %s

module attributes {gpu.container_module} {
  gpu.binary @k [#gpu.object<#rocdl.target<chip = "gfx942">, bin = "ELF">]

  // The code object has its module's name, and the kernel's name is next to it. A token without dependencies gets a
  // new stream. The stream is completed and destroyed at the end of the block, although no operation waits for the
  // token.
  // CHECK-LABEL: module
  // CHECK-DAG:   llvm.mlir.global internal constant @k("ELF") {addr_space = 0 : i32, alignment = 4096 : i64}
  // CHECK-DAG:   llvm.mlir.global internal constant @kernel_name_a("a\00")
  // CHECK-NOT:   gpu.binary
  // CHECK:       func.func @none(%[[N:.*]]: index, %[[X:.*]]: f32, %[[M:.*]]: memref<?xi32>)
  // The argument block holds the float and the five fields of the memref.
  // CHECK:         %[[BLOCK:.*]] = llvm.alloca %{{.*}} x !llvm.struct<(f32, ptr, ptr, i64, i64, i64)>
  // CHECK:         %[[STREAM:.*]] = llvm.call @sluiceRtStreamCreate() : () -> !llvm.ptr
  // CHECK-NOT:     sluiceRtStreamWaitEvent
  // CHECK-DAG:     %[[GRID:.*]] = arith.index_castui %[[N]] : index to i64
  // CHECK-DAG:     %[[OBJECT:.*]] = llvm.mlir.addressof @k
  // CHECK-DAG:     %[[NAME:.*]] = llvm.mlir.addressof @kernel_name_a
  // CHECK-DAG:     %[[FIRST:.*]] = llvm.getelementptr %[[BLOCK]][0, 0]
  // CHECK-DAG:     llvm.store %[[X]], %[[FIRST]]
  // CHECK:         llvm.call @sluiceRtLaunch(%[[OBJECT]], %[[NAME]], %[[GRID]], %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %[[STREAM]], %{{.*}})
  // CHECK-NOT:     sluiceRtStreamSynchronize
  // CHECK:         llvm.call @sluiceRtStreamDestroy(%[[STREAM]])
  // CHECK-NEXT:    return
  func.func @none(%n: index, %x: f32, %m: memref<?xi32>) {
    %a = gpu.launch_func async @k::@a blocks in (%n, %n, %n) threads in (%n, %n, %n) args(%x : f32, %m : memref<?xi32>)
    return
  }

  // One dependency: the launch continues its stream, and creates nothing. A host wait is a synchronisation, and does
  // not end the stream's life.
  // CHECK-LABEL: func.func @one
  // CHECK:         %[[STREAM:.*]] = llvm.call @sluiceRtStreamCreate()
  // CHECK-NOT:     sluiceRtStreamCreate
  // CHECK-NOT:     sluiceRtEvent
  // CHECK:         llvm.call @sluiceRtLaunch({{.*}}, %[[STREAM]], %{{.*}})
  // CHECK:         llvm.call @sluiceRtLaunch({{.*}}, %[[STREAM]], %{{.*}})
  // CHECK-NEXT:    llvm.call @sluiceRtStreamSynchronize(%[[STREAM]])
  // CHECK-NEXT:    llvm.call @sluiceRtStreamDestroy(%[[STREAM]])
  // CHECK-NEXT:    return
  func.func @one(%n: index) {
    %a = gpu.launch_func async @k::@a blocks in (%n, %n, %n) threads in (%n, %n, %n)
    %b = gpu.launch_func async [%a] @k::@b blocks in (%n, %n, %n) threads in (%n, %n, %n)
    gpu.wait [%b]
    return
  }

  // Two streams: the launch continues the first. An event is recorded on the second right after the token's
  // definition, so that the wait does not include the launch in between. The event is destroyed right after the wait.
  // CHECK-LABEL: func.func @two
  // CHECK:         %[[A:.*]] = llvm.call @sluiceRtStreamCreate()
  // CHECK:         llvm.call @sluiceRtLaunch({{.*}}, %[[A]], %{{.*}})
  // CHECK:         %[[B:.*]] = llvm.call @sluiceRtStreamCreate()
  // CHECK:         llvm.call @sluiceRtLaunch({{.*}}, %[[B]], %{{.*}})
  // CHECK-NEXT:    %[[EVENT:.*]] = llvm.call @sluiceRtEventCreate()
  // CHECK-NEXT:    llvm.call @sluiceRtEventRecord(%[[EVENT]], %[[B]])
  // CHECK:         llvm.call @sluiceRtLaunch({{.*}}, %[[B]], %{{.*}})
  // CHECK:         llvm.call @sluiceRtStreamWaitEvent(%[[A]], %[[EVENT]])
  // CHECK:         llvm.call @sluiceRtLaunch({{.*}}, %[[A]], %{{.*}})
  // CHECK-NEXT:    llvm.call @sluiceRtEventDestroy(%[[EVENT]])
  // CHECK-NEXT:    llvm.call @sluiceRtStreamSynchronize(%[[A]])
  // CHECK-NEXT:    llvm.call @sluiceRtStreamDestroy(%[[A]])
  // CHECK-NEXT:    llvm.call @sluiceRtStreamDestroy(%[[B]])
  // CHECK-NEXT:    return
  func.func @two(%n: index) {
    %a = gpu.launch_func async @k::@a blocks in (%n, %n, %n) threads in (%n, %n, %n)
    %b = gpu.launch_func async @k::@b blocks in (%n, %n, %n) threads in (%n, %n, %n)
    %later = gpu.launch_func async [%b] @k::@c blocks in (%n, %n, %n) threads in (%n, %n, %n)
    %d = gpu.launch_func async [%a, %b] @k::@d blocks in (%n, %n, %n) threads in (%n, %n, %n)
    gpu.wait [%d]
    return
  }

  // Streams and events mixed: the launch waits for an event directly, and never continues an event's stream, even if
  // the event comes first.
  // CHECK-LABEL: func.func @mixed
  // CHECK:         %[[A:.*]] = llvm.call @sluiceRtStreamCreate()
  // CHECK:         %[[EA:.*]] = llvm.call @sluiceRtEventCreate()
  // CHECK-NEXT:    llvm.call @sluiceRtEventRecord(%[[EA]], %[[A]])
  // CHECK:         %[[B:.*]] = llvm.call @sluiceRtStreamCreate()
  // CHECK:         %[[C:.*]] = llvm.call @sluiceRtStreamCreate()
  // CHECK:         %[[EC:.*]] = llvm.call @sluiceRtEventCreate()
  // CHECK-NEXT:    llvm.call @sluiceRtEventRecord(%[[EC]], %[[C]])
  // CHECK-NEXT:    llvm.call @sluiceRtStreamWaitEvent(%[[B]], %[[EA]])
  // CHECK-NEXT:    llvm.call @sluiceRtStreamWaitEvent(%[[B]], %[[EC]])
  // CHECK-NOT:     sluiceRtStreamWaitEvent
  // CHECK:         llvm.call @sluiceRtLaunch({{.*}}, %[[B]], %{{.*}})
  // CHECK-NEXT:    llvm.call @sluiceRtEventDestroy(%[[EC]])
  // CHECK-NEXT:    llvm.call @sluiceRtEventSynchronize(%[[EA]])
  // CHECK-NEXT:    llvm.call @sluiceRtEventDestroy(%[[EA]])
  // CHECK-NEXT:    llvm.call @sluiceRtStreamDestroy(%[[A]])
  func.func @mixed(%n: index) {
    %a = gpu.launch_func async @k::@a blocks in (%n, %n, %n) threads in (%n, %n, %n)
    %ea = sluice.record_event %a
    %b = gpu.launch_func async @k::@b blocks in (%n, %n, %n) threads in (%n, %n, %n)
    %c = gpu.launch_func async @k::@c blocks in (%n, %n, %n) threads in (%n, %n, %n)
    %d = gpu.launch_func async [%ea, %b, %c] @k::@d blocks in (%n, %n, %n) threads in (%n, %n, %n)
    gpu.wait [%ea]
    return
  }

  // Only events: without a stream to continue, the launch gets a new one. It waits once for an event that is given
  // twice.
  // CHECK-LABEL: func.func @only_events
  // CHECK:         %[[A:.*]] = llvm.call @sluiceRtStreamCreate()
  // CHECK:         %[[EVENT:.*]] = llvm.call @sluiceRtEventCreate()
  // CHECK:         %[[B:.*]] = llvm.call @sluiceRtStreamCreate()
  // CHECK-NEXT:    llvm.call @sluiceRtStreamWaitEvent(%[[B]], %[[EVENT]])
  // CHECK-NOT:     sluiceRtStreamWaitEvent
  // CHECK:         llvm.call @sluiceRtLaunch({{.*}}, %[[B]], %{{.*}})
  func.func @only_events(%n: index) {
    %a = gpu.launch_func async @k::@a blocks in (%n, %n, %n) threads in (%n, %n, %n)
    %e = sluice.record_event %a
    %b = gpu.launch_func async [%e, %e] @k::@b blocks in (%n, %n, %n) threads in (%n, %n, %n)
    return
  }

  // Three dependencies, two of them on the same stream: the stream's own order is enough. One event serves both
  // launches that depend on %c, and lives until the second.
  // CHECK-LABEL: func.func @same_stream
  // CHECK:         %[[A:.*]] = llvm.call @sluiceRtStreamCreate()
  // CHECK:         %[[C:.*]] = llvm.call @sluiceRtStreamCreate()
  // CHECK:         %[[EVENT:.*]] = llvm.call @sluiceRtEventCreate()
  // CHECK-NOT:     sluiceRtEventCreate
  // CHECK:         llvm.call @sluiceRtStreamWaitEvent(%[[A]], %[[EVENT]])
  // CHECK-NOT:     sluiceRtStreamWaitEvent
  // CHECK:         llvm.call @sluiceRtLaunch({{.*}}, %[[A]], %{{.*}})
  // CHECK-NOT:     sluiceRtEventDestroy
  // CHECK:         llvm.call @sluiceRtStreamWaitEvent(%[[A]], %[[EVENT]])
  // CHECK:         llvm.call @sluiceRtLaunch({{.*}}, %[[A]], %{{.*}})
  // CHECK-NEXT:    llvm.call @sluiceRtEventDestroy(%[[EVENT]])
  func.func @same_stream(%n: index) {
    %a = gpu.launch_func async @k::@a blocks in (%n, %n, %n) threads in (%n, %n, %n)
    %b = gpu.launch_func async [%a] @k::@b blocks in (%n, %n, %n) threads in (%n, %n, %n)
    %c = gpu.launch_func async @k::@c blocks in (%n, %n, %n) threads in (%n, %n, %n)
    %d = gpu.launch_func async [%b, %a, %c] @k::@d blocks in (%n, %n, %n) threads in (%n, %n, %n)
    %e = gpu.launch_func async [%a, %c] @k::@a blocks in (%n, %n, %n) threads in (%n, %n, %n)
    return
  }

  // In a loop: the event of a token from outside serves all iterations and is destroyed after the loop. A stream of
  // the loop's body is destroyed with the iteration. The argument block is allocated once, before the loop.
  // CHECK-LABEL: func.func @loop
  // CHECK:         llvm.alloca
  // CHECK:         llvm.alloca
  // CHECK:         %[[A:.*]] = llvm.call @sluiceRtStreamCreate()
  // CHECK:         %[[EVENT:.*]] = llvm.call @sluiceRtEventCreate()
  // CHECK:         scf.for
  // CHECK-NOT:       llvm.alloca
  // CHECK:           %[[B:.*]] = llvm.call @sluiceRtStreamCreate()
  // CHECK:           llvm.call @sluiceRtStreamWaitEvent(%[[B]], %[[EVENT]])
  // CHECK-NOT:       sluiceRtEventDestroy
  // CHECK:           llvm.call @sluiceRtStreamDestroy(%[[B]])
  // CHECK-NEXT:    }
  // CHECK-NEXT:    llvm.call @sluiceRtEventDestroy(%[[EVENT]])
  // CHECK-NEXT:    llvm.call @sluiceRtStreamDestroy(%[[A]])
  func.func @loop(%n: index, %x: f32) {
    %a = gpu.launch_func async @k::@a blocks in (%n, %n, %n) threads in (%n, %n, %n) args(%x : f32)
    %c0 = arith.constant 0 : index
    scf.for %i = %c0 to %n step %n {
      %w = gpu.wait async
      %b = gpu.launch_func async [%w, %a] @k::@b blocks in (%n, %n, %n) threads in (%n, %n, %n) args(%x : f32)
    }
    return
  }

  // gpu.wait async makes a separate stream that waits for all its dependencies. The host waits for a launch without a
  // token.
  // CHECK-LABEL: func.func @waits
  // CHECK-SAME:    (%{{.*}}: index, %[[LDS:.*]]: i32)
  // CHECK:         %[[A:.*]] = llvm.call @sluiceRtStreamCreate()
  // CHECK:         %[[EVENT:.*]] = llvm.call @sluiceRtEventCreate()
  // CHECK:         %[[W:.*]] = llvm.call @sluiceRtStreamCreate()
  // CHECK-NEXT:    llvm.call @sluiceRtStreamWaitEvent(%[[W]], %[[EVENT]])
  // CHECK-NEXT:    llvm.call @sluiceRtEventDestroy(%[[EVENT]])
  // CHECK:         llvm.call @sluiceRtLaunch({{.*}}, %[[LDS]], %[[W]], %{{.*}})
  // CHECK-NEXT:    llvm.call @sluiceRtStreamSynchronize(%[[W]])
  // CHECK-NOT:     gpu.wait
  func.func @waits(%n: index, %lds: i32) {
    %a = gpu.launch_func async @k::@a blocks in (%n, %n, %n) threads in (%n, %n, %n)
    %w = gpu.wait async [%a]
    gpu.launch_func [%w] @k::@b blocks in (%n, %n, %n) threads in (%n, %n, %n) dynamic_shared_memory_size %lds
    gpu.wait
    return
  }
}
