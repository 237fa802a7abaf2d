//===- attention_launch.cpp - one launch of an attention kernel on contiguous tensors -------------------===//
#include "package/attention_launch.h"

#include <cmath>
#include <numbers>

namespace sluice::package {

AttentionLaunch contiguous_launch(const KernelEntry &kernel, const AttentionShape &shape,
                                  const AttentionAddresses &tensors) {
  const int64_t d_qk = kernel.name.head_dim_qk, d_v = kernel.name.head_dim_v;
  const int64_t q_heads = shape.q_heads, kv_heads = shape.kv_heads;
  AttentionKernargs args{};
  args.q = tensors.q, args.k = tensors.k, args.v = tensors.v, args.o = tensors.o, args.lse = tensors.lse;
  args.q_head_stride = args.k_head_stride = d_qk;
  args.v_head_stride = args.o_head_stride = d_v;
  args.q_token_stride = q_heads * d_qk;
  args.k_token_stride = kv_heads * d_qk;
  args.v_token_stride = kv_heads * d_v;
  args.o_token_stride = q_heads * d_v;
  args.q_batch_stride = args.q_token_stride * shape.q_len;
  args.k_batch_stride = args.k_token_stride * shape.kv_len;
  args.v_batch_stride = args.v_token_stride * shape.kv_len;
  args.o_batch_stride = args.o_token_stride * shape.q_len;
  args.lse_token_stride = 1;
  args.lse_head_stride = shape.q_len;
  args.lse_batch_stride = args.lse_head_stride * q_heads;
  const double scale = 1 / std::sqrt(double(d_qk));
  args.scale = float(scale);
  args.scale_log2e = float(scale * std::numbers::log2e);
  args.q_len = shape.q_len;
  args.kv_len = shape.kv_len;
  args.causal_shift = shape.causal_shift;
  const uint32_t group = shape.q_heads / shape.kv_heads;
  args.kv_head_magic = ((1u << 31) + group - 1) / group;

  const uint32_t tiles = (uint32_t(shape.q_len) + kernel.name.tile_q - 1) / kernel.name.tile_q;
  return {format_kernel_name(kernel.name), {shape.q_heads, tiles, shape.batch}, {kernel.threads, 1, 1}, args};
}

} // namespace sluice::package
