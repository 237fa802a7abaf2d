//===- members.h - structs of the C ABI as Python classes -----------------------------------------------===//
//
// A pointer to device memory is an integer (0 is NULL), which keeps nothing alive. A pointer to another
// struct is an object of its class or None, and keeps it alive. A tensor is a tuple of its address and four
// strides in elements.
//
//===----------------------------------------------------------------------------------------------------===//
#pragma once

#include <sluice/sluice.h>

#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>

#include <cstdint>
#include <tuple>
#include <type_traits>

namespace sluice_python {

using TensorTuple = std::tuple<uintptr_t, int64_t, int64_t, int64_t, int64_t>;

inline sluice_tensor tensor_of(const TensorTuple &tuple) {
  const auto &[data, a, b, c, d] = tuple;
  return {reinterpret_cast<void *>(data), {a, b, c, d}};
}

/// A struct that Python fills in.
template <typename Struct>
nanobind::class_<Struct> given_struct(nanobind::module_ &module, const char *name) {
  nanobind::class_<Struct> type(module, name);
  type.def("__init__", [](Struct *self) {
    new (self) Struct();
    if constexpr (requires { self->struct_size; }) self->struct_size = sizeof *self;
  });
  return type;
}

template <typename Struct, typename Member>
void given_member(nanobind::class_<Struct> &type, const char *name, Member Struct::*member) {
  if constexpr (std::is_same_v<Member, sluice_tensor>) {
    type.def_prop_rw(
        name,
        [member](const Struct &self) {
          const sluice_tensor &tensor = self.*member;
          return TensorTuple(reinterpret_cast<uintptr_t>(tensor.data), tensor.stride[0], tensor.stride[1],
                             tensor.stride[2], tensor.stride[3]);
        },
        [member](Struct &self, const TensorTuple &tuple) { self.*member = tensor_of(tuple); });
  } else if constexpr (!std::is_pointer_v<Member>) {
    type.def_rw(name, member);
  } else if constexpr (std::is_class_v<std::remove_pointer_t<Member>>) {
    using Other = std::remove_const_t<std::remove_pointer_t<Member>>;
    type.def_prop_rw(
        name, [member](const Struct &self) { return const_cast<Other *>(self.*member); },
        [member](Struct &self, const Other *other) { self.*member = other; },
        nanobind::for_getter(nanobind::rv_policy::reference_internal),
        nanobind::for_setter(nanobind::arg("value").none()),
        nanobind::for_setter(nanobind::keep_alive<1, 2>()));
  } else {
    type.def_prop_rw(
        name, [member](const Struct &self) { return reinterpret_cast<uintptr_t>(self.*member); },
        [member](Struct &self, uintptr_t address) { self.*member = reinterpret_cast<Member>(address); });
  }
}

/// A struct that the library fills in.
template <typename Struct>
nanobind::class_<Struct> answer_struct(nanobind::module_ &module, const char *name) {
  return nanobind::class_<Struct>(module, name);
}

template <typename Struct, typename Member>
void answer_member(nanobind::class_<Struct> &type, const char *name, Member Struct::*member) {
  type.def_prop_ro(name, [member](const Struct &self) {
    const Member &value = self.*member;
    if constexpr (std::is_same_v<std::remove_all_extents_t<Member>, char>) {
      return static_cast<const char *>(value);
    } else if constexpr (std::is_array_v<Member>) {
      static_assert(std::extent_v<Member> == 3);
      return std::make_tuple(value[0], value[1], value[2]);
    } else {
      return value;
    }
  });
}

} // namespace sluice_python
