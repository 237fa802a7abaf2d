//===- memory_instructions.cpp - the instructions of LDS and of vector and scalar memory ----------------===//
//
// Most come in families, whose names have a prefix for the address and an ending for the data.
//
//===----------------------------------------------------------------------------------------------------===//
#include "emulator/isa/instructions.h"

namespace sluice::emulator::detail {

namespace {

using enum Pipe;
using enum Role;
using enum Fact;
using enum AtomicOperation;

constexpr DataFacts u8{.bytes = 1}, i8{.bytes = 1, .sign_extend = true};
constexpr DataFacts u16{.bytes = 2}, i16{.bytes = 2, .sign_extend = true};
constexpr DataFacts b32{.bytes = 4}, b64{.bytes = 8}, b96{.bytes = 12}, b128{.bytes = 16};
constexpr DataFacts b256{.bytes = 32}, b512{.bytes = 64};

constexpr DataFacts low(DataFacts data) {
  data.half = HalfSelect::low;
  return data;
}
constexpr DataFacts high(DataFacts data) {
  data.half = HalfSelect::high;
  return data;
}
/// Two accesses per lane, whose offsets count values, or 64 of them.
constexpr DataFacts two(DataFacts data, uint16_t values = 1) {
  data.parts = 2;
  data.offset_unit = uint16_t(data.bytes * values);
  return data;
}
constexpr DataFacts by(AtomicOperation operation, DataFacts data) {
  data.operation = operation;
  return data;
}
constexpr DataFacts converted(uint8_t components) {
  return {.components = components};
}
constexpr DataFacts converted_16(uint8_t components) {
  return {.components = components, .packed_16 = true};
}

constexpr std::string_view barriers_only = "only the barriers of global wave sync are implemented";

// clang-format off
#define LDS_ATOMIC(name, type, data) \
    {"ds_" name "_" type, lds, atomic, none, data}, \
    {"ds_" name "_rtn_" type, lds, atomic, returns_old, data}

#define ATOMIC(name, pipe, role, facts, operation) \
    {name, pipe, role, facts, by(operation, b32)}, \
    {name "_x2", pipe, role, facts, by(operation, b64)}

#define INTEGER_ATOMICS(prefix, pipe, facts) \
    ATOMIC(prefix "add", pipe, atomic, facts, add), \
    ATOMIC(prefix "and", pipe, atomic, facts, bit_and), \
    ATOMIC(prefix "cmpswap", pipe, atomic_compare, facts, compare_swap), \
    ATOMIC(prefix "dec", pipe, atomic, facts, decrement), \
    ATOMIC(prefix "inc", pipe, atomic, facts, increment), \
    ATOMIC(prefix "or", pipe, atomic, facts, bit_or), \
    ATOMIC(prefix "smax", pipe, atomic, facts, signed_max), \
    ATOMIC(prefix "smin", pipe, atomic, facts, signed_min), \
    ATOMIC(prefix "sub", pipe, atomic, facts, subtract), \
    ATOMIC(prefix "swap", pipe, atomic_swap, facts, swap), \
    ATOMIC(prefix "umax", pipe, atomic, facts, unsigned_max), \
    ATOMIC(prefix "umin", pipe, atomic, facts, unsigned_min), \
    ATOMIC(prefix "xor", pipe, atomic, facts, bit_xor)

#define VECTOR_ATOMICS(prefix, facts) \
    INTEGER_ATOMICS(prefix, vmem, facts), \
    {prefix "add_f32", vmem, atomic, facts, by(add_float, b32)}, \
    {prefix "add_f64", vmem, atomic, facts, by(add_float, b64)}, \
    {prefix "max_f64", vmem, atomic, facts, by(max_float, b64)}, \
    {prefix "min_f64", vmem, atomic, facts, by(min_float, b64)}, \
    {prefix "pk_add_f16", vmem, atomic, facts, by(add_f16_pair, b32)}

#define VECTOR_ACCESSES(prefix, facts) \
    {prefix "load_dword", vmem, load, facts, b32}, \
    {prefix "load_dwordx2", vmem, load, facts, b64}, \
    {prefix "load_dwordx3", vmem, load, facts, b96}, \
    {prefix "load_dwordx4", vmem, load, facts, b128}, \
    {prefix "load_sbyte", vmem, load, facts, i8}, \
    {prefix "load_sbyte_d16", vmem, load, facts, low(i8)}, \
    {prefix "load_sbyte_d16_hi", vmem, load, facts, high(i8)}, \
    {prefix "load_short_d16", vmem, load, facts, low(u16)}, \
    {prefix "load_short_d16_hi", vmem, load, facts, high(u16)}, \
    {prefix "load_sshort", vmem, load, facts, i16}, \
    {prefix "load_ubyte", vmem, load, facts, u8}, \
    {prefix "load_ubyte_d16", vmem, load, facts, low(u8)}, \
    {prefix "load_ubyte_d16_hi", vmem, load, facts, high(u8)}, \
    {prefix "load_ushort", vmem, load, facts, u16}, \
    {prefix "store_byte", vmem, store, facts, u8}, \
    {prefix "store_byte_d16_hi", vmem, store, facts, high(u8)}, \
    {prefix "store_dword", vmem, store, facts, b32}, \
    {prefix "store_dwordx2", vmem, store, facts, b64}, \
    {prefix "store_dwordx3", vmem, store, facts, b96}, \
    {prefix "store_dwordx4", vmem, store, facts, b128}, \
    {prefix "store_short", vmem, store, facts, u16}, \
    {prefix "store_short_d16_hi", vmem, store, facts, high(u16)}

#define COPIES_TO_LDS(prefix, facts) \
    {prefix "load_lds_dword", vmem, copy_to_lds, facts, b32}, \
    {prefix "load_lds_sbyte", vmem, copy_to_lds, facts, i8}, \
    {prefix "load_lds_sshort", vmem, copy_to_lds, facts, i16}, \
    {prefix "load_lds_ubyte", vmem, copy_to_lds, facts, u8}, \
    {prefix "load_lds_ushort", vmem, copy_to_lds, facts, u16}

#define CONVERSIONS(prefix, role) \
    {prefix "format_x", vmem, role, none, converted(1)}, \
    {prefix "format_xy", vmem, role, none, converted(2)}, \
    {prefix "format_xyz", vmem, role, none, converted(3)}, \
    {prefix "format_xyzw", vmem, role, none, converted(4)}, \
    {prefix "format_d16_x", vmem, role, none, converted_16(1)}, \
    {prefix "format_d16_xy", vmem, role, none, converted_16(2)}, \
    {prefix "format_d16_xyz", vmem, role, none, converted_16(3)}, \
    {prefix "format_d16_xyzw", vmem, role, none, converted_16(4)}

#define SCALAR_ACCESSES(prefix, facts) \
    {prefix "load_dword", smem, load, facts, b32}, \
    {prefix "load_dwordx2", smem, load, facts, b64}, \
    {prefix "load_dwordx4", smem, load, facts, b128}, \
    {prefix "store_dword", smem, store, facts, b32}, \
    {prefix "store_dwordx2", smem, store, facts, b64}, \
    {prefix "store_dwordx4", smem, store, facts, b128}

constexpr InstructionFacts rows[] = {
    // DS
    {"ds_read_b32", lds, load, none, b32},
    {"ds_read_b64", lds, load, none, b64},
    {"ds_read_b96", lds, load, none, b96},
    {"ds_read_b128", lds, load, none, b128},
    {"ds_read_i8", lds, load, none, i8},
    {"ds_read_i8_d16", lds, load, none, low(i8)},
    {"ds_read_i8_d16_hi", lds, load, none, high(i8)},
    {"ds_read_i16", lds, load, none, i16},
    {"ds_read_u8", lds, load, none, u8},
    {"ds_read_u8_d16", lds, load, none, low(u8)},
    {"ds_read_u8_d16_hi", lds, load, none, high(u8)},
    {"ds_read_u16", lds, load, none, u16},
    {"ds_read_u16_d16", lds, load, none, low(u16)},
    {"ds_read_u16_d16_hi", lds, load, none, high(u16)},
    {"ds_read2_b32", lds, load, none, two(b32)},
    {"ds_read2_b64", lds, load, none, two(b64)},
    {"ds_read2st64_b32", lds, load, none, two(b32, 64)},
    {"ds_read2st64_b64", lds, load, none, two(b64, 64)},
    {"ds_read_addtid_b32", lds, load, address_in_m0 | reads_m0, b32},
    {"ds_write_b8", lds, store, none, u8},
    {"ds_write_b8_d16_hi", lds, store, none, high(u8)},
    {"ds_write_b16", lds, store, none, u16},
    {"ds_write_b16_d16_hi", lds, store, none, high(u16)},
    {"ds_write_b32", lds, store, none, b32},
    {"ds_write_b64", lds, store, none, b64},
    {"ds_write_b96", lds, store, none, b96},
    {"ds_write_b128", lds, store, none, b128},
    {"ds_write2_b32", lds, store, none, two(b32)},
    {"ds_write2_b64", lds, store, none, two(b64)},
    {"ds_write2st64_b32", lds, store, none, two(b32, 64)},
    {"ds_write2st64_b64", lds, store, none, two(b64, 64)},
    {"ds_write_addtid_b32", lds, store, address_in_m0 | reads_m0, b32},
    LDS_ATOMIC("add", "f32", by(add_float, b32)),
    LDS_ATOMIC("add", "f64", by(add_float, b64)),
    LDS_ATOMIC("add", "u32", by(add, b32)),
    LDS_ATOMIC("add", "u64", by(add, b64)),
    LDS_ATOMIC("and", "b32", by(bit_and, b32)),
    LDS_ATOMIC("and", "b64", by(bit_and, b64)),
    LDS_ATOMIC("cmpst", "b32", by(compare_swap, b32)),
    LDS_ATOMIC("cmpst", "b64", by(compare_swap, b64)),
    LDS_ATOMIC("cmpst", "f32", by(compare_swap_float, b32)),
    LDS_ATOMIC("cmpst", "f64", by(compare_swap_float, b64)),
    LDS_ATOMIC("dec", "u32", by(decrement, b32)),
    LDS_ATOMIC("dec", "u64", by(decrement, b64)),
    LDS_ATOMIC("inc", "u32", by(increment, b32)),
    LDS_ATOMIC("inc", "u64", by(increment, b64)),
    LDS_ATOMIC("max", "f32", by(max_float, b32)),
    LDS_ATOMIC("max", "f64", by(max_float, b64)),
    LDS_ATOMIC("max", "i32", by(signed_max, b32)),
    LDS_ATOMIC("max", "i64", by(signed_max, b64)),
    LDS_ATOMIC("max", "u32", by(unsigned_max, b32)),
    LDS_ATOMIC("max", "u64", by(unsigned_max, b64)),
    LDS_ATOMIC("min", "f32", by(min_float, b32)),
    LDS_ATOMIC("min", "f64", by(min_float, b64)),
    LDS_ATOMIC("min", "i32", by(signed_min, b32)),
    LDS_ATOMIC("min", "i64", by(signed_min, b64)),
    LDS_ATOMIC("min", "u32", by(unsigned_min, b32)),
    LDS_ATOMIC("min", "u64", by(unsigned_min, b64)),
    LDS_ATOMIC("mskor", "b32", by(replace_bits, b32)),
    LDS_ATOMIC("mskor", "b64", by(replace_bits, b64)),
    LDS_ATOMIC("or", "b32", by(bit_or, b32)),
    LDS_ATOMIC("or", "b64", by(bit_or, b64)),
    {"ds_pk_add_bf16", lds, atomic, none, by(add_bf16_pair, b32)},
    {"ds_pk_add_rtn_bf16", lds, atomic, returns_old, by(add_bf16_pair, b32)},
    {"ds_pk_add_f16", lds, atomic, none, by(add_f16_pair, b32)},
    {"ds_pk_add_rtn_f16", lds, atomic, returns_old, by(add_f16_pair, b32)},
    LDS_ATOMIC("rsub", "u32", by(subtract_from_operand, b32)),
    LDS_ATOMIC("rsub", "u64", by(subtract_from_operand, b64)),
    LDS_ATOMIC("sub", "u32", by(subtract, b32)),
    LDS_ATOMIC("sub", "u64", by(subtract, b64)),
    LDS_ATOMIC("xor", "b32", by(bit_xor, b32)),
    LDS_ATOMIC("xor", "b64", by(bit_xor, b64)),
    {"ds_condxchg32_rtn_b64", lds, atomic, returns_old | aligns_address, by(exchange_halves, b64)},
    {"ds_wrap_rtn_b32", lds, atomic, returns_old, by(wrap, b32)},
    {"ds_wrxchg_rtn_b32", lds, atomic, returns_old, by(swap, b32)},
    {"ds_wrxchg_rtn_b64", lds, atomic, returns_old, by(swap, b64)},
    {"ds_wrxchg2_rtn_b32", lds, atomic, returns_old, by(swap, two(b32))},
    {"ds_wrxchg2_rtn_b64", lds, atomic, returns_old, by(swap, two(b64))},
    {"ds_wrxchg2st64_rtn_b32", lds, atomic, returns_old, by(swap, two(b32, 64))},
    {"ds_wrxchg2st64_rtn_b64", lds, atomic, returns_old, by(swap, two(b64, 64))},
    {"ds_append", lds, lane_exchange, address_in_m0 | returns_old, b32},
    {"ds_consume", lds, lane_exchange, address_in_m0 | returns_old, b32},
    {"ds_bpermute_b32", lds, lane_exchange, none, b32},
    {"ds_permute_b32", lds, lane_exchange, none, b32},
    {"ds_swizzle_b32", lds, lane_exchange, none, b32},
    {"ds_gws_barrier", lds, global_sync, reads_m0},
    {"ds_gws_init", lds, global_sync, reads_m0},
    {"ds_gws_sema_br", lds, global_sync, reads_m0, {}, 0, barriers_only},
    {"ds_gws_sema_p", lds, global_sync, reads_m0, {}, 0, barriers_only},
    {"ds_gws_sema_v", lds, global_sync, reads_m0, {}, 0, barriers_only},
    {"ds_nop", lds},
    // MUBUF
    VECTOR_ACCESSES("buffer_", none),
    VECTOR_ATOMICS("buffer_atomic_", none),
    CONVERSIONS("buffer_load_", load),
    CONVERSIONS("buffer_store_", store),
    {"buffer_load_format_d16_hi_x", vmem, load, none, high(converted_16(1))},
    {"buffer_store_format_d16_hi_x", vmem, store, none, high(converted_16(1))},
    {"buffer_inv", vmem, invalidate},
    {"buffer_wbl2", vmem, write_back},
    // MTBUF
    CONVERSIONS("tbuffer_load_", load),
    CONVERSIONS("tbuffer_store_", store),
    // FLAT
    VECTOR_ACCESSES("flat_", flat),
    VECTOR_ATOMICS("flat_atomic_", flat),
    {"flat_atomic_pk_add_bf16", vmem, atomic, flat, by(add_bf16_pair, b32)},
    VECTOR_ACCESSES("global_", none),
    VECTOR_ATOMICS("global_atomic_", none),
    {"global_atomic_pk_add_bf16", vmem, atomic, none, by(add_bf16_pair, b32)},
    COPIES_TO_LDS("global_", none),
    VECTOR_ACCESSES("scratch_", scratch),
    COPIES_TO_LDS("scratch_", scratch),
    // SMEM
    SCALAR_ACCESSES("s_", none),
    {"s_load_dwordx8", smem, load, none, b256},
    {"s_load_dwordx16", smem, load, none, b512},
    INTEGER_ATOMICS("s_atomic_", smem, none),
    SCALAR_ACCESSES("s_buffer_", resource),
    {"s_buffer_load_dwordx8", smem, load, resource, b256},
    {"s_buffer_load_dwordx16", smem, load, resource, b512},
    INTEGER_ATOMICS("s_buffer_atomic_", smem, resource),
    SCALAR_ACCESSES("s_scratch_", scratch),
    {"s_atc_probe", smem},
    {"s_atc_probe_buffer", smem},
    {"s_dcache_discard", smem},
    {"s_dcache_discard_x2", smem},
    {"s_dcache_inv", smem},
    {"s_dcache_inv_vol", smem},
    {"s_dcache_wb", smem},
    {"s_dcache_wb_vol", smem},
    {"s_memrealtime", smem, read_clock, none, b64},
    {"s_memtime", smem, read_clock, none, b64},
};

#undef LDS_ATOMIC
#undef ATOMIC
#undef INTEGER_ATOMICS
#undef VECTOR_ATOMICS
#undef VECTOR_ACCESSES
#undef COPIES_TO_LDS
#undef CONVERSIONS
#undef SCALAR_ACCESSES
// clang-format on

} // namespace

std::span<const InstructionFacts> memory_instructions() {
  return rows;
}

} // namespace sluice::emulator::detail
