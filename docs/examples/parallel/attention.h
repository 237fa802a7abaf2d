//===- attention.h - Sluice on a rank's device ----------------------------------------------------------===//
#pragma once

#include "device.h"
#include "tensor.h"

namespace parallel {

/// What calls like this one have in common, with at most as many rows and keys. O is BF16, or F32 with an
/// LSE. Its structs point to one another.
struct Problem {
  Problem(const TensorView &q, const TensorView &k, const TensorView &v, const TensorView &o, bool causal);
  Problem(const Problem &) = delete;
  Problem &operator=(const Problem &) = delete;

  sluice_kv_format format;
  sluice_mask mask;
  sluice_attention attention;
};

/// A call. `lse` is empty where O is BF16.
struct Call {
  Call(const Problem &problem, const TensorView &q, const TensorView &k, const TensorView &v,
       const TensorView &o, const TensorView &lse);
  Call(const Call &) = delete;
  Call &operator=(const Call &) = delete;

  sluice_tensor lse;
  sluice_kv kv;
  sluice_keys keys;
  sluice_attention_args args;
};

/// One kind of call: its plan, and the workspace that its runs take turns with.
class Attention {
public:
  Attention(const Device &device, const TensorView &q, const TensorView &k, const TensorView &v,
            const TensorView &o, bool causal);

  /// Enqueues a call. `lse` is empty where O is BF16.
  void run(const Stream &stream, const TensorView &q, const TensorView &k, const TensorView &v,
           const TensorView &o, const TensorView &lse) const;

private:
  Problem problem;
  sluice::Plan plan;
  Memory workspace;
};

/// Enqueues: parts [part][row][head][dim] in F32 with their LSEs become `o` and, unless it is empty, `lse`.
/// These may be memory of a part.
void merge(const Device &device, const Stream &stream, const TensorView &parts, const TensorView &lses,
           const TensorView &o, const TensorView &lse);

} // namespace parallel
