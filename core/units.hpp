// Quantities as types: bytes, bytes per second and time never mix with bare numbers.
//
// Bytes and Rate hold unsigned 64-bit integers, Time a signed 64-bit count of picoseconds (about
// 106 days). Only operators that mean something exist. Doubles appear in reports alone.
//
//   auto rate = parse_rate("400Gbps");                    // 50 GB/s; expected<Rate, string>
//   Time t = transfer_time(Bytes(50'000'000'000), *rate);  // exactly one second
//
// Text is parsed here and nowhere else. A unit is always required and must be unambiguous:
// "400Gbps" (bits), "50GB/s" (bytes, decimal), "4MiB" (binary), "30ms". "100G", a bare number, a
// negative, NaN and anything that does not fit 64 bits are refused with a suggestion.
#pragma once

#include <compare>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <tl/expected.hpp>

namespace holdfast {

class Bytes {
 public:
  constexpr Bytes() = default;
  constexpr explicit Bytes(std::uint64_t count) : count_(count) {}
  [[nodiscard]] constexpr std::uint64_t count() const { return count_; }

  friend constexpr auto operator<=>(Bytes, Bytes) = default;
  friend constexpr Bytes operator+(Bytes a, Bytes b) { return Bytes(a.count_ + b.count_); }
  friend constexpr Bytes operator-(Bytes a, Bytes b) { return Bytes(a.count_ - b.count_); }
  friend constexpr Bytes operator*(Bytes a, std::uint64_t n) { return Bytes(a.count_ * n); }
  friend constexpr Bytes operator/(Bytes a, std::uint64_t n) { return Bytes(a.count_ / n); }
  constexpr Bytes& operator+=(Bytes b) { return *this = *this + b; }
  constexpr Bytes& operator-=(Bytes b) { return *this = *this - b; }

 private:
  std::uint64_t count_ = 0;
};

// Bytes per second.
class Rate {
 public:
  constexpr Rate() = default;
  constexpr explicit Rate(std::uint64_t bytes_per_second) : value_(bytes_per_second) {}
  [[nodiscard]] constexpr std::uint64_t bytes_per_second() const { return value_; }

  friend constexpr auto operator<=>(Rate, Rate) = default;
  friend constexpr Rate operator+(Rate a, Rate b) { return Rate(a.value_ + b.value_); }
  friend constexpr Rate operator*(Rate a, std::uint64_t n) { return Rate(a.value_ * n); }
  friend constexpr Rate operator/(Rate a, std::uint64_t n) { return Rate(a.value_ / n); }
  constexpr Rate& operator+=(Rate b) { return *this = *this + b; }

 private:
  std::uint64_t value_ = 0;
};

// A point in, or a length of, virtual time.
class Time {
 public:
  constexpr Time() = default;
  constexpr explicit Time(std::int64_t picoseconds) : value_(picoseconds) {}
  [[nodiscard]] constexpr std::int64_t picoseconds() const { return value_; }
  [[nodiscard]] constexpr double seconds() const { return static_cast<double>(value_) * 1e-12; }
  // Later than every deadline.
  [[nodiscard]] static constexpr Time never() {
    return Time(std::numeric_limits<std::int64_t>::max());
  }

  friend constexpr auto operator<=>(Time, Time) = default;
  friend constexpr Time operator+(Time a, Time b) { return Time(a.value_ + b.value_); }
  friend constexpr Time operator-(Time a, Time b) { return Time(a.value_ - b.value_); }
  friend constexpr Time operator*(Time a, std::int64_t n) { return Time(a.value_ * n); }
  friend constexpr Time operator/(Time a, std::int64_t n) { return Time(a.value_ / n); }
  constexpr Time& operator+=(Time b) { return *this = *this + b; }

 private:
  std::int64_t value_ = 0;
};

constexpr Time picoseconds(std::int64_t n) {
  return Time(n);
}
constexpr Time nanoseconds(std::int64_t n) {
  return Time(n * 1'000);
}
constexpr Time microseconds(std::int64_t n) {
  return Time(n * 1'000'000);
}
constexpr Time milliseconds(std::int64_t n) {
  return Time(n * 1'000'000'000);
}
constexpr Time seconds(std::int64_t n) {
  return Time(n * 1'000'000'000'000);
}

// Nearest picosecond; `s` must be finite and within range.
[[nodiscard]] Time time_from_seconds(double s);

// Time that `bytes` take at `rate`, rounded up to a picosecond; Time::never() at rate zero (unless
// there is nothing to move) and where the result does not fit.
[[nodiscard]] Time transfer_time(Bytes bytes, Rate rate);

// What text to value conversions return: the value, or a message with a suggestion.
template <class T>
using Parsed = tl::expected<T, std::string>;

[[nodiscard]] Parsed<Bytes> parse_bytes(std::string_view text);  // B, kB, MB .. EB, KiB .. EiB
[[nodiscard]] Parsed<Rate> parse_rate(std::string_view text);    // bps, kbps .. Tbps, B/s .. TiB/s
[[nodiscard]] Parsed<Time> parse_time(std::string_view text);    // ps, ns, us, ms, s, min, h

// The shortest text of the largest unit that parses back to the same value ("50GB/s", "4MiB",
// "1500ms").
[[nodiscard]] std::string to_string(Bytes bytes);
[[nodiscard]] std::string to_string(Rate rate);
[[nodiscard]] std::string to_string(Time time);

// For people: three significant digits, decimal units ("141 GB", "50.0 GB/s", "352 ms").
[[nodiscard]] std::string rounded(Bytes bytes);
[[nodiscard]] std::string rounded(Rate rate);
[[nodiscard]] std::string rounded(Time time);

}  // namespace holdfast
