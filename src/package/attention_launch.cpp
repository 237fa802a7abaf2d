//===- attention_launch.cpp - launches of attention kernels: grid, workgroup and arguments --------------===//
#include "package/attention_launch.h"

#include "support/checked.h"
#include "support/divisor.h"

#include <cmath>
#include <numbers>

namespace sluice::package {

using support::divide_up;
using support::Divisor32;

AttentionKernargs plain_kernargs(const KernelName &kernel) {
  AttentionKernargs args{};
  args.window_left = args.window_right = kernarg_no_window;
  args.max_rows = args.q_rows = args.kv_rows = INT32_MAX;
  args.head_dim_qk = int32_t(kernel.head_dim_qk);
  args.head_dim_v = int32_t(kernel.head_dim_v);
  args.min_split_tiles = 1;
  args.lse_per_log2 = std::numbers::ln2_v<float>;
  args.k_pack_log2 = 31;
  set_group(args, 1);
  set_splits(args, 1);
  set_page_rows(args, INT32_MAX);
  args.kv_heads = args.grid_tiles = args.grid_batch = args.next_batch = kernarg_no_grid;
  return args;
}

void set_group(AttentionKernargs &args, uint32_t group) {
  const Divisor32 divisor(group);
  args.group = group;
  args.group_magic = divisor.magic;
  args.group_shift = divisor.shift;
}

void set_splits(AttentionKernargs &args, uint32_t splits) {
  const Divisor32 divisor(splits);
  args.splits = splits;
  args.splits_magic = divisor.magic;
  args.splits_shift = divisor.shift;
}

void set_page_rows(AttentionKernargs &args, uint32_t page_rows) {
  const Divisor32 divisor(page_rows);
  args.page_rows = page_rows;
  args.page_magic = divisor.magic;
  args.page_shift = divisor.shift;
}

std::array<uint32_t, 3> attention_grid(const KernelName &kernel, uint32_t batch, uint32_t q_len,
                                       uint32_t q_heads, uint32_t kv_heads, uint32_t splits) {
  const uint64_t rows = uint64_t{q_len} * (q_heads / kv_heads);
  return {kv_heads * splits, uint32_t(divide_up(rows, uint64_t{kernel.tile_q})), batch};
}

AttentionLaunch contiguous_launch(const KernelEntry &kernel, const AttentionShape &shape,
                                  const AttentionAddresses &tensors) {
  const int64_t d_qk = kernel.name.head_dim_qk, d_v = kernel.name.head_dim_v;
  const int64_t q_heads = shape.q_heads, kv_heads = shape.kv_heads;
  AttentionKernargs args = plain_kernargs(kernel.name);
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
  args.scale_log2e = float(scale * std::numbers::log2e);
  args.q_len = shape.q_len;
  args.kv_len = shape.kv_len;
  if (shape.mask != AttentionShape::none) args.window_right = 0;
  if (shape.mask == AttentionShape::top_left) args.score_flags |= score_top_left;
  set_group(args, shape.q_heads / shape.kv_heads);
  return {format_kernel_name(kernel.name),
          attention_grid(kernel.name, shape.batch, uint32_t(shape.q_len), shape.q_heads, shape.kv_heads, 1),
          {kernel.threads, 1, 1},
          args};
}

} // namespace sluice::package
