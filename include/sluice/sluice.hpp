//===- sluice.hpp - the C ABI as C++17 types ------------------------------------------------------------===//
//
// Header only. The structs are those of the C ABI, which the functions of sluice/make.h fill. This header
// adds owners that release what they hold, and results that must be checked before the value is taken.
//
//     const sluice::ContextDesc desc(SLUICE_DEVICE_EMULATED);
//     const auto context = sluice::Context::create(desc).value();      // throws sluice::Exception
//     if (auto plan = context.plan(attention)) plan->run(args).value(); // or ask first
//     else report(plan.error().message());
//
// Only Result::value() throws; programs compiled without exceptions do not have it.
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------------------------------------===//
#ifndef SLUICE_SLUICE_HPP
#define SLUICE_SLUICE_HPP

/**
 * @file
 * @brief The C ABI as header-only C++17: owners and results.
 */

#include <sluice/device.h>
#include <sluice/make.h>

#include <cassert>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>

/** The C ABI as C++17 types. */
namespace sluice {

/* ------------------------------------------------------------------------------------------- errors --- */

/** Details of a failed call. Written only when a call fails. */
class Error {
public:
  /** No error yet. */
  Error() noexcept { // calls need only these two fields; failures set the rest
    raw.struct_size = sizeof raw;
    raw.code = SLUICE_OK;
  }
  /** For a wrapper's own failure. */
  Error(sluice_status code, const char *field, const char *message, int32_t hip_code = 0) noexcept : Error() {
    raw.code = code;
    raw.hip_code = hip_code;
    std::snprintf(raw.field, sizeof raw.field, "%s", field);
    std::snprintf(raw.message, sizeof raw.message, "%s", message);
  }

  /** One of the SLUICE_* codes; SLUICE_OK if nothing has failed. */
  sluice_status code() const noexcept { return raw.code; }
  /** The name of code(). */
  const char *code_name() const noexcept { return sluice_status_name(raw.code); }
  /** The hipError_t if a HIP call failed, for any code; otherwise 0. */
  int32_t hip_code() const noexcept { return raw.code == SLUICE_OK ? 0 : raw.hip_code; }
  /** The argument at fault, e.g. "k.stride[1]", or empty. Lives as long as this. */
  std::string_view field() const noexcept { return raw.code == SLUICE_OK ? "" : raw.field; }
  /** One sentence. Lives as long as this. */
  std::string_view message() const noexcept { return raw.code == SLUICE_OK ? "" : raw.message; }
  /** For functions of the C ABI. */
  sluice_error *c() noexcept { return &raw; }

private:
  sluice_error raw;
};

/** What Result::value() throws. */
class Exception : public std::exception {
public:
  /** Carries a failed call's error. */
  explicit Exception(const Error &error) noexcept : what_failed(error) {}
  /** The message. */
  const char *what() const noexcept override { return what_failed.message().data(); }
  /** The error itself. */
  const Error &error() const noexcept { return what_failed; }

private:
  Error what_failed;
};

/** A value or an error. Move-only if T is. */
template <class T> class [[nodiscard]] Result {
public:
  /** Success. */
  Result(T value) noexcept : content(std::move(value)) {}
  /** Failure. */
  Result(const Error &error) noexcept : failure(error) {}

  /** Whether there is a value. */
  explicit operator bool() const noexcept { return content.has_value(); }
  /** Why the call failed. */
  const Error &error() const noexcept { return failure; }
  /** The value, which must exist. */
  T &operator*() noexcept { return assert(content), *content; }
  /** The value, which must exist. */
  const T &operator*() const noexcept { return assert(content), *content; }
  /** The value, which must exist. */
  T *operator->() noexcept { return &**this; }
  /** The value, which must exist. */
  const T *operator->() const noexcept { return &**this; }
#if defined(__cpp_exceptions)
  /** The value. @throws Exception if the call failed */
  T value() && { return content ? std::move(*content) : throw Exception(failure); }
  /** The value. @throws Exception if the call failed */
  T &value() & { return content ? *content : throw Exception(failure); }
  /** The value. @throws Exception if the call failed */
  const T &value() const & { return content ? *content : throw Exception(failure); }
#endif

private:
  std::optional<T> content;
  Error failure;
};

/** Success or an error. */
template <> class [[nodiscard]] Result<void> {
public:
  /** Makes a call of the C ABI, which gets the sluice_error to write to. */
  template <class Call, class = decltype(std::declval<Call>()(static_cast<sluice_error *>(nullptr)))>
  explicit Result(Call call) noexcept : failure(), status(call(failure.c())) {}
  /** Failure: for functions that make several calls, when an earlier one failed. */
  Result(const Error &error) noexcept : failure(error), status(error.code()) {}

  /** Whether the call succeeded. */
  explicit operator bool() const noexcept { return status == SLUICE_OK; }
  /** Why it failed. */
  const Error &error() const noexcept { return failure; }
#if defined(__cpp_exceptions)
  /** Nothing. @throws Exception if the call failed */
  void value() const {
    if (status != SLUICE_OK) throw Exception(failure);
  }
#endif

private:
  Error failure; // declared before the status, because the call that makes the status writes it
  sluice_status status;
};

/* ------------------------------------------------------------------------------------------ structs --- */

/** A struct of the C ABI, zeroed, with its size set: for those that sluice/make.h does not make. */
template <class T> struct Sized : T {
  Sized() noexcept : T{} { this->struct_size = sizeof(T); }
};

/** Where and when; members as in sluice_launch. */
using Launch = Sized<sluice_launch>;

/** Describes a context; members as in sluice_context_desc. */
struct ContextDesc : Sized<sluice_context_desc> {
  /** A device by its ordinal: SLUICE_DEVICE_HIP or SLUICE_DEVICE_EMULATED. */
  explicit ContextDesc(sluice_device_kind device, int32_t ordinal = 0) noexcept {
    kind = device;
    device_ordinal = ordinal;
  }
  /** A chip by its name, "gfx942:304", which must outlive the call that takes this. */
  explicit ContextDesc(const char *chip) noexcept {
    kind = SLUICE_DEVICE_TARGET;
    target = chip;
  }
};

/** Elements that are stored together. */
struct Block {
  uint32_t elements; /**< 1 for most types. */
  uint32_t bytes;    /**< Of these elements. */
};

/** The block of a type: an element for most types; zeros for a number that is not a sluice_dtype. */
constexpr Block block_of(uint32_t dtype) noexcept {
  return dtype == SLUICE_F32                              ? Block{1, 4}
         : dtype == SLUICE_F16 || dtype == SLUICE_BF16    ? Block{1, 2}
         : dtype >= SLUICE_E4M3FNUZ && dtype <= SLUICE_I8 ? Block{1, 1}
         : dtype == SLUICE_U4                             ? Block{2, 1}
         : dtype == SLUICE_Q8_0                           ? Block{32, 34}
         : dtype == SLUICE_Q4_0                           ? Block{32, 18}
                                                          : Block{0, 0};
}

/** Bytes of an element; 0 for a number that is not a sluice_dtype, and for types of blocks with several. */
constexpr uint32_t element_bytes(uint32_t dtype) noexcept {
  return block_of(dtype).elements == 1 ? block_of(dtype).bytes : 0;
}

/* ------------------------------------------------------------------------------------------- owners --- */

namespace detail {
/** Calls a function of the C ABI. */
template <class Function, class... Arguments>
Result<void> called(Function function, Arguments... arguments) noexcept {
  return Result<void>([&](sluice_error *error) { return function(arguments..., error); });
}
/** The struct that a function of the C ABI fills. */
template <class T, class Function, class... Arguments>
Result<Sized<T>> filled(Function function, Arguments... arguments) noexcept {
  Sized<T> value;
  Error error;
  if (function(arguments..., &value, error.c()) != SLUICE_OK) return error;
  return value;
}
/** An owner of what a function of the C ABI makes. */
template <class T, class Function, class... Arguments>
Result<T> made(Function function, Arguments... arguments) noexcept {
  decltype(std::declval<T &>().c()) handle = nullptr;
  Error error;
  if (function(arguments..., &handle, error.c()) != SLUICE_OK) return error;
  return T(handle);
}
/** The result of a function of sluice/device.h, which calls this function of HIP. */
inline Error hip_error(const char *function, int code) noexcept {
  return {code == 0 ? SLUICE_OK : SLUICE_HIP, function, "the HIP function failed", code};
}

/** The only owner of a handle. */
template <class T, void (*release)(T *)> class Owner {
public:
  /** Takes over a handle of the C ABI. */
  explicit Owner(T *taken) noexcept : handle(taken) {}
  Owner(Owner &&other) noexcept : handle(other.let_go()) {}
  Owner &operator=(Owner &&other) noexcept {
    T *const old = std::exchange(handle, other.let_go());
    if (old) release(old);
    return *this;
  }
  ~Owner() {
    if (handle) release(handle);
  }

  /** For functions of the C ABI; this object still owns it. */
  T *c() const noexcept { return handle; }
  /** Releases the handle: the caller owns it from now on. */
  T *let_go() noexcept { return std::exchange(handle, nullptr); }

private:
  T *handle;
};
/** Frees device memory. */
struct Free {
  const sluice_context *context; /**< Of the memory. */
  /** Frees it. */
  void operator()(void *memory) const noexcept { sluice_device_free(context, memory); }
};
} // namespace detail

/**
 * A class of calls with its kernels chosen and loaded; valid also when the context is destroyed. Threads: any
 * number at once. Destroy it (or assign to it) only after the work it enqueued has completed.
 */
class Plan : public detail::Owner<sluice_plan, sluice_plan_destroy> {
public:
  using Owner::Owner;

  /** As sluice_attention_run: enqueues one call. */
  Result<void> run(const sluice_attention_args &args, const sluice_launch &launch = Launch()) const noexcept {
    return detail::called(sluice_attention_run, c(), &args, &launch);
  }
  /** As sluice_plan_describe. */
  auto describe() const noexcept { return detail::filled<sluice_plan_info>(sluice_plan_describe, c()); }
  /** As sluice_plan_counters. */
  auto counters() const noexcept { return detail::filled<sluice_counters>(sluice_plan_counters, c()); }
};

/** A device, or a named target without one, and the kernels for it. Threads: any number at once. */
class Context : public detail::Owner<sluice_context, sluice_context_destroy> {
public:
  using Owner::Owner;

  /** As sluice_context_create. */
  static Result<Context> create(const sluice_context_desc &desc) noexcept {
    return detail::made<Context>(sluice_context_create, &desc);
  }

  /** As sluice_attention_plan. */
  Result<Plan> plan(const sluice_attention &attention) const noexcept {
    return detail::made<Plan>(sluice_attention_plan, c(), &attention);
  }
  /** As sluice_attention_support. */
  Result<Sized<sluice_support>> support(const sluice_attention &attention) const noexcept {
    return detail::filled<sluice_support>(sluice_attention_support, c(), &attention);
  }
  /** As sluice_attention_preload for the kernels of one problem. */
  Result<void> preload(const sluice_attention &attention) const noexcept {
    return detail::called(sluice_attention_preload, c(), &attention);
  }
  /** As sluice_attention_preload for every kernel. */
  Result<void> preload() const noexcept { return detail::called(sluice_attention_preload, c(), nullptr); }
  /** As sluice_cache_append. */
  Result<void> append(const sluice_append_args &args, const sluice_launch &launch = Launch()) const noexcept {
    return detail::called(sluice_cache_append, c(), &args, &launch);
  }
  /** As sluice_cache_copy. */
  Result<void> copy(const sluice_copy_args &args, const sluice_launch &launch = Launch()) const noexcept {
    return detail::called(sluice_cache_copy, c(), &args, &launch);
  }
  /** As sluice_cache_gather. */
  Result<void> gather(const sluice_gather_args &args, const sluice_launch &launch = Launch()) const noexcept {
    return detail::called(sluice_cache_gather, c(), &args, &launch);
  }
  /** As sluice_attention_merge. */
  Result<void> merge(const sluice_merge_args &args, const sluice_launch &launch = Launch()) const noexcept {
    return detail::called(sluice_attention_merge, c(), &args, &launch);
  }

  /** As sluice_context_device. */
  Result<Sized<sluice_device_info>> device() const noexcept {
    return detail::filled<sluice_device_info>(sluice_context_device, c());
  }
  /** Number of kernels that kernel() can return. */
  Result<uint32_t> kernel_count() const noexcept {
    uint32_t count = 0;
    Error error;
    if (sluice_list_kernels(c(), 0, nullptr, &count, error.c()) != SLUICE_OK) return error;
    return count;
  }
  /** As sluice_list_kernels. */
  Result<Sized<sluice_kernel_info>> kernel(uint32_t index) const noexcept {
    return detail::filled<sluice_kernel_info>([&](sluice_kernel_info *info, sluice_error *error) {
      return sluice_list_kernels(c(), index, info, nullptr, error);
    });
  }
  /** As sluice_context_hip_symbol: `context.hip<int(void **, size_t)>("hipMalloc")`, or nullptr. */
  template <class Function> Function *hip(const char *name) const noexcept {
    return reinterpret_cast<Function *>(sluice_context_hip_symbol(c(), name));
  }
  /** Waits for a stream, by default the default stream. */
  Result<void> wait(void *stream = nullptr) const noexcept {
    return detail::hip_error("hipStreamSynchronize", sluice_device_wait(c(), stream));
  }
  /** As sluice_set_ranges. */
  Result<void> set_ranges(bool enabled) const noexcept {
    return detail::called(sluice_set_ranges, c(), enabled ? 1u : 0u);
  }
  /** As sluice_set_trace. */
  Result<void> set_trace(sluice_trace_fn trace, void *user) const noexcept {
    return detail::called(sluice_set_trace, c(), trace, user);
  }
};

/** Memory of a context's device. The context must outlive it. */
class Memory {
public:
  /** Memory with any contents. */
  static Result<Memory> allocate(const Context &context, std::size_t bytes) noexcept {
    void *address = nullptr;
    const int code = sluice_device_malloc(context.c(), &address, bytes);
    if (code != 0) return detail::hip_error("hipMalloc", code);
    return Memory(address, context.c());
  }

  /** Copies from host memory. */
  Result<void> write(const void *source, std::size_t bytes) const noexcept {
    return detail::hip_error("hipMemcpy", sluice_device_write(device(), data(), source, bytes));
  }
  /** Waits for the default stream and copies to host memory. */
  Result<void> read(void *target, std::size_t bytes) const noexcept {
    return detail::hip_error("hipMemcpy", sluice_device_read(device(), target, data(), bytes));
  }
  /** Its address on the device. */
  void *data() const noexcept { return owned.get(); }

private:
  Memory(void *address, const sluice_context *context) noexcept : owned(address, detail::Free{context}) {}
  const sluice_context *device() const noexcept { return owned.get_deleter().context; }

  std::unique_ptr<void, detail::Free> owned;
};

/* ---------------------------------------------------------------------------------------- functions --- */

/** As sluice_attention_reference: host pointers, double precision. */
inline Result<void> reference(const sluice_attention &attention, const sluice_attention_args &args) noexcept {
  return detail::called(sluice_attention_reference, &attention, &args);
}
/** As sluice_cache_append_reference: host pointers. */
inline Result<void> reference(const sluice_append_args &args) noexcept {
  return detail::called(sluice_cache_append_reference, &args);
}
/** As sluice_cache_copy_reference: host pointers. */
inline Result<void> reference(const sluice_copy_args &args) noexcept {
  return detail::called(sluice_cache_copy_reference, &args);
}
/** As sluice_cache_gather_reference: host pointers. */
inline Result<void> reference(const sluice_gather_args &args) noexcept {
  return detail::called(sluice_cache_gather_reference, &args);
}
/** As sluice_build_info. */
inline Result<Sized<sluice_build>> build_info() noexcept {
  return detail::filled<sluice_build>(sluice_build_info);
}

} // namespace sluice

#endif
