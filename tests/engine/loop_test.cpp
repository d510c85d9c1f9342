// What the loop does with a transport that refuses and fails as it likes.
#include "core/engine/loop.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <map>
#include <random>

#include "tests/engine/virtual_cluster.hpp"

namespace holdfast::testing {
namespace {

// Answers posts from a script (Posted once it is used up); completes what the test completes.
class ScriptedTransport final : public Transport {
 public:
  struct Post {
    OpId id;
    PeerId peer;
    std::uint64_t offset;
    std::uint64_t bytes;
  };

  RegionId add_region(std::span<std::byte>, Bytes) override { return RegionId(0U); }
  PeerId open(const Endpoint& endpoint, std::uint64_t) override {
    opened.push_back(endpoint);
    return PeerId(opened.size() - 1);
  }
  void close(PeerId peer) override { closed.push_back(peer); }
  [[nodiscard]] PeerLimits limits(PeerId) const override { return {Bytes(1000), 100, 1}; }
  Access allow(WorkerId, Version, RegionId) override { return {}; }
  void revoke(WorkerId, Version) override {}
  Posted read(const ReadRequest& request) override {
    Posted answer = Posted::Posted;
    if (!script.empty()) {
      answer = script.front();
      script.pop_front();
    }
    if (answer == Posted::Posted) {
      posts.push_back(
          {request.id, request.peer, request.pieces[0].remote_offset, request.pieces[0].bytes});
    }
    return answer;
  }
  void cancel(OpId id) override { cancelled.push_back(id); }
  bool send(PeerId, std::span<const std::byte>) override { return true; }
  std::size_t poll(std::span<TransportEvent> out) override {
    if (events.empty() || out.empty()) return 0;
    out[0] = events.front();
    events.pop_front();
    return 1;
  }
  void wait(Time until) override { time = until; }
  [[nodiscard]] Time now() const override { return time; }

  void complete(std::size_t post, ReadStatus status = ReadStatus::Ok) {
    events.emplace_back(ReadDone{posts[post].id, status, Bytes(posts[post].bytes)});
  }
  [[nodiscard]] std::vector<std::uint64_t> offsets() const {
    std::vector<std::uint64_t> all;
    for (const Post& post : posts) all.push_back(post.offset);
    return all;
  }

  std::deque<Posted> script;
  std::vector<Post> posts;
  std::vector<Endpoint> opened;
  std::vector<PeerId> closed;
  std::vector<OpId> cancelled;
  std::deque<TransportEvent> events;
  Time time = seconds(1);
};

class NoMemory final : public Memory {
 public:
  void digest(JobId, RegionId, std::span<const Extent>) override {}
  void gather(JobId, RegionId, std::span<const Extent>, RegionId, std::uint64_t) override {}
  void scatter(JobId, RegionId, std::uint64_t, RegionId, std::span<const Extent>) override {}
  std::size_t poll(std::span<JobDone>) override { return 0; }
};

class NoGrants final : public Grants {
 public:
  [[nodiscard]] Access access(WorkerId, WorkerId) override { return {}; }
  [[nodiscard]] std::string address(WorkerId) override { return {}; }
};

// Ends at the first failure of its one source.
EngineConfig alone() {
  EngineConfig config;
  config.await_parent = false;
  return config;
}

// Worker 1 reads what it wants; by default four blocks of a holder, all at once.
struct Scene {
  explicit Scene(Bytes block) : Scene(simple_demand(1, 4, block)) {}
  explicit Scene(const Demand& wanted) : Scene(wanted, tree_plan(wanted, {0}, 4)) {}
  Scene(const Demand& wanted, const Plan& plan, const EngineConfig& config = alone())
      : demand(wanted), placement(demand.block_bytes) {
    demand.verify = false;
    engine = std::make_unique<WorkerEngine>(
        std::make_shared<const UpdateTables>(demand, plan, nullptr, std::vector<std::uint64_t>{}),
        WorkerId(1U), config);
    loop = std::make_unique<WorkerLoop>(
        LoopSetup{*engine, transport, memory, placement, RegionId(0U), grants, 1, nullptr});
  }
  Demand demand;
  PackedPlacement placement;
  ScriptedTransport transport;
  NoMemory memory;
  NoGrants grants;
  std::unique_ptr<WorkerEngine> engine;
  std::unique_ptr<WorkerLoop> loop;
};

using Offsets = std::vector<std::uint64_t>;
constexpr Posted kYes = Posted::Posted;
constexpr Posted kLater = Posted::WouldBlock;

// The transport would take the blocks after a refused one: the loop must not offer them.
TEST(Loop, KeepsTheOrderAfterARefusal) {
  Scene scene(Bytes(1000));
  scene.transport.script = {kYes, kLater, kYes, kYes};
  EXPECT_TRUE(scene.loop->pump());
  EXPECT_EQ(scene.transport.offsets(), Offsets{0});
  scene.transport.script.clear();
  scene.transport.complete(0);
  EXPECT_TRUE(scene.loop->pump());
  EXPECT_EQ(scene.transport.offsets(), (Offsets{0, 1000, 2000, 3000}));
  for (const std::size_t post : {1U, 2U, 3U}) scene.transport.complete(post);
  EXPECT_TRUE(scene.loop->pump());
  EXPECT_TRUE(scene.engine->complete());
}

// A block of three reads of which the second is refused: nothing overtakes its rest.
TEST(Loop, TheRestOfABlockGoesFirst) {
  Scene scene(Bytes(2500));
  scene.transport.script = {kYes, kLater};
  EXPECT_TRUE(scene.loop->pump());
  EXPECT_EQ(scene.transport.offsets(), Offsets{0});
  scene.transport.complete(0);
  EXPECT_TRUE(scene.loop->pump());
  const Offsets all{0, 1000, 2000, 2500, 3500, 4500, 5000, 6000, 7000, 7500, 8500, 9500};
  const Offsets first{0, 1000, 2000};
  ASSERT_GE(scene.transport.posts.size(), 3U);
  EXPECT_TRUE(std::equal(first.begin(), first.end(), scene.transport.offsets().begin()));
  EXPECT_EQ(scene.transport.posts[2].bytes, 500U);
  EXPECT_EQ(scene.engine->missing(), 4U);
  for (std::size_t post = 1; post < scene.transport.posts.size(); ++post) {
    scene.transport.complete(post);
    EXPECT_TRUE(scene.loop->pump());
  }
  EXPECT_EQ(scene.transport.offsets(), all);
  EXPECT_TRUE(scene.engine->complete());
}

// With nothing under way, time brings refused reads and rests back.
TEST(Loop, TriesAgainAfterAWhile) {
  Scene scene(Bytes(2500));
  scene.transport.script = {kYes, kLater};
  scene.loop->pump();
  scene.transport.complete(0);
  scene.transport.script = {kLater, kLater, kLater};
  scene.loop->pump();
  EXPECT_EQ(scene.transport.posts.size(), 1U);
  EXPECT_LE(scene.loop->next_deadline(), scene.transport.time + milliseconds(1));
  scene.transport.script.clear();
  scene.transport.time = scene.loop->next_deadline();
  scene.loop->pump();
  EXPECT_GE(scene.transport.posts.size(), 3U);
}

// One of a block's reads fails: the block fails once all its reads are done, with that status.
TEST(Loop, OneFailedReadFailsTheBlock) {
  Scene scene(Bytes(2500));
  scene.loop->pump();
  scene.transport.complete(0);
  scene.transport.complete(1, ReadStatus::OutOfRange);
  EXPECT_TRUE(scene.loop->pump());
  scene.transport.complete(2);
  EXPECT_FALSE(scene.loop->pump());
  ASSERT_TRUE(scene.loop->failure());
  EXPECT_EQ(scene.loop->failure()->kind, FailureKind::ReadFailed);
  EXPECT_EQ(scene.loop->failure()->status, ReadStatus::OutOfRange);
  EXPECT_EQ(scene.loop->failure()->block, BlockId(0U));
}

TEST(Loop, AGonePeerIsALostSource) {
  Scene scene(Bytes(1000));
  scene.transport.script = {kYes, Posted::PeerGone};
  EXPECT_FALSE(scene.loop->pump());
  ASSERT_TRUE(scene.loop->failure());
  EXPECT_EQ(scene.loop->failure()->kind, FailureKind::SourceLost);
  EXPECT_EQ(scene.loop->failure()->block, BlockId(1U));
}

// --- Connections ---------------------------------------------------------------------------------

Path stream(std::uint32_t number) {
  return {NodeId(10U), NodeId(20U), number};
}

// The class in interleaved stripes, one for each path, all from worker 0 to worker 1.
Plan striped(const Demand& demand, const std::vector<Path>& paths, std::uint32_t window = 4) {
  Plan plan = tree_plan(demand, {0}, window);
  const Stripe whole = plan.stripes[0];
  plan.stripes.clear();
  for (std::uint32_t s = 0; s < paths.size(); ++s) {
    Stripe& stripe = plan.stripes.emplace_back(whole);
    stripe.blocks = {s, static_cast<std::uint32_t>(paths.size()), whole.blocks.end};
    stripe.edges[0].path = paths[s];
  }
  return plan;
}

TEST(LoopConnections, AssignmentsWithOneParentAndPathShareOne) {
  const Demand demand = simple_demand(1, 8, Bytes(1000));
  Scene scene(demand, striped(demand, {stream(5), stream(5)}));
  EXPECT_TRUE(scene.loop->pump());
  ASSERT_EQ(scene.transport.opened.size(), 1U);
  EXPECT_EQ(scene.transport.opened[0].worker, WorkerId(0U));
  EXPECT_EQ(scene.transport.opened[0].path, stream(5));
  ASSERT_EQ(scene.transport.posts.size(), 8U);
  for (std::size_t post = 0; post < 8; ++post) {
    EXPECT_EQ(scene.transport.posts[post].peer, PeerId(0U));
    scene.transport.complete(post);
  }
  EXPECT_TRUE(scene.loop->pump());
  EXPECT_TRUE(scene.engine->complete());
  EXPECT_EQ(scene.transport.opened.size(), 1U);
}

TEST(LoopConnections, OtherStreamsAndPortsHaveTheirOwn) {
  const Demand demand = simple_demand(1, 8, Bytes(1000));
  Path port = stream(5);
  port.destination_port = NodeId(21U);
  Scene scene(demand, striped(demand, {stream(5), stream(6), port, stream(5)}));
  EXPECT_TRUE(scene.loop->pump());
  ASSERT_EQ(scene.transport.opened.size(), 3U);
  EXPECT_EQ(scene.transport.opened[0].path, stream(5));
  EXPECT_EQ(scene.transport.opened[1].path, stream(6));
  EXPECT_EQ(scene.transport.opened[2].path, port);
  // Block k is in stripe k mod 4.
  ASSERT_EQ(scene.transport.posts.size(), 8U);
  for (const auto& post : scene.transport.posts) {
    const std::uint64_t stripe = post.offset / 1000 % 4;
    EXPECT_EQ(post.peer, PeerId(static_cast<std::uint32_t>(stripe == 3 ? 0 : stripe)));
  }
}

TEST(LoopConnections, OtherParentsHaveTheirOwn) {
  Demand demand = simple_demand(2, 8, Bytes(1000));
  demand.classes[0].holders = {WorkerId(0U), WorkerId(2U)};
  demand.classes[0].receivers = {WorkerId(1U)};
  Plan plan = striped(demand, {stream(5), stream(5)});
  plan.stripes[1].edges[0].parent = WorkerId(2U);
  Scene scene(demand, plan);
  EXPECT_TRUE(scene.loop->pump());
  ASSERT_EQ(scene.transport.opened.size(), 2U);
  EXPECT_EQ(scene.transport.opened[1].worker, WorkerId(2U));
}

// A refusal of one assignment holds up that one alone; each keeps its own order.
TEST(LoopConnections, ARefusalOnASharedOneReachesBoth) {
  const Demand demand = simple_demand(1, 8, Bytes(1000));
  Scene scene(demand, striped(demand, {stream(5), stream(5)}));
  scene.transport.script = {kYes, kLater, kLater};
  EXPECT_TRUE(scene.loop->pump());
  EXPECT_EQ(scene.transport.offsets(), Offsets{0});
  EXPECT_EQ(scene.loop->stats().refused, 2U);
  scene.transport.complete(0);
  EXPECT_TRUE(scene.loop->pump());
  EXPECT_EQ(scene.transport.offsets(), (Offsets{0, 2000, 4000, 6000, 1000, 3000, 5000, 7000}));
}

// Both assignments have a rest that waits: a completion brings both back.
TEST(LoopConnections, RestsOfBothWaitAndGoOn) {
  const Demand demand = simple_demand(1, 4, Bytes(2500));
  Scene scene(demand, striped(demand, {stream(5), stream(5)}));
  scene.transport.script = {kYes, kLater, kYes, kLater};
  EXPECT_TRUE(scene.loop->pump());
  EXPECT_EQ(scene.transport.offsets(), (Offsets{0, 2500}));
  scene.transport.complete(0);
  scene.transport.complete(1);
  EXPECT_TRUE(scene.loop->pump());
  for (std::size_t post = 2; post < scene.transport.posts.size(); ++post) {
    scene.transport.complete(post);
    EXPECT_TRUE(scene.loop->pump());
  }
  EXPECT_TRUE(scene.engine->complete());
  EXPECT_EQ(scene.loop->stats().bytes_read, Bytes(10'000));
  EXPECT_EQ(scene.transport.opened.size(), 1U);
}

// The transport tells PeerLost once for the connection and completes its reads: the engine fails
// once, by name, and nothing is posted any more.
TEST(LoopConnections, TheLossOfASharedOneEndsTheLoop) {
  const Demand demand = simple_demand(1, 40, Bytes(1000));
  for (const bool lost_first : {true, false}) {
    Scene scene(demand, striped(demand, {stream(5), stream(5)}));
    EXPECT_TRUE(scene.loop->pump());
    const std::size_t posted = scene.transport.posts.size();
    const PeerLost lost{PeerId(0U), WorkerId(0U)};
    if (lost_first) scene.transport.events.emplace_back(lost);
    for (std::size_t post = 0; post < posted; ++post) {
      scene.transport.complete(post, ReadStatus::PeerGone);
    }
    if (!lost_first) scene.transport.events.emplace_back(lost);
    EXPECT_FALSE(scene.loop->pump());
    ASSERT_TRUE(scene.loop->failure());
    EXPECT_EQ(scene.loop->failure()->kind,
              lost_first ? FailureKind::SourceLost : FailureKind::ReadFailed);
    EXPECT_EQ(scene.loop->failure()->source, WorkerId(0U));
    EXPECT_FALSE(scene.loop->pump());
    EXPECT_EQ(scene.transport.posts.size(), posted);
  }
}

// --- Cancelling ----------------------------------------------------------------------------------

// A dropped block is over when its reads are; a rest that was not posted is never read.
TEST(LoopCancel, ReadsEndAndRestsAreForgotten) {
  Scene scene(Bytes(2500));
  scene.transport.script = {kYes, kLater, kLater};
  EXPECT_TRUE(scene.loop->pump());
  ASSERT_EQ(scene.transport.posts.size(), 1U);
  scene.engine->drop(StripeId(0U));
  EXPECT_TRUE(scene.loop->pump());
  EXPECT_EQ(scene.transport.cancelled, std::vector<OpId>{scene.transport.posts[0].id});
  EXPECT_EQ(scene.engine->open_work(), 1U);
  EXPECT_FALSE(scene.loop->transfer().idle());
  scene.transport.complete(0, ReadStatus::Cancelled);
  EXPECT_TRUE(scene.loop->pump());
  EXPECT_EQ(scene.engine->open_work(), 0U);
  EXPECT_TRUE(scene.loop->transfer().idle());
  EXPECT_EQ(scene.transport.posts.size(), 1U);
}

// Its reads so far are done and only the rest is missing: it is over at once.
TEST(LoopCancel, ARestAloneIsOverAtOnce) {
  Scene scene(Bytes(2500));
  scene.transport.script = {kYes, kLater, kLater, kLater, kLater, kLater, kLater};
  EXPECT_TRUE(scene.loop->pump());
  scene.transport.complete(0);
  EXPECT_TRUE(scene.loop->pump());
  ASSERT_EQ(scene.transport.posts.size(), 1U);
  EXPECT_EQ(scene.engine->open_work(), 1U);
  scene.engine->drop(StripeId(0U));
  EXPECT_TRUE(scene.loop->pump());
  EXPECT_TRUE(scene.transport.cancelled.empty());
  EXPECT_EQ(scene.engine->open_work(), 0U);
  EXPECT_TRUE(scene.loop->transfer().idle());
}

TEST(LoopCancel, StopCancelsAndClosesWhenAllIsDone) {
  Scene scene(Bytes(1000));
  EXPECT_TRUE(scene.loop->pump());
  ASSERT_EQ(scene.transport.posts.size(), 4U);
  TransferLoop& transfer = scene.loop->transfer();
  transfer.stop();
  EXPECT_EQ(scene.transport.cancelled.size(), 4U);
  EXPECT_TRUE(scene.transport.closed.empty());
  for (std::size_t post = 0; post < 4; ++post) {
    EXPECT_FALSE(transfer.idle());
    transfer.take(ReadDone{scene.transport.posts[post].id, ReadStatus::Cancelled, {}});
  }
  EXPECT_TRUE(transfer.idle());
  EXPECT_EQ(scene.transport.closed, std::vector<PeerId>{PeerId(0U)});
}

// The same worker again, over the same path, after its connection was lost: a new connection.
TEST(LoopConnections, ALostOneIsOpenedAnew) {
  const Demand demand = simple_demand(1, 4, Bytes(1000));
  Scene scene(demand, tree_plan(demand, {0}, 4), EngineConfig{});
  EXPECT_TRUE(scene.loop->pump());
  scene.transport.events.emplace_back(PeerLost{PeerId(0U), WorkerId(0U)});
  for (std::size_t post = 0; post < 4; ++post) {
    scene.transport.complete(post, ReadStatus::PeerGone);
  }
  EXPECT_TRUE(scene.loop->pump());
  EXPECT_EQ(scene.transport.opened.size(), 1U);
  scene.engine->add_alternate(StripeId(0U), WorkerId(0U), {}, true);
  EXPECT_TRUE(scene.loop->pump());
  ASSERT_EQ(scene.transport.opened.size(), 2U);
  ASSERT_EQ(scene.transport.posts.size(), 8U);
  EXPECT_EQ(scene.transport.posts[7].peer, PeerId(1U));
  EXPECT_TRUE(scene.transport.closed.empty()) << "a lost one needs no close";
}

// The last assignment that turns away from a parent closes its connection.
TEST(LoopConnections, ATurnedAwayOneIsClosed) {
  const Demand demand = simple_demand(1, 8, Bytes(1000));
  Scene scene(demand, striped(demand, {stream(5), stream(5)}), EngineConfig{});
  EXPECT_TRUE(scene.loop->pump());
  for (const std::uint32_t s : {0U, 1U}) {
    EXPECT_TRUE(scene.transport.closed.empty());
    scene.engine->add_alternate(StripeId(s), WorkerId(2U), stream(6), true);
    for (std::size_t post = 0; post < 8; ++post) {
      if (scene.transport.posts[post].offset / 1000 % 2 != s) continue;
      scene.transport.complete(post, ReadStatus::AccessDenied);
    }
    EXPECT_TRUE(scene.loop->pump());
  }
  EXPECT_EQ(scene.transport.closed, std::vector<PeerId>{PeerId(0U)});
  ASSERT_EQ(scene.transport.opened.size(), 2U);
  EXPECT_EQ(scene.transport.opened[1].worker, WorkerId(2U));
  EXPECT_EQ(scene.transport.posts.size(), 16U);
}

// Random refusals and completions, each connection in its order: every byte is read once, each
// assignment in ascending order.
TEST(LoopConnections, RandomRefusalsLoseNothing) {
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937_64 random(seed);
    const auto blocks = 3 + static_cast<std::uint32_t>(random() % 30);
    const std::uint64_t block = 300 + random() % 3000;
    const Demand demand = simple_demand(1, blocks, Bytes(block));
    std::vector<Path> paths;
    std::map<Path, int> known;
    for (std::uint64_t s = 0; s < 1 + random() % 3; ++s) {
      paths.push_back(stream(static_cast<std::uint32_t>(random() % 2)));
      ++known[paths.back()];
    }
    Scene scene(demand, striped(demand, paths, 1 + static_cast<std::uint32_t>(random() % 4)));
    ScriptedTransport& transport = scene.transport;
    std::map<PeerId, std::deque<std::size_t>> open;
    std::size_t seen = 0;
    std::size_t turns = 0;
    while (!scene.engine->complete() && ++turns < 10'000) {
      transport.script.clear();
      for (int k = 0; k < 6; ++k) transport.script.push_back(random() % 3 == 0 ? kYes : kLater);
      ASSERT_TRUE(scene.loop->pump());
      for (; seen < transport.posts.size(); ++seen)
        open[transport.posts[seen].peer].push_back(seen);
      for (auto& [peer, posts] : open) {
        if (posts.empty() || random() % 2 == 0) continue;
        transport.complete(posts.front());
        posts.pop_front();
      }
      if (!transport.events.empty()) continue;  // else time passes
      transport.time = std::min(scene.loop->next_deadline(), transport.time + microseconds(50));
    }
    ASSERT_TRUE(scene.engine->complete());
    EXPECT_EQ(transport.opened.size(), known.size());
    std::uint64_t bytes = 0;
    std::map<std::uint64_t, std::uint64_t> next;  // by stripe: where its next read must begin
    for (const auto& post : transport.posts) {
      bytes += post.bytes;
      const std::uint64_t stripe = post.offset / block % paths.size();
      EXPECT_GE(post.offset, next[stripe]);
      next[stripe] = post.offset + post.bytes;
    }
    EXPECT_EQ(bytes, blocks * block);
  }
}

}  // namespace
}  // namespace holdfast::testing
