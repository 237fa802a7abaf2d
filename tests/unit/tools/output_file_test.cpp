//===- output_file_test.cpp - which files are written, and which stay unchanged -------------------------===//

#include "support/temporary_folder.h"
#include "tools/shared/context.h"
#include "tools/shared/output_file.h"

#include <catch2/catch.hpp>
#include <fcntl.h>
#include <filesystem>
#include <string_view>
#include <sys/stat.h>
#include <unistd.h>

using namespace sluice::tools;
using sluice::test::TemporaryFolder;
namespace fs = std::filesystem;

namespace {

void write_text(OutputFile &file, std::string_view text) {
  file.write({std::as_bytes(std::span(text))});
}

void replace(const std::string &path, std::string_view text) {
  OutputFile file("--out", path);
  write_text(file, text);
  file.publish();
}

size_t entries(const TemporaryFolder &folder) {
  return size_t(std::distance(fs::directory_iterator(folder.path("")), {}));
}

} // namespace

TEST_CASE("a name changes only when its file is published") {
  TemporaryFolder folder;
  const std::string path = folder.write("a", "before");
  {
    OutputFile file("--out", path);
    file.write({std::as_bytes(std::span(std::string_view("one "))), std::as_bytes(std::span("two", 3))});
    CHECK(folder.read("a") == "before");
    file.publish();
    CHECK(folder.read("a") == "one two");
  }
  {
    OutputFile file("--out", path);
    write_text(file, "never published");
  }
  CHECK(folder.read("a") == "one two");
  CHECK(entries(folder) == 1);
}

TEST_CASE("other files of the folder are unchanged") {
  TemporaryFolder folder;
  folder.write("a.partial", "mine");
  folder.write(".sluice-" + std::to_string(getpid()) + "-0.partial", "mine, too");
  replace(folder.path("a"), "new");
  CHECK(folder.read("a") == "new");
  CHECK(folder.read("a.partial") == "mine");
  CHECK(folder.read(".sluice-" + std::to_string(getpid()) + "-0.partial") == "mine, too");
  CHECK(entries(folder) == 3);
}

TEST_CASE("symbolic links stay, and their targets are written") {
  TemporaryFolder folder;
  fs::create_directory(folder.path("inner"));
  folder.write("inner/file", "before");
  fs::create_symlink("inner/file", folder.path("link"));
  fs::create_symlink("link", folder.path("link_to_link"));
  fs::create_symlink("inner/later", folder.path("dangling"));
  replace(folder.path("link_to_link"), "after");
  replace(folder.path("dangling"), "new");
  CHECK(folder.read("inner/file") == "after");
  CHECK(folder.read("inner/later") == "new");
  for (const char *name : {"link", "link_to_link", "dangling"})
    CHECK(fs::is_symlink(folder.path(name)));
}

TEST_CASE("pipes and devices are written, not replaced") {
  TemporaryFolder folder;
  REQUIRE(mkfifo(folder.path("pipe").c_str(), 0600) == 0);
  const int reader = open(folder.path("pipe").c_str(), O_RDONLY | O_NONBLOCK);
  REQUIRE(reader >= 0);
  replace(folder.path("pipe"), "through");
  char text[16] = {};
  CHECK(read(reader, text, sizeof text) == 7);
  close(reader);
  CHECK(std::string(text) == "through");
  CHECK(fs::is_fifo(folder.path("pipe")));
  // A link to a device, so that a defect replaces the link and not the machine's device.
  fs::create_symlink("/dev/null", folder.path("null"));
  replace(folder.path("null"), "lost");
  CHECK(fs::is_symlink(folder.path("null")));
  fs::create_symlink("/dev/full", folder.path("full"));
  CHECK_THROWS_WITH(replace(folder.path("full"), "x"),
                    Catch::Matchers::EndsWith("full cannot be written: No space left on device"));
}

TEST_CASE("a file keeps its access rights, and a new one gets the usual ones") {
  TemporaryFolder folder;
  const mode_t mask = umask(027);
  replace(folder.path("new"), "x");
  umask(mask);
  folder.write("old", "x");
  fs::permissions(folder.path("old"), fs::perms(0604));
  replace(folder.path("old"), "y");
  CHECK(fs::status(folder.path("new")).permissions() == fs::perms(0640));
  CHECK(fs::status(folder.path("old")).permissions() == fs::perms(0604));
}

TEST_CASE("names that cannot be written are refused at once") {
  TemporaryFolder folder;
  CHECK_THROWS_WITH(OutputFile("--out", ""), "--out is empty; it must be the name of a file");
  CHECK_THROWS_WITH(OutputFile("--out", folder.path("")),
                    Catch::Matchers::EndsWith("cannot be written: Is a directory"));
  CHECK_THROWS_WITH(OutputFile("--lse", folder.path("no/such")),
                    Catch::Matchers::StartsWith("--lse: ") &&
                        Catch::Matchers::EndsWith("cannot be written: No such file or directory"));
  fs::create_symlink("loop", folder.path("loop"));
  CHECK_THROWS_AS(OutputFile("--out", folder.path("loop")), ToolError);
}

TEST_CASE("two outputs need two files, in any spelling") {
  TemporaryFolder folder;
  folder.write("old", "x");
  fs::create_hard_link(folder.path("old"), folder.path("same"));
  fs::create_symlink("new", folder.path("link"));
  const auto refused = [&](const std::string &a, const std::string &b) {
    try {
      OutputFile::refuse_same(OutputFile("--out", a), OutputFile("--lse", b));
    } catch (const ToolError &error) {
      CHECK_THAT(error.what(), Catch::Contains("--out") && Catch::Contains("--lse"));
      return true;
    }
    return false;
  };
  CHECK(refused(folder.path("new"), folder.path("new")));
  CHECK(refused(folder.path("new"), folder.path("./new")));
  CHECK(refused(folder.path("new"), folder.path("link")));
  CHECK(refused(folder.path("old"), folder.path("same")));
  CHECK_FALSE(refused(folder.path("new"), folder.path("old")));
  CHECK_FALSE(refused(folder.path("new"), folder.path("newer")));
  CHECK_FALSE(refused("/dev/null", "/dev/null"));
}
