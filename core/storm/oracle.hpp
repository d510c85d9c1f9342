// What must always hold, judged from outside: from the true bytes of every version, from what users
// asked and were told, from what each agent holds, and from whom the network lets through. It
// shares no code with the machines; it does ask them for their own invariants too.
//
//   bytes       a fetch that returns Ok left exactly a published version's bytes in the buffer; the
//               same bytes for everybody; whatever is served or marked verified is such a block
//   calls       each ends once, by its deadline; Superseded never reaches a user
//   decisions   (group, generation, n) -> one answer for all members and all coordinators, no gap
//   versions    no two members of a group run different versions
//   roots       two publishers with different bytes never both hold Ok
//   reads       no verified block is read again, no range is read into twice at a time, nothing is
//               served that is not verified and offered
//   copies      who claims Safe(k) survives the worst k - 1 domains and all spot workers; nothing
//               that is lost was safe; VersionLost only where no reachable copy is left
//   memory      host memory stays within its budget
//   liveness    after all faults, who fetches gets the latest version that is there
//   rest        and then nobody holds grants, transfers or open calls
//
// The first violation is kept. O(workers) a step, more where copies are counted.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "core/storm/watch.hpp"

namespace holdfast::storm {

struct Violation {
  std::string rule;  // one word: two violations of one rule are alike
  std::string text;
  Time at;
};

class Oracle final : public Watcher {
 public:
  explicit Oracle(const World& world);

  [[nodiscard]] const std::optional<Violation>& violation() const { return violation_; }
  [[nodiscard]] std::uint32_t calls_ended() const { return calls_ended_; }
  [[nodiscard]] std::uint32_t calls_ok() const { return calls_ok_; }

  void started(const Stage& stage, WorkerId worker) override;
  void died(const Stage& stage, WorkerId worker) override;
  void coordinator_started(const Stage& stage) override;
  void coordinator_died(const Stage& stage) override;
  void broke(const Stage& stage, const Fault& fault, const std::string& what) override;
  void call_made(const Stage& stage, const CallSight& call) override;
  void call_ended(const Stage& stage, const CallSight& call, const CallResult& result) override;
  void wrote(const Stage& stage, WorkerId worker, SlotNumber slot, const Content* content) override;
  void before_agent(const Stage& stage, const AgentSight& sight) override;
  void after_agent(const Stage& stage, const AgentSight& sight) override;
  void after_coordinator(const Stage& stage, const CoordinatorSight& sight) override;
  void sent(const Stage& stage, WorkerId worker, const ToCoordinator& frame,
            const Fate& fate) override;
  void sent(const Stage& stage, WorkerId worker, const ToWorker& frame, const Fate& fate) override;
  void read(const Stage& stage, const ReadSight& sight) override;
  void calmed(const Stage& stage) override;
  void ended(const Stage& stage) override;

 private:
  using VersionKey = std::pair<SpaceId, Version>;
  struct OpenCall {
    Call call;
    Time made;
    Time deadline;
    std::optional<Version> due;  // the last fetches: what is there, at least
    bool judged = false;         // `due` counts
  };
  struct OkPublish {
    WorkerId worker;
    Incarnation incarnation = 0;
    std::uint64_t coordinator_life = 0;
    std::uint32_t variant = 0;
  };
  // A worker's buffer as it was last seen.
  struct SlotSeen {
    Version version;
    BlockSet verified;
    Time since;
    std::uint32_t variant = 0;  // Published: what its owner wrote
  };
  struct OpenRead {
    SlotNumber slot = 0;
    std::uint64_t from = 0;
    std::uint64_t to = 0;
  };
  // A copy of a dead worker: the coordinator may not know yet.
  struct Ghost {
    WorkerId worker;
    Version version;
    ShardId shard;
    BlockSet verified;
    Time heard;  // the last word of it at the coordinator, or its death if that was later
  };
  struct Claim {
    std::uint32_t safe = 0;
    Level level = Level::Host;
    Time at;
  };
  // One place of a version's copies.
  struct Copy {
    WorkerId worker;
    std::vector<bool> blocks;              // by BlockId
    std::optional<std::uint32_t> variant;  // of one that its owner offers: what that wrote
  };

  void fail(const Stage& stage, std::string rule, std::string text);
  void check_overdue(const Stage& stage);
  void check_decision(const Stage& stage, WorkerId worker);
  void note_group_lives(const Stage& stage, WorkerId dying, bool coordinator_dies);

  // oracle_bytes.cpp
  void check_fetched(const Stage& stage, WorkerId worker, const OpenCall& open,
                     const CallResult& result);
  void check_growth(const Stage& stage, WorkerId worker);
  void check_served(const Stage& stage, const ReadSight& sight);
  void check_posted(const Stage& stage, const ReadSight& sight);
  void check_published(const Stage& stage, WorkerId worker, const CallResult& result);
  [[nodiscard]] std::span<const std::byte> true_bytes(const Content& content, BlockId block);
  // The variant of the version that these bytes are of; nothing: of none.
  [[nodiscard]] std::optional<std::uint32_t> variant_of(VersionKey key, BlockId block,
                                                        std::uint64_t offset,
                                                        std::span<const std::byte> bytes);
  [[nodiscard]] ShardId shard_of(const Stage& stage, WorkerId worker, SlotNumber slot) const;
  [[nodiscard]] const ModelSpace& space_of(WorkerId worker) const;

  // oracle_copies.cpp
  void check_claims(const Stage& stage);
  void check_lost(const Stage& stage, WorkerId worker, const CallResult& result);
  void check_durable(const Stage& stage);
  // The coordinator need not know of its death yet.
  [[nodiscard]] bool counts(const Stage& stage, const Ghost& ghost) const;
  [[nodiscard]] std::vector<Copy> copies(const Stage& stage, VersionKey key, bool ghosts) const;
  [[nodiscard]] bool covered(VersionKey key, const std::vector<Copy>& copies,
                             const std::vector<DomainId>& without, Level level, bool spot) const;
  [[nodiscard]] std::optional<Version> latest_there(const Stage& stage, SpaceId space) const;
  [[nodiscard]] bool in_touch(const Stage& stage, WorkerId worker) const;
  void check_last_fetch(const Stage& stage, WorkerId worker, const OpenCall& open,
                        const CallResult& result);
  void check_rest(const Stage& stage);

  const World& world_;
  std::optional<Violation> violation_;
  std::uint32_t calls_ended_ = 0;
  std::uint32_t calls_ok_ = 0;
  bool calm_ = false;
  std::uint64_t coordinator_life_ = 0;

  std::map<std::pair<WorkerId, CallId>, OpenCall> calls_;
  std::set<std::tuple<Time, WorkerId, CallId>> deadlines_;

  std::map<VersionKey, std::set<std::uint32_t>> variants_;  // that somebody wrote
  std::map<VersionKey, std::map<Hash128, std::uint32_t>> roots_;
  std::map<VersionKey, std::vector<OkPublish>> published_;
  std::set<VersionKey> unsure_;  // somebody asked to withdraw it
  std::set<VersionKey> retained_;
  std::map<VersionKey, Time> given_up_;  // an owner asked for it back, a holder left
  std::map<std::pair<Content, BlockId>, std::vector<std::byte>> bytes_;

  std::vector<std::vector<std::optional<SlotSeen>>> seen_;  // by worker and slot
  std::vector<std::vector<std::optional<Content>>> written_;
  std::vector<std::map<OpId, OpenRead>> reads_;  // by reader
  std::vector<Time> in_touch_since_;

  // A life of a group ends when nobody is left who knows its generation: then it counts anew.
  struct GroupLife {
    std::uint32_t number = 0;
    Generation generation = 0;
  };
  std::vector<GroupLife> group_lives_;
  std::map<std::tuple<GroupId, std::uint32_t, Generation, std::uint64_t>, Decision> decisions_;
  std::vector<Ghost> ghosts_;
  std::map<VersionKey, Claim> claims_;
  std::map<VersionKey, Time> suspects_;  // claims that look wrong, and since when
};

}  // namespace holdfast::storm
