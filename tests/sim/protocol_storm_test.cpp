// Random faults against the whole protocol in simulation: whoever lives when they are over gets the
// version that is there, and no invariant is ever broken.
#include <gtest/gtest.h>

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "tests/sim/service_world.hpp"

namespace holdfast::sim::testing {
namespace {

constexpr Version kVersion{1, 1};
constexpr GroupId kTrainer(0U);

class Storm {
 public:
  explicit Storm(std::uint64_t seed)
      : random_(seed), world_(shape(), 32, Bytes(512 << 20), {}, 1), options_(options()) {
    service_.emplace(world_.router, world_.setup, options_);
    seen_.emplace(*service_);
  }

  void run() {
    service_->call_at(seconds(240), [&] { service_->stop(); });
    seen_->on_end = [this](GroupId group, GroupCall call, const CallResult& result) {
      ended(group, call, result);
    };
    service_->run(*seen_, [this] {
      for (std::uint32_t g = 0; g < world_.groups(); ++g) {
        if (g == 0 || pick(0, 3) != 0) service_->start(GroupId(g));
      }
      publish_ = service_->call(kTrainer, PublishCall{kVersion}, seconds(60));
    });
    for (const std::string& what : service_->broken()) ADD_FAILURE() << what;
    for (const std::string& what : seen_->problems) ADD_FAILURE() << "plan: " << what;
    for (std::uint32_t g = 1; g < world_.groups(); ++g) {
      EXPECT_EQ(seen_->runs[GroupId(g)].version, kVersion)
          << "group " << g << " at " << to_string(service_->now())
          << ", last: " << last_[GroupId(g)];
    }
  }

 private:
  static testing_support::ClusterShape shape() {
    testing_support::ClusterShape shape;
    shape.racks = 3;
    shape.hosts = 3;
    shape.gpus = 2;
    shape.nics = 2;
    return shape;
  }
  std::uint64_t pick(std::uint64_t least, std::uint64_t most) {
    return std::uniform_int_distribution<std::uint64_t>(least, most)(random_);
  }
  ProtocolOptions options() {
    ProtocolOptions options =
        world_.options(milliseconds(static_cast<std::int64_t>(pick(1, 10)) * 50));
    options.check_invariants = true;
    options.coordinator.rebuild_time = milliseconds(1'500);
    return options;
  }

  void ended(GroupId group, GroupCall call, const CallResult& result) {
    last_[group] = to_string(result);
    if (call == publish_) {
      EXPECT_EQ(result.status, CallStatus::Ok) << to_string(result);
      for (std::uint32_t g = 1; g < world_.groups(); ++g) consider(GroupId(g));
      trouble();
      return;
    }
    fetching_.erase(group);
    if (result.status != CallStatus::Ok && result.status != CallStatus::NothingNewer) {
      service_->call_at(service_->now() + milliseconds(300), [this, group] { consider(group); });
    }
  }

  void consider(GroupId group) {
    if (fetching_.count(group) != 0 || !service_->running(group)) return;
    if (seen_->runs[group].version == kVersion) return;
    fetching_.insert(group);
    service_->call(group, FetchCall{}, service_->now() + seconds(20));
  }

  // Things that happen within the next three seconds, each undone after a while.
  void trouble() {
    for (std::uint64_t i = pick(1, 8); i > 0; --i) {
      const Time at = service_->now() + microseconds(static_cast<std::int64_t>(pick(0, 600'000)));
      const Time until = at + microseconds(static_cast<std::int64_t>(pick(1'000, 3'000'000)));
      switch (pick(0, 4)) {
        case 0:
        case 1: {
          const GroupId group(static_cast<std::uint32_t>(pick(1, world_.groups() - 1)));
          service_->call_at(at, [this, group] { service_->kill(group); });
          come_back(group, until);
          break;
        }
        case 2: {
          const WorkerId worker(static_cast<std::uint32_t>(
              pick(world_.ranks(), world_.groups() * world_.ranks() - 1)));
          service_->call_at(at, [this, worker] { service_->kill_worker(worker); });
          come_back(GroupId(worker.value() / world_.ranks()), until);
          break;
        }
        case 3: {
          FaultChange change;
          change.links = {
              LinkId(static_cast<std::uint32_t>(pick(0, world_.topology.links().size() - 1)))};
          change.share = pick(0, 1) == 0 ? 0 : 100'000;
          service_->call_at(at, [this, change] { service_->apply(change); });
          change.step = FaultStep::End;
          service_->call_at(until, [this, change] { service_->apply(change); });
          break;
        }
        default:
          service_->call_at(at, [this] { service_->stop_coordinator(); });
          service_->call_at(until, [this] { service_->start_coordinator(); });
      }
    }
    // Everybody is there in the end, and asks.
    for (std::uint32_t g = 1; g < world_.groups(); ++g) {
      come_back(GroupId(g), service_->now() + seconds(4));
    }
    service_->call_at(service_->now() + seconds(4), [this] { service_->start_coordinator(); });
    calm();
  }

  void come_back(GroupId group, Time at) {
    service_->call_at(at, [this, group] {
      service_->start(group);
      consider(group);
    });
  }

  // Over when everybody runs it.
  void calm() {
    service_->call_at(service_->now() + seconds(5), [this] {
      for (std::uint32_t g = 1; g < world_.groups(); ++g) {
        if (seen_->runs[GroupId(g)].version == kVersion) continue;
        consider(GroupId(g));
        return calm();
      }
      service_->stop();
    });
  }

  std::mt19937_64 random_;
  ServiceWorld world_;
  ProtocolOptions options_;
  std::optional<ProtocolService> service_;
  std::optional<Recorder> seen_;
  GroupCall publish_ = 0;
  std::set<GroupId> fetching_;
  std::map<GroupId, std::string> last_;
};

TEST(ProtocolStorm, WhoeverLivesGetsTheVersion) {
  for (std::uint64_t seed = 1; seed <= 150; ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    Storm(seed).run();
    if (HasFailure()) return;
  }
}

}  // namespace
}  // namespace holdfast::sim::testing
