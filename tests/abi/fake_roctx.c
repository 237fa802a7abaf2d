/*===- fake_roctx.c - roctx's ranges, which write down what they are called with ------------------------===*/
#include <stdio.h>
#include <string.h>

/* The ranges of the process since the last time, e.g. "(outer(inner))". */
static char ranges[4096];

static void add(const char *text) {
  const size_t used = strlen(ranges);
  snprintf(ranges + used, sizeof ranges - used, "%s", text);
}

__attribute__((visibility("default"))) int roctxRangePushA(const char *message) {
  add("(");
  add(message);
  return 0;
}

__attribute__((visibility("default"))) int roctxRangePop(void) {
  add(")");
  return 0;
}

__attribute__((visibility("default"))) const char *fake_roctx_take(void) {
  static char taken[sizeof ranges];
  memcpy(taken, ranges, sizeof ranges);
  ranges[0] = '\0';
  return taken;
}
