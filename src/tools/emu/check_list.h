//===- check_list.h - the lists of checks that --check and --warn take ----------------------------------===//
#pragma once

#include "emulator/machine/machine.h"
#include "tools/shared/tool_error.h"

#include <fmt/format.h>
#include <stdexcept>
#include <string>
#include <string_view>

namespace sluice::tools::emu {

/// Parses a list of checks as the machine does; an error names the option.
inline emulator::Checks read_checks(const char *option, const std::string &text,
                                    emulator::Checks (*parse)(std::string_view)) {
  try {
    return parse(text);
  } catch (const std::invalid_argument &error) {
    throw ToolError(fmt::format("{} is '{}': {}", option, text, error.what()));
  }
}

} // namespace sluice::tools::emu
