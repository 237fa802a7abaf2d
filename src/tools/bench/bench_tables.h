//===- bench_tables.h - timings of attention as tables --------------------------------------------------===//
#pragma once

#include "tools/bench/attention_timing.h"

#include <string>

namespace sluice::tools {

/// The two clocks at which figures are given: the chip's peak, and what its power allows busy matrix cores.
inline constexpr double peak_mhz = 2100, power_limited_mhz = 1200;

/// A table's head and rows: in markdown, or in columns for a terminal.
class BenchTable {
public:
  /// `parts`: show where the time goes, instead of how much it is.
  BenchTable(bool markdown, bool parts) : markdown(markdown), parts(parts) {}
  std::string head() const;
  std::string row(const AttentionTiming &timing) const;

private:
  const bool markdown, parts;
};

/// An array of objects, one per timing, with every figure.
std::string bench_json(const std::vector<AttentionTiming> &timings);

} // namespace sluice::tools
