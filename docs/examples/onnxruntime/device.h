//===- device.h - calls of Sluice whose tensors are in the host's memory --------------------------------===//
//
// ONNX Runtime's CPU provider keeps tensors on the host, so a call copies its inputs to the device and its
// result back. Plans are kept by what they depend on, the problem; device memory is kept and only grows.
//
//===----------------------------------------------------------------------------------------------------===//
#pragma once

#include <array>
#include <cstddef>
#include <fstream>
#include <map>
#include <mutex>
#include <optional>
#include <sluice/sluice.hpp>
#include <string>

namespace sluice_ort {

/// What the provider's options say.
struct Options {
  std::string device = "hip:0"; ///< "emulated" or "hip:N"
  std::string trace;            ///< a file that gets a line per plan, run and allocation; empty: no trace
  bool leave_float32 = false;   ///< nodes of float32 go to other providers instead of being refused
};

/// K or V in the host's memory: `blocks` times `rows` rows that are adjacent, block_stride_bytes apart. Only
/// these rows are copied, and on the device a block follows the one before.
struct CacheRows {
  const void *data = nullptr;
  size_t blocks = 0, rows_bytes = 0, block_stride_bytes = 0;
};

/// What selects a kernel. The bytes of two that select the same are the same.
struct Problem {
  sluice_kv_format format{};
  sluice::Sized<sluice_mask> mask;
  sluice::Sized<sluice_scores> scores;
  sluice_attention attention{}; ///< points to nothing

  /// The problem, which points to the members of this.
  sluice_attention linked() const;
};

/// One call: a problem without bounds, and arguments whose pointers are the host's.
struct HostCall {
  Problem problem;
  sluice::Sized<sluice_attention_args> args; ///< points to none of the following
  sluice::Sized<sluice_mask_args> mask;
  sluice::Sized<sluice_scores_args> scores;
  std::optional<float> scale;
  sluice_rows keys{};
  sluice_tensor k_strides{}, v_strides{}; ///< those that the copies on the device will have
  CacheRows k, v;
  size_t q_bytes = 0, o_bytes = 0, bias_bytes = 0, mask_bytes = 0;
};

/// A device with its plans and memory. Threads: one call at a time, which a lock sees to.
class Device {
public:
  explicit Device(const Options &options);
  Device(const Device &) = delete;
  Device &operator=(const Device &) = delete;
  ~Device();

  /// Throws Refusal if Sluice has no kernel for the problem.
  void check_support(const Problem &problem) const;
  /// Computes O, and returns when it is in the host's memory.
  void run(HostCall call);

private:
  enum Slot {
    q_slot,
    k_slot,
    v_slot,
    o_slot,
    bias_slot,
    mask_slot,
    q_lengths_slot,
    kv_lengths_slot,
    sinks_slot,
    workspace_slot,
    slots
  };
  struct Memory {
    void *data = nullptr;
    size_t bytes = 0;
  };

  /// Calls a function of the HIP runtime by its name and type; throws what it returns if that is an error.
  template <class Function, class... Arguments> void hip(const char *name, Arguments... arguments) const;
  void *room(Slot slot, size_t bytes);
  void *upload(Slot slot, const void *from, size_t bytes);
  void *upload(Slot slot, const CacheRows &rows);
  const sluice::Plan &plan(const Problem &problem);

  int ordinal; // of a GPU; -1 of the emulator
  sluice::Context context;
  std::mutex mutex; // of all below
  std::ofstream trace;
  std::map<std::string, sluice::Plan> plans; // by the bytes of their problem, which has no padding
  std::array<Memory, slots> memory;
};

} // namespace sluice_ort
