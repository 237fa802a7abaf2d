//===- first_result.cpp - from dlopen to the first result, step by step ---------------------------------===//
//
// Measures how long a program that loads libsluice.so on demand waits: prints the microseconds of each step,
// and the total. The call is that of docs/examples/hello, on the emulated device; the program fails on
// a wrong result, and if the library stays in the process after it is closed.
//
// usage: first_result LIBRARY
//
//===----------------------------------------------------------------------------------------------------===//

#include <sluice/make.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <dlfcn.h>
#include <utility>
#include <vector>

namespace {

constexpr int keys = 4, head_size = 128, host_to_device = 1, device_to_host = 2;

void *library = nullptr;
sluice_error error;

[[noreturn]] void fail(const char *what, const char *why) {
  std::fprintf(stderr, "first_result: %s: %s\n", what, why);
  std::exit(1);
}

template <typename Function> Function *get(Function *, const char *name) {
  void *address = dlsym(library, name);
  if (address == nullptr) fail(name, dlerror());
  return reinterpret_cast<Function *>(address);
}
#define GET(name) get(&name, #name)

template <typename Function> Function *hip(const sluice_context *context, const char *name) {
  void *address = GET(sluice_context_hip_symbol)(context, name);
  if (address == nullptr) fail(name, "the emulated HIP has no such function");
  return reinterpret_cast<Function *>(address);
}

void require(sluice_status status) {
  if (status != SLUICE_OK) fail(GET(sluice_status_name)(status), error.message);
}
void require_hip(int code) {
  if (code != 0) fail("HIP", "a call failed");
}

/// Time since the previous step.
class Steps {
public:
  void finished(const char *step) {
    const Clock::time_point now = Clock::now();
    steps.emplace_back(step, now - before);
    before = Clock::now();
  }
  void print() const {
    Clock::duration all = {};
    for (const auto &[step, time] : steps) {
      all += time;
      print(step, time);
    }
    print("all of it", all);
  }

private:
  using Clock = std::chrono::steady_clock;
  static void print(const char *step, Clock::duration time) {
    std::printf("%s\t%.1f\n", step, std::chrono::duration<double, std::micro>(time).count());
  }
  std::vector<std::pair<const char *, Clock::duration>> steps;
  Clock::time_point before = Clock::now();
};

} // namespace

int main(int count, char **arguments) {
  if (count != 2) fail("usage", "first_result LIBRARY");
  // Row j of V holds the number j, and all scores are the same: the result is 1.5.
  const std::vector<uint16_t> zeros(keys * head_size);
  std::vector<uint16_t> v_rows(keys * head_size), result(head_size);
  constexpr uint16_t numbers[keys] = {0x0000, 0x3c00, 0x4000, 0x4200};
  for (int i = 0; i < keys * head_size; ++i)
    v_rows[size_t(i)] = numbers[i / head_size];

  Steps steps;
  library = dlopen(arguments[1], RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) fail(arguments[1], dlerror());
  steps.finished("dlopen");

  GET(sluice_error_init)(&error, sizeof error);
  sluice_context_desc desc;
  GET(sluice_context_desc_init)(&desc, sizeof desc);
  desc.kind = SLUICE_DEVICE_EMULATED;
  sluice_context *context = nullptr;
  require(GET(sluice_context_create)(&desc, &context, &error));
  steps.finished("a context, and with it the emulator");

  const sluice_kv_format format = sluice_kv_tensors(SLUICE_F16, 1, head_size);
  const sluice_attention problem = sluice_make_attention(SLUICE_F16, 1, &format);
  sluice_plan *plan = nullptr;
  require(GET(sluice_attention_plan)(context, &problem, &plan, &error));
  steps.finished("a plan, and with it the kernel");

  const auto allocate = hip<int(void **, size_t)>(context, "hipMalloc");
  const auto copy = hip<int(void *, const void *, size_t, int)>(context, "hipMemcpy");
  const auto wait = hip<int(void *)>(context, "hipStreamSynchronize");
  const auto tensor = [&](const std::vector<uint16_t> &host, int64_t rows) {
    sluice_tensor made = {nullptr, {rows * head_size, head_size, head_size, 1}};
    const size_t bytes = size_t(rows) * head_size * sizeof(uint16_t);
    require_hip(allocate(&made.data, bytes));
    require_hip(copy(made.data, host.data(), bytes, host_to_device));
    return made;
  };
  const sluice_tensor q = tensor(zeros, 1), o = tensor(result, 1);
  const sluice_kv kv = sluice_make_kv(&format, tensor(zeros, keys), tensor(v_rows, keys));
  const sluice_keys key_set = sluice_keys_of_equal(&kv, keys);
  const sluice_attention_args args = sluice_make_call(1, 1, q, o, &key_set);
  steps.finished("memory, and copies to it");

  sluice_launch launch;
  GET(sluice_launch_init)(&launch, sizeof launch);
  require(GET(sluice_attention_run)(plan, &args, &launch, &error));
  require_hip(wait(nullptr));
  steps.finished("the run");
  require_hip(copy(result.data(), o.data, result.size() * sizeof result[0], device_to_host));
  steps.finished("the copy of the result");

  if (std::count(result.begin(), result.end(), 0x3e00) != head_size) fail("result", "is not 1.5 everywhere");
  const auto release = hip<int(void *)>(context, "hipFree");
  for (const sluice_tensor *made : {&q, &kv.k, &kv.v, &o})
    require_hip(release(made->data));
  GET(sluice_plan_destroy)(plan);
  GET(sluice_context_destroy)(context);
  if (dlclose(library) != 0) fail(arguments[1], dlerror());
  if (dlopen(arguments[1], RTLD_NOW | RTLD_NOLOAD) != nullptr) fail(arguments[1], "stays when it is closed");
  steps.print();
  return 0;
}
