//===- launch_checks_test.cpp - each rule of a launch, at its limit -------------------------------------===//
#include "abi/checks.h"
#include "unit/abi/refused.h"

#include <catch2/catch.hpp>

#include <array>

using namespace sluice;
using test::refused;

namespace {

alignas(512) unsigned char memory[1024];

/// Dependencies on an event and on a stream, in this order.
struct Dependent {
  int event = 0, stream = 0; // whose addresses are used as handles
  std::array<sluice_dependency, 2> dependencies = {
      sluice_dependency{SLUICE_DEPENDS_ON_EVENT, 0, &event, nullptr},
      sluice_dependency{SLUICE_DEPENDS_ON_STREAM, 0, &event, &stream},
  };
  sluice_launch launch = {};

  Dependent() {
    launch.dependencies = dependencies.data();
    launch.dependency_count = 2;
  }
  std::string refusal() const {
    return refused([&] { abi::check_dependencies(launch); });
  }
};

} // namespace

TEST_CASE("a workspace is refused for its size, then its pointer, then its alignment", "[launch]") {
  sluice_launch launch = {};
  const auto refusal = [&](uint64_t bytes) {
    return refused([&] { abi::check_launch(bytes, 256, launch); });
  };
  CHECK(refusal(0) == "");
  CHECK(refusal(1) == "workspace_too_small workspace_bytes: workspace_bytes is 0; the plan needs 1");
  // A workspace that the plan does not need is checked all the same.
  launch.workspace_bytes = 1;
  CHECK(refusal(0) == "workspace: workspace is NULL, but workspace_bytes is 1");
  launch.workspace = memory + 128;
  CHECK_THAT(refusal(0), Catch::StartsWith("workspace: workspace is 0x") &&
                             Catch::EndsWith("; it must be aligned to 256 bytes"));
  launch.workspace = memory + 256;
  CHECK(refusal(0) == "");
  CHECK(refusal(1) == "");
  CHECK(refusal(2) == "workspace_too_small workspace_bytes: workspace_bytes is 1; the plan needs 2");
  launch.workspace_bytes = 0;
  CHECK(refusal(0) == "");
}

TEST_CASE("a launch without need of a workspace has its dependencies checked too", "[launch]") {
  Dependent with;
  CHECK(refused([&] { abi::check_launch(0, 256, with.launch); }) == "");
  with.launch.dependencies = nullptr;
  CHECK(refused([&] { abi::check_launch(0, 256, with.launch); }) ==
        "dependencies: dependencies is NULL, but dependency_count is 2");
}

TEST_CASE("exactly the counted dependencies are read", "[launch]") {
  Dependent with;
  CHECK(with.refusal() == "");
  with.dependencies[1].event = nullptr;
  CHECK(with.refusal() == "dependencies[1].event: dependencies[1].event is NULL; both kinds of dependency "
                          "need an event from the caller");
  with.launch.dependency_count = 1;
  CHECK(with.refusal() == "");
  with.dependencies[0].event = nullptr;
  CHECK(with.refusal() == "dependencies[0].event: dependencies[0].event is NULL; both kinds of dependency "
                          "need an event from the caller");
  // An array without elements may be NULL or not.
  with.launch.dependency_count = 0;
  CHECK(with.refusal() == "");
  with.launch.dependencies = nullptr;
  CHECK(with.refusal() == "");
  with.launch.dependency_count = 1;
  CHECK(with.refusal() == "dependencies: dependencies is NULL, but dependency_count is 1");
}

TEST_CASE("a dependency has a known kind", "[launch]") {
  Dependent with;
  with.dependencies[1].kind = 0;
  CHECK(with.refusal() ==
        "dependencies[1].kind: dependencies[1].kind is 0; it must be SLUICE_DEPENDS_ON_EVENT "
        "(1) or SLUICE_DEPENDS_ON_STREAM (2)");
  with.dependencies[1].kind = 3;
  CHECK(with.refusal() == "newer_struct dependencies[1].kind: dependencies[1].kind is 3; the last value that "
                          "this version knows is SLUICE_DEPENDS_ON_STREAM (2)");
}

TEST_CASE("unused fields of a dependency are zero", "[launch]") {
  Dependent with;
  with.dependencies[0].stream = &with.stream;
  CHECK(with.refusal() == "dependencies[0].stream: dependencies[0].stream is given; it must be NULL for "
                          "SLUICE_DEPENDS_ON_EVENT");
  with.dependencies[0].stream = nullptr;
  // NULL is the default stream.
  with.dependencies[1].stream = nullptr;
  CHECK(with.refusal() == "");
  with.dependencies[0].reserved = 1;
  CHECK(with.refusal() == "newer_struct dependencies[0].reserved: dependencies[0].reserved is 1; it is "
                          "reserved in this version, and must be 0");
}
