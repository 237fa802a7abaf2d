//===- tool_error.h - an error that ends the program ----------------------------------------------------===//
#pragma once

#include <stdexcept>

namespace sluice::tools {

/// Ends the program with its message and status 2.
class ToolError : public std::runtime_error {
public:
  using std::runtime_error::runtime_error;
};

} // namespace sluice::tools
