//===- emulated_run.cpp - one attention launch on the emulator, and what it reports
//------------------------===//
#include "emulated_run.h"

#include "emulator/emulator.h"
#include "package/kernargs.h"
#include "support/half.h"

#include <cmath>
#include <nlohmann/json.hpp>
#include <stdexcept>

namespace sluice::test {
namespace {

template <typename Function> Function *hip(const char *name) {
  void *symbol = sluice_emulator_symbol(name);
  if (!symbol) throw std::runtime_error(std::string("the emulator has no ") + name);
  return reinterpret_cast<Function *>(symbol);
}

void check(int error, const char *what) {
  if (error != 0) throw std::runtime_error(std::string(what) + " failed with error " + std::to_string(error));
}

/// Device memory filled with 16-bit numbers between -2 and 2; freed at the end.
class DeviceTensor {
public:
  DeviceTensor(size_t elements, bool is_bf16, uint32_t seed) {
    check(hip<int(void **, size_t)>("hipMalloc")(&data, elements * 2), "hipMalloc");
    std::vector<uint16_t> host(elements);
    for (size_t n = 0; n < elements; ++n) {
      const float number = float((uint32_t(n) * 2654435761u + seed * 0x9e3779b9u) >> 16) / 16384 - 2;
      host[n] = is_bf16 ? support::bf16_from_float(number) : support::f16_from_float(number);
    }
    check(hip<int(void *, const void *, size_t, int)>("hipMemcpy")(data, host.data(), elements * 2, 1),
          "hipMemcpy");
  }
  ~DeviceTensor() { hip<int(void *)>("hipFree")(data); }
  DeviceTensor(const DeviceTensor &) = delete;
  uint64_t address() const { return reinterpret_cast<uint64_t>(data); }

private:
  void *data = nullptr;
};

uint64_t bank_conflicts() {
  sluice_emulator_counters_t counters;
  check(sluice_emulator_counters(&counters), "sluice_emulator_counters");
  return counters.lds_bank_conflicts;
}

std::string take_reports() {
  std::string text(sluice_emulator_take_reports(nullptr, 0), '\0');
  sluice_emulator_take_reports(text.data(), text.size());
  return text.c_str();
}

} // namespace

RunResult run_attention(const package::KernelEntry &kernel, std::span<const std::byte> elf) {
  const int32_t d = int32_t(kernel.name.head_dim_qk), q_len = 70, kv_len = 64 * 4 + 17;
  const bool is_bf16 = kernel.name.dtype == "bf16";
  const size_t q_elements = size_t(q_len) * d, kv_elements = size_t(kv_len) * d;
  DeviceTensor q(q_elements, is_bf16, 1), k(kv_elements, is_bf16, 2), v(kv_elements, is_bf16, 3);
  DeviceTensor o(q_elements, is_bf16, 4);
  package::AttentionKernargs args{};
  args.q = q.address(), args.k = k.address(), args.v = v.address(), args.o = o.address();
  args.q_token_stride = args.k_token_stride = args.v_token_stride = args.o_token_stride = d;
  args.scale = float(1 / std::sqrt(double(d)));
  args.scale_log2e = args.scale * 1.4426950408889634f;
  args.q_len = q_len, args.kv_len = kv_len, args.causal_shift = kv_len;
  args.kv_head_magic = 1u << 31;

  RunResult result;
  const uint64_t conflicts_before = bank_conflicts();
  void *module = nullptr, *function = nullptr;
  const std::string name = package::format_kernel_name(kernel.name);
  result.hip_error = hip<int(void **, const void *)>("hipModuleLoadData")(&module, elf.data());
  if (result.hip_error == 0) {
    check(hip<int(void **, void *, const char *)>("hipModuleGetFunction")(&function, module, name.c_str()),
          "hipModuleGetFunction");
    size_t bytes = sizeof args;
    void *extra[] = {(void *)1, &args, (void *)2, &bytes, (void *)3};
    using Launch = int(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *,
                       void **, void **);
    const unsigned tiles = unsigned((q_len + kernel.name.tile_q - 1) / kernel.name.tile_q);
    result.hip_error = hip<Launch>("hipModuleLaunchKernel")(function, 1, tiles, 1, kernel.threads, 1, 1, 0,
                                                            nullptr, nullptr, extra);
    const int synchronised = hip<int()>("hipDeviceSynchronize")();
    if (result.hip_error == 0) result.hip_error = synchronised;
    sluice_emulator_configure("clear_fault", "1");
    hip<int(void *)>("hipModuleUnload")(module);
    result.lds_bank_conflicts = bank_conflicts() - conflicts_before;
    result.output.resize(size_t(q_len) * d);
    check(hip<int(void *, const void *, size_t, int)>("hipMemcpy")(
              result.output.data(), reinterpret_cast<void *>(o.address()), result.output.size() * 2, 2),
          "hipMemcpy");
  }
  for (const nlohmann::json &report : nlohmann::json::parse(take_reports())) {
    result.kinds.push_back(report.at("kind"));
    result.reports.push_back(report.dump());
  }
  return result;
}

} // namespace sluice::test
