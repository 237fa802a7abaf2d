//===- progress_test.cpp - the progress bar -------------------------------------------------------------===//

#include "support/temporary_folder.h"
#include "tools/progress.h"

#include <catch2/catch.hpp>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <fcntl.h>
#include <thread>
#include <unistd.h>

using namespace sluice::tools;

namespace {

/// Sends stderr to a file while it lives.
class StderrToFile {
public:
  explicit StderrToFile(const std::string &path) : saved(dup(STDERR_FILENO)) {
    const int file = open(path.c_str(), O_CREAT | O_WRONLY | O_TRUNC, 0600);
    dup2(file, STDERR_FILENO);
    close(file);
  }
  ~StderrToFile() {
    std::fflush(stderr);
    dup2(saved, STDERR_FILENO);
    close(saved);
  }

private:
  int saved;
};

} // namespace

TEST_CASE("the progress bar") {
  CHECK(progress_bar(0, 4) == "[>   ]");
  CHECK(progress_bar(0.5, 4) == "[==> ]");
  CHECK(progress_bar(1, 4) == "[====]");
  CHECK(progress_bar(7, 4) == "[====]");
  CHECK(progress_bar(-1, 4) == "[>   ]");
}

TEST_CASE("progress shows after a second, a line per tenth where there is no terminal") {
  const sluice::test::TemporaryFolder folder;
  {
    const StderrToFile redirect(folder.path("stderr"));
    Progress progress("kernel");
    progress.update(0.5); // too early
    std::this_thread::sleep_for(std::chrono::milliseconds(1050));
    progress.update(NAN);
    progress.update(0.05);
    progress.update(0.31);
    progress.update(0.35);
    progress.update(0.4001);
    progress.finish();
  }
  CHECK(folder.read("stderr") == "kernel 30% 1 s\nkernel 40% 1 s\n");
}
