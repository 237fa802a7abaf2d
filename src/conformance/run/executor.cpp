//===- executor.cpp - executors, which run cases --------------------------------------------------------===//

#include "conformance/run/executor.h"

#include "conformance/attention/call.h"
#include <sluice/emulator.h>

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <set>
#include <sluice/sluice.h>

namespace sluice::conformance {

namespace {

class ReferenceExecutor final : public Executor {
public:
  Judge judge() const override { return Judge::reference; }
  void describe(About &about) const override {
    about.device_name = std::string(reference_name) + " on the host";
  }

  std::string run(const Case &c, Memory &memory, std::optional<int> only) override {
    const std::vector<void *> bases = bases_of(memory.buffers);
    ProblemStructs problem;
    make_problem(c, problem);
    CallStructs call;
    make_call(c, memory, bases, call, only);
    sluice_error error = make_error();
    if (const sluice_status status = sluice_attention_reference(&problem.attention, &call.args, &error))
      fail(reference_name, status, error);
    return reference_name;
  }

  std::string append(const AppendCase &c, const AppendInputs &inputs, AppendMemory &memory) override {
    AppendStructs call;
    make_call(c, inputs, memory, bases_of(memory.buffers), call);
    sluice_error error = make_error();
    if (const sluice_status status = sluice_cache_append_reference(&call.args, &error))
      fail("sluice_cache_append_reference", status, error);
    return "sluice_cache_append_reference";
  }

  std::string summary() const override { return "on the host, in double precision"; }

private:
  static constexpr const char *reference_name = "sluice_attention_reference";

  static std::vector<void *> bases_of(std::vector<std::vector<std::byte>> &buffers) {
    std::vector<void *> bases;
    for (std::vector<std::byte> &buffer : buffers)
      bases.push_back(buffer.data());
    return bases;
  }
};

class DeviceExecutor final : public Executor {
public:
  DeviceExecutor(const std::string &name, const EmulatorSettings &settings, const Pack &pack)
      : emulated(name == "emulated") {
    sluice_context_desc desc = context_desc(emulated ? SLUICE_DEVICE_EMULATED : SLUICE_DEVICE_HIP, pack);
    if (!emulated) desc.device_ordinal = std::atoi(name.c_str() + 4);
    sluice_error error = make_error();
    const sluice_status status = sluice_context_create(&desc, &context, &error);
    if (status == SLUICE_NO_DEVICE || status == SLUICE_WRONG_ARCH) throw NotHere(error.message);
    if (status != SLUICE_OK) fail("sluice_context_create", status, error);
    sluice_set_trace(context, see_launch, &launched, nullptr);
    if (!emulated) check(symbol<int(int)>("hipSetDevice")(desc.device_ordinal), "hipSetDevice");
    // A kernel that never ends must be reported as a failure; --emulator may set another limit.
    if (emulated)
      symbol<int(const char *, const char *)>("sluice_emulator_configure")("instruction_budget",
                                                                           "1073741824");
    for (const auto &[key, value] : settings)
      if (symbol<int(const char *, const char *)>("sluice_emulator_configure")(key.c_str(), value.c_str()))
        throw UsageError("--emulator is '" + key + "=" + value + "'; the emulator has no such setting");
  }
  ~DeviceExecutor() override { sluice_context_destroy(context); }

  Judge judge() const override { return Judge::kernel; }

  void describe(About &about) const override {
    sluice_device_info info;
    sluice_device_info_init(&info, sizeof info);
    sluice_error error = make_error();
    if (const sluice_status status = sluice_context_device(context, &info, &error))
      fail("sluice_context_device", status, error);
    about.chip = info.chip;
    about.arch = info.arch;
    about.device_name = info.name;
    about.runtime = info.runtime;
    about.runtime_version = info.hip_runtime_version;
    about.compute_units = info.compute_units;
  }

  std::string run(const Case &c, Memory &memory, std::optional<int> only) override {
    DeviceBuffers buffers(*this, memory.buffers);
    ProblemStructs problem;
    make_problem(c, problem);
    sluice_error error = make_error();
    sluice_plan *created = nullptr;
    if (const sluice_status status = sluice_attention_plan(context, &problem.attention, &created, &error))
      fail_or_refuse("sluice_attention_plan", status, error);
    const std::unique_ptr<sluice_plan, void (*)(sluice_plan *)> plan(created, sluice_plan_destroy);
    sluice_plan_info info;
    sluice_plan_info_init(&info, sizeof info);
    if (const sluice_status status = sluice_plan_describe(created, &info, &error))
      fail("sluice_plan_describe", status, error);

    sluice_launch launch;
    sluice_launch_init(&launch, sizeof launch);
    if (info.workspace_bytes != 0) {
      launch.workspace = buffers.add(info.workspace_bytes);
      launch.workspace_bytes = info.workspace_bytes;
    }
    CallStructs call;
    make_call(c, memory, buffers.addresses, call, only);
    launched.clear();
    if (const sluice_status status = sluice_attention_run(created, &call.args, &launch, &error))
      fail_or_refuse("sluice_attention_run", status, error);
    finish(c.kernel, buffers, memory.buffers);
    ++runs;
    return info.kernel;
  }

  std::string append(const AppendCase &c, const AppendInputs &inputs, AppendMemory &memory) override {
    AppendStructs call;
    return run_cache_op(c, memory.buffers, "sluice_cache_append", sluice_cache_append, call.args,
                        [&](const std::vector<void *> &bases) { make_call(c, inputs, memory, bases, call); });
  }
  std::string copy_pages(const PageCopyCase &c, const PageCopyInputs &inputs,
                         PageCopyMemory &memory) override {
    if (c.is_gather()) {
      GatherStructs call;
      return run_cache_op(
          c, memory.buffers, "sluice_cache_gather", sluice_cache_gather, call.args,
          [&](const std::vector<void *> &bases) { make_gather(c, inputs, memory, bases, call); });
    }
    CopyStructs call;
    return run_cache_op(
        c, memory.buffers, "sluice_cache_copy", sluice_cache_copy, call.args,
        [&](const std::vector<void *> &bases) { make_page_copy(c, inputs, memory, bases, call); });
  }
  std::string merge(const MergeCase &c, MergeMemory &memory) override {
    PartLists lists;
    sluice_merge_args call;
    return run_cache_op(c, memory.buffers, "sluice_attention_merge", sluice_attention_merge, call,
                        [&](const std::vector<void *> &bases) { call = make_call(c, memory, bases, lists); });
  }

  std::vector<std::string> unused_kernels() const override {
    std::vector<std::string> unused;
    for (const sluice_kernel_info &kernel : list_kernels(context))
      if (!used.contains(kernel.name)) unused.push_back(kernel.name);
    return unused;
  }

  std::string summary() const override {
    if (!emulated) return "on the GPU";
    sluice_emulator_counters_t counters{};
    check(symbol<decltype(sluice_emulator_counters)>("sluice_emulator_counters")(&counters, sizeof counters),
          "sluice_emulator_counters");
    // The compared results must come from executed machine code.
    if (counters.launches < runs + cache_op_runs || counters.waves < runs ||
        counters.mfma_instructions < runs)
      throw std::runtime_error("the emulator counted fewer launches, waves or MFMA than there were runs");
    return std::to_string(counters.launches) + " launches, " + std::to_string(counters.waves) + " waves, " +
           std::to_string(counters.wave_instructions) + " instructions";
  }

private:
  static constexpr int host_to_device = 1, device_to_host = 2; // hipMemcpyKind

  class DeviceBuffers {
  public:
    DeviceBuffers(DeviceExecutor &device, const std::vector<std::vector<std::byte>> &buffers)
        : device(device) {
      for (const std::vector<std::byte> &buffer : buffers)
        device.copy(add(buffer.size()), buffer.data(), buffer.size(), host_to_device);
    }
    ~DeviceBuffers() {
      for (void *address : addresses)
        device.symbol<int(void *)>("hipFree")(address);
    }
    void *add(size_t bytes) {
      void *address = nullptr;
      device.check(device.symbol<int(void **, size_t)>("hipMalloc")(&address, bytes), "hipMalloc");
      addresses.push_back(address);
      return address;
    }
    std::vector<void *> addresses;

  private:
    DeviceExecutor &device;
  };

  static void see_launch(const sluice_trace_record *record, void *user) {
    if (record->event == SLUICE_TRACE_RUN)
      static_cast<std::vector<std::string> *>(user)->emplace_back(record->kernel);
  }

  /// Waits for the enqueued work and copies its memory back. `wanted` must have run, unless it is empty.
  void finish(const std::string &wanted, const DeviceBuffers &buffers,
              std::vector<std::vector<std::byte>> &images) {
    if (const int code = symbol<int(void *)>("hipStreamSynchronize")(nullptr))
      throw DeviceLost("the run ended with " + text_of(code) + reports());
    const std::string checks = reports();
    if (!checks.empty()) throw std::runtime_error("the emulator reports" + checks);
    used.insert(launched.begin(), launched.end());
    if (!wanted.empty() && std::ranges::find(launched, wanted) == launched.end())
      throw std::runtime_error("the library ran " + launched.back() + " instead of " + wanted);
    for (size_t i = 0; i < images.size(); ++i)
      copy(images[i].data(), buffers.addresses[i], images[i].size(), device_to_host);
  }

  /// `make` fills in the call for these addresses of its buffers.
  template <typename AnyCase, typename Run, typename Args, typename Make>
  std::string run_cache_op(const AnyCase &c, std::vector<std::vector<std::byte>> &images, const char *name,
                           Run run, const Args &call, Make make) {
    DeviceBuffers buffers(*this, images);
    sluice_error error = make_error();
    make(buffers.addresses);
    launched.clear();
    if (const sluice_status status = run(context, &call, nullptr, &error))
      fail_or_refuse(name, status, error);
    finish(c.kernel, buffers, images);
    ++cache_op_runs;
    return launched.back();
  }

  template <typename Function> Function *symbol(const char *name) const {
    void *const found = sluice_context_hip_symbol(context, name);
    if (!found) throw std::runtime_error(std::string("the HIP runtime has no ") + name);
    return reinterpret_cast<Function *>(found);
  }

  std::string text_of(int code) const {
    const char *const text = symbol<const char *(int)>("hipGetErrorString")(code);
    return std::to_string(code) + " (" + (text ? text : "no text") + ")";
  }

  void check(int code, const char *what) const {
    if (code != 0) throw DeviceLost(std::string(what) + ": " + text_of(code));
  }

  void copy(void *to, const void *from, size_t bytes, int kind) const {
    check(symbol<int(void *, const void *, size_t, int)>("hipMemcpy")(to, from, bytes, kind), "hipMemcpy");
  }

  /// The emulator's check reports since the last call, each for one run; empty without reports.
  std::string reports() const {
    if (!emulated) return "";
    auto *const take = symbol<size_t(char *, size_t)>("sluice_emulator_take_reports");
    std::string text(take(nullptr, 0), '\0');
    take(text.data(), text.size());
    while (!text.empty() && (text.back() == '\0' || text.back() == '\n'))
      text.pop_back();
    return text.empty() || text == "[]" ? "" : ": " + text;
  }

  bool emulated;
  sluice_context *context = nullptr;
  uint64_t runs = 0, cache_op_runs = 0;
  std::vector<std::string> launched; // by the last run
  std::set<std::string, std::less<>> used;
};

} // namespace

std::string Executor::append(const AppendCase &, const AppendInputs &, AppendMemory &) {
  throw std::logic_error("this executor has no appends");
}
std::string Executor::copy_pages(const PageCopyCase &, const PageCopyInputs &, PageCopyMemory &) {
  throw std::logic_error("copies of pages need a device");
}
std::string Executor::merge(const MergeCase &, MergeMemory &) {
  throw std::logic_error("merges need a device");
}

std::unique_ptr<Executor> make_executor(const std::string &name, const EmulatorSettings &settings,
                                        const Pack &pack) {
  if (!settings.empty() && name != "emulated") throw UsageError("--emulator needs --device emulated");
  if (name == "reference") return std::make_unique<ReferenceExecutor>();
  const bool hip = name.starts_with("hip:") && name.size() > 4 && name.size() < 10 &&
                   name.find_first_not_of("0123456789", 4) == std::string::npos;
  if (name != "emulated" && !hip)
    throw UsageError("--device is '" + name + "'; it must be 'emulated', 'hip:N' or 'reference'");
  return std::make_unique<DeviceExecutor>(name, settings, pack);
}

} // namespace sluice::conformance
