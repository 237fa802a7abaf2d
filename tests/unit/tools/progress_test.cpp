//===- progress_test.cpp - the progress bar -------------------------------------------------------------===//

#include "support/temporary_folder.h"
#include "tools/shared/progress.h"

#include <catch2/catch.hpp>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <fcntl.h>
#include <string>
#include <thread>
#include <unistd.h>

using namespace sluice::tools;

namespace {

/// Redirects stderr to a file while it lives.
class StderrTo {
public:
  explicit StderrTo(int file) : saved(dup(STDERR_FILENO)) { dup2(file, STDERR_FILENO); }
  ~StderrTo() {
    std::fflush(stderr);
    dup2(saved, STDERR_FILENO);
    close(saved);
  }

private:
  int saved;
};

/// The output of a second's work to `file`.
void work(int file) {
  const StderrTo redirect(file);
  Progress progress("kernel");
  progress.update(0.5); // too early
  std::this_thread::sleep_for(std::chrono::milliseconds(1050));
  progress.update(NAN);
  progress.update(0.5);
  progress.finish();
}

} // namespace

TEST_CASE("the progress bar") {
  CHECK(progress_bar(0, 4) == "[>   ]");
  CHECK(progress_bar(0.5, 4) == "[==> ]");
  CHECK(progress_bar(1, 4) == "[====]");
  CHECK(progress_bar(7, 4) == "[====]");
  CHECK(progress_bar(-1, 4) == "[>   ]");
}

TEST_CASE("progress appears on a terminal after a second, and disappears at the end") {
  const int ours = posix_openpt(O_RDWR | O_NOCTTY);
  REQUIRE(ours >= 0);
  REQUIRE(grantpt(ours) == 0);
  REQUIRE(unlockpt(ours) == 0);
  const int theirs = open(ptsname(ours), O_RDWR | O_NOCTTY);
  REQUIRE(theirs >= 0);
  work(theirs);
  close(theirs);
  std::string written;
  char part[100];
  for (ssize_t size; (size = read(ours, part, sizeof part)) > 0;) // until the other end's closing is an error
    written.append(part, size_t(size));
  CHECK(written == "\r\033[Kkernel 1 s\r\033[Kkernel [===============>              ]  50% 1 s\r\033[K");
  close(ours);
}

TEST_CASE("progress is not shown without a terminal") {
  const sluice::test::TemporaryFolder folder;
  const int file = open(folder.path("stderr").c_str(), O_CREAT | O_WRONLY | O_TRUNC, 0600);
  work(file);
  close(file);
  CHECK(folder.read("stderr").empty());
}
