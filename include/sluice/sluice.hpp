//===- sluice.hpp - the C ABI as C++17 types ------------------------------------------------------------===//
//
// Header only: every call here is the call of sluice.h with the same name and behaves as documented there.
// This header adds owners that release what they hold, results that must be checked before the value is
// taken, and tensors that know their shape.
//
//     sluice::ContextDesc desc(SLUICE_DEVICE_EMULATED);
//     sluice::Context context = sluice::Context::create(desc).value();       // throws sluice::Exception
//     if (auto plan = context.plan(problem)) plan->run(args, launch).value(); // or ask first
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
 * @brief The C ABI as header-only C++17: owners, results and tensor views.
 */

#include <sluice/sluice.h>

#include <array>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <exception>
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
  /** For a wrapper's own check. */
  Error(sluice_status code, const char *field, const char *message) noexcept : Error() {
    raw.code = code;
    raw.hip_code = 0;
    std::strncpy(raw.field, field, sizeof raw.field - 1);
    raw.field[sizeof raw.field - 1] = '\0';
    std::strncpy(raw.message, message, sizeof raw.message - 1);
    raw.message[sizeof raw.message - 1] = '\0';
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
  T &operator*() noexcept {
    assert(content.has_value());
    return *content;
  }
  /** The value, which must exist. */
  const T &operator*() const noexcept {
    assert(content.has_value());
    return *content;
  }
  /** The value, which must exist. */
  T *operator->() noexcept { return &**this; }
  /** The value, which must exist. */
  const T *operator->() const noexcept { return &**this; }
#if defined(__cpp_exceptions)
  /** The value. @throws Exception if the call failed */
  T value() && {
    if (!content) throw Exception(failure);
    return std::move(*content);
  }
  /** The value. @throws Exception if the call failed */
  T &value() & {
    if (!content) throw Exception(failure);
    return *content;
  }
  /** The value. @throws Exception if the call failed */
  const T &value() const & {
    if (!content) throw Exception(failure);
    return *content;
  }
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

/* -------------------------------------------------------------------------------------- sized structs --- */

/** A struct of the C ABI, zeroed, with its size set, as by sluice_*_init. */
template <class T> struct Sized : T {
  Sized() noexcept : T{} { this->struct_size = sizeof(T); }
};

/** A class of calls; fields as in sluice_problem. */
using Problem = Sized<sluice_problem>;
/** One call; fields as in sluice_args. Views can be assigned to them: `args.q = view`. */
using Args = Sized<sluice_args>;
/** Where and when; fields as in sluice_launch. */
using Launch = Sized<sluice_launch>;
/** New rows for a cache; fields as in sluice_append. */
using Append = Sized<sluice_append>;
/** Results to be merged; fields as in sluice_merge. */
using Merge = Sized<sluice_merge>;
/** Pages to be copied; fields as in sluice_page_copy. */
using PageCopy = Sized<sluice_page_copy>;
/** Keys to be gathered; fields as in sluice_gather. */
using Gather = Sized<sluice_gather>;
/** What a plan's runs have done. */
using Counters = Sized<sluice_counters>;
/** Result of sluice_query_support. */
using Support = Sized<sluice_support>;
/** One kernel. */
using KernelInfo = Sized<sluice_kernel_info>;
/** Description of a plan. */
using PlanInfo = Sized<sluice_plan_info>;
/** The device of a context. */
using DeviceInfo = Sized<sluice_device_info>;
/** The version and build of the library. */
using BuildInfo = Sized<sluice_build>;

/** Describes a context; fields as in sluice_context_desc. */
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

/* ---------------------------------------------------------------------------------------------- views --- */

/** Elements that are stored together. */
struct Block {
  uint32_t elements; /**< 1 for most types. */
  uint32_t bytes;    /**< Of these elements. */
};

/** The block of a type: an element for most types; zeros for a number that is not a sluice_dtype. */
constexpr Block block_of(uint32_t dtype) noexcept {
  return dtype == SLUICE_F32                           ? Block{1, 4}
         : dtype == SLUICE_F16 || dtype == SLUICE_BF16 ? Block{1, 2}
         : dtype == SLUICE_E4M3FNUZ || dtype == SLUICE_E4M3FN || dtype == SLUICE_E5M2FNUZ ||
                 dtype == SLUICE_E5M2 || dtype == SLUICE_I8
             ? Block{1, 1}
         : dtype == SLUICE_U4   ? Block{2, 1}
         : dtype == SLUICE_Q8_0 ? Block{32, 34}
         : dtype == SLUICE_Q4_0 ? Block{32, 18}
                                : Block{0, 0};
}

/** Bytes of an element; 0 for a number that is not a sluice_dtype, and for types of blocks with several. */
constexpr uint32_t element_bytes(uint32_t dtype) noexcept {
  return block_of(dtype).elements == 1 ? block_of(dtype).bytes : 0;
}

/**
 * A tensor in memory that it does not own: element [a][b][c][d] is at data + sum(index * stride) elements.
 * Four dimensions, in the order of the C ABI: [batch, token, head, dim], or with pages [page, token in page,
 * head, dim].
 */
struct TensorView {
  void *data = nullptr;            /**< Element [0][0][0][0]. */
  uint32_t dtype = 0;              /**< sluice_dtype; 0 for the bytes of a mask. */
  std::array<int64_t, 4> extent{}; /**< Elements in each dimension. */
  std::array<int64_t, 4> stride{}; /**< Elements from one index to the next. */

  /** Rows of tokens, then heads: memory order [batch, token, head, dim]. */
  static constexpr TensorView bshd(void *data, uint32_t dtype, int64_t batch, int64_t tokens, int64_t heads,
                                   int64_t dim) noexcept {
    return {data, dtype, {batch, tokens, heads, dim}, {tokens * heads * dim, heads * dim, dim, 1}};
  }
  /** Heads, then rows of tokens: memory order [batch, head, token, dim]. */
  static constexpr TensorView bhsd(void *data, uint32_t dtype, int64_t batch, int64_t tokens, int64_t heads,
                                   int64_t dim) noexcept {
    return {data, dtype, {batch, tokens, heads, dim}, {tokens * heads * dim, dim, tokens * dim, 1}};
  }
  /** A ragged batch: sequences one after the other, [token, head, dim]. */
  static constexpr TensorView ragged(void *data, uint32_t dtype, int64_t tokens, int64_t heads,
                                     int64_t dim) noexcept {
    return {data, dtype, {1, tokens, heads, dim}, {0, heads * dim, dim, 1}};
  }
  /** @deprecated the name of `ragged` in release 1.0 */
  static constexpr TensorView packed(void *data, uint32_t dtype, int64_t tokens, int64_t heads,
                                     int64_t dim) noexcept {
    return ragged(data, dtype, tokens, heads, dim);
  }
  /** A paged cache with memory order [page, token in page, head, dim] (NHD). */
  static constexpr TensorView pages_nhd(void *data, uint32_t dtype, int64_t pages, int64_t page_size,
                                        int64_t heads, int64_t dim) noexcept {
    return bshd(data, dtype, pages, page_size, heads, dim);
  }
  /** A paged cache with memory order [page, head, token in page, dim] (HND). */
  static constexpr TensorView pages_hnd(void *data, uint32_t dtype, int64_t pages, int64_t page_size,
                                        int64_t heads, int64_t dim) noexcept {
    return bhsd(data, dtype, pages, page_size, heads, dim);
  }
  /** LSE, F32: memory order [batch, token, head]. */
  static constexpr TensorView lse(float *data, int64_t batch, int64_t tokens, int64_t heads) noexcept {
    return {data, SLUICE_F32, {batch, tokens, heads, 1}, {tokens * heads, heads, 1, 0}};
  }
  /** Scales of a paged K or V, F32, one per page and head: memory order [page, head]. */
  static constexpr TensorView page_scales(float *data, int64_t pages, int64_t heads) noexcept {
    return {data, SLUICE_F32, {pages, 1, heads, 1}, {heads, 0, 1, 0}};
  }

  /**
   * The part [first, first + count) of a dimension, 0 to 3.
   * @pre the part is within the extent and begins with a block, and dtype is a sluice_dtype or 0
   */
  TensorView slice(std::size_t dimension, int64_t first, int64_t count) const noexcept {
    assert(dimension < 4 && first >= 0 && count >= 0 && first <= extent[dimension] - count);
    TensorView part = *this;
    const Block block = dtype == 0 ? Block{1, 1} : block_of(dtype);
    assert(block.elements != 0 && first * stride[dimension] % int64_t(block.elements) == 0);
    part.data = static_cast<char *>(data) +
                first * stride[dimension] / int64_t(block.elements) * int64_t(block.bytes);
    part.extent[dimension] = count;
    return part;
  }

  /** The struct of the C ABI. */
  constexpr operator sluice_tensor() const noexcept {
    return {data, {stride[0], stride[1], stride[2], stride[3]}};
  }
};

namespace detail {
/** An extent as int32_t. One that does not fit stays too large, so that the library refuses it. */
constexpr int32_t count_of(int64_t extent) noexcept {
  return extent > INT32_MAX ? INT32_MAX : extent < 0 ? -1 : int32_t(extent);
}
} // namespace detail

/** The problem of dense calls with such tensors: their types, heads and head dims. */
inline Problem dense_problem(const TensorView &q, const TensorView &k, const TensorView &v,
                             const TensorView &o) noexcept {
  Problem problem;
  problem.q_type = q.dtype;
  problem.k_type = k.dtype;
  problem.v_type = v.dtype;
  problem.o_type = o.dtype;
  problem.q_heads = detail::count_of(q.extent[2]);
  problem.kv_heads = detail::count_of(k.extent[2]);
  problem.head_dim_qk = detail::count_of(q.extent[3]);
  problem.head_dim_v = detail::count_of(v.extent[3]);
  return problem;
}

/**
 * A dense call with these tensors: batch and lengths are their extents, of which 0 is no sequences, rows or
 * keys. The C ABI does not see extents, so this function checks that they agree.
 * @return the call, or SLUICE_INVALID_ARGUMENT with a field such as "v.extent[1]"
 */
inline Result<Args> dense_args(const TensorView &q, const TensorView &k, const TensorView &v,
                               const TensorView &o) noexcept {
  const struct {
    int64_t value, wanted;
    const char *field, *rule;
  } rules[] = {
      {k.extent[0], q.extent[0], "k.extent[0]", "K and Q have different numbers of sequences"},
      {v.extent[0], q.extent[0], "v.extent[0]", "V and Q have different numbers of sequences"},
      {o.extent[0], q.extent[0], "o.extent[0]", "O and Q have different numbers of sequences"},
      {v.extent[1], k.extent[1], "v.extent[1]", "V and K have different numbers of keys"},
      {o.extent[1], q.extent[1], "o.extent[1]", "O and Q have different numbers of rows"},
      {v.extent[2], k.extent[2], "v.extent[2]", "V and K have different numbers of heads"},
      {o.extent[2], q.extent[2], "o.extent[2]", "O and Q have different numbers of heads"},
      {k.extent[3], q.extent[3], "k.extent[3]", "rows of K and Q have different numbers of elements"},
      {o.extent[3], v.extent[3], "o.extent[3]", "rows of O and V have different numbers of elements"},
  };
  for (const auto &rule : rules)
    if (rule.value != rule.wanted) return Error(SLUICE_INVALID_ARGUMENT, rule.field, rule.rule);
  const struct {
    int64_t value;
    const char *field;
  } counts[] = {{q.extent[0], "q.extent[0]"}, {q.extent[1], "q.extent[1]"}, {k.extent[1], "k.extent[1]"}};
  for (const auto &count : counts)
    if (count.value < 0 || count.value > INT32_MAX)
      return Error(SLUICE_INVALID_ARGUMENT, count.field, "an extent is not negative and at most 2^31 - 1");
  Args args;
  args.batch = int32_t(q.extent[0]);
  args.q_len = int32_t(q.extent[1]);
  args.kv_len = int32_t(k.extent[1]);
  // Set only where it makes a difference: release 1.0 refuses it.
  if (args.q_len == 0 || args.kv_len == 0) args.flags = SLUICE_EXACT_LENGTHS;
  args.q = q;
  args.k = k;
  args.v = v;
  args.o = o;
  return args;
}

/* --------------------------------------------------------------------------------------------- owners --- */

namespace detail {
/** The only owner of a handle. */
template <class T, void (*release)(T *)> class Owner {
public:
  Owner() noexcept = default;
  explicit Owner(T *taken) noexcept : handle(taken) {}
  Owner(Owner &&other) noexcept : handle(std::exchange(other.handle, nullptr)) {}
  Owner &operator=(Owner &&other) noexcept {
    if (this != &other) {
      reset();
      handle = std::exchange(other.handle, nullptr);
    }
    return *this;
  }
  ~Owner() { reset(); }

  T *get() const noexcept { return handle; }
  T *let_go() noexcept { return std::exchange(handle, nullptr); }

private:
  void reset() noexcept {
    if (handle) release(handle);
  }
  T *handle = nullptr;
};
inline void release_plan(sluice_plan *plan) noexcept {
  sluice_plan_destroy(plan);
}
inline void release_context(sluice_context *context) noexcept {
  sluice_context_destroy(context);
}
} // namespace detail

/**
 * A problem with its kernel chosen and loaded. Stays valid when the context is destroyed. Threads as for
 * sluice_run: any number at once. Destroy it (or assign to it) only after the work it enqueued has completed.
 */
class Plan {
public:
  /** Takes over a handle of the C ABI. */
  explicit Plan(sluice_plan *handle) noexcept : owner(handle) {}

  /** As sluice_run: enqueues one call. */
  Result<void> run(const sluice_args &args, const sluice_launch &launch = Launch()) const noexcept {
    return Result<void>([&](sluice_error *error) { return sluice_run(c(), &args, &launch, error); });
  }
  /** As sluice_plan_describe. */
  Result<PlanInfo> describe() const noexcept {
    PlanInfo info;
    Error error;
    if (sluice_plan_describe(c(), &info, error.c()) != SLUICE_OK) return error;
    return info;
  }
  /** As sluice_plan_counters. */
  Result<Counters> counters() const noexcept {
    Counters counted;
    Error error;
    if (sluice_plan_counters(c(), &counted, error.c()) != SLUICE_OK) return error;
    return counted;
  }
  /** For functions of the C ABI; this object still owns it. */
  sluice_plan *c() const noexcept { return owner.get(); }
  /** Releases the handle: the caller owns it from now on. */
  sluice_plan *let_go() noexcept { return owner.let_go(); }

private:
  detail::Owner<sluice_plan, detail::release_plan> owner;
};

/** A device, or a named target without one, and the kernels for it. Threads: any number at once. */
class Context {
public:
  /** As sluice_context_create. */
  static Result<Context> create(const sluice_context_desc &desc) noexcept {
    sluice_context *handle = nullptr;
    Error error;
    if (sluice_context_create(&desc, &handle, error.c()) != SLUICE_OK) return error;
    return Context(handle);
  }
  /** Takes over a handle of the C ABI. */
  explicit Context(sluice_context *handle) noexcept : owner(handle) {}

  /** As sluice_plan_create. */
  Result<Plan> plan(const sluice_problem &problem) const noexcept {
    sluice_plan *handle = nullptr;
    Error error;
    if (sluice_plan_create(c(), &problem, &handle, error.c()) != SLUICE_OK) return error;
    return Plan(handle);
  }
  /** As sluice_query_support. */
  Result<Support> support(const sluice_problem &problem) const noexcept {
    Support found;
    Error error;
    if (sluice_query_support(c(), &problem, &found, error.c()) != SLUICE_OK) return error;
    return found;
  }
  /** As sluice_workspace_size: bytes. */
  Result<uint64_t> workspace_size(const sluice_problem &problem) const noexcept {
    uint64_t bytes = 0;
    Error error;
    if (sluice_workspace_size(c(), &problem, &bytes, error.c()) != SLUICE_OK) return error;
    return bytes;
  }
  /** As sluice_preload for the kernel of one problem. */
  Result<void> preload(const sluice_problem &problem) const noexcept {
    return Result<void>([&](sluice_error *error) { return sluice_preload(c(), &problem, error); });
  }
  /** As sluice_preload for every kernel. */
  Result<void> preload() const noexcept {
    return Result<void>([&](sluice_error *error) { return sluice_preload(c(), nullptr, error); });
  }
  /** As sluice_kv_append. */
  Result<void> kv_append(const sluice_append &append, const sluice_launch &launch = Launch()) const noexcept {
    return Result<void>([&](sluice_error *error) { return sluice_kv_append(c(), &append, &launch, error); });
  }
  /** As sluice_kv_copy. */
  Result<void> kv_copy(const sluice_page_copy &copy, const sluice_launch &launch = Launch()) const noexcept {
    return Result<void>([&](sluice_error *error) { return sluice_kv_copy(c(), &copy, &launch, error); });
  }
  /** As sluice_kv_gather. */
  Result<void> kv_gather(const sluice_gather &gather, const sluice_launch &launch = Launch()) const noexcept {
    return Result<void>([&](sluice_error *error) { return sluice_kv_gather(c(), &gather, &launch, error); });
  }
  /** As sluice_merge_states. */
  Result<void> merge_states(const sluice_merge &merge,
                            const sluice_launch &launch = Launch()) const noexcept {
    return Result<void>(
        [&](sluice_error *error) { return sluice_merge_states(c(), &merge, &launch, error); });
  }
  /** As sluice_context_device. */
  Result<DeviceInfo> device() const noexcept {
    DeviceInfo info;
    Error error;
    if (sluice_context_device(c(), &info, error.c()) != SLUICE_OK) return error;
    return info;
  }
  /** Number of kernels that kernel() can return. */
  Result<uint32_t> kernel_count() const noexcept {
    uint32_t count = 0;
    Error error;
    if (sluice_list_kernels(c(), 0, nullptr, &count, error.c()) != SLUICE_OK) return error;
    return count;
  }
  /** As sluice_list_kernels. */
  Result<KernelInfo> kernel(uint32_t index) const noexcept {
    KernelInfo info;
    Error error;
    if (sluice_list_kernels(c(), index, &info, nullptr, error.c()) != SLUICE_OK) return error;
    return info;
  }
  /**
   * As sluice_context_hip_symbol: `context.hip<int(void **, size_t)>("hipMalloc")`, a pointer to a function
   * of that type, or nullptr.
   */
  template <class Function> Function *hip(const char *name) const noexcept {
    return reinterpret_cast<Function *>(sluice_context_hip_symbol(c(), name));
  }
  /** As sluice_set_ranges. */
  Result<void> set_ranges(bool enabled) const noexcept {
    return Result<void>([&](sluice_error *error) { return sluice_set_ranges(c(), enabled ? 1 : 0, error); });
  }
  /** As sluice_set_trace. */
  Result<void> set_trace(sluice_trace_fn trace, void *user) const noexcept {
    return Result<void>([&](sluice_error *error) { return sluice_set_trace(c(), trace, user, error); });
  }
  /** For functions of the C ABI; this object still owns it. */
  sluice_context *c() const noexcept { return owner.get(); }
  /** Releases the handle: the caller owns it from now on. */
  sluice_context *let_go() noexcept { return owner.let_go(); }

private:
  detail::Owner<sluice_context, detail::release_context> owner;
};

/* ------------------------------------------------------------------------------------------ functions --- */

/** As sluice_reference: host pointers, double precision. */
inline Result<void> reference(const sluice_problem &problem, const sluice_args &args) noexcept {
  return Result<void>([&](sluice_error *error) { return sluice_reference(&problem, &args, error); });
}

/** As sluice_reference_append: host pointers. */
inline Result<void> reference_append(const sluice_append &append) noexcept {
  return Result<void>([&](sluice_error *error) { return sluice_reference_append(&append, error); });
}

/** As sluice_reference_copy: host pointers. */
inline Result<void> reference_copy(const sluice_page_copy &copy) noexcept {
  return Result<void>([&](sluice_error *error) { return sluice_reference_copy(&copy, error); });
}

/** As sluice_reference_gather: host pointers. */
inline Result<void> reference_gather(const sluice_gather &gather) noexcept {
  return Result<void>([&](sluice_error *error) { return sluice_reference_gather(&gather, error); });
}

/** As sluice_build_info. */
inline Result<BuildInfo> build_info() noexcept {
  BuildInfo build;
  Error error;
  if (sluice_build_info(&build, error.c()) != SLUICE_OK) return error;
  return build;
}

} // namespace sluice

#endif
