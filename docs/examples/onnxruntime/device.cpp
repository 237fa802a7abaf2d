//===- device.cpp - calls of Sluice whose tensors are in the host's memory ------------------------------===//

#include "device.h"

#include "api.h"

#include <bit>
#include <charconv>

namespace sluice_ort {

namespace {

// Two values of hipMemcpyKind.
constexpr int host_to_device = 1;
constexpr int device_to_host = 2;

/// N of "hip:N"; -1 of "emulated".
int ordinal_of(const std::string &device) {
  if (device == "emulated") return -1;
  int ordinal = -1;
  if (device.starts_with("hip:")) std::from_chars(device.data() + 4, device.data() + device.size(), ordinal);
  if (ordinal < 0 || device != "hip:" + std::to_string(ordinal))
    throw Refusal("the option device is '" + device + "'; it must be 'emulated' or 'hip:N'");
  return ordinal;
}

sluice::Context context_of(int ordinal) {
  const sluice::ContextDesc desc(ordinal < 0 ? SLUICE_DEVICE_EMULATED : SLUICE_DEVICE_HIP,
                                 ordinal < 0 ? 0 : ordinal);
  return sluice::Context::create(desc).value();
}

/// A power of two that is not below the length, so that growing lengths share a plan; no bound past 2^30.
int32_t bound_of(int32_t length) {
  return length > 1 << 30 ? 0 : int32_t(std::bit_ceil(uint32_t(length)));
}

void write_trace(const sluice_trace_record *record, void *file) {
  *static_cast<std::ofstream *>(file)
      << (record->event == SLUICE_TRACE_RUN ? "run " : "plan ") << record->kernel << std::endl;
}

} // namespace

sluice_attention Problem::linked() const {
  sluice_attention all = attention;
  all.kv = &format;
  all.mask = &mask;
  all.scores = &scores;
  return all;
}

Device::Device(const Options &options) : ordinal(ordinal_of(options.device)), context(context_of(ordinal)) {
  if (options.trace.empty()) return;
  trace.open(options.trace, std::ios::app);
  if (!trace) throw Refusal("the option trace is '" + options.trace + "', which cannot be written");
  context.set_trace(write_trace, &trace).value();
}

Device::~Device() {
  for (const Memory &owned : memory) // a destructor has no way to report a failure
    if (owned.data) context.hip<int(void *)>("hipFree")(owned.data);
}

template <class Function, class... Arguments>
void Device::hip(const char *name, Arguments... arguments) const {
  Function *const function = context.hip<Function>(name);
  if (!function) throw std::runtime_error(std::string("the HIP runtime has no ") + name);
  const int code = function(arguments...);
  if (code == 0) return;
  auto *const text = context.hip<const char *(int)>("hipGetErrorString");
  throw std::runtime_error(std::string(name) + ": " +
                           (text ? text(code) : "HIP error " + std::to_string(code)));
}

void *Device::room(Slot slot, size_t bytes) {
  Memory &owned = memory[slot];
  if (owned.bytes < bytes) {
    if (owned.data) hip<int(void *)>("hipFree", owned.data);
    owned = {};
    const size_t wanted = bytes + bytes / 4; // caches grow with each token
    hip<int(void **, size_t)>("hipMalloc", &owned.data, wanted);
    owned.bytes = wanted;
    if (trace.is_open()) trace << "memory " << wanted << std::endl;
  }
  return owned.data;
}

void *Device::upload(Slot slot, const void *from, size_t bytes) {
  void *const to = room(slot, bytes);
  if (bytes != 0) hip<int(void *, const void *, size_t, int)>("hipMemcpy", to, from, bytes, host_to_device);
  return to;
}

void *Device::upload(Slot slot, const CacheRows &rows) {
  if (rows.rows_bytes ==
      rows.block_stride_bytes) // also what is too long for the pitch of a copy in two dimensions
    return upload(slot, rows.data, rows.blocks * rows.rows_bytes);
  void *const to = room(slot, rows.blocks * rows.rows_bytes);
  if (rows.rows_bytes == 0) return to;
  hip<int(void *, size_t, const void *, size_t, size_t, size_t, int)>(
      "hipMemcpy2D", to, rows.rows_bytes, rows.data, rows.block_stride_bytes, rows.rows_bytes, rows.blocks,
      host_to_device);
  return to;
}

const sluice::Plan &Device::plan(const Problem &problem) {
  const std::string key(reinterpret_cast<const char *>(&problem), sizeof problem);
  const auto found = plans.find(key);
  return found != plans.end() ? found->second
                              : plans.emplace(key, context.plan(problem.linked()).value()).first->second;
}

void Device::check_support(const Problem &problem) const {
  const auto support = context.support(problem.linked());
  if (!support) throw Refusal(std::string(support.error().message()));
}

void Device::run(HostCall call) {
  if (call.o_bytes == 0) return; // nothing asks for anything
  const std::lock_guard lock(mutex);
  if (ordinal >= 0) hip<int(int)>("hipSetDevice", ordinal); // sessions run on threads of their choice
  Problem &problem = call.problem;
  sluice_attention_args &args = call.args;
  problem.attention.bounds =
      sluice_make_bounds(args.batch, bound_of(args.rows.max_len), bound_of(call.keys.max_len));
  const sluice::Plan &planned = plan(problem);

  void *const o = args.o.data;
  args.q.data = upload(q_slot, args.q.data, call.q_bytes);
  call.k_strides.data = upload(k_slot, call.k);
  call.v_strides.data = upload(v_slot, call.v);
  args.o.data = room(o_slot, call.o_bytes);
  sluice_tensor &bias = call.scores.bias, &bits = call.mask.bits;
  if (bias.data) bias.data = upload(bias_slot, bias.data, call.bias_bytes);
  if (bits.data) bits.data = upload(mask_slot, bits.data, call.mask_bytes);
  const auto upload_numbers = [&](auto *&numbers, Slot slot, size_t count) {
    if (!numbers) return;
    using Number = std::remove_reference_t<decltype(*numbers)>;
    numbers = static_cast<Number *>(upload(slot, numbers, count * sizeof(Number)));
  };
  if (call.keys.max_len == 0) call.keys.lengths = nullptr; // no sequence has keys
  upload_numbers(args.rows.lengths, q_lengths_slot, args.batch);
  upload_numbers(call.keys.lengths, kv_lengths_slot, args.batch);
  upload_numbers(call.scores.sinks, sinks_slot, problem.attention.q_heads);

  const sluice_kv kv = sluice_make_kv(&problem.format, call.k_strides, call.v_strides);
  sluice_keys keys = sluice_keys_of_equal(&kv, 0);
  keys.rows = call.keys;
  args.keys = &keys;
  args.key_sets = 1;
  args.mask = &call.mask;
  args.scores = &call.scores;
  if (call.scale) args.scale = &*call.scale;
  sluice::Launch launch; // on the default stream
  launch.workspace_bytes = planned.describe().value().workspace_bytes;
  if (launch.workspace_bytes) launch.workspace = room(workspace_slot, launch.workspace_bytes);
  planned.run(args, launch).value();
  hip<int(void *)>("hipStreamSynchronize", nullptr);
  hip<int(void *, const void *, size_t, int)>("hipMemcpy", o, args.o.data, call.o_bytes, device_to_host);
}

} // namespace sluice_ort
