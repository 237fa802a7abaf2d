//===- caller.h - a caller of the C ABI that a fuzzer's bytes describe ----------------------------------===//
//
// Structs of every size, in memory that ends where struct_size says; and properties of the answer to any
// call.
//
//===----------------------------------------------------------------------------------------------------===//
#pragma once

#include <fuzzer/FuzzedDataProvider.h>
#include <sluice/sluice.h>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <memory>
#include <string>

namespace sluice::fuzz {

inline void require(bool holds, const std::string &what) {
  if (holds) return;
  std::fprintf(stderr, "%s\n", what.c_str());
  std::abort();
}

/// Common mistakes of callers; values are right more often than by chance.
inline uint32_t some_word(FuzzedDataProvider &bytes) {
  static constexpr uint32_t usual[] = {
      0,    1,     2,     3,          4,          5,          6,          7,          8,          9,
      16,   24,    31,    32,         64,         80,         128,        192,        256,        512,
      1024, 65535, 65536, 0x3f800000, 0x7f800000, 0x7fc00000, 0x7fffffff, 0x80000000, 0xfffffff8, 0xffffffff};
  if (bytes.ConsumeIntegral<uint8_t>() % 4 == 0) return bytes.ConsumeIntegral<uint32_t>();
  return bytes.PickValueInArray(usual);
}

/// Overwrites a few words after struct_size, or none: most damaged structs are refused early.
template <typename Struct> void damage(FuzzedDataProvider &bytes, Struct &value) {
  if (bytes.ConsumeIntegralInRange(0, 2) != 0) return;
  for (int edits = bytes.ConsumeIntegralInRange(1, 4); edits > 0; --edits) {
    const size_t word = bytes.ConsumeIntegralInRange<size_t>(1, sizeof(Struct) / 4 - 1);
    const uint32_t number = some_word(bytes);
    std::memcpy(reinterpret_cast<char *>(&value) + 4 * word, &number, sizeof number);
  }
}

/// A struct as an older, a newer or a broken caller passes it.
template <typename Struct> class Given {
public:
  Given(FuzzedDataProvider &bytes, const Struct &value) {
    constexpr uint32_t most = 65536; // more than any version has: beyond it, nothing else may be read
    uint32_t size = sizeof(Struct);
    uint8_t tail = 0;
    switch (bytes.ConsumeIntegralInRange(0, 15)) {
    case 0:
      size = bytes.ConsumeIntegralInRange<uint32_t>(0, sizeof(Struct) + 64);
      break;
    case 1:
      size = bytes.ConsumeIntegral<uint32_t>();
      break;
    case 2:
      size += bytes.ConsumeIntegralInRange<uint32_t>(1, 64);
      break;
    case 3:
      size += bytes.ConsumeIntegralInRange<uint32_t>(1, 64);
      tail = bytes.ConsumeIntegral<uint8_t>();
      break;
    default:
      break;
    }
    const size_t there = size > most ? sizeof size : std::max<size_t>(size, sizeof size);
    memory.reset(new std::byte[there]());
    std::memcpy(memory.get(), &value, std::min(there, sizeof value));
    if (there > sizeof value) memory[there - 1] = std::byte(tail);
    std::memcpy(memory.get(), &size, sizeof size);
  }
  Struct *get() { return reinterpret_cast<Struct *>(memory.get()); }

private:
  std::unique_ptr<std::byte[]> memory;
};

struct Answer {
  sluice_status status;
  sluice_error error;
};

/// For every question: a refusal has its code, field and message, a success leaves the error unchanged, and
/// the same question has the same answer.
template <typename Call> Answer ask(const char *name, Call call) {
  Answer answers[2];
  sluice_error untouched;
  std::memset(&untouched, 0x55, sizeof untouched);
  untouched.struct_size = sizeof untouched;
  for (Answer &answer : answers) {
    answer.error = untouched;
    answer.status = call(&answer.error);
  }
  const Answer &answer = answers[0];
  const std::string what = std::string(name) + ": " + sluice_status_name(answer.status);
  require(std::memcmp(&answers[0], &answers[1], sizeof answer) == 0,
          what + ": another answer the second time");
  require(call(nullptr) == answer.status, what + ": another answer without sluice_error");
  if (answer.status == SLUICE_OK) {
    require(std::memcmp(&answer.error, &untouched, sizeof untouched) == 0, what + ": the error is written");
    return answer;
  }
  require(answer.status > 0 && answer.status < SLUICE_INTERNAL, what + ": " + answer.error.message);
  require(answer.error.code == answer.status, what + ": another code in the error");
  const auto is_text = [](const auto &field) {
    return field[0] != '\0' && std::memchr(field, '\0', std::size(field)) != nullptr;
  };
  require(is_text(answer.error.message), what + ": no message");
  require(answer.status == SLUICE_OUT_OF_MEMORY || is_text(answer.error.field), what + ": no field");
  return answer;
}

} // namespace sluice::fuzz
