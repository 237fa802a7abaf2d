//===- input_file.h - files read by the command line ----------------------------------------------------===//
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace sluice::tools {

/// The whole content of a file or a pipe. `needed` ("a pack or a library") is for the message about a file
/// that is neither. Throws ToolError.
std::vector<std::byte> read_file(const std::string &file, std::string_view needed);

} // namespace sluice::tools
