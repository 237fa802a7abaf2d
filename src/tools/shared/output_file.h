//===- output_file.h - files written by the command line ------------------------------------------------===//
//
// A command first declares everything that it will write, which finds wrong names before any work is done;
// then it writes all of it; then it publishes all of it. Until then files of these names are unchanged, and
// unpublished ones are removed.
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
  /// Removes a written but unpublished file.
  ~OutputFile();

  /// Writes the whole content: beside a regular file, or directly into a pipe or a device. Throws ToolError.
  void write(std::initializer_list<std::span<const std::byte>> parts);
  /// Puts a regular file in its place. Throws ToolError.
  void publish();

  /// Throws ToolError if both would write one file or one pipe.
  static void refuse_same(const OutputFile &a, const OutputFile &b);

private:
  [[noreturn]] void fail(int error) const;

  std::string argument;
  std::string path;      // as the user wrote it
  std::string target;    // the end of symbolic links
  std::string temporary; // in the target's folder; empty while it does not exist
  bool direct = false;   // a pipe or a device: it is written, not replaced
};

} // namespace sluice::tools
