/*===- recorder.h - what calls of the C ABI were given, as text ----------------------------------------===
 *
 * A library that is loaded in the place of libsluice.so: calls that would compute write down every struct
 * that they are given, so that bindings can be compared with C. recorded_generated.c has the tables of the
 * structs, and these calls; recorder.c writes the text, and has the other functions of the interface.
 *
 *===------------------------------------------------------------------------------------------------===*/
#ifndef SLUICE_RECORDER_H
#define SLUICE_RECORDER_H

#include <sluice/sluice.h>

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

struct recorded_value {
  const char *name;
  int64_t value;
};

/* The enumerators of an enum that are not 0. */
struct recorded_names {
  const struct recorded_value *values;
  size_t count;
  int are_bits;
};

enum recorded_kind { SIGNED, UNSIGNED, FLOAT, ADDRESS, STRUCT };

struct recorded_struct;

struct recorded_member {
  const char *name;
  enum recorded_kind kind;
  size_t offset;
  size_t size;     /* Of an element. */
  size_t elements; /* Inside of the struct. */
  const struct recorded_struct *of;
  int is_pointer; /* To host memory. */
  int is_list;    /* `count` is the offset of a member that counts the elements there. */
  size_t count;
  const struct recorded_names *names;
};

struct recorded_struct {
  const char *name;
  size_t size;
  int is_sized; /* It begins with struct_size. */
  const struct recorded_member *members;
  size_t count;
};

/* Begins what a function was given. Ends the program if there is no file to write it to. */
FILE *recording_begin(const char *function);
void recording_end(FILE *to);

/* A struct that may be NULL, with all that it leads to in host memory. */
void recording_struct(FILE *to, const char *path, const struct recorded_struct *of, const void *at);

/* A handle, which is worth a line only if it is not the one that the recorder has given. */
void recording_handle(FILE *to, const char *path, const void *given, const void *right);

/* The handles that the recorder gives. */
extern sluice_context *const recorder_sluice_context;
extern sluice_plan *const recorder_sluice_plan;

void recorder_answer_sluice_support(sluice_support *support);
sluice_status recorder_init(void *made, size_t given, size_t size);

#endif
