//===- check_backends.h - the two backends of the checks -----------------------------------------------===//
#pragma once

#include <cstdint>
#include <ggml-backend.h>
#include <memory>
#include <stdexcept>
#include <string>

namespace check {

/// Sluice's backend, from a file as programs of ggml load it, and the CPU's.
class Backends {
public:
  explicit Backends(const char *path) : registration(ggml_backend_load(path)) {
    if (!registration) throw std::runtime_error(std::string(path) + " cannot be loaded");
    ours.reset(ggml_backend_dev_init(ggml_backend_reg_dev_get(registration, 0), nullptr));
    cpu.reset(ggml_backend_init_by_type(GGML_BACKEND_DEVICE_TYPE_CPU, nullptr));
    if (!ours || !cpu) throw std::runtime_error("ggml makes no backend");
    count = reinterpret_cast<uint64_t (*)(const char *)>(
        ggml_backend_reg_get_proc_address(registration, "ggml_backend_sluice_count"));
  }

private:
  struct Free {
    void operator()(ggml_backend *backend) const { ggml_backend_free(backend); }
  };
  ggml_backend_reg_t registration;

public:
  std::unique_ptr<ggml_backend, Free> ours, cpu;
  uint64_t (*count)(const char *what); ///< how many "nodes" Sluice has computed
};

} // namespace check
