//===- old_libc.cpp - symbols that are newer than the oldest system the library runs on -----------------===//
//
// A linker binds a call to the newest version of its function, and the library then loads only with a libc
// that has it. These functions also have older versions with the same meaning in every glibc; the library's
// calls come here and use those. tests/abi/check_floors.py lists the remaining ones.
//
// The older exp and log differ in that they set errno through _LIB_VERSION; nothing here reads it. The
// functions of libdl are in libc from 2.34 on, where libdl.so.2 is an empty library. The version script, and
// in libsluice.a the joining of its objects, hide all of this from the program.
//
//===----------------------------------------------------------------------------------------------------===//
#include <new>

#define SLUICE_CALL_OLD(result, name, parameters, arguments)                                                 \
  extern "C" result sluice_old_##name parameters noexcept;                                                   \
  __asm__(".symver sluice_old_" #name ", " #name "@GLIBC_2.2.5");                                            \
  extern "C" result name parameters noexcept {                                                               \
    return sluice_old_##name arguments;                                                                      \
  }

SLUICE_CALL_OLD(double, exp, (double x), (x))
SLUICE_CALL_OLD(double, log, (double x), (x))
SLUICE_CALL_OLD(void *, dlopen, (const char *file, int mode), (file, mode))
SLUICE_CALL_OLD(void *, dlsym, (void *handle, const char *name), (handle, name))
SLUICE_CALL_OLD(char *, dlerror, (), ())

// glibc 2.32. If it is true, libstdc++ counts references without atomics.
extern "C" {
char __libc_single_threaded = 0;
}

// libstdc++ of GCC 11.
extern "C" void _ZSt28__throw_bad_array_new_lengthv() {
  throw std::bad_array_new_length();
}
