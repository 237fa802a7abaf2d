//===- attention_arguments.h - problems and calls as arguments of attention kernels ---------------------===//
#pragma once

#include "calls/args.h"
#include "calls/problem.h"
#include "package/kernargs.h"
#include "package/manifest.h"
#include "runtime/key_sets.h"
#include "runtime/splits.h"

#include <sluice/sluice.h>

namespace sluice::runtime {

/// What the launch of every attention kernel requires of its tensors.
inline constexpr uint32_t pointer_alignment = 16;    // bytes, of q, k, v and o
inline constexpr uint32_t stride_multiple = 8;       // elements, of q, k, v and o
inline constexpr uint32_t workspace_alignment = 256; // bytes

/// The arguments of a kernel that depend only on the problem, which the kernel serves.
package::AttentionKernargs problem_arguments(const package::KernelEntry &kernel,
                                             const calls::Problem &problem);

/// How the kernel divides the keys of a row.
void set_splits(package::AttentionKernargs &args, const Splits &splits);

/// Where a launch stores O and LSE.
struct Results {
  sluice_tensor o, lse;
  const float *sink_logits;                         // that join the denominator of these results
  int64_t o_split_stride = 0, lse_split_stride = 0; // of results over splits of the keys
};

/// Those of the whole call.
Results final_results(const calls::Problem &problem, const calls::Args &call);

// These fill in a launch for one level of a call whose arguments have been checked. `args` came from
// problem_arguments.
void fill_own(package::AttentionKernargs &args, const calls::Problem &problem, const calls::Args &call,
              const Level &level, const Results &results);
void fill_prefixes(package::AttentionKernargs &args, const calls::Problem &problem, const calls::Args &call,
                   const Level &level, const Results &results);

/// The rows of q, o and lse for kernels, of which the call says `tokens`; the limit of the type if neither
/// the call nor the problem knows.
int32_t known_q_rows(const calls::Problem &problem, int64_t tokens);

} // namespace sluice::runtime
