#include "core/io/scenario_update.hpp"

#include <algorithm>
#include <limits>
#include <memory>
#include <unordered_map>
#include <unordered_set>

#include <fmt/format.h>

#include "core/io/shard_blocks.hpp"

namespace holdfast {
namespace {

constexpr std::uint32_t kNone = std::numeric_limits<std::uint32_t>::max();

// One endpoint and what the groups on it hold and want.
struct Seat {
  std::uint32_t group = kNone;     // replica number in the task
  std::uint32_t receiver = kNone;  // index of the scenario's group that it receives for
  const ShardBlocks* wanted = nullptr;
  std::vector<const ShardBlocks*> held;
  bool may_serve = true;
};

class UpdateMaker {
 public:
  UpdateMaker(const Scenario& scenario, const Topology& topology, const Manifest& manifest)
      : scenario_(scenario),
        topology_(topology),
        manifest_(manifest),
        block_size_(block_size_of(scenario.options, manifest.total())),
        layout_index_(scenario.layouts.size(), kNone),
        first_replica_(scenario.groups.size(), kNone),
        map_(manifest, used_layouts(), block_size_),
        table_(shard_table(map_)),
        seats_(topology.nodes().size()) {}

  UpdateTask make() {
    place_groups();
    for (const ScenarioReceiver& receiver : scenario_.update.receivers) {
      add_receiver(receiver);
    }
    for (const ScenarioHolder& holder : scenario_.holders) {
      add_holder(holder);
    }
    warn();
    task_.model_bytes = manifest_.total();
    task_.manifest = manifest_.hash();
    task_.demand = build();
    return std::move(task_);
  }

 private:
  // The groups that hold or receive, and so the layouts that cut the model.
  std::vector<Layout> used_layouts() {
    uses_.assign(scenario_.groups.size(), 0);
    for (const ScenarioHolder& holder : scenario_.holders) {
      uses_[holder.group] = 1;
    }
    for (const ScenarioReceiver& receiver : scenario_.update.receivers) {
      uses_[receiver.group] = 1;
    }
    std::vector<char> wanted(scenario_.layouts.size(), 0);
    for (std::size_t g = 0; g < uses_.size(); ++g) {
      if (uses_[g] != 0) {
        wanted[scenario_.groups[g].layout] = 1;
      }
    }
    const ModelStructure model(manifest_);
    std::vector<Layout> layouts;
    for (std::size_t i = 0; i < wanted.size(); ++i) {
      if (wanted[i] == 0) {
        continue;
      }
      const ScenarioLayout& layout = scenario_.layouts[i];
      if (const auto fault = fault_of(layout.layout, model)) {
        throw Error(fault->code, fault->message, layout.place_of(fault->key));
      }
      layout_index_[i] = static_cast<std::uint32_t>(layouts.size());
      layouts.push_back(layout.layout);
    }
    return layouts;
  }

  void place_groups() {
    workers_.resize(scenario_.groups.size());
    for (std::size_t g = 0; g < scenario_.groups.size(); ++g) {
      const ScenarioGroup& group = scenario_.groups[g];
      workers_[g] = replicas_of(group, scenario_.layouts[group.layout], topology_, &task_.warnings);
      if (uses_[g] == 0) {
        continue;
      }
      first_replica_[g] = static_cast<std::uint32_t>(task_.replicas.size());
      for (std::size_t r = 0; r < workers_[g].size(); ++r) {
        task_.replicas.push_back(
            {fmt::format("{}[{}]", group.name.text, r), group.role.value_or(Role::Trainer), false});
      }
    }
  }

  // What the k-th worker of a replica of the group has when it has all.
  const ShardBlocks& shard_of(const ScenarioGroup& group, std::size_t k) const {
    return group.placement.on == PlacedOn::HostMemory
               ? table_.whole
               : table_.shards[layout_index_[group.layout]][k];
  }

  void add_receiver(const ScenarioReceiver& receiver) {
    const ScenarioGroup& group = scenario_.groups[receiver.group];
    for (std::size_t r = 0; r < workers_[receiver.group].size(); ++r) {
      const auto number = first_replica_[receiver.group] + static_cast<std::uint32_t>(r);
      task_.replicas[number].receives = true;
      task_.replicas[number].role = group.role.value_or(Role::Rollout);
      const auto& replica = workers_[receiver.group][r];
      for (std::size_t k = 0; k < replica.size(); ++k) {
        Seat& seat = seats_[replica[k].index()];
        if (seat.wanted != nullptr) {
          throw Error(ErrorCode::BadValue,
                      fmt::format("'{}' would receive for group '{}' and for group '{}'; an "
                                  "endpoint runs one replica",
                                  topology_.node(replica[k]).name,
                                  scenario_.groups[seat.receiver].name.text, group.name.text),
                      receiver.place);
        }
        seat.wanted = &shard_of(group, k);
        seat.receiver = static_cast<std::uint32_t>(receiver.group);
        seat.group = number;
        seat.may_serve = seat.may_serve && may_serve(group);
      }
    }
  }

  void add_holder(const ScenarioHolder& holder) {
    const ScenarioGroup& group = scenario_.groups[holder.group];
    const auto& replicas = workers_[holder.group];
    std::vector<std::uint32_t> numbers = holder.replicas;
    if (numbers.empty()) {
      for (std::size_t r = 0; r < replicas.size(); ++r) {
        numbers.push_back(static_cast<std::uint32_t>(r));
      }
    }
    for (const std::uint32_t r : numbers) {
      if (r >= replicas.size()) {
        throw Error(ErrorCode::UnknownName,
                    fmt::format("group '{}' has no replica {}: it has {}, numbered from 0",
                                group.name.text, r, replicas.size()),
                    holder.replicas_place);
      }
      for (std::size_t k = 0; k < replicas[r].size(); ++k) {
        Seat& seat = seats_[replicas[r][k].index()];
        seat.held.push_back(held_part(holder, shard_of(group, k)));
        if (seat.group == kNone) {
          seat.group = first_replica_[holder.group] + r;
        }
        seat.may_serve = seat.may_serve && may_serve(group);
      }
    }
  }

  // Parts of one shard are cut once, whichever number of workers hold it.
  const ShardBlocks* held_part(const ScenarioHolder& holder, const ShardBlocks& shard) {
    if (!holder.part) {
      return &shard;
    }
    const PartKey key{&shard, holder.part->from_end, holder.part->parts_per_million};
    auto& made = parts_[key];
    if (made == nullptr) {
      made = std::make_unique<ShardBlocks>(part_of(shard, *holder.part, map_));
      if (made->blocks == 0) {
        throw Error(ErrorCode::NoEffect,
                    "this part is less than one block, so that it holds nothing; take a larger "
                    "share or smaller blocks",
                    holder.place);
      }
    }
    return made.get();
  }

  bool may_serve(const ScenarioGroup& group) const {
    return group.reliability == Reliability::Reliable || scenario_.options.serve_from_spot;
  }

  void warn() {
    if (block_size_ > manifest_.total()) {
      task_.warnings.push_back(
          fmt::format("{}: blocks of {} are larger than the model of {}: each segment is one block",
                      to_string(scenario_.options.block_place), to_string(block_size_),
                      to_string(manifest_.total())));
    }
    for (const ScenarioReceiver& receiver : scenario_.update.receivers) {
      bool on_gpu = scenario_.groups[receiver.group].placement.on == PlacedOn::Gpus;
      if (on_gpu && scenario_.groups[receiver.group].role == Role::Trainer) {
        task_.warnings.push_back(
            fmt::format("{}: group '{}' receives as a trainer: its waiting is in no stall",
                        to_string(receiver.place), scenario_.groups[receiver.group].name.text));
      }
    }
  }

  // What a receiver may fill: its memory without what it holds already (which stays) and, for a
  // shadow fetch, without the version that it still runs.
  Bytes memory_free(NodeId id, const Seat& seat) const {
    const Node& node = topology_.node(id);
    const Bytes held = union_bytes(seat.held, map_);
    const bool shadow =
        seat.wanted != nullptr && scenario_.update.destination == Destination::Shadow;
    const Bytes taken = held + (shadow ? seat.wanted->bytes : Bytes());
    if (taken > node.memory) {
      throw Error(ErrorCode::BadValue,
                  fmt::format("'{}' has {} of memory, less than the {} that it {}", node.name,
                              rounded(node.memory), rounded(taken),
                              shadow ? "holds with the old version beside the new one" : "holds"),
                  shadow ? scenario_.update.place : scenario_.holders_place);
    }
    return node.memory - taken;
  }

  void refuse_unfit(const Demand& demand) const {
    const std::vector<Bytes> missing = missing_bytes(demand);
    for (std::size_t w = 0; w < demand.workers.size(); ++w) {
      const DemandWorker& worker = demand.workers[w];
      if (missing[w] > worker.memory_free) {
        const bool shadow = scenario_.update.destination == Destination::Shadow;
        const Seat& seat = seats_[worker.node.index()];
        throw Error(
            ErrorCode::BadValue,
            fmt::format("group '{}': '{}' is to receive {} and has {} free{}; use a layout "
                        "with more shards{}",
                        scenario_.groups[seat.receiver].name.text, topology_.node(worker.node).name,
                        rounded(missing[w]), rounded(worker.memory_free),
                        shadow ? " beside the version that it runs" : "",
                        shadow ? " or 'destination: in_place'" : ""),
            scenario_.update.place);
      }
    }
  }

  Demand build() {
    std::vector<Bytes> block_bytes(map_.blocks());
    for (std::size_t b = 0; b < block_bytes.size(); ++b) {
      block_bytes[b] = map_.bytes_of(BlockId(b));
    }
    DemandBuilder builder(manifest_.model(), Version{1, 1}, block_size_, std::move(block_bytes));
    builder.set_verify(scenario_.verify);
    for (std::size_t i = 0; i < seats_.size(); ++i) {
      const Seat& seat = seats_[i];
      if (seat.group == kNone) {
        continue;
      }
      const WorkerId worker =
          builder.add_worker({NodeId(i), seat.group, memory_free(NodeId(i), seat), seat.may_serve});
      for (const ShardBlocks* held : seat.held) {
        for (const BlockSpan& span : held->spans) {
          builder.holds(worker, span);
        }
      }
      if (seat.wanted != nullptr) {
        for (const BlockSpan& span : seat.wanted->spans) {
          builder.wants(worker, span);
        }
      }
    }
    Demand demand = finish(std::move(builder));
    refuse_unfit(demand);
    return demand;
  }

  // Says in the scenario's words what the builder says in blocks.
  Demand finish(DemandBuilder&& builder) const {
    try {
      return std::move(builder).build();
    } catch (const Error& error) {
      if (error.code() != ErrorCode::BadValue) {
        throw;
      }
      const std::vector<std::uint32_t> missing = blocks_without_holder();
      if (missing.empty()) {
        throw Error(ErrorCode::BadValue,
                    "the receivers hold all that they want already: there is nothing to move",
                    scenario_.update.place);
      }
      throw Error(ErrorCode::BadValue,
                  fmt::format("{} of the {} blocks are with no holder that may serve, among them "
                              "block {}, which '{}' wants; add a holder of them",
                              missing.size(), map_.blocks(), missing.front(),
                              topology_.node(first_to_want(missing.front())).name),
                  scenario_.holders_place);
    }
  }

  NodeId first_to_want(std::uint32_t block) const {
    const auto wants = [block](const Seat& seat) {
      return seat.wanted != nullptr &&
             std::any_of(seat.wanted->spans.begin(), seat.wanted->spans.end(),
                         [block](const BlockSpan& span) {
                           return block >= span.first.value() &&
                                  block - span.first.value() < span.count;
                         });
    };
    const auto at = std::find_if(seats_.begin(), seats_.end(), wants);
    return NodeId(static_cast<std::size_t>(at - seats_.begin()));
  }

  // What is wanted and held by nobody who may serve, ascending.
  std::vector<std::uint32_t> blocks_without_holder() const {
    std::vector<char> held(map_.blocks(), 0);
    std::vector<char> wanted(map_.blocks(), 0);
    std::unordered_set<const ShardBlocks*> done;
    const auto mark = [](const ShardBlocks& shard, std::vector<char>& marks) {
      for (const BlockSpan& span : shard.spans) {
        std::fill_n(marks.begin() + span.first.value(), span.count, char{1});
      }
    };
    std::unordered_set<const ShardBlocks*> wanted_done;
    for (const Seat& seat : seats_) {
      if (seat.wanted != nullptr && wanted_done.insert(seat.wanted).second) {
        mark(*seat.wanted, wanted);
      }
      for (const ShardBlocks* shard : seat.held) {
        if (seat.may_serve && done.insert(shard).second) {
          mark(*shard, held);
        }
      }
    }
    std::vector<std::uint32_t> missing;
    for (std::size_t b = 0; b < held.size(); ++b) {
      if (wanted[b] != 0 && held[b] == 0) missing.push_back(static_cast<std::uint32_t>(b));
    }
    return missing;
  }

  struct PartKey {
    const ShardBlocks* shard;
    bool from_end;
    std::uint32_t share;
    bool operator==(const PartKey&) const = default;
  };
  struct PartKeyHash {
    std::size_t operator()(const PartKey& key) const noexcept {
      return std::hash<const void*>()(key.shard) * 31 + key.share * 2 + (key.from_end ? 1 : 0);
    }
  };

  const Scenario& scenario_;
  const Topology& topology_;
  const Manifest& manifest_;
  Bytes block_size_;
  std::vector<char> uses_;                    // by group of the scenario
  std::vector<std::uint32_t> layout_index_;   // scenario's layout to the map's
  std::vector<std::uint32_t> first_replica_;  // by group of the scenario
  WeightMap map_;
  ShardTable table_;
  std::unordered_map<PartKey, std::unique_ptr<ShardBlocks>, PartKeyHash> parts_;
  std::vector<std::vector<std::vector<NodeId>>> workers_;  // by group and replica
  std::vector<Seat> seats_;                                // by node
  UpdateTask task_;
};

}  // namespace

Bytes block_size_of(const ScenarioOptions& options, Bytes model) {
  if (options.block_size) {
    return *options.block_size;
  }
  const std::uint64_t pieces = std::uint64_t{8} * options.blocks_per_eighth;
  const std::uint64_t exact = model.count() / pieces + (model.count() % pieces != 0 ? 1 : 0);
  // Below the least block size more blocks would only be smaller than a message about them.
  constexpr std::uint64_t kLeastBlock = 4096;
  // A multiple of 16 bytes keeps elements whole and both ends of a transfer aligned.
  return Bytes(std::max(kLeastBlock, (exact + 15) / 16 * 16));
}

UpdateTask make_update(const Scenario& scenario, const Topology& topology,
                       const Manifest& manifest) {
  try {
    return UpdateMaker(scenario, topology, manifest).make();
  } catch (const Error& error) {
    if (to_string(error.place()).empty()) {  // the block size: nothing else of a map is refused
      throw Error(error.code(), error.message(), scenario.options.block_place);
    }
    throw;
  }
}

Demand make_demand(const Scenario& scenario, const Topology& topology, const Manifest& manifest) {
  return make_update(scenario, topology, manifest).demand;
}

}  // namespace holdfast
