//===- emulated_calls.h - good calls of every kind, with memory on the emulated device ------------------===//
//
// Small calls, with values that differ from element to element, so that equal bits mean equal computations.
//
//===----------------------------------------------------------------------------------------------------===//
#pragma once

#include <sluice/emulator.h>

#include <sluice/sluice.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace sluice::test {

/// Stops the program: for failures that are not a subject of the test.
inline void require_ok(int result, const std::string &what) {
  if (result == 0) return;
  std::fprintf(stderr, "%s failed with %d\n", what.c_str(), result);
  std::abort();
}

/// A HIP function of the emulator, which must succeed.
template <typename... Parameters> void hip_call(const char *name, Parameters... parameters) {
  const auto function = reinterpret_cast<int (*)(Parameters...)>(sluice_emulator_symbol(name));
  require_ok(function == nullptr ? -1 : function(parameters...), name);
}

inline void set_device(int device) {
  hip_call("hipSetDevice", device);
}

inline sluice_emulator_counters_t emulator_counters() {
  sluice_emulator_counters_t counters;
  require_ok(sluice_emulator_counters(&counters, sizeof counters), "sluice_emulator_counters");
  return counters;
}

/// Device memory, on the device that is current when it is created.
class DeviceBytes {
public:
  explicit DeviceBytes(size_t bytes) : count(bytes) {
    hip_call<void **, size_t>("hipMalloc", &memory, bytes);
  }
  template <typename T>
  explicit DeviceBytes(const std::vector<T> &values) : DeviceBytes(values.size() * sizeof(T)) {
    hip_call<void *, const void *, size_t, int>("hipMemcpy", memory, values.data(), count, 1);
  }
  DeviceBytes(DeviceBytes &&other) noexcept
      : memory(std::exchange(other.memory, nullptr)), count(other.count) {}
  DeviceBytes &operator=(DeviceBytes &&) = delete;
  ~DeviceBytes() {
    if (memory != nullptr) hip_call("hipFree", memory);
  }

  void *get() const { return memory; }
  size_t bytes() const { return count; }
  std::vector<unsigned char> read() const {
    std::vector<unsigned char> out(count);
    hip_call<void *, const void *, size_t, int>("hipMemcpy", out.data(), memory, count, 2);
    return out;
  }
  void fill(int byte) const { hip_call<void *, int, size_t>("hipMemset", memory, byte, count); }

private:
  void *memory = nullptr;
  size_t count;
};

class DeviceStream {
public:
  DeviceStream() { hip_call<void **, unsigned>("hipStreamCreateWithFlags", &stream, 1); }
  DeviceStream(const DeviceStream &) = delete;
  DeviceStream &operator=(const DeviceStream &) = delete;
  ~DeviceStream() {
    wait();
    hip_call("hipStreamDestroy", stream);
  }
  void *get() const { return stream; }
  void wait() const { hip_call("hipStreamSynchronize", stream); }

private:
  void *stream = nullptr;
};

class DeviceEvent {
public:
  DeviceEvent() { hip_call<void **, unsigned>("hipEventCreateWithFlags", &event, 2); }
  DeviceEvent(const DeviceEvent &) = delete;
  DeviceEvent &operator=(const DeviceEvent &) = delete;
  ~DeviceEvent() { hip_call("hipEventDestroy", event); }
  void *get() const { return event; }

private:
  void *event = nullptr;
};

/// F16 values between -1 and 1.
inline std::vector<uint16_t> halves(size_t count, uint32_t seed) {
  std::vector<uint16_t> out(count);
  for (uint16_t &value : out) {
    seed = seed * 1664525 + 1013904223;
    value = uint16_t((seed >> 16 & 0x8000) | (seed >> 12 & 0x3fff) % 0x3c00);
  }
  return out;
}

constexpr int call_heads = 2, call_dim = 64, call_page = 16;

enum class CallKind { dense, paged, split };

/// `tokens` rows of F16, with V in K, into slots of a cache of pages of call_page rows.
inline sluice_append call_append(int32_t tokens, const DeviceBytes &rows, const DeviceBytes &cache,
                                 const DeviceBytes &slots) {
  constexpr int row = call_heads * call_dim;
  sluice_append append;
  sluice_append_init(&append, sizeof append);
  append.flags = SLUICE_V_IN_K;
  append.source_type = append.cache_type = SLUICE_F16;
  append.kv_heads = call_heads;
  append.head_dim_qk = call_dim;
  append.page_size = call_page;
  append.tokens = tokens;
  append.k = {rows.get(), {0, row, call_dim, 1}};
  append.k_cache = {cache.get(), {call_page * row, row, call_dim, 1}};
  append.slots = static_cast<const int64_t *>(slots.get());
  return append;
}

/// The kind of plan that a call needs. A split plan has a kernel for long sequences, one for short ones and a
/// merge kernel.
inline sluice_problem call_problem(CallKind kind) {
  sluice_problem problem;
  sluice_problem_init(&problem, sizeof problem);
  problem.q_type = problem.k_type = problem.v_type = problem.o_type = SLUICE_F16;
  problem.q_heads = problem.kv_heads = call_heads;
  problem.head_dim_qk = problem.head_dim_v = call_dim;
  if (kind == CallKind::paged) {
    problem.mode = SLUICE_MODE_PAGED;
    problem.page_size = call_page;
    problem.page_table_kind = SLUICE_PAGE_TABLE_BLOCK;
    problem.max_batch = 1;
  }
  if (kind == CallKind::split) {
    problem.mode = SLUICE_MODE_RAGGED;
    problem.max_batch = 2;
    problem.max_q_len = 8192; // enough that prefill kernels take long sequences
    problem.max_kv_len = 8192;
    problem.workspace_ceiling_bytes = 1 << 20;
  }
  return problem;
}

/// One call's memory and arguments.
class DeviceCall {
public:
  DeviceCall(CallKind kind, uint32_t seed, uint64_t workspace_bytes)
      : q(halves(rows * row, seed)), k(halves(keys * row, seed + 1)), v(halves(keys * row, seed + 2)),
        o(rows * row * sizeof(uint16_t)), starts(std::vector<int32_t>{0, 3, rows}),
        key_starts(std::vector<int32_t>{0, keys / 2, keys}), lengths(std::vector<int32_t>{keys}),
        table(std::vector<int32_t>{3, 1, 0, 2}), workspace(workspace_bytes == 0 ? 256 : workspace_bytes) {
    sluice_args_init(&args, sizeof args);
    args.batch = kind == CallKind::split ? 2 : 1;
    args.q_len = rows;
    args.kv_len = keys;
    const bool is_paged = kind == CallKind::paged;
    args.q = {q.get(), {0, row, call_dim, 1}};
    args.k = {k.get(), {is_paged ? call_page * row : 0, row, call_dim, 1}};
    args.v = {v.get(), {is_paged ? call_page * row : 0, row, call_dim, 1}};
    args.o = {o.get(), {0, row, call_dim, 1}};
    if (kind == CallKind::split) {
      args.q_starts = static_cast<const int32_t *>(starts.get());
      args.kv_starts = static_cast<const int32_t *>(key_starts.get());
    }
    if (is_paged) {
      args.kv_lengths = static_cast<const int32_t *>(lengths.get());
      args.page_table = table.get();
      args.page_table_stride = keys / call_page;
    }
    clear();
  }

  sluice_launch launch(void *stream) const {
    sluice_launch launch;
    sluice_launch_init(&launch, sizeof launch);
    launch.stream = stream;
    launch.workspace = workspace.get();
    launch.workspace_bytes = workspace.bytes();
    return launch;
  }
  void clear() const { o.fill(0x7f); }
  std::vector<unsigned char> result() const { return o.read(); }

  sluice_args args;

private:
  static constexpr int rows = 35, keys = 64, row = call_heads * call_dim;
  DeviceBytes q, k, v, o, starts, key_starts, lengths, table, workspace;
};

} // namespace sluice::test
