//===- executor.h - what runs a case --------------------------------------------------------------------===//
//
// An executor takes a case through the C ABI and nothing else: "emulated" and "hip:N" run its kernel, memory
// and all through the HIP runtime of the context; "reference" calls sluice_reference, so that the library's
// own yardstick is judged by the same suite. What the library's kernels cannot do is refused, what
// sluice_reference cannot do is an error.
//
//===----------------------------------------------------------------------------------------------------===//
#pragma once

#include "append_case.h"
#include "failure.h"
#include "kernels.h"
#include "merge_case.h"
#include "report.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>

namespace sluice::test {

/// The executor is not to be had on this machine; the message says why.
class NotHere : public std::runtime_error {
public:
  using std::runtime_error::runtime_error;
};

/// A name or a setting that is none.
class UsageError : public std::runtime_error {
public:
  using std::runtime_error::runtime_error;
};

/// The device is in a state that makes running further cases meaningless.
class DeviceLost : public std::runtime_error {
public:
  using std::runtime_error::runtime_error;
};

class Executor {
public:
  virtual ~Executor() = default;
  virtual Judge judge() const = 0;
  /// Fills in what it knows of the device.
  virtual void describe(About &about) const = 0;
  /// Runs the case, or one of its sequences alone, on `memory` and brings every buffer back into it. Returns
  /// what ran.
  virtual std::string run(const Case &c, Memory &memory, std::optional<int> only = {}) = 0;
  /// Run an append or a merge likewise; what runs no kernels has none.
  virtual std::string append(const AppendCase &c, const AppendInputs &inputs, AppendMemory &memory);
  virtual std::string merge(const MergeCase &c, MergeMemory &memory);
  /// Kernels that no run has used.
  virtual std::vector<std::string> unused_kernels() const { return {}; }
  /// A closing line; throws if the executor finds that it has not done its work.
  virtual std::string summary() const = 0;
};

/// Keys and values of sluice_emulator_configure.
using EmulatorSettings = std::vector<std::pair<std::string, std::string>>;

/// `name` as above. Throws NotHere or UsageError.
std::unique_ptr<Executor> make_executor(const std::string &name, const EmulatorSettings &settings,
                                        const Pack &pack);

} // namespace sluice::test
