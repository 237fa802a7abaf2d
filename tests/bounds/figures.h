//===- figures.h - figures that the tests of bounds have counted, and their page ------------------------===//
#pragma once

#include <string>
#include <vector>

namespace sluice::test {

/// A row of a table, "| a | b |".
std::string table_row(const std::vector<std::string> &cells);
/// With `digits` after the decimal point.
std::string decimal(double value, int digits);
/// Checks that docs/concepts/bounds.md has the line.
void check_page(const std::string &line);

} // namespace sluice::test
