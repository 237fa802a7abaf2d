//===- reload.cpp - the library is opened, used and closed again, over and over -------------------------===//
//
// usage: abi_reload LIBRARY
//
// After each closing the library must be gone from the process, with nothing of it left: no stream, no event,
// no device memory, and no growth of the process over many rounds. The emulator stays, by design.
//
//===----------------------------------------------------------------------------------------------------===//
#include "emulated_calls.h"

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string_view>

#include <dlfcn.h>
#include <link.h>
#include <unistd.h>

using namespace sluice::test;

namespace {

int complaints = 0;
void expect(bool condition, const std::string &what) {
  if (condition) return;
  ++complaints;
  std::fprintf(stderr, "%s\n", what.c_str());
}

bool is_loaded(std::string_view name) {
  return dl_iterate_phdr(
             [](dl_phdr_info *info, size_t, void *user) {
               return int(std::string_view(info->dlpi_name).find(*static_cast<std::string_view *>(user)) !=
                          std::string_view::npos);
             },
             &name) != 0;
}

size_t resident_bytes() {
  size_t total = 0, resident = 0;
  std::ifstream("/proc/self/statm") >> total >> resident;
  return resident * size_t(sysconf(_SC_PAGESIZE));
}

size_t open_files() {
  const std::filesystem::directory_iterator files("/proc/self/fd");
  return size_t(std::distance(begin(files), end(files)));
}

template <typename Function> Function *symbol(void *library, const char *name) {
  void *found = dlsym(library, name);
  require_ok(found == nullptr, name);
  return reinterpret_cast<Function *>(found);
}
#define SLUICE_FIND(library, name) symbol<std::remove_pointer_t<decltype(&::name)>>(library, #name)

constexpr int rows = 8;

/// The life of a context and a plan, with a run. `result` is that of the first round. All rounds use the same
/// memory: the emulator keeps freed memory for a while, to notice when it is touched.
void use(void *library, const DeviceBytes &qkv, const DeviceBytes &o, std::vector<unsigned char> &result) {
  sluice_context_desc desc;
  SLUICE_FIND(library, sluice_context_desc_init)(&desc, sizeof desc);
  desc.kind = SLUICE_DEVICE_EMULATED;
  sluice_context *context = nullptr;
  require_ok(SLUICE_FIND(library, sluice_context_create)(&desc, &context, nullptr), "sluice_context_create");
  const sluice_kv_format format = sluice_kv_tensors(SLUICE_F16, 1, call_dim);
  const sluice_attention attention = sluice_make_attention(SLUICE_F16, 1, &format);
  sluice_plan *plan = nullptr;
  require_ok(SLUICE_FIND(library, sluice_attention_plan)(context, &attention, &plan, nullptr),
             "sluice_attention_plan");
  {
    const DeviceStream stream;
    o.fill(0x7f);
    const sluice_tensor input = sluice_packed(qkv.get(), 1, call_dim);
    const sluice_kv kv = sluice_make_kv(&format, input, input);
    const sluice_keys keys = sluice_keys_of_equal(&kv, rows);
    const sluice_attention_args args =
        sluice_make_call(1, rows, input, sluice_packed(o.get(), 1, call_dim), &keys);
    sluice_launch launch;
    SLUICE_FIND(library, sluice_launch_init)(&launch, sizeof launch);
    launch.stream = stream.get();
    require_ok(SLUICE_FIND(library, sluice_attention_run)(plan, &args, &launch, nullptr),
               "sluice_attention_run");
    stream.wait();
    if (result.empty()) result = o.read();
    expect(o.read() == result, "another result after a reload");
  }
  SLUICE_FIND(library, sluice_plan_destroy)(plan);
  SLUICE_FIND(library, sluice_context_destroy)(context);
}

} // namespace

int main(int argc, char **argv) {
  if (argc != 2) return 2;
  constexpr int first_rounds = 20, more_rounds = 60;
  // A leaked context or plan is 4 MiB a round; a heap fluctuates by less. The sanitizers keep freed memory.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  constexpr size_t most_growth = SIZE_MAX;
#else
  constexpr size_t most_growth = size_t{16} << 20;
#endif
  const DeviceBytes qkv(halves(rows * call_dim, 1)), o(rows * call_dim * sizeof(uint16_t));
  std::vector<unsigned char> result;
  const sluice_emulator_counters_t before = emulator_counters();
  size_t free_bytes = 0, total_bytes = 0, resident = 0, files = 0;
  for (int round = 0; round < first_rounds + more_rounds; ++round) {
    void *library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) {
      std::fprintf(stderr, "%s\n", dlerror());
      return 2;
    }
    expect(is_loaded("libsluice.so"), "is_loaded does not see the library");
    use(library, qkv, o, result);
    require_ok(dlclose(library), "dlclose");
    expect(!is_loaded("libsluice.so"), "the library is still there after round " + std::to_string(round));
    size_t now_free = 0;
    hip_call<size_t *, size_t *>("hipMemGetInfo", &now_free, &total_bytes);
    if (round == 0) free_bytes = now_free;
    expect(now_free == free_bytes, "device memory is left");
    expect(emulator_counters().live_streams == before.live_streams, "streams are left");
    expect(emulator_counters().live_events == before.live_events, "events are left");
    if (round == first_rounds) resident = resident_bytes(), files = open_files();
    if (complaints != 0) return 1;
  }
  const size_t after = resident_bytes(), growth = after > resident ? after - resident : 0;
  std::printf("%d rounds, then %d more: %zu KiB more memory\n", first_rounds, more_rounds, growth >> 10);
  expect(growth <= most_growth, "the process has grown");
  expect(open_files() == files, "files are left open");
  expect(is_loaded("libsluice_emulator"), "the emulator is gone, which has threads");
  return complaints != 0;
}
