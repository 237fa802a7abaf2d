//===- output_file.cpp - files written by the command line ----------------------------------------------===//

#include "tools/shared/output_file.h"

#include "tools/shared/tool_error.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

namespace sluice::tools {

namespace {

/// The end of a chain of symbolic links, whether or not a file exists there. The system follows links in the
/// folders.
std::string follow_links(const std::string &path) {
  std::filesystem::path at = path;
  constexpr int longest_chain = 40; // as in Linux
  for (int i = 0; i < longest_chain; ++i) {
    std::error_code error;
    const std::filesystem::path next = std::filesystem::read_symlink(at, error);
    if (error) break;
    at = at.parent_path() / next; // an absolute `next` replaces all of it
  }
  return at.string();
}

std::string folder_of(const std::string &path) {
  const std::string folder = std::filesystem::path(path).parent_path().string();
  return folder.empty() ? "." : folder;
}

/// Also closes it; returns 0 or errno.
int write_all(int file, std::initializer_list<std::span<const std::byte>> parts) {
  int error = 0;
  for (std::span<const std::byte> left : parts)
    while (!left.empty() && error == 0) {
      const ssize_t count = ::write(file, left.data(), left.size());
      if (count >= 0)
        left = left.subspan(size_t(count));
      else if (errno != EINTR)
        error = errno;
    }
  if (::close(file) != 0 && error == 0) error = errno;
  return error;
}

} // namespace

OutputFile::OutputFile(std::string argument, std::string name)
    : argument(std::move(argument)), path(std::move(name)) {
  if (path.empty())
    throw ToolError(fmt::format("{} is empty; it must be the name of a file", this->argument));
  struct stat there{};
  const bool exists = ::stat(path.c_str(), &there) == 0;
  if (!exists && errno != ENOENT) fail(errno);
  if (exists && S_ISDIR(there.st_mode)) fail(EISDIR);
  direct = exists && !S_ISREG(there.st_mode);
  // A pipe's link in /proc does not name a file that could be opened.
  target = direct ? path : follow_links(path);
  if (exists && ::access(path.c_str(), W_OK) != 0) fail(errno);
  if (!direct && ::access(folder_of(target).c_str(), W_OK | X_OK) != 0) fail(errno);
}

OutputFile::~OutputFile() {
  if (!temporary.empty()) ::unlink(temporary.c_str());
}

void OutputFile::write(std::initializer_list<std::span<const std::byte>> parts) {
  int file = -1;
  if (direct) {
    file = ::open(target.c_str(), O_WRONLY | O_CLOEXEC);
    if (file < 0) fail(errno);
  } else {
    // Not mkstemp, whose files are private: these get the access rights of any new file.
    std::string name;
    for (int i = 0; file < 0; ++i) {
      name = fmt::format("{}/.sluice-{}-{}.partial", folder_of(target), ::getpid(), i);
      file = ::open(name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
      if (file < 0 && errno != EEXIST) fail(errno);
    }
    temporary = name;
    struct stat there{};
    if (::stat(target.c_str(), &there) == 0 && ::fchmod(file, there.st_mode & 07777) != 0) {
      const int error = errno;
      ::close(file);
      fail(error);
    }
  }
  if (const int error = write_all(file, parts)) fail(error);
}

void OutputFile::publish() {
  if (temporary.empty()) return;
  if (std::rename(temporary.c_str(), target.c_str()) != 0) fail(errno);
  temporary.clear();
}

void OutputFile::refuse_same(const OutputFile &a, const OutputFile &b) {
  struct stat there_a{}, there_b{};
  bool same = false;
  if (::stat(a.target.c_str(), &there_a) == 0 && ::stat(b.target.c_str(), &there_b) == 0) {
    // A device may be given twice: /dev/null.
    same = there_a.st_dev == there_b.st_dev && there_a.st_ino == there_b.st_ino && !S_ISCHR(there_a.st_mode);
  } else {
    std::error_code error;
    same = std::filesystem::path(a.target).filename() == std::filesystem::path(b.target).filename() &&
           std::filesystem::equivalent(folder_of(a.target), folder_of(b.target), error);
  }
  if (same)
    throw ToolError(fmt::format("{} {} and {} {} are the same file; each needs its own", a.argument, a.path,
                                b.argument, b.path));
}

void OutputFile::fail(int error) const {
  throw ToolError(fmt::format("{}: {} cannot be written: {}", argument, path, std::strerror(error)));
}

} // namespace sluice::tools
