// MFMAs that the chip lacks: by shape, by type.
// RUN: sluice-opt %s --split-input-file --verify-diagnostics --pass-pipeline='builtin.module(gpu.module(gpu.func(interleave-mfma{chip=gfx90a})))'

gpu.module @m {
  gpu.func @shape(%a: vector<8xf16>, %c: vector<4xf32>) kernel {
    // expected-error@+1 {{gfx90a has no MFMA of this shape and type}}
    %m = amdgpu.mfma 16x16x32 %a * %a + %c blgp = none : vector<8xf16>, vector<8xf16>, vector<4xf32>
    gpu.return
  }
}

// -----

gpu.module @m {
  gpu.func @type(%a: vector<8xf8E4M3FNUZ>, %c: vector<4xf32>, %p: i1) kernel {
    scf.if %p {
      // expected-error@+1 {{gfx90a has no MFMA of this shape and type}}
      %m = amdgpu.mfma 16x16x32 %a * %a + %c blgp = none : vector<8xf8E4M3FNUZ>, vector<8xf8E4M3FNUZ>, vector<4xf32>
    }
    gpu.return
  }
}
