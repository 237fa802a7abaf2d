/*===- fake_emulator.c - an emulator whose HIP entry points are those of fake_hip_library.c -------------===*/
#include <dlfcn.h>
#include <stddef.h>

__attribute__((visibility("default"))) void *sluice_emulator_symbol(const char *name) {
  Dl_info self;
  if (dladdr((void *)&sluice_emulator_symbol, &self) == 0) return NULL;
  void *library = dlopen(self.dli_fname, RTLD_NOW | RTLD_NOLOAD);
  return library == NULL ? NULL : dlsym(library, name);
}
