#include "core/units.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <random>
#include <string>

namespace holdfast {
namespace {

using ::testing::HasSubstr;

constexpr std::uint64_t kGreatest = std::numeric_limits<std::uint64_t>::max();

std::uint64_t bytes(std::string_view text) {
  return parse_bytes(text).value().count();
}
std::uint64_t rate(std::string_view text) {
  return parse_rate(text).value().bytes_per_second();
}
std::int64_t time(std::string_view text) {
  return parse_time(text).value().picoseconds();
}

TEST(ParseBytes, Exact) {
  EXPECT_EQ(bytes("0B"), 0U);
  EXPECT_EQ(bytes("4MiB"), 4'194'304U);
  EXPECT_EQ(bytes("1.5TB"), 1'500'000'000'000U);
  EXPECT_EQ(bytes("1.5 KiB"), 1536U);
  EXPECT_EQ(bytes(".5kB"), 500U);
  EXPECT_EQ(bytes("007B"), 7U);
  EXPECT_EQ(bytes("16EB"), 16'000'000'000'000'000'000U);
  EXPECT_EQ(bytes("15EiB"), std::uint64_t{15} << 60);
  EXPECT_EQ(bytes("18446744073709551615B"), kGreatest);
  EXPECT_EQ(bytes("18446744073709551.615kB"), kGreatest);
  EXPECT_EQ(bytes("1844674407370955.10000kB"), 1'844'674'407'370'955'100U);
}

TEST(ParseRate, BitsAndBytes) {
  EXPECT_EQ(rate("400Gbps"), 50'000'000'000U);
  EXPECT_EQ(rate("50GB/s"), 50'000'000'000U);
  EXPECT_EQ(rate("8bps"), 1U);
  EXPECT_EQ(rate("0.008kbps"), 1U);
  EXPECT_EQ(rate("1GiB/s"), 1'073'741'824U);
  EXPECT_EQ(rate("3.2Tbps"), 400'000'000'000U);
}

TEST(ParseTime, Exact) {
  EXPECT_EQ(time("30ms"), 30'000'000'000);
  EXPECT_EQ(time("1.5us"), 1'500'000);
  EXPECT_EQ(time("2min"), 120'000'000'000'000);
  EXPECT_EQ(time("1h"), 3'600'000'000'000'000);
  EXPECT_EQ(time("9223372036854775807ps"), std::numeric_limits<std::int64_t>::max());
}

struct Refusal {
  const char* text;
  const char* message;
};

template <class Parse>
void expect_refusals(const Parse& parse, std::initializer_list<Refusal> refusals) {
  for (const Refusal& refusal : refusals) {
    SCOPED_TRACE(refusal.text);
    const auto result = parse(refusal.text);
    ASSERT_FALSE(result.has_value());
    EXPECT_THAT(result.error(), HasSubstr(refusal.message));
  }
}

TEST(ParseBytes, Refuses) {
  expect_refusals(parse_bytes, {{"", "is not a byte count"},
                                {"B", "is not a byte count"},
                                {"4", "has no unit; write for example 4MiB"},
                                {"4G", "write 4GB (decimal) or 4GiB (binary)"},
                                {"4k", "write 4kB (decimal) or 4KiB (binary)"},
                                {"4K", "write 4kB (decimal) or 4KiB (binary)"},
                                {"4KB", "did you mean 4kB?"},
                                {"4mib", "did you mean 4MiB?"},
                                {"-4B", "is negative"},
                                {"-inf", "is negative"},
                                {"+4B", "is not a byte count"},
                                {"nan", "is not a byte count"},
                                {"inf", "is not a byte count"},
                                {"infB", "is not a byte count"},
                                {" 4B", "is not a byte count"},
                                {"4B ", "unknown unit"},
                                {"4 . B", "unknown unit"},
                                {"4.B", "is not a byte count"},
                                {".B", "is not a byte count"},
                                {"1.2.3B", "unknown unit '.3B'"},
                                {"1e3B", "unknown unit 'e3B'"},
                                {"0x10B", "unknown unit 'x10B'"},
                                {"4GB/s", "unknown unit 'GB/s'"},
                                {"1.5B", "is not a whole number of bytes"},
                                {"0.0001kB", "is not a whole number of bytes"},
                                {"0.0000000000000001EB", "more than 15 decimals"},
                                {"18446744073709551616B", "is too large"},
                                {"18446744073709551.616kB", "is too large"},
                                {"16EiB", "is too large"},
                                {"19EB", "is too large"},
                                {"99999999999999999999999999999999999999999999B", "is too large"},
                                {"340282366920938463463374607431768211457B", "is too large"},
                                {"1\x1b[31mB", "'1\\x1b[31mB'"}});
  const std::string endless(1'000'000, 'x');
  EXPECT_LT(parse_bytes("1" + endless).error().size(), 400U);
}

TEST(ParseRate, Refuses) {
  expect_refusals(parse_rate, {{"100G", "write 100Gbps for bits or 100GB/s for bytes"},
                               {"100K", "write 100kbps for bits or 100kB/s for bytes"},
                               {"100", "has no unit"},
                               {"100GB", "is a byte count, not a rate; write 100GB/s"},
                               {"100Gb/s", "write 100Gbps for bits or 100GB/s for bytes"},
                               {"100Gbit/s", "write 100Gbps for bits or 100GB/s for bytes"},
                               {"100gbps", "did you mean 100Gbps?"},
                               {"400GBps", "did you mean 400GB/s?"},
                               {"100x", "has the unknown unit 'x'"},
                               {"1bps", "is not a whole number of bytes per second"},
                               {"12bps", "is not a whole number of bytes per second"},
                               {"0.5B/s", "is not a whole number of bytes per second"},
                               {"-1Gbps", "is negative"},
                               {"nanGbps", "is not a rate"},
                               {"18446744.073709551616TB/s", "is too large"}});
}

TEST(ParseTime, Refuses) {
  expect_refusals(parse_time, {{"5m", "is ambiguous; write 5ms or 5min"},
                               {"5", "has no unit"},
                               {"5MS", "did you mean 5ms?"},
                               {"5sec", "has the unknown unit 'sec'"},
                               {"0.5ps", "is not a whole number of picoseconds"},
                               {"-30ms", "is negative"},
                               {"9223372036854775808ps", "is too large"},
                               {"2563h", "is too large"}});
}

// What is written parses back to the same value, and no larger unit would do.
TEST(Units, TextGoesThereAndBack) {
  std::mt19937_64 random(20260101);
  RecordProperty("seed", "20260101");
  for (int i = 0; i < 20'000; ++i) {
    std::uint64_t value = random() >> (random() % 64);
    // Whole multiples of units too, which random numbers hardly ever are.
    for (std::uint64_t n = random() % 7; n > 0; --n) {
      const std::uint64_t factor = random() % 2 == 0 ? 1000 : 1024;
      if (value <= kGreatest / factor) value *= factor;
    }
    SCOPED_TRACE(value);
    EXPECT_EQ(bytes(to_string(Bytes(value))), value);
    EXPECT_EQ(rate(to_string(Rate(value))), value);
    const auto ticks = static_cast<std::int64_t>(value >> 1);
    EXPECT_EQ(time(to_string(Time(ticks))), ticks);
    if (HasFailure()) return;
  }
}

TEST(Units, ToStringTakesTheLargestUnit) {
  EXPECT_EQ(to_string(Bytes(0)), "0B");
  EXPECT_EQ(to_string(Bytes(4'194'304)), "4MiB");
  EXPECT_EQ(to_string(Bytes(1'500'000)), "1500kB");
  EXPECT_EQ(to_string(Bytes(1'024'000)), "1000KiB");
  EXPECT_EQ(to_string(Bytes(kGreatest)), "18446744073709551615B");
  EXPECT_EQ(to_string(Rate(50'000'000'000)), "50GB/s");
  EXPECT_EQ(to_string(milliseconds(1500)), "1500ms");
  EXPECT_EQ(to_string(seconds(60)), "1min");
  EXPECT_EQ(to_string(Time(-5)), "-5ps");
  EXPECT_EQ(to_string(Time(std::numeric_limits<std::int64_t>::min())), "-9223372036854775808ps");
}

TEST(Units, RoundedHasThreeDigits) {
  EXPECT_EQ(rounded(Bytes(141'107'412'992)), "141 GB");
  EXPECT_EQ(rounded(Rate(50'000'000'000)), "50.0 GB/s");
  EXPECT_EQ(rounded(milliseconds(352)), "352 ms");
  EXPECT_EQ(rounded(Bytes(5)), "5 B");
  EXPECT_EQ(rounded(Bytes(999)), "999 B");
  EXPECT_EQ(rounded(Bytes(1000)), "1.00 kB");
  EXPECT_EQ(rounded(Bytes(9'994)), "9.99 kB");
  EXPECT_EQ(rounded(Bytes(9'996)), "10.0 kB");
  EXPECT_EQ(rounded(Bytes(99'960)), "100 kB");
  EXPECT_EQ(rounded(Bytes(999'499)), "999 kB");
  EXPECT_EQ(rounded(Bytes(999'500)), "1.00 MB");
  EXPECT_EQ(rounded(Time::never()), "never");
  EXPECT_EQ(rounded(microseconds(-1500)), "-1.50 ms");
  EXPECT_EQ(rounded(Time(std::numeric_limits<std::int64_t>::min())), "-9223372 s");
}

TEST(TransferTime, RoundsUpAndSaturates) {
  EXPECT_EQ(transfer_time(Bytes(50'000'000'000), Rate(50'000'000'000)), seconds(1));
  EXPECT_EQ(transfer_time(Bytes(1), Rate(3)), Time(333'333'333'334));
  EXPECT_EQ(transfer_time(Bytes(0), Rate(0)), Time(0));
  EXPECT_EQ(transfer_time(Bytes(0), Rate(7)), Time(0));
  EXPECT_EQ(transfer_time(Bytes(1), Rate(0)), Time::never());
  EXPECT_EQ(transfer_time(Bytes(kGreatest), Rate(1)), Time::never());
  EXPECT_EQ(transfer_time(Bytes(kGreatest), Rate(kGreatest)), seconds(1));
}

TEST(Units, TimeFromSecondsIsTheNearestPicosecond) {
  EXPECT_EQ(time_from_seconds(1.5), milliseconds(1500));
  EXPECT_EQ(time_from_seconds(-1e-12), Time(-1));
  EXPECT_EQ(time_from_seconds(1.6e-12), Time(2));
}

}  // namespace
}  // namespace holdfast
