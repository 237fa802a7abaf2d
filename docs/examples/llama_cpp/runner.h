//===- runner.h - the device, its memory, and a node's way through it ----------------------------------===//
//
// The tensors are in the host's memory, where ggml's CPU backend computes all else. A node's inputs are
// copied to the device and its result is copied back; memory and plans stay for the next node.
//
//===----------------------------------------------------------------------------------------------------===//
#pragma once

#include "node.h"

#include <atomic>
#include <map>
#include <stdexcept>
#include <vector>

namespace ggml_sluice {

/// What has happened in the process.
struct Counters {
  std::atomic<uint64_t> nodes = 0, plans = 0, allocations = 0;
};

/// A device and HIP's functions for it, shared by all backends of the process.
class Device {
public:
  /// `name` is "emulated" or "hip:N".
  explicit Device(const std::string &name);

  const sluice::Context &context() const { return bound; }
  /// Makes it the calling thread's device, as sluice_attention_run expects.
  void select() const { hip<int>("hipSetDevice", ordinal); }
  /// Calls a HIP function by its name. Throws if its result is not hipSuccess.
  template <class... Parameters, class... Arguments>
  void hip(const char *name, Arguments... arguments) const {
    auto *const function = bound.hip<int(Parameters...)>(name);
    if (!function) throw std::runtime_error(std::string("the HIP runtime has no ") + name);
    if (const int code = function(arguments...)) throw std::runtime_error(name + (": " + message(code)));
  }
  std::string description() const;

  Counters counters;

private:
  std::string message(int code) const;

  int ordinal;
  sluice::Context bound;
};

/// Memory of the device that grows when more is asked for.
class Memory {
public:
  explicit Memory(Device &device) : device(device) {}
  Memory(const Memory &) = delete;
  Memory &operator=(const Memory &) = delete;
  ~Memory() { release(); }

  /// At least `bytes` bytes, with any contents.
  void *reserve(size_t bytes);
  /// The memory with a copy of these bytes of the host.
  void *upload(const void *from, size_t bytes);
  void download(void *to, size_t bytes) const;

private:
  void release() noexcept;

  Device &device;
  void *data = nullptr;
  size_t capacity_bytes = 0;
};

/// One stream of work, used by one thread at a time, as a backend of ggml is.
class Runner {
public:
  explicit Runner(Device &device)
      : device(device), q(device), k(device), v(device), bias(device), sinks(device), o(device),
        workspace(device) {}

  /// Computes a node that is served. Throws std::exception if the library or the device fails.
  void compute(ggml_tensor &node);

private:
  struct Plan {
    sluice::Plan plan;
    uint64_t workspace_bytes;
  };
  const Plan &plan_for(const Problem &problem);
  void *upload_q(const Attention &attention);
  void *upload_bias(const Attention &attention);

  Device &device;
  Memory q, k, v, bias, sinks, o, workspace;
  std::map<std::string, Plan> plans; // by the bytes of the problem, which is all that a plan depends on
};

} // namespace ggml_sluice
