//===- sized_structs.h - the rules of struct_size for what the library reads ----------------------------===//
#pragma once

#include "fixture.h"

#include <string>

namespace sluice::test {

/// A struct as a newer header might declare it.
template <typename Struct> struct Newer {
  Struct known;
  uint64_t appended;
};

/// A call with a struct that the test builds: with `size` as struct_size and `appended` after the part that
/// this version knows.
template <typename Struct, typename Call>
sluice_status call_with(const Struct &given, uint32_t size, uint64_t appended, Call call) {
  Newer<Struct> newer = {given, appended};
  newer.known.struct_size = size;
  return call(&newer.known);
}

/// The rules for a struct that the library reads.
template <typename Struct, typename Call>
void check_input(const Struct &good, const std::string &argument, Call call, bool nullable = false) {
  Error error;
  const auto try_with = [&](uint32_t size, uint64_t appended) {
    error = Error();
    return call_with(good, size, appended, [&](const Struct *given) { return call(given, &error); });
  };
  CHECK(try_with(sizeof(Struct), 0) == SLUICE_OK);
  CHECK(try_with(sizeof(Newer<Struct>), 0) == SLUICE_OK);
  CHECK(try_with(sizeof(Struct), 1) == SLUICE_OK); // no longer in the struct
  check_refusal(try_with(sizeof(Newer<Struct>), uint64_t{1} << 56), error, SLUICE_NEWER_STRUCT, argument,
                "older than the caller's header");
  for (const uint32_t size :
       {0u, 1u, uint32_t(sizeof(Struct)) - 1, uint32_t(sizeof(Struct)) / 2, 0xffffffffu}) {
    check_refusal(try_with(size, 0), error, SLUICE_INVALID_ARGUMENT, argument + ".struct_size",
                  "struct_size is " + std::to_string(size));
  }
  error = Error();
  if (!nullable) check_refusal(call(nullptr, &error), error, SLUICE_INVALID_ARGUMENT, argument, "is NULL");
}

/// The rules for a struct that `call` reads through `pointer`. `path` is where the caller has it.
template <typename Struct, typename Call>
void check_nested(const Struct *&pointer, const std::string &path, Call call, bool nullable = false) {
  INFO(path);
  REQUIRE(pointer != nullptr);
  const Struct *const original = pointer;
  const auto with = [&](const Struct *given, sluice_error *error) {
    pointer = given;
    const sluice_status status = call(error);
    pointer = original;
    return status;
  };
  check_input(*original, path, with, nullable);
  if (nullable) CHECK(with(nullptr, nullptr) == SLUICE_OK);
}

} // namespace sluice::test
