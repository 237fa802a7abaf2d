//===- program_end.h - what is found when the program ends ----------------------------------------------===//
//
// Device memory that is still allocated, and errors that nobody looked at, of a program that ends with
// success. It looks at an error by asking for the thread's last one or for the name or text of its code;
// whether it compared a call's result cannot be seen.
//
//===----------------------------------------------------------------------------------------------------===//
#pragma once

#include "emulator/hip/types.h"

namespace sluice::emulator::hip {

/// Makes the checks at the end of this process. `errors`: from now on errors are also remembered for it.
void check_at_end(bool errors);

/// A call of a HIP function, given as std::source_location names it, has returned this error.
void error_returned(const char *function, hipError_t error) noexcept;
/// The calling thread has asked for its last error.
void last_error_seen() noexcept;
/// Somebody has asked for the name or text of this error.
void error_seen(hipError_t error) noexcept;

} // namespace sluice::emulator::hip
