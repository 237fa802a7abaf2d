/*===- between.h - what tests put between sluice and a HIP runtime ---------------------------===*/
#ifndef SLUICE_GO_HIPTEST_H
#define SLUICE_GO_HIPTEST_H

#include <stdint.h>

/* Of all calls since the last go_hiptest_reset. */
typedef struct go_hiptest_calls {
  int64_t synchronized;  /* hipDeviceSynchronize has begun. */
  int64_t unloaded;      /* hipModuleUnload. */
  int64_t unloaded_held; /* Of these, while work was held. */
} go_hiptest_calls;

/* Forgets calls, and has the next `refusals` of hipDeviceSynchronize return `code` at once. */
void go_hiptest_reset(int64_t refusals, int code);
go_hiptest_calls go_hiptest_read(void);

/* What was made and is not destroyed yet; nothing resets it. */
typedef struct go_hiptest_live {
  int64_t graphs, executables, host_memories;
} go_hiptest_live;
go_hiptest_live go_hiptest_read_live(void);

/* The function that takes the place of HIP's of that name, or that one. */
void *go_hiptest_replace(const char *name, void *real);

/* Holds a stream up until go_hiptest_let_go; hipLaunchHostFunc's code. */
int go_hiptest_hold(void *launch_host_func, uintptr_t stream);
void go_hiptest_let_go(void);

#endif
