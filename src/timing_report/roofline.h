//===- roofline.h - compares launches with the device's limits ------------------------------------------===//
//
// Plots matrix FLOPS over the bytes that each memory level moves for them. A launch is a row of points, one
// for each level, and each level has a ceiling: no point is above the ceiling of its own level.
//
//===----------------------------------------------------------------------------------------------------===//
#pragma once

#include <string>
#include <vector>

#include "emulator/timing/timing.h"

namespace sluice::timing_report {

struct RooflinePoint {
  std::string label; // shared by the points of a launch
  emulator::timing::Level level;
  double flops_per_byte;
  double tflops;
};

/// The peak rate of matrix cores for a type.
struct MatrixPeak {
  std::string type;
  double tflops;
};

struct Roofline {
  std::string title;
  emulator::timing::Device device;
  std::vector<MatrixPeak> peaks;
  std::vector<RooflinePoint> points;

  /// Adds a launch, with the types that it multiplies. Throws std::invalid_argument if it ran no MFMA, or ran
  /// on another device than those before.
  void add(const std::string &label, const emulator::Program &program,
           const emulator::timing::TimingResult &result);
};

std::string roofline_svg(const Roofline &roofline);

} // namespace sluice::timing_report
