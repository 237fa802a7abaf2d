/*===- recorder.c - writes what calls were given, and answers the others -------------------------------===*/
#include "recorder.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

/* --------------------------------------------------------------------------------------------- text --- */

enum { PATH_BYTES = 256 };

FILE *recording_begin(const char *function) {
  const char *name = getenv("SLUICE_RECORD");
  FILE *to = name != NULL ? fopen(name, "a") : NULL;
  if (to == NULL) {
    fprintf(stderr, "SLUICE_RECORD is '%s'; it must be a file to write to\n", name != NULL ? name : "");
    abort();
  }
  fprintf(to, "%s\n", function);
  return to;
}

void recording_end(FILE *to) {
  fclose(to);
}

/* Ends the program if a path is too long, which a recursion would be. */
static void set_path(char *path, const char *format, ...) {
  va_list values;
  va_start(values, format);
  const int length = vsnprintf(path, PATH_BYTES, format, values);
  va_end(values);
  if (length >= PATH_BYTES) abort();
}

static uint64_t whole_number(const void *at, size_t size) {
  uint32_t narrow = 0;
  uint64_t wide = 0;
  memcpy(size == sizeof narrow ? (void *)&narrow : (void *)&wide, at, size);
  return size == sizeof narrow ? narrow : wide;
}

static void write_named(FILE *to, const struct recorded_names *names, uint64_t value) {
  const char *between = " ";
  for (size_t i = 0; i < names->count; i++) {
    const uint64_t is = (uint64_t)names->values[i].value;
    if (names->are_bits ? (value & is) != is : value != is) continue;
    fprintf(to, "%s%s", between, names->values[i].name);
    between = "|";
    value &= ~is;
  }
  if (value != 0) fprintf(to, "%s%" PRIu64, between, value);
}

static void write_element(FILE *to, const struct recorded_member *member, const void *at) {
  const uint64_t value = whole_number(at, member->size);
  float number = 0;
  switch (member->kind) {
  case FLOAT:
    memcpy(&number, at, sizeof number);
    fprintf(to, " %.9g", (double)number); /* Enough digits for every float. */
    break;
  case ADDRESS:
    fprintf(to, " 0x%" PRIx64, value);
    break;
  case SIGNED:
    fprintf(to, " %" PRId64, member->size == sizeof(int32_t) ? (int64_t)(int32_t)value : (int64_t)value);
    break;
  default:
    if (member->names != NULL && value != 0)
      write_named(to, member->names, value);
    else
      fprintf(to, " %" PRIu64, value);
  }
}

static void write_members(FILE *to, const char *path, const struct recorded_struct *of, const char *at);

/* Elements that are structs, one after the other. Structs that can grow say themselves how large they are. */
static void write_structs(FILE *to, const char *path, const struct recorded_member *member, const char *at,
                          uint64_t count) {
  char inner[PATH_BYTES];
  for (uint64_t i = 0; i < count; i++) {
    if (member->is_list)
      set_path(inner, "%s[%" PRIu64 "]", path, i);
    else
      set_path(inner, "%s", path);
    if (member->is_pointer) fprintf(to, "  %s = %s\n", inner, member->of->name);
    write_members(to, inner, member->of, at);
    at += member->of->is_sized ? whole_number(at, sizeof(uint32_t)) : member->size;
  }
}

static int is_zero(const char *at, size_t bytes) {
  for (size_t i = 0; i < bytes; i++)
    if (at[i] != 0) return 0;
  return 1;
}

static void write_member(FILE *to, const char *path, const struct recorded_member *member, const char *base) {
  const char *at = base + member->offset;
  uint64_t count = member->elements;
  if (member->is_pointer) {
    const char *elsewhere = NULL;
    memcpy(&elsewhere, at, sizeof elsewhere);
    if (elsewhere == NULL) return;
    at = elsewhere;
    if (member->is_list) count = whole_number(base + member->count, sizeof(uint32_t));
  }
  if (member->kind == STRUCT) {
    write_structs(to, path, member, at, count);
  } else if (member->is_pointer || !is_zero(at, member->size * count)) {
    fprintf(to, "  %s =", path);
    for (uint64_t i = 0; i < count; i++)
      write_element(to, member, at + i * member->size);
    fprintf(to, "\n");
  }
}

static void write_members(FILE *to, const char *path, const struct recorded_struct *of, const char *at) {
  char inner[PATH_BYTES];
  /* Right sizes are not written, so that a struct can grow. */
  if (of->is_sized && whole_number(at, sizeof(uint32_t)) != of->size) {
    fprintf(to, "  %s.struct_size = %" PRIu64 ", not %zu\n", path, whole_number(at, sizeof(uint32_t)),
            of->size);
    return;
  }
  for (size_t i = 0; i < of->count; i++) {
    set_path(inner, "%s.%s", path, of->members[i].name);
    write_member(to, inner, &of->members[i], at);
  }
}

void recording_struct(FILE *to, const char *path, const struct recorded_struct *of, const void *at) {
  fprintf(to, "  %s = %s\n", path, at != NULL ? of->name : "NULL");
  if (at != NULL) write_members(to, path, of, at);
}

void recording_handle(FILE *to, const char *path, const void *given, const void *right) {
  if (given != right) fprintf(to, "  %s is not the handle that was made\n", path);
}

/* ------------------------------------------------------------------------------------------ answers --- */

static char context_handle, plan_handle;
sluice_context *const recorder_sluice_context = (sluice_context *)&context_handle;
sluice_plan *const recorder_sluice_plan = (sluice_plan *)&plan_handle;

sluice_status recorder_init(void *made, size_t given, size_t size) {
  const uint32_t written = (uint32_t)size;
  if (made == NULL || given < size) return SLUICE_INVALID_ARGUMENT;
  memset(made, 0, given);
  memcpy(made, &written, sizeof written);
  return SLUICE_OK;
}

void recorder_answer_sluice_support(sluice_support *support) {
  support->workspace_alignment = 256;
  support->workspace_bytes = 4096;
  support->pointer_alignment = 16;
  support->stride_multiple = 8;
  snprintf(support->kernel, sizeof support->kernel, "recorded");
}

static sluice_status refuse(sluice_error *error, sluice_status code, const char *message) {
  if (error != NULL) {
    error->code = code;
    snprintf(error->message, sizeof error->message, "%s", message);
  }
  return code;
}

const char *sluice_status_name(sluice_status status) {
  return status == SLUICE_OK ? "SLUICE_OK" : "unknown status";
}

uint32_t sluice_abi_version(void) {
  return SLUICE_ABI_MAJOR << 16 | SLUICE_ABI_MINOR;
}

const char *sluice_version(void) {
  return SLUICE_VERSION;
}

sluice_status sluice_build_info(sluice_build *build, sluice_error *error) {
  (void)error;
  snprintf(build->version, sizeof build->version, "%s", SLUICE_VERSION);
  return SLUICE_OK;
}

void sluice_set_log(sluice_log_fn log, void *user, uint32_t max_level) {
  (void)log, (void)user, (void)max_level;
}

/* Only a target needs no HIP. */
sluice_status sluice_context_create(const sluice_context_desc *desc, sluice_context **out,
                                    sluice_error *error) {
  *out = NULL;
  if (desc->kind != SLUICE_DEVICE_TARGET)
    return refuse(error, SLUICE_NO_DEVICE, "the recorder has no device: kind must be SLUICE_DEVICE_TARGET");
  *out = recorder_sluice_context;
  return SLUICE_OK;
}

void sluice_context_destroy(sluice_context *context) {
  (void)context;
}

sluice_status sluice_context_device(const sluice_context *context, sluice_device_info *info,
                                    sluice_error *error) {
  (void)context, (void)error;
  info->kind = SLUICE_DEVICE_TARGET;
  info->ordinal = -1;
  info->compute_units = 304;
  info->wave_size = 64;
  snprintf(info->chip, sizeof info->chip, "gfx942");
  return SLUICE_OK;
}

void *sluice_context_hip_symbol(const sluice_context *context, const char *name) {
  (void)context, (void)name;
  return NULL;
}

void sluice_plan_destroy(sluice_plan *plan) {
  (void)plan;
}

sluice_status sluice_plan_describe(const sluice_plan *plan, sluice_plan_info *info, sluice_error *error) {
  (void)plan, (void)error;
  info->workspace_alignment = 256;
  info->workspace_bytes = 4096;
  snprintf(info->kernel, sizeof info->kernel, "recorded");
  return SLUICE_OK;
}

sluice_status sluice_list_kernels(const sluice_context *context, uint32_t index, sluice_kernel_info *info,
                                  uint32_t *count, sluice_error *error) {
  (void)context, (void)index;
  if (count != NULL) *count = 0;
  return info == NULL ? SLUICE_OK
                      : refuse(error, SLUICE_INVALID_ARGUMENT, "index must be below the 0 kernels");
}

sluice_status sluice_set_trace(sluice_context *context, sluice_trace_fn trace, void *user,
                               sluice_error *error) {
  (void)context, (void)trace, (void)user, (void)error;
  return SLUICE_OK;
}

sluice_status sluice_set_ranges(sluice_context *context, uint32_t enabled, sluice_error *error) {
  (void)context, (void)enabled, (void)error;
  return SLUICE_OK;
}

sluice_status sluice_plan_counters(const sluice_plan *plan, sluice_counters *counters, sluice_error *error) {
  (void)plan, (void)counters, (void)error;
  return SLUICE_OK;
}
