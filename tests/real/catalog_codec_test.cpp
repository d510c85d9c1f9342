// Each kind of message with every field set goes through the codec; then damaged bytes do.
#include "real/control/catalog_codec.hpp"

#include <gtest/gtest.h>

#include <random>

#include "core/catalog/planning.hpp"
#include "core/plan/planner.hpp"
#include "tests/catalog/retention_world.hpp"

namespace holdfast::real {
namespace {

constexpr Time kHere = seconds(100);
constexpr Time kThere = seconds(7);

struct World {
  World() : topology(testing_support::make_racks(1, 1, 3)), router(topology) {
    DemandBuilder builder("model", {2, 9}, Bytes(10), std::vector<Bytes>(4, Bytes(10)));
    for (std::size_t n = 0; n < topology.nodes().size(); ++n) {
      if (!is_endpoint(topology.nodes()[n].kind)) continue;
      builder.add_worker({NodeId(n), static_cast<std::uint32_t>(n), Bytes(1'000), true});
    }
    builder.holds(WorkerId(0U), {BlockId(0U), 4});
    builder.wants(WorkerId(2U), {BlockId(0U), 4});
    builder.wants(WorkerId(4U), {BlockId(0U), 4});
    auto made = std::make_shared<PlannedTransfer>();
    made->id = (PlanNumber{3} << 32U) | 5U;
    made->space = SpaceId(1U);
    made->version = {2, 9};
    made->root = {11, 12};
    made->retention = {2, Level::Rack};
    made->demand = std::make_shared<const Demand>(std::move(builder).build());
    made->plan = std::make_shared<const Plan>(make_plan(Policy::Chain, router, *made->demand).plan);
    made->tables = std::make_shared<const UpdateTables>(*made->demand, *made->plan, &router,
                                                        std::vector<std::uint64_t>{1, 2, 3, 4},
                                                        transfer_number(made->id));
    made->shards.resize(6, {1, 2});
    made->addresses.resize(6, "[::1]:7");
    transfer = std::move(made);
  }
  Topology topology;
  Router router;
  TransferRef transfer;
};

LiveEdge edge() {
  LiveEdge e;
  e.stripe = StripeId(1U);
  e.child = WorkerId(2U);
  e.parent = WorkerId(3U);
  e.alternate = WorkerId(4U);
  e.from_block = 5;
  e.window = 6;
  e.path = {NodeId(7U), NodeId(8U), 9};
  e.alternate_path = {NodeId(10U), NodeId(11U), 12};
  e.parent_has_all = true;
  e.alternate_has_all = true;
  e.have_interval = Time(13);
  return e;
}

CallResult result() {
  CallResult r;
  r.status = CallStatus::VersionLost;
  r.version = {1, 2};
  r.root = {3, 4};
  r.who = {WorkerId(5U)};
  r.shard = {6, 7};
  r.lost = {{BlockId(8U), 9}};
  r.revoked = 10;
  r.safe = 11;
  r.reason = "because";
  return r;
}

BlockSet blocks() {
  BlockSet set(70);
  set.add(3);
  set.add(69);
  return set;
}

Access key(int seed) {
  Access access;
  access.size = 20;
  for (std::size_t i = 0; i < access.size; ++i) {
    access.bytes[i] = static_cast<std::byte>(static_cast<int>(i) * seed);
  }
  return access;
}

// Through the wire, from a clock that shows kHere to one that shows kThere.
template <class Message>
Message worker_message(const World& world, const Message& message) {
  CatalogCodec from(&world.router);
  CatalogCodec to(&world.router);
  WorkerFrame frame{{3, 4}, 5, 6, std::make_shared<const WorkerMessage>(message)};
  const auto decoded = to.decode_to_coordinator(from.encode(ToCoordinator(frame), kHere), kThere);
  EXPECT_TRUE(decoded) << (decoded ? "" : decoded.error().problem);
  const auto& got = std::get<WorkerFrame>(*decoded);
  EXPECT_EQ(got.key, frame.key);
  EXPECT_EQ(got.sequence, 5U);
  EXPECT_EQ(got.acknowledged, 6U);
  return std::get<Message>(*got.payload);
}
template <class Message>
Message coordinator_message(const World& world, const Message& message) {
  CatalogCodec from(&world.router);
  CatalogCodec to(&world.router);
  CoordinatorFrame frame{{3, 4}, 5, 6, std::make_shared<const CoordinatorMessage>(message)};
  const auto decoded = to.decode_to_worker(from.encode(ToWorker(frame), kHere), kThere);
  EXPECT_TRUE(decoded) << (decoded ? "" : decoded.error().problem);
  return std::get<Message>(*std::get<CoordinatorFrame>(*decoded).payload);
}

constexpr Time kDeadline = kHere + seconds(4);
constexpr Time kThen = kThere + seconds(4);

void expect_same(const TransferRef& got, const TransferRef& sent) {
  EXPECT_EQ(got->id, sent->id);
  EXPECT_EQ(got->space, sent->space);
  EXPECT_EQ(got->version, sent->version);
  EXPECT_EQ(got->root, sent->root);
  EXPECT_EQ(got->retention, sent->retention);
  EXPECT_EQ(*got->demand, *sent->demand);
  EXPECT_EQ(*got->plan, *sent->plan);
  EXPECT_EQ(got->shards, sent->shards);
  EXPECT_EQ(got->addresses, sent->addresses);
  EXPECT_EQ(got->tables->transfer(), sent->tables->transfer());
  for (std::uint32_t b = 0; b < 4; ++b) {
    EXPECT_EQ(got->tables->digest(BlockId(b)), sent->tables->digest(BlockId(b)));
  }
}

TEST(CatalogCodec, CarriesWhatWorkersSay) {
  const World world;
  const FetchCall call{Version{1, 2}, Destination::Shadow, OnNewer::Restart};
  {
    const auto digests = std::make_shared<const std::vector<std::uint64_t>>(2, 9U);
    const auto got = worker_message(world, Publish{1, {2, 3}, digests, kDeadline});
    EXPECT_EQ(got.call, 1U);
    EXPECT_EQ(got.version, (Version{2, 3}));
    EXPECT_EQ(*got.digests, *digests);
    EXPECT_EQ(got.deadline, kThen);
  }
  {
    const auto got = worker_message(world, AskUnpublish{1, {2, 3}, kDeadline});
    EXPECT_EQ(got.call, 1U);
    EXPECT_EQ(got.version, (Version{2, 3}));
    EXPECT_EQ(got.deadline, kThen);
  }
  {
    const auto got = worker_message(world, AskFetch{1, 2, call, kDeadline});
    EXPECT_EQ(got.n, 1U);
    EXPECT_EQ(got.generation, 2U);
    EXPECT_EQ(got.call, call);
    EXPECT_EQ(got.deadline, kThen);
    EXPECT_FALSE(worker_message(world, AskFetch{1, 2, {}, Time::never()}).call.version);
    EXPECT_EQ(worker_message(world, AskFetch{1, 2, {}, Time::never()}).deadline, Time::never());
  }
  EXPECT_EQ(worker_message(world, AskCancel{4}).n, 4U);
  EXPECT_EQ(worker_message(world, AskWithdraw{4, {5, 6}}).version, (Version{5, 6}));
  {
    const auto got = worker_message(world, AskRetain{1, {2, 3}, {4, Level::Pod}, kDeadline});
    EXPECT_EQ(got.call, 1U);
    EXPECT_EQ(got.version, (Version{2, 3}));
    EXPECT_EQ(got.retention, (Retention{4, Level::Pod}));
    EXPECT_EQ(got.deadline, kThen);
  }
  EXPECT_EQ(worker_message(world, AskRelease{4, {5, 6}}).call, 4U);
  {
    const auto got = worker_message(world, AskInstalled{1, {2, 3}, {4, 5}, 6, kDeadline});
    EXPECT_EQ(got.root, (Hash128{4, 5}));
    EXPECT_EQ(got.groups, 6U);
    EXPECT_EQ(got.deadline, kThen);
  }
  EXPECT_EQ(worker_message(world, AskLineage{4}).call, 4U);
  EXPECT_EQ(worker_message(world, AskLeave{4, kDeadline}).deadline, kThen);
  EXPECT_EQ(worker_message(world, CallEnded{4}).call, 4U);
  EXPECT_EQ(worker_message(world, Cleared{{1, 2}, 3}).revoked, 3U);
  EXPECT_EQ(worker_message(world, ClearFailed{{1, 2}, {WorkerId(3U)}}).readers,
            std::vector{WorkerId(3U)});
  {
    const Granted sent{7, {WorkerId(1U), WorkerId(2U)}, {key(1), key(2)}, {WorkerId(3U)}};
    const auto got = worker_message(world, sent);
    EXPECT_EQ(got.plan, 7U);
    EXPECT_EQ(got.readers, sent.readers);
    EXPECT_EQ(got.refused, sent.refused);
    ASSERT_EQ(got.access.size(), 2U);
    EXPECT_EQ(got.access[1].bytes, key(2).bytes);
    EXPECT_EQ(got.access[1].size, 20);
  }
  const std::vector<ReadGrant> grants{{WorkerId(1U), 2, {3, 4}, 5}};
  EXPECT_EQ(worker_message(world, GrantsGone{grants}).grants, grants);
  {
    const auto got = worker_message(world, Progress{1, {2, 3}, blocks(), true, 4});
    EXPECT_EQ(got.plan, 1U);
    EXPECT_EQ(got.verified, blocks());
    EXPECT_TRUE(got.told);
    EXPECT_EQ(got.n, 4U);
  }
  EXPECT_EQ(worker_message(world, Filled{1, {2, 3}}).version, (Version{2, 3}));
  EXPECT_EQ(worker_message(world, TransferStopped{1, {2, 3}, blocks()}).verified, blocks());
  {
    const auto got = worker_message(
        world, Switched{1, StripeId(2U), WorkerId(3U), WorkerId(4U), FailureKind::DigestMismatch});
    EXPECT_EQ(got.stripe, StripeId(2U));
    EXPECT_EQ(got.from, WorkerId(3U));
    EXPECT_EQ(got.to, WorkerId(4U));
    EXPECT_EQ(got.cause, FailureKind::DigestMismatch);
  }
  {
    const auto got = worker_message(
        world, ParentWanted{1, StripeId(2U), 3, WorkerId(4U), FailureKind::ReadFailed});
    EXPECT_EQ(got.first_missing, 3U);
    EXPECT_EQ(got.lost, WorkerId(4U));
    EXPECT_EQ(got.cause, FailureKind::ReadFailed);
  }
  EXPECT_EQ(worker_message(world, SourceIsSlow{1, StripeId(2U), WorkerId(3U)}).source,
            WorkerId(3U));
}

TEST(CatalogCodec, CarriesWhatTheCoordinatorSays) {
  const World world;
  EXPECT_EQ(coordinator_message(world, Answer{1, result()}).result, result());
  {
    const Decision sent{1,        2,    {Version{3, 4}, Destination::Shadow, OnNewer::Restart},
                        result(), true, result()};
    const auto got = coordinator_message(world, Decided{sent}).decision;
    EXPECT_EQ(got.n, 1U);
    EXPECT_EQ(got.generation, 2U);
    EXPECT_EQ(got.call, sent.call);
    EXPECT_EQ(got.result, sent.result);
    EXPECT_TRUE(got.finished);
    EXPECT_EQ(got.end, sent.end);
  }
  EXPECT_EQ(coordinator_message(world, FetchDone{1, 2, result()}).generation, 2U);
  EXPECT_EQ(coordinator_message(world, FetchDone{1, 2, result()}).result, result());
  EXPECT_EQ(coordinator_message(world, GenerationIs{3}).generation, 3U);
  {
    const auto got = coordinator_message(
        world, Clear{{1, 2}, ClearReason::Leave, OnDeadline::Revoke, kDeadline});
    EXPECT_EQ(got.reason, ClearReason::Leave);
    EXPECT_EQ(got.on_deadline, OnDeadline::Revoke);
    EXPECT_EQ(got.deadline, kThen);
  }
  EXPECT_EQ(coordinator_message(world, Unhide{{1, 2}}).version, (Version{1, 2}));
  {
    const auto got =
        coordinator_message(world, GrantReads{world.transfer, {{WorkerId(1U), 2, {edge()}}}});
    expect_same(got.transfer, world.transfer);
    ASSERT_EQ(got.readers.size(), 1U);
    EXPECT_EQ(got.readers[0].incarnation, 2U);
    EXPECT_EQ(got.readers[0].edges, std::vector{edge()});
  }
  EXPECT_EQ(coordinator_message(world, EndReads{{{WorkerId(1U), 2, {3, 4}, 5}}}).grants.size(), 1U);
  {
    const auto got = coordinator_message(
        world, Begin{world.transfer, Destination::Shadow, {{WorkerId(1U), key(3)}}, {edge()}});
    expect_same(got.transfer, world.transfer);
    EXPECT_EQ(got.destination, Destination::Shadow);
    ASSERT_EQ(got.sources.size(), 1U);
    EXPECT_EQ(got.sources[0].access.bytes, key(3).bytes);
    EXPECT_EQ(got.edges, std::vector{edge()});
  }
  {
    const auto got =
        coordinator_message(world, Change{1, {StripeId(2U)}, {edge()}, {{WorkerId(3U), key(4)}}});
    EXPECT_EQ(got.drops, std::vector{StripeId(2U)});
    EXPECT_EQ(got.edges, std::vector{edge()});
    EXPECT_EQ(got.sources[0].source, WorkerId(3U));
  }
  EXPECT_EQ(coordinator_message(world, Stop{4}).plan, 4U);
  EXPECT_EQ(coordinator_message(world, Tell{{1, 2}, 3}).version, (Version{1, 2}));
  EXPECT_EQ(coordinator_message(world, Tell{{1, 2}, 3}).n, 3U);
  EXPECT_EQ(coordinator_message(world, Note{{1, 2}, true, {3, Level::Rack}}).retention,
            (Retention{3, Level::Rack}));
  coordinator_message(world, LeaveNow{});
}

TEST(CatalogCodec, CarriesAReport) {
  const World world;
  auto report = std::make_shared<WorkerReport>();
  report->card = {NodeId(1U), SpaceId(2U), true, false, GroupId(3U), {4, 5}, 6, Bytes(7), "a:8"};
  report->epoch = 9;
  report->lineage = 10;
  report->generation = 11;
  report->over = 13;
  report->decision = {1, 11, {}, result(), true, result()};
  report->fetch = OpenFetch{2, {}, kDeadline};
  Holding holding;
  holding.version = {1, 2};
  holding.root = {3, 4};
  holding.shard = {5, 6};
  holding.state = HoldingState::Hidden;
  holding.verified = blocks();
  holding.digests = std::make_shared<const std::vector<std::uint64_t>>(3, 4U);
  holding.withdrawn = true;
  holding.runs = true;
  holding.retention = {2, Level::Pod};
  report->holdings.push_back(holding);
  report->grants.push_back({WorkerId(1U), 2, {3, 4}, 5});
  report->transfers.push_back({world.transfer, {edge()}, true});
  report->leaving = true;
  CatalogCodec from(&world.router);
  CatalogCodec to(&world.router);
  const auto decoded = to.decode_to_coordinator(from.encode(Hello{12, report, 14}, kHere), kThere);
  ASSERT_TRUE(decoded) << decoded.error().problem;
  const Hello& hello = std::get<Hello>(*decoded);
  EXPECT_EQ(hello.incarnation, 12U);
  EXPECT_EQ(hello.greeting, 14U);
  EXPECT_EQ(hello.report->card, report->card);
  EXPECT_EQ(hello.report->epoch, 9U);
  EXPECT_EQ(hello.report->lineage, 10U);
  EXPECT_EQ(hello.report->generation, 11U);
  EXPECT_EQ(hello.report->over, 13U);
  EXPECT_EQ(hello.report->decision.end, result());
  EXPECT_EQ(hello.report->fetch->deadline, kThen);
  ASSERT_EQ(hello.report->holdings.size(), 1U);
  const Holding& got = hello.report->holdings[0];
  EXPECT_EQ(got.version, holding.version);
  EXPECT_EQ(got.root, holding.root);
  EXPECT_EQ(got.shard, holding.shard);
  EXPECT_EQ(got.state, holding.state);
  EXPECT_EQ(got.verified, holding.verified);
  EXPECT_TRUE(got.withdrawn && got.runs);
  EXPECT_EQ(got.retention, holding.retention);
  EXPECT_EQ(*got.digests, *holding.digests);
  EXPECT_EQ(hello.report->grants, report->grants);
  expect_same(hello.report->transfers[0].transfer, world.transfer);
  EXPECT_EQ(hello.report->transfers[0].edges, std::vector{edge()});
  EXPECT_TRUE(hello.report->transfers[0].stopping && hello.report->leaving);
}

TEST(CatalogCodec, ABodyCrossesAConnectionOnce) {
  const World world;
  CatalogCodec from(&world.router);
  CatalogCodec to(&world.router);
  const ToWorker frame = CoordinatorFrame{
      {1, 1}, 0, 0, std::make_shared<const CoordinatorMessage>(GrantReads{world.transfer, {}})};
  const std::string first = from.encode(frame, kHere);
  const std::string second = from.encode(frame, kHere);
  EXPECT_LT(second.size(), first.size() / 4);
  EXPECT_FALSE(CatalogCodec(&world.router).decode_to_worker(second, kThere));
  ASSERT_TRUE(to.decode_to_worker(first, kThere));
  ASSERT_TRUE(to.decode_to_worker(second, kThere));
}

TEST(CatalogCodec, DamageIsRefusedOrDecodesToSomethingElse) {
  const World world;
  const ToWorker frame = CoordinatorFrame{
      {1, 1},
      0,
      0,
      std::make_shared<const CoordinatorMessage>(
          Begin{world.transfer, Destination::Shadow, {{WorkerId(1U), key(3)}}, {edge()}})};
  const std::string bytes = CatalogCodec(&world.router).encode(frame, kHere);
  std::size_t refused = 0;
  for (std::uint64_t seed = 1; seed <= 3'000; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937_64 random(seed);
    std::string damaged = bytes;
    for (std::uint64_t i = 0; i <= random() % 4; ++i) {
      damaged[random() % damaged.size()] = static_cast<char>(random());
    }
    if (random() % 4 == 0) damaged.resize(random() % damaged.size());
    CatalogCodec codec(&world.router);
    if (!codec.decode_to_worker(damaged, kThere)) ++refused;
  }
  EXPECT_GT(refused, 500U);
}

}  // namespace
}  // namespace holdfast::real
