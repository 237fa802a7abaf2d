//===- attention.cpp - Sluice on a rank's device --------------------------------------------------------===//

#include "attention.h"

#include <algorithm>

namespace parallel {

Problem::Problem(const TensorView &q, const TensorView &k, const TensorView &v, const TensorView &o,
                 bool causal)
    : format(sluice_kv_tensors(k.dtype, int32_t(k.extent[2]), int32_t(k.extent[3]))),
      mask(sluice_causal_mask()), attention(sluice_make_attention(q.dtype, int32_t(q.extent[2]), &format)) {
  format.head_dim_v = int32_t(v.extent[3]);
  attention.o.type = o.dtype;
  if (causal) attention.mask = &mask;
  if (o.dtype == SLUICE_F32) attention.lse = SLUICE_LSE_LN;
  // A share may be empty; 0 would be no bound.
  attention.bounds = sluice_make_bounds(1, int32_t(std::max<int64_t>(q.extent[1], 1)),
                                        int32_t(std::max<int64_t>(k.extent[1], 1)));
}

Call::Call(const Problem &problem, const TensorView &q, const TensorView &k, const TensorView &v,
           const TensorView &o, const TensorView &lse)
    : lse(lse), kv(sluice_make_kv(&problem.format, k, v)),
      keys(sluice_keys_of_equal(&kv, int32_t(k.extent[1]))),
      args(sluice_make_call(int32_t(q.extent[0]), int32_t(q.extent[1]), q, o, &keys)) {
  if (lse.data) args.lse = &this->lse;
}

Attention::Attention(const Device &device, const TensorView &q, const TensorView &k, const TensorView &v,
                     const TensorView &o, bool causal)
    : problem(q, k, v, o, causal), plan(device.context().plan(problem.attention).value()),
      workspace(device, size_t(plan.describe().value().workspace_bytes)) {}

void Attention::run(const Stream &stream, const TensorView &q, const TensorView &k, const TensorView &v,
                    const TensorView &o, const TensorView &lse) const {
  sluice::Launch launch;
  launch.stream = stream.handle();
  launch.workspace = workspace.bytes();
  launch.workspace_bytes = workspace.size_bytes();
  plan.run(Call(problem, q, k, v, o, lse).args, launch).value();
}

void merge(const Device &device, const Stream &stream, const TensorView &parts, const TensorView &lses,
           const TensorView &o, const TensorView &lse) {
  sluice::Sized<sluice_merge_args> call;
  call.tokens = int32_t(parts.extent[1]);
  call.heads = int32_t(parts.extent[2]);
  call.head_dim = int32_t(parts.extent[3]);
  call.lse_base = SLUICE_LSE_LN;
  call.parts.type = parts.dtype;
  call.parts.count = int32_t(parts.extent[0]);
  call.parts.o = parts;
  call.parts.lse = lses;
  call.o_format.type = o.dtype;
  call.o = o;
  call.lse = lse;
  sluice::Launch launch;
  launch.stream = stream.handle();
  device.context().merge(call, launch).value();
}

} // namespace parallel
