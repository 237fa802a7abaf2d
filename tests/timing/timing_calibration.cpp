//===- timing_calibration.cpp - prints the tables of docs/concepts/timing.md ----------------------------===//
#include <cstdio>
#include <exception>

#include "timing/calibration.h"

int main() try {
  const auto rows = sluice::test::calibration_rows(sluice::test::Streams::all);
  std::printf("%s\n%s", sluice::test::constants_table().c_str(),
              sluice::test::calibration_table(rows).c_str());
  return 0;
} catch (const std::exception &error) {
  std::fprintf(stderr, "timing_calibration: %s\n", error.what());
  return 1;
}
