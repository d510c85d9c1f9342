#include "core/io/deployment.hpp"

#include <algorithm>
#include <limits>
#include <utility>

#include <fmt/format.h>

#include "core/io/scenario_update.hpp"

namespace holdfast {
namespace {

// No name of a scenario has a space in it.
constexpr const char* kWholeLayout = "host memory";

// What a scenario's group does, over all keys that name it.
struct Part {
  std::vector<char> publishes;  // by replica
  bool fetches = false;
  [[nodiscard]] bool any() const {
    return fetches || std::find(publishes.begin(), publishes.end(), 1) != publishes.end();
  }
};

class Maker {
 public:
  Maker(const Scenario& scenario, const Topology& topology, const Manifest& manifest)
      : scenario_(scenario), topology_(topology), manifest_(manifest) {}

  Deployment make() {
    place();
    add_parts();
    const bool whole = uses_host_memory();
    Deployment d{make_map(whole), nullptr, {}, {}, {}, {}, {}, {}, {}, {}};
    d.space =
        std::make_shared<const ModelSpace>(space_of(scenario_.name, manifest_.model(), d.map));
    add_groups(d);
    if (scenario_.protocol.retain) add_memories(d);
    number(d);
    configure(d);
    d.warnings = std::move(warnings_);
    return d;
  }

 private:
  void place() {
    for (const ScenarioGroup& group : scenario_.groups) {
      replicas_.push_back(
          replicas_of(group, scenario_.layouts[group.layout], topology_, &warnings_));
      parts_.push_back({std::vector<char>(replicas_.back().size(), 0), false});
    }
  }

  void add_parts() {
    for (const ScenarioHolder& holder : scenario_.holders) {
      if (holder.part) {
        throw Error(ErrorCode::Unsupported,
                    "who holds a part of a version cannot publish it; leave 'part' away, or leave "
                    "'faults' and 'retain' away",
                    holder.place);
      }
      std::vector<char>& publishes = parts_[holder.group].publishes;
      if (holder.replicas.empty()) std::fill(publishes.begin(), publishes.end(), char{1});
      for (const std::uint32_t replica : holder.replicas) {
        if (replica >= publishes.size()) {
          throw Error(
              ErrorCode::UnknownName,
              fmt::format("group '{}' has no replica {}: it has {}, numbered from 0",
                          scenario_.groups[holder.group].name.text, replica, publishes.size()),
              holder.replicas_place);
        }
        publishes[replica] = 1;
      }
    }
    for (const ScenarioReceiver& receiver : scenario_.update.receivers) {
      parts_[receiver.group].fetches = true;
    }
  }

  [[nodiscard]] bool uses_host_memory() const {
    for (std::size_t g = 0; g < parts_.size(); ++g) {
      const bool memory = scenario_.groups[g].placement.on == PlacedOn::HostMemory;
      if (memory && parts_[g].any()) return true;
    }
    return false;
  }

  WeightMap make_map(bool whole) {
    std::vector<char> wanted(scenario_.layouts.size(), 0);
    for (std::size_t g = 0; g < parts_.size(); ++g) {
      const ScenarioGroup& group = scenario_.groups[g];
      if (parts_[g].any() && group.placement.on == PlacedOn::Gpus) wanted[group.layout] = 1;
    }
    const ModelStructure model(manifest_);
    std::vector<Layout> layouts;
    numbers_.assign(wanted.size(), 0);
    for (std::size_t i = 0; i < wanted.size(); ++i) {
      if (wanted[i] == 0) continue;
      const ScenarioLayout& layout = scenario_.layouts[i];
      if (const auto fault = fault_of(layout.layout, model)) {
        throw Error(fault->code, fault->message, layout.place_of(fault->key));
      }
      numbers_[i] = static_cast<LayoutNumber>(layouts.size());
      layouts.push_back(layout.layout);
    }
    whole_ = static_cast<LayoutNumber>(layouts.size());
    if (whole) {
      Layout layout;
      layout.name = kWholeLayout;
      layouts.push_back(std::move(layout));
    }
    const Bytes block = block_size_of(scenario_.options, manifest_.total());
    if (block > manifest_.total()) {
      warnings_.push_back(
          fmt::format("{}: blocks of {} are larger than the model of {}: each segment is one block",
                      to_string(scenario_.options.block_place), to_string(block),
                      to_string(manifest_.total())));
    }
    try {
      return {manifest_, std::move(layouts), block};
    } catch (const Error& error) {
      // The block size: layouts were checked above.
      throw Error(error.code(), error.message(), scenario_.options.block_place);
    }
  }

  void add_groups(Deployment& d) {
    taken_by_.assign(topology_.nodes().size(), kNobody);
    for (std::size_t g = 0; g < parts_.size(); ++g) {
      for (std::uint32_t r = 0; r < replicas_[g].size(); ++r) {
        const bool publishes = parts_[g].publishes[r] != 0;
        if (publishes || parts_[g].fetches) add_group(d, g, r, publishes);
      }
    }
  }

  void add_group(Deployment& d, std::size_t g, std::uint32_t replica, bool publishes) {
    const ScenarioGroup& from = scenario_.groups[g];
    DeployedGroup group;
    group.name = fmt::format("{}[{}]", from.name.text, replica);
    group.scenario = g;
    group.replica = replica;
    group.role = from.role.value_or(publishes ? Role::Trainer : Role::Rollout);
    group.publishes = publishes;
    group.fetches = parts_[g].fetches && !publishes;
    group.host_memory = from.placement.on == PlacedOn::HostMemory;
    group.reliable = from.reliability == Reliability::Reliable;
    group.layout = group.host_memory ? whole_ : numbers_[from.layout];
    group.members = std::move(replicas_[g][replica]);
    for (const NodeId node : group.members) {
      if (taken_by_[node.index()] != kNobody) {
        throw Error(
            ErrorCode::BadValue,
            fmt::format("'{}' is in group '{}' and in group '{}'; where workers come, go "
                        "or publish again, each group needs endpoints of its own",
                        topology_.node(node).name,
                        scenario_.groups[taken_by_[node.index()]].name.text, from.name.text),
            from.placement.place);
      }
      taken_by_[node.index()] = g;
    }
    if (group.fetches) give_slots(*d.space, group);
    for (std::uint32_t rank = 0; rank < group.members.size(); ++rank)
      check_fit(*d.space, group, rank);
    d.groups.push_back(std::move(group));
  }

  void give_slots(const ModelSpace& space, DeployedGroup& group) const {
    bool shadow = scenario_.update.destination == Destination::Shadow;
    if (group.host_memory) {
      const Bytes model = space.bytes({group.layout, 0});
      shadow = model + model <= topology_.node(group.members.front()).memory;
    }
    group.destination = shadow ? Destination::Shadow : Destination::InPlace;
    group.slots = shadow ? 2 : 1;
  }

  void check_fit(const ModelSpace& space, const DeployedGroup& group, std::uint32_t rank) const {
    const Bytes shard = space.bytes({group.layout, rank});
    const Node& node = topology_.node(group.members[rank]);
    const Bytes needed = shard * group.slots;
    if (needed <= node.memory) return;
    const bool shadow = group.slots > 1;
    throw Error(ErrorCode::BadValue,
                fmt::format("group '{}': '{}' has {} of memory, less than {} of {} each; use a "
                            "layout with more shards{}",
                            scenario_.groups[group.scenario].name.text, node.name,
                            rounded(node.memory), shadow ? "two versions" : "one version",
                            rounded(shard), shadow ? " or 'destination: in_place'" : ""),
                scenario_.groups[group.scenario].placement.place);
  }

  void add_memories(Deployment& d) {
    std::vector<char> hosts(topology_.domains().size(), 0);
    for (const bool reliable : {true, false}) {
      for (const DeployedGroup& group : d.groups) {
        if (group.reliable != reliable) continue;
        for (const NodeId node : group.members) {
          hosts[topology_.around(node, Level::Host).index()] = reliable ? 1 : 0;
        }
      }
    }
    const std::optional<Bytes> wanted = scenario_.protocol.host_memory_budget;
    for (std::size_t i = 0; i < topology_.nodes().size(); ++i) {
      const Node& node = topology_.nodes()[i];
      if (node.kind != NodeKind::HostMemory || !node.up || taken_by_[i] != kNobody) continue;
      if (hosts[topology_.around(NodeId(i), Level::Host).index()] == 0) continue;
      d.memories.push_back({NodeId(i), std::min(wanted.value_or(node.memory), node.memory)});
    }
  }

  void number(Deployment& d) const {
    for (std::size_t g = 0; g < d.groups.size(); ++g) {
      const DeployedGroup& group = d.groups[g];
      d.first_worker.push_back(static_cast<std::uint32_t>(d.roster.size()));
      for (std::uint32_t rank = 0; rank < group.members.size(); ++rank) {
        WorkerCard card;
        card.node = group.members[rank];
        card.space = SpaceId(0U);
        card.reliable = group.reliable;
        card.group = GroupId(g);
        card.shard = {group.layout, rank};
        card.slots = group.slots;
        d.cards.push_back(std::move(card));
        d.roster.push_back(group.members[rank]);
      }
    }
    for (const DeployedMemory& memory : d.memories) {
      WorkerCard card;
      card.node = memory.node;
      card.space = SpaceId(0U);
      card.host_memory = true;
      card.shard = kWholeModel;
      card.budget = memory.budget;
      d.cards.push_back(std::move(card));
      d.roster.push_back(memory.node);
    }
  }

  void configure(Deployment& d) const {
    const ScenarioProtocol& protocol = scenario_.protocol;
    d.coordinator.detection = protocol.detection.worker;
    // A new coordinator waits for as long as workers need to notice that the old one is gone.
    d.coordinator.rebuild_time = protocol.detection.coordinator;
    d.coordinator.gather = protocol.gather;
    d.coordinator.serve_from_spot = scenario_.options.serve_from_spot;
    d.coordinator.verify = scenario_.verify;
    d.agent.heartbeat = protocol.heartbeat;
  }

  static constexpr std::size_t kNobody = std::numeric_limits<std::size_t>::max();

  const Scenario& scenario_;
  const Topology& topology_;
  const Manifest& manifest_;
  std::vector<std::string> warnings_;
  std::vector<std::vector<std::vector<NodeId>>> replicas_;  // by group of the scenario
  std::vector<Part> parts_;                                 // likewise
  std::vector<LayoutNumber> numbers_;                       // by layout of the scenario
  LayoutNumber whole_ = 0;
  std::vector<std::size_t> taken_by_;  // group of the scenario, by node
};

}  // namespace

Deployment make_deployment(const Scenario& scenario, const Topology& topology,
                           const Manifest& manifest) {
  return Maker(scenario, topology, manifest).make();
}

}  // namespace holdfast
