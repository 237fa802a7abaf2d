// An MFMA leaves other instructions as many turns as it has passes, less its own. The chip table gives the passes.
// RUN: sluice-opt %s --allow-unregistered-dialect --pass-pipeline='builtin.module(gpu.module(gpu.func(interleave-mfma)))' | FileCheck %s --check-prefix=GFX942
// RUN: sluice-opt %s --allow-unregistered-dialect --pass-pipeline='builtin.module(gpu.module(gpu.func(interleave-mfma{chip=gfx90a})))' | FileCheck %s --check-prefix=GFX90A

gpu.module @m {
  // 16x16x16 of f16: 4 passes on gfx942, 8 on gfx90a.
  // GFX942-LABEL: gpu.func @small
  // GFX942-NEXT:   amdgpu.mfma {{.*}} {id = 10 : i64}
  // GFX942-COUNT-3: arith.mulf
  // GFX942-NEXT:   amdgpu.mfma {{.*}} {id = 11 : i64}
  // GFX942-NEXT:   arith.mulf {{.*}} {id = 3 : i64}
  // GFX90A-LABEL: gpu.func @small
  // GFX90A-NEXT:   amdgpu.mfma {{.*}} {id = 10 : i64}
  // GFX90A-COUNT-7: arith.mulf
  // GFX90A-NEXT:   amdgpu.mfma {{.*}} {id = 11 : i64}
  // GFX90A-NEXT:   arith.mulf {{.*}} {id = 7 : i64}
  gpu.func @small(%a: vector<4xf16>, %c: vector<4xf32>, %x: f32) kernel {
    %p0 = arith.mulf %x, %x {id = 0} : f32
    %p1 = arith.mulf %x, %x {id = 1} : f32
    %p2 = arith.mulf %x, %x {id = 2} : f32
    %p3 = arith.mulf %x, %x {id = 3} : f32
    %p4 = arith.mulf %x, %x {id = 4} : f32
    %p5 = arith.mulf %x, %x {id = 5} : f32
    %p6 = arith.mulf %x, %x {id = 6} : f32
    %p7 = arith.mulf %x, %x {id = 7} : f32
    %p8 = arith.mulf %x, %x {id = 8} : f32
    %p9 = arith.mulf %x, %x {id = 9} : f32
    %p10 = arith.mulf %x, %x {id = 10} : f32
    %p11 = arith.mulf %x, %x {id = 11} : f32
    %p12 = arith.mulf %x, %x {id = 12} : f32
    %p13 = arith.mulf %x, %x {id = 13} : f32
    %p14 = arith.mulf %x, %x {id = 14} : f32
    %p15 = arith.mulf %x, %x {id = 15} : f32
    %p16 = arith.mulf %x, %x {id = 16} : f32
    %p17 = arith.mulf %x, %x {id = 17} : f32
    %m0 = amdgpu.mfma 16x16x16 %a * %a + %c {id = 10} blgp = none : vector<4xf16>, vector<4xf16>, vector<4xf32>
    %m1 = amdgpu.mfma 16x16x16 %a * %a + %m0 {id = 11} blgp = none : vector<4xf16>, vector<4xf16>, vector<4xf32>
    "test.use"(%m1, %p0, %p1, %p2, %p3, %p4, %p5, %p6, %p7, %p8, %p9, %p10, %p11, %p12, %p13, %p14, %p15, %p16, %p17) : (vector<4xf32>, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32) -> ()
    gpu.return
  }

  // 32x32x8 of f16: 8 and 16.
  // GFX942-LABEL: gpu.func @large
  // GFX942-NEXT:   amdgpu.mfma {{.*}} {id = 10 : i64}
  // GFX942-COUNT-7: arith.mulf
  // GFX942-NEXT:   amdgpu.mfma {{.*}} {id = 11 : i64}
  // GFX942-NEXT:   arith.mulf {{.*}} {id = 7 : i64}
  // GFX90A-LABEL: gpu.func @large
  // GFX90A-NEXT:   amdgpu.mfma {{.*}} {id = 10 : i64}
  // GFX90A-COUNT-15: arith.mulf
  // GFX90A-NEXT:   amdgpu.mfma {{.*}} {id = 11 : i64}
  // GFX90A-NEXT:   arith.mulf {{.*}} {id = 15 : i64}
  gpu.func @large(%a: vector<4xf16>, %c: vector<16xf32>, %x: f32) kernel {
    %p0 = arith.mulf %x, %x {id = 0} : f32
    %p1 = arith.mulf %x, %x {id = 1} : f32
    %p2 = arith.mulf %x, %x {id = 2} : f32
    %p3 = arith.mulf %x, %x {id = 3} : f32
    %p4 = arith.mulf %x, %x {id = 4} : f32
    %p5 = arith.mulf %x, %x {id = 5} : f32
    %p6 = arith.mulf %x, %x {id = 6} : f32
    %p7 = arith.mulf %x, %x {id = 7} : f32
    %p8 = arith.mulf %x, %x {id = 8} : f32
    %p9 = arith.mulf %x, %x {id = 9} : f32
    %p10 = arith.mulf %x, %x {id = 10} : f32
    %p11 = arith.mulf %x, %x {id = 11} : f32
    %p12 = arith.mulf %x, %x {id = 12} : f32
    %p13 = arith.mulf %x, %x {id = 13} : f32
    %p14 = arith.mulf %x, %x {id = 14} : f32
    %p15 = arith.mulf %x, %x {id = 15} : f32
    %p16 = arith.mulf %x, %x {id = 16} : f32
    %p17 = arith.mulf %x, %x {id = 17} : f32
    %m0 = amdgpu.mfma 32x32x8 %a * %a + %c {id = 10} blgp = none : vector<4xf16>, vector<4xf16>, vector<16xf32>
    %m1 = amdgpu.mfma 32x32x8 %a * %a + %m0 {id = 11} blgp = none : vector<4xf16>, vector<4xf16>, vector<16xf32>
    "test.use"(%m1, %p0, %p1, %p2, %p3, %p4, %p5, %p6, %p7, %p8, %p9, %p10, %p11, %p12, %p13, %p14, %p15, %p16, %p17) : (vector<16xf32>, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32) -> ()
    gpu.return
  }

  // The vector unit can read a result 3 turns after the last pass. So 4 + 3 turns of other work are between the last
  // MFMA and its user, and 8 + 3 on gfx90a.
  // GFX942-LABEL: gpu.func @result
  // GFX942:        amdgpu.mfma {{.*}} {id = 11 : i64}
  // GFX942-COUNT-7: arith.mulf
  // GFX942-NEXT:   arith.addf
  // GFX90A-LABEL: gpu.func @result
  // GFX90A:        amdgpu.mfma {{.*}} {id = 11 : i64}
  // GFX90A-COUNT-11: arith.mulf
  // GFX90A-NEXT:   arith.addf
  gpu.func @result(%a: vector<4xf16>, %c: vector<4xf32>, %x: f32) kernel {
    %m0 = amdgpu.mfma 16x16x16 %a * %a + %c {id = 10} blgp = none : vector<4xf16>, vector<4xf16>, vector<4xf32>
    %m1 = amdgpu.mfma 16x16x16 %a * %a + %m0 {id = 11} blgp = none : vector<4xf16>, vector<4xf16>, vector<4xf32>
    %sum = arith.addf %m1, %c : vector<4xf32>
    %p0 = arith.mulf %x, %x {id = 0} : f32
    %p1 = arith.mulf %x, %x {id = 1} : f32
    %p2 = arith.mulf %x, %x {id = 2} : f32
    %p3 = arith.mulf %x, %x {id = 3} : f32
    %p4 = arith.mulf %x, %x {id = 4} : f32
    %p5 = arith.mulf %x, %x {id = 5} : f32
    %p6 = arith.mulf %x, %x {id = 6} : f32
    %p7 = arith.mulf %x, %x {id = 7} : f32
    %p8 = arith.mulf %x, %x {id = 8} : f32
    %p9 = arith.mulf %x, %x {id = 9} : f32
    %p10 = arith.mulf %x, %x {id = 10} : f32
    %p11 = arith.mulf %x, %x {id = 11} : f32
    %p12 = arith.mulf %x, %x {id = 12} : f32
    %p13 = arith.mulf %x, %x {id = 13} : f32
    %p14 = arith.mulf %x, %x {id = 14} : f32
    %p15 = arith.mulf %x, %x {id = 15} : f32
    %p16 = arith.mulf %x, %x {id = 16} : f32
    %p17 = arith.mulf %x, %x {id = 17} : f32
    %p18 = arith.mulf %x, %x {id = 18} : f32
    %p19 = arith.mulf %x, %x {id = 19} : f32
    "test.use"(%sum, %p0, %p1, %p2, %p3, %p4, %p5, %p6, %p7, %p8, %p9, %p10, %p11, %p12, %p13, %p14, %p15, %p16, %p17, %p18, %p19) : (vector<4xf32>, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32) -> ()
    gpu.return
  }
}
