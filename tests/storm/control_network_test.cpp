#include "core/storm/control_network.hpp"

#include <gtest/gtest.h>

#include <set>
#include <vector>

namespace holdfast::storm {
namespace {

constexpr WorkerId kWorker(0U);

ToCoordinator hello(Incarnation incarnation) {
  return Hello{incarnation, nullptr};
}
Incarnation number_of(const Delivery& delivery) {
  return std::get<Hello>(std::get<ToCoordinator>(delivery.frame)).incarnation;
}

// Everything that arrives, with its time.
std::vector<std::pair<Time, Incarnation>> drain(ControlNetwork& network) {
  std::vector<std::pair<Time, Incarnation>> arrived;
  while (network.next() != Time::never()) {
    const Time at = network.next();
    if (const auto delivery = network.take()) arrived.emplace_back(at, number_of(*delivery));
  }
  return arrived;
}

TEST(ControlNetwork, WithoutFaultsFramesArriveInOrderAfterTheLatency) {
  ControlNetwork network(1, 1, milliseconds(3));
  for (Incarnation i = 1; i <= 3; ++i) {
    const Fate fate = network.send(kWorker, hello(i), milliseconds(1));
    EXPECT_EQ(fate.copies, 1U);
  }
  const auto arrived = drain(network);
  ASSERT_EQ(arrived.size(), 3U);
  for (Incarnation i = 1; i <= 3; ++i) {
    EXPECT_EQ(arrived[i - 1], std::pair(milliseconds(4), i));
  }
}

TEST(ControlNetwork, FateIsWhatHappens) {
  ControlNetwork network(1, 7, milliseconds(3));
  network.set_faults({300, 300, 300, milliseconds(10), seconds(4)});
  std::multiset<Incarnation> promised;
  std::uint32_t lost = 0;
  std::uint32_t late = 0;
  for (Incarnation i = 1; i <= 500; ++i) {
    const Fate fate = network.send(kWorker, hello(i), Time{});
    for (std::uint32_t copy = 0; copy < fate.copies; ++copy) promised.insert(i);
    lost += fate.copies == 0 ? 1U : 0U;
    late += fate.late ? 1U : 0U;
  }
  std::multiset<Incarnation> found;
  bool overtaken = false;
  Incarnation before = 0;
  Time last;
  for (const auto& [at, i] : drain(network)) {
    EXPECT_GE(at, milliseconds(3));
    EXPECT_LE(at, milliseconds(13) + seconds(4));
    EXPECT_GE(at, last);
    last = at;
    overtaken = overtaken || i < before;
    before = i;
    found.insert(i);
  }
  EXPECT_EQ(found, promised);
  EXPECT_GT(lost, 100U);
  EXPECT_GT(late, 100U);
  EXPECT_TRUE(overtaken);
  EXPECT_GT(last, seconds(3));
}

TEST(ControlNetwork, ACutSwallowsWhatIsOnTheWayAndOneWayOnly) {
  ControlNetwork network(2, 1, milliseconds(3));
  network.send(kWorker, hello(1), Time{});
  network.cut(kWorker, Direction::ToCoordinator, true);
  EXPECT_TRUE(network.send(kWorker, hello(2), Time{}).cut);
  network.send(WorkerId(1U), hello(3), Time{});
  network.send(kWorker, ToWorker{Welcome{}}, Time{});
  std::vector<bool> arrived;
  while (network.next() != Time::never()) arrived.push_back(network.take() != nullptr);
  EXPECT_EQ(arrived, (std::vector<bool>{false, true, true}));
  network.cut(kWorker, Direction::ToCoordinator, false);
  network.send(kWorker, hello(4), Time{});
  EXPECT_EQ(drain(network).size(), 1U);
}

}  // namespace
}  // namespace holdfast::storm
