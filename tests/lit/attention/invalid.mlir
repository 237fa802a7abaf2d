// RUN: sluice-opt %s --verify-diagnostics --pass-pipeline='builtin.module(gpu.module(gpu.func(build-attention)))'

gpu.module @m {
  gpu.func @other_parameters(%x: i32) kernel {
    // expected-error@+1 {{the function's parameters are not the attention kernarg table}}
    sluice.attention {element_type = f16, head_dim_qk = 128 : i32, head_dim_v = 128 : i32, tile_q = 256 : i32, tile_kv = 64 : i32, waves = 8 : i32, wave_rows = 32 : i32}
    gpu.return
  }
}
