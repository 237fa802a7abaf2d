//===- kernarg_structs.h - kernel arguments as structs, for the runtime and for the generator -----------===//
//
// A struct of arguments is a template, so that both see the same members:
//
//   template <template <typename> typename As> struct SideOf {
//     As<DeviceAddress> rows;
//     As<uint32_t> heads, chunks;
//     SLUICE_KERNARG_MEMBERS(rows, heads, chunks)
//   };
//   using Side = SideOf<Plain>;
//
// The runtime fills a Side. In the generator a member loads its argument. A struct may have members that are
// such structs, whose own members are all arguments. Eight-byte arguments come first in each, and no struct
// ends with padding, so there is none anywhere.
//
//===----------------------------------------------------------------------------------------------------===//
#pragma once

#include "package/kernargs.h"

#include <algorithm>
#include <tuple>
#include <type_traits>
#include <utility>

namespace sluice::package {

/// An address of device memory.
struct DeviceAddress {
  constexpr DeviceAddress(uint64_t number = 0) : number(number) {}
  constexpr operator uint64_t() const { return number; }
  uint64_t number;
};

template <typename T> using Plain = T;

/// Lists the members of a struct of arguments in their order.
#define SLUICE_KERNARG_MEMBERS(...)                                                                          \
  constexpr auto members() {                                                                                 \
    return std::tie(__VA_ARGS__);                                                                            \
  }                                                                                                          \
  constexpr auto members() const {                                                                           \
    return std::tie(__VA_ARGS__);                                                                            \
  }                                                                                                          \
  static constexpr std::string_view member_names = #__VA_ARGS__;

template <typename T>
concept KernargStruct = requires { T::member_names; };

template <typename T> constexpr KernargKind kernarg_kind() {
  if constexpr (std::is_same_v<T, DeviceAddress>) return KernargKind::pointer;
  if constexpr (std::is_same_v<T, float>) return KernargKind::f32;
  static_assert(sizeof(T) == 8 || sizeof(T) == 4);
  return sizeof(T) == 8 ? KernargKind::i64 : KernargKind::i32;
}

/// Whether the members are listed in the order in which they are declared.
template <typename Struct> constexpr bool members_are_in_order() {
  const Struct object = {};
  const auto is_each_after_another = [](const auto &...members) {
    bool are_in_order = true;
    const void *last = nullptr;
    const auto compare = [&](const void *next) {
      are_in_order = are_in_order && (last == nullptr || last < next);
      last = next;
    };
    (compare(&members), ...);
    return are_in_order;
  };
  return std::apply(is_each_after_another, object.members());
}

/// Calls visit(struct_name, name, kind, offset) for each argument: those of the member `k` have the struct
/// name "k", and others have none. Returns the end of the last one.
template <typename Struct, typename Visit>
constexpr uint32_t visit_kernargs(const Visit &visit, std::string_view struct_name = {},
                                  uint32_t offset = 0) {
  static_assert(members_are_in_order<Struct>());
  std::string_view names = Struct::member_names;
  const auto visit_member = [&]<typename Member>(std::type_identity<const Member &>) {
    const std::string_view separator = ", ", name = names.substr(0, names.find(separator));
    names.remove_prefix(std::min(name.size() + separator.size(), names.size()));
    if constexpr (KernargStruct<Member>) {
      offset = visit_kernargs<Member>(visit, name, offset);
    } else {
      visit(struct_name, name, kernarg_kind<Member>(), offset);
      offset += uint32_t(sizeof(Member));
    }
  };
  const auto visit_all = [&]<typename... Members>(std::type_identity<std::tuple<Members...>>) {
    (visit_member(std::type_identity<Members>()), ...);
  };
  visit_all(std::type_identity<decltype(std::declval<const Struct &>().members())>());
  return offset;
}

/// The arguments of a struct with their names, as in "k.rows".
template <typename Struct> class KernargTable {
  struct Size {
    size_t fields = 0, chars = 0;
  };
  static constexpr Size size = [] {
    Size counted;
    visit_kernargs<Struct>([&](std::string_view struct_name, std::string_view name, KernargKind, uint32_t) {
      counted.fields += 1;
      counted.chars += struct_name.size() + 1 + name.size();
    });
    return counted;
  }();

  static constexpr std::array<char, size.chars> text = [] {
    std::array<char, size.chars> written = {};
    size_t end = 0;
    const auto append = [&](std::string_view part) {
      for (const char c : part)
        written[end++] = c;
    };
    visit_kernargs<Struct>([&](std::string_view struct_name, std::string_view name, KernargKind, uint32_t) {
      append(struct_name);
      append(".");
      append(name);
    });
    return written;
  }();

public:
  static constexpr std::array<KernargField, size.fields> fields = [] {
    std::array<KernargField, size.fields> made = {};
    size_t count = 0, begin = 0;
    visit_kernargs<Struct>(
        [&](std::string_view struct_name, std::string_view name, KernargKind kind, uint32_t offset) {
          const size_t end = begin + struct_name.size() + 1 + name.size();
          if (struct_name.empty()) begin += 1; // without the dot
          made[count++] = {std::string_view(text.data() + begin, end - begin), kind, offset};
          begin = end;
        });
    return made;
  }();
};

} // namespace sluice::package
