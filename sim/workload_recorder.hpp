// Puts down what a workload's driver does and hears: waits, fetches, holdings, events, failures.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/topology/topology.hpp"
#include "sim/workload_run.hpp"

namespace holdfast::sim {

class WorkloadRecorder {
 public:
  // All of it must outlive the recorder.
  WorkloadRecorder(const Topology& topology, const ServiceSetup& setup, const WorkloadRun& run);

  // --- Presence and waits. A wait that is open already goes on; so does an end without a
  // beginning.
  void present(GroupId group, Time now);
  void gone(GroupId group, Time now);  // ends its waits, its fetch and what it holds
  void wait(GroupId group, StallPart part, Time now);
  void go_on(GroupId group, StallPart part, Time now);

  // --- Versions
  void holds(GroupId group, const Version& version, Time now);
  void lets_go(GroupId group, const Version& version, Time now);
  // `latest`: what it will get, as far as is known.
  void fetch_begins(GroupId group, const Version& latest, Destination destination, Time now);
  void fetch_ends(GroupId group, const CallResult& result, Time now);
  [[nodiscard]] bool fetching(GroupId group) const {
    return groups_[group.index()].fetch.has_value();
  }
  // Bytes of its shards.
  [[nodiscard]] Bytes bytes(GroupId group) const { return groups_[group.index()].bytes; }
  [[nodiscard]] const std::string& name(GroupId group) const;

  // --- What is heard
  void call_ended(GroupId group, const std::string& call, const CallResult& result, Time now);
  void runs(GroupId group, const std::optional<Version>& version, Time now);
  // Returns the receiver's group; invalid: host memory that keeps copies.
  GroupId delivered(WorkerId receiver, BlockId block, WorkerId source, Time now);
  void planned(const Plan* plan, const std::string& problem, Time now);
  void detected(WorkerId lost, Time now);

  // --- Failures
  void fault(const FaultChange& change, const std::vector<GroupId>& broken, Time now);
  void taken(GroupId group, const std::string& consequence, Time now);
  void failed(const std::string& kind, const std::string& who, const std::string& consequence,
              Time now);
  // A fetch that ended badly, but not because of the group's own end.
  void fetch_failed(GroupId group, const CallResult& result, Time now);

  // Once, at the end.
  [[nodiscard]] WorkloadOutcome take(Time now);

 private:
  struct Group {
    WorkerId first;  // its members follow
    Bytes bytes;
    std::optional<Time> since;                 // it is there
    std::array<std::optional<Time>, 3> waits;  // by StallPart, since when
    std::optional<FetchRecord> fetch;
    std::vector<std::size_t> held;  // open records
  };
  struct Worker {
    GroupId group;
    Bytes shard;
    Bytes arrived;  // of the fetch
    std::uint32_t tenths = 0;
  };
  struct Fault {
    std::size_t failure = 0;   // index
    std::uint32_t number = 0;  // FaultChange::fault
    std::vector<NodeId> workers;
    bool links = false;
    std::vector<GroupId> broken;
    std::uint32_t fetching = 0;  // of them
    Time begin;
    Time end = Time::never();
    bool detected = false;
  };

  void event(WorkloadEventKind kind, WorkerId worker, Time now, std::string text = {});
  void member_events(GroupId group, WorkloadEventKind kind, Time now, const std::string& text);
  [[nodiscard]] std::string target_of(const FaultChange& change) const;
  [[nodiscard]] std::string consequence_of(const Fault& fault) const;
  [[nodiscard]] std::string names_of(const std::vector<GroupId>& groups) const;
  void close_wait(GroupId group, StallPart part, Time now);
  void close_fetch(GroupId group, Time now, bool completed);

  const Topology& topology_;
  const ServiceSetup& setup_;
  const WorkloadRun& run_;
  std::vector<Group> groups_;
  std::vector<Worker> workers_;
  std::vector<std::uint32_t> worker_at_;  // by node
  std::vector<Fault> faults_;
  std::map<GroupId, std::size_t> taken_;  // failure of the last taking
  WorkloadOutcome out_;
};

}  // namespace holdfast::sim
