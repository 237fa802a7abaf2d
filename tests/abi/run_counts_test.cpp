//===- run_counts_test.cpp - what one run costs in allocations, locks and HIP calls ---------------------===//
//
// The program defines malloc and the locks itself, so that every use in the process passes here, the
// library's included.
//
//===----------------------------------------------------------------------------------------------------===//
#include "fixture.h"

#include <atomic>
#include <cstdlib>

#include <dlfcn.h>
#include <pthread.h>

namespace {

std::atomic<size_t> allocations = 0;
std::atomic<size_t> locks = 0;

template <typename Function> Function *next(const char *name) {
  return reinterpret_cast<Function *>(dlsym(RTLD_NEXT, name));
}

} // namespace

// glibc's own names for what malloc and its relatives do.
extern "C" {
void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *pointer, size_t size);
void *__libc_memalign(size_t alignment, size_t size);

void *malloc(size_t size) {
  ++allocations;
  return __libc_malloc(size);
}
void *calloc(size_t count, size_t size) {
  ++allocations;
  return __libc_calloc(count, size);
}
void *realloc(void *pointer, size_t size) {
  ++allocations;
  return __libc_realloc(pointer, size);
}
void *aligned_alloc(size_t alignment, size_t size) {
  ++allocations;
  return __libc_memalign(alignment, size);
}
int posix_memalign(void **pointer, size_t alignment, size_t size) {
  ++allocations;
  return (*pointer = __libc_memalign(alignment, size)) == nullptr;
}

int pthread_mutex_lock(pthread_mutex_t *mutex) {
  ++locks;
  static const auto lock = next<int(pthread_mutex_t *)>("pthread_mutex_lock");
  return lock(mutex);
}
int pthread_mutex_trylock(pthread_mutex_t *mutex) {
  ++locks;
  static const auto lock = next<int(pthread_mutex_t *)>("pthread_mutex_trylock");
  return lock(mutex);
}
int pthread_rwlock_rdlock(pthread_rwlock_t *rwlock) {
  ++locks;
  static const auto lock = next<int(pthread_rwlock_t *)>("pthread_rwlock_rdlock");
  return lock(rwlock);
}
int pthread_rwlock_wrlock(pthread_rwlock_t *rwlock) {
  ++locks;
  static const auto lock = next<int(pthread_rwlock_t *)>("pthread_rwlock_wrlock");
  return lock(rwlock);
}
} // extern "C"

using namespace sluice::test;

TEST_CASE("a run makes one HIP call, allocates nothing and takes no lock", "[run_counts]") {
  FakeHip hip;
  const ContextHandle context = fake_context();
  const sluice_problem problem = good_problem();
  const sluice_args args = good_args();
  const sluice_launch launch = good_launch();

  // The counters see the library: a plan allocates and locks.
  allocations = locks = 0;
  const PlanHandle plan = make_plan(context, problem);
  REQUIRE(allocations > 0);
  REQUIRE(locks > 0);

  // Also the first run, with and without an error struct.
  for (const bool with_error : {false, true}) {
    Error error;
    hip.forget_calls();
    allocations = locks = 0;
    int refused = 0;
    for (int i = 0; i < 100; ++i) {
      refused += sluice_run(plan.get(), &args, &launch, with_error ? &error : nullptr) != SLUICE_OK;
    }
    const size_t run_allocations = allocations, run_locks = locks;
    CHECK(refused == 0);
    CHECK(run_allocations == 0);
    CHECK(run_locks == 0);
    CHECK(hip.count("hipModuleLaunchKernel") == 100);
    CHECK(hip.call_count == 100);
  }
}

TEST_CASE("dependencies and a signal cost their own HIP calls and nothing else", "[run_counts]") {
  FakeHip hip;
  const ContextHandle context = fake_context();
  const PlanHandle plan = make_plan(context, good_problem());
  const sluice_args args = good_args();
  sluice_launch launch = good_launch();
  const sluice_dependency dependencies[] = {
      {SLUICE_DEPENDS_ON_EVENT, 0, FakeHip::handle(11), nullptr},
      {SLUICE_DEPENDS_ON_STREAM, 0, FakeHip::handle(12), FakeHip::handle(0x200)}};
  launch.dependencies = dependencies;
  launch.dependency_count = 2;
  launch.signal_event = FakeHip::handle(13);
  hip.forget_calls();
  allocations = locks = 0;
  const sluice_status status = sluice_run(plan.get(), &args, &launch, nullptr);
  const size_t run_allocations = allocations, run_locks = locks;
  CHECK(status == SLUICE_OK);
  CHECK(run_allocations == 0);
  CHECK(run_locks == 0);
  CHECK(hip.call_count == 6);
}
