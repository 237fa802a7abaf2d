//===- input_file.cpp - files read by the command line --------------------------------------------------===//

#include "tools/shared/input_file.h"

#include "tools/shared/tool_error.h"

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fmt/format.h>
#include <memory>
#include <sys/stat.h>

namespace sluice::tools {

namespace {

struct CloseFile {
  void operator()(std::FILE *file) const { std::fclose(file); }
};

// A limit of the command line only: it keeps /dev/zero, or a disk image, from becoming an allocation.
constexpr size_t max_file_bytes = size_t(1) << 30;

} // namespace

std::vector<std::byte> read_file(const std::string &file, std::string_view needed) {
  const auto fail = [&](const char *what, int error) {
    return ToolError(fmt::format("{}: {}: {}", file, what, std::strerror(error)));
  };
  const ToolError too_large(
      fmt::format("{}: is larger than {} bytes, the limit for files to read", file, max_file_bytes));
  const std::unique_ptr<std::FILE, CloseFile> stream(std::fopen(file.c_str(), "rb"));
  struct stat there{};
  if (!stream || fstat(fileno(stream.get()), &there) != 0) throw fail("cannot be opened", errno);
  if (S_ISDIR(there.st_mode)) throw fail("cannot be read", EISDIR);
  if (S_ISCHR(there.st_mode) || S_ISBLK(there.st_mode))
    throw ToolError(fmt::format("{}: is a device; {} is needed", file, needed));
  if (S_ISREG(there.st_mode) && size_t(there.st_size) > max_file_bytes) throw too_large;

  std::vector<std::byte> bytes;
  if (S_ISREG(there.st_mode)) bytes.reserve(size_t(there.st_size));
  std::array<std::byte, 1 << 16> chunk;
  while (!std::feof(stream.get()) && !std::ferror(stream.get())) {
    const size_t got = std::fread(chunk.data(), 1, chunk.size(), stream.get());
    // A pipe's size cannot be queried.
    if (got > max_file_bytes - bytes.size()) throw too_large;
    bytes.insert(bytes.end(), chunk.begin(), chunk.begin() + got);
  }
  if (std::ferror(stream.get())) throw fail("cannot be read", errno);
  return bytes;
}

} // namespace sluice::tools
