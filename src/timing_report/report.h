//===- report.h - reports of a timing, for people and for programs --------------------------------------===//
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "emulator/timing/timing.h"

namespace sluice::timing_report {

std::string to_text(const emulator::timing::TimingResult &result);

/// docs/formats/timing.md documents the members.
nlohmann::ordered_json to_json(const emulator::timing::TimingResult &result);
/// Includes the issued instructions.
nlohmann::ordered_json to_json(const emulator::Program &program,
                               const emulator::timing::TimingResult &result);

/// The issued instructions, by block, with the loops that contain them: how often each was issued, the clk
/// that waves lost there each time, their share of all lost clk, the main reasons, and the text.
std::string listing(const emulator::Program &program, const emulator::timing::TimingResult &result);

} // namespace sluice::timing_report
