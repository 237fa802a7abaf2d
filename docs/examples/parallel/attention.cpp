//===- attention.cpp - Sluice on a rank's device --------------------------------------------------------===//

#include "attention.h"

#include <algorithm>

namespace parallel {

sluice::Problem Attention::problem(const TensorView &q, const TensorView &k, const TensorView &v,
                                   const TensorView &o, bool causal) {
  sluice::Problem problem = sluice::dense_problem(q, k, v, o);
  if (causal) problem.flags |= SLUICE_CAUSAL;
  if (o.dtype == SLUICE_F32) problem.flags |= SLUICE_WRITE_LSE;
  problem.max_batch = 1;
  // A share may be empty; 0 would be no bound.
  problem.max_q_len = int32_t(std::max<int64_t>(q.extent[1], 1));
  problem.max_kv_len = int32_t(std::max<int64_t>(k.extent[1], 1));
  return problem;
}

Attention::Attention(const Device &device, const TensorView &q, const TensorView &k, const TensorView &v,
                     const TensorView &o, bool causal)
    : plan(device.context().plan(problem(q, k, v, o, causal)).value()),
      workspace(device, size_t(plan.describe().value().workspace_bytes)) {}

void Attention::run(const Stream &stream, const TensorView &q, const TensorView &k, const TensorView &v,
                    const TensorView &o, const TensorView &lse) const {
  sluice::Args args = sluice::dense_args(q, k, v, o).value();
  args.lse = lse;
  sluice::Launch launch;
  launch.stream = stream.handle();
  launch.workspace = workspace.bytes();
  launch.workspace_bytes = workspace.size_bytes();
  plan.run(args, launch).value();
}

void merge(const Device &device, const Stream &stream, const TensorView &parts, const TensorView &lses,
           const TensorView &o, const TensorView &lse) {
  sluice::Merge call;
  call.partial_type = parts.dtype;
  call.o_type = o.dtype;
  call.parts = int32_t(parts.extent[0]);
  call.tokens = int32_t(parts.extent[1]);
  call.heads = int32_t(parts.extent[2]);
  call.head_dim_v = int32_t(parts.extent[3]);
  call.partial = parts;
  call.partial_lse = lses;
  call.o = o;
  call.o.stride[0] = 0; // there is one
  call.lse = lse;
  call.lse.stride[0] = 0;
  sluice::Launch launch;
  launch.stream = stream.handle();
  device.context().merge_states(call, launch).value();
}

} // namespace parallel
