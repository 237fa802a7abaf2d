//===- executor.h - executors, which run cases ----------------------------------------------------------===//
//
// An executor runs a case through the C ABI only: "emulated" and "hip:N" run its kernel, memory and all
// through the HIP runtime of the context; "reference" calls sluice_attention_reference, so that the same
// suite judges the library's own yardstick. A case that the library's kernels cannot compute is refused; one
// that sluice_attention_reference cannot compute is an error.
//
//===----------------------------------------------------------------------------------------------------===//
#pragma once

#include "conformance/attention/compare.h"
#include "conformance/cache_ops/append_case.h"
#include "conformance/cache_ops/merge_case.h"
#include "conformance/cache_ops/page_copy_case.h"
#include "conformance/run/report.h"
#include "conformance/shared/failure.h"
#include "conformance/shared/target.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>

namespace sluice::conformance {

/// The executor is not available on this machine; the message says why.
class NotHere : public std::runtime_error {
public:
  using std::runtime_error::runtime_error;
};

/// An unknown name or setting.
class UsageError : public std::runtime_error {
public:
  using std::runtime_error::runtime_error;
};

/// The device is in a state in which running further cases is meaningless.
class DeviceLost : public std::runtime_error {
public:
  using std::runtime_error::runtime_error;
};

class Executor {
public:
  virtual ~Executor() = default;
  virtual Judge judge() const = 0;
  /// Fills in the properties of the device.
  virtual void describe(About &about) const = 0;
  /// Runs the case, or only one of its sequences, on `memory` and copies every buffer back into it. Returns
  /// the kernel that ran.
  virtual std::string run(const Case &c, Memory &memory, std::optional<int> only = {}) = 0;
  /// The same for a cache operation, if the executor has it.
  virtual std::string append(const AppendCase &c, const AppendInputs &inputs, AppendMemory &memory);
  virtual std::string copy_pages(const PageCopyCase &c, const PageCopyInputs &inputs, PageCopyMemory &memory);
  virtual std::string merge(const MergeCase &c, MergeMemory &memory);
  /// Kernels that no run has used.
  virtual std::vector<std::string> unused_kernels() const { return {}; }
  /// A closing line; throws if the executor has not done its work.
  virtual std::string summary() const = 0;
};

/// Keys and values of sluice_emulator_configure.
using EmulatorSettings = std::vector<std::pair<std::string, std::string>>;

/// `name` as above. Throws NotHere or UsageError.
std::unique_ptr<Executor> make_executor(const std::string &name, const EmulatorSettings &settings,
                                        const Pack &pack);

} // namespace sluice::conformance
