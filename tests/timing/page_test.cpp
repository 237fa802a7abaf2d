//===- page_test.cpp - docs/concepts/timing.md agrees with the model ------------------------------------===//
#include <catch2/catch.hpp>

#include "support/files.h"
#include "support/level.h"
#include "timing/calibration.h"

namespace sluice::test {

namespace {

std::string page() {
  const std::vector<std::byte> bytes = read_file(SLUICE_TIMING_PAGE);
  return {reinterpret_cast<const char *>(bytes.data()), bytes.size()};
}

} // namespace

TEST_CASE("the page shows the constants of the model", "[timing]") {
  CHECK(page().find(constants_table()) != std::string::npos);
}

TEST_CASE("the errors against published measurements are those on the page", "[timing]") {
  const std::vector<CalibrationRow> rows =
      calibration_rows(is_full() ? Streams::all : Streams::without_memory);
  if (is_full()) {
    CHECK(page().find(calibration_table(rows)) != std::string::npos);
    CHECK(mean_error_percent(rows) <= 10);
  }
  for (const CalibrationRow &row : rows) {
    INFO(row.stream);
    CHECK(page().find(calibration_line(row)) != std::string::npos);
    CHECK((std::abs(row.error_percent()) <= 25 || !row.why.empty()));
  }
}

} // namespace sluice::test
