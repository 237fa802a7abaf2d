//===- attention.h - Sluice on a rank's device ----------------------------------------------------------===//
#pragma once

#include "device.h"

namespace parallel {

using sluice::TensorView;

/// One kind of call: its plan, and the workspace that its runs take turns with.
class Attention {
public:
  /// For calls like this one, with at most as many rows and keys. O is BF16, or F32 with an LSE.
  Attention(const Device &device, const TensorView &q, const TensorView &k, const TensorView &v,
            const TensorView &o, bool causal);

  /// What its calls have in common.
  static sluice::Problem problem(const TensorView &q, const TensorView &k, const TensorView &v,
                                 const TensorView &o, bool causal);
  /// Enqueues a call. `lse` is empty where O is BF16.
  void run(const Stream &stream, const TensorView &q, const TensorView &k, const TensorView &v,
           const TensorView &o, const TensorView &lse) const;

private:
  sluice::Plan plan;
  Memory workspace;
};

/// Enqueues: parts [part][row][head][dim] in F32 with their LSEs become `o` and, unless it is empty, `lse`.
/// These may be memory of a part.
void merge(const Device &device, const Stream &stream, const TensorView &parts, const TensorView &lses,
           const TensorView &o, const TensorView &lse);

} // namespace parallel
