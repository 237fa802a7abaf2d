// RUN: not sluice-opt %s --pass-pipeline='builtin.module(gpu.module(gpu.func(interleave-mfma{chip=gfx11})))' 2>&1 | FileCheck %s
// CHECK: interleave-mfma: chip 'gfx11' is not in the chip table
gpu.module @m {
  gpu.func @nothing() kernel {
    gpu.return
  }
}
