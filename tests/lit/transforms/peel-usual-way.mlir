// Iterations in which every marked branch goes its usual way get a copy of the body without those branches.
// RUN: sluice-opt %s --allow-unregistered-dialect --pass-pipeline='builtin.module(gpu.module(gpu.func(peel-usual-way)))' | FileCheck %s

!tile = !sluice.lds_tile<64x128xf16>

gpu.module @m {
  // The usual sides, one of them the second, follow each other with the operations between them: operations after a
  // branch cannot begin before it. The values they yield replace the branch's results, in the copy and as the result
  // of the iteration. A branch without a mark promises nothing and stays in both copies. So does a branch with the
  // condition of a marked one, which is known by then. Only the old body has liveness marks: in the copy they would
  // divide the operations around them.
  // CHECK-LABEL: gpu.func @two_branches
  // CHECK:         scf.for %[[I:.*]] = %{{.*}} to %{{.*}} step %{{.*}} iter_args(%[[SUM:.*]] = %{{.*}}) -> (f32)
  // CHECK-NEXT:      %[[HOLDS:.*]] = arith.cmpi slt, %[[I]], %{{.*}} : i32
  // CHECK-NEXT:      %[[RESULT:.*]] = scf.if %[[HOLDS]] -> (f32) {
  // CHECK-NEXT:        arith.cmpi slt, %[[I]]
  // CHECK-NEXT:        "test.before"
  // CHECK-NEXT:        %[[TRUE:.*]] = arith.constant true
  // CHECK-NEXT:        %[[A:.*]] = arith.addf %[[SUM]], %[[SUM]]
  // CHECK-NEXT:        %[[BETWEEN:.*]] = "test.between"(%[[A]], %[[TRUE]])
  // CHECK-NEXT:        %[[FALSE:.*]] = arith.constant false
  // CHECK-NEXT:        %[[B:.*]] = arith.mulf %[[BETWEEN]], %[[A]]
  // CHECK-NEXT:        scf.if %{{.*}} {
  // CHECK-NEXT:          "test.unmarked"(%[[B]], %[[A]])
  // CHECK-NEXT:        }
  // CHECK-NEXT:        scf.yield %[[B]] : f32
  // CHECK-NEXT:      } else {
  // CHECK-NEXT:        arith.cmpi slt, %[[I]]
  // CHECK-NEXT:        sluice.live_in
  // CHECK-NEXT:        "test.before"
  // CHECK-NEXT:        %[[FIRST:.*]]:2 = scf.if %[[P:.*]] -> (f32, f32) {
  // CHECK-NEXT:          %[[A2:.*]] = arith.addf
  // CHECK-NEXT:          scf.yield %[[A2]], %[[A2]]
  // CHECK-NEXT:        } else {
  // CHECK-NEXT:          "test.rare"
  // CHECK-NEXT:          scf.yield
  // CHECK-NEXT:        } {sluice.usual = true}
  // CHECK-NEXT:        %[[BETWEEN2:.*]] = "test.between"(%[[FIRST]]#0, %[[P]])
  // CHECK-NEXT:        sluice.live_out
  // CHECK-NEXT:        %[[SECOND:.*]] = scf.if %{{.*}} -> (f32) {
  // CHECK-NEXT:          "test.rare"
  // CHECK-NEXT:          scf.yield
  // CHECK-NEXT:        } else {
  // CHECK-NEXT:          %[[B2:.*]] = arith.mulf %[[BETWEEN2]], %[[FIRST]]#1
  // CHECK-NEXT:          scf.yield %[[B2]]
  // CHECK-NEXT:        } {sluice.usual = false}
  // CHECK-NEXT:        scf.if %{{.*}} {
  // CHECK-NEXT:          "test.unmarked"(%[[SECOND]], %[[FIRST]]#0)
  // CHECK-NEXT:        }
  // CHECK-NEXT:        scf.yield %[[SECOND]] : f32
  // CHECK-NEXT:      }
  // CHECK-NEXT:      scf.yield %[[RESULT]] : f32
  // CHECK-NEXT:    }
  gpu.func @two_branches(%p: i1, %q: i1, %r: i1, %n: i32, %step: i32, %whole: i32, %x: f32) kernel {
    %t = sluice.lds_alloc : !tile
    %sum = scf.for %i = %n to %n step %step iter_args(%before = %x) -> f32 : i32 {
      %holds = arith.cmpi slt, %i, %whole : i32
      sluice.usual_way %holds
      sluice.live_in %t : !tile
      "test.before"() : () -> ()
      %first:2 = scf.if %p -> (f32, f32) {
        %a = arith.addf %before, %before : f32
        scf.yield %a, %a : f32, f32
      } else {
        "test.rare"() : () -> ()
        scf.yield %before, %x : f32, f32
      } {sluice.usual = true}
      %between = "test.between"(%first#0, %p) : (f32, i1) -> f32
      sluice.live_out %t : !tile
      %second = scf.if %q -> f32 {
        "test.rare"() : () -> ()
        scf.yield %x : f32
      } else {
        %b = arith.mulf %between, %first#1 : f32
        scf.yield %b : f32
      } {sluice.usual = false}
      scf.if %r {
        "test.unmarked"(%second, %first#0) : (f32, f32) -> ()
      }
      scf.yield %second : f32
    }
    "test.use"(%sum) : (f32) -> ()
    gpu.return
  }

  // Each tile of an iteration has its own promise; that of the second is inside the branch that asks whether there is
  // a second. All promises must hold, and this is known at the start of the iteration: the values that they depend on
  // are computed there, once, from the number of the iteration. A promise inside an unusual side does not count.
  // CHECK-LABEL: gpu.func @stages
  // CHECK:         scf.for %[[I:.*]] = %{{.*}} to %{{.*}} step %[[STEP:.*]] iter_args(%[[BEFORE:.*]] = %{{.*}}) -> (f32)
  // CHECK-NEXT:      %[[FIRST:.*]] = arith.cmpi slt, %[[I]], %[[WHOLE:.*]] : i32
  // CHECK-NEXT:      %[[NEXT:.*]] = arith.addi %[[I]], %[[STEP]] : i32
  // CHECK-NEXT:      %[[SECOND:.*]] = arith.cmpi slt, %[[NEXT]], %[[WHOLE]] : i32
  // CHECK-NEXT:      %[[BOTH:.*]] = arith.andi %[[FIRST]], %[[SECOND]] : i1
  // CHECK-NEXT:      %[[THIRD:.*]] = arith.cmpi sgt, %[[NEXT]], %[[STEP]] : i32
  // CHECK-NEXT:      %[[ALL:.*]] = arith.andi %[[BOTH]], %[[THIRD]] : i1
  // CHECK-NEXT:      scf.if %[[ALL]] -> (f32) {
  // CHECK-NOT:         scf.if
  // CHECK:             "test.first"
  // CHECK-NOT:         scf.if
  // CHECK:             "test.second"
  // CHECK-NOT:         scf.if
  // CHECK:             "test.third"
  // CHECK-NOT:         scf.if
  // CHECK:             scf.yield %[[BEFORE]]
  // CHECK-NEXT:      } else {
  // CHECK:             "test.first"
  // CHECK:             scf.if
  // CHECK:               "test.second"
  // CHECK:               scf.if
  // CHECK:                 "test.third"
  // CHECK:           }
  // CHECK-NOT:     sluice.usual_way
  gpu.func @stages(%n: i32, %step: i32, %whole: i32, %never: i1, %x: f32) kernel {
    %y = scf.for %i = %n to %n step %step iter_args(%before = %x) -> f32 : i32 {
      %first = arith.cmpi slt, %i, %whole : i32
      sluice.usual_way %first
      "test.first"() : () -> ()
      %next = arith.addi %i, %step : i32
      %isThere = arith.cmpi slt, %next, %n : i32
      scf.if %isThere {
        %second = arith.cmpi slt, %next, %whole : i32
        sluice.usual_way %second
        "test.second"() : () -> ()
        %third = arith.cmpi sgt, %next, %step : i32
        scf.if %second {
          sluice.usual_way %third
          "test.third"() : () -> ()
        } else {
          sluice.usual_way %never
        } {sluice.usual = true}
      } else {
      } {sluice.usual = true}
      scf.yield %before : f32
    }
    "test.use"(%y) : (f32) -> ()
    gpu.return
  }

  // A second body needs more registers: kernels with none to spare keep one body. The pass removes the promises.
  // CHECK-LABEL: gpu.func @few_registers
  // CHECK:         scf.for
  // CHECK-NEXT:      arith.cmpi
  // CHECK-NEXT:      scf.if
  // CHECK-NEXT:        "test.usual"
  // CHECK-NEXT:      } else {
  // CHECK-NEXT:        "test.rare"
  // CHECK-NEXT:      } {sluice.usual = true}
  // CHECK-NEXT:    }
  // CHECK-NEXT:    gpu.return
  gpu.func @few_registers(%p: i1, %n: i32, %step: i32, %whole: i32) kernel attributes {sluice.few_registers} {
    scf.for %i = %n to %n step %step : i32 {
      %holds = arith.cmpi slt, %i, %whole : i32
      sluice.usual_way %holds
      scf.if %p {
        "test.usual"() : () -> ()
      } else {
        "test.rare"() : () -> ()
      } {sluice.usual = true}
    }
    gpu.return
  }

  // Without a promise a loop keeps its branches. The pass removes a promise outside of all loops.
  // CHECK-LABEL: gpu.func @no_promise
  // CHECK-NEXT:    scf.for
  // CHECK-NEXT:      scf.if
  // CHECK-NEXT:        "test.usual"
  // CHECK-NEXT:      } else {
  // CHECK-NEXT:        "test.rare"
  // CHECK-NEXT:      } {sluice.usual = true}
  // CHECK-NEXT:    }
  // CHECK-NEXT:    gpu.return
  gpu.func @no_promise(%p: i1, %n: i32, %step: i32) kernel {
    sluice.usual_way %p
    scf.for %i = %n to %n step %step : i32 {
      scf.if %p {
        "test.usual"() : () -> ()
      } else {
        "test.rare"() : () -> ()
      } {sluice.usual = true}
    }
    gpu.return
  }

  // A loop without carried values.
  // CHECK-LABEL: gpu.func @no_results
  // CHECK-NEXT:    scf.for
  // CHECK-NEXT:      %[[HOLDS:.*]] = arith.cmpi
  // CHECK-NEXT:      scf.if %[[HOLDS]] {
  // CHECK-NOT:         "test.rare"
  // CHECK:             "test.usual"
  // CHECK-NEXT:      } else {
  // CHECK:             scf.if
  // CHECK:               "test.rare"
  // CHECK:         gpu.return
  gpu.func @no_results(%p: i1, %n: i32, %step: i32, %whole: i32) kernel {
    scf.for %i = %n to %n step %step : i32 {
      %holds = arith.cmpi slt, %i, %whole : i32
      sluice.usual_way %holds
      scf.if %p {
        "test.usual"() : () -> ()
      } else {
        "test.rare"() : () -> ()
      } {sluice.usual = true}
    }
    gpu.return
  }
}
