//===- figures.cpp - figures that the tests of bounds have counted, and their page ----------------------===//
#include "bounds/figures.h"

#include "support/files.h"

#include <catch2/catch.hpp>

#include <cstdio>

namespace sluice::test {

std::string table_row(const std::vector<std::string> &cells) {
  std::string row = "|";
  for (const std::string &cell : cells)
    row += " " + cell + " |";
  return row;
}

std::string decimal(double value, int digits) {
  char text[64];
  std::snprintf(text, sizeof text, "%.*f", digits, value);
  return text;
}

void check_page(const std::string &line) {
  const std::vector<std::byte> bytes = read_file(SLUICE_BOUNDS_PAGE);
  const std::string page(reinterpret_cast<const char *>(bytes.data()), bytes.size());
  INFO("docs/concepts/bounds.md lacks: " << line);
  CHECK(page.find(line + "\n") != std::string::npos);
}

} // namespace sluice::test
