//===- log_test.cpp - the process's log -----------------------------------------------------------------===//
#include "support/log.h"

#include <catch2/catch.hpp>

#include <string>
#include <vector>

using namespace sluice::support;

namespace {

struct Seen {
  std::vector<uint32_t> levels;
  std::vector<std::string> messages;

  static void add(uint32_t level, const char *message, void *user) {
    static_cast<Seen *>(user)->levels.push_back(level);
    static_cast<Seen *>(user)->messages.push_back(message);
  }
};

} // namespace

TEST_CASE("the log is off by default, filters by severity, and can be turned off again", "[log]") {
  CHECK(!logs(LogLevel::error));
  Seen seen;
  set_log(Seen::add, &seen, uint32_t(LogLevel::warning));
  CHECK(logs(LogLevel::error));
  CHECK(logs(LogLevel::warning));
  CHECK(!logs(LogLevel::info));
  log(LogLevel::error, "one");
  log(LogLevel::info, "two");
  log(LogLevel::warning, "three");
  set_log(nullptr, nullptr, uint32_t(LogLevel::debug));
  CHECK(!logs(LogLevel::error));
  log(LogLevel::error, "four");
  CHECK(seen.levels == std::vector<uint32_t>{1, 2});
  CHECK(seen.messages == std::vector<std::string>{"one", "three"});
}
