/*===- calls.h - the calls that every binding makes, in C ----------------------------------------------===
 *
 * What they give to the library is in calls.txt. Programs in other languages make the same calls with the
 * same numbers, and as far as possible no two numbers of a call are the same, so that none can be confused.
 * Nothing is computed: memory is only addresses.
 *
 *===------------------------------------------------------------------------------------------------===*/
#ifndef SLUICE_RECORDER_CALLS_H
#define SLUICE_RECORDER_CALLS_H

#include <sluice/make.h>

extern sluice_context *context;

/* Device memory number n, far from what an operating system maps. */
static inline void *at(uint64_t n) {
  return (void *)(uintptr_t)(0x200000000000u + n * 0x100000u);
}

/* Ends the program if a call was refused. */
void check(sluice_status status, const sluice_error *error);

/* The launch of calls that need nothing but a stream. */
sluice_launch on_stream(void);

struct call {
  const char *name;
  void (*make)(void);
};

/* Each ends with a call without a name. */
extern const struct call attention_calls[], cache_calls[];

#endif
