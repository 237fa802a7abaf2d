//===- npy_fuzz.cpp - any bytes as an .npy file ---------------------------------------------------------===//
//
// A file is an array or an error that names it; an array that was read can be written and read again.
//
//===----------------------------------------------------------------------------------------------------===//
#include "tools/shared/npy.h"

#include <cstdio>
#include <cstdlib>
#include <string>
#include <sys/mman.h>
#include <unistd.h>

using namespace sluice::tools;

namespace {

/// A file in memory.
class MemoryFile {
public:
  MemoryFile() : file(::memfd_create("npy", 0)), name("/proc/self/fd/" + std::to_string(file)) {}
  const std::string &path() const { return name; }
  void set(std::span<const std::byte> first, std::span<const std::byte> second = {}) {
    if (::ftruncate(file, 0) != 0 || ::pwrite(file, first.data(), first.size(), 0) != ssize_t(first.size()) ||
        ::pwrite(file, second.data(), second.size(), off_t(first.size())) != ssize_t(second.size()))
      std::abort();
  }

private:
  int file;
  std::string name;
};

void require(bool holds, const char *what) {
  if (holds) return;
  std::fprintf(stderr, "%s\n", what);
  std::abort();
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static MemoryFile file;
  file.set(std::as_bytes(std::span(data, size)));
  NpyArray array;
  try {
    array = read_npy(file.path());
  } catch (const NpyError &error) {
    require(std::string(error.what()).starts_with(file.path() + ": "), "an error does not name its file");
    return 0;
  }
  size_t bytes = npy_type_bytes(array.type);
  for (int64_t extent : array.shape) {
    require(extent >= 0, "a negative extent");
    require(!__builtin_mul_overflow(bytes, size_t(extent), &bytes), "a shape beyond 64 bits");
  }
  require(bytes == array.bytes.size() && bytes <= size, "an array has other bytes than its shape says");

  std::string header;
  try {
    header = npy_header(array);
  } catch (const NpyError &) {
    return 0; // too many dimensions to be written
  }
  file.set(std::as_bytes(std::span(header)), array.bytes);
  const NpyArray again = read_npy(file.path());
  require(again.type == array.type && again.shape == array.shape && again.bytes == array.bytes,
          "an array that was written is another one");
  return 0;
}
