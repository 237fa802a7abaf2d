//===- merge_refusals_test.cpp - merges that break a rule -----------------------------------------------===//
#include "cache_op_fixture.h"

#include <limits>

using namespace sluice::test;

namespace {

using M = sluice_merge_args;
constexpr sluice_status invalid = SLUICE_INVALID_ARGUMENT, unsupported = SLUICE_UNSUPPORTED,
                        newer = SLUICE_NEWER_STRUCT;

const void *const listed[16] = {device_memory, device_memory + 32, device_memory + 16};
const void *const with_gap[3] = {device_memory, nullptr, device_memory + 16};
const void *const unaligned[3] = {device_memory, device_memory + 32, device_memory + 2};

const Breach<M> merge_breaches[] = {
    {"flags", newer, "flags has unknown bits 0x2", [](M &m) { m.flags = 3; }},
    {"args.reserved", invalid, "args.reserved is 1; it must be 0: it is reserved",
     [](M &m) { m.reserved = 1; }},
    {"tokens", invalid, "tokens is -1; it must not be negative", [](M &m) { m.tokens = -1; }},
    {"tokens", unsupported, "1073741823", [](M &m) { m.tokens = 1 << 30; }},
    {"heads", invalid, "heads is 0; it must be at least 1", [](M &m) { m.heads = 0; }},
    {"head_dim", invalid, "head_dim is 0; it must be at least 1", [](M &m) { m.head_dim = 0; }},
    {"head_dim", invalid, "head_dim is 12; it must be a multiple of 8", [](M &m) { m.head_dim = 12; }},
    {"lse_base", invalid,
     "lse_base is SLUICE_LSE_NONE (0); it must be SLUICE_LSE_LN (1) or SLUICE_LSE_LOG2 (2)",
     [](M &m) { m.lse_base = SLUICE_LSE_NONE; }},
    {"lse_base", newer, "lse_base is 3; the last value that this version knows is SLUICE_LSE_LOG2 (2)",
     [](M &m) { m.lse_base = 3; }},
    {"o.data", invalid, "o.data is NULL", [](M &m) { m.o.data = nullptr; }},
    {"o.stride[1]", invalid, "multiple of 8", [](M &m) { m.o.stride[1] = 129; }},
    {"o.stride[2]", invalid, "overlap", [](M &m) { m.o.stride[2] = 0; }},
    {"o.stride[3]", invalid, "it must be 1", [](M &m) { m.o.stride[3] = 2; }},
    {"lse.data", invalid, "4 bytes", [](M &m) { m.lse.data = device_memory + 1; }},
    {"lse.stride[1]", invalid, "overlap", [](M &m) { m.lse.stride[1] = 0; }},
    {"lse.stride[2]", invalid, "lse.data is NULL", [](M &m) { m.lse.data = nullptr, m.lse.stride[1] = 0; }},
    {"sinks", invalid, "4 bytes", [](M &m) { m.sinks = at_byte<float>(2); }},
};

/// Rules of the types, and of the scale of the result.
const Breach<M> type_breaches[] = {
    {"parts.type", invalid, "parts.type is missing", [](M &m) { m.parts.type = 0; }},
    {"parts.type", unsupported, "parts.type is e4m3fnuz; nearest supported: bf16",
     [](M &m) { m.parts.type = SLUICE_E4M3FNUZ; }},
    {"parts.type", newer, "parts.type is 99", [](M &m) { m.parts.type = 99; }},
    {"o_format.type", invalid, "o_format.type is missing", [](M &m) { m.o_format.type = 0; }},
    {"o_format.type", newer, "o_format.type is 99", [](M &m) { m.o_format.type = 99; }},
    {"o_format.type", unsupported, "o_format.type is e5m2fnuz; nearest supported: e4m3fnuz",
     [](M &m) { m.o_format.type = SLUICE_E5M2FNUZ; }},
    {"o_format.type", unsupported, "o_format.type is e4m3fnuz and parts.type f16; nearest supported: f16",
     [](M &m) { m.parts.type = SLUICE_F16, m.o_format.type = SLUICE_E4M3FNUZ; }},
    {"o_format.type", unsupported, "nearest supported: f16",
     [](M &m) { m.parts.type = SLUICE_F16, m.o_format.type = SLUICE_BF16; }},
    {"o_format.type", unsupported,
     "o_format.type is f32: the kernel pack has no kernel for gfx942 from f32 to f32; nearest supported: f16",
     [](M &m) { m.o_format.type = SLUICE_F32; }},
    {"o_format.scale_group", invalid, "o_format.scale_group is 32; it must be 0: only K and V have groups",
     [](M &m) { m.o_format.scale_group = 32; }},
    {"o_format.zero_points", invalid,
     "o_format.zero_points is 1; it must be 0: only K and V have zero points",
     [](M &m) { m.o_format.zero_points = 1; }},
    {"o_format.pack", invalid, "o_format.pack is 8; it must be 0: only K and V have packs",
     [](M &m) { m.o_format.pack = 8; }},
    {"o_format.reserved", invalid, "o_format.reserved is 1; it must be 0",
     [](M &m) { m.o_format.reserved = 1; }},
    {"o_format.scale_kind", invalid,
     "o_format.scale_kind is 1; it must be SLUICE_SCALE_NONE (0) unless o_format.type is e4m3fnuz",
     [](M &m) { m.o_format.scale_kind = SLUICE_SCALE_PER_TENSOR; }},
    {"o_format.scale_kind", newer, "o_format.scale_kind is 6", [](M &m) { m.o_format.scale_kind = 6; }},
    {"o_format.scale_kind", unsupported,
     "o_format.scale_kind is 3; nearest supported: SLUICE_SCALE_PER_HEAD (2)",
     [](M &m) { m.o_format.type = SLUICE_E4M3FNUZ, m.o_format.scale_kind = SLUICE_SCALE_PER_TOKEN; }},
    {"o_scale", invalid, "o_scale is NULL",
     [](M &m) { m.o_format.type = SLUICE_E4M3FNUZ, m.o_format.scale_kind = SLUICE_SCALE_PER_HEAD; }},
    {"o_scale", invalid, "o_scale is given",
     [](M &m) { m.o_format.type = SLUICE_E4M3FNUZ, m.o_scale = at_byte<float>(4); }},
    {"o_scale", invalid, "4 bytes",
     [](M &m) {
       m.o_format.type = SLUICE_E4M3FNUZ;
       m.o_format.scale_kind = SLUICE_SCALE_PER_TENSOR;
       m.o_scale = at_byte<float>(2);
     }},
};

/// Rules of the parts.
const Breach<M> part_breaches[] = {
    {"parts.count", invalid, "parts.count is 0; it must be at least 1", [](M &m) { m.parts.count = 0; }},
    {"parts.count", unsupported, "parts.count is 65537; nearest supported: 65536",
     [](M &m) { m.parts.count = 65537; }},
    {"parts.o.data", invalid, "parts.o.data is NULL", [](M &m) { m.parts.o.data = nullptr; }},
    {"parts.o.data", invalid, "16 bytes", [](M &m) { m.parts.o.data = device_memory + 4; }},
    {"parts.o.stride[0]", invalid, "multiple of 8", [](M &m) { m.parts.o.stride[0] = 644; }},
    {"parts.o.stride[1]", invalid, "negative", [](M &m) { m.parts.o.stride[1] = -128; }},
    {"parts.o.stride[3]", invalid, "it must be 1", [](M &m) { m.parts.o.stride[3] = 0; }},
    {"parts.lse.data", invalid, "parts.lse.data is NULL", [](M &m) { m.parts.lse.data = nullptr; }},
    {"parts.lse.data", invalid, "4 bytes", [](M &m) { m.parts.lse.data = device_memory + 2; }},
    {"parts.lse.stride[2]", invalid, "negative", [](M &m) { m.parts.lse.stride[2] = -1; }},
    {"parts.o.stride", invalid, "parts.o would reach beyond the address space",
     [](M &m) { m.parts.o.stride[0] = std::numeric_limits<int64_t>::min() / 4; }},
    {"parts.lse.stride", invalid, "parts.lse would reach beyond the address space",
     [](M &m) { m.parts.lse.stride[0] = std::numeric_limits<int64_t>::min(); }},
    {"parts.lse_list", invalid,
     "parts.lse_list is NULL; parts.o_list and parts.lse_list are both given or both NULL",
     [](M &m) { list_parts(m, listed, nullptr); }},
    {"parts.o_list", invalid, "parts.o_list is NULL", [](M &m) { list_parts(m, nullptr, listed); }},
    {"parts.count", unsupported, "parts.count is 17 with parts.o_list; nearest supported: 16",
     [](M &m) { list_parts(m, listed, listed), m.parts.count = 17; }},
    {"parts.o.data", invalid, "parts.o.data is given; it must be NULL",
     [](M &m) { list_parts(m, listed, listed), m.parts.o.data = device_memory; }},
    {"parts.lse.data", invalid, "parts.lse.data is given; it must be NULL",
     [](M &m) { list_parts(m, listed, listed), m.parts.lse.data = device_memory; }},
    {"parts.o.stride[0]", invalid, "parts.o.stride[0] is 640; it must be 0",
     [](M &m) { list_parts(m, listed, listed), m.parts.o.stride[0] = 640; }},
    {"parts.lse.stride[0]", invalid, "parts.lse.stride[0] is 10; it must be 0",
     [](M &m) { list_parts(m, listed, listed), m.parts.lse.stride[0] = 10; }},
    {"parts.o_list[1]", invalid, "parts.o_list[1] is NULL", [](M &m) { list_parts(m, with_gap, listed); }},
    {"parts.lse_list[1]", invalid, "parts.lse_list[1] is NULL",
     [](M &m) { list_parts(m, listed, with_gap); }},
    {"parts.o_list[2]", invalid, "16 bytes", [](M &m) { list_parts(m, unaligned, listed); }},
    {"parts.lse_list[2]", invalid, "4 bytes", [](M &m) { list_parts(m, listed, unaligned); }},
};

/// Rules of LSEs by sequences.
const Breach<M> sequence_breaches[] = {
    {"sequence_tokens", invalid, "sequence_tokens is -1", [](M &m) { m.sequence_tokens = -1; }},
    {"sequence_tokens", invalid, "sequence_tokens is 4; it must divide tokens, which is 6",
     [](M &m) { m.sequence_tokens = 4; }},
    {"parts.lse_sequence_stride", invalid,
     "parts.lse_sequence_stride is 4; it must be 0 without sequence_tokens",
     [](M &m) { m.sequence_tokens = 0; }},
    {"lse_sequence_stride", invalid, "lse_sequence_stride is 4; it must be 0 without sequence_tokens",
     [](M &m) { m.sequence_tokens = 0, m.parts.lse_sequence_stride = 0; }},
    {"parts.lse_sequence_stride", invalid, "negative", [](M &m) { m.parts.lse_sequence_stride = -4; }},
    {"lse_sequence_stride", invalid, "negative", [](M &m) { m.lse_sequence_stride = -4; }},
    {"lse_sequence_stride", invalid, "overlap", [](M &m) { m.lse_sequence_stride = 3; }},
    {"lse_sequence_stride", invalid, "beyond the address space",
     [](M &m) { m.lse_sequence_stride = std::numeric_limits<int64_t>::max(); }},
    {"parts.lse_sequence_stride", invalid, "beyond the address space",
     [](M &m) { m.parts.lse_sequence_stride = std::numeric_limits<int64_t>::max(); }},
    {"lse_sequence_stride", invalid, "it must be 0 where lse.data is NULL", [](M &m) { m.lse = {}; }},
};

} // namespace

TEST_CASE("every merge that breaks a rule is refused by name, and enqueues nothing", "[cache_ops]") {
  FakeHip hip;
  const ContextHandle context = cache_op_context();
  sluice_merge_args sequences = good_merge();
  part_sequences(sequences);
  check_breaches(hip, context, merge_breaches, good_merge());
  check_breaches(hip, context, type_breaches, good_merge());
  check_breaches(hip, context, part_breaches, good_merge());
  check_breaches(hip, context, sequence_breaches, sequences);
}
