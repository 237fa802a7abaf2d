//===- plan.cpp - a problem with its kernel chosen and loaded -------------------------------------------===//
#include "runtime/plan.h"

#include "support/checked.h"
#include "support/failure.h"
#include "support/log.h"

#include <cmath>
#include <cstddef>
#include <numbers>
#include <utility>

namespace sluice::runtime {
namespace {

using support::divide_up;
using support::LogLevel;
using support::text;

} // namespace

uint32_t kv_head_magic(int32_t q_heads, int32_t kv_heads) {
  return divide_up(uint32_t{1} << 31, uint32_t(q_heads / kv_heads));
}

int32_t causal_shift(const sluice_problem &problem, int32_t q_len, int32_t kv_len) {
  if (!(problem.flags & SLUICE_CAUSAL)) return kv_len;
  return problem.mask_alignment == SLUICE_TOP_LEFT ? 0 : kv_len - q_len;
}

Plan::Plan(std::shared_ptr<Context> context, const sluice_problem &problem)
    : shared(std::move(context)), wanted(problem), choice(choose_kernel(*shared, problem)),
      name(package::format_kernel_name(choice.kernel->entry.name)),
      kv_head_magic(runtime::kv_head_magic(problem.q_heads, problem.kv_heads)) {
  if (shared->device().hip) function = shared->function(*choice.kernel);
  if (support::logs(LogLevel::info)) support::log(LogLevel::info, text("plan: ", name, ": ", choice.reason));
  trace(SLUICE_TRACE_PLAN, grid(problem.max_batch, problem.max_q_len));
}

Grid Plan::grid(int32_t batch, int32_t q_len) const {
  return {uint32_t(wanted.q_heads), divide_up(uint32_t(q_len), kernel().name.tile_q), uint32_t(batch)};
}

void Plan::trace(uint32_t event, const Grid &grid) const {
  if (shared->trace == nullptr) return;
  sluice_trace_record record = {};
  record.struct_size = sizeof record;
  record.event = event;
  for (size_t i = 0; i < grid.size(); ++i)
    record.grid[i] = grid[i];
  record.block[0] = kernel().threads;
  record.block[1] = record.block[2] = 1;
  record.lds_bytes = kernel().lds_bytes;
  record.waves = kernel().name.waves;
  record.workspace_bytes = workspace_bytes();
  record.kernel = name.c_str();
  record.reason = choice.reason.c_str();
  shared->trace(&record, shared->trace_user);
}

package::AttentionKernargs Plan::kernargs(const sluice_args &args) const {
  const double scale = args.scale != 0 ? double{args.scale} : 1 / std::sqrt(double(wanted.head_dim_qk));
  package::AttentionKernargs out;
  out.q = reinterpret_cast<uint64_t>(args.q.data);
  out.k = reinterpret_cast<uint64_t>(args.k.data);
  out.v = reinterpret_cast<uint64_t>(args.v.data);
  out.o = reinterpret_cast<uint64_t>(args.o.data);
  out.lse = reinterpret_cast<uint64_t>(args.lse.data);
  out.q_batch_stride = args.q.stride[0];
  out.q_token_stride = args.q.stride[1];
  out.q_head_stride = args.q.stride[2];
  out.k_batch_stride = args.k.stride[0];
  out.k_token_stride = args.k.stride[1];
  out.k_head_stride = args.k.stride[2];
  out.v_batch_stride = args.v.stride[0];
  out.v_token_stride = args.v.stride[1];
  out.v_head_stride = args.v.stride[2];
  out.o_batch_stride = args.o.stride[0];
  out.o_token_stride = args.o.stride[1];
  out.o_head_stride = args.o.stride[2];
  out.lse_batch_stride = args.lse.stride[0];
  out.lse_token_stride = args.lse.stride[1];
  out.lse_head_stride = args.lse.stride[2];
  out.scale_log2e = float(scale * std::numbers::log2e);
  out.scale = float(scale);
  out.q_len = args.q_len;
  out.kv_len = args.kv_len;
  out.causal_shift = causal_shift(wanted, args.q_len, args.kv_len);
  out.kv_head_magic = kv_head_magic;
  return out;
}

void Plan::run(const sluice_args &args, const sluice_launch &launch) const {
  const HipTable &hip = *shared->device().hip;
  const Grid groups = grid(args.batch, args.q_len);
  package::AttentionKernargs packed = kernargs(args);
  wait_for_dependencies(hip, launch);
  trace(SLUICE_TRACE_RUN, groups);
  enqueue(hip, {function, groups, kernel().threads, &packed, sizeof packed}, launch);
}

} // namespace sluice::runtime
