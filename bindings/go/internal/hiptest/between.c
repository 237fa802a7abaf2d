/*===- between.c - what tests put between sluice and a HIP runtime ---------------------------===*/
#include "between.h"

#include <stdatomic.h>
#include <stddef.h>
#include <string.h>
#include <time.h>

static int (*real_synchronize)(void);
static int (*real_unload)(void *);
static int (*real_end_capture)(void *, void **);
static int (*real_graph_destroy)(void *);
static int (*real_instantiate)(void **, void *, void *, char *, size_t);
static int (*real_exec_destroy)(void *);
static int (*real_host_malloc)(void **, size_t, unsigned);
static int (*real_host_free)(void *);
static _Atomic int64_t graphs, executables, host_memories;
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

go_hiptest_live go_hiptest_read_live(void) {
  return (go_hiptest_live){graphs, executables, host_memories};
}

/* Adjusts a count if a call has made or destroyed an object. */
static int count(_Atomic int64_t *live, int change, int code) {
  if (code == 0) *live += change;
  return code;
}

static int end_capture(void *stream, void **graph) {
  return count(&graphs, 1, real_end_capture(stream, graph));
}

static int graph_destroy(void *graph) {
  return count(&graphs, -1, real_graph_destroy(graph));
}

static int instantiate(void **executable, void *graph, void *node, char *log, size_t bytes) {
  return count(&executables, 1, real_instantiate(executable, graph, node, log, bytes));
}

static int exec_destroy(void *executable) {
  return count(&executables, -1, real_exec_destroy(executable));
}

static int host_malloc(void **memory, size_t bytes, unsigned flags) {
  return count(&host_memories, 1, real_host_malloc(memory, bytes, flags));
}

static int host_free(void *memory) {
  return count(&host_memories, -1, real_host_free(memory));
}

void *go_hiptest_replace(const char *name, void *real) {
  const struct {
    const char *name;
    void *real, *replacement; /* the replacement finds the real function in `real` */
  } all[] = {
      {"hipDeviceSynchronize", &real_synchronize, (void *)synchronize},
      {"hipModuleUnload", &real_unload, (void *)unload},
      {"hipStreamEndCapture", &real_end_capture, (void *)end_capture},
      {"hipGraphDestroy", &real_graph_destroy, (void *)graph_destroy},
      {"hipGraphInstantiate", &real_instantiate, (void *)instantiate},
      {"hipGraphExecDestroy", &real_exec_destroy, (void *)exec_destroy},
      {"hipHostMalloc", &real_host_malloc, (void *)host_malloc},
      {"hipHostFree", &real_host_free, (void *)host_free},
  };
  for (size_t i = 0; i < sizeof all / sizeof all[0]; ++i)
    if (strcmp(name, all[i].name) == 0) {
      memcpy(all[i].real, &real, sizeof real);
      return all[i].replacement;
    }
  return real;
}

int go_hiptest_hold(void *launch_host_func, uintptr_t stream) {
  held = 1;
  return ((int (*)(void *, void (*)(void *), void *))launch_host_func)((void *)stream, wait_while_held, NULL);
}

void go_hiptest_let_go(void) {
  held = 0;
}
