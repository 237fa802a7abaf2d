//===- temporary_folder.h - a folder that is deleted at the end of the test -----------------------------===//
#pragma once

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <string>

namespace sluice::test {

class TemporaryFolder {
public:
  TemporaryFolder() {
    std::string name = (std::filesystem::temp_directory_path() / "sluice-XXXXXX").string();
    if (!mkdtemp(name.data())) throw std::runtime_error("no temporary folder " + name);
    folder = name;
  }
  TemporaryFolder(const TemporaryFolder &) = delete;
  TemporaryFolder &operator=(const TemporaryFolder &) = delete;
  ~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(folder, ignored);
  }

  std::string path(const std::string &name) const { return (folder / name).string(); }

  std::string write(const std::string &name, const std::string &content) const {
    std::ofstream(folder / name, std::ios::binary) << content;
    return path(name);
  }

  std::string read(const std::string &name) const {
    std::ifstream file(folder / name, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }

  bool is_empty() const { return std::filesystem::is_empty(folder); }

private:
  std::filesystem::path folder;
};

} // namespace sluice::test
