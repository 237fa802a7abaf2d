// RUN: not sluice-opt %s --pass-pipeline='builtin.module(gpu.module(gpu.func(stage-output{chip=gfx000})))' 2>&1 | FileCheck %s
// CHECK: error: stage-output: chip 'gfx000' is not in the chip table
gpu.module @m {
  gpu.func @kernel() kernel {
    gpu.return
  }
}
