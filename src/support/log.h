//===- log.h - the process's log ------------------------------------------------------------------------===//
//
// Off until the caller of the library sets a function. Never called on the path of a run.
//
//===----------------------------------------------------------------------------------------------------===//
#pragma once

#include <cstdint>
#include <string>

namespace sluice::support {

/// The values are those of the C ABI's log levels.
enum class LogLevel : uint32_t { error = 1, warning = 2, info = 3, debug = 4 };

using LogFunction = void (*)(uint32_t level, const char *message, void *user);

/// After it returns, the previous function is never called again.
void set_log(LogFunction function, void *user, uint32_t max_level);

/// Whether a message of this level goes anywhere: lets a caller skip building it.
bool logs(LogLevel level);

void log(LogLevel level, const std::string &message);

} // namespace sluice::support
