// Aligned columns for people.
#pragma once

#include <string>
#include <vector>

namespace holdfast::cli {

class Table {
 public:
  enum class Align { Left, Right };
  struct Column {
    std::string title;
    Align align = Align::Right;
  };

  explicit Table(std::vector<Column> columns);
  // As many cells as there are columns. Cells are escaped here.
  void add(std::vector<std::string> cells);
  // Title line and rows, two spaces between columns, no space at the end of a line.
  [[nodiscard]] std::string text() const;

 private:
  std::vector<Column> columns_;
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace holdfast::cli
