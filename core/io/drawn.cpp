#include "core/io/drawn.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "core/io/share.hpp"

namespace holdfast {
namespace {

constexpr double kMostSigma = 5;
constexpr double kMostShape = 100;
constexpr std::size_t kMostEntries = 10'000;
constexpr std::int64_t kMostTokens = 1'000'000'000;
constexpr Time kLeastTime = nanoseconds(1);
constexpr Time kMostTime = seconds(3'600'000);
constexpr std::uint64_t kWhole = 1'000'000;

double quantity(const YamlValue& value, Drawn drawn) {
  if (drawn == Drawn::Tokens) return static_cast<double>(value.integer(1, kMostTokens));
  const Time time = value.time(Zero::Refused);
  if (time < kLeastTime || time > kMostTime) {
    value.refuse(ErrorCode::BadValue, "write a time from 1ns to 1000h");
  }
  return time.seconds();
}

Distribution read_table(const YamlValue& value, Drawn drawn) {
  std::vector<Table::Entry> entries;
  std::uint64_t sum = 0;
  const std::vector<YamlValue> items = value.list();
  if (items.empty()) value.refuse(ErrorCode::BadValue, "write at least one entry");
  if (items.size() > kMostEntries) {
    value.refuse(ErrorCode::LimitExceeded,
                 fmt::format("{} entries; at most {} are read", items.size(), kMostEntries));
  }
  for (const YamlValue& item : items) {
    YamlMap map = item.map();
    const YamlValue written = map.require(drawn == Drawn::Tokens ? "tokens" : "time");
    const double amount = quantity(written, drawn);
    const std::uint32_t share = read_share(map.require("share"), Zero::Refused);
    map.finish();
    if (!entries.empty() && amount <= entries.back().value) {
      written.refuse(ErrorCode::BadValue, "entries ascend: write the smaller ones first");
    }
    entries.push_back({amount, share});
    sum += share;
  }
  if (sum != kWhole) {
    value.refuse(ErrorCode::BadValue, fmt::format("the shares add up to {}%; they must be 100%",
                                                  static_cast<double>(sum) / 1e4));
  }
  return Distribution::table(std::move(entries));
}

Distribution read_pareto(const YamlValue& value, Drawn drawn, const YamlValue* most_value,
                         double most) {
  YamlMap map = value.map();
  const YamlValue least_value = map.require("least");
  const double least = quantity(least_value, drawn);
  const YamlValue shape_value = map.require("shape");
  const double shape = shape_value.number(0.01, kMostShape);
  map.finish();
  if (shape <= 1 && most_value == nullptr) {
    shape_value.refuse(ErrorCode::BadValue,
                       "with a shape of at most 1 the mean is infinite; write 'most' beside "
                       "'pareto', or a larger shape");
  }
  if (most <= least) {
    most_value->refuse(ErrorCode::BadValue, "'most' must be more than 'least'");
  }
  return Distribution::pareto(least, shape, most);
}

}  // namespace

Distribution read_distribution(const YamlValue& value, Drawn drawn) {
  YamlMap map = value.map();
  constexpr std::array<std::string_view, 5> kShapes{"lognormal", "pareto", "exponential", "table",
                                                    "constant"};
  std::vector<std::pair<std::string_view, YamlValue>> written;
  for (const std::string_view shape : kShapes) {
    if (const auto found = map.find(shape)) written.emplace_back(shape, *found);
  }
  const bool bounded =
      written.size() == 1 && (written[0].first == "table" || written[0].first == "constant");
  if (bounded) map.no_effect("most", "the values are given one by one");
  const auto most_value = map.find("most");
  map.finish();
  if (written.size() != 1) {
    value.refuse(ErrorCode::BadValue,
                 "write exactly one of 'lognormal', 'pareto', 'exponential', 'table' and "
                 "'constant', and 'most' beside it");
  }
  const double most = most_value ? quantity(*most_value, drawn) : Distribution::kNoLimit;
  const auto& [shape, parameters] = written[0];
  if (shape == "table") return read_table(parameters, drawn);
  if (shape == "constant") {
    return Distribution::table({{quantity(parameters, drawn), std::uint32_t{kWhole}}});
  }
  if (shape == "pareto") {
    return read_pareto(parameters, drawn, most_value ? &*most_value : nullptr, most);
  }
  YamlMap inner = parameters.map();
  if (shape == "exponential") {
    const double mean = quantity(inner.require("mean"), drawn);
    inner.finish();
    return Distribution::exponential(mean, most);
  }
  const double median = quantity(inner.require("median"), drawn);
  const double sigma = inner.require("sigma").number(0, kMostSigma);
  inner.finish();
  return Distribution::lognormal(median, sigma, most);
}

double read_frequency(const YamlValue& value) {
  constexpr const char* kAdvice =
      "write how many and in which time, like '20/h', '0.5/day', '3/min' or '1/s'; more than none "
      "and at most 1e9/h";
  constexpr std::array<std::pair<std::string_view, double>, 4> kUnits{
      {{"day", 1.0 / 24}, {"h", 1}, {"min", 60}, {"s", 3600}}};
  constexpr double kMost = 1e9;
  const std::string text = value.text();
  const std::size_t slash = text.find('/');
  if (slash == std::string::npos) value.refuse(ErrorCode::BadUnit, kAdvice);
  const std::string_view unit = std::string_view(text).substr(slash + 1);
  const auto* const known = std::find_if(kUnits.begin(), kUnits.end(),
                                         [&](const auto& each) { return each.first == unit; });
  double number = 0;
  const char* const end = text.data() + slash;
  const auto [stop, error] = std::from_chars(text.data(), end, number);
  if (known == kUnits.end() || error != std::errc() || stop != end || !std::isfinite(number)) {
    value.refuse(ErrorCode::BadUnit, kAdvice);
  }
  const double per_hour = number * known->second;
  if (!(per_hour >= 1e-9) || per_hour > kMost) value.refuse(ErrorCode::BadUnit, kAdvice);
  return per_hour;
}

}  // namespace holdfast
