//===- interposed.cpp - counts, and fails, allocations and locks of the whole process -------------------===//
#include "interposed.h"

#include <cerrno>

#include <dlfcn.h>
#include <pthread.h>

namespace sluice::test {
Interposed interposed;
}

using sluice::test::interposed;

namespace {

bool may_allocate() {
  return interposed.allocations++ < interposed.first_failing;
}

void *counted(void *block) {
  interposed.blocks += block != nullptr;
  return block;
}

template <typename Function> Function *next(const char *name) {
  return reinterpret_cast<Function *>(dlsym(RTLD_NEXT, name));
}

} // namespace

// glibc's own names of malloc and its relatives.
extern "C" {
void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *pointer, size_t size);
void *__libc_memalign(size_t alignment, size_t size);
void __libc_free(void *pointer);

void *malloc(size_t size) {
  return may_allocate() ? counted(__libc_malloc(size)) : nullptr;
}
void *calloc(size_t count, size_t size) {
  return may_allocate() ? counted(__libc_calloc(count, size)) : nullptr;
}
void *aligned_alloc(size_t alignment, size_t size) {
  return may_allocate() ? counted(__libc_memalign(alignment, size)) : nullptr;
}
int posix_memalign(void **pointer, size_t alignment, size_t size) {
  *pointer = aligned_alloc(alignment, size);
  return *pointer == nullptr ? ENOMEM : 0;
}
void *realloc(void *pointer, size_t size) {
  if (!may_allocate()) return nullptr;
  void *block = __libc_realloc(pointer, size);
  return pointer == nullptr ? counted(block) : block;
}
void free(void *pointer) {
  interposed.blocks -= pointer != nullptr;
  __libc_free(pointer);
}

int pthread_mutex_lock(pthread_mutex_t *mutex) {
  ++interposed.locks;
  static const auto lock = next<int(pthread_mutex_t *)>("pthread_mutex_lock");
  return lock(mutex);
}
int pthread_mutex_trylock(pthread_mutex_t *mutex) {
  ++interposed.locks;
  static const auto lock = next<int(pthread_mutex_t *)>("pthread_mutex_trylock");
  return lock(mutex);
}
int pthread_rwlock_rdlock(pthread_rwlock_t *rwlock) {
  ++interposed.locks;
  static const auto lock = next<int(pthread_rwlock_t *)>("pthread_rwlock_rdlock");
  return lock(rwlock);
}
int pthread_rwlock_wrlock(pthread_rwlock_t *rwlock) {
  ++interposed.locks;
  static const auto lock = next<int(pthread_rwlock_t *)>("pthread_rwlock_wrlock");
  return lock(rwlock);
}
} // extern "C"
