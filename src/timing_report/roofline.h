//===- roofline.h - launches below what the device could do ---------------------------------------------===//
//
// Matrix FLOPS over the bytes that each memory level moves for them. A launch is a row of points, one for
// each level, and each level has a ceiling: nothing stands above the ceiling of its own level.
//
//===----------------------------------------------------------------------------------------------------===//
#pragma once

#include <string>
#include <vector>

#include "emulator/timing/timing.h"

namespace sluice::timing_report {

struct RooflinePoint {
  std::string label; // points of a launch share it
  emulator::timing::Level level;
  double flops_per_byte;
  double tflops;
};

/// What matrix cores could do with a type.
struct MatrixPeak {
  std::string type;
  double tflops;
};

struct Roofline {
  std::string title;
  emulator::timing::Device device;
  std::vector<MatrixPeak> peaks;
  std::vector<RooflinePoint> points;

  /// One more launch, with the types that it multiplies. Throws std::invalid_argument if it ran no MFMA, or
  /// on another device than those before.
  void add(const std::string &label, const emulator::Program &program,
           const emulator::timing::TimingResult &result);
};

std::string roofline_svg(const Roofline &roofline);

} // namespace sluice::timing_report
