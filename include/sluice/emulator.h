/*===- emulator.h - the C entry points of libsluice_emulator ------------------------------------------===
 *
 * A gfx942 GPU in software, used through HIP's functions. The library exports only these names; HIP's
 * functions are looked up by name, so that the dynamic linker can never mistake it for a HIP runtime.
 * Programs open it with dlopen("libsluice_emulator.so.1") and start at sluice_emulator_symbol. Every function
 * may be called from any thread. None aborts, prints or throws.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *===------------------------------------------------------------------------------------------------===*/
#ifndef SLUICE_EMULATOR_H
#define SLUICE_EMULATOR_H

/**
 * @file
 * @brief The C entry points of libsluice_emulator.so.1, a gfx942 GPU in software.
 */

#include <stddef.h>
#include <stdint.h>

#define SLUICE_EMULATOR_API __attribute__((visibility("default")))

#ifdef __cplusplus
extern "C" {
#endif

/** Returns the function of that name, of HIP or of this header; NULL for any other name, or if memory ran
 * out. */
SLUICE_EMULATOR_API void *sluice_emulator_symbol(const char *name);

/** Done. */
#define SLUICE_EMULATOR_OK 0
/** The setting or instruction does not exist. */
#define SLUICE_EMULATOR_UNKNOWN_KEY 1
/** The function does not take this argument, or not now; or memory ran out. */
#define SLUICE_EMULATOR_BAD_VALUE 2

/** Sets how launches enqueued from now on run.
 * @verbatim
 *   checks               "all" (those on by default), "none", or a comma-separated list of those to switch on
 *   <name of a check>    "on" or "off"; "report": on, its reports are warnings; "fault": on, they are errors
 *   warnings             the checks that only warn: "default", "all" that can, "none", or a comma-separated
 *                        list. The default is lds_equal_stores, lds_write_after_read, lane_stores,
 *                        divergent_barriers, barrier_places, global_equal_stores, hazards_compiler,
 *                        hazards_by_count, hazards_waived, leaks, ignored_errors and unwritten_copies. See
 *                        "Reports and faults" below
 *   tolerated            the checks whose errors do not fail their launch: "none", "findings" (lds_races,
 *                        global_races, stale_caches, stream_races, uninitialised and barriers), "all" that
 *                        can, or a comma-separated list
 *   suppressions         a path: a file of rules, one a line, each of three patterns (* and ?): kernel, kind
 *                        of report, place. Reports that a rule describes are left out, and fail no launch
 *   kernel               a pattern (* and ?): only launches of kernels with such names are checked
 *   launch_skip          number of launches, of those that "kernel" selects, that are not checked first
 *   launch_count         number of launches that are checked after those; "all" is the initial value
 *   host_calls           "on": reports say which call of the program launched the kernel, and which allocated
 *                        the memory
 *   completion           "late", "early" or "random": when loads arrive
 *   wave_schedule        "greedy": a wave runs until it has to wait; "round_robin": one instruction each;
 *                        "random": a few of a wave drawn at random
 *   workgroup_schedule   "ascending", "descending", "by_xcd" or "random": the order in which workgroups start
 *   seed                 number: the seed of everything random
 *   perturb_transcendentals
 *                        "on": results of v_exp, v_log, v_rcp, v_rsq, v_sqrt, v_sin and v_cos move by up to
 *                        one unit in the last place, as they may in hardware
 *   fidelity             "on": lines of report_file say which instructions the launch approximated, what it
 *                        used that is not modelled, and which addresses and branches depend on approximated
 *                        values; slower
 *   preload_kernargs     "off": kernels that ask for arguments in registers do not get them, and begin with
 *                        the code that loads them, as with firmware that lacks this feature
 *   scramble_nans        "on": NaNs produced by vector instructions get random payloads
 *   threads              number of host threads a launch uses; 0: all
 *   instruction_budget   number of instructions after which a wave is stopped and its launch fails; the
 *                        report (budget_exhausted) names the instruction it had reached. 0, the initial
 *                        value: no limit, so that a kernel that never ends runs on, as on a GPU
 *   max_reports          number of places kept per launch, at least 1, for each kind of report and for
 *                        hazards of each rule; further ones of that kind or rule are only counted
 *   count_bank_conflicts "on" or "off"
 *   stream_order         "concurrent": streams run at the same time; a number: work runs only when the
 *                        program waits or asks, in an order drawn with this seed from those that streams,
 *                        events and the null stream's rule allow. Set while all streams are idle
 *   devices              "1" to "8": number of GPUs. Only while no memory, module, stream or event is left;
 *                        "defaults" does not reset it
 *   clear_fault          "1": clears the sticky errors of devices, once all streams are idle
 *   reset_counters       "1"
 *   defaults             "1": resets all of the above to their initial values
 *   report_file          a path: each launch that ends appends a line of JSON with its counters and reports,
 *                        and each report outside a launch appends one with 0 launches.
 *                        sluice_emulator_take_reports still returns them
 *
 * Reports and faults. A report is an error, a warning or a note ("severity" in its JSON).
 *   An error fails its launch: waiting for it returns hipErrorIllegalAddress (memory refuses an access that
 * is out of bounds, freed, read-only, misaligned, beyond scratch, or of another device without peer access)
 * or hipErrorLaunchFailure (everything else). The device stays in that state until "clear_fault". A warning
 * is only reported: the launch succeeds, and its results can be copied. A note is about the whole program.
 * "warnings" says for each check whether its reports are errors. Some always are: accesses that memory
 * refuses (the check global_bounds), where lanes read 0 and store nothing, and states that a wave cannot
 * continue from (unknown_instruction, invalid_pc, trap, misaligned, budget_exhausted, barrier_deadlock,
 * launch_refused). A race of streams is an error outside any launch: no launch fails.
 * @endverbatim
 */
SLUICE_EMULATOR_API int sluice_emulator_configure(const char *key, const char *value);

/** Checks the contents of a call's arrays: returns 0 if they keep its rules. Otherwise it writes a sentence,
 * of at most `size` bytes with the final zero, into `message`. */
typedef int (*sluice_emulator_check_t)(const void *call, char *message, size_t size);

/** For libraries that launch kernels: whether the check "contents" is on. */
SLUICE_EMULATOR_API int sluice_emulator_checks_contents(void);

/** Whether the device may access memory at this address: it was allocated, registered or pinned. 1 where it
 * cannot be told, in a forked process. */
SLUICE_EMULATOR_API int sluice_emulator_has_memory(const void *address);

/** For libraries that launch kernels: enqueues a check of what the next launch on the stream, a hipStream_t,
 * will read. When the work before it is done, `check` gets a copy of the `bytes` bytes of `call`, and reads
 * device memory in place. Its sentence becomes a report (bad_contents) in `name`; if that is an error, the
 * work after it does not run. While the stream is capturing, the check becomes a node of the graph.
 * SLUICE_EMULATOR_BAD_VALUE if it cannot be enqueued. */
SLUICE_EMULATOR_API int sluice_emulator_check_call(void *stream, const char *name,
                                                   sluice_emulator_check_t check, const void *call,
                                                   size_t bytes);

/** Sums over launches. */
typedef struct sluice_emulator_counters_t {
  uint64_t wave_instructions;      /**< issued by waves */
  uint64_t waves;                  /**< that ran */
  uint64_t workgroups;             /**< that have ended */
  uint64_t mfma_instructions;      /**< part of wave_instructions */
  uint64_t lds_bank_conflicts;     /**< extra LDS cycles for them; only while they are counted */
  uint64_t launches;               /**< that have ended */
  uint64_t live_streams;           /**< created and not destroyed */
  uint64_t live_events;            /**< created and not destroyed */
  uint64_t busy_streams_destroyed; /**< destroyed with work left, which HIP may not run */
  uint64_t
      buffer_lanes_out_of_range; /**< of buffer accesses, wholly or partly: they read 0 or store nothing */
  uint64_t reports_dropped;      /**< reports at places beyond those that are kept */
} sluice_emulator_counters_t;

/** Writes sums over all launches that have ended; workgroups are counted as they end, so that progress is
 * visible. Fills the first `size` bytes of the struct, which grows at its end: pass the size that the caller
 * was built with. SLUICE_EMULATOR_BAD_VALUE if `size` is larger than this library's struct. */
SLUICE_EMULATOR_API int sluice_emulator_counters(sluice_emulator_counters_t *out, size_t size);

/** Counts the executed MFMAs of one kind in launches that have ended, as in mfma_instructions.
 * `mnemonic` is as the assembler prints it, e.g. "v_mfma_f32_32x32x8_f16". SLUICE_EMULATOR_UNKNOWN_KEY if it
 * does not exist. */
SLUICE_EMULATOR_API int sluice_emulator_mfma_count(const char *mnemonic, uint64_t *count);

/** Counts accesses to the memory at [start, start + bytes) by kernels enqueued from now on. loads[i] grows by
 * one each time that a lane or a scalar instruction loads from dword i, and stores[i] for each store; an
 * atomic counts as both. Lanes out of a buffer's range, and those that a check refuses, are not counted.
 * `start` and `bytes` must be multiples of 4; either array may be NULL; the arrays must live until
 * sluice_emulator_unwatch. SLUICE_EMULATOR_BAD_VALUE if a watched range overlaps. */
SLUICE_EMULATOR_API int sluice_emulator_watch(const void *start, size_t bytes, uint32_t *loads,
                                              uint32_t *stores);
/** Stops watching, once all streams are idle. SLUICE_EMULATOR_BAD_VALUE if no watched range starts there. */
SLUICE_EMULATOR_API int sluice_emulator_unwatch(const void *start);

/** For allocators that hand out pieces of a block: makes the block from hipMalloc at `start`, of `bytes`
 * bytes, a pool. Launches submitted from now on, except those of graphs, may access only its pieces: an
 * access between them is out of bounds, and one of a piece that was freed is an access of freed memory.
 * SLUICE_EMULATOR_BAD_VALUE unless a live block of that size starts there that is not a pool. */
SLUICE_EMULATOR_API int sluice_emulator_pool_create(const void *start, size_t bytes);
/** Makes it an ordinary block again; also before it is freed. SLUICE_EMULATOR_BAD_VALUE if no pool starts
 * there. */
SLUICE_EMULATOR_API int sluice_emulator_pool_destroy(const void *start);
/** The allocator hands out a piece of a pool. `address` is a multiple of 4. What was written there earlier
 * counts as written. SLUICE_EMULATOR_BAD_VALUE if it is not within one pool, or overlaps a live piece. */
SLUICE_EMULATOR_API int sluice_emulator_pool_allocated(const void *address, size_t bytes);
/** The allocator takes a piece back. Work submitted earlier may still use it. SLUICE_EMULATOR_BAD_VALUE if no
 * live piece starts there. */
SLUICE_EMULATOR_API int sluice_emulator_pool_freed(const void *address);

/** Takes the reports since the last take, as a JSON array, oldest first; the same mistake in several
 * launches is one report with a "count". At most 1024 of each kind, and of each rule and level of hazards,
 * are kept. Returns the size that the whole text needs, including the final zero, and writes the text only if
 * it fits into `size` bytes (else an empty string): call with 0 first, or with a buffer that is large enough.
 * Reports are removed only if they were written. 0 if memory ran out. */
SLUICE_EMULATOR_API size_t sluice_emulator_take_reports(char *buffer, size_t size);

/** Writes static figures of a kernel of a gfx942 code object as a JSON object: registers, LDS, spills,
 * occupancy, and the instruction mix of the whole kernel and of each loop with MFMAs. {"error": "..."} if the
 * kernel cannot be read. Writes text and returns as sluice_emulator_take_reports does. */
SLUICE_EMULATOR_API size_t sluice_emulator_kernel_stats(const void *elf, size_t elf_size, const char *kernel,
                                                        char *buffer, size_t size);

/** Writes a kernel's machine code as text, one "address: instruction" a line; "error: ..." if it cannot
 * be read.
 * Writes text and returns as sluice_emulator_take_reports does. */
SLUICE_EMULATOR_API size_t sluice_emulator_disassemble(const void *elf, size_t elf_size, const char *kernel,
                                                       char *buffer, size_t size);

#ifdef __cplusplus
}
#endif

#endif
