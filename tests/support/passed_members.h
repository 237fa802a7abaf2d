//===- passed_members.h - the argument of a kernel that each member of a call becomes -------------------===//
//
// A table has a row for each argument: an expression of the call `c`, and one of the arguments `a`,
// that must be equal to it. With PASSES it must also be the only row with this value: then a member
// that reaches another one's argument is noticed. FOLLOWS is for small numbers that are computed.
//
//===----------------------------------------------------------------------------------------------------===//
#pragma once

#include <catch2/catch.hpp>

#include <bit>
#include <cstdint>
#include <initializer_list>
#include <set>
#include <type_traits>

namespace sluice::test {

template <typename Number> uint64_t as_bits(Number number) {
  if constexpr (std::is_pointer_v<Number>)
    return reinterpret_cast<uint64_t>(number);
  else if constexpr (std::is_same_v<Number, float>)
    return std::bit_cast<uint32_t>(number);
  else
    return static_cast<uint64_t>(number);
}

template <typename Call, typename Kernargs> struct Passed {
  const char *member, *argument;
  uint64_t (*given)(const Call &call);
  uint64_t (*passed)(const Kernargs &args);
  bool is_unique;
};
#define PASSES(member, argument) SLUICE_PASSED_ROW(member, argument, true)
#define FOLLOWS(member, argument) SLUICE_PASSED_ROW(member, argument, false)
#define SLUICE_PASSED_ROW(member, argument, is_unique)                                                       \
  {#member, #argument, []([[maybe_unused]] const auto &c) { return sluice::test::as_bits(member); },         \
   [](const auto &a) { return sluice::test::as_bits(argument); }, is_unique}

/// Checks the table for each call, whose arguments `run` returns. In one of the calls at least, a member that
/// is passed is not 0.
template <typename Call, typename Kernargs, size_t count, typename Run>
void check_passed(const Passed<Call, Kernargs> (&table)[count], std::initializer_list<Call> calls,
                  const Run &run) {
  std::set<const char *> given;
  for (const Call &call : calls) {
    const Kernargs args = run(call);
    std::set<uint64_t> values;
    for (const Passed<Call, Kernargs> &row : table) {
      const uint64_t value = row.given(call);
      INFO("call " << &call - calls.begin() << ": " << row.member << " is " << value << " and reaches "
                   << row.argument);
      CHECK(row.passed(args) == value);
      if (value == 0) continue;
      given.insert(row.argument);
      if (row.is_unique) CHECK(values.insert(value).second);
    }
  }
  for (const Passed<Call, Kernargs> &row : table) {
    INFO("a value for " << row.member);
    if (row.is_unique) CHECK(given.contains(row.argument));
  }
}

} // namespace sluice::test
