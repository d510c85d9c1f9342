#include "cli/progress.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstdio>

#include <fmt/format.h>

namespace holdfast::cli {

Progress::Progress() : terminal_(isatty(STDERR_FILENO) == 1) {}

Progress::~Progress() {
  clear();
}

void Progress::show(const std::string& what, double fraction) {
  const int percent = static_cast<int>(std::clamp(fraction, 0.0, 1.0) * 100);
  if (!terminal_ || (percent == percent_ && what == what_)) {
    return;
  }
  percent_ = percent;
  what_ = what;
  shown_ = true;
  constexpr int kWidth = 40;
  const int filled = percent * kWidth / 100;
  fmt::print(stderr, "\r{} [{:#<{}}{:.<{}}] {:3} %\x1b[K", what, "", filled, "", kWidth - filled,
             percent);
  std::fflush(stderr);
}

void Progress::clear() {
  if (shown_) {
    fmt::print(stderr, "\r\x1b[K");
    std::fflush(stderr);
    shown_ = false;
  }
}

}  // namespace holdfast::cli
