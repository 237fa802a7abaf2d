//===- page_copies_test.cpp - copies of pages and gathers: rules, arguments of the kernels, launches ----===//
#include "cache_op_fixture.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>

using namespace sluice::test;

extern "C" const char *fake_roctx_take(void);

using sluice::package::CopyKernargs;
using sluice::package::PageSource;

namespace {

constexpr sluice_status invalid = SLUICE_INVALID_ARGUMENT, unsupported = SLUICE_UNSUPPORTED;

/// 3 pairs of pages of 16 rows, 2 heads of 128 and 64.
sluice_page_copy good_page_copy() {
  sluice_page_copy copy;
  sluice_page_copy_init(&copy, sizeof copy);
  copy.source_type = copy.target_type = SLUICE_F16;
  copy.kv_heads = 2;
  copy.head_dim_qk = 128;
  copy.head_dim_v = 64;
  copy.page_size = 16;
  copy.k_source = {device_memory, {16 * 256, 256, 128, 1}};
  copy.v_source = {device_memory + 16, {16 * 128, 128, 64, 1}};
  copy.k_target = {device_memory + 32, {16 * 256 + 8, 128, 16 * 128, 1}};
  copy.v_target = {device_memory + 48, {16 * 128 + 8, 64, 16 * 64, 1}};
  copy.pairs = device_memory + 4;
  copy.pair_count = 3;
  copy.page_count = 9;
  return copy;
}

/// 2 sequences in 7 rows.
sluice_gather good_gather() {
  sluice_gather gather;
  sluice_gather_init(&gather, sizeof gather);
  gather.cache_type = gather.out_type = SLUICE_F16;
  gather.kv_heads = 2;
  gather.head_dim_qk = 128;
  gather.head_dim_v = 64;
  gather.page_size = 16;
  gather.page_table_kind = SLUICE_PAGE_TABLE_BLOCK;
  gather.batch = 2;
  gather.tokens = 7;
  gather.k_cache = {device_memory, {16 * 256, 256, 128, 1}};
  gather.v_cache = {device_memory + 16, {16 * 128, 128, 64, 1}};
  gather.k_out = {device_memory + 32, {0, 264, 128, 1}};
  gather.v_out = {device_memory + 48, {0, 136, 64, 1}};
  gather.out_starts = reinterpret_cast<const int32_t *>(device_memory + 4);
  gather.kv_lengths = reinterpret_cast<const int32_t *>(device_memory + 8);
  gather.page_table = device_memory + 12;
  gather.page_table_stride = 5;
  gather.page_count = 9;
  return gather;
}

const float *scale() {
  return reinterpret_cast<const float *>(device_memory + 64);
}
template <typename Call> void drop_v(Call &call, sluice_tensor &v, sluice_tensor &other_v) {
  call.flags |= SLUICE_V_IN_K;
  call.head_dim_v = 0;
  v = other_v = {};
}
sluice_page_copy good_fp8_copy() {
  sluice_page_copy copy = good_page_copy();
  copy.target_type = SLUICE_E4M3FNUZ;
  copy.k_scale_kind = SLUICE_SCALE_PER_HEAD;
  copy.v_scale_kind = SLUICE_SCALE_PER_TENSOR;
  copy.k_scale = copy.v_scale = scale();
  return copy;
}

/// Pages of U4 in groups of 32, with zero points, and other strides of the target's arrays.
sluice_page_copy good_u4_copy() {
  sluice_page_copy copy = good_page_copy();
  copy.flags = SLUICE_ZERO_POINTS;
  copy.source_type = copy.target_type = SLUICE_U4;
  copy.k_target.stride[0] = 16 * 256 + 32;
  copy.v_target.stride[0] = 16 * 128 + 32;
  copy.k_scale_kind = copy.v_scale_kind = SLUICE_SCALE_PER_GROUP;
  copy.scale_group = 32;
  copy.k_scales = copy.k_zeros = {device_memory + 2, {16 * 8, 8, 4, 1}};
  copy.v_scales = copy.v_zeros = {device_memory + 4, {16 * 4, 4, 2, 1}};
  copy.k_target_scales = copy.k_target_zeros = {device_memory + 6, {16 * 10, 10, 5, 1}};
  copy.v_target_scales = copy.v_target_zeros = {device_memory + 8, {16 * 4, 4, 2, 1}};
  return copy;
}
/// Keys of I8 with scales per token and values with scales per page, to F16.
sluice_gather good_i8_gather() {
  sluice_gather gather = good_gather();
  gather.cache_type = SLUICE_I8;
  gather.k_scale_kind = SLUICE_SCALE_PER_TOKEN;
  gather.v_scale_kind = SLUICE_SCALE_PER_PAGE;
  gather.k_scales = {device_memory + 4, {40, 2, 1, 0}};
  gather.v_scales = {device_memory + 8, {3, 77, 1, 0}};
  return gather;
}

template <typename Call> struct Breach {
  const char *field;
  sluice_status status;
  const char *message_part;
  void (*breaks)(Call &);
};

using C = sluice_page_copy;
const Breach<C> page_copy_breaches[] = {
    {"flags", SLUICE_NEWER_STRUCT, "unknown bits", [](C &c) { c.flags = 1u << 31; }},
    {"flags", invalid, "a copy of pages has", [](C &c) { c.flags = SLUICE_CAUSAL; }},
    {"source_type", invalid, "missing", [](C &c) { c.source_type = 0; }},
    {"target_type", invalid, "missing", [](C &c) { c.target_type = 0; }},
    {"source_type", SLUICE_NEWER_STRUCT,
     "source_type is 99; the last value that this version knows is SLUICE_Q4_0 (11)",
     [](C &c) { c.source_type = 99; }},
    {"target_type", unsupported, "target_type is i8 and source_type f16; nearest supported: f16",
     [](C &c) { c.target_type = SLUICE_I8; }},
    {"reserved", SLUICE_NEWER_STRUCT, "reserved is 1", [](C &c) { c.reserved = 1; }},
    {"flags", invalid, "flags has SLUICE_ZERO_POINTS, but source_type is not u4",
     [](C &c) { c.flags = SLUICE_ZERO_POINTS; }},
    {"scale_group", invalid, "it must be 0 without scales per group", [](C &c) { c.scale_group = 32; }},
    {"k_scales", invalid, "without a scale kind of", [](C &c) { c.k_scales.data = device_memory; }},
    {"v_target_scales", invalid, "without a scale kind of",
     [](C &c) { c.v_target_scales.data = device_memory; }},
    {"k_zeros", invalid, "SLUICE_ZERO_POINTS", [](C &c) { c.k_zeros.data = device_memory; }},
    {"target_type", unsupported, "target_type is bf16 and source_type f16; nearest supported: f16",
     [](C &c) { c.target_type = SLUICE_BF16; }},
    {"target_type", unsupported, "e5m2",
     [](C &c) {
       c.source_type = SLUICE_E4M3FNUZ;
       c.target_type = SLUICE_E5M2;
     }},
    {"kv_heads", invalid, "at least 1", [](C &c) { c.kv_heads = 0; }},
    {"kv_heads", unsupported, "16777215", [](C &c) { c.kv_heads = 1 << 24; }},
    {"head_dim_qk", invalid, "multiple of 8", [](C &c) { c.head_dim_qk = 12; }},
    {"head_dim_v", invalid, "at least 1", [](C &c) { c.head_dim_v = 0; }},
    {"head_dim_v", invalid, "SLUICE_V_IN_K", [](C &c) { c.flags = SLUICE_V_IN_K; }},
    {"page_size", invalid, "at least 1", [](C &c) { c.page_size = -16; }},
    {"source_k_pack", invalid, "divide head_dim_qk", [](C &c) { c.source_k_pack = 3; }},
    {"target_k_pack", invalid, "divide head_dim_qk", [](C &c) { c.target_k_pack = -8; }},
    {"target_k_pack", unsupported, "multiples of 8", [](C &c) { c.target_k_pack = 4; }},
    {"k_scale_kind", invalid, "between equal types", [](C &c) { c.k_scale_kind = SLUICE_SCALE_PER_HEAD; }},
    {"v_scale_kind", unsupported, "SLUICE_SCALE_PER_HEAD",
     [](C &c) { c.v_scale_kind = SLUICE_SCALE_PER_TOKEN; }},
    {"v_scale", invalid, "given", [](C &c) { c.v_scale = scale(); }},
    {"pairs", invalid, "4 bytes", [](C &c) { c.pairs = device_memory + 2; }},
    {"pairs", invalid, "8 bytes", [](C &c) { c.flags = SLUICE_PAGE_INDEX_64; }},
    {"flags", invalid, "pairs is NULL",
     [](C &c) {
       c.flags = SLUICE_PAGE_INDEX_64;
       c.pairs = nullptr;
     }},
    {"pair_count", invalid, "-1; it must be at least 0", [](C &c) { c.pair_count = -1; }},
    {"pair_count", unsupported, "2147483647", [](C &c) { c.pair_count = int64_t{1} << 31; }},
    {"pair_count", invalid, "without pairs", [](C &c) { c.pairs = nullptr; }},
    {"page_count", invalid, "at least 0", [](C &c) { c.page_count = -1; }},
    {"page_count", invalid, "at least 1",
     [](C &c) {
       c.pairs = nullptr;
       c.pair_count = c.page_count = 0;
     }},
    {"page_count", unsupported, "2147483647",
     [](C &c) {
       c.pairs = nullptr;
       c.pair_count = 0;
       c.page_count = int64_t{1} << 31;
     }},
    {"k_source.data", invalid, "NULL", [](C &c) { c.k_source.data = nullptr; }},
    {"k_target.data", invalid, "16 bytes", [](C &c) { c.k_target.data = device_memory + 8; }},
    {"v_source.stride[2]", invalid, "multiple of 8", [](C &c) { c.v_source.stride[2] = 68; }},
    {"v_target.stride[1]", invalid, "overlap", [](C &c) { c.v_target.stride[1] = 0; }},
    {"k_source.stride[3]", invalid, "it must be 1", [](C &c) { c.k_source.stride[3] = 8; }},
    {"k_target.stride[0]", invalid, "negative", [](C &c) { c.k_target.stride[0] = -4096; }},
    {"k_source.stride[3]", invalid, "multiple of source_k_pack",
     [](C &c) {
       c.source_k_pack = 16;
       c.k_source.stride[3] = 8;
     }},
    {"k_target.stride", invalid, "address space", [](C &c) { c.k_target.stride[0] = int64_t{1} << 59; }},
    {"v_source", invalid, "all zero",
     [](C &c) {
       c.flags = SLUICE_V_IN_K;
       c.head_dim_v = 0;
     }},
    {"v_target", invalid, "all zero",
     [](C &c) {
       c.flags = SLUICE_V_IN_K;
       c.head_dim_v = 0;
       c.v_source = {};
     }},
    {"target_type", unsupported, "no kernel", // the pack of these tests lacks it
     [](C &c) {
       c.source_type = SLUICE_BF16;
       c.target_type = SLUICE_E4M3FNUZ;
     }},
};
const Breach<C> fp8_breaches[] = {
    {"k_scale", invalid, "NULL", [](C &c) { c.k_scale = nullptr; }},
    {"v_scale", invalid, "4 bytes",
     [](C &c) { c.v_scale = reinterpret_cast<const float *>(device_memory + 2); }},
    {"v_scale_kind", invalid, "without V", [](C &c) { drop_v(c, c.v_source, c.v_target); }},
};

const Breach<C> u4_breaches[] = {
    {"scale_group", invalid, "it must be 32 or 64", [](C &c) { c.scale_group = 16; }},
    {"head_dim_v", invalid, "head_dim_v is 72; it must be a multiple of 32 for u4",
     [](C &c) { c.head_dim_v = 72; }},
    {"source_k_pack", invalid, "it must be 0 for u4", [](C &c) { c.source_k_pack = 32; }},
    {"target_k_pack", invalid, "it must be 0 for u4", [](C &c) { c.target_k_pack = 32; }},
    {"k_scale_kind", invalid, "it must be SLUICE_SCALE_PER_GROUP (5) for u4",
     [](C &c) { c.k_scale_kind = SLUICE_SCALE_PER_TOKEN; }},
    {"k_source.stride[1]", invalid, "multiple of 32", [](C &c) { c.k_source.stride[1] = 264; }},
    {"k_target.stride[1]", invalid, "overlap", [](C &c) { c.k_target.stride[1] = 96; }},
    {"k_scales.data", invalid, "NULL", [](C &c) { c.k_scales.data = nullptr; }},
    {"v_scales.stride[3]", invalid, "it must be 1", [](C &c) { c.v_scales.stride[3] = 0; }},
    {"k_target_scales.data", invalid, "2 bytes", [](C &c) { c.k_target_scales.data = device_memory + 1; }},
    {"k_target_scales.stride[2]", invalid, "overlap", [](C &c) { c.k_target_scales.stride[2] = 3; }},
    {"k_zeros.stride[1]", invalid, "that of the scales, which is 8", [](C &c) { c.k_zeros.stride[1] = 9; }},
    {"v_target_zeros.data", invalid, "NULL", [](C &c) { c.v_target_zeros.data = nullptr; }},
    {"v_target_zeros", invalid, "SLUICE_ZERO_POINTS",
     [](C &c) {
       c.flags = 0;
       c.k_zeros = c.v_zeros = c.k_target_zeros = {};
     }},
    {"k_target_scales", invalid, "between types that differ", [](C &c) { c.target_type = SLUICE_F16; }},
    {"target_type", unsupported, "target_type is q8_0 and source_type u4; nearest supported: u4",
     [](C &c) { c.target_type = SLUICE_Q8_0; }},
};

using G = sluice_gather;
const Breach<G> i8_breaches[] = {
    {"k_scales.data", invalid, "NULL", [](G &g) { g.k_scales.data = nullptr; }},
    {"k_scale", invalid, "given", [](G &g) { g.k_scale = scale(); }},
    {"k_scale_kind", unsupported, "SLUICE_SCALE_PER_PAGE (4)",
     [](G &g) { g.k_scale_kind = SLUICE_SCALE_PER_GROUP; }},
    {"k_out_scales", invalid, "between types that differ",
     [](G &g) { g.k_out_scales = {device_memory, {0, 2, 1, 0}}; }},
    {"k_out_scales.data", invalid, "NULL", [](G &g) { g.out_type = SLUICE_I8; }},
};
const Breach<G> gather_breaches[] = {
    {"flags", SLUICE_NEWER_STRUCT, "unknown bits", [](G &g) { g.flags = 1u << 31; }},
    {"flags", invalid, "a gather has", [](G &g) { g.flags = SLUICE_WRITE_LSE; }},
    {"cache_type", invalid, "missing", [](G &g) { g.cache_type = 0; }},
    {"out_type", unsupported, "nearest supported: f16", [](G &g) { g.out_type = SLUICE_F32; }},
    {"kv_heads", invalid, "at least 1", [](G &g) { g.kv_heads = -1; }},
    {"batch", invalid, "-1; it must not be negative", [](G &g) { g.batch = -1; }},
    {"tokens", invalid, "-1; it must not be negative", [](G &g) { g.tokens = -1; }},
    {"k_pack", invalid, "divide head_dim_qk", [](G &g) { g.k_pack = 24; }},
    {"k_scale_kind", invalid, "between equal types", [](G &g) { g.k_scale_kind = SLUICE_SCALE_PER_TENSOR; }},
    {"page_table_kind", invalid, "SLUICE_PAGE_TABLE_BLOCK", [](G &g) { g.page_table_kind = 0; }},
    {"page_table_kind", SLUICE_NEWER_STRUCT, "SLUICE_PAGE_TABLE_CSR", [](G &g) { g.page_table_kind = 3; }},
    {"out_starts", invalid, "NULL", [](G &g) { g.out_starts = nullptr; }},
    {"kv_lengths", invalid, "NULL", [](G &g) { g.kv_lengths = nullptr; }},
    {"first_keys", invalid, "4 bytes",
     [](G &g) { g.first_keys = reinterpret_cast<const int32_t *>(device_memory + 1); }},
    {"page_table", invalid, "NULL", [](G &g) { g.page_table = nullptr; }},
    {"page_table", invalid, "8 bytes", [](G &g) { g.flags = SLUICE_PAGE_INDEX_64; }},
    {"page_starts", invalid, "given", [](G &g) { g.page_starts = g.kv_lengths; }},
    {"page_starts", invalid, "NULL",
     [](G &g) {
       g.page_table_kind = SLUICE_PAGE_TABLE_CSR;
       g.page_table_stride = 0;
     }},
    {"page_table_stride", invalid, "at least 0", [](G &g) { g.page_table_stride = -1; }},
    {"page_table_stride", invalid, "it must be 0",
     [](G &g) {
       g.page_table_kind = SLUICE_PAGE_TABLE_CSR;
       g.page_starts = g.kv_lengths;
     }},
    {"page_count", invalid, "at least 0", [](G &g) { g.page_count = -2; }},
    {"k_cache.data", invalid, "16 bytes", [](G &g) { g.k_cache.data = device_memory + 4; }},
    {"k_out.stride[2]", invalid, "overlap", [](G &g) { g.k_out.stride[1] = 128; }},
    {"v_out.stride[3]", invalid, "it must be 1", [](G &g) { g.v_out.stride[3] = 0; }},
    {"v_cache.stride[1]", invalid, "multiple of 8", [](G &g) { g.v_cache.stride[1] = 132; }},
    {"v_out", invalid, "all zero",
     [](G &g) {
       g.flags = SLUICE_V_IN_K;
       g.head_dim_v = 0;
       g.v_cache = {};
     }},
};

/// Workgroups and arguments of the last launch.
struct Launched {
  std::array<unsigned, 3> grid = {};
  std::vector<std::byte> arguments;
} last;

using LaunchKernel = int (*)(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                             void *, void **, void **);
int launch_kernel(void *function, unsigned x, unsigned y, unsigned z, unsigned block_x, unsigned block_y,
                  unsigned block_z, unsigned lds, void *stream, void **parameters, void **extra) {
  const auto *bytes = static_cast<const std::byte *>(extra[1]);
  last = {{x, y, z}, {bytes, bytes + *static_cast<size_t *>(extra[3])}};
  return reinterpret_cast<LaunchKernel>(FakeHip::resolve("hipModuleLaunchKernel", nullptr))(
      function, x, y, z, block_x, block_y, block_z, lds, stream, parameters, extra);
}
void *resolve(const char *name, void *user) {
  if (std::string(name) == "hipModuleLaunchKernel") return reinterpret_cast<void *>(&launch_kernel);
  return FakeHip::resolve(name, user);
}

/// With the kernels for every call in this file, but one.
class Device {
public:
  FakeHip hip;
  std::vector<std::byte> pack = [] {
    sluice::package::PackWriter writer("test", "22.1.8");
    add_fake_kernel(writer, cache_op_entry("kv_copy", "e4m3fnuz", "bf16"));
    add_fake_kernel(writer, cache_op_entry("kv_copy", "e4m3fnuz", "e4m3fnuz"));
    add_fake_kernel(writer, cache_op_entry("kv_copy", "f16", "e4m3fnuz"));
    add_fake_kernel(writer, cache_op_entry("kv_copy", "f16", "f16"));
    add_fake_kernel(writer, cache_op_entry("kv_copy", "q8_0", "q8_0"));
    for (const char *from : {"i8", "u4", "q4_0"})
      add_fake_kernel(writer, cache_op_entry("kv_copy", from, "f16"));
    return writer.finish();
  }();
  ContextHandle context = [this] {
    sluice_context_desc desc = context_desc(SLUICE_DEVICE_HIP, pack);
    desc.hip_resolver = resolve;
    return make_context(desc);
  }();

  sluice_status run(const sluice_page_copy &call, sluice_error *error) {
    return sluice_kv_copy(context.get(), &call, nullptr, error);
  }
  sluice_status run(const sluice_gather &call, sluice_error *error) {
    return sluice_kv_gather(context.get(), &call, nullptr, error);
  }
  template <typename Call> CopyKernargs arguments(const Call &call) {
    Error error;
    const sluice_status status = run(call, &error);
    INFO(error.field << ": " << error.message);
    REQUIRE(status == SLUICE_OK);
    REQUIRE(last.arguments.size() == sizeof(CopyKernargs));
    CopyKernargs out;
    std::memcpy(&out, last.arguments.data(), sizeof out);
    return out;
  }
  /// The kernel that a call takes.
  template <typename Call> std::string kernel(const Call &call) {
    static std::string name;
    REQUIRE(sluice_set_trace(
                context.get(), [](const sluice_trace_record *record, void *) { name = record->kernel; },
                nullptr, nullptr) == SLUICE_OK);
    arguments(call);
    return name;
  }

  template <typename Call, size_t count>
  void check_breaches(const Breach<Call> (&breaches)[count], const Call &good) {
    hip.forget_calls();
    for (const Breach<Call> &breach : breaches) {
      INFO(breach.field << ": " << breach.message_part);
      Call call = good;
      breach.breaks(call);
      Error error;
      check_refusal(run(call, &error), error, breach.status, breach.field, breach.message_part);
    }
    CHECK(hip.call_count == 0);
  }
};

uint64_t address_of(const void *pointer) {
  return reinterpret_cast<uint64_t>(pointer);
}
/// The kernel's form of the numbers: support/divisor.h.
uint32_t divided(uint32_t value, uint32_t magic, uint32_t shift) {
  return uint32_t(uint64_t{2 * value} * magic >> 32) >> shift;
}

} // namespace

TEST_CASE("every copy of pages and every gather that breaks a rule is refused by name", "[copies]") {
  Device device;
  device.check_breaches(page_copy_breaches, good_page_copy());
  device.check_breaches(fp8_breaches, good_fp8_copy());
  device.check_breaches(u4_breaches, good_u4_copy());
  device.check_breaches(gather_breaches, good_gather());
  device.check_breaches(i8_breaches, good_i8_gather());
}

TEST_CASE("null arguments, and targets, are refused", "[copies]") {
  const ContextHandle context = target_context();
  const sluice_page_copy copy = good_page_copy();
  const sluice_gather gather = good_gather();
  Error error;
  check_refusal(sluice_kv_copy(nullptr, &copy, nullptr, &error), error, invalid, "context", "NULL");
  check_refusal(sluice_kv_copy(context.get(), nullptr, nullptr, &error), error, invalid, "copy", "NULL");
  check_refusal(sluice_kv_gather(nullptr, &gather, nullptr, &error), error, invalid, "context", "NULL");
  check_refusal(sluice_kv_gather(context.get(), nullptr, nullptr, &error), error, invalid, "gather", "NULL");
  check_refusal(sluice_reference_copy(nullptr, &error), error, invalid, "copy", "NULL");
  check_refusal(sluice_reference_gather(nullptr, &error), error, invalid, "gather", "NULL");
  sluice::package::PackWriter writer("test", "22.1.8");
  add_fake_kernel(writer, cache_op_entry("kv_copy", "f16", "f16"));
  const std::vector<std::byte> pack = writer.finish();
  const ContextHandle target = make_context(context_desc(SLUICE_DEVICE_TARGET, pack));
  check_refusal(sluice_kv_copy(target.get(), &copy, nullptr, &error), error, SLUICE_NO_DEVICE, "context",
                "gfx942");
  check_refusal(sluice_kv_gather(target.get(), &gather, nullptr, &error), error, SLUICE_NO_DEVICE, "context",
                "gfx942");
}

TEST_CASE("a copy of pages: each member reaches its own argument", "[copies]") {
  Device device;
  sluice_page_copy call = good_page_copy();
  CopyKernargs out = device.arguments(call);
  CHECK(out.k_source == address_of(call.k_source.data));
  CHECK(out.k_target == address_of(call.k_target.data));
  CHECK(out.v_source == address_of(call.v_source.data));
  CHECK(out.v_target == address_of(call.v_target.data));
  CHECK(out.k_source_page_stride == 16 * 256);
  CHECK(out.k_source_row_stride == 256);
  CHECK(out.k_source_head_stride == 128);
  CHECK(out.k_target_page_stride == 16 * 256 + 8);
  CHECK(out.k_target_row_stride == 128);
  CHECK(out.k_target_head_stride == 16 * 128);
  CHECK(out.v_source_page_stride == 16 * 128);
  CHECK(out.v_target_head_stride == 16 * 64);
  CHECK(out.k_scale == 0);
  CHECK(out.k_chunks == 32);
  CHECK(out.k_head_chunks == 16);
  CHECK(out.k_source_pack_chunks == 16);
  CHECK(out.v_chunks == 16);
  CHECK(divided(31, out.k_head_magic, out.k_head_shift) == 1);
  CHECK(out.pairs == address_of(call.pairs));
  CHECK(out.rows == 3 * 16);
  CHECK(out.page_count == 9);
  CHECK(out.page_size == 16);
  CHECK(out.page_shift == 4);
  CHECK(out.page_source == uint32_t(PageSource::pairs));
  CHECK(out.page_index_64 == 0);
  CHECK(out.lanes_log2 == 5); // 8 rows in each of 6 workgroups
  CHECK(last.grid == std::array<unsigned, 3>{6, 1, 2});
  CHECK(out.row_step == 48);

  call.flags = SLUICE_PAGE_INDEX_64;
  call.pairs = device_memory + 8;
  call.page_count = 0;
  out = device.arguments(call);
  CHECK(out.page_index_64 == 1);
  CHECK(out.page_count == uint64_t{1} << 63); // every number but a negative one
  call = good_page_copy();
  call.pairs = nullptr;
  call.pair_count = 0;
  out = device.arguments(call);
  CHECK(out.page_source == uint32_t(PageSource::same_page));
  CHECK(out.rows == 9 * 16);

  // More rows than 32 bits, 304 compute units with 16 workgroups each, for K and for V.
  call.page_count = int32_t{1} << 30;
  out = device.arguments(call);
  CHECK(out.rows == uint64_t{1} << 34);
  CHECK(last.grid == std::array<unsigned, 3>{304 * 8, 1, 2});
  CHECK(out.row_step == 304 * 8 * 8);

  call = good_page_copy();
  drop_v(call, call.v_source, call.v_target);
  CHECK(device.arguments(call).v_source == 0);
  CHECK(last.grid == std::array<unsigned, 3>{6, 1, 1});

  call = good_fp8_copy();
  out = device.arguments(call);
  CHECK(out.k_scale == address_of(call.k_scale));
  CHECK(out.k_scale_head_stride == 1);
  CHECK(out.v_scale_head_stride == 0);
}

TEST_CASE("equal types are copied by the kernel for as many bits", "[copies]") {
  Device device;
  sluice_page_copy call = good_page_copy();
  const std::string wide = "kv_copy_f16_f16", narrow = "kv_copy_e4m3fnuz_e4m3fnuz";
  call.source_type = call.target_type = SLUICE_BF16;
  CHECK(device.kernel(call) == wide);
  // F32 is twice as many elements of 16 bits, in all lengths.
  call.source_type = call.target_type = SLUICE_F32;
  call.target_k_pack = 8;
  call.k_target.stride[0] = 16 * 256;
  call.k_target.stride[1] = 8;
  call.k_target.stride[3] = 16 * 8;
  CHECK(device.kernel(call) == wide);
  CopyKernargs out = device.arguments(call);
  CHECK(out.k_chunks == 64);
  CHECK(out.k_head_chunks == 32);
  CHECK(out.k_source_pack_chunks == 32);
  CHECK(out.k_target_pack_chunks == 2);
  CHECK(out.k_source_page_stride == 2 * 16 * 256);
  CHECK(out.k_target_row_stride == 16);
  CHECK(out.k_target_pack_stride == 2 * 16 * 8);
  CHECK(out.v_target_page_stride == 2 * (16 * 128 + 8));
  // Bytes are half as many, if all lengths are multiples of 16.
  call = good_page_copy();
  call.k_target.stride[0] = 16 * 256;
  call.v_target.stride[0] = 16 * 128;
  for (const uint32_t type : {SLUICE_E4M3FNUZ, SLUICE_E4M3FN, SLUICE_E5M2FNUZ, SLUICE_E5M2}) {
    call.source_type = call.target_type = type;
    CHECK(device.kernel(call) == wide);
  }
  out = device.arguments(call);
  CHECK(out.k_chunks == 16);
  CHECK(out.v_source_row_stride == 64);
  CHECK(out.k_target_page_stride == 8 * 256);
  call.v_target.stride[0] += 8;
  CHECK(device.kernel(call) == narrow);
  CHECK(device.arguments(call).k_chunks == 32);
  call.v_target.stride[0] -= 8;
  call.source_k_pack = 8;
  call.k_source.stride[1] = 16;
  call.k_source.stride[3] = 16 * 16;
  CHECK(device.kernel(call) == narrow);
}

TEST_CASE("a gather: each member reaches its own argument", "[copies]") {
  Device device;
  sluice_gather call = good_gather();
  CopyKernargs out = device.arguments(call);
  CHECK(out.k_source == address_of(call.k_cache.data));
  CHECK(out.k_target == address_of(call.k_out.data));
  CHECK(out.v_source == address_of(call.v_cache.data));
  CHECK(out.v_target == address_of(call.v_out.data));
  CHECK(out.k_target_page_stride == 0);
  CHECK(out.k_target_row_stride == 264);
  CHECK(out.starts == address_of(call.out_starts));
  CHECK(out.kv_lengths == address_of(call.kv_lengths));
  CHECK(out.first_keys == 0);
  CHECK(out.page_table == address_of(call.page_table));
  CHECK(out.page_table_stride == 5);
  CHECK(out.page_table_entries == 5);
  CHECK(out.page_count == 9);
  CHECK(out.page_source == uint32_t(PageSource::block_table));
  CHECK(out.rows == 7);
  CHECK(out.batch == 2);
  CHECK(out.search_steps == 2);
  CHECK(out.pairs == 0);
  call.batch = 1;
  CHECK(device.arguments(call).page_table_entries == std::numeric_limits<int64_t>::max());
  call = good_gather();
  call.page_table_kind = SLUICE_PAGE_TABLE_CSR;
  call.page_table_stride = 0;
  call.page_starts = reinterpret_cast<const int32_t *>(device_memory + 20);
  call.first_keys = reinterpret_cast<const int32_t *>(device_memory + 24);
  call.cache_type = SLUICE_E4M3FNUZ;
  call.out_type = SLUICE_BF16;
  call.k_scale_kind = SLUICE_SCALE_PER_TENSOR;
  call.k_scale = scale();
  drop_v(call, call.v_cache, call.v_out);
  CHECK(device.kernel(call) == "kv_copy_e4m3fnuz_bf16");
  out = device.arguments(call);
  CHECK(out.page_starts == address_of(call.page_starts));
  CHECK(out.first_keys == address_of(call.first_keys));
  CHECK(out.page_source == uint32_t(PageSource::csr_table));
  CHECK(out.k_scale == address_of(call.k_scale));
  CHECK(last.grid[2] == 1);
}

TEST_CASE("blocks and arrays are copied in pieces, in a launch for each kind of array", "[copies]") {
  Device device;
  static std::vector<std::string> seen;
  static std::vector<std::array<unsigned, 3>> grids;
  REQUIRE(sluice_set_trace(
              device.context.get(),
              [](const sluice_trace_record *record, void *) {
                seen.emplace_back(record->kernel);
                grids.push_back({record->grid[0], record->grid[1], record->grid[2]});
              },
              nullptr, nullptr) == SLUICE_OK);
  const auto launches = [&](const auto &call) {
    seen.clear();
    grids.clear();
    return device.arguments(call);
  };
  const std::string pieces = "kv_copy_q8_0_q8_0";
  sluice_page_copy u4 = good_u4_copy();
  CopyKernargs out = launches(u4);
  CHECK(seen == std::vector(3, pieces));
  // Zero points: rows of 4 and of 2 numbers of F16; V's heads follow one another, K's do not in the target.
  CHECK(out.k_source == address_of(u4.k_zeros.data));
  CHECK(out.v_target == address_of(u4.v_target_zeros.data));
  CHECK(out.k_piece_bytes == 8);
  CHECK(out.k_chunks == 2);
  CHECK(out.k_head_chunks == 1);
  CHECK(out.k_source_head_stride == 8);
  CHECK(out.k_target_page_stride == 320);
  CHECK(out.k_target_row_stride == 20);
  CHECK(out.k_target_head_stride == 10);
  CHECK(out.v_piece_bytes == 8);
  CHECK(out.v_chunks == 1);
  CHECK(out.rows == 3 * 16);
  CHECK(out.pairs == address_of(u4.pairs));
  // Numbers only.
  sluice_page_copy q8 = good_page_copy();
  q8.source_type = q8.target_type = SLUICE_Q8_0;
  q8.k_target.stride[0] = 16 * 256 + 32;
  q8.v_target = {device_memory + 48, {16 * 128, 128, 64, 1}};
  out = launches(q8);
  CHECK(seen == std::vector(1, pieces));
  CHECK(out.k_piece_bytes == 8); // of 136
  CHECK(out.k_chunks == 2 * 17);
  CHECK(out.k_head_chunks == 17);
  CHECK(out.k_source_row_stride == 272);
  CHECK(out.v_piece_bytes == 8); // of two heads of 68 bytes
  CHECK(out.v_chunks == 17);
  CHECK(out.v_head_chunks == 17);
  // FP8 with scales: K's per page, of which there is one for each head, V's per token.
  sluice_page_copy fp8 = good_page_copy();
  fp8.source_type = fp8.target_type = SLUICE_E4M3FNUZ;
  fp8.k_scale_kind = SLUICE_SCALE_PER_PAGE;
  fp8.k_scales = fp8.k_target_scales = {device_memory, {2, 55, 1, 0}};
  fp8.v_scale_kind = SLUICE_SCALE_PER_TOKEN;
  fp8.v_scales = fp8.v_target_scales = {device_memory, {32, 2, 1, 0}};
  out = launches(fp8);
  CHECK(seen == std::vector<std::string>{"kv_copy_e4m3fnuz_e4m3fnuz", pieces, pieces});
  CHECK(out.k_source == address_of(fp8.v_scales.data));
  CHECK(out.rows == 3 * 16);
  CHECK(out.k_piece_bytes == 8);
  CHECK(grids.back()[2] == 1);
  fp8.v_scale_kind = SLUICE_SCALE_NONE;
  fp8.v_scales = fp8.v_target_scales = {};
  out = launches(fp8);
  CHECK(out.rows == 3);
  CHECK(out.page_size == 1);
  CHECK(out.k_source_page_stride == 8);

  // Conversions read the arrays, in one launch.
  u4.target_type = SLUICE_F16;
  u4.k_target_scales = u4.v_target_scales = u4.k_target_zeros = u4.v_target_zeros = {};
  out = launches(u4);
  CHECK(seen == std::vector<std::string>{"kv_copy_u4_f16"});
  CHECK(out.k_source_row_stride == 128);
  CHECK(out.k_target_row_stride == 128);
  CHECK(out.k_chunks == 32);
  CHECK(out.k_scale == address_of(u4.k_scales.data));
  CHECK(out.k_zeros == address_of(u4.k_zeros.data));
  CHECK(out.k_scale_page_stride == 128);
  CHECK(out.k_scale_row_stride == 8);
  CHECK(out.v_scale_head_stride == 2);
  CHECK(out.k_group_chunks_log2 == 2);
  u4.scale_group = 64;
  CHECK(launches(u4).v_group_chunks_log2 == 3);
  const sluice_gather i8 = good_i8_gather();
  out = launches(i8);
  CHECK(seen == std::vector<std::string>{"kv_copy_i8_f16"});
  CHECK(out.k_scale_row_stride == 2);
  CHECK(out.v_scale_page_stride == 3);
  CHECK(out.v_scale_row_stride == 0);
  CHECK(out.k_zeros == 0);
}

TEST_CASE("copies and gathers are in ranges of roctx", "[copies]") {
  Device device;
  REQUIRE(sluice_set_ranges(device.context.get(), 1, nullptr) == SLUICE_OK);
  fake_roctx_take();
  device.arguments(good_page_copy());
  device.arguments(good_gather());
  CHECK(std::string(fake_roctx_take()) ==
        "(kv_copy_f16_f16 pages3 of16 h2 d128/64)(kv_copy_f16_f16 gather b2 t7 h2 d128/64)");
}

TEST_CASE("the reference of a copy refuses pages that do not exist, and skips negative ones", "[copies]") {
  sluice_page_copy copy = good_page_copy();
  copy.kv_heads = 1;
  copy.head_dim_qk = 8;
  copy.page_size = 1;
  drop_v(copy, copy.v_source, copy.v_target);
  alignas(16) uint16_t cache[24], target[24];
  for (uint16_t i = 0; i < 24; ++i)
    cache[i] = i, target[i] = 1000;
  copy.k_source = {cache, {8, 8, 8, 1}};
  copy.k_target = {target, {8, 8, 8, 1}};
  copy.page_count = 3;
  int32_t pairs[] = {0, 2, -1, 1, 2, 3};
  copy.pairs = pairs;
  Error error;
  check_refusal(sluice_reference_copy(&copy, &error), error, invalid, "pairs[5]",
                "pairs[5] is 3; it must be less than page_count, which is 3");
  CHECK(target[16] == 1000);
  pairs[5] = 0;
  CHECK(sluice_reference_copy(&copy, &error) == SLUICE_OK);
  for (uint16_t i = 0; i < 8; ++i) {
    CHECK(target[i] == 16 + i);
    CHECK(target[8 + i] == 1000);
    CHECK(target[16 + i] == i);
  }
}

TEST_CASE("the reference of a gather refuses what a device would leave out or read as zeros", "[copies]") {
  sluice_gather gather = good_gather();
  gather.kv_heads = 1;
  gather.head_dim_qk = 8;
  gather.page_size = 2;
  drop_v(gather, gather.v_cache, gather.v_out);
  alignas(16) uint16_t cache[48], out[40];
  for (uint16_t i = 0; i < 48; ++i)
    cache[i] = i;
  std::fill(std::begin(out), std::end(out), uint16_t{1000});
  gather.k_cache = {cache, {16, 8, 8, 1}};
  gather.k_out = {out, {0, 8, 8, 1}};
  gather.tokens = 5;
  gather.page_count = 3;
  gather.page_table_stride = 2;
  int32_t starts[] = {1, 3, 5}, lengths[] = {3, 1}, first[] = {1, 0}, table[] = {2, 0, 1, 77};
  gather.out_starts = starts;
  gather.kv_lengths = lengths;
  gather.first_keys = first;
  gather.page_table = table;
  Error error;
  const auto refused = [&](int32_t &value, int32_t wrong, const char *field, const char *part) {
    const int32_t right = value;
    value = wrong;
    check_refusal(sluice_reference_gather(&gather, &error), error, invalid, field, part);
    value = right;
    CHECK(out[8] == 1000);
  };
  refused(starts[0], -1, "out_starts[0]", "negative");
  refused(starts[2], 6, "out_starts[2]", "at most tokens, which is 5");
  refused(lengths[1], -1, "kv_lengths[1]", "negative");
  refused(first[1], -1, "first_keys[1]", "negative");
  refused(first[0], 0, "kv_lengths[0]", "2 rows for the keys from 0 on");
  refused(lengths[0], 5, "kv_lengths[0]", "2 rows");
  refused(table[0], 3, "page_table[0]", "less than page_count");
  refused(table[1], -1, "page_table[1]", "negative");
  first[0] = 3, lengths[0] = 5;
  check_refusal(sluice_reference_gather(&gather, &error), error, invalid, "kv_lengths[0]",
                "3 pages of 2, and a row of the page table has 2 entries");
  first[0] = 1, lengths[0] = 3;
  CHECK(sluice_reference_gather(&gather, &error) == SLUICE_OK);
  for (uint16_t i = 0; i < 8; ++i) {
    CHECK(out[i] == 1000);
    CHECK(out[8 + i] == 2 * 16 + 8 + i); // key 1, in page 2
    CHECK(out[16 + i] == i);             // key 2, in page 0
    CHECK(out[24 + i] == 16 + i);
    CHECK(out[32 + i] == 1000);
  }
}
