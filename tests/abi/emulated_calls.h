//===- emulated_calls.h - good calls of every kind, with memory on the emulated device ------------------===//
//
// Small calls, with values that differ from element to element, so that equal bits mean equal computations.
//
//===----------------------------------------------------------------------------------------------------===//
#pragma once

#include "support/attention_call.h"

#include <sluice/emulator.h>
#include <sluice/make.h>

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
struct DeviceAppend {
  sluice_kv_format format;
  sluice_kv kv;
  sluice_append_args args;

  DeviceAppend(int32_t tokens, const DeviceBytes &rows, const DeviceBytes &cache, const DeviceBytes &slots)
      : format(sluice_kv_pages(SLUICE_F16, call_heads, call_dim, call_page)),
        kv(sluice_make_kv(&format, sluice_pages_nhd(cache.get(), call_page, call_heads, call_dim), {})),
        args(sluice_make_append(&kv, SLUICE_F16, tokens, sluice_packed(rows.get(), call_heads, call_dim), {},
                                static_cast<const int64_t *>(slots.get()))) {
    format.flags = SLUICE_KV_V_IN_K;
    format.v = {};
  }
  DeviceAppend(const DeviceAppend &) = delete;
  DeviceAppend &operator=(const DeviceAppend &) = delete;
};

/// The problem of a kind of call, without the call's memory. A split plan has a kernel for long sequences,
/// one for short ones and a merge kernel.
inline AttentionCall call_values(CallKind kind) {
  AttentionCall call;
  call.format = sluice_kv_tensors(SLUICE_F16, call_heads, call_dim);
  call.attention.q_heads = call_heads;
  call.attention.q.type = call.attention.o.type = SLUICE_F16;
  if (kind == CallKind::paged) {
    call.format.page_size = call_page;
    call.format.page_table = SLUICE_PAGE_TABLE_BLOCK;
    call.attention.bounds.batch = 1;
  }
  if (kind == CallKind::split) {
    call.attention.flags = SLUICE_ATTENTION_RAGGED;
    call.attention.bounds.batch = 2;
    call.attention.bounds.q_len = 8192; // enough that prefill kernels take long sequences
    call.attention.bounds.kv_len = 8192;
    call.attention.workspace_ceiling_bytes = 1 << 20;
  }
  return call;
}

/// One call's memory and arguments.
class DeviceCall {
public:
  DeviceCall(CallKind kind, uint32_t seed, uint64_t workspace_bytes)
      : q(halves(rows * row, seed)), k(halves(keys * row, seed + 1)), v(halves(keys * row, seed + 2)),
        o(rows * row * sizeof(uint16_t)), starts(std::vector<int32_t>{0, 3, rows}),
        key_starts(std::vector<int32_t>{0, keys / 2, keys}), lengths(std::vector<int32_t>{keys}),
        table(std::vector<int32_t>{3, 1, 0, 2}), workspace(workspace_bytes == 0 ? 256 : workspace_bytes) {
    set_values(kind);
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

  AttentionCall values;

private:
  void set_values(CallKind kind) {
    values = call_values(kind);
    values.args.batch = kind == CallKind::split ? 2 : 1;
    values.args.rows.max_len = rows;
    values.args.q = sluice_packed(q.get(), call_heads, call_dim);
    values.args.o = sluice_packed(o.get(), call_heads, call_dim);
    values.keys[0].rows.max_len = keys;
    values.kv.k = sluice_packed(k.get(), call_heads, call_dim);
    values.kv.v = sluice_packed(v.get(), call_heads, call_dim);
    if (kind == CallKind::split) {
      values.args.rows.starts = static_cast<const int32_t *>(starts.get());
      values.keys[0].rows.starts = static_cast<const int32_t *>(key_starts.get());
    }
    if (kind == CallKind::paged) {
      values.kv.k.stride[0] = values.kv.v.stride[0] = call_page * row;
      values.keys[0].rows.lengths = static_cast<const int32_t *>(lengths.get());
      values.keys[0].pages.table = table.get();
      values.keys[0].pages.stride = keys / call_page;
    }
  }

  static constexpr int rows = 35, keys = 64, row = call_heads * call_dim;
  DeviceBytes q, k, v, o, starts, key_starts, lengths, table, workspace;
};

} // namespace sluice::test
