// Accumulators that are held are in AccVGPRs, and so are the MFMAs that add to them.
// RUN: sluice-opt %s --allow-unregistered-dialect --pass-pipeline='builtin.module(gpu.module(lower-sluice-to-rocdl))' | FileCheck %s
// RUN: sluice-opt %s --allow-unregistered-dialect --pass-pipeline='builtin.module(gpu.module(lower-sluice-to-rocdl{chip=gfx90a}))' | FileCheck %s --check-prefix=GFX90A
// RUN: sluice-opt %s --allow-unregistered-dialect --pass-pipeline='builtin.module(gpu.module(lower-sluice-to-rocdl{chip=gfx950}))' | FileCheck %s --check-prefix=GFX950

gpu.module @m {
  // The chip needs two wait states between an instruction that computes an operand and the first MFMA that reads it.
  // An MFMA after two others already has them.
  // CHECK-LABEL: gpu.func @kernel
  // CHECK:         %[[C:.*]] = llvm.inline_asm "", "=a,0" %{{.*}} : (vector<16xf32>) -> vector<16xf32>
  // CHECK:         %[[A:.*]] = llvm.inline_asm "s_nop 1\0Av_mfma_f32_32x32x8_f16 $0, $1, $2, $0", "=a,v,v,0" %{{.*}}, %{{.*}}, %[[C]]
  // CHECK:         llvm.inline_asm "s_nop 1\0Av_mfma_f32_32x32x8_f16
  // CHECK:         llvm.inline_asm "v_mfma_f32_32x32x8_f16
  // CHECK:         arith.mulf
  // CHECK:         llvm.inline_asm "s_nop 1\0Av_mfma_f32_32x32x8_f16
  // Other accumulators do not change.
  // CHECK:         amdgpu.mfma
  // CHECK:         llvm.inline_asm "s_nop 10", "=a,0" %[[A]]
  // Names and wait states come from the chip.
  // GFX90A-LABEL: gpu.func @kernel
  // GFX90A:         llvm.inline_asm "s_nop 1\0Av_mfma_f32_32x32x8f16 $0, $1, $2, $0"
  // GFX90A:         llvm.inline_asm "s_nop 15\0As_nop 2", "=a,0"
  // GFX950-LABEL: gpu.func @kernel
  // GFX950:         llvm.inline_asm "s_nop 1\0Av_mfma_f32_32x32x8_f16 $0, $1, $2, $0"
  // GFX950:         llvm.inline_asm "s_nop 11", "=a,0"
  gpu.func @kernel(%a: vector<4xf16>, %c: vector<16xf32>) kernel {
    %h = sluice.hold %c : vector<16xf32>
    %0 = amdgpu.mfma 32x32x8 %a * %a + %h {sluice.held} blgp = none : vector<4xf16>, vector<4xf16>, vector<16xf32>
    %1 = amdgpu.mfma 32x32x8 %a * %a + %h {sluice.held} blgp = none : vector<4xf16>, vector<4xf16>, vector<16xf32>
    %2 = amdgpu.mfma 32x32x8 %a * %a + %h {sluice.held} blgp = none : vector<4xf16>, vector<4xf16>, vector<16xf32>
    %f = arith.mulf %a, %a : vector<4xf16>
    %3 = amdgpu.mfma 32x32x8 %f * %a + %h {sluice.held} blgp = none : vector<4xf16>, vector<4xf16>, vector<16xf32>
    %4 = amdgpu.mfma 32x32x8 %a * %a + %c blgp = none : vector<4xf16>, vector<4xf16>, vector<16xf32>
    %s = sluice.hold %0 settles : vector<16xf32>
    "test.use"(%s, %1, %2, %3, %4) : (vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>) -> ()
    gpu.return
  }
}
