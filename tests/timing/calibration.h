//===- calibration.h - published measurements and the model's results -----------------------------------===//
#pragma once

#include <span>
#include <string>
#include <vector>

namespace sluice::test {

struct CalibrationRow {
  std::string stream;
  std::string unit;
  double published = 0;
  double predicted = 0;
  bool input = false; // a constant of the model comes from this measurement
  std::string source;
  std::string why = {}; // of a large error

  double error_percent() const { return 100 * (predicted - published) / published; }
};

/// Runs them. Those of memory take most of the time.
enum class Streams { all, without_memory };
std::vector<CalibrationRow> calibration_rows(Streams streams);

/// The mean of the absolute errors of rows that are not inputs of the model.
double mean_error_percent(std::span<const CalibrationRow> rows);

/// The tables of the documentation.
std::string constants_table();
std::string calibration_line(const CalibrationRow &row);
std::string calibration_table(std::span<const CalibrationRow> rows);

} // namespace sluice::test
