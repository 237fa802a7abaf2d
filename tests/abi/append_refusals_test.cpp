//===- append_refusals_test.cpp - appends that break a rule ---------------------------------------------===//
#include "cache_op_fixture.h"

#include <cmath>

using namespace sluice::test;

namespace {

using A = AppendCall;
constexpr sluice_status invalid = SLUICE_INVALID_ARGUMENT, unsupported = SLUICE_UNSUPPORTED,
                        newer = SLUICE_NEWER_STRUCT;

/// Rules of appends by slots.
const Breach<A> append_breaches[] = {
    {"kv", invalid, "kv is NULL", [](A &a) { a.args.kv = nullptr; }},
    {"kv.format", invalid, "kv.format is NULL", [](A &a) { a.cache.kv.format = nullptr; }},
    {"args.reserved", invalid, "args.reserved is 7; it must be 0: it is reserved",
     [](A &a) { a.args.reserved = 7; }},
    {"source_type", invalid, "source_type is missing; it must be a sluice_dtype",
     [](A &a) { a.args.source_type = 0; }},
    {"source_type", unsupported, "source_type is f32; nearest supported: f16 or bf16",
     [](A &a) { a.args.source_type = SLUICE_F32; }},
    {"source_type", newer, "99; the last value that this version knows is SLUICE_Q4_0 (11)",
     [](A &a) { a.args.source_type = 99; }},
    {"tokens", invalid, "tokens is -1; it must not be negative", [](A &a) { a.args.tokens = -1; }},
    {"slots", invalid, "slots and starts are both NULL", [](A &a) { a.args.slots = nullptr; }},
    {"slots", invalid, "slots and starts are both given", [](A &a) { a.args.starts = at_byte<int32_t>(4); }},
    {"slots", invalid, "8 bytes", [](A &a) { a.args.slots = at_byte<int64_t>(4); }},
    {"batch", invalid, "batch is 1; it must be 0 with slots", [](A &a) { a.args.batch = 1; }},
    {"batch", invalid, "batch is -1; it must not be negative", [](A &a) { a.args.batch = -1; }},
    {"lengths", invalid, "lengths is given; it must be NULL except in calls with starts",
     [](A &a) { a.args.lengths = at_byte<int32_t>(4); }},
    {"pages.table", invalid, "pages.table is given, but starts is NULL",
     [](A &a) { a.args.pages.table = device_memory; }},
    {"pages.starts", invalid, "pages.starts is given, but starts is NULL",
     [](A &a) { a.args.pages.starts = at_byte<int32_t>(4); }},
    {"pages.stride", invalid, "pages.stride is 1; it must be 0: starts is NULL",
     [](A &a) { a.args.pages.stride = 1; }},
    {"pages.head_stride", invalid, "pages.head_stride is 1; it must be 0: starts is NULL",
     [](A &a) { a.args.pages.head_stride = 1; }},
    {"positions", invalid, "positions is given, but rotation is NULL",
     [](A &a) { a.args.positions = at_byte<int32_t>(4); }},
    {"k.data", invalid, "k.data is NULL", [](A &a) { a.args.k.data = nullptr; }},
    {"k.data", invalid, "16 bytes", [](A &a) { a.args.k.data = device_memory + 8; }},
    {"k.stride[1]", invalid, "k.stride[1] is 260; it must be a multiple of 8",
     [](A &a) { a.args.k.stride[1] = 260; }},
    {"k.stride[2]", invalid, "negative", [](A &a) { a.args.k.stride[2] = -128; }},
    {"k.stride[3]", invalid, "it must be 1", [](A &a) { a.args.k.stride[3] = 2; }},
    {"k.stride[1]", invalid, "2^63", [](A &a) { a.args.k.stride[1] = INT64_MAX / 8 * 8; }},
    {"v.data", invalid, "v.data is NULL", [](A &a) { a.args.v.data = nullptr; }},
    {"v.stride[1]", invalid, "multiple of 8", [](A &a) { a.args.v.stride[1] = 1; }},
    {"v.stride[3]", invalid, "it must be 1", [](A &a) { a.args.v.stride[3] = 0; }},
};

/// Rules of appends by a block table, with rotation.
const Breach<A> table_breaches[] = {
    {"kv.format.page_table", invalid, "kv.format.page_table is 0; it must be SLUICE_PAGE_TABLE_BLOCK",
     [](A &a) { a.cache.format.page_table = SLUICE_PAGE_TABLE_NONE; }},
    {"batch", invalid, "-1; it must not be negative", [](A &a) { a.args.batch = -1; }},
    {"starts", invalid, "4 bytes", [](A &a) { a.args.starts = at_byte<int32_t>(2); }},
    {"lengths", invalid, "lengths is NULL; it is required with starts",
     [](A &a) { a.args.lengths = nullptr; }},
    {"lengths", invalid, "4 bytes", [](A &a) { a.args.lengths = at_byte<int32_t>(2); }},
    {"pages.table", invalid, "pages.table is NULL; it is required with starts",
     [](A &a) { a.args.pages.table = nullptr; }},
    {"pages.table", invalid, "4 bytes", [](A &a) { a.args.pages.table = device_memory + 2; }},
    {"pages.table", invalid, "8 bytes", [](A &a) { a.cache.format.flags = SLUICE_KV_PAGE_INDEX_64; }},
    {"pages.stride", invalid, "pages.stride is -2; it must not be negative, except as SLUICE_SHARED (-1)",
     [](A &a) { a.args.pages.stride = -2; }},
    {"pages.stride", invalid, "or SLUICE_SHARED (-1) for one table that all sequences share",
     [](A &a) { a.args.pages.stride = 0; }},
    {"pages.head_stride", unsupported, "pages.head_stride is 9; nearest supported: 0",
     [](A &a) { a.args.pages.head_stride = 9; }},
    {"pages.starts", invalid, "given", [](A &a) { a.args.pages.starts = at_byte<int32_t>(4); }},
    {"pages.starts", invalid, "pages.starts is NULL; it is required with SLUICE_PAGE_TABLE_CSR",
     [](A &a) { a.cache.format.page_table = SLUICE_PAGE_TABLE_CSR; }},
    {"rotation.reserved", invalid, "rotation.reserved is 1; it must be 0",
     [](A &a) { a.rotation.reserved = 1; }},
    {"rotation.type", invalid, "rotation.type is missing; it must be a sluice_dtype",
     [](A &a) { a.rotation.type = 0; }},
    {"rotation.type", unsupported, "rotation.type is e4m3fnuz; nearest supported: f16, bf16 or f32",
     [](A &a) { a.rotation.type = SLUICE_E4M3FNUZ; }},
    {"rotation.type", newer, "rotation.type is 12", [](A &a) { a.rotation.type = 12; }},
    {"rotation.dim", invalid, "rotation.dim is 0; it must be at least 1", [](A &a) { a.rotation.dim = 0; }},
    {"rotation.dim", invalid, "rotation.dim is -2; it must be at least 1", [](A &a) { a.rotation.dim = -2; }},
    {"rotation.dim", invalid, "rotation.dim is 3; it must be even", [](A &a) { a.rotation.dim = 3; }},
    {"rotation.dim", invalid,
     "rotation.dim is 130; it must be even and at most kv.format.head_dim_qk, which is 128",
     [](A &a) { a.rotation.dim = 130, a.rotation.stride = 130; }},
    {"rotation.cosines", invalid, "rotation.cosines is NULL", [](A &a) { a.rotation.cosines = nullptr; }},
    {"rotation.cosines", invalid, "4 bytes", [](A &a) { a.rotation.cosines = device_memory + 2; }},
    {"rotation.stride", invalid, "rotation.stride is 63; it must be at least 64, the elements of a position",
     [](A &a) { a.rotation.stride = 63; }},
    {"rotation.stride", invalid, "rotation.stride is 31; it must be at least 32",
     [](A &a) { a.rotation.sines = device_memory, a.rotation.stride = 31; }},
    {"rotation.stride", invalid, "rotation.stride is 0", [](A &a) { a.rotation.stride = 0; }},
    {"rotation.stride", invalid, "rotation.stride is -64", [](A &a) { a.rotation.stride = -64; }},
    {"rotation.style", newer,
     "rotation.style is 2; the last value that this version knows is "
     "SLUICE_ROTARY_PAIRS (1)",
     [](A &a) { a.rotation.style = 2; }},
    {"positions", invalid, "4 bytes", [](A &a) { a.args.positions = at_byte<int32_t>(2); }},
    {"positions", invalid, "positions is NULL; a rotation needs them where rows are placed by slots",
     [](A &a) {
       a.args.slots = at_byte<int64_t>(64);
       a.args.starts = a.args.lengths = nullptr;
       a.args.pages = {};
       a.args.batch = 0;
     }},
};

/// Rules of all that an append can do.
const Breach<A> step_breaches[] = {
    {"rotation.first", invalid, "rotation.first is -8; it must be a multiple of 8",
     [](A &a) { a.rotation.first = -8; }},
    {"rotation.first", invalid, "rotation.first is 60; it must be a multiple of 8",
     [](A &a) { a.rotation.first = 60; }},
    {"rotation.first", invalid,
     "rotation.first is 72; it must be a multiple of 8 and at most kv.format.head_dim_qk - rotation.dim, "
     "which is 64",
     [](A &a) { a.rotation.first = 72; }},
    {"rotation.cosines", invalid, "2 bytes", [](A &a) { a.rotation.cosines = device_memory + 1; }},
    {"rotation.sines", invalid, "2 bytes", [](A &a) { a.rotation.sines = device_memory + 41; }},
    {"rotation.sines", invalid, "4 bytes",
     [](A &a) { a.rotation.type = SLUICE_F32, a.rotation.sines = device_memory + 42; }},
    {"rotation.dim", unsupported, "rotation.dim is 20 for a kernel append_step; nearest supported: 16",
     [](A &a) { a.rotation.dim = 20; }},
    {"rotation.dim", unsupported, "rotation.dim is 2 for a kernel append_step; nearest supported: 16",
     [](A &a) { a.rotation.dim = 2; }},
    {"q.heads", invalid, "q.heads is 0; it must be at least 1", [](A &a) { a.q.heads = 0; }},
    {"q.heads", invalid, "q.heads is -1; it must be at least 1", [](A &a) { a.q.heads = -1; }},
    {"q.heads", unsupported, "nearest supported: 16777215", [](A &a) { a.q.heads = 1 << 24; }},
    {"tokens", unsupported,
     "tokens is 1073741824, which makes 4294967296 rows of 4 heads for a kernel append_step; nearest "
     "supported: "
     "536870911",
     [](A &a) { a.args.tokens = 1 << 30; }},
    {"tail_dim", invalid, "tail_dim is -8; it must be a multiple of 8", [](A &a) { a.args.tail_dim = -8; }},
    {"tail_dim", invalid, "tail_dim is 60; it must be a multiple of 8", [](A &a) { a.args.tail_dim = 60; }},
    {"tail_dim", invalid, "less than kv.format.head_dim_qk, which is 128",
     [](A &a) { a.args.tail_dim = 128; }},
    {"kv.format.head_dim_v", unsupported,
     "kv.format.head_dim_v is 1032 for a kernel append_step; nearest supported: 1024",
     [](A &a) {
       a.cache.format.head_dim_v = 1032;
       a.args.v = sluice_packed(device_memory + 16, 2, 1032);
       a.cache.kv.v = sluice_pages_nhd(device_memory + 48, 16, 2, 1032);
     }},
    {"q.q.data", invalid, "q.q.data is NULL", [](A &a) { a.q.q.data = nullptr; }},
    {"q.q.data", invalid, "16 bytes", [](A &a) { a.q.q.data = device_memory + 8; }},
    {"q.q.stride[2]", invalid, "multiple of 8", [](A &a) { a.q.q.stride[2] = 132; }},
    {"q.q.stride[3]", invalid, "q.q.stride[3] is 2; it must be 1", [](A &a) { a.q.q.stride[3] = 2; }},
    {"q.out.data", invalid, "q.out.data is NULL", [](A &a) { a.q.out.data = nullptr; }},
    {"q.out.stride[1]", invalid, "overlap", [](A &a) { a.q.out.stride[1] = 504; }},
    {"q.out.stride[3]", invalid, "it must be 1", [](A &a) { a.q.out.stride[3] = 0; }},
    {"q.tail.data", invalid, "q.tail.data is NULL", [](A &a) { a.q.tail.stride[3] = 1; }},
    {"q.tail.stride[3]", invalid, "it must be 1", [](A &a) { a.q.tail.data = device_memory; }},
    {"k_tail.data", invalid, "k_tail.data is NULL", [](A &a) { a.args.k_tail.data = nullptr; }},
    {"k_tail.stride[1]", invalid, "multiple of 8", [](A &a) { a.args.k_tail.stride[1] = 4; }},
    {"k_tail.stride[2]", invalid, "negative", [](A &a) { a.args.k_tail.stride[2] = -64; }},
    {"k_tail", invalid, "k_tail is given; it must be all zero without tail_dim",
     [](A &a) { a.args.tail_dim = 0; }},
    {"q.tail", invalid, "q.tail is given; it must be all zero without tail_dim",
     [](A &a) { a.args.tail_dim = 0, a.args.k_tail = {}, a.q.tail = a.q.q; }},
};

/// Rules of norms.
const Breach<A> norm_breaches[] = {
    {"k_norm.reserved", invalid, "k_norm.reserved is 1; it must be 0", [](A &a) { a.k_norm.reserved = 1; }},
    {"q.norm.reserved", invalid, "q.norm.reserved is 1; it must be 0", [](A &a) { a.q_norm.reserved = 1; }},
    {"k_norm.type", invalid, "k_norm.type is missing; it must be a sluice_dtype",
     [](A &a) { a.k_norm.type = 0; }},
    {"q.norm.type", invalid, "q.norm.type is missing; it must be a sluice_dtype",
     [](A &a) { a.q_norm.type = 0; }},
    {"k_norm.type", unsupported, "k_norm.type is bf16; nearest supported: f16 or f32",
     [](A &a) { a.k_norm.type = a.q_norm.type = SLUICE_BF16; }},
    {"q.norm.type", unsupported, "q.norm.type is bf16; nearest supported: f16 or f32",
     [](A &a) { a.args.k_norm = nullptr, a.q_norm.type = SLUICE_BF16; }},
    {"k_norm.type", newer, "k_norm.type is 12", [](A &a) { a.k_norm.type = a.q_norm.type = 12; }},
    {"q.norm.type", unsupported, "q.norm.type is f16; nearest supported: that of k_norm, f32",
     [](A &a) { a.q_norm.type = SLUICE_F16; }},
    {"k_norm.weights", invalid, "k_norm.weights is NULL", [](A &a) { a.k_norm.weights = nullptr; }},
    {"q.norm.weights", invalid, "q.norm.weights is NULL", [](A &a) { a.q_norm.weights = nullptr; }},
    {"q.norm.weights", invalid, "4 bytes", [](A &a) { a.q_norm.weights = device_memory + 2; }},
    {"k_norm.weights", invalid, "4 bytes", [](A &a) { a.k_norm.weights = device_memory + 2; }},
    {"k_norm.weights", invalid, "2 bytes",
     [](A &a) {
       a.k_norm.type = a.q_norm.type = SLUICE_F16;
       a.k_norm.weights = device_memory + 1;
     }},
    {"k_norm.epsilon", invalid, "k_norm.epsilon is -1; it must be finite and not negative",
     [](A &a) { a.k_norm.epsilon = a.q_norm.epsilon = -1; }},
    {"k_norm.epsilon", invalid, "it must be finite and not negative",
     [](A &a) { a.k_norm.epsilon = a.q_norm.epsilon = INFINITY; }},
    {"k_norm.epsilon", invalid, "it must be finite and not negative", [](A &a) { a.k_norm.epsilon = NAN; }},
    {"q.norm.epsilon", invalid, "q.norm.epsilon is -1; it must be finite and not negative",
     [](A &a) { a.args.k_norm = nullptr, a.q_norm.epsilon = -1; }},
    {"q.norm.epsilon", unsupported, "q.norm.epsilon is 0.5; nearest supported: that of k_norm, 9.99",
     [](A &a) { a.q_norm.epsilon = 0.5f; }},
};

} // namespace

TEST_CASE("every append that breaks a rule is refused by name, and enqueues nothing", "[cache_ops]") {
  FakeHip hip;
  const ContextHandle context = cache_op_context();
  check_breaches(hip, context, append_breaches, good_append());
  check_breaches(hip, context, table_breaches, good_table_append());
  check_breaches(hip, context, step_breaches, good_step());
  check_breaches(hip, context, norm_breaches, good_step());
}
