// Lives and cuts of the virtual network.
#include <gtest/gtest.h>

#include <vector>

#include "core/engine/virtual_network.hpp"

namespace holdfast {
namespace {

constexpr WorkerId kSource(0U);
constexpr WorkerId kReader(1U);
constexpr Version kVersion{0, 7};

class VirtualFaults : public ::testing::Test {
 protected:
  explicit VirtualFaults(const VirtualOptions& options = {}) : network_(2, options) {
    network_.watch_reads([this](const ReadSight& s) { seen_.push_back(s.kind); });
  }

  // Registers memories of both; the permission to read the source's.
  Access share() {
    from_.assign(64, std::byte{9});
    to_.assign(64, std::byte{0});
    const RegionId region = source().add_region(from_, Bytes(64));
    into_ = reader().add_region(to_, Bytes(64));
    return source().allow(kReader, kVersion, region);
  }
  Transport& source() { return network_.transport(kSource); }
  Transport& reader() { return network_.transport(kReader); }
  void read(PeerId peer, const Access& access, OpId id, Time deadline) {
    const std::vector<Piece> pieces{{0, 0, 64}};
    ASSERT_EQ(reader().read({id, peer, access, into_, pieces, deadline}), Posted::Posted);
  }
  void run_until(Time until) {
    while (network_.next_event() <= until) network_.step();
    network_.advance(until);
  }
  std::vector<TransportEvent> told(Transport& transport) {
    std::vector<TransportEvent> events(16);
    events.resize(transport.poll(events));
    return events;
  }

  VirtualNetwork network_;
  std::vector<std::byte> from_;
  std::vector<std::byte> to_;
  RegionId into_;
  std::vector<ReadSight::Kind> seen_;
};

TEST_F(VirtualFaults, NothingOfAFormerLifeReachesTheNext) {
  const Access access = share();
  const PeerId old = reader().open({kSource, {}, {}}, 1);
  read(old, access, 1, Time::never());  // its request is on the way
  EXPECT_TRUE(reader().send(old, std::vector<std::byte>(3)));
  network_.crash(kSource);
  network_.restart(kSource);
  ASSERT_TRUE(network_.alive(kSource));
  const RegionId region = source().add_region(from_, Bytes(64));
  const Access renewed = source().allow(kReader, kVersion, region);
  run_until(seconds(1));
  EXPECT_TRUE(told(source()).empty());
  const auto events = told(reader());
  ASSERT_EQ(events.size(), 2U);
  EXPECT_EQ(std::get<ReadDone>(events[0]).status, ReadStatus::PeerGone);
  EXPECT_TRUE(std::holds_alternative<PeerLost>(events[1]));

  const PeerId peer = reader().open({kSource, {}, {}}, 2);
  read(peer, access, 2, Time::never());
  run_until(seconds(2));
  EXPECT_EQ(std::get<ReadDone>(told(reader()).at(0)).status, ReadStatus::AccessDenied);
  read(peer, renewed, 3, Time::never());
  run_until(seconds(3));
  EXPECT_EQ(std::get<ReadDone>(told(reader()).at(0)).status, ReadStatus::Ok);
  EXPECT_EQ(to_, from_);
  using Kind = ReadSight::Kind;
  EXPECT_EQ(seen_, (std::vector{Kind::Posted, Kind::Ended, Kind::Posted, Kind::Ended, Kind::Posted,
                                Kind::Served, Kind::Arrived, Kind::Ended}));
}

// 64 bytes; after half a second the rest goes at the new rate of the slower port.
TEST_F(VirtualFaults, ANewRateHoldsForWhatIsBeingServed) {
  struct Case {
    WorkerId changed;
    Rate first, then;  // of the other port: 64 bytes a second
    Time total;
  };
  for (const Case& c : {Case{kSource, Rate(64), Rate(32), milliseconds(1500)},
                        Case{kSource, Rate(32), Rate(64), milliseconds(1250)},
                        Case{kReader, Rate(32), Rate(64), milliseconds(1250)}}) {
    VirtualOptions options;
    options.rate = Rate(64);
    options.latency = Time(0);
    VirtualNetwork network(2, options);
    network.set_rate(c.changed, c.first);
    std::vector<std::byte> from(64);
    std::vector<std::byte> to(64);
    Transport& source = network.transport(kSource);
    Transport& reader = network.transport(kReader);
    const RegionId region = source.add_region(from, Bytes(from.size()));
    const Access access = source.allow(kReader, kVersion, region);
    const RegionId into = reader.add_region(to, Bytes(to.size()));
    const PeerId peer = reader.open({kSource, {}, {}}, 1);
    const std::vector<Piece> pieces{{0, 0, 64}};
    ASSERT_EQ(reader.read({1, peer, access, into, pieces, Time::never()}), Posted::Posted);
    while (network.next_event() <= milliseconds(500)) network.step();
    network.advance(milliseconds(500));
    network.set_rate(c.changed, c.then);
    while (network.next_event() != Time::never()) network.step();
    std::vector<TransportEvent> events(4);
    ASSERT_EQ(reader.poll(events), 1U);
    EXPECT_EQ(std::get<ReadDone>(events[0]).status, ReadStatus::Ok);
    EXPECT_EQ(network.now().picoseconds(), c.total.picoseconds());
  }
}

TEST_F(VirtualFaults, ACutStopsRequestsAndBytesOneWayEach) {
  const Access access = share();
  const PeerId peer = reader().open({kSource, {}, {}}, 1);
  for (const bool outwards : {true, false}) {
    const WorkerId from = outwards ? kReader : kSource;
    const WorkerId to = outwards ? kSource : kReader;
    seen_.clear();
    network_.cut(from, to, true);
    read(peer, access, 1, network_.now() + milliseconds(5));
    run_until(network_.now() + milliseconds(10));
    EXPECT_EQ(std::get<ReadDone>(told(reader()).at(0)).status, ReadStatus::DeadlineExceeded);
    EXPECT_EQ(seen_.size(), outwards ? 2U : 3U);  // it is served for nothing
    EXPECT_TRUE(reader().send(peer, std::vector<std::byte>(3)));
    run_until(network_.now() + milliseconds(10));
    EXPECT_EQ(told(source()).size(), outwards ? 0U : 1U);
    network_.cut(from, to, false);
    read(peer, access, 2, Time::never());
    run_until(network_.now() + milliseconds(10));
    EXPECT_EQ(std::get<ReadDone>(told(reader()).at(0)).status, ReadStatus::Ok);
  }
}

VirtualOptions slow_to_cancel() {
  VirtualOptions options;
  options.cancel_time = milliseconds(20);
  return options;
}

class SlowCancel : public VirtualFaults {
 protected:
  SlowCancel() : VirtualFaults(slow_to_cancel()) {}
};

TEST_F(SlowCancel, ACancelledReadIsOpenUntilItCompletesAndMayStillBring) {
  const Access access = share();
  const PeerId peer = reader().open({kSource, {}, {}}, 1);
  std::size_t brought = 0;
  for (OpId id = 1; id <= 32; ++id) {
    // Half of them are cut off from their bytes.
    network_.cut(kSource, kReader, id % 2 == 0);
    to_.assign(64, std::byte{0});
    read(peer, access, id, Time::never());
    reader().cancel(id);
    reader().cancel(id);
    EXPECT_TRUE(told(reader()).empty());
    run_until(network_.now() + milliseconds(20));
    const auto events = told(reader());
    ASSERT_EQ(events.size(), 1U);
    const ReadDone done = std::get<ReadDone>(events[0]);
    EXPECT_EQ(done.id, id);
    const bool ok = done.status == ReadStatus::Ok;
    EXPECT_TRUE(ok || done.status == ReadStatus::Cancelled);
    EXPECT_FALSE(ok && id % 2 == 0);
    EXPECT_EQ(ok, to_ == from_);
    if (ok) ++brought;
    const auto after = to_;
    run_until(network_.now() + milliseconds(50));
    EXPECT_EQ(to_, after);
    EXPECT_TRUE(told(reader()).empty());
  }
  EXPECT_GT(brought, 0U);
}

}  // namespace
}  // namespace holdfast
