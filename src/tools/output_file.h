//===- output_file.h - files that the command line writes -----------------------------------------------===//
//
// A command says first what it will write, which finds the wrong names before any work is done; then it
// writes all of it; then it publishes all of it. Until then nothing at the names has changed, and what is not
// published goes away.
//
//===----------------------------------------------------------------------------------------------------===//
#pragma once

#include <cstddef>
#include <initializer_list>
#include <span>
#include <string>

namespace sluice::tools {

class OutputFile {
public:
  /// `argument` (such as "--out") is for messages. Throws ToolError if nothing can be written at `path`.
  OutputFile(std::string argument, std::string path);
  OutputFile(const OutputFile &) = delete;
  OutputFile &operator=(const OutputFile &) = delete;
  /// Removes what was written and not published.
  ~OutputFile();

  /// Writes the whole content: beside a regular file, and straight into a pipe or a device. Throws ToolError.
  void write(std::initializer_list<std::span<const std::byte>> parts);
  /// Puts a regular file in its place. Throws ToolError.
  void publish();

  /// Throws ToolError if both would write one file or one pipe.
  static void refuse_same(const OutputFile &a, const OutputFile &b);

private:
  [[noreturn]] void fail(int error) const;

  std::string argument;
  std::string path;      // as the user wrote it
  std::string target;    // where symbolic links lead
  std::string temporary; // in the target's folder; empty while there is none
  bool direct = false;   // a pipe or a device: it is written, not replaced
};

} // namespace sluice::tools
