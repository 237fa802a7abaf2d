//===- handles.cpp - contexts and plans that Python owns ------------------------------------------------===//
#include "handles.h"

#include "failure.h"
#include "members.h"

#include <sluice/sluice.h>

#include <nanobind/stl/optional.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

namespace nb = nanobind;

namespace sluice_python {
namespace {

/// (kind, event, stream) of a sluice_dependency.
using Dependency = std::tuple<uint32_t, uintptr_t, uintptr_t>;

class Context {
public:
  Context(uint32_t kind, int32_t ordinal, const std::optional<std::string> &target,
          std::optional<nb::bytes> pack, uintptr_t hip_resolver, nb::object resolver_owner)
      : pack(std::move(pack)), resolver_owner(std::move(resolver_owner)) {
    sluice_context_desc desc;
    sluice_context_desc_init(&desc, sizeof desc);
    desc.kind = kind;
    desc.device_ordinal = ordinal;
    desc.target = target ? target->c_str() : nullptr;
    desc.hip_resolver = reinterpret_cast<sluice_hip_resolver>(hip_resolver);
    if (this->pack) {
      desc.pack = this->pack->c_str();
      desc.pack_bytes = this->pack->size();
    }
    check([&](sluice_error *error) { return sluice_context_create(&desc, &handle, error); });
  }
  Context(const Context &) = delete;
  Context &operator=(const Context &) = delete;
  ~Context() {
    finish();
    sluice_context_destroy(handle);
  }

  sluice_context *get() const { return handle; }
  void note_work() { has_work.store(true, std::memory_order_relaxed); }

  /// Waits for enqueued work, which must be done before a plan is destroyed. Errors are ignored: the wait for
  /// a failed device fails, and nothing else can be done.
  void finish() {
    if (!has_work.exchange(false)) return;
    sluice_device_info device;
    sluice_device_info_init(&device, sizeof device);
    if (sluice_context_device(handle, &device, nullptr) != SLUICE_OK) return;
    const auto get_device =
        reinterpret_cast<int (*)(int *)>(sluice_context_hip_symbol(handle, "hipGetDevice"));
    const auto set_device = reinterpret_cast<int (*)(int)>(sluice_context_hip_symbol(handle, "hipSetDevice"));
    const auto wait = reinterpret_cast<int (*)()>(sluice_context_hip_symbol(handle, "hipDeviceSynchronize"));
    int previous = 0;
    if (get_device == nullptr || set_device == nullptr || wait == nullptr || get_device(&previous) != 0)
      return;
    nb::gil_scoped_release unlocked;
    set_device(device.ordinal);
    wait();
    set_device(previous);
  }

private:
  // The library reads and calls these as long as the context lives, even while the interpreter ends and
  // collects objects in any order.
  std::optional<nb::bytes> pack;
  nb::object resolver_owner;
  sluice_context *handle = nullptr;
  std::atomic<bool> has_work = false;
};

class Plan {
public:
  Plan(std::shared_ptr<Context> context, const sluice_attention &attention) : context(std::move(context)) {
    check([&](sluice_error *error) {
      return sluice_attention_plan(this->context->get(), &attention, &handle, error);
    });
  }
  Plan(const Plan &) = delete;
  Plan &operator=(const Plan &) = delete;
  ~Plan() {
    context->finish();
    sluice_plan_destroy(handle);
  }

  void run(const sluice_attention_args &args, const sluice_launch &launch) {
    context->note_work();
    check([&](sluice_error *error) { return sluice_attention_run(handle, &args, &launch, error); });
  }

  sluice_plan_info describe() const {
    sluice_plan_info info;
    sluice_plan_info_init(&info, sizeof info);
    check([&](sluice_error *error) { return sluice_plan_describe(handle, &info, error); });
    return info;
  }

  sluice_counters counters() const {
    sluice_counters counted;
    sluice_counters_init(&counted, sizeof counted);
    check([&](sluice_error *error) { return sluice_plan_counters(handle, &counted, error); });
    return counted;
  }

private:
  std::shared_ptr<Context> context;
  sluice_plan *handle = nullptr;
};

/// A call with what it leads to, for the duration of it.
class Call {
public:
  Call(const sluice_attention_args &args, const sluice_keys &keys, const sluice_keys *prefixes,
       const std::optional<float> &scale, const std::optional<TensorTuple> &lse)
      : whole(args), scale(scale), sets{keys} {
    if (prefixes != nullptr) sets[1] = *prefixes;
    whole.keys = sets;
    whole.key_sets = prefixes != nullptr ? 2 : 1;
    whole.scale = this->scale ? &*this->scale : nullptr;
    if (!lse) return;
    lse_tensor = tensor_of(*lse);
    whole.lse = &lse_tensor;
  }
  Call(const Call &) = delete;
  Call &operator=(const Call &) = delete;
  const sluice_attention_args &get() const { return whole; }

private:
  sluice_attention_args whole;
  std::optional<float> scale;
  sluice_tensor lse_tensor = {};
  sluice_keys sets[2];
};

void reference(const sluice_attention &attention, const sluice_attention_args &args, const sluice_keys &keys,
               const sluice_keys *prefixes, const std::optional<float> &scale,
               const std::optional<TensorTuple> &lse) {
  const Call call(args, keys, prefixes, scale, lse);
  check([&](sluice_error *error) { return sluice_attention_reference(&attention, &call.get(), error); });
}

/// A function that performs a cache operation on the host.
template <typename Struct, sluice_status (*call)(const Struct *, sluice_error *)>
void on_host(const Struct &operation) {
  check([&](sluice_error *error) { return call(&operation, error); });
}

/// A launch with its dependencies, for the duration of a call.
class Launch {
public:
  Launch(const sluice_launch &launch, const std::vector<Dependency> &wanted) : whole(launch) {
    for (const auto &[kind, event, stream] : wanted)
      dependencies.push_back({kind, 0, reinterpret_cast<void *>(event), reinterpret_cast<void *>(stream)});
    whole.dependencies = dependencies.empty() ? nullptr : dependencies.data();
    whole.dependency_count = uint32_t(dependencies.size());
  }
  const sluice_launch &get() const { return whole; }

private:
  sluice_launch whole;
  std::vector<sluice_dependency> dependencies;
};

/// A method that enqueues a cache operation.
template <typename Struct,
          sluice_status (*call)(sluice_context *, const Struct *, const sluice_launch *, sluice_error *)>
void enqueue(Context &self, const Struct &operation, const sluice_launch &launch,
             const std::vector<Dependency> &dependencies) {
  const Launch whole(launch, dependencies);
  self.note_work();
  check([&](sluice_error *error) { return call(self.get(), &operation, &whole.get(), error); });
}

/// `partials` and `lses`: the addresses of parts that have their own, or nothing.
void merge(Context &self, sluice_merge_args operation, const std::vector<uintptr_t> &partials,
           const std::vector<uintptr_t> &lses, const sluice_launch &launch,
           const std::vector<Dependency> &dependencies) {
  static_assert(sizeof(uintptr_t) == sizeof(void *));
  if (!partials.empty()) {
    operation.parts.o_list = reinterpret_cast<const void *const *>(partials.data());
    operation.parts.lse_list = reinterpret_cast<const void *const *>(lses.data());
  }
  enqueue<sluice_merge_args, sluice_attention_merge>(self, operation, launch, dependencies);
}

sluice_support query_support(const Context &context, const sluice_attention &attention) {
  sluice_support support;
  sluice_support_init(&support, sizeof support);
  check([&](sluice_error *error) {
    return sluice_attention_support(context.get(), &attention, &support, error);
  });
  return support;
}

std::vector<sluice_kernel_info> kernels(const Context &context) {
  uint32_t count = 0;
  check([&](sluice_error *error) { return sluice_list_kernels(context.get(), 0, nullptr, &count, error); });
  std::vector<sluice_kernel_info> all(count);
  for (uint32_t i = 0; i < count; ++i) {
    sluice_kernel_info_init(&all[i], sizeof all[i]);
    check(
        [&](sluice_error *error) { return sluice_list_kernels(context.get(), i, &all[i], nullptr, error); });
  }
  return all;
}

sluice_device_info device(const Context &context) {
  sluice_device_info info;
  sluice_device_info_init(&info, sizeof info);
  check([&](sluice_error *error) { return sluice_context_device(context.get(), &info, error); });
  return info;
}

} // namespace

void bind_handles(nb::module_ &module) {
  nb::class_<Context>(module, "Context")
      .def(nb::init<uint32_t, int32_t, const std::optional<std::string> &, std::optional<nb::bytes>,
                    uintptr_t, nb::object>(),
           nb::arg("kind"), nb::arg("ordinal"), nb::arg("target").none(), nb::arg("pack").none(),
           nb::arg("hip_resolver"), nb::arg("resolver_owner").none())
      .def("device", &device)
      .def("kernels", &kernels)
      .def("query_support", &query_support)
      .def("hip_symbol",
           [](const Context &self, const char *name) {
             return reinterpret_cast<uintptr_t>(sluice_context_hip_symbol(self.get(), name));
           })
      .def(
          "preload",
          [](Context &self, const sluice_attention *attention) {
            check(
                [&](sluice_error *error) { return sluice_attention_preload(self.get(), attention, error); });
          },
          nb::arg("attention").none())
      .def("set_ranges",
           [](Context &self, bool enabled) {
             check([&](sluice_error *error) { return sluice_set_ranges(self.get(), enabled, error); });
           })
      .def("append", &enqueue<sluice_append_args, sluice_cache_append>)
      .def("copy", &enqueue<sluice_copy_args, sluice_cache_copy>)
      .def("gather", &enqueue<sluice_gather_args, sluice_cache_gather>)
      .def("merge", &merge);
  nb::class_<Plan>(module, "Plan")
      .def(nb::init<std::shared_ptr<Context>, const sluice_attention &>())
      .def("describe", &Plan::describe)
      .def("counters", &Plan::counters)
      .def(
          "run",
          [](Plan &self, const sluice_attention_args &args, const sluice_keys &keys,
             const sluice_keys *prefixes, const std::optional<float> &scale,
             const std::optional<TensorTuple> &lse, const sluice_launch &launch,
             const std::vector<Dependency> &dependencies) {
            self.run(Call(args, keys, prefixes, scale, lse).get(), Launch(launch, dependencies).get());
          },
          nb::arg("args"), nb::arg("keys"), nb::arg("prefixes").none(), nb::arg("scale").none(),
          nb::arg("lse").none(), nb::arg("launch"), nb::arg("dependencies"));
  module.def("reference", &reference, nb::arg("attention"), nb::arg("args"), nb::arg("keys"),
             nb::arg("prefixes").none(), nb::arg("scale").none(), nb::arg("lse").none());
  module.def("reference_append", &on_host<sluice_append_args, sluice_cache_append_reference>);
  module.def("reference_copy", &on_host<sluice_copy_args, sluice_cache_copy_reference>);
  module.def("reference_gather", &on_host<sluice_gather_args, sluice_cache_gather_reference>);
}

} // namespace sluice_python
