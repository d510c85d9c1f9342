// The parts around the simulation: the meter of channels, the child process, the result's encoding.
#include <gtest/gtest.h>

#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <cstring>
#include <numeric>
#include <random>

#include "core/error.hpp"
#include "sim/channel_meter.hpp"
#include "sim/child_process.hpp"
#include "sim/result_codec.hpp"

namespace holdfast::sim {
namespace {

Bytes sum(const std::vector<Bytes>& bins) {
  return std::accumulate(bins.begin(), bins.end(), Bytes(0));
}

TEST(ChannelMeter, SpreadsEvenly) {
  ChannelMeter meter(1, 4, Time(1600));
  meter.add(0, Time(0), Time(1600), Bytes(1600));
  EXPECT_EQ(meter.bins(0, Time(1600)), (std::vector<Bytes>(4, Bytes(400))));
  meter.add(0, Time(800), Time(1200), Bytes(11));
  EXPECT_EQ(meter.bins(0, Time(1600)),
            (std::vector<Bytes>{Bytes(400), Bytes(400), Bytes(411), Bytes(400)}));
}

TEST(ChannelMeter, KeepsTotalsAlone) {
  ChannelMeter meter(2, 4, Time(1000));
  meter.keep_total_only(1);
  meter.add(1, Time(0), Time(1000), Bytes(7));
  meter.add(1, Time(1000), Time(1000), Bytes(8));
  EXPECT_EQ(meter.bins(1, Time(2000)), std::vector<Bytes>{Bytes(15)});
  EXPECT_EQ(meter.bins(0, Time(2000)), std::vector<Bytes>(4));
}

// Against exact piecewise sums: bins differ by at most what moves in a fine bin at each border;
// sums and totals are exact; however small the estimate was.
TEST(ChannelMeter, AgreesWithExactBins) {
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    SCOPED_TRACE(::testing::Message() << "seed " << seed);
    std::mt19937_64 random(seed);
    const auto bins = static_cast<std::uint32_t>(1 + random() % 60);
    ChannelMeter meter(1, bins, Time(static_cast<std::int64_t>(random() % 2'000'000)));
    const std::int64_t end = 1'000'000 + static_cast<std::int64_t>(random() % 1'000'000);
    constexpr double kRate = 3.0;  // bytes a picosecond
    std::vector<double> exact(bins);
    Bytes total;
    std::int64_t at = 0;
    while (at < end) {
      const std::int64_t start = std::min(end, at + static_cast<std::int64_t>(random() % 3000));
      at = std::min(end, start + static_cast<std::int64_t>(random() % 90'000));
      const Bytes bytes(static_cast<std::uint64_t>(kRate * static_cast<double>(at - start)));
      meter.add(0, Time(start), Time(at), bytes);
      total += bytes;
      for (std::uint32_t b = 0; b < bins; ++b) {
        const double low = static_cast<double>(end) * b / bins;
        const double high = static_cast<double>(end) * (b + 1) / bins;
        const double overlap =
            std::min(high, static_cast<double>(at)) - std::max(low, static_cast<double>(start));
        if (overlap > 0) exact[b] += kRate * overlap;
      }
    }
    const std::vector<Bytes> found = meter.bins(0, Time(end));
    ASSERT_EQ(found.size(), bins);
    EXPECT_EQ(sum(found), total);
    EXPECT_EQ(meter.total(0), total);
    const double fine = kRate * static_cast<double>(end) / (2.0 * bins);
    for (std::uint32_t b = 0; b < bins; ++b) {
      EXPECT_NEAR(static_cast<double>(found[b].count()), exact[b], 2 * fine + 2) << "bin " << b;
    }
  }
}

SimulationResult some_result() {
  SimulationResult result;
  result.makespan = Time(123);
  result.completed = {Time(0), Time(123)};
  result.moved = {Bytes(1), Bytes(2), Bytes(3)};
  result.deliveries = 9;
  result.channels = {{ChannelId(7), Bytes(5), {Bytes(2), Bytes(3)}}, {ChannelId(9), Bytes(1), {}}};
  result.events = {
      {Time(5), TraceKind::BlockDone, WorkerId(1U), 0, StripeId(2U), BlockId(3U), WorkerId(4U), ""},
      {Time(6), TraceKind::Fault, WorkerId(1U), 0, {}, {}, {}, "gone"}};
  result.failure = "why";
  return result;
}

TEST(ResultCodec, RoundTrip) {
  const SimulationResult result = some_result();
  const SimulationResult back = decode_result(encode_result(result));
  EXPECT_EQ(back.makespan, result.makespan);
  EXPECT_EQ(back.completed, result.completed);
  EXPECT_EQ(back.moved.wan, Bytes(3));
  EXPECT_EQ(back.deliveries, 9U);
  ASSERT_EQ(back.channels.size(), 2U);
  EXPECT_EQ(back.channels[0].channel, ChannelId(7));
  EXPECT_EQ(back.channels[0].bins, result.channels[0].bins);
  ASSERT_EQ(back.events.size(), 2U);
  EXPECT_EQ(back.events[0].block, BlockId(3U));
  EXPECT_EQ(back.events[0].source, WorkerId(4U));
  EXPECT_EQ(back.events[1].text, "gone");
  EXPECT_FALSE(back.events[1].block.valid());
  EXPECT_EQ(back.failure, "why");
  EXPECT_EQ(encode_result(back), encode_result(result));
}

TEST(ResultCodec, RefusesEveryCut) {
  const std::vector<std::byte> whole = encode_result(some_result());
  for (std::size_t size = 0; size < whole.size(); ++size) {
    EXPECT_THROW(static_cast<void>(decode_result(std::span(whole).first(size))), Error) << size;
  }
  std::vector<std::byte> longer = whole;
  longer.push_back(std::byte{0});
  EXPECT_THROW(static_cast<void>(decode_result(longer)), Error);
}

std::vector<std::byte> bytes_of(const std::string& text) {
  const auto* first = reinterpret_cast<const std::byte*>(text.data());
  return {first, first + text.size()};
}

TEST(ChildProcess, FramesArriveInOrderAndWhole) {
  const std::vector<std::byte> large(3'000'000, std::byte{7});
  ChildProcess child([&](ChildProcess::Channel& out) {
    out.send(1, {});
    out.send(2, bytes_of("two"));
    out.send(3, large);
  });
  auto frame = child.next(60'000);
  ASSERT_TRUE(frame);
  EXPECT_EQ(frame->kind, 1);
  EXPECT_TRUE(frame->payload.empty());
  frame = child.next(60'000);
  ASSERT_TRUE(frame);
  EXPECT_EQ(frame->payload, bytes_of("two"));
  frame = child.next(60'000);
  ASSERT_TRUE(frame);
  EXPECT_EQ(frame->payload, large);
  EXPECT_FALSE(child.next(60'000));
  EXPECT_EQ(child.how_it_ended(), "exit status 0, it printed nothing");
}

TEST(ChildProcess, TellsHowItCrashed) {
  ChildProcess child([](ChildProcess::Channel& out) {
    out.send(1, bytes_of("alive"));
    std::fputs("assertion failed: flow without links\n", stderr);
    std::abort();
  });
  EXPECT_TRUE(child.next(60'000));
  EXPECT_FALSE(child.next(60'000));
  const std::string end = child.how_it_ended();
  EXPECT_NE(end.find("signal 6"), std::string::npos) << end;
  EXPECT_NE(end.find("flow without links"), std::string::npos) << end;
}

TEST(ChildProcess, TellsWhatWasThrown) {
  ChildProcess child([](ChildProcess::Channel&) { throw std::runtime_error("no such thing"); });
  EXPECT_FALSE(child.next(60'000));
  const std::string end = child.how_it_ended();
  EXPECT_NE(end.find("exit status 3"), std::string::npos) << end;
  EXPECT_NE(end.find("no such thing"), std::string::npos) << end;
}

TEST(ChildProcess, ManyWordsDoNotBlockIt) {
  ChildProcess child([](ChildProcess::Channel& out) {
    for (int i = 0; i < 100'000; ++i) std::fputs("words without end ", stderr);
    std::fputs("the last words", stderr);
    out.send(1, {});
  });
  EXPECT_TRUE(child.next(60'000));
  const std::string end = child.how_it_ended();
  EXPECT_LT(end.size(), 5'000U);
  EXPECT_NE(end.find("the last words"), std::string::npos);
}

TEST(ChildProcess, ASilentOneIsKilled) {
  ChildProcess child([](ChildProcess::Channel&) {
    for (;;) pause();
  });
  EXPECT_FALSE(child.next(50));
  EXPECT_TRUE(child.silent());
  EXPECT_NE(child.how_it_ended().find("no sign of life"), std::string::npos);
}

TEST(ChildProcess, IsEndedWithItsObject) {
  const ChildProcess child([](ChildProcess::Channel&) {
    for (;;) pause();
  });
}

}  // namespace
}  // namespace holdfast::sim
