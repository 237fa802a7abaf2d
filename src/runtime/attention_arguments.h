//===- attention_arguments.h - problems and calls as arguments of attention kernels ---------------------===//
#pragma once

#include "package/kernargs.h"
#include "package/manifest.h"

#include <sluice/sluice.h>

namespace sluice::runtime {

/// What a problem alone decides of the arguments of a kernel that serves it.
package::AttentionKernargs problem_arguments(const package::KernelEntry &kernel,
                                             const sluice_problem &problem);

/// Fills in a call whose arguments have been checked. `args` came from problem_arguments.
void fill_call(package::AttentionKernargs &args, const sluice_problem &problem, const sluice_args &call);

/// `rows` as kernels take them: 0 is unknown, and sets no limit but that of the type.
int32_t rows_or_unknown(int64_t rows);

} // namespace sluice::runtime
