/* A third-party program, in C that is also C++, which opens the emulator and asks for its devices. */
#include <dlfcn.h>
#include <sluice/emulator.h>
#include <stdio.h>
#include <string.h>

typedef void *(*symbol_function)(const char *name);
typedef int (*counters_function)(sluice_emulator_counters_t *out, size_t size);
typedef int (*device_count_function)(int *count);

/* Checks that these are the header's types; nothing is linked. */
enum {
  checked = sizeof(1 ? (symbol_function)0 : sluice_emulator_symbol) +
            sizeof(1 ? (counters_function)0 : sluice_emulator_counters)
};

int main(void) {
  void *const library = dlopen("libsluice_emulator.so.1", RTLD_NOW | RTLD_LOCAL);
  if (library == NULL) {
    printf("%s\n", dlerror());
    return 1;
  }
  void *address = dlsym(library, "sluice_emulator_symbol");
  symbol_function symbol = NULL;
  memcpy(&symbol, &address, sizeof symbol);
  counters_function counters = NULL;
  address = symbol("sluice_emulator_counters");
  memcpy(&counters, &address, sizeof counters);
  device_count_function device_count = NULL;
  address = symbol("hipGetDeviceCount");
  memcpy(&device_count, &address, sizeof device_count);

  int devices = 0;
  sluice_emulator_counters_t counts;
  if (device_count(&devices) != 0 || counters(&counts, sizeof counts) != SLUICE_EMULATOR_OK) return 1;
  printf("%d device, %llu launches\n", devices, (unsigned long long)counts.launches);
  return checked > 0 ? 0 : 1;
}
