//===- check_failures.cpp - what goes wrong is a status and a message ----------------------------------===//

#include "check_backends.h"
#include "check_case.h"

#include <cmath>
#include <cstdio>
#include <dlfcn.h>
#include <ggml.h>

namespace {

using namespace check;

std::string logged;

void expect(bool is_so, const char *what) {
  if (!is_so) throw std::runtime_error(std::string(what) + "; logged: " + logged);
  std::printf("%s\n%s", what, logged.c_str());
  logged.clear();
}

void keep_errors(ggml_log_level level, const char *text, void *) {
  if (level == GGML_LOG_LEVEL_ERROR) logged += text;
}

bool says(const char *words) {
  return logged.find(words) != std::string::npos;
}

/// A setting of the emulated device. The backend has opened the library already.
void configure(const char *key, const char *value) {
  void *const library = dlopen("libsluice_emulator.so.1", RTLD_NOW | RTLD_NOLOAD);
  if (!library) throw std::runtime_error("this check needs GGML_SLUICE_DEVICE=emulated");
  auto *const set =
      reinterpret_cast<int (*)(const char *, const char *)>(dlsym(library, "sluice_emulator_configure"));
  if (!set || set(key, value) != 0)
    throw std::runtime_error(std::string("the emulator does not take ") + key);
  dlclose(library);
}

/// Whether a backend supports a node with this many rows, and K's rows so far apart. It has no memory.
bool supports(ggml_backend_t backend, int64_t rows, int64_t k_stride_elements) {
  const std::unique_ptr<ggml_context, void (*)(ggml_context *)> context(
      ggml_init({ggml_tensor_overhead() * 8, nullptr, true}), ggml_free);
  ggml_tensor *const q = ggml_new_tensor_3d(context.get(), GGML_TYPE_F32, 64, rows, 2);
  ggml_tensor *const wide = ggml_new_tensor_3d(context.get(), GGML_TYPE_F16, k_stride_elements, 40, 2);
  ggml_tensor *const k = ggml_view_3d(context.get(), wide, 64, 40, 2, wide->nb[1], wide->nb[2], 0);
  return ggml_backend_supports_op(backend, ggml_flash_attn_ext(context.get(), q, k, k, nullptr, 1, 0, 0));
}

} // namespace

int main(int count, char **arguments) {
  if (count != 2) {
    std::fputs("usage: check_failures LIBGGML_SLUICE\n", stderr);
    return 2;
  }
  ggml_log_set(keep_errors, nullptr);
  try {
    const Backends backends(arguments[1]);
    ggml_backend_t const ours = backends.ours.get();
    const Case served = {"served", 64, 64, 2, 2, 3, 40, 1};
    Case refused = served;
    refused.kv_type = GGML_TYPE_Q5_0;
    Case too_wide = served;
    too_wide.head_dim_qk = too_wide.head_dim_v = 640;

    const Numbers numbers(served);
    const Outcome before = compute(served, numbers, {ours, backends.cpu.get()});
    expect(before.status == GGML_STATUS_SUCCESS, "a node that is served");
    expect(force(refused, Numbers(refused), ours) == GGML_STATUS_FAILED && says("q5_0"),
           "a type that is not served");
    expect(force(too_wide, Numbers(too_wide), ours) == GGML_STATUS_FAILED && says("640"),
           "a head size that is not");

    expect(supports(ours, 1000, 64), "1000 rows");
    expect(!supports(ours, 2'000'000, 64), "more rows than a launch has workgroups for");
    expect(!supports(ours, 1000, 1 << 25), "K's rows 2^25 elements apart");

    configure("instruction_budget", "10");
    const Outcome stopped = compute(served, numbers, {ours, backends.cpu.get()});
    expect(stopped.status == GGML_STATUS_FAILED && says("hipMemcpy"), "a kernel that the device stops");
    configure("instruction_budget", "0");
    configure("clear_fault", "1");
    const Outcome after = compute(served, numbers, {ours, backends.cpu.get()});
    expect(after.status == GGML_STATUS_SUCCESS && after.o == before.o, "the same node afterwards");
    expect(backends.count("nodes") == 2, "nodes counted: 2");
  } catch (const std::exception &error) {
    std::fprintf(stderr, "check_failures: %s\n", error.what());
    return 1;
  }
}
