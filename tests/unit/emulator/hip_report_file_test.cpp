//===- hip_report_file_test.cpp - the findings of launches, in a file -----------------------------------===//
#include "support/temporary_folder.h"
#include "unit/emulator/hip_fixture.h"

#include <fstream>
#include <nlohmann/json.hpp>

using namespace sluice::test;

TEST_CASE("each launch appends a line to the file of reports", "[hip]") {
  const TemporaryFolder folder;
  const std::string path = folder.path("reports");
  CHECK(sluice_emulator_configure("report_file", folder.path("none/reports").c_str()) ==
        SLUICE_EMULATOR_BAD_VALUE);
  REQUIRE(sluice_emulator_configure("report_file", path.c_str()) == SLUICE_EMULATOR_OK);
  {
    Fixture fixture;
    CHECK(fixture.launch(5, 100) == hipSuccess);
    CHECK(hip.hipDeviceSynchronize() == hipSuccess);
    CHECK(fixture.launch(5, Fixture::elements + 1) == hipSuccess); // one too many
    CHECK(hip.hipDeviceSynchronize() == hipErrorIllegalAddress);
  }
  std::ifstream file(path);
  std::vector<nlohmann::json> lines;
  for (std::string line; std::getline(file, line);)
    lines.push_back(nlohmann::json::parse(line));
  REQUIRE(lines.size() == 2);
  CHECK(lines[0]["counters"]["workgroups"] == 2);
  CHECK(lines[0]["reports"].empty());
  CHECK(lines[0]["kernel"] == "fill");
  REQUIRE(lines[1]["reports"].size() == 1);
  CHECK(lines[1]["reports"][0]["kind"] == "global_out_of_bounds");
  CHECK(lines[1]["reports_dropped"] == 0);
  CHECK(sluice_emulator_configure("report_file", "/dev/null") == SLUICE_EMULATOR_OK);
}
