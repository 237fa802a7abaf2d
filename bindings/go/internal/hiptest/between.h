/*===- between.h - what tests put between sluice and a HIP runtime ---------------------------===*/
#ifndef SLUICE_GO_HIPTEST_H
#define SLUICE_GO_HIPTEST_H

#include <stdint.h>

/* Counts of calls since the last go_hiptest_reset. */
typedef struct go_hiptest_calls {
  int64_t synchronized;  /* hipDeviceSynchronize has begun. */
  int64_t unloaded;      /* hipModuleUnload. */
  int64_t unloaded_held; /* hipModuleUnload while work was held. */
} go_hiptest_calls;

/* Clears the counts, and makes the next `refusals` calls of hipDeviceSynchronize return `code` at once. */
void go_hiptest_reset(int64_t refusals, int code);
go_hiptest_calls go_hiptest_read(void);

/* Counts of live objects; nothing resets them. */
typedef struct go_hiptest_live {
  int64_t graphs, executables, host_memories;
} go_hiptest_live;
go_hiptest_live go_hiptest_read_live(void);

/* Returns the replacement for HIP's function of that name, or the function itself. */
void *go_hiptest_replace(const char *name, void *real);

/* Blocks a stream until go_hiptest_let_go; returns hipLaunchHostFunc's code. */
int go_hiptest_hold(void *launch_host_func, uintptr_t stream);
void go_hiptest_let_go(void);

#endif
