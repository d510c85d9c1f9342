// The baseline of static groups: a broadcast as NCCL does it, in which everybody takes part.
//
// Assumed
//   - All groups that run make one communicator. Making it takes `init_time`, in which everybody
//     waits; so does each change of membership (a start, a leave, a death) before the next
//     broadcast.
//   - A broadcast begins when the last of those who lack the version has asked: the slowest
//   decides.
//     Who has it already stops for it where somebody else needs it (a newcomer): it runs nothing
//     until the broadcast is over.
//   - A trainer takes its version back when everybody who has asked for it has it.
//   - The root is the first group that holds the version, trainers first. Blocks go along a ring (a
//     chain in domain order) or two complementary trees, pipelined, one channel for each NIC, over
//     the same network and engine as everything else. Everybody ends at the same time.
//   - A death during it is noticed after the network's detection time, by all at once. Then the
//     communicator is made anew and the broadcast begins from the start: what had arrived is worth
//     nothing. So does whoever gives up.
//   - Fetches that come during a broadcast wait for the next one. There is no coordinator to fail.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <vector>

#include "sim/direct_service.hpp"

namespace holdfast::sim {

enum class BroadcastShape { Ring, Tree };

struct NcclOptions {
  DirectOptions direct;
  Time init_time = seconds(5);
  BroadcastShape shape = BroadcastShape::Ring;
};

class NcclService final : public DirectService {
 public:
  NcclService(const Router& router, ServiceSetup setup, const NcclOptions& options);

  // Communicators made so far.
  [[nodiscard]] std::uint32_t rebuilds() const { return rebuilds_; }

 private:
  enum class Phase { Idle, Initialising, Broadcasting, Failed };

  void fetch_begins(GroupId group) override;
  void fetch_given_up(GroupId group) override;
  void group_started(GroupId group) override;
  void worker_stopped(WorkerId worker) override;
  [[nodiscard]] bool is_read(GroupId group) const override;
  void cut_readers(GroupId group) override;
  void assigned_done(DirectTransfer& transfer, WorkerId reader) override;
  void source_lost(DirectTransfer& transfer, WorkerId reader, StripeId stripe,
                   std::uint32_t first_missing, WorkerId lost) override;

  [[nodiscard]] std::set<GroupId> present() const;
  [[nodiscard]] bool lacks(GroupId group) const;
  [[nodiscard]] std::optional<Version> wanted() const;
  void look();
  void stop_everybody();
  void broadcast();
  void finish();
  void fail(Time wait);
  void after(Time wait, void (NcclService::*what)());

  Time init_time_;
  BroadcastShape shape_;
  Phase phase_ = Phase::Idle;
  std::uint64_t round_ = 0;  // tells alarms of what is over
  std::set<GroupId> communicator_;
  std::optional<Version> version_;  // of this round
  std::vector<GroupId> stopped_;    // that had it, and run nothing meanwhile
  std::set<WorkerId> missing_;      // receivers that are not complete
  DirectTransfer* transfer_ = nullptr;
  std::uint32_t rebuilds_ = 0;
};

}  // namespace holdfast::sim
