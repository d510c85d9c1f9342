// Clusters of hosts that each hold one replica, and an observer that writes down what a service
// tells, for tests and figures.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/topology/router.hpp"
#include "sim/protocol_service.hpp"
#include "tests/plan/cluster.hpp"

namespace holdfast::sim::testing {

// One space with one layout: rank i of a host's GPUs holds the i-th part of the blocks. The group
// of the first host trains. Memories: of each host, none where `memory` is zero.
class ServiceWorld {
 public:
  ServiceWorld(const testing_support::ClusterShape& shape, std::uint32_t blocks_per_shard,
               Bytes block, Bytes memory = {}, std::uint32_t slots = 1);

  Topology topology;
  Router router;
  ServiceSetup setup;

  [[nodiscard]] std::uint32_t groups() const {
    return static_cast<std::uint32_t>(setup.groups.size());
  }
  [[nodiscard]] std::uint32_t ranks() const { return ranks_; }
  [[nodiscard]] WorkerId worker(std::uint32_t group, std::uint32_t rank) const {
    return WorkerId(group * ranks_ + rank);
  }
  [[nodiscard]] Bytes model() const;
  // Options for a test: our own solver, the coordinator on the last host of the first rack (so that
  // it outlives the trainer), detection of lost connections and workers in `detection`.
  [[nodiscard]] ProtocolOptions options(Time detection = milliseconds(100)) const;
  // A domain's fault: everything inside stops, every link that ends there is down.
  [[nodiscard]] FaultChange domain_dies(const std::string& name) const;

 private:
  std::uint32_t ranks_;
};

class Recorder final : public ServiceObserver {
 public:
  explicit Recorder(WeightService& service) : service_(service) {}

  void call_ended(GroupId group, GroupCall call, const CallResult& result) override;
  void runs_changed(GroupId group, const std::optional<Version>& version) override;
  void block_delivered(WorkerId receiver, BlockId block, WorkerId source) override;
  void planned(const Demand& demand, const Plan* plan, const std::string& problem) override;
  void fault_detected(WorkerId lost, WorkerId by) override;

  struct End {
    GroupId group;
    CallResult result;
    Time at;
  };
  struct Runs {
    std::optional<Version> version;
    Time at;
  };
  std::map<GroupCall, End> ends;
  std::map<GroupId, Runs> runs;
  std::map<WorkerId, std::uint64_t> deliveries;                 // by receiver
  std::map<std::pair<WorkerId, WorkerId>, std::uint64_t> from;  // receiver and source
  std::vector<std::pair<WorkerId, WorkerId>> losses;            // lost, by
  std::uint64_t delivered = 0;
  std::uint64_t plans = 0;
  std::vector<std::string> problems;
  std::function<void(GroupId, GroupCall, const CallResult&)> on_end;
  std::function<void()> on_delivery;
  std::function<void(WorkerId receiver, BlockId block)> on_block;
  std::vector<Plan> made;  // the plans

  [[nodiscard]] const End* end(GroupCall call) const {
    const auto at = ends.find(call);
    return at == ends.end() ? nullptr : &at->second;
  }

 private:
  WeightService& service_;
};

}  // namespace holdfast::sim::testing
