//===- handles.h - handles that are checked before use --------------------------------------------------===//
//
// A handle is the address of its object, but it is looked up before it is dereferenced. So a stale or
// invented handle is an error, and an object in use outlives its destruction.
//
//===----------------------------------------------------------------------------------------------------===//
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "emulator/hip/error.h"

namespace sluice::emulator::hip {

template <typename Handle, typename Object> class Handles {
public:
  Handle add(std::shared_ptr<Object> object) {
    const auto handle = reinterpret_cast<Handle>(object.get());
    const std::lock_guard lock(mutex);
    live.emplace(handle, std::move(object));
    return handle;
  }
  std::shared_ptr<Object> find(Handle handle, hipError_t otherwise = hipErrorInvalidHandle) {
    const std::lock_guard lock(mutex);
    const auto at = live.find(handle);
    require(at != live.end(), otherwise);
    return at->second;
  }
  std::shared_ptr<Object> remove(Handle handle, hipError_t otherwise = hipErrorInvalidHandle) {
    const std::lock_guard lock(mutex);
    const auto at = live.find(handle);
    require(at != live.end(), otherwise);
    std::shared_ptr<Object> object = std::move(at->second);
    live.erase(at);
    return object;
  }

  /// Removes all that `chosen` returns true for.
  template <typename Chosen> std::vector<std::shared_ptr<Object>> remove_all(Chosen &&chosen) {
    std::vector<std::shared_ptr<Object>> removed;
    const std::lock_guard lock(mutex);
    for (auto at = live.begin(); at != live.end();) {
      if (!chosen(*at->second)) {
        ++at;
        continue;
      }
      removed.push_back(std::move(at->second));
      at = live.erase(at);
    }
    return removed;
  }

  uint64_t count() {
    const std::lock_guard lock(mutex);
    return live.size();
  }

  /// The process's table for this kind of object.
  static Handles &get() {
    static Handles *const instance = new Handles;
    return *instance;
  }

private:
  std::mutex mutex;
  std::map<Handle, std::shared_ptr<Object>> live;
};

} // namespace sluice::emulator::hip
