//===- options.h - what the command line asks for -------------------------------------------------------===//
#pragma once

#include "exchange.h"

namespace parallel {

/// The error of the last rank, to see what the others do.
enum class Failure { none, shape, error, fault, exit, throws };

struct Options {
  int64_t prefill = 0, decode = 0, heads = 4, kv_heads = 4, dim = 64;
  sluice_device_kind device = SLUICE_DEVICE_EMULATED;
  std::optional<Buffers> buffers;
  bool against_reference = false;
  bool hold_runs = false;
  Failure fail = Failure::none;
};

extern const char *const usage;

/// Throws std::runtime_error with the option, its value and what it may be.
Options parse(int count, char **arguments);

} // namespace parallel
