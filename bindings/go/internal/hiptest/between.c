/*===- between.c - what tests put between sluice and a HIP runtime ---------------------------===*/
#include "between.h"

#include <stdatomic.h>
#include <stddef.h>
#include <time.h>

static int (*real_synchronize)(void);
static int (*real_unload)(void *);
static atomic_int refusal_code, held;
static _Atomic int64_t refusals, synchronized, unloaded, unloaded_held;

static int synchronize(void) {
  ++synchronized;
  if (refusals > 0) {
    --refusals;
    return refusal_code;
  }
  return real_synchronize();
}

static int unload(void *module) {
  if (held) ++unloaded_held;
  const int code = real_unload(module);
  ++unloaded;
  return code;
}

static void wait_while_held(void *unused) {
  (void)unused;
  const struct timespec pause = {0, 1000000};
  while (held)
    nanosleep(&pause, NULL);
}

void go_hiptest_reset(int64_t wanted_refusals, int code) {
  refusal_code = code;
  refusals = wanted_refusals;
  synchronized = unloaded = unloaded_held = 0;
}

go_hiptest_calls go_hiptest_read(void) {
  return (go_hiptest_calls){synchronized, unloaded, unloaded_held};
}

void *go_hiptest_synchronize(void *real) {
  real_synchronize = (int (*)(void))real;
  return (void *)synchronize;
}

void *go_hiptest_unload(void *real) {
  real_unload = (int (*)(void *))real;
  return (void *)unload;
}

int go_hiptest_hold(void *launch_host_func, uintptr_t stream) {
  held = 1;
  return ((int (*)(void *, void (*)(void *), void *))launch_host_func)((void *)stream, wait_while_held, NULL);
}

void go_hiptest_let_go(void) {
  held = 0;
}
