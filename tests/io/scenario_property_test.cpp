// The demand of random scenarios against an oracle that asks, element by element of the model, who
// holds it and who wants it.
#include <gtest/gtest.h>

#include <map>
#include <random>
#include <set>

#include <fmt/format.h>

#include "core/io/scenario_update.hpp"
#include "core/weights/weight_map.hpp"
#include "tests/io/scenario_samples.hpp"

namespace holdfast {
namespace {

constexpr std::uint32_t kHosts = 3;
constexpr std::uint32_t kGpus = 4;

struct Draw {
  std::mt19937_64 random;
  std::uint32_t below(std::uint32_t n) { return static_cast<std::uint32_t>(random() % n); }
  bool one_in(std::uint32_t n) { return below(n) == 0; }
};

// One group on one host, as the test sees it: shard numbers by GPU.
struct Group {
  std::uint32_t host = 0;
  std::uint32_t shards = 1;
  bool receives = false;
  std::set<std::uint32_t> holding;  // replicas
  std::uint32_t percent = 100;      // of its first or last blocks
  bool from_end = false;
  bool spot = false;
};

std::string text_of(const std::vector<Group>& groups, bool serve_from_spot, bool shadow) {
  std::string body;
  std::string holders;
  std::string receivers;
  for (std::size_t g = 0; g < groups.size(); ++g) {
    const Group& group = groups[g];
    body += fmt::format("  g{}: {{place: {{hosts: h{}}}, layout: tp{}, reliability: {}}}\n", g,
                        group.host, group.shards, group.spot ? "spot" : "reliable");
    if (group.receives) {
      receivers += fmt::format("{}g{}", receivers.empty() ? "" : ", ", g);
    }
    if (!group.holding.empty()) {
      std::string numbers;
      for (const std::uint32_t r : group.holding) {
        numbers += fmt::format("{}{}", numbers.empty() ? "" : ", ", r);
      }
      holders += fmt::format(
          "  - {{group: g{}, replicas: [{}]{}}}\n", g, numbers,
          group.percent < 100
              ? fmt::format(", part: {{{}: {}%}}", group.from_end ? "last" : "first", group.percent)
              : "");
    }
  }
  return samples::scenario_text(
      body, fmt::format("holders:\n{}update: {{receivers: [{}], destination: {}}}\n"
                        "options: {{block_size: 64KiB, serve_from_spot: {}}}\n",
                        holders, receivers, shadow ? "shadow" : "in_place", serve_from_spot));
}

std::vector<Group> draw_groups(Draw& draw) {
  std::vector<Group> groups;
  std::set<std::uint32_t> receiving_hosts;
  const std::uint32_t count = 2 + draw.below(3);
  for (std::uint32_t g = 0; g < count; ++g) {
    Group group;
    group.host = draw.below(kHosts);
    group.shards = 1U << draw.below(3);
    group.spot = draw.one_in(4);
    group.receives = g > 0 && receiving_hosts.count(group.host) == 0 && !draw.one_in(4);
    if (group.receives) {
      receiving_hosts.insert(group.host);
    }
    for (std::uint32_t r = 0; r < kGpus / group.shards; ++r) {
      if (g == 0 || draw.one_in(3)) {
        group.holding.insert(r);
      }
    }
    if (g > 0 && draw.one_in(2)) {
      group.percent = 10 + draw.below(80);
      group.from_end = draw.one_in(2);
    }
    groups.push_back(group);
  }
  groups[0].spot = false;
  return groups;
}

// What each endpoint holds and wants, block by block, and whether it may be read from.
struct Expected {
  std::set<std::uint32_t> held;
  std::set<std::uint32_t> wanted;
  bool may_serve = true;
};

std::map<std::string, Expected> oracle(const std::vector<Group>& groups, const WeightMap& map,
                                       bool serve_from_spot) {
  std::map<std::string, Expected> all;
  for (const Group& group : groups) {
    if (!group.receives && group.holding.empty()) {
      continue;
    }
    std::size_t layout = 0;
    while (map.layouts()[layout].tensor_parallel != group.shards) {
      ++layout;
    }
    for (std::uint32_t gpu = 0; gpu < kGpus; ++gpu) {
      std::vector<std::uint32_t> shard;
      for (std::uint32_t b = 0; b < map.blocks(); ++b) {
        if (!map.local_runs(layout, gpu % group.shards, BlockId(b)).empty()) {
          shard.push_back(b);
        }
      }
      const bool holds = group.holding.count(gpu / group.shards) != 0;
      if (!holds && !group.receives) {
        continue;
      }
      Expected& expected = all[fmt::format("h{}.gpu{}", group.host, gpu)];
      if (holds) {
        // The first part rounds down and the last one up, so that two that add up to 100 % are all.
        const std::size_t keep = group.from_end
                                     ? shard.size() - shard.size() * (100 - group.percent) / 100
                                     : shard.size() * group.percent / 100;
        const std::size_t first = group.from_end ? shard.size() - keep : 0;
        for (std::size_t k = first; k < first + keep; ++k) {
          expected.held.insert(shard[k]);
        }
      }
      if (group.receives) {
        expected.wanted.insert(shard.begin(), shard.end());
      }
      expected.may_serve = expected.may_serve && (!group.spot || serve_from_spot);
    }
  }
  return all;
}

std::vector<Layout> layouts_of(const std::vector<Group>& groups) {
  std::vector<Layout> layouts;
  for (const std::uint32_t shards : {1U, 2U, 4U}) {
    for (const Group& group : groups) {
      if (group.shards == shards && (group.receives || !group.holding.empty())) {
        layouts.push_back({"tp" + std::to_string(shards), shards});
        break;
      }
    }
  }
  return layouts;
}

void compare(const Demand& demand, const Topology& topology, const WeightMap& map,
             const std::map<std::string, Expected>& all, bool shadow) {
  ASSERT_EQ(demand.workers.size(), all.size());
  std::vector<std::set<std::uint32_t>> held(demand.workers.size());
  std::vector<std::set<std::uint32_t>> missing(demand.workers.size());
  for (const BlockClass& block_class : demand.classes) {
    for (const BlockId block : blocks_of(block_class)) {
      for (const WorkerId worker : block_class.holders) {
        held[worker.index()].insert(block.value());
      }
      for (const WorkerId worker : block_class.receivers) {
        missing[worker.index()].insert(block.value());
      }
    }
  }
  std::set<std::uint32_t> moved;
  for (const auto& [name, expected] : all) {
    for (const std::uint32_t block : expected.wanted) {
      if (expected.held.count(block) == 0) {
        moved.insert(block);
      }
    }
  }
  for (std::size_t w = 0; w < demand.workers.size(); ++w) {
    const std::string& name = topology.node(demand.workers[w].node).name;
    SCOPED_TRACE(name);
    const Expected& expected = all.at(name);
    std::set<std::uint32_t> expected_missing;
    std::uint64_t taken = 0;
    for (const std::uint32_t block : expected.wanted) {
      if (expected.held.count(block) == 0) {
        expected_missing.insert(block);
      }
      taken += shadow ? map.bytes_of(BlockId(block)).count() : 0;
    }
    std::set<std::uint32_t> expected_held;
    for (const std::uint32_t block : expected.held) {
      taken += map.bytes_of(BlockId(block)).count();
      if (moved.count(block) != 0 && expected.may_serve) {
        expected_held.insert(block);
      }
    }
    EXPECT_EQ(missing[w], expected_missing);
    EXPECT_EQ(held[w], expected_held);
    EXPECT_EQ(demand.workers[w].may_serve, expected.may_serve);
    EXPECT_EQ(demand.workers[w].memory_free, Bytes((1U << 26U) - taken));
  }
}

TEST(ScenarioProperty, DemandSaysWhatTheScenarioSays) {
  const Topology topology = samples::machine(kHosts, kGpus, Bytes(1U << 26U));
  const Manifest manifest = samples::model();
  int accepted = 0;
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    Draw draw{std::mt19937_64(seed)};
    const std::vector<Group> groups = draw_groups(draw);
    const bool serve = draw.one_in(2);
    const bool shadow = draw.one_in(2);
    bool receives = false;
    for (const Group& group : groups) {
      receives = receives || group.receives;
    }
    if (!receives) {
      continue;
    }
    const WeightMap map(manifest, layouts_of(groups), Bytes(64 * 1'024));
    const auto all = oracle(groups, map, serve);
    Demand demand;
    try {
      demand =
          make_demand(parse_scenario(text_of(groups, serve, shadow), "s.yaml"), topology, manifest);
    } catch (const Error& error) {
      // Right only where nothing is missing or something has no holder that may serve.
      std::set<std::uint32_t> served;
      std::set<std::uint32_t> missing;
      for (const auto& [name, expected] : all) {
        for (const std::uint32_t block : expected.wanted) {
          if (expected.held.count(block) == 0) {
            missing.insert(block);
          }
        }
        if (expected.may_serve) {
          served.insert(expected.held.begin(), expected.held.end());
        }
      }
      const bool all_served =
          std::includes(served.begin(), served.end(), missing.begin(), missing.end());
      EXPECT_TRUE(missing.empty() || !all_served) << error.what();
      continue;
    }
    ++accepted;
    validate(demand, topology);
    compare(demand, topology, map, all, shadow);
  }
  EXPECT_GT(accepted, 150);
}

}  // namespace
}  // namespace holdfast
