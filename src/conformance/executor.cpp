//===- executor.cpp - what runs a case ------------------------------------------------------------------===//

#include "executor.h"

#include "call.h"
#include <sluice/emulator.h>

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <set>
#include <sluice/sluice.h>

namespace sluice::test {

namespace {

sluice_error make_error() {
  sluice_error error;
  sluice_error_init(&error, sizeof error);
  return error;
}

[[noreturn]] void fail(const std::string &what, sluice_status status, const sluice_error &error) {
  throw std::runtime_error(what + ": " + sluice_status_name(status) + " [" + error.field + "] " +
                           error.message);
}

[[noreturn]] void fail_or_refuse(const std::string &what, sluice_status status, const sluice_error &error) {
  if (status == SLUICE_UNSUPPORTED) throw Refused(error.field, error.message);
  fail(what, status, error);
}

sluice_context_desc context_desc(uint32_t kind, const Pack &pack) {
  sluice_context_desc desc;
  sluice_context_desc_init(&desc, sizeof desc);
  desc.kind = kind;
  if (!pack.empty()) {
    desc.pack = pack.data();
    desc.pack_bytes = pack.size();
  }
  return desc;
}

std::vector<sluice_kernel_info> list_kernels(const sluice_context *context) {
  sluice_error error = make_error();
  uint32_t count = 0;
  if (const sluice_status status = sluice_list_kernels(context, 0, nullptr, &count, &error))
    fail("sluice_list_kernels", status, error);
  std::vector<sluice_kernel_info> kernels(count);
  for (uint32_t i = 0; i < count; ++i) {
    sluice_kernel_info_init(&kernels[i], sizeof kernels[i]);
    if (const sluice_status status = sluice_list_kernels(context, i, &kernels[i], nullptr, &error))
      fail("sluice_list_kernels", status, error);
  }
  std::erase_if(kernels, [](const auto &kernel) {
    return std::string(kernel.operation) !=
           "attention_forward"; // the others have their tests in tests/around
  });
  return kernels;
}

/// Whether a shape's kernels do nothing but SLUICE_V_IN_K.
bool needs_v_in_k(const sluice_context *context, const Shapes::Shape &shape) {
  const auto is_supported = [&](bool v_in_k) {
    const sluice_problem problem =
        make_problem({.dtype = shape.dtype, .head_size = shape.head_size, .v_in_k = v_in_k});
    return sluice_query_support(context, &problem, nullptr, nullptr) == SLUICE_OK;
  };
  return !is_supported(false) && is_supported(true);
}

class ReferenceExecutor final : public Executor {
public:
  Judge judge() const override { return Judge::reference; }
  void describe(About &about) const override { about.device_name = "sluice_reference on the host"; }

  std::string run(const Case &c, Memory &memory, std::optional<int> only) override {
    std::vector<void *> bases;
    for (std::vector<std::byte> &buffer : memory.buffers)
      bases.push_back(buffer.data());
    const sluice_problem problem = make_problem(c);
    const sluice_args args = make_args(c, memory, bases, only);
    sluice_error error = make_error();
    if (const sluice_status status = sluice_reference(&problem, &args, &error))
      fail("sluice_reference", status, error);
    return "sluice_reference";
  }

  std::string summary() const override { return "on the host, in double precision"; }
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
    if (!emulated) check(symbol<int(int)>("hipSetDevice")(desc.device_ordinal), "hipSetDevice");
    // A kernel that never ends is a failure to report; --emulator may set another limit.
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
    DeviceBuffers buffers(*this, memory);
    const sluice_problem problem = make_problem(c);
    sluice_error error = make_error();
    sluice_plan *created = nullptr;
    if (const sluice_status status = sluice_plan_create(context, &problem, &created, &error))
      fail_or_refuse("sluice_plan_create", status, error);
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
    const sluice_args args = make_args(c, memory, buffers.addresses, only);
    if (const sluice_status status = sluice_run(created, &args, &launch, &error))
      fail_or_refuse("sluice_run", status, error);
    if (const int code = symbol<int(void *)>("hipStreamSynchronize")(nullptr))
      throw DeviceLost("the run ended with " + text_of(code) + reports());
    const std::string checks = reports();
    if (!checks.empty()) throw std::runtime_error("the emulator reports" + checks);
    for (size_t i = 0; i < memory.buffers.size(); ++i)
      copy(memory.buffers[i].data(), buffers.addresses[i], memory.buffers[i].size(), device_to_host);
    ++runs;
    used.insert(info.kernel);
    return info.kernel;
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
    // What was compared must have come from executed machine code.
    if (counters.launches < runs || counters.waves < runs || counters.mfma_instructions < runs)
      throw std::runtime_error("the emulator counted fewer launches, waves or MFMA than there were runs");
    return std::to_string(counters.launches) + " launches, " + std::to_string(counters.waves) + " waves, " +
           std::to_string(counters.wave_instructions) + " instructions";
  }

private:
  static constexpr int host_to_device = 1, device_to_host = 2; // hipMemcpyKind

  class DeviceBuffers {
  public:
    DeviceBuffers(DeviceExecutor &device, const Memory &memory) : device(device) {
      for (const std::vector<std::byte> &buffer : memory.buffers)
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

  /// The emulator's check reports since the last time, each run's own; empty if there are none.
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
  uint64_t runs = 0;
  std::set<std::string, std::less<>> used;
};

} // namespace

Shapes kernel_shapes(const Pack &pack) {
  sluice_context_desc desc = context_desc(SLUICE_DEVICE_TARGET, pack);
  desc.target = "gfx942:304";
  sluice_error error = make_error();
  sluice_context *context = nullptr;
  if (const sluice_status status = sluice_context_create(&desc, &context, &error))
    fail("sluice_context_create", status, error);
  const std::unique_ptr<sluice_context, void (*)(sluice_context *)> guard(context, sluice_context_destroy);
  Shapes shapes;
  for (const sluice_kernel_info &kernel : list_kernels(context)) {
    // Of Q, K and V of FP8 are cases of the types of O, whose kernels have at least the same head sizes.
    if (kernel.dtype == SLUICE_E4M3FNUZ) continue;
    if (kernel.dtype != SLUICE_F16 && kernel.dtype != SLUICE_BF16)
      throw std::runtime_error(std::string("the suite has no cases for ") + kernel.name);
    Shapes::Shape shape = {kernel.dtype == SLUICE_F16 ? Dtype::f16 : Dtype::bf16,
                           {kernel.head_dim_qk, kernel.head_dim_v}};
    shape.v_in_k = needs_v_in_k(context, shape);
    if (std::find(shapes.all.begin(), shapes.all.end(), shape) == shapes.all.end())
      shapes.all.push_back(shape);
  }
  if (shapes.all.empty()) throw std::runtime_error("the pack has no kernel for F16 or BF16 queries");
  return shapes;
}

std::unique_ptr<Executor> make_executor(const std::string &name, const EmulatorSettings &settings,
                                        const Pack &pack) {
  if (!settings.empty() && name != "emulated") throw UsageError("--emulator needs --device emulated");
  if (name == "reference") return std::make_unique<ReferenceExecutor>();
  const bool hip = name.starts_with("hip:") && name.size() > 4 && name.size() < 10 &&
                   name.find_first_not_of("0123456789", 4) == std::string::npos;
  if (name != "emulated" && !hip)
    throw UsageError("--device is '" + name + "'; it is 'emulated', 'hip:N' or 'reference'");
  return std::make_unique<DeviceExecutor>(name, settings, pack);
}

} // namespace sluice::test
