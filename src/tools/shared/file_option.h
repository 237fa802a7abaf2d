//===- file_option.h - options whose values name files --------------------------------------------------===//
#pragma once

#include <CLI/CLI.hpp>
#include <string>

namespace sluice::tools {

/// An option whose value is the name of a file. Inside the commands an empty value means that the option is
/// not given.
inline CLI::Option *add_file(CLI::App *command, const char *name, std::string &file, const char *help) {
  return command->add_option(name, file, help)->check([](const std::string &value) {
    return value.empty() ? "is empty; it must be the name of a file" : "";
  });
}

} // namespace sluice::tools
