// What the loop does with a transport that refuses and fails as it likes.
#include "core/engine/loop.hpp"

#include <gtest/gtest.h>

#include <deque>

#include "tests/engine/virtual_cluster.hpp"

namespace holdfast::testing {
namespace {

// Answers posts from a script (Posted once it is used up); completes what the test completes.
class ScriptedTransport final : public Transport {
 public:
  struct Post {
    OpId id;
    std::uint64_t offset;
    std::uint64_t bytes;
  };

  RegionId add_region(std::span<std::byte>, Bytes) override { return RegionId(0U); }
  PeerId open(const Endpoint&, std::uint64_t) override { return PeerId(0U); }
  void close(PeerId) override {}
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
      posts.push_back({request.id, request.pieces[0].remote_offset, request.pieces[0].bytes});
    }
    return answer;
  }
  void cancel(OpId) override {}
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

// Worker 1 reads four blocks of a holder, all at once.
struct Scene {
  explicit Scene(Bytes block) : demand(simple_demand(1, 4, block)), placement(demand.block_bytes) {
    demand.verify = false;
    engine = std::make_unique<WorkerEngine>(
        std::make_shared<const UpdateTables>(demand, tree_plan(demand, {0}, 4), nullptr,
                                             std::vector<std::uint64_t>{}),
        WorkerId(1U), EngineConfig{});
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

}  // namespace
}  // namespace holdfast::testing
