/* The first calls of a thread when memory is exhausted: each returns an error, and none ends the process.
 *
 * usage: thread_memory LIBRARY. In C, so that the C++ library, too, is opened later and the dynamic linker
 * allocates its thread-local variables on first use. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

enum { hip_success = 0, hip_out_of_memory = 2 };
enum { stream_per_thread = 2 };
enum { most_tls_bytes = 64 };

static atomic_bool memory_is_out;
static atomic_int failed_allocations;

/* glibc's own names of these functions; the dynamic linker allocates with this program's, too. */
void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *pointer, size_t size);
void *__libc_memalign(size_t alignment, size_t size);

static int refused(void) {
  if (!atomic_load(&memory_is_out)) return 0;
  atomic_fetch_add(&failed_allocations, 1);
  return 1;
}
void *malloc(size_t size) {
  return refused() ? NULL : __libc_malloc(size);
}
void *calloc(size_t count, size_t size) {
  return refused() ? NULL : __libc_calloc(count, size);
}
void *realloc(void *pointer, size_t size) {
  return refused() ? NULL : __libc_realloc(pointer, size);
}
void *aligned_alloc(size_t alignment, size_t size) {
  return refused() ? NULL : __libc_memalign(alignment, size);
}

typedef struct {
  uint32_t x, y, z;
} extent;

static struct {
  void *(*symbol)(const char *name);
  int (*configure)(const char *key, const char *value);
  int (*get_last_error)(void);
  int (*get_device)(int *device);
  int (*allocate)(void **pointer, size_t size);
  int (*release)(void *pointer);
  int (*query)(void *stream);
  int (*exchange_mode)(int *mode);
  int (*push)(extent grid, extent block, size_t lds_bytes, void *stream);
  int (*pop)(extent *grid, extent *block, size_t *lds_bytes, void **stream);
} hip;

static int wrong;
static void expect(int condition, const char *what) {
  if (condition) return;
  wrong = 1;
  fprintf(stderr, "failed: %s\n", what);
}
#define EXPECT(condition) expect(condition, #condition)

static void *without_memory(void *first_call) {
  void *const own_stream = (void *)(uintptr_t)stream_per_thread;
  const extent one = {1, 1, 1};
  extent grid, block;
  void *memory = NULL, *stream = NULL;
  size_t lds_bytes = 0;
  int device = -1, mode = 0;
  atomic_store(&failed_allocations, 0);
  atomic_store(&memory_is_out, 1);
  int got[7] = {0};
  /* Each of them is the first call of its thread once. */
  for (int i = 0; i < 7; ++i) {
    const int call = (i + (int)(intptr_t)first_call) % 7;
    switch (call) {
    case 0:
      got[call] = hip.get_device(&device);
      break;
    case 1:
      got[call] = hip.allocate(&memory, 64);
      break;
    case 2:
      got[call] = hip.query(own_stream);
      break;
    case 3:
      got[call] = hip.exchange_mode(&mode);
      break;
    case 4:
      got[call] = hip.push(one, one, 0, NULL);
      break;
    case 5:
      got[call] = hip.configure("seed", "1");
      break;
    case 6:
      got[call] = hip.symbol("hipMalloc") != NULL;
      break;
    }
  }
  const int last = hip.get_last_error();
  atomic_store(&memory_is_out, 0);
  EXPECT(atomic_load(&failed_allocations) > 0);
  for (int call = 0; call < 5; ++call)
    EXPECT(got[call] == hip_out_of_memory);
  EXPECT(got[5] != 0 && got[6] == 0);
  EXPECT(last == hip_out_of_memory);

  /* With memory again everything works. */
  EXPECT(hip.get_device(&device) == hip_success && device == 0);
  EXPECT(hip.allocate(&memory, 64) == hip_success && hip.release(memory) == hip_success);
  EXPECT(hip.query(own_stream) == hip_success);
  EXPECT(hip.push(one, one, 5, NULL) == hip_success);
  /* A second one grows the stack, and keeps the first. */
  atomic_store(&memory_is_out, 1);
  const int second = hip.push(one, one, 6, NULL);
  atomic_store(&memory_is_out, 0);
  EXPECT(second == hip_out_of_memory);
  EXPECT(hip.pop(&grid, &block, &lds_bytes, &stream) == hip_success && lds_bytes == 5);
  return NULL;
}

/* Memory allocated along with a thread must be small, and marked as such. */
static int check_tls(struct dl_phdr_info *info, size_t size, void *name) {
  (void)size;
  if (strstr(info->dlpi_name, name) == NULL) return 0;
  int is_static = 0;
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const ElfW(Phdr) *const header = &info->dlpi_phdr[i];
    if (header->p_type == PT_TLS) EXPECT(header->p_memsz <= most_tls_bytes);
    if (header->p_type != PT_DYNAMIC) continue;
    for (const ElfW(Dyn) *entry = (const void *)(info->dlpi_addr + header->p_vaddr); entry->d_tag != DT_NULL;
         ++entry)
      if (entry->d_tag == DT_FLAGS) is_static = (entry->d_un.d_val & DF_STATIC_TLS) != 0;
  }
  EXPECT(is_static);
  return 1;
}

int main(int count, char **arguments) {
  if (count != 2) return 2;
  void *const library = dlopen(arguments[1], RTLD_NOW | RTLD_LOCAL);
  if (library == NULL) {
    fprintf(stderr, "%s\n", dlerror());
    return 1;
  }
  *(void **)&hip.symbol = dlsym(library, "sluice_emulator_symbol");
  const struct {
    void *field;
    const char *name;
  } names[] = {
      {&hip.configure, "sluice_emulator_configure"},
      {&hip.get_last_error, "hipGetLastError"},
      {&hip.get_device, "hipGetDevice"},
      {&hip.allocate, "hipMalloc"},
      {&hip.release, "hipFree"},
      {&hip.query, "hipStreamQuery"},
      {&hip.exchange_mode, "hipThreadExchangeStreamCaptureMode"},
      {&hip.push, "__hipPushCallConfiguration"},
      {&hip.pop, "__hipPopCallConfiguration"},
  };
  for (size_t i = 0; i < sizeof names / sizeof *names; ++i)
    *(void **)names[i].field = hip.symbol(names[i].name);
  EXPECT(dl_iterate_phdr(check_tls, "libsluice_emulator") == 1);
  void *memory = NULL;
  EXPECT(hip.allocate(&memory, 64) == hip_success && hip.release(memory) == hip_success);
  for (intptr_t first_call = 0; first_call < 7; ++first_call) {
    pthread_t thread;
    if (pthread_create(&thread, NULL, without_memory, (void *)first_call) != 0) return 2;
    pthread_join(thread, NULL);
  }
  return wrong;
}
