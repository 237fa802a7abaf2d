//===- exit_in_flight.cpp - a process that ends, or closes the library, while a kernel runs -------------===//
//
// usage: exit_in_flight LIBRARY CODE_OBJECT exit|close. Exits with 0; a crash in a stream's thread would be a
// signal. Opens the library like a program that only knows its name.
//
//===----------------------------------------------------------------------------------------------------===//
#include <chrono>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <iterator>
#include <string>
#include <thread>

#include <dlfcn.h>

namespace {

void *library;

template <typename Function> Function *symbol(const char *name) {
  using Resolver = void *(const char *);
  auto *const resolve = reinterpret_cast<Resolver *>(dlsym(library, "sluice_emulator_symbol"));
  return reinterpret_cast<Function *>(resolve(name));
}

} // namespace

int main(int argc, char **argv) {
  if (argc != 4) return 2;
  library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
  if (!library) {
    std::fprintf(stderr, "%s\n", dlerror());
    return 1;
  }
  std::ifstream file(argv[2], std::ios::binary);
  const std::string elf((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  void *module = nullptr;
  void *fill = nullptr;
  void *out = nullptr;
  const int count = 16 << 20; // of words: seconds of work
  if (symbol<int(void **, const void *)>("hipModuleLoadData")(&module, elf.data()) != 0 ||
      symbol<int(void **, void *, const char *)>("hipModuleGetFunction")(&fill, module, "fill") != 0 ||
      symbol<int(void **, size_t)>("hipMalloc")(&out, size_t(count) * 4) != 0)
    return 1;
  int value = 1;
  int words = count;
  void *parameters[] = {&out, &value, &words};
  using Launch = int(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *,
                     void **, void **);
  if (symbol<Launch>("hipModuleLaunchKernel")(fill, unsigned(count / 64), 1, 1, 64, 1, 1, 0, nullptr,
                                              parameters, nullptr) != 0)
    return 1;
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  const int running = symbol<int(void *)>("hipStreamQuery")(nullptr);
  if (running != 600) {
    std::fprintf(stderr, "the kernel does not run while the process ends: hipStreamQuery gave %d\n", running);
    return 1;
  }
  if (std::strcmp(argv[3], "close") == 0) {
    dlclose(library);
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
  }
  return 0;
}
