// The greedy baseline against a second implementation of its rules that knows no ranges, no news
// and no shortcuts, on random clusters, demands, caps and orders in which requests end.
#include "core/plan/greedy.hpp"

#include <gtest/gtest.h>

#include <fmt/format.h>

#include <map>
#include <optional>
#include <random>
#include <set>
#include <tuple>

#include "core/error.hpp"
#include "tests/plan/cluster.hpp"

namespace holdfast {
namespace {

using testing_support::make_cluster;
using testing_support::make_demand;
using testing_support::random_demand;
using testing_support::random_shape;

using Cap = std::optional<std::uint32_t>;

// The rules of greedy.hpp, word for word.
class Oracle {
 public:
  Oracle(const PlanSpace& space, Cap cap) : space_(space), cap_(cap) {
    const Demand& demand = space.demand();
    for (std::size_t c = 0; c < demand.classes.size(); ++c) {
      for (const WorkerId w : demand.classes[c].receivers) {
        for (std::uint32_t k = 0; k < greedy_pieces(demand, ClassId(c)); ++k) {
          missing_[w].insert({ClassId(c), k});
        }
      }
    }
  }

  std::vector<GreedyRequest> start() {
    std::vector<GreedyRequest> out;
    const auto all = missing_;
    for (const auto& [worker, pieces] : all) {
      if (const auto request = best(worker)) {
        open(*request, out);
      } else {
        queue_.push_back(worker);
      }
    }
    serve(out);
    return out;
  }

  std::vector<GreedyRequest> finished(WorkerId reader) {
    const GreedyRequest done = open_.at(reader);
    open_.erase(reader);
    have_.insert({reader, done.block_class, done.piece});
    if (missing_.count(reader) != 0) queue_.push_back(reader);
    std::vector<GreedyRequest> out;
    serve(out);
    return out;
  }

  [[nodiscard]] const std::map<WorkerId, GreedyRequest>& open() const { return open_; }
  [[nodiscard]] const std::vector<WorkerId>& queue() const { return queue_; }
  [[nodiscard]] std::uint32_t readers(WorkerId source) const {
    std::uint32_t count = 0;
    for (const auto& [reader, request] : open_) count += request.source == source ? 1 : 0;
    return count;
  }

 private:
  void open(const GreedyRequest& request, std::vector<GreedyRequest>& out) {
    open_.emplace(request.reader, request);
    auto& pieces = missing_.at(request.reader);
    pieces.erase({request.block_class, request.piece});
    if (pieces.empty()) missing_.erase(request.reader);
    out.push_back(request);
  }

  void serve(std::vector<GreedyRequest>& out) {
    for (bool again = true; again;) {
      again = false;
      for (std::size_t i = 0; i < queue_.size() && !again; ++i) {
        const auto request = best(queue_[i]);
        if (!request) continue;
        queue_.erase(queue_.begin() + static_cast<std::ptrdiff_t>(i));
        open(*request, out);
        again = true;
      }
    }
  }

  [[nodiscard]] bool has(WorkerId w, ClassId c, std::uint32_t piece) const {
    const auto& holders = space_.demand().classes[c.index()].holders;
    return std::find(holders.begin(), holders.end(), w) != holders.end() ||
           have_.count({w, c, piece}) != 0;
  }
  [[nodiscard]] bool reads(WorkerId w, ClassId c, std::uint32_t piece) const {
    const auto at = open_.find(w);
    return at != open_.end() && at->second.block_class == c && at->second.piece == piece;
  }
  [[nodiscard]] bool joined(WorkerId a, WorkerId b) const {
    try {
      PathChooser paths(space_);
      const Path path = paths.any(a, b, Bytes());
      return space_.router().route(space_.node(a), space_.node(b), path).has_value();
    } catch (const Error&) {
      return false;
    }
  }

  [[nodiscard]] std::optional<GreedyRequest> best(WorkerId reader) const {
    std::map<ClassId, std::uint32_t> next;  // the first piece that is missing
    for (const auto& [c, piece] : missing_.at(reader)) next.emplace(c, piece);
    for (const auto& [c, piece] : next) {
      std::optional<std::tuple<std::uint32_t, std::uint32_t, WorkerId>> least;
      for (std::size_t i = 0; i < space_.demand().workers.size(); ++i) {
        const WorkerId w(i);
        if (w == reader || !space_.may_serve(w)) continue;
        if (!has(w, c, piece) && !reads(w, c, piece)) continue;
        if (cap_ && readers(w) >= *cap_) continue;
        if (!joined(w, reader)) continue;
        const std::tuple key{space_.distance(reader, w), readers(w), w};
        if (!least || key < *least) least = key;
      }
      if (least) {
        const WorkerId source = std::get<2>(*least);
        return GreedyRequest{reader, source, c, piece, has(source, c, piece)};
      }
    }
    return std::nullopt;
  }

  const PlanSpace& space_;
  Cap cap_;
  std::map<WorkerId, std::set<std::pair<ClassId, std::uint32_t>>> missing_;  // not given yet
  std::map<WorkerId, GreedyRequest> open_;
  std::set<std::tuple<WorkerId, ClassId, std::uint32_t>> have_;
  std::vector<WorkerId> queue_;
};

// Runs both to the end, requests ending in a random order that the wait for a source allows. Adds
// up how many waited for a source.
void expect_same(const PlanSpace& space, Cap cap, std::mt19937_64& random,
                 std::uint64_t* waited = nullptr) {
  GreedyPolicy policy(space, cap);
  Oracle oracle(space, cap);
  std::uint64_t pieces = policy.missing_pieces();
  const auto given = policy.start();
  ASSERT_EQ(given, oracle.start());
  while (!oracle.open().empty()) {
    std::vector<WorkerId> can_end;
    for (const auto& [reader, request] : oracle.open()) {
      const auto above = oracle.open().find(request.source);
      const bool waits = above != oracle.open().end() &&
                         above->second.block_class == request.block_class &&
                         above->second.piece == request.piece;
      if (!waits) can_end.push_back(reader);
      if (cap) {
        ASSERT_LE(oracle.readers(request.source), *cap);
      }
      ASSERT_EQ(policy.readers(request.source), oracle.readers(request.source));
    }
    ASSERT_FALSE(can_end.empty()) << "a cycle of waits";
    const std::size_t pick =
        std::uniform_int_distribution<std::size_t>(0, can_end.size() - 1)(random);
    const auto next = policy.finished(can_end[pick]);
    ASSERT_EQ(next, oracle.finished(can_end[pick]));
    ASSERT_EQ(policy.waiting(), oracle.queue());
    if (waited != nullptr) *waited += oracle.queue().size();
    ASSERT_EQ(policy.missing_pieces(), --pieces);
  }
  ASSERT_EQ(pieces, 0U) << "somebody was left without a request";
}

TEST(GreedyPolicy, DoesWhatItsRulesSayAndEverybodyFinishes) {
  std::uint64_t waited = 0;
  for (std::uint64_t seed = 1; seed <= 30; ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    std::mt19937_64 random(seed);
    const Topology topology = make_cluster(random_shape(random));
    const Demand demand = random_demand(topology, random);
    const Router router(topology);
    const PlanSpace space(router, demand);
    for (const Cap cap : {Cap(), Cap(1), Cap(2), Cap(4)}) {
      SCOPED_TRACE(cap ? fmt::format("cap {}", *cap) : "no cap");
      expect_same(space, cap, random, &waited);
      if (testing::Test::HasFatalFailure()) return;
    }
  }
  EXPECT_GT(waited, 100U) << "caps that nobody feels test nothing";
}

// Rails that no spine joins: GPUs of different rails cannot read each other, but in the first host.
TEST(GreedyPolicy, PassesOverSourcesThatNoPathReaches) {
  TopologyBuilder builder("rails");
  std::vector<NodeId> gpus;
  NodeId rails[2];
  for (int r = 0; r < 2; ++r) {
    rails[r] = builder.add_node({fmt::format("rail{}", r), NodeKind::Switch, {}, {}, {}, true});
  }
  const Rate rate(1'000'000'000);
  for (int h = 0; h < 3; ++h) {
    const DomainId host = builder.add_domain(fmt::format("h{}", h), Level::Host);
    for (int r = 0; r < 2; ++r) {
      gpus.push_back(builder.add_node(
          {fmt::format("h{}.gpu{}", h, r), NodeKind::Gpu, host, Bytes(1 << 30), {}, true}));
      const NodeId nic =
          builder.add_node({fmt::format("h{}.nic{}", h, r), NodeKind::Nic, host, {}, {}, true});
      builder.add_link({fmt::format("h{}.pcie{}", h, r),
                        gpus.back(),
                        nic,
                        LinkKind::Pcie,
                        rate,
                        Time(0),
                        {},
                        true});
      builder.add_link({fmt::format("h{}.wire{}", h, r),
                        nic,
                        rails[r],
                        LinkKind::Fabric,
                        rate,
                        Time(0),
                        {},
                        true});
    }
  }
  const NodeId bridge = builder.add_node(
      {"bridge", NodeKind::PcieSwitch, builder.so_far().find_domain("h0"), {}, {}, true});
  for (std::size_t r = 0; r < 2; ++r) {
    builder.add_link(
        {fmt::format("bridge{}", r), gpus[r], bridge, LinkKind::Pcie, rate, Time(0), {}, true});
  }
  const Topology topology = builder.build();
  DemandBuilder demands("model", {1, 1}, Bytes(100), std::vector<Bytes>(200, Bytes(100)));
  for (std::size_t i = 0; i < gpus.size(); ++i) {
    const WorkerId w = demands.add_worker({gpus[i], 0, Bytes(1 << 30), true});
    if (i < 2) {
      demands.holds(w, {BlockId(0U), 200});
    } else {
      demands.wants(w, {BlockId(0U), 200});
    }
  }
  const Demand demand = std::move(demands).build();
  const Router router(topology);
  const PlanSpace space(router, demand);
  std::mt19937_64 random(1);
  expect_same(space, {}, random);
  expect_same(space, Cap(1), random);
  GreedyPolicy policy(space, {});
  const auto first = policy.start();
  ASSERT_EQ(first.size(), 4U);
  EXPECT_EQ(first[0].source, WorkerId(0U));
  EXPECT_EQ(first[1].source, WorkerId(1U)) << "same host, but nothing joins the two";
}

// One rack, everyone wants everything of one holder: a line in the order of ids, since whoever has
// no reader yet is the least loaded.
TEST(GreedyPolicy, BecomesAChainOnAFlatFabric) {
  const Topology topology = make_cluster({.hosts = 5, .gpus = 1, .nics = 1});
  const Demand demand = make_demand(topology, {.sharded = false, .blocks = 8});
  const Router router(topology);
  const PlanSpace space(router, demand);
  GreedyPolicy policy(space, {});
  const auto first = policy.start();
  ASSERT_EQ(first.size(), 4U);
  for (std::uint32_t i = 0; i < 4; ++i) {
    const GreedyRequest expected{WorkerId(i + 1), WorkerId(i), ClassId(0U), 0, i == 0};
    EXPECT_EQ(first[i], expected);
  }
}

TEST(GreedyPolicy, CutsAClassIntoPiecesThatCoverIt) {
  for (const std::uint32_t blocks : {1U, 63U, 64U, 65U, 128U, 1000U}) {
    DemandBuilder builder("model", {1, 1}, Bytes(1), std::vector<Bytes>(blocks, Bytes(1)));
    builder.holds(builder.add_worker({NodeId(0U), 0, {}, true}), {BlockId(0U), blocks});
    builder.wants(builder.add_worker({NodeId(1U), 1, {}, true}), {BlockId(0U), blocks});
    const Demand demand = std::move(builder).build();
    std::uint32_t next = 0;
    for (std::uint32_t k = 0; k < greedy_pieces(demand, ClassId(0U)); ++k) {
      const BlockSelection piece = greedy_piece(demand, ClassId(0U), k);
      EXPECT_EQ(piece.first, next);
      EXPECT_LE(piece.count(), kGreedyPiece);
      EXPECT_GT(piece.count(), 0U);
      next = piece.end;
    }
    EXPECT_EQ(next, blocks);
  }
}

}  // namespace
}  // namespace holdfast
