//===- hip_warnings_test.cpp - reports that leave the device usable -------------------------------------===//
#include "unit/emulator/hip_fixture.h"

#include <nlohmann/json.hpp>

using namespace sluice::test;

namespace {

int configure(const char *key, const char *value) {
  return sluice_emulator_configure(key, value);
}

/// "kind, severity"
std::string only_report() {
  const nlohmann::json reports = nlohmann::json::parse(take_reports());
  REQUIRE(reports.size() == 1);
  return reports[0]["kind"].get<std::string>() + ", " + reports[0]["severity"].get<std::string>();
}

/// A kernel that copies 64 dwords, of which the first is never written.
class HoleInTheInput {
public:
  HoleInTheInput() {
    const std::vector<std::byte> elf = read_file(SLUICE_CODE_OBJECT_COPY_WORDS);
    REQUIRE(hip.hipModuleLoadData(&module, elf.data()) == hipSuccess);
    REQUIRE(hip.hipModuleGetFunction(&copy_words, module, "copy_words") == hipSuccess);
    for (int **pointer : {&in, &out})
      REQUIRE(hip.hipMalloc(reinterpret_cast<void **>(pointer), bytes) == hipSuccess);
    const std::vector<int> values(63, 7);
    REQUIRE(hip.hipMemcpy(in + 1, values.data(), bytes - 4, hipMemcpyHostToDevice) == hipSuccess);
  }
  ~HoleInTheInput() {
    configure("clear_fault", "1");
    configure("defaults", "1");
    take_reports();
    CHECK(hip.hipFree(in) == hipSuccess);
    CHECK(hip.hipFree(out) == hipSuccess);
    CHECK(hip.hipModuleUnload(module) == hipSuccess);
    hip.hipGetLastError();
  }

  hipError_t run() {
    void *parameters[] = {&out, &in};
    REQUIRE(hip.hipModuleLaunchKernel(copy_words, 1, 1, 1, 64, 1, 1, 0, nullptr, parameters, nullptr) ==
            hipSuccess);
    return hip.hipDeviceSynchronize();
  }
  /// The last of the dwords, as a program reads its results.
  hipError_t fetch(int &last) { return hip.hipMemcpy(&last, out + 63, sizeof last, hipMemcpyDeviceToHost); }

private:
  static constexpr size_t bytes = 256;
  hipModule_t module = nullptr;
  hipFunction_t copy_words = nullptr;
  int *in = nullptr;
  int *out = nullptr;
};

} // namespace

TEST_CASE("after a warning the results can be copied, after an error they cannot", "[hip]") {
  HoleInTheInput kernel;
  int last = 0;
  CHECK(kernel.run() == hipErrorLaunchFailure);
  CHECK(kernel.fetch(last) == hipErrorLaunchFailure);
  CHECK(only_report() == "register_uninitialised, error");
  REQUIRE(configure("clear_fault", "1") == SLUICE_EMULATOR_OK);

  for (const auto &[key, value] : {std::pair{"warnings", "all"}, std::pair{"warnings", "uninitialised"},
                                   std::pair{"uninitialised", "report"}}) {
    INFO(key << " = " << value);
    REQUIRE(configure("defaults", "1") == SLUICE_EMULATOR_OK);
    REQUIRE(configure(key, value) == SLUICE_EMULATOR_OK);
    last = 0;
    CHECK(kernel.run() == hipSuccess);
    CHECK(kernel.fetch(last) == hipSuccess);
    CHECK(last == 7);
    CHECK(only_report() == "register_uninitialised, warning");
  }
  // And back.
  REQUIRE(configure("uninitialised", "fault") == SLUICE_EMULATOR_OK);
  CHECK(kernel.run() == hipErrorLaunchFailure);
}

TEST_CASE("refused accesses and endless kernels are always errors", "[hip]") {
  Fixture fixture;
  REQUIRE(configure("warnings", "all") == SLUICE_EMULATOR_OK);
  CHECK(fixture.launch(5, Fixture::elements + 1) == hipSuccess);
  CHECK(hip.hipDeviceSynchronize() == hipErrorIllegalAddress);
  REQUIRE(configure("clear_fault", "1") == SLUICE_EMULATOR_OK);
  REQUIRE(configure("instruction_budget", "3") == SLUICE_EMULATOR_OK);
  CHECK(fixture.launch(5, 64) == hipSuccess);
  CHECK(hip.hipDeviceSynchronize() == hipErrorLaunchFailure);
  CHECK(configure("global_bounds", "report") == SLUICE_EMULATOR_BAD_VALUE);
  CHECK(configure("warnings", "global_bounds") == SLUICE_EMULATOR_BAD_VALUE);
  CHECK(configure("warnings", "typo") == SLUICE_EMULATOR_BAD_VALUE);
  CHECK(configure("warnings", "") == SLUICE_EMULATOR_BAD_VALUE);
  CHECK(configure("stream_races", "report") == SLUICE_EMULATOR_OK);
  CHECK(configure("hazards_compiler", "fault") == SLUICE_EMULATOR_OK);
  CHECK(configure("hazards_compiler", "error") == SLUICE_EMULATOR_BAD_VALUE);
  CHECK(configure("max_reports", "0") == SLUICE_EMULATOR_BAD_VALUE);
}

TEST_CASE("the same mistake of many launches is one report, and leaves room for others", "[hip]") {
  HoleInTheInput kernel;
  REQUIRE(configure("warnings", "all") == SLUICE_EMULATOR_OK);
  constexpr int launches = 1500; // more than are kept of each kind
  for (int i = 0; i < launches; ++i)
    REQUIRE(kernel.run() == hipSuccess);
  Fixture fixture;
  CHECK(fixture.launch(5, Fixture::elements + 1) == hipSuccess);
  CHECK(hip.hipDeviceSynchronize() == hipErrorIllegalAddress);
  const nlohmann::json reports = nlohmann::json::parse(take_reports());
  REQUIRE(reports.size() == 2);
  CHECK(reports[0]["kind"] == "register_uninitialised");
  CHECK(reports[0]["count"] == launches);
  CHECK(reports[1]["kind"] == "global_out_of_bounds");
}

TEST_CASE("a rule that fills its places on the device leaves another rule's free", "[hip]") {
  REQUIRE(configure("reset_counters", "1") == SLUICE_EMULATOR_OK);
  REQUIRE(configure("max_reports", "2000") == SLUICE_EMULATOR_OK);
  REQUIRE(configure("hazards_waived", "on") == SLUICE_EMULATOR_OK);
  const std::vector<std::byte> elf = read_file(SLUICE_CODE_OBJECT_MANY_HAZARDS);
  hipModule_t module = nullptr;
  hipFunction_t kernel = nullptr;
  REQUIRE(hip.hipModuleLoadData(&module, elf.data()) == hipSuccess);
  REQUIRE(hip.hipModuleGetFunction(&kernel, module, "many_hazards") == hipSuccess);
  for (int i = 0; i < 2; ++i)
    CHECK(hip.hipModuleLaunchKernel(kernel, 1, 1, 1, 64, 1, 1, 0, nullptr, nullptr, nullptr) == hipSuccess);
  CHECK(hip.hipDeviceSynchronize() == hipSuccess);
  const nlohmann::json reports = nlohmann::json::parse(take_reports());
  REQUIRE(reports.size() == 1025);
  for (const nlohmann::json &report : reports)
    CHECK(report["count"] == 2);
  CHECK(std::ranges::count(reports, "waived", [](const auto &report) { return report["level"]; }) == 1024);
  const auto other =
      std::ranges::find(reports, "compiler", [](const auto &report) { return report["level"]; });
  REQUIRE(other != reports.end());
  CHECK_THAT((*other)["message"].get<std::string>(), Catch::StartsWith("m0:"));
  CHECK(counters().reports_dropped == 2 * (1030 - 1024));
  CHECK(configure("defaults", "1") == SLUICE_EMULATOR_OK);
  CHECK(hip.hipModuleUnload(module) == hipSuccess);
}

TEST_CASE("omitted places are counted", "[hip]") {
  Fixture fixture;
  REQUIRE(configure("reset_counters", "1") == SLUICE_EMULATOR_OK);
  CHECK(counters().reports_dropped == 0);
  // Fills beyond 1030 different ends of a block: each is more work, with a report of its own wording.
  hipStream_t one = nullptr, two = nullptr;
  REQUIRE(hip.hipStreamCreateWithFlags(&one, hipStreamNonBlocking) == hipSuccess);
  REQUIRE(hip.hipStreamCreateWithFlags(&two, hipStreamNonBlocking) == hipSuccess);
  char *memory = nullptr;
  REQUIRE(hip.hipMalloc(reinterpret_cast<void **>(&memory), 4096) == hipSuccess);
  CHECK(hip.hipMemsetAsync(memory, 1, 4096, one) == hipSuccess);
  for (size_t bytes = 1; bytes <= 1030; ++bytes)
    CHECK(hip.hipMemsetAsync(memory, 2, bytes, two) == hipSuccess);
  CHECK(hip.hipStreamSynchronize(one) == hipSuccess);
  CHECK(hip.hipStreamSynchronize(two) == hipSuccess);
  const nlohmann::json reports = nlohmann::json::parse(take_reports());
  CHECK(reports.size() == 1024);
  CHECK(reports[0]["severity"] == "error");
  CHECK(counters().reports_dropped == 6);
  CHECK(hip.hipFree(memory) == hipSuccess);
  CHECK(hip.hipStreamDestroy(one) == hipSuccess);
  CHECK(hip.hipStreamDestroy(two) == hipSuccess);
}
