//===- calibration.cpp - the tables of the timing model -------------------------------------------------===//
#include "timing/calibration.h"

#include <cmath>
#include <cstdio>

#include "emulator/isa/timing_constants.h"

namespace sluice::test {

namespace {

std::string number(double value) {
  char text[32];
  std::snprintf(text, sizeof text, value == std::floor(value) ? "%.0f" : value < 10 ? "%.3f" : "%.2f", value);
  return text;
}

} // namespace

double mean_error_percent(std::span<const CalibrationRow> rows) {
  double sum = 0;
  size_t count = 0;
  for (const CalibrationRow &row : rows) {
    if (row.input) continue;
    sum += std::fabs(row.error_percent());
    ++count;
  }
  return sum / double(count);
}

std::string constants_table() {
  std::string text = "| constant | value | source |\n| --- | --- | --- |\n";
  for (const emulator::timing::Constant &constant : emulator::timing::constants()) {
    text += "| " + std::string(constant.name) + " | " + number(constant.value);
    if (!constant.unit.empty()) text += " " + std::string(constant.unit);
    text += " | " + std::string(constant.source) + " |\n";
  }
  return text;
}

std::string calibration_line(const CalibrationRow &row) {
  char error[32];
  std::snprintf(error, sizeof error, "%+.1f %%", row.error_percent());
  return "| " + row.stream + " | " + row.unit + " | " + number(row.published) + " | " +
         number(row.predicted) + " | " + (row.input ? "input" : error) + " | " + row.source + " |\n";
}

std::string calibration_table(std::span<const CalibrationRow> rows) {
  std::string text =
      "| stream | unit | published | model | error | source |\n| --- | --- | --- | --- | --- | --- |\n";
  for (const CalibrationRow &row : rows)
    text += calibration_line(row);
  for (const CalibrationRow &row : rows)
    if (!row.why.empty()) text += "\n" + row.stream + ": " + row.why + ".\n";
  char mean[64];
  std::snprintf(mean, sizeof mean, "\nMean error of the rows that are not inputs: %.1f %%.\n",
                mean_error_percent(rows));
  return text + mean;
}

} // namespace sluice::test
