// What the command prints besides its answers, and its exit statuses.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/error.hpp"
#include "core/io/scenario.hpp"

namespace holdfast::cli {

enum class ExitStatus { Done = 0, Failed = 1, BadInput = 2 };

// To stderr: "holdfast: error: FILE:LINE:COL: message [code]", escaped.
void print_error(std::string_view text);
void print_error(const Error& error);
void print_warnings(const std::vector<std::string>& warnings);

// To stdout. `text` may have several lines; names in it have been escaped.
void print(std::string_view text);

// "star,chain" or "all" from the command line; nothing given: what the scenario says.
[[nodiscard]] std::vector<Policy> chosen_policies(const std::string& option,
                                                  const Scenario& scenario);

// The largest resident set so far of this process and of the children that have ended.
[[nodiscard]] std::uint64_t peak_rss_bytes();

// `text` in lines of at most `width`, broken at spaces.
[[nodiscard]] std::string wrapped(std::string_view text, std::size_t width = 100);

}  // namespace holdfast::cli
