//===- program_end.cpp - what is found when the program ends --------------------------------------------===//
#include "emulator/hip/program_end.h"

#include <atomic>
#include <cstdlib>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <tuple>

#include <unistd.h>

#include "emulator/hip/device.h"
#include "emulator/hip/error.h"
#include "emulator/hip/functions.h"

namespace sluice::emulator::hip {

namespace {

/// Errors that nobody has looked at yet, with how often each was returned.
class UnseenErrors {
public:
  using Key = std::tuple<std::thread::id, std::string_view, hipError_t>; // thread, function, error
  static UnseenErrors &get() {
    static auto *const instance = new UnseenErrors;
    return *instance;
  }
  void add(std::string_view function, hipError_t error) {
    const std::lock_guard lock(mutex);
    ++unseen[{std::this_thread::get_id(), function, error}];
  }
  template <typename Chosen> void forget(Chosen &&chosen) {
    const std::lock_guard lock(mutex);
    std::erase_if(unseen, [&](const auto &entry) { return chosen(entry.first); });
  }
  std::map<Key, uint64_t> all() {
    const std::lock_guard lock(mutex);
    return unseen;
  }

private:
  std::mutex mutex;
  std::map<Key, uint64_t> unseen;
};

std::atomic<bool> remembers_errors = false;
std::atomic<pid_t> checked_process = 0; // a fork must not report what its parent will

/// "hipMalloc" of "hipError_t sluice::emulator::hip::hipMalloc(void**, size_t)".
std::string_view plain_name(std::string_view function) {
  function = function.substr(0, function.find('('));
  const size_t qualified = function.rfind(':');
  return qualified == std::string_view::npos ? function : function.substr(qualified + 1);
}

void report_leaks(const Checks &warnings) {
  struct Left {
    uint64_t blocks = 0;
    uint64_t bytes = 0;
    MemoryBlock largest{};
  };
  std::map<uint8_t, Left> by_device;
  for (const MemoryBlock &block : Device::get().memory().snapshot()->blocks()) {
    if (block.freed || block.attached || block.device == MemoryBlock::host) continue;
    Left &left = by_device[block.device];
    ++left.blocks;
    left.bytes += block.bytes;
    if (block.bytes > left.largest.bytes) left.largest = block;
  }
  for (const auto &[device, left] : by_device)
    Device::get().add_host_finding(warnings, ReportKind::memory_leak, "device " + std::to_string(device),
                                   std::to_string(left.bytes) + " bytes in " + std::to_string(left.blocks) +
                                       (left.blocks == 1 ? " block are" : " blocks are") +
                                       " never freed; the largest block has " +
                                       std::to_string(left.largest.bytes) + " bytes",
                                   left.largest.address);
}

void report_unseen_errors(const Checks &warnings) {
  for (const auto &[key, count] : UnseenErrors::get().all()) {
    const auto &[thread, function, error] = key;
    Device::get().add_host_finding(warnings, ReportKind::error_ignored, std::string(function),
                                   std::string("returned ") + hipGetErrorName(error) +
                                       ", and the program never asked for the error",
                                   0, count);
  }
}

void at_end(int status, void *) {
  if (status != 0 || is_orphaned() || getpid() != checked_process || !may_throw()) return;
  try {
    const Options options = Device::get().options();
    if (options.checks.leaks) report_leaks(options.warnings);
    if (options.checks.ignored_errors) report_unseen_errors(options.warnings);
  } catch (...) { // no memory for the reports
  }
}

} // namespace

void check_at_end(bool errors) {
  if (errors) remembers_errors = true;
  checked_process = getpid();
  static const int registered = on_exit(at_end, nullptr);
  require(registered == 0, hipErrorOutOfMemory);
}

void error_returned(const char *function, hipError_t error) noexcept {
  if (!remembers_errors || is_orphaned() || !may_throw()) return;
  try {
    UnseenErrors::get().add(plain_name(function), error);
  } catch (...) { // no memory to remember it
  }
}

void last_error_seen() noexcept {
  if (!remembers_errors || is_orphaned()) return;
  UnseenErrors::get().forget(
      [](const UnseenErrors::Key &key) { return std::get<0>(key) == std::this_thread::get_id(); });
}

void error_seen(hipError_t error) noexcept {
  if (!remembers_errors || is_orphaned()) return;
  UnseenErrors::get().forget([error](const UnseenErrors::Key &key) { return std::get<2>(key) == error; });
}

} // namespace sluice::emulator::hip
