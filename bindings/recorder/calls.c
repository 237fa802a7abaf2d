/*===- calls.c - makes the calls of calls.h, with their names in the recording --------------------------===*/
#include "calls.h"

#include <stdio.h>
#include <stdlib.h>

sluice_context *context;

void check(sluice_status status, const sluice_error *error) {
  if (status == SLUICE_OK) return;
  fprintf(stderr, "%s: %s\n", sluice_status_name(status), error->message);
  exit(1);
}

sluice_launch on_stream(void) {
  sluice_launch launch = {0};
  launch.struct_size = sizeof launch;
  launch.stream = at(900);
  return launch;
}

static void make(const struct call *calls, const char *recording) {
  for (; calls->name != NULL; calls++) {
    FILE *to = fopen(recording, "a");
    if (to == NULL) exit(1);
    fprintf(to, "call %s\n", calls->name);
    fclose(to);
    calls->make();
  }
}

int main(void) {
  const char *recording = getenv("SLUICE_RECORD");
  if (recording == NULL) return 1;
  sluice_error error = {.struct_size = sizeof error};
  sluice_context_desc desc = sluice_make_context_desc(SLUICE_DEVICE_TARGET, 0);
  desc.target = "gfx942:304";
  check(sluice_context_create(&desc, &context, &error), &error);
  make(attention_calls, recording);
  make(cache_calls, recording);
  sluice_context_destroy(context);
  return 0;
}
