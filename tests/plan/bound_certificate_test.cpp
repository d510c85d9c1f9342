// refute() must catch each kind of damage to a certificate, whatever kind of cut it is.
#include <gtest/gtest.h>

#include <map>
#include <random>

#include "core/plan/bound.hpp"
#include "tests/plan/bound_fixtures.hpp"
#include "tests/plan/cluster.hpp"

namespace holdfast {
namespace {

using namespace testing_support;

struct Proven {
  Topology topology;
  Demand demand;
  Cut cut;
};

Proven prove(Topology topology, Demand demand) {
  Cut cut = lower_bound(topology, demand).cut;
  return {std::move(topology), std::move(demand), std::move(cut)};
}

// One of each kind.
std::map<std::string, Proven> all_kinds() {
  std::map<std::string, Proven> cuts;
  const Topology three = make_cluster({.hosts = 3});
  cuts.emplace("group", prove(three, make_demand(three, {})));
  cuts.emplace("receiver", prove(three, make_demand(three, {.sharded = false})));
  const Topology far = make_cluster({.datacenters = 2, .hosts = 2});
  Demand grouped = make_demand(far, {});
  for (std::size_t i = 0; i < grouped.workers.size(); ++i) {
    grouped.workers[i].group = static_cast<std::uint32_t>(i);
  }
  cuts.emplace("domain", prove(far, std::move(grouped)));
  Demand star = make_demand(three, {});
  for (std::size_t i = 8; i < star.workers.size(); ++i) star.workers[i].may_serve = false;
  cuts.emplace("unit copies", prove(three, std::move(star)));
  const Topology flat = make_cluster({.hosts = 1, .nvlink = false});
  Demand lone = make_demand(flat, {.sharded = false});
  for (std::size_t i = 1; i < lone.workers.size(); ++i) lone.workers[i].may_serve = false;
  cuts.emplace("copies", prove(flat, std::move(lone)));
  const Topology slow = make_cluster({.hosts = 3, .digest_rate = Rate(5'000'000'000)});
  cuts.emplace("digest", prove(slow, make_demand(slow, {})));
  return cuts;
}

TEST(Certificate, OfEachKindIsThereAndStands) {
  const std::map<std::string, CutKind> kinds{
      {"group", CutKind::Group},   {"receiver", CutKind::Receiver},
      {"domain", CutKind::Domain}, {"unit copies", CutKind::Copies},
      {"copies", CutKind::Copies}, {"digest", CutKind::Digest}};
  for (const auto& [name, proven] : all_kinds()) {
    SCOPED_TRACE(name);
    EXPECT_EQ(proven.cut.kind, kinds.at(name)) << to_string(proven.cut.kind);
    EXPECT_EQ(proven.cut.unit.has_value(), name == "unit copies");
    EXPECT_EQ(refute(proven.cut, proven.topology, proven.demand).value_or(""), "");
  }
}

// The time that goes with the cut's numbers, so that only the damaged number is wrong.
void retime(Cut& cut) {
  if (cut.capacity == Rate(0)) return;
  __extension__ using Wide = unsigned __int128;
  const Wide crossing =
      Wide{cut.bytes.count()} * 1'000'000'000'000U / cut.capacity.bytes_per_second();
  cut.time = Time(static_cast<std::int64_t>(crossing)) + cut.latency;
}

TEST(Certificate, EachDamageIsFound) {
  struct Damage {
    const char* what;
    void (*apply)(Cut&);
    bool for_digest;  // applies to it too
  };
  const Damage damages[] = {
      {"a channel less",
       [](Cut& c) {
         const Rate each = c.capacity / c.channels.size();
         c.channels.pop_back();
         c.capacity = each * c.channels.size();
       },
       false},
      {"the first channel less, capacity kept",
       [](Cut& c) { c.channels.erase(c.channels.begin()); }, false},
      {"a channel twice", [](Cut& c) { c.channels.push_back(c.channels.back()); }, false},
      {"a byte more", [](Cut& c) { c.bytes += Bytes(1); }, true},
      {"twice the bytes", [](Cut& c) { c.bytes = c.bytes * 2; }, true},
      {"half the capacity", [](Cut& c) { c.capacity = c.capacity / 2; }, true},
      {"a little less capacity",
       [](Cut& c) { c.capacity = Rate(c.capacity.bytes_per_second() - 1); }, true},
      {"more latency", [](Cut& c) { c.latency += picoseconds(1); }, true},
      {"no receivers", [](Cut& c) { c.receivers.clear(); }, true},
      {"another receiver", [](Cut& c) { c.receivers.front() = WorkerId(0U); }, true},
      {"a receiver that is not there", [](Cut& c) { c.receivers.back() = WorkerId(9'999U); }, true},
      {"no classes", [](Cut& c) { c.classes.clear(); }, true},
      {"a class that is not there", [](Cut& c) { c.classes.back() = ClassId(9'999U); }, true},
      {"another name", [](Cut& c) { c.sink = "nobody"; }, true},
      {"a channel that is not there", [](Cut& c) { c.channels.emplace_back(99'999U); }, true},
  };
  for (const auto& [name, proven] : all_kinds()) {
    for (const Damage& damage : damages) {
      if (proven.cut.kind == CutKind::Digest && !damage.for_digest) continue;
      SCOPED_TRACE(name + ": " + damage.what);
      Cut cut = proven.cut;
      damage.apply(cut);
      retime(cut);
      EXPECT_TRUE(refute(cut, proven.topology, proven.demand).has_value());
    }
    SCOPED_TRACE(name);
    Cut later = proven.cut;
    later.time += picoseconds(1);
    EXPECT_TRUE(refute(later, proven.topology, proven.demand).has_value());
    Cut earlier = proven.cut;
    earlier.time = earlier.time - picoseconds(1);
    EXPECT_TRUE(refute(earlier, proven.topology, proven.demand).has_value());
  }
}

// A class that the sink's own member holds and may serve need not cross.
TEST(Certificate, AHolderInTheSinkIsFound) {
  const Topology topology = make_cluster({.hosts = 2});
  const Demand demand = make_demand(topology, {});
  Cut cut = lower_bound(topology, demand).cut;
  Demand held = demand;
  BlockClass& first = held.classes[cut.classes[0].index()];
  const WorkerId other =
      cut.receivers[0] == first.receivers[0] ? cut.receivers[1] : cut.receivers[0];
  first.holders.push_back(other);
  EXPECT_TRUE(refute(cut, topology, held).has_value());
}

// GPU 0 of a host wants shard 0; that shard 1 does not reach it either proves nothing.
TEST(Certificate, AClassThatNobodyInTheSinkWantsIsFound) {
  const Topology topology = make_cluster({.hosts = 2, .gpus = 2, .nics = 2, .nvlink = false});
  DemandBuilder builder("m", {0, 1}, Bytes(1 << 20), std::vector<Bytes>(200, Bytes(1 << 20)));
  for (std::uint32_t i = 0; i < 4; ++i) {
    const std::string name = "d0.r0.h" + std::to_string(i / 2) + ".gpu" + std::to_string(i % 2);
    const WorkerId w = builder.add_worker({topology.find_node(name), i, Bytes(), true});
    const BlockSpan shard = i % 2 == 0 ? BlockSpan{BlockId(0U), 150} : BlockSpan{BlockId(150U), 50};
    if (i < 2) {
      builder.holds(w, shard);
    } else {
      builder.wants(w, shard);
    }
  }
  const Demand demand = std::move(builder).build();
  Cut cut = lower_bound(topology, demand).cut;
  ASSERT_EQ(cut.kind, CutKind::Receiver);
  ASSERT_EQ(cut.classes.size(), 1U);
  ASSERT_FALSE(refute(cut, topology, demand).has_value());
  cut.classes = {ClassId(0U), ClassId(1U)};
  cut.bytes = Bytes(200ULL << 20);
  retime(cut);
  EXPECT_TRUE(refute(cut, topology, demand).has_value());
}

// Random single-channel removals: whatever is taken away, the rest does not separate, or carries
// less than it says.
TEST(Certificate, NoChannelIsSuperfluousInAMinimumCut) {
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937_64 random(seed);
    ClusterShape shape = random_shape(random);
    shape.hosts = std::min(shape.hosts, 3U);
    const Topology topology = make_cluster(shape);
    const Demand demand = random_demand(topology, random);
    const Cut cut = lower_bound(topology, demand, BoundMode::Exact).cut;
    if (cut.kind == CutKind::Digest) continue;
    for (std::size_t i = 0; i < cut.channels.size(); ++i) {
      Cut less = cut;
      less.capacity = Rate(less.capacity.bytes_per_second() -
                           topology.link(less.channels[i].link()).capacity.bytes_per_second());
      less.channels.erase(less.channels.begin() + static_cast<std::ptrdiff_t>(i));
      retime(less);
      EXPECT_TRUE(refute(less, topology, demand).has_value());
    }
  }
}

}  // namespace
}  // namespace holdfast
