//===- text_table.h - rows of figures in columns --------------------------------------------------------===//
#pragma once

#include <fmt/format.h>
#include <functional>
#include <string>
#include <vector>

namespace sluice::tools {

/// A column of a table with one `Row` per row.
template <typename Row> struct TextColumn {
  const char *title;
  int width; // on a terminal; negative: left-aligned
  std::function<std::string(const Row &)> cell;
};

inline std::string padded_cell(const std::string &text, int width) {
  return width < 0 ? fmt::format("{:<{}}  ", text, -width) : fmt::format("{:>{}}  ", text, width);
}

/// In markdown, or in columns for a terminal; includes the end of the line.
template <typename Row> std::string table_head(const std::vector<TextColumn<Row>> &columns, bool markdown) {
  std::string titles, line;
  for (const TextColumn<Row> &column : columns) {
    titles += markdown ? fmt::format("| {} ", column.title) : padded_cell(column.title, column.width);
    line += column.width < 0 ? "| --- " : "| ---: ";
  }
  return markdown ? titles + "|\n" + line + "|\n" : titles + "\n";
}

template <typename Row>
std::string table_row(const std::vector<TextColumn<Row>> &columns, bool markdown, const Row &row) {
  std::string text;
  for (const TextColumn<Row> &column : columns)
    text += markdown ? fmt::format("| {} ", column.cell(row)) : padded_cell(column.cell(row), column.width);
  return text + (markdown ? "|\n" : "\n");
}

} // namespace sluice::tools
