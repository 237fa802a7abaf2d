// RUN: sluice-opt %s --split-input-file --verify-diagnostics

// expected-error@+1 {{swizzle chunk 6 and period 8 must be powers of two}}
func.func private @chunk(!sluice.lds_tile<64x128xf16, xor<6, 8>>)

// -----

// expected-error@+1 {{swizzle <8, 8> leaves a row of 96 columns: 64 must divide it}}
func.func private @columns(!sluice.lds_tile<64x96xf16, xor<8, 8>>)

// -----

// expected-error@+1 {{an LDS tile has two dimensions}}
func.func private @rank(!sluice.lds_tile<64xf16>)

// -----

// expected-error@+1 {{swizzle rows per phase are 3, not a power of two}}
func.func private @rows_per_phase(!sluice.lds_tile<64x128xf16, xor<8, 8, 3>>)

// -----

// expected-error@+1 {{the identity swizzle is <0, 0>}}
func.func private @identity(!sluice.lds_tile<64x128xf16, xor<0, 8>>)

// -----

// expected-error@+1 {{an LDS tile has at least one row and one column}}
func.func private @no_rows(!sluice.lds_tile<0x128xf16>)

// -----

// expected-error@+1 {{element type 'i4' is not a whole number of bytes}}
func.func private @half_bytes(!sluice.lds_tile<64x128xi4>)

// -----

func.func @read_across_chunks(%t: !sluice.lds_tile<64x128xf16, xor<8, 8>>, %i: i32) {
  // expected-error@+1 {{reads 16 elements across swizzle chunks of 8}}
  %x = sluice.lds_read %t[%i, %i] : !sluice.lds_tile<64x128xf16, xor<8, 8>>, vector<16xf16>
  return
}

// -----

func.func @read_of_another_type(%t: !sluice.lds_tile<64x128xf16>, %i: i32) {
  // expected-error@+1 {{reads 'vector<4xbf16>' in a tile of 'f16'}}
  %x = sluice.lds_read %t[%i, %i] : !sluice.lds_tile<64x128xf16>, vector<4xbf16>
  return
}

// -----

gpu.module @m {
  gpu.func @head_dim() kernel {
    // expected-error@+1 {{head dims are 96 and 88; they must be multiples of 16}}
    sluice.attention {element_type = f16, head_dim_qk = 96 : i32, head_dim_v = 88 : i32, tile_q = 256 : i32, tile_kv = 64 : i32, waves = 8 : i32, wave_rows = 32 : i32}
    gpu.return
  }
}

// -----

gpu.module @m {
  gpu.func @tile_q() kernel {
    // expected-error@+1 {{tile_q is 100; 8 waves of 32 rows compute 256}}
    sluice.attention {element_type = f16, head_dim_qk = 128 : i32, head_dim_v = 128 : i32, tile_q = 100 : i32, tile_kv = 64 : i32, waves = 8 : i32, wave_rows = 32 : i32}
    gpu.return
  }
}

// -----

gpu.module @m {
  gpu.func @wave_rows() kernel {
    // expected-error@+1 {{wave_rows is 24; it must be 16 or 32}}
    sluice.attention {element_type = f16, head_dim_qk = 64 : i32, head_dim_v = 64 : i32, tile_q = 96 : i32, tile_kv = 64 : i32, waves = 4 : i32, wave_rows = 24 : i32}
    gpu.return
  }
}

// -----

gpu.module @m {
  gpu.func @waves() kernel {
    // expected-error@+1 {{waves is 17; it must be 1 to 16}}
    sluice.attention {element_type = f16, head_dim_qk = 64 : i32, head_dim_v = 64 : i32, tile_q = 272 : i32, tile_kv = 64 : i32, waves = 17 : i32, wave_rows = 16 : i32}
    gpu.return
  }
}

// -----

gpu.module @m {
  gpu.func @element_type() kernel {
    // expected-error@+1 {{element type is 'f32'; kernels exist for f16, bf16 and f8E4M3FNUZ}}
    sluice.attention {element_type = f32, head_dim_qk = 64 : i32, head_dim_v = 64 : i32, tile_q = 64 : i32, tile_kv = 64 : i32, waves = 4 : i32, wave_rows = 16 : i32}
    gpu.return
  }
}

// -----

gpu.module @m {
  gpu.func @no_waves() kernel {
    // expected-error@+1 {{waves is 0; it must be 1 to 16}}
    sluice.attention {element_type = f16, head_dim_qk = 64 : i32, head_dim_v = 64 : i32, tile_q = 0 : i32, tile_kv = 64 : i32, waves = 0 : i32, wave_rows = 16 : i32}
    gpu.return
  }
}

// -----

gpu.module @m {
  gpu.func @two_waves_divide_keys() kernel {
    // expected-error@+1 {{tile_q is 16, so that 2 waves of 16 rows divide the keys; 4 waves of the same 16 rows do}}
    sluice.attention {element_type = f16, head_dim_qk = 64 : i32, head_dim_v = 64 : i32, tile_q = 16 : i32, tile_kv = 64 : i32, waves = 2 : i32, wave_rows = 16 : i32}
    gpu.return
  }
}

// -----

gpu.module @m {
  gpu.func @prefill_waves_divide_keys() kernel {
    // expected-error@+1 {{tile_q is 32, so that 4 waves of 32 rows divide the keys; 4 waves of the same 16 rows do}}
    sluice.attention {element_type = f16, head_dim_qk = 64 : i32, head_dim_v = 64 : i32, tile_q = 32 : i32, tile_kv = 64 : i32, waves = 4 : i32, wave_rows = 32 : i32}
    gpu.return
  }
}

// -----

gpu.module @m {
  gpu.func @waves_divide_few_columns() kernel {
    // expected-error@+1 {{tile_q is 16, so that 4 waves divide 64 columns; they need 128 or a multiple each, of 512 columns at most}}
    sluice.attention {element_type = f16, head_dim_qk = 64 : i32, head_dim_v = 64 : i32, tile_q = 16 : i32, tile_kv = 64 : i32, waves = 4 : i32, wave_rows = 16 : i32, v_in_k}
    gpu.return
  }
}

// -----

gpu.module @m {
  gpu.func @columns_in_lds() kernel {
    // expected-error@+1 {{has v_by_columns; waves of f16 or bf16 that divide the keys, not in blocks, read them}}
    sluice.attention {element_type = f16, head_dim_qk = 64 : i32, head_dim_v = 64 : i32, tile_q = 64 : i32, tile_kv = 64 : i32, waves = 4 : i32, wave_rows = 16 : i32, paged, v_by_columns}
    gpu.return
  }
}

// -----

// expected-error@+2 {{must be inside a gpu.func}}
func.func @host() {
  sluice.attention {element_type = f16, head_dim_qk = 64 : i32, head_dim_v = 64 : i32, tile_q = 64 : i32, tile_kv = 64 : i32, waves = 4 : i32, wave_rows = 16 : i32}
  return
}

// -----

gpu.module @m {
  gpu.func @no_keys() kernel {
    // expected-error@+1 {{tile_kv is 0, not a multiple of 16}}
    sluice.attention {element_type = f16, head_dim_qk = 64 : i32, head_dim_v = 64 : i32, tile_q = 64 : i32, tile_kv = 0 : i32, waves = 4 : i32, wave_rows = 16 : i32}
    gpu.return
  }
}

// -----

gpu.module @m {
  gpu.func @wide_v_in_k() kernel {
    // expected-error@+1 {{head dims are 64 and 80; with v_in_k V's is not larger}}
    sluice.attention {element_type = f16, head_dim_qk = 64 : i32, head_dim_v = 80 : i32, tile_q = 16 : i32, tile_kv = 16 : i32, waves = 1 : i32, wave_rows = 16 : i32, v_in_k}
    gpu.return
  }
}

// -----

gpu.module @m {
  gpu.func @packed_head_dim() kernel {
    // expected-error@+1 {{head dims are 80 and 88; they must be multiples of 16}}
    sluice.attention {element_type = f16, head_dim_qk = 80 : i32, head_dim_v = 88 : i32, tile_q = 16 : i32, tile_kv = 16 : i32, waves = 1 : i32, wave_rows = 16 : i32}
    gpu.return
  }
}

// -----

gpu.module @m {
  gpu.func @tile_kv() kernel {
    // expected-error@+1 {{tile_kv is 24, not a multiple of 16}}
    sluice.attention {element_type = f16, head_dim_qk = 80 : i32, head_dim_v = 80 : i32, tile_q = 16 : i32, tile_kv = 24 : i32, waves = 1 : i32, wave_rows = 16 : i32}
    gpu.return
  }
}

// -----

gpu.module @m {
  gpu.func @prefill_v_in_k() kernel {
    // expected-error@+1 {{has 32 rows a wave; v_in_k needs 16}}
    sluice.attention {element_type = f16, head_dim_qk = 64 : i32, head_dim_v = 64 : i32, tile_q = 32 : i32, tile_kv = 64 : i32, waves = 1 : i32, wave_rows = 32 : i32, v_in_k}
    gpu.return
  }
}

// -----

gpu.module @m {
  gpu.func @prefill_tile_kv() kernel {
    // expected-error@+1 {{tile_kv is 48, not a multiple of 32}}
    sluice.attention {element_type = f16, head_dim_qk = 64 : i32, head_dim_v = 64 : i32, tile_q = 32 : i32, tile_kv = 48 : i32, waves = 1 : i32, wave_rows = 32 : i32}
    gpu.return
  }
}

// -----

gpu.module @m {
  gpu.func @fp8_without_type_of_o() kernel {
    // expected-error@+1 {{o_type is <<NULL ATTRIBUTE>> with elements of 'f8E4M3FNUZ'; with f8E4M3FNUZ it must be f16 or bf16, with other types it must be absent}}
    sluice.attention {element_type = f8E4M3FNUZ, head_dim_qk = 64 : i32, head_dim_v = 64 : i32, tile_q = 16 : i32, tile_kv = 32 : i32, waves = 1 : i32, wave_rows = 16 : i32}
    gpu.return
  }
}

// -----

gpu.module @m {
  gpu.func @type_of_o() kernel {
    // expected-error@+1 {{o_type is bf16 with elements of 'f16'; with f8E4M3FNUZ it must be f16 or bf16, with other types it must be absent}}
    sluice.attention {element_type = f16, o_type = bf16, head_dim_qk = 64 : i32, head_dim_v = 64 : i32, tile_q = 16 : i32, tile_kv = 16 : i32, waves = 1 : i32, wave_rows = 16 : i32}
    gpu.return
  }
}

// -----

gpu.module @m {
  gpu.func @fp8_tile_kv() kernel {
    // expected-error@+1 {{tile_kv is 48, not a multiple of 32}}
    sluice.attention {element_type = f8E4M3FNUZ, o_type = f16, head_dim_qk = 64 : i32, head_dim_v = 64 : i32, tile_q = 16 : i32, tile_kv = 48 : i32, waves = 1 : i32, wave_rows = 16 : i32}
    gpu.return
  }
}

// -----

gpu.module @m {
  gpu.func @fp8_head_dim() kernel {
    // expected-error@+1 {{head dims are 96 and 96; they must be multiples of 64}}
    sluice.attention {element_type = f8E4M3FNUZ, o_type = f16, head_dim_qk = 96 : i32, head_dim_v = 96 : i32, tile_q = 16 : i32, tile_kv = 32 : i32, waves = 1 : i32, wave_rows = 16 : i32}
    gpu.return
  }
}

// -----

gpu.module @m {
  gpu.func @fp8_cache() kernel {
    // expected-error@+1 {{has elements of f8E4M3FNUZ; kv_type is for wider ones}}
    sluice.attention {element_type = f8E4M3FNUZ, kv_type = f8E4M3FNUZ, o_type = f16, head_dim_qk = 64 : i32, head_dim_v = 64 : i32, tile_q = 16 : i32, tile_kv = 32 : i32, waves = 1 : i32, wave_rows = 16 : i32}
    gpu.return
  }
}

// -----

func.func @live_in_of_an_argument(%t: !sluice.lds_tile<64x128xf16>) {
  // expected-error@+1 {{'sluice.live_in' op marks a tile that is not the result of a sluice.lds_alloc}}
  sluice.live_in %t : !sluice.lds_tile<64x128xf16>
  return
}

// -----

func.func @live_out_of_a_choice(%p: i1) {
  %a = sluice.lds_alloc : !sluice.lds_tile<64x128xf16>
  %b = sluice.lds_alloc : !sluice.lds_tile<64x128xf16>
  %t = arith.select %p, %a, %b : !sluice.lds_tile<64x128xf16>
  // expected-error@+1 {{'sluice.live_out' op marks a tile that is not the result of a sluice.lds_alloc}}
  sluice.live_out %t : !sluice.lds_tile<64x128xf16>
  return
}

// -----

func.func @negative_offset() {
  // expected-error@+1 {{attribute 'offset' failed to satisfy constraint}}
  %a = sluice.lds_alloc {offset = -128 : i32} : !sluice.lds_tile<64x128xf16>
  return
}

// -----

func.func @event_of_an_event() {
  %a = gpu.wait async
  %e = sluice.record_event %a
  // expected-error@+1 {{records an event on a stream; its token is an event already}}
  %f = sluice.record_event %e
  return
}

// -----

func.func @write_across_chunks(%t: !sluice.lds_tile<64x128xf16, xor<8, 8>>, %i: i32, %x: vector<16xf16>) {
  // expected-error@+1 {{writes 16 elements across swizzle chunks of 8}}
  sluice.lds_write %x, %t[%i, %i] : vector<16xf16>, !sluice.lds_tile<64x128xf16, xor<8, 8>>
  return
}

// -----

func.func @write_of_another_type(%t: !sluice.lds_tile<64x128xf16>, %i: i32, %x: vector<4xbf16>) {
  // expected-error@+1 {{writes 'vector<4xbf16>' in a tile of 'f16'}}
  sluice.lds_write %x, %t[%i, %i] : vector<4xbf16>, !sluice.lds_tile<64x128xf16>
  return
}

// -----

func.func @a_column_without_a_value(%p: !llvm.ptr<1>, %i: i32, %x: vector<4xf16>) {
  // expected-error@+1 {{names 2 columns for 1 values}}
  sluice.store_tile %p row %i limit %i columns(%i, %i) limit %i values(%x : vector<4xf16>) {tile_rows = 64 : i32, panel_columns = 64 : i32, panel_values = array<i32: 1>}
  return
}

// -----

func.func @store_of_nothing(%p: !llvm.ptr<1>, %i: i32) {
  // expected-error@+1 {{stores nothing}}
  "sluice.store_tile"(%p, %i, %i, %i) {operandSegmentSizes = array<i32: 1, 1, 1, 1, 0, 0>, tile_rows = 64 : i32, panel_columns = 64 : i32, panel_values = array<i32>} : (!llvm.ptr<1>, i32, i32, i32) -> ()
  return
}

// -----

func.func @store_of_several_types(%p: !llvm.ptr<1>, %i: i32, %x: vector<4xf16>, %y: vector<4xbf16>) {
  // expected-error@+1 {{stores elements of several types}}
  sluice.store_tile %p row %i limit %i columns(%i, %i) limit %i values(%x, %y : vector<4xf16>, vector<4xbf16>) {tile_rows = 64 : i32, panel_columns = 64 : i32, panel_values = array<i32: 2>}
  return
}

// -----

func.func @a_value_without_a_panel(%p: !llvm.ptr<1>, %i: i32, %x: vector<4xf16>) {
  // expected-error@+1 {{has 1 values in panels, and 2 in all}}
  sluice.store_tile %p row %i limit %i columns(%i, %i) limit %i values(%x, %x : vector<4xf16>, vector<4xf16>) {tile_rows = 64 : i32, panel_columns = 64 : i32, panel_values = array<i32: 1>}
  return
}
