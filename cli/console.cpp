#include "cli/console.hpp"

#include <sys/resource.h>

#include <algorithm>
#include <cstdio>

#include <fmt/format.h>

#include "core/io/printable.hpp"

namespace holdfast::cli {

void print_error(std::string_view text) {
  fmt::print(stderr, "holdfast: error: {}\n", printable(text));
}

void print_error(const Error& error) {
  print_error(std::string_view(error.what()));
}

void print_warnings(const std::vector<std::string>& warnings) {
  for (const std::string& warning : warnings) {
    fmt::print(stderr, "holdfast: warning: {}\n", printable(warning));
  }
}

void print(std::string_view text) {
  std::fwrite(text.data(), 1, text.size(), stdout);
}

std::vector<Policy> chosen_policies(const std::string& option, const Scenario& scenario) {
  if (option.empty()) {
    return scenario.policies;
  }
  const Place place{"--policy", 0, 0, {}, {}};
  std::vector<Word> names;
  std::string_view rest = option;
  while (true) {
    const std::size_t comma = rest.find(',');
    names.push_back({std::string(rest.substr(0, comma)), place});
    if (comma == std::string_view::npos) {
      return policies_of(names);
    }
    rest.remove_prefix(comma + 1);
  }
}

std::uint64_t peak_rss_bytes() {
  std::uint64_t peak = 0;
  for (const auto who : {RUSAGE_SELF, RUSAGE_CHILDREN}) {
    rusage usage{};
    if (getrusage(who, &usage) == 0) {
      // Linux counts in KiB.
      peak = std::max(peak, static_cast<std::uint64_t>(usage.ru_maxrss) * 1'024);
    }
  }
  return peak;
}

std::string wrapped(std::string_view text, std::size_t width) {
  std::string result;
  std::size_t column = 0;
  while (!text.empty()) {
    std::size_t end = text.find_first_of(" \n");
    // The direction of a link stays with its name.
    while (end != std::string_view::npos && end + 1 < text.size() &&
           (text[end + 1] == '>' || text[end + 1] == '<')) {
      end = text.find_first_of(" \n", end + 1);
    }
    const std::string word = printable(text.substr(0, end));
    if (!word.empty()) {
      if (column > 0 && column + 1 + word.size() > width) {
        result += '\n';
        column = 0;
      } else if (column > 0) {
        result += ' ';
        ++column;
      }
      result += word;
      column += word.size();
    }
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  }
  return result;
}

}  // namespace holdfast::cli
