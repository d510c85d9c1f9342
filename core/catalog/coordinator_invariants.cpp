// The invariants of the protocol, counted again from the tables and by other ways than those that
// keep them.
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "core/catalog/coordinator_state.hpp"
#include "core/engine/digest.hpp"

namespace holdfast {

// Collects what is wrong.
class InvariantCheck {
 public:
  using State = Coordinator::State;
  InvariantCheck(State& state, Time now) : state_(state), now_(now) {}

  std::vector<std::string> run() {
    if (state_.rebuilding) return {};
    check_workers();
    check_versions();
    check_groups();
    check_grants();
    check_retention();
    check_transfers();
    return std::move(broken_);
  }

 private:
  template <class... Args>
  void broken(int number, fmt::format_string<Args...> text, Args&&... args) {
    broken_.push_back(
        fmt::format("invariant {}: {}", number, fmt::format(text, std::forward<Args>(args)...)));
  }

  void check_workers() {
    for (std::uint32_t i = 0; i < state_.workers.size(); ++i) {
      const State::Worker& w = state_.workers[i];
      if (w.incarnation != 0 && w.incarnation <= w.fenced) {
        broken(1, "worker {} lives as incarnation {}, which is fenced", i, w.incarnation);
      }
      if ((w.incarnation != 0) != (w.session != nullptr)) {
        broken(1, "worker {} lives without a session, or the reverse", i);
      }
      if (w.session && (w.session->key().epoch != state_.epoch ||
                        w.session->key().incarnation != w.incarnation)) {
        broken(1, "the session of worker {} is of another epoch or incarnation", i);
      }
      if (w.incarnation == 0 && (!w.holders.empty() || !w.readers.empty() || !w.plans.empty())) {
        broken(1, "worker {} is dead and has holders, readers or plans", i);
      }
      std::set<State::VersionKey> held;
      for (const State::Holder& holder : w.holders) {
        if (!held.insert(holder.version).second) {
          broken(11, "worker {} has two records of version {}", i,
                 to_string(holder.version.second));
        }
      }
      if (w.known && !w.card.host_memory && w.holders.size() > w.card.slots) {
        broken(11, "worker {} holds {} versions in {} buffers", i, w.holders.size(), w.card.slots);
      }
      if (w.plans.size() > 1) broken(12, "worker {} reads in {} plans", i, w.plans.size());
    }
  }

  void check_versions() {
    for (auto& [key, version] : state_.versions) {
      const ModelSpace& model = state_.space(key.first);
      std::vector<std::uint32_t> serving(model.blocks());
      std::vector<std::uint32_t> copies(model.blocks());
      for (const WorkerId worker : version.holders) {
        const State::Holder* holder = state_.holder_of(worker, key);
        if (holder == nullptr) {
          broken(1, "version {} lists worker {}, which has no record", to_string(key.second),
                 worker.value());
          continue;
        }
        const bool served =
            !holder->hidden && !holder->pending &&
            (state_.workers[worker.index()].card.reliable || state_.config.serve_from_spot);
        for (std::uint32_t n = 0; n < holder->verified.size(); ++n) {
          if (!holder->verified.has(n)) continue;
          const BlockId block = model.block(holder->shard, n);
          ++copies[block.index()];
          if (served) ++serving[block.index()];
        }
      }
      if (copies != version.copies || serving != version.serving) {
        broken(3, "the copies of version {} are counted wrongly", to_string(key.second));
      }
      const auto zeros = static_cast<std::uint32_t>(std::count(serving.begin(), serving.end(), 0U));
      if (zeros != version.unserved) {
        broken(3, "version {} has {} blocks that nobody serves, not {}", to_string(key.second),
               zeros, version.unserved);
      }
      for (const WorkerId worker : version.releasing) {
        if (!state_.alive(worker) || version.holders.contains(worker)) {
          broken(5, "worker {} is dead or holds version {}, which it is to be rid of",
                 worker.value(), to_string(key.second));
        }
      }
      if (version.digests_missing == 0 && version.root != digest_root(*version.digests)) {
        broken(2, "the root of version {} is not that of its digests", to_string(key.second));
      }
      std::uint32_t leases = 0;
      for (const State::Group& group : state_.groups) {
        if (group.known && group.space == key.first && group.phase != State::Phase::Idle &&
            group.phase != State::Phase::Collecting && group.last.result.version == key.second) {
          ++leases;
        }
      }
      if (leases != version.leases) {
        broken(13, "version {} has {} leases and {} open fetches", to_string(key.second),
               version.leases, leases);
      }
    }
  }

  void check_groups() {
    for (std::uint32_t g = 0; g < state_.groups.size(); ++g) {
      const State::Group& group = state_.groups[g];
      if (!group.known) continue;
      if (group.last.n != 0 && group.last.generation != group.generation) {
        broken(6, "group {} remembers a decision of generation {}, not {}", g,
               group.last.generation, group.generation);
      }
      if (group.runs) {
        for (const WorkerId member : group.members) {
          const State::Holder* holder =
              member.valid() ? state_.holder_of(member, {group.space, *group.runs}) : nullptr;
          if (holder == nullptr || !holder->verified.all()) {
            broken(8, "group {} runs version {} without all of it", g, to_string(*group.runs));
          }
        }
      }
      if (group.phase != State::Phase::Idle && group.deadline < now_) {
        broken(15, "the fetch of group {} is open beyond its deadline", g);
      }
    }
  }

  void check_grants() {
    std::size_t by_source = 0;
    std::size_t by_reader = 0;
    for (std::uint32_t i = 0; i < state_.workers.size(); ++i) {
      const State::Worker& w = state_.workers[i];
      by_source += w.readers.size();
      by_reader += w.sources.size();
      for (const auto& [key, grant] : w.readers) {
        if (key.reader == WorkerId(i)) broken(7, "worker {} reads from itself", i);
        if (!state_.workers[key.reader.index()].sources.contains({key.plan, WorkerId(i)})) {
          broken(13, "a grant at worker {} is not listed by its reader {}", i, key.reader.value());
        }
        if (grant.state == State::GrantState::Ending) continue;
        const State::Worker& reader = state_.workers[key.reader.index()];
        if (reader.incarnation != grant.incarnation) {
          broken(7, "worker {} lets in reader {} as incarnation {}, which is over", i,
                 key.reader.value(), grant.incarnation);
        }
        if (!reader.plans.contains(key.plan)) {
          broken(13, "worker {} lets in reader {}, which reads nothing", i, key.reader.value());
        }
      }
    }
    if (by_source != by_reader || by_source != state_.grants) {
      broken(13, "grants: {} by source, {} by reader, {} counted", by_source, by_reader,
             state_.grants);
    }
  }

  void check_retention() {
    for (auto& [key, version] : state_.versions) {
      if (version.retention.copies == 0 || version.lost || version.judging) continue;
      if (version.safe < version.retention.copies && version.offloads.empty() &&
          version.reason.empty()) {
        broken(10, "version {} is safe({}) of {}, and nothing is done about it",
               to_string(key.second), version.safe, version.retention.copies);
      }
    }
  }

  void check_transfers() {
    for (const auto& [id, transfer] : state_.transfers) {
      if (!transfer.ref && transfer.asked + state_.config.plan_deadline < now_) {
        broken(15, "plan {} is waited for beyond its deadline", id);
      }
      for (const auto& [worker, reader] : transfer.readers) {
        if (!state_.workers[worker.index()].plans.contains(id)) {
          broken(12, "worker {} is in plan {} and does not know", worker.value(), id);
        }
        if (reader.phase == State::ReaderPhase::Granting && reader.awaited.empty() &&
            transfer.repair == 0 && !state_.needs_repair(transfer)) {
          broken(14, "worker {} waits in plan {} for nothing", worker.value(), id);
        }
      }
    }
  }

  State& state_;
  Time now_;
  std::vector<std::string> broken_;
};

std::vector<std::string> broken_invariants(const Coordinator& coordinator, Time now) {
  return InvariantCheck(*coordinator.state_, now).run();
}

}  // namespace holdfast
