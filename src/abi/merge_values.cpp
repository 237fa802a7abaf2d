//===- merge_values.cpp - the values of merge.h as a flat struct ----------------------------------------===//
#include "abi/cache_values.h"

#include "abi/kv_values.h"
#include "abi/sized.h"

namespace sluice::abi {
namespace {

using support::text;

constexpr std::string_view reserved = "it is reserved";

uint32_t flat_lse_base(uint32_t lse) {
  if (lse == SLUICE_LSE_NONE)
    invalid("lse_base",
            "lse_base is SLUICE_LSE_NONE (0); it must be SLUICE_LSE_LN (1) or SLUICE_LSE_LOG2 (2)");
  check_known("lse_base", lse, SLUICE_LSE_LOG2, "SLUICE_LSE_LOG2 (2)");
  return lse == SLUICE_LSE_LOG2 ? SLUICE_LSE_BASE_2 : SLUICE_LSE_BASE_E;
}

void add_parts(sluice_merge &out, const sluice_parts &parts) {
  out.partial_type = parts.type;
  out.parts = parts.count;
  out.partial = parts.o;
  out.partial_lse = parts.lse;
  out.partial_list = parts.o_list;
  out.partial_lse_list = parts.lse_list;
  out.partial_lse_sequence_stride = parts.lse_sequence_stride;
}

} // namespace

void flat_merge(const sluice_merge_args *given, sluice_merge &out) {
  sluice_merge_args copy;
  const sluice_merge_args &args = view(given, "args", copy);
  check_zero_member("args", ".reserved", args.reserved, reserved);
  check_plain_format("o_format", args.o_format);
  out.struct_size = sizeof out;
  out.flags = args.flags;
  out.o_type = args.o_format.type;
  out.o_scale_kind = args.o_format.scale_kind;
  out.tokens = args.tokens;
  out.heads = args.heads;
  out.head_dim_v = args.head_dim;
  out.lse_base = flat_lse_base(args.lse_base);
  add_parts(out, args.parts);
  out.o = args.o;
  out.lse = args.lse;
  out.sink_logits = args.sinks;
  out.lse_sequence_stride = args.lse_sequence_stride;
  out.sequence_tokens = args.sequence_tokens;
  out.o_scale = args.o_scale;
}

} // namespace sluice::abi
