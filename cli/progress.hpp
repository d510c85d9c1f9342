// One line on a terminal that says how far a long run is; nothing anywhere else.
#pragma once

#include <string>

namespace holdfast::cli {

class Progress {
 public:
  // Prints to stderr, and only if that is a terminal.
  Progress();
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void show(const std::string& what, double fraction);
  // Takes the line away again.
  void clear();

 private:
  bool terminal_;
  bool shown_ = false;
  int percent_ = -1;
  std::string what_;
};

}  // namespace holdfast::cli
