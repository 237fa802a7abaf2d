/*===- context.h - devices, and where calls happen, the C ABI ---------------------------------------------===
 *
 * A context is a device, or a target by name, with the kernels for it. A launch says on which stream a call
 * happens.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *===------------------------------------------------------------------------------------------------===*/
#ifndef SLUICE_CONTEXT_H
#define SLUICE_CONTEXT_H

/**
 * @file
 * @brief Contexts, devices and launches.
 */

#include <sluice/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/** A device, or a named target without one, and the kernels for it. */
typedef struct sluice_context sluice_context;

/** The kind of device that a context represents. */
enum sluice_device_kind {
  SLUICE_DEVICE_HIP = 1,      /**< A GPU, through the HIP runtime of the process. */
  SLUICE_DEVICE_EMULATED = 2, /**< The bundled gfx942 emulator: same machine code, same calls. */
  SLUICE_DEVICE_TARGET = 3    /**< A chip by name: answers questions and makes plans, but cannot run. */
};

/** Returns the HIP entry point of that name, or NULL. Must answer for as long as the context lives. */
typedef void *(*sluice_hip_resolver)(const char *name, void *user);

/** Input of sluice_context_create. */
typedef struct sluice_context_desc {
  uint32_t struct_size;             /**< sizeof(sluice_context_desc). */
  uint32_t kind;                    /**< sluice_device_kind; required. */
  int32_t device_ordinal;           /**< HIP and EMULATED: as for hipSetDevice. TARGET: must be 0. */
  uint32_t flags;                   /**< Must be 0. */
  const char *target;               /**< TARGET: chip and compute units, "gfx942:304"; otherwise NULL. */
  sluice_hip_resolver hip_resolver; /**< HIP only, nullable: take every HIP entry point from here. */
  void *hip_resolver_user;          /**< Passed to hip_resolver. */
  const void *pack;                 /**< Nullable: a kernel pack to use instead of the embedded one. */
  uint64_t pack_bytes;              /**< Size of `pack`; its memory must outlive the context and its plans. */
} sluice_context_desc;

/** Zeroes the struct and sets struct_size. @return SLUICE_INVALID_ARGUMENT if it is NULL or size too small */
SLUICE_API sluice_status sluice_context_desc_init(sluice_context_desc *desc, size_t size) SLUICE_NOEXCEPT;

/**
 * Makes a context.
 *
 * HIP: entry points come from desc->hip_resolver; else from the libamdhip64 that the process has
 * already loaded; else from libamdhip64.so.7, .6 or .5, whichever the system finds first. The library never
 * loads a second HIP runtime and assumes no path. It initialises the HIP runtime (hipInit) and leaves the
 * calling thread's current device unchanged.
 *
 * EMULATED: opens libsluice_emulator.so.1 by name, else from the folder of the file that libsluice.so is
 * mapped from; a program linked with libsluice.a finds it by name only. A program that runs with more rights
 * than its user (AT_SECURE: setuid, file capabilities) gets SLUICE_NO_DEVICE.
 *
 * TARGET: touches no device and no library.
 *
 * @param desc   the device, or the target
 * @param out    receives the context; NULL on failure. The caller owns it: sluice_context_destroy.
 * @param error  nullable
 * @return SLUICE_OK; SLUICE_INVALID_ARGUMENT; SLUICE_NEWER_STRUCT; SLUICE_NO_DEVICE (no runtime, a
 *         missing entry point, no such ordinal; the message names it); SLUICE_WRONG_ARCH; SLUICE_HIP;
 *         SLUICE_PACK_CORRUPT; SLUICE_OUT_OF_MEMORY
 */
SLUICE_API sluice_status sluice_context_create(const sluice_context_desc *desc, sluice_context **out,
                                               sluice_error *error) SLUICE_NOEXCEPT;

/**
 * Releases a context; NULL is allowed. Plans made with it stay valid: what they share is released with the
 * last of them.
 */
SLUICE_API void sluice_context_destroy(sluice_context *context) SLUICE_NOEXCEPT;

/** The device of a context. */
typedef struct sluice_device_info {
  uint32_t struct_size;        /**< sizeof(sluice_device_info). */
  uint32_t kind;               /**< sluice_device_kind. */
  int32_t ordinal;             /**< Device ordinal; -1 for a target. */
  uint32_t compute_units;      /**< Compute units. */
  uint32_t wave_size;          /**< Lanes of a wave. */
  uint32_t lds_bytes;          /**< LDS bytes available to a workgroup. */
  int32_t hip_runtime_version; /**< hipRuntimeGetVersion; 0 for a target or if it is unknown. */
  uint32_t reserved;           /**< 0. */
  char chip[32];               /**< Processor without features: "gfx942". */
  char arch[64];               /**< As the runtime reports it: "gfx942:sramecc+:xnack-". */
  char name[128];              /**< Marketing name, or empty. */
  char runtime[160];           /**< Where HIP comes from: a file name, "caller" or "none". */
} sluice_device_info;

/** Zeroes the struct and sets struct_size. @return SLUICE_INVALID_ARGUMENT if it is NULL or size too small */
SLUICE_API sluice_status sluice_device_info_init(sluice_device_info *info, size_t size) SLUICE_NOEXCEPT;

/** Fills `info`. @return SLUICE_OK; SLUICE_INVALID_ARGUMENT */
SLUICE_API sluice_status sluice_context_device(const sluice_context *context, sluice_device_info *info,
                                               sluice_error *error) SLUICE_NOEXCEPT;

/**
 * Returns the HIP entry point of that name in the context's runtime, real or emulated (which also has those
 * of sluice/emulator.h), to be cast to the function's type: to allocate, copy and synchronise without linking
 * HIP. sluice/device.h does so.
 * @return NULL if the runtime has no such entry point, for a target, or for a NULL argument
 */
SLUICE_API void *sluice_context_hip_symbol(const sluice_context *context, const char *name) SLUICE_NOEXCEPT;

/* ----------------------------------------------------------------------------------------- launches --- */

/** Kind of a dependency. */
enum sluice_dependency_kind {
  SLUICE_DEPENDS_ON_EVENT = 1, /**< Wait for `event`, which the caller has recorded. */
  SLUICE_DEPENDS_ON_STREAM = 2 /**< Record `event` on `stream` now and wait for it, so for all work there. */
};

/** Something that must complete before a run starts. An array element, so it never grows. */
typedef struct sluice_dependency {
  uint32_t kind;     /**< sluice_dependency_kind. */
  uint32_t reserved; /**< Must be 0. */
  void *event;       /**< hipEvent_t of the caller; required for both kinds: the library creates no events. */
  void *stream;      /**< hipStream_t for SLUICE_DEPENDS_ON_STREAM (NULL: the default stream); else NULL. */
} sluice_dependency;

/** Where and when a run happens. */
typedef struct sluice_launch {
  uint32_t struct_size;      /**< sizeof(sluice_launch). */
  uint32_t dependency_count; /**< Elements of `dependencies`. */
  void *stream;              /**< hipStream_t of the context's device; NULL is the default stream. */
  void *workspace;           /**< Device memory, aligned and sized as the plan says; may hold anything. */
  uint64_t workspace_bytes;  /**< Size of `workspace`. */
  const sluice_dependency *dependencies; /**< Work that the run waits for; NULL if the count is 0. */
  void *signal_event;                    /**< Nullable hipEvent_t, recorded on `stream` after the run. */
} sluice_launch;

/** Zeroes the struct and sets struct_size. @return SLUICE_INVALID_ARGUMENT if it is NULL or size too small */
SLUICE_API sluice_status sluice_launch_init(sluice_launch *launch, size_t size) SLUICE_NOEXCEPT;

#ifdef __cplusplus
}
#endif

#endif
