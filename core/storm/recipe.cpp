#include "core/storm/recipe.hpp"

#include <fmt/format.h>

#include <charconv>

namespace holdfast::storm {
namespace {

using Numbers = std::vector<std::uint32_t>;
constexpr std::uint32_t kMostNumber = 1'000'000;
// One seed in so many is SimGrid's.
constexpr std::uint64_t kSimGridEach = 20;

std::string text_of(const Numbers& numbers) {
  if (numbers.empty()) return "-";
  std::string text;
  for (std::size_t i = 0; i < numbers.size();) {
    std::size_t end = i + 1;
    while (end < numbers.size() && numbers[end] == numbers[end - 1] + 1) ++end;
    if (!text.empty()) text += ',';
    text += end - i > 1 ? fmt::format("{}-{}", numbers[i], numbers[end - 1])
                        : fmt::format("{}", numbers[i]);
    i = end;
  }
  return text;
}

template <class Number>
bool read_number(std::string_view text, Number& to) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), to);
  return error == std::errc{} && end == text.data() + text.size();
}

// Cuts `text` at the first `separator`; what comes before it.
std::string_view cut(std::string_view& text, char separator) {
  const std::size_t at = text.find(separator);
  const std::string_view head = text.substr(0, at);
  text = at == std::string_view::npos ? std::string_view{} : text.substr(at + 1);
  return head;
}

Parsed<Numbers> read_numbers(std::string_view text) {
  Numbers numbers;
  if (text == "-") return numbers;
  const std::string whole(text);
  for (bool more = true; more;) {
    more = text.find(',') != std::string_view::npos;
    std::string_view range = cut(text, ',');
    const bool single = range.find('-') == std::string_view::npos;
    std::uint32_t first = 0;
    std::uint32_t last = 0;
    const std::string_view low = cut(range, '-');
    if (!read_number(low, first) || !read_number(single ? low : range, last) || last < first ||
        last > kMostNumber || (!numbers.empty() && first <= numbers.back())) {
      return tl::make_unexpected(
          fmt::format("'{}' is no ascending list of numbers like 0,3-5; '-' means none", whole));
    }
    for (std::uint32_t number = first; number <= last; ++number) numbers.push_back(number);
  }
  return numbers;
}

}  // namespace

Wire wire_of(const Recipe& recipe) {
  return recipe.wire.value_or(recipe.seed % kSimGridEach == 0 ? Wire::SimGrid : Wire::Virtual);
}

std::string to_string(const Recipe& recipe) {
  std::string text = fmt::format("seed={}", recipe.seed);
  if (recipe.wire) text += *recipe.wire == Wire::SimGrid ? " wire=simgrid" : " wire=virtual";
  if (recipe.tasks) text += " tasks=" + text_of(*recipe.tasks);
  if (recipe.faults) text += " faults=" + text_of(*recipe.faults);
  if (recipe.groups) text += " groups=" + text_of(*recipe.groups);
  return text;
}

Parsed<Recipe> parse_recipe(std::string_view text) {
  Recipe recipe;
  bool seeded = false;
  while (!text.empty()) {
    std::string_view value = cut(text, ' ');
    if (value.empty()) continue;
    const std::string_view key = cut(value, '=');
    if (key == "seed") {
      if (!read_number(value, recipe.seed)) {
        return tl::make_unexpected(fmt::format("'{}' is no seed; write 0 or more", value));
      }
      seeded = true;
      continue;
    }
    if (key == "wire") {
      if (value != "virtual" && value != "simgrid") {
        return tl::make_unexpected(
            fmt::format("'{}' is no network; write virtual or simgrid", value));
      }
      recipe.wire = value == "simgrid" ? Wire::SimGrid : Wire::Virtual;
      continue;
    }
    auto* list = key == "tasks"    ? &recipe.tasks
                 : key == "faults" ? &recipe.faults
                 : key == "groups" ? &recipe.groups
                                   : nullptr;
    if (list == nullptr) {
      return tl::make_unexpected(fmt::format(
          "'{}' is not known here; a recipe has seed=, wire=, tasks=, faults=, groups=", key));
    }
    Parsed<Numbers> numbers = read_numbers(value);
    if (!numbers) return tl::make_unexpected(numbers.error());
    *list = std::move(*numbers);
  }
  if (!seeded) return tl::make_unexpected(std::string("a recipe needs seed=NUMBER"));
  return recipe;
}

}  // namespace holdfast::storm
