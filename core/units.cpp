#include "core/units.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <span>

#include "core/quote.hpp"

namespace holdfast {
namespace {

__extension__ using Wide = unsigned __int128;

struct Unit {
  std::string_view name;
  std::uint64_t factor;       // base units in one of it
  std::uint64_t divisor = 1;  // 8 for units of bits
};

constexpr std::uint64_t kKibi = 1024;
constexpr auto kByteUnits = std::to_array<Unit>({
    {"B", 1},
    {"kB", 1'000},
    {"KiB", kKibi},
    {"MB", 1'000'000},
    {"MiB", kKibi* kKibi},
    {"GB", 1'000'000'000},
    {"GiB", kKibi* kKibi* kKibi},
    {"TB", 1'000'000'000'000},
    {"TiB", kKibi* kKibi* kKibi* kKibi},
    {"PB", 1'000'000'000'000'000},
    {"PiB", kKibi* kKibi* kKibi* kKibi* kKibi},
    {"EB", 1'000'000'000'000'000'000},
    {"EiB", kKibi* kKibi* kKibi* kKibi* kKibi* kKibi},
});
constexpr auto kRateUnits = std::to_array<Unit>({
    {"B/s", 1},
    {"kB/s", 1'000},
    {"KiB/s", kKibi},
    {"MB/s", 1'000'000},
    {"MiB/s", kKibi* kKibi},
    {"GB/s", 1'000'000'000},
    {"GiB/s", kKibi* kKibi* kKibi},
    {"TB/s", 1'000'000'000'000},
    {"TiB/s", kKibi* kKibi* kKibi* kKibi},
    {"bps", 1, 8},
    {"kbps", 1'000, 8},
    {"Mbps", 1'000'000, 8},
    {"Gbps", 1'000'000'000, 8},
    {"Tbps", 1'000'000'000'000, 8},
});
constexpr auto kTimeUnits = std::to_array<Unit>({
    {"ps", 1},
    {"ns", 1'000},
    {"us", 1'000'000},
    {"ms", 1'000'000'000},
    {"s", 1'000'000'000'000},
    {"min", 60'000'000'000'000},
    {"h", 3'600'000'000'000'000},
});

// What one kind of quantity is called and how its texts look.
struct Dimension {
  const char* noun;
  const char* example;
  std::span<const Unit> units;
  std::uint64_t greatest;
};
constexpr Dimension kBytes{"a byte count", "4MiB or 1.5TB", kByteUnits,
                           std::numeric_limits<std::uint64_t>::max()};
constexpr Dimension kRate{"a rate", "400Gbps (bits) or 50GB/s (bytes)", kRateUnits,
                          std::numeric_limits<std::uint64_t>::max()};
constexpr Dimension kTime{"a time", "30ms or 5us", kTimeUnits,
                          static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())};

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

std::string lower(std::string_view text) {
  std::string result(text);
  for (char& c : result) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return result;
}

bool knows(const Dimension& dimension, std::string_view unit) {
  return std::any_of(dimension.units.begin(), dimension.units.end(),
                     [&](const Unit& known) { return known.name == unit; });
}

// "is ambiguous; write 100Gbps for bits or 100GB/s for bytes"; `prefix` is empty or like "G".
std::string rate_hint(std::string_view number, std::string_view prefix, std::string_view what) {
  return fmt::format("{0}; write {1}{2}bps for bits or {1}{2}B/s for bytes", what, number,
                     prefix == "K" ? "k" : prefix);
}

// What someone who wrote this wrong unit most likely meant.
std::string unit_hint(std::string_view number, std::string_view unit, const Dimension& dimension) {
  if (unit.empty()) return fmt::format("has no unit; write for example {}", dimension.example);
  const bool prefixed = std::string_view("kKMGTPE").find(unit[0]) != std::string_view::npos;
  const std::string_view prefix = unit.substr(0, prefixed ? 1 : 0);
  if (unit.size() == 1 && prefixed && &dimension == &kRate) {
    return rate_hint(number, prefix, "is ambiguous");
  }
  if (unit.size() == 1 && prefixed && &dimension == &kBytes) {
    return fmt::format("is ambiguous; write {0}{1}B (decimal) or {0}{2}iB (binary)", number,
                       unit == "K" ? "k" : unit, unit == "k" ? "K" : unit);
  }
  if (unit == "m" && &dimension == &kTime) {
    return fmt::format("is ambiguous; write {0}ms or {0}min", number);
  }
  const std::string_view stem = unit.substr(prefix.size());
  if (&dimension == &kRate && (stem == "b/s" || stem == "bit/s" || stem == "bits/s")) {
    return rate_hint(number, prefix, fmt::format("has the unknown unit '{}'", unit));
  }
  if (&dimension == &kRate && knows(kBytes, unit)) {
    return fmt::format("is a byte count, not a rate; write {}{}/s", number, unit);
  }
  if (&dimension == &kRate && stem == "Bps") {  // a capital B is bytes, whatever "ps" suggests
    return fmt::format("has the unknown unit {}; did you mean {}{}B/s?", quote(unit), number,
                       prefix);
  }
  for (const Unit& known : dimension.units) {
    if (lower(unit) == lower(known.name)) {
      return fmt::format("has the unknown unit {}; did you mean {}{}?", quote(unit), number,
                         known.name);
    }
  }
  return fmt::format("has the unknown unit {}; write for example {}", quote(unit),
                     dimension.example);
}

Parsed<std::uint64_t> parse(std::string_view text, const Dimension& dimension) {
  const auto refuse = [&](std::string_view why) {
    constexpr std::size_t kShown = 60;
    return tl::unexpected(fmt::format("{} {}", quote(text, kShown), why));
  };
  const auto not_a_number = [&] {
    return refuse(
        fmt::format("is not {}; write for example {}", dimension.noun, dimension.example));
  };
  if (!text.empty() && text.front() == '-') {
    return refuse(fmt::format("is negative; {} must not be", dimension.noun));
  }
  std::size_t at = 0;
  Wide mantissa = 0;
  std::size_t decimals = 0;
  bool point = false;
  bool digits = false;
  constexpr std::size_t kMostDecimals = 15;
  for (; at < text.size() && (is_digit(text[at]) || (text[at] == '.' && !point)); ++at) {
    if (text[at] == '.') {
      point = true;
      continue;
    }
    digits = true;
    mantissa = mantissa * 10 + static_cast<unsigned>(text[at] - '0');
    if (point && ++decimals > kMostDecimals) return refuse("has more than 15 decimals");
    // 15 decimals and a divisor of 8 take less than 2^53 away, so that neither this nor a product
    // beyond 128 bits fits 64 in the end.
    if (mantissa >> 120 != 0) return refuse("is too large");
  }
  if (!digits || text[at - 1] == '.') return not_a_number();
  const std::string_view number = text.substr(0, at);
  while (at < text.size() && text[at] == ' ') ++at;
  const std::string_view name = text.substr(at);
  for (const Unit& unit : dimension.units) {
    if (name != unit.name) continue;
    Wide denominator = unit.divisor;
    for (std::size_t i = 0; i < decimals; ++i) denominator *= 10;
    if (mantissa > ~Wide{0} / unit.factor) return refuse("is too large");
    const Wide numerator = mantissa * unit.factor;
    if (numerator % denominator != 0) {
      return refuse(fmt::format("is not a whole number of {}", &dimension == &kTime ? "picoseconds"
                                                               : &dimension == &kRate
                                                                   ? "bytes per second"
                                                                   : "bytes"));
    }
    if (numerator / denominator > dimension.greatest) return refuse("is too large");
    return static_cast<std::uint64_t>(numerator / denominator);
  }
  return refuse(unit_hint(number, name, dimension));
}

// The largest unit of which `value` is a whole multiple; bit units are never chosen.
std::string exact(std::uint64_t value, std::span<const Unit> units) {
  const Unit* best = &units.front();
  for (const Unit& unit : units) {
    if (unit.divisor != 1) continue;
    if (value % unit.factor == 0 && unit.factor > best->factor && value != 0) best = &unit;
  }
  return fmt::format("{}{}", value / best->factor, best->name);
}

std::string three_digits(double value, std::span<const char* const> names) {
  std::size_t step = 0;
  while (value >= 999.5 && step + 1 < names.size()) {
    value /= 1000;
    ++step;
  }
  // The base unit has no parts. The others are rounded as they will be printed.
  const int decimals = step == 0 || value >= 99.95 ? 0 : value >= 9.995 ? 1 : 2;
  return fmt::format("{:.{}f} {}", value, decimals, names[step]);
}

}  // namespace

Time time_from_seconds(double s) {
  return Time(std::llround(s * 1e12));
}

Time transfer_time(Bytes bytes, Rate rate) {
  if (bytes == Bytes(0)) return Time(0);
  if (rate == Rate(0)) return Time::never();
  constexpr Wide kPicosecondsPerSecond = 1'000'000'000'000;
  const Wide divisor = rate.bytes_per_second();
  const Wide time = (Wide{bytes.count()} * kPicosecondsPerSecond + divisor - 1) / divisor;
  if (time > static_cast<Wide>(Time::never().picoseconds())) return Time::never();
  return Time(static_cast<std::int64_t>(time));
}

Parsed<Bytes> parse_bytes(std::string_view text) {
  return parse(text, kBytes).map([](std::uint64_t value) { return Bytes(value); });
}
Parsed<Rate> parse_rate(std::string_view text) {
  return parse(text, kRate).map([](std::uint64_t value) { return Rate(value); });
}
Parsed<Time> parse_time(std::string_view text) {
  return parse(text, kTime).map([](std::uint64_t value) {
    return Time(static_cast<std::int64_t>(value));
  });
}

std::string to_string(Bytes bytes) {
  return exact(bytes.count(), kByteUnits);
}
std::string to_string(Rate rate) {
  return exact(rate.bytes_per_second(), kRateUnits);
}
std::string to_string(Time time) {
  const bool negative = time < Time(0);
  const auto magnitude = negative ? 0 - static_cast<std::uint64_t>(time.picoseconds())
                                  : static_cast<std::uint64_t>(time.picoseconds());
  return fmt::format("{}{}", negative ? "-" : "", exact(magnitude, kTimeUnits));
}

std::string rounded(Bytes bytes) {
  constexpr std::array<const char*, 6> kNames{"B", "kB", "MB", "GB", "TB", "PB"};
  return three_digits(static_cast<double>(bytes.count()), kNames);
}
std::string rounded(Rate rate) {
  constexpr std::array<const char*, 6> kNames{"B/s", "kB/s", "MB/s", "GB/s", "TB/s", "PB/s"};
  return three_digits(static_cast<double>(rate.bytes_per_second()), kNames);
}
std::string rounded(Time time) {
  constexpr std::array<const char*, 5> kNames{"ps", "ns", "us", "ms", "s"};
  if (time == Time::never()) return "never";
  const auto value = static_cast<double>(time.picoseconds());
  return fmt::format("{}{}", value < 0 ? "-" : "", three_digits(std::abs(value), kNames));
}

}  // namespace holdfast
