//===- wild_numbers.h - numbers that are invalid as lengths, starts and pages ---------------------------===//
#pragma once

#include "cache_ops/device.h"

#include <limits>
#include <string>

namespace sluice::test {

/// Overwrites about half of an array's elements with arbitrary numbers: both ends of the type, numbers around
/// 0 and around the usual ones, and random bits.
template <typename Element> void make_some_wild(Numbers &random, Visible<Element> &array, int64_t usual) {
  const auto near = [&](int64_t number) { return number + int64_t(random.below(5)) - 2; };
  const auto wild = [&]() -> int64_t {
    switch (random.below(7)) {
    case 0:
      return std::numeric_limits<Element>::max() - int64_t(random.below(3));
    case 1:
      return std::numeric_limits<Element>::min() + int64_t(random.below(3));
    case 2:
      return near(0);
    case 3:
      return near(usual);
    case 4:
      return int64_t{1} << random.below(sizeof(Element) * 8 - 1);
    case 5:
      return int64_t(random.below(uint32_t(usual) + 1));
    default:
      return int64_t(uint64_t{random.next()} << 32 | random.next());
    }
  };
  for (size_t n = 0; n < array.size(); ++n) {
    if (random.below(2) != 0) array[n] = Element(wild());
  }
}

/// Two sequences may get the same rows: the workgroups, and lanes of one wave, race for them, which is
/// allowed here.
inline void set_up_for_wild_calls(const char *instruction_budget) {
  for (const char *check : {"global_races", "global_equal_stores", "lane_stores"})
    REQUIRE(sluice_emulator_configure(check, "off") == SLUICE_EMULATOR_OK);
  REQUIRE(sluice_emulator_configure("instruction_budget", instruction_budget) == SLUICE_EMULATOR_OK);
}

/// The emulator's reports, as JSON; afterwards the device is as new.
inline std::string take_reports_and_recover() {
  std::string reports = take_reports();
  REQUIRE(sluice_emulator_configure("clear_fault", "1") == SLUICE_EMULATOR_OK);
  return reports;
}

/// Whether any report is about something other than loads from unmapped memory.
inline bool has_more_than_loads(const std::string &reports) {
  for (const char *word : {"store", "atomic", "budget_exhausted"}) {
    if (reports.find(word) != std::string::npos) return true;
  }
  for (size_t at = 0; (at = reports.find("\"kind\": \"", at)) != std::string::npos;) {
    at += 9;
    const std::string kind = reports.substr(at, reports.find('"', at) - at);
    if (kind != "global_out_of_bounds" && kind != "global_freed") return true;
  }
  return false;
}

} // namespace sluice::test
