//===- attention_arguments.h - problems and calls as arguments of attention kernels ---------------------===//
#pragma once

#include "package/kernargs.h"
#include "package/manifest.h"

#include <sluice/sluice.h>

namespace sluice::runtime {

/// The arguments of a kernel that depend only on the problem, which the kernel serves.
package::AttentionKernargs problem_arguments(const package::KernelEntry &kernel,
                                             const sluice_problem &problem);

/// Fills in a call whose arguments have been checked. `args` came from problem_arguments.
void fill_call(package::AttentionKernargs &args, const sluice_problem &problem, const sluice_args &call);

/// `rows` for kernels: 0 is unknown, and becomes the limit of the type.
int32_t rows_or_unknown(int64_t rows);

} // namespace sluice::runtime
