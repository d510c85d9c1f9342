// The parametric cut against all cuts of small random networks.
#include "core/plan/parametric_cut.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "core/plan/bound_ratio.hpp"

namespace holdfast::bound {
namespace {

struct Network {
  std::uint32_t nodes = 0;
  std::vector<Arc> arcs;
  std::vector<std::uint64_t> rates;
  std::vector<Supply> supplies;
  std::vector<std::uint32_t> sinks;
  [[nodiscard]] FlowProblem problem() const { return {nodes, arcs, rates, supplies, sinks}; }
};

Network random_network(std::mt19937_64& random) {
  const auto pick = [&](std::uint64_t least, std::uint64_t most) {
    return std::uniform_int_distribution<std::uint64_t>(least, most)(random);
  };
  Network n;
  n.nodes = static_cast<std::uint32_t>(pick(2, 8));
  const auto node = [&] { return static_cast<std::uint32_t>(pick(0, n.nodes - 1)); };
  n.sinks.push_back(n.nodes - 1);
  const std::uint64_t arcs = pick(0, 20);
  for (std::uint32_t i = 0; i < arcs; ++i) {
    const std::uint32_t tail = node();
    const std::uint32_t head = node();
    // An unlimited arc into the sink would be a holder that is the receiver.
    const bool limited = pick(0, 4) != 0 || head == n.sinks[0];
    if (tail == head) continue;
    n.arcs.push_back({tail, head, limited ? i : kNone});
    n.rates.push_back(limited ? pick(1, pick(0, 1) == 0 ? 5 : 1'000'000'000'000) : 0);
  }
  for (std::uint64_t s = pick(1, 3); s > 0; --s) {
    Supply supply{pick(1, pick(0, 1) == 0 ? 9 : 2'000'000'000'000), {}};
    for (std::uint64_t e = pick(1, 2); e > 0; --e) {
      supply.entries.push_back(static_cast<std::uint32_t>(pick(0, n.nodes - 2)));
    }
    n.supplies.push_back(supply);
  }
  return n;
}

// The largest ratio over every set of nodes on the source's side.
Ratio largest_ratio(const Network& n) {
  Ratio best{0, 1};
  for (std::uint32_t side = 0; side < (1U << n.nodes); ++side) {
    const auto in = [side](std::uint32_t node) { return (side >> node & 1U) != 0; };
    if (std::any_of(n.sinks.begin(), n.sinks.end(), in)) continue;
    Ratio ratio;
    for (const Supply& supply : n.supplies) {
      if (std::all_of(supply.entries.begin(), supply.entries.end(), in)) {
        ratio.bytes += supply.bytes;
      }
    }
    bool possible = true;
    for (std::size_t i = 0; i < n.arcs.size(); ++i) {
      if (!in(n.arcs[i].tail) || in(n.arcs[i].head)) continue;
      possible = possible && n.arcs[i].channel != kNone;
      ratio.capacity += n.rates[i];
    }
    if (possible && less(best, ratio)) best = ratio;
  }
  return best;
}

TEST(ParametricCut, IsTheLargestRatioOverAllCuts) {
  for (std::uint64_t seed = 0; seed < 3'000; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937_64 random(seed);
    const Network n = random_network(random);
    const std::vector<FlowCut> cuts = parametric_cuts(n.problem());
    ASSERT_FALSE(cuts.empty());
    const Ratio found{cuts.back().bytes, cuts.back().capacity};
    const Ratio right = largest_ratio(n);
    EXPECT_FALSE(less(found, right))
        << found.bytes << '/' << found.capacity << " < " << right.bytes << '/' << right.capacity;
    EXPECT_FALSE(less(right, found));
  }
}

TEST(ParametricCut, CutsAreWhatTheyClaimAndRise) {
  for (std::uint64_t seed = 0; seed < 1'000; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937_64 random(seed);
    const Network n = random_network(random);
    const std::vector<FlowCut> cuts = parametric_cuts(n.problem());
    for (std::size_t k = 0; k < cuts.size(); ++k) {
      std::uint64_t bytes = 0;
      std::vector<std::uint32_t> queue;
      for (const std::uint32_t s : cuts[k].supplies) {
        bytes += n.supplies[s].bytes;
        queue.insert(queue.end(), n.supplies[s].entries.begin(), n.supplies[s].entries.end());
      }
      EXPECT_EQ(bytes, cuts[k].bytes);
      std::uint64_t capacity = 0;
      for (const std::uint32_t a : cuts[k].arcs) capacity += n.rates[a];
      EXPECT_EQ(capacity, cuts[k].capacity);
      for (std::size_t i = 0; i < queue.size() && i < 1'000; ++i) {
        ASSERT_NE(queue[i], n.sinks[0]) << "the cut does not separate";
        for (std::uint32_t a = 0; a < n.arcs.size(); ++a) {
          const bool cut = std::binary_search(cuts[k].arcs.begin(), cuts[k].arcs.end(), a);
          const std::uint32_t head = n.arcs[a].head;
          if (n.arcs[a].tail == queue[i] && !cut &&
              std::find(queue.begin(), queue.end(), head) == queue.end()) {
            queue.push_back(head);
          }
        }
      }
      if (k > 0) {
        EXPECT_TRUE(
            less({cuts[k - 1].bytes, cuts[k - 1].capacity}, {cuts[k].bytes, cuts[k].capacity}));
      }
    }
  }
}

// Two arcs of one channel share it: 10 bytes, both uses cut, 5 bytes a second in all.
TEST(ParametricCut, CountsAChannelOnce) {
  const std::vector<Arc> arcs{{0, 1, 7}, {0, 2, 7}, {1, 3, kNone}, {2, 3, 8}};
  const std::vector<std::uint64_t> rates{5, 5, 0, 100};
  const std::vector<FlowCut> cuts = parametric_cuts({4, arcs, rates, {{10, {0}}}, {3}});
  ASSERT_FALSE(cuts.empty());
  EXPECT_EQ(cuts.back().capacity, 5U);
  EXPECT_EQ(cuts.back().arcs.size(), 1U);
}

TEST(ParametricCut, NothingToBringHasNoCut) {
  EXPECT_TRUE(parametric_cuts({2, {}, {}, {}, {1}}).empty());
}

}  // namespace
}  // namespace holdfast::bound
