/*===- sluice.h - attention for AMD Instinct GPUs, the C ABI ----------------------------------------------===
 *
 * Describe attention, ask whether it is supported, make a plan, and run it as often as you like. The library
 * contains its kernels and finds HIP in the process at run time, so there is nothing else to install. Without
 * a GPU, the same machine code runs on the bundled gfx942 emulator.
 *
 * Five calls matter:
 *
 *     sluice_context_create       a device                                        context.h
 *     sluice_attention_plan       kernels for a class of calls                    attention.h
 *     sluice_attention_run        one call, on a stream                           attention.h
 *     sluice_cache_append         new rows of K and V into a cache                cache.h
 *     sluice_attention_support    what is supported, and what it needs            attention.h
 *
 * The others merge results over parts of the keys (merge.h), and show what happens (observe.h). types.h has
 * what all share. Dense attention with the inline functions of make.h, where q, k, v and o are device memory:
 *
 *     sluice_context_desc desc = sluice_make_context_desc(SLUICE_DEVICE_HIP, 0);
 *     sluice_context *context;
 *     sluice_plan *plan;
 *     sluice_error error = {sizeof error};
 *     sluice_kv_format format = sluice_kv_tensors(SLUICE_F16, kv_heads, dim);
 *     sluice_attention attention = sluice_make_attention(SLUICE_F16, heads, &format);
 *     sluice_kv kv = sluice_make_kv(&format, sluice_bshd(k, keys, kv_heads, dim),
 *                                   sluice_bshd(v, keys, kv_heads, dim));
 *     sluice_keys set = sluice_keys_of_equal(&kv, keys);
 *     sluice_attention_args args = sluice_make_call(batch, rows, sluice_bshd(q, rows, heads, dim),
 *                                                   sluice_bshd(o, rows, heads, dim), &set);
 *     if (sluice_context_create(&desc, &context, &error) ||
 *         sluice_attention_plan(context, &attention, &plan, &error) ||
 *         sluice_attention_run(plan, &args, NULL, &error))
 *       fprintf(stderr, "%s: %s\n", sluice_status_name(error.code), error.message);
 *
 * Rules of all functions:
 *
 * - A request is computed correctly or refused with a reason. No member is ever accepted and ignored.
 * - A function that can refuse takes a nullable `sluice_error *` and returns a `sluice_status`. The library
 *   never prints, aborts, throws, or installs handlers.
 * - Structs that begin with struct_size grow, at their end; callers set it to sizeof, and everything else
 * that they do not use to 0. A library that knows fewer members than the caller returns SLUICE_NEWER_STRUCT
 * if an unknown one is not zero; `reserved` members count as unknown. The other structs never grow.
 * - A feature that is not wanted has no struct: the pointer to it is NULL. Required members are refused if
 * they are 0.
 * - A call without rows (no sequences, no tokens, no pairs) does nothing and returns SLUICE_OK.
 * - The caller owns all memory; the library keeps no pointer after a call returns unless the function says
 * so.
 * - Contexts and plans are immutable (except for traces and ranges) and may be shared by any number of
 * threads. Nobody may destroy an object while a thread uses it; any thread may destroy it.
 * - A forked process cannot use a device that its parent had used: docs/concepts/ownership.md.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *===------------------------------------------------------------------------------------------------===*/
#ifndef SLUICE_SLUICE_H
#define SLUICE_SLUICE_H

/**
 * @file
 * @brief The C ABI of libsluice.so. The opening comment is the introduction.
 */

#include <sluice/attention.h>
#include <sluice/cache.h>
#include <sluice/context.h>
#include <sluice/merge.h>
#include <sluice/observe.h>
#include <sluice/types.h>

#endif
