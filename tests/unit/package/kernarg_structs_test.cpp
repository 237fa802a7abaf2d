//===- kernarg_structs_test.cpp - structs of kernel arguments as tables ---------------------------------===//
#include "package/kernarg_structs.h"

#include <catch2/catch.hpp>

#include <string_view>
#include <vector>

using namespace sluice::package;

namespace {

template <template <typename> typename As> struct SideOf {
  As<DeviceAddress> rows;
  As<uint32_t> heads, chunks;
  SLUICE_KERNARG_MEMBERS(rows, heads, chunks)
};
template <template <typename> typename As> struct CallOf {
  SideOf<As> k, v;
  As<int64_t> stride;
  As<uint64_t> count;
  As<uint32_t> mode;
  As<float> factor;
  SLUICE_KERNARG_MEMBERS(k, v, stride, count, mode, factor)
};

struct Forgotten {
  uint64_t rows;
  uint32_t heads, chunks;
  SLUICE_KERNARG_MEMBERS(rows, heads)
};
struct Swapped {
  uint64_t rows;
  uint32_t heads, chunks;
  SLUICE_KERNARG_MEMBERS(rows, chunks, heads)
};
struct Padded {
  uint32_t heads;
  uint64_t rows;
  SLUICE_KERNARG_MEMBERS(heads, rows)
};

template <typename Struct> constexpr bool is_packed() {
  return kernargs_are_packed(KernargTable<Struct>::fields, sizeof(Struct));
}

} // namespace

TEST_CASE("a struct of structs is a table of all their arguments", "[kernargs]") {
  using Call = CallOf<Plain>;
  std::vector<std::string_view> names;
  std::vector<uint32_t> offsets;
  std::vector<KernargKind> kinds;
  for (const KernargField &field : KernargTable<Call>::fields) {
    names.push_back(field.name);
    offsets.push_back(field.offset);
    kinds.push_back(field.kind);
  }
  using enum KernargKind;
  CHECK(names == std::vector<std::string_view>{"k.rows", "k.heads", "k.chunks", "v.rows", "v.heads",
                                               "v.chunks", "stride", "count", "mode", "factor"});
  CHECK(offsets == std::vector<uint32_t>{0, 8, 12, 16, 24, 28, 32, 40, 48, 52});
  CHECK(kinds == std::vector{pointer, i32, i32, pointer, i32, i32, i64, i64, i32, f32});
  CHECK(is_packed<Call>());
  CHECK(offsetof(Call, v) + offsetof(SideOf<Plain>, chunks) == 28);
}

TEST_CASE("a list of members that differs from the struct is noticed", "[kernargs]") {
  CHECK(members_are_in_order<Forgotten>());
  CHECK(!is_packed<Forgotten>());
  CHECK(!members_are_in_order<Swapped>());
  CHECK(members_are_in_order<Padded>());
  CHECK(!is_packed<Padded>());
}
