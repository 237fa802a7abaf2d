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
  sluice_problem problem;
  SLUICE_FIND(library, sluice_problem_init)(&problem, sizeof problem);
  problem.q_type = problem.k_type = problem.v_type = problem.o_type = SLUICE_F16;
  problem.q_heads = problem.kv_heads = 1;
  problem.head_dim_qk = problem.head_dim_v = call_dim;
  sluice_plan *plan = nullptr;
  require_ok(SLUICE_FIND(library, sluice_plan_create)(context, &problem, &plan, nullptr),
             "sluice_plan_create");
  {
    const DeviceStream stream;
    o.fill(0x7f);
    sluice_args args;
    SLUICE_FIND(library, sluice_args_init)(&args, sizeof args);
    args.batch = 1;
    args.q_len = args.kv_len = rows;
    args.q = args.k = args.v = {qkv.get(), {0, call_dim, call_dim, 1}};
    args.o = {o.get(), {0, call_dim, call_dim, 1}};
    sluice_launch launch;
    SLUICE_FIND(library, sluice_launch_init)(&launch, sizeof launch);
    launch.stream = stream.get();
    require_ok(SLUICE_FIND(library, sluice_run)(plan, &args, &launch, nullptr), "sluice_run");
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
