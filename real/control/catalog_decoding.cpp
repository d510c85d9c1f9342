#include <fmt/format.h>

#include <algorithm>

#include "core/catalog/planning.hpp"
#include "core/error.hpp"
#include "real/control/catalog_codec.hpp"
#include "real/control/catalog_wire.hpp"

namespace holdfast::real {
namespace {

// A message is at most so long, so these only bound what small messages could ask for.
constexpr std::uint32_t kMostBlocks = 1U << 24U;

// Reads values out of messages; throws BadFrame.
class Decoder {
 public:
  Decoder(const Router* router, std::map<PlanNumber, TransferRef>& received, Time now)
      : router_(router), received_(received), now_(now) {}

  template <class... Args>
  [[noreturn]] static void bad(fmt::format_string<Args...> text, Args&&... args) {
    throw BadFrame{fmt::format(text, std::forward<Args>(args)...)};
  }

  // An enumerator whose last one is `last`.
  template <class Enum>
  static Enum one_of(std::uint32_t value, Enum last, const char* what) {
    if (value > static_cast<std::uint32_t>(last)) bad("{} has no value {}", what, value);
    return static_cast<Enum>(value);
  }
  static Version get(const wire::Version& v) { return {v.lineage(), v.number()}; }
  static Hash128 get(const wire::Hash& v) { return {v.high(), v.low()}; }
  static ShardId get(const wire::Shard& v) { return {v.layout(), v.rank()}; }
  static Retention get(const wire::Retention& v) {
    return {v.copies(), one_of(v.level(), Level::Datacenter, "a level")};
  }
  static Path get(const wire::Path& v) {
    return {NodeId(v.source_port()), NodeId(v.destination_port()), v.stream()};
  }
  static BlockSpan get(const wire::Span& v) { return {BlockId(v.first()), v.count()}; }
  static BlockSet get(const wire::Blocks& v) {
    if (v.size() > kMostBlocks || v.words_size() != static_cast<int>((v.size() + 63) / 64)) {
      bad("a set of {} blocks comes in {} words", v.size(), v.words_size());
    }
    BlockSet set(v.size());
    for (std::uint32_t k = 0; k < v.size(); ++k) {
      if ((v.words(static_cast<int>(k / 64)) >> (k % 64) & 1U) != 0) set.add(k);
    }
    return set;
  }
  static std::shared_ptr<const std::vector<std::uint64_t>> get(const wire::Digests& v) {
    return std::make_shared<const std::vector<std::uint64_t>>(v.values().begin(), v.values().end());
  }
  static Access access(const std::string& bytes) {
    if (bytes.size() > Access::kCapacity) bad("an access of {} bytes", bytes.size());
    Access result;
    std::transform(bytes.begin(), bytes.end(), result.bytes.begin(),
                   [](char c) { return static_cast<std::byte>(c); });
    result.size = static_cast<std::uint8_t>(bytes.size());
    return result;
  }
  template <class Repeated>
  static std::vector<WorkerId> workers(const Repeated& ids) {
    std::vector<WorkerId> result;
    result.reserve(static_cast<std::size_t>(ids.size()));
    for (const std::uint32_t id : ids) result.emplace_back(id);
    return result;
  }
  static LiveEdge get(const wire::Edge& v) {
    LiveEdge edge;
    edge.stripe = StripeId(v.stripe());
    edge.child = WorkerId(v.child());
    edge.parent = WorkerId(v.parent());
    edge.alternate = WorkerId(v.alternate());
    edge.from_block = v.from_block();
    edge.window = v.window();
    edge.path = get(v.path());
    edge.alternate_path = get(v.alternate_path());
    edge.parent_has_all = v.parent_has_all();
    edge.alternate_has_all = v.alternate_has_all();
    if (v.have_interval() < 0) bad("a have interval below zero");
    edge.have_interval = Time(v.have_interval());
    return edge;
  }
  template <class Repeated>
  static std::vector<LiveEdge> edges(const Repeated& from) {
    std::vector<LiveEdge> result;
    for (const wire::Edge& edge : from) result.push_back(get(edge));
    return result;
  }
  static WorkerCard get(const wire::Card& v) {
    WorkerCard card;
    card.node = NodeId(v.node());
    card.space = SpaceId(v.space());
    card.host_memory = v.host_memory();
    card.reliable = v.reliable();
    card.group = GroupId(v.group());
    card.shard = get(v.shard());
    card.slots = v.slots();
    card.budget = Bytes(v.budget());
    card.address = v.address();
    return card;
  }
  static FetchCall get(const wire::FetchCall& v) {
    FetchCall call;
    if (v.has_version()) call.version = get(v.version());
    call.destination = one_of(v.destination(), Destination::Shadow, "a destination");
    call.on_newer = one_of(v.on_newer(), OnNewer::Restart, "on_newer");
    return call;
  }
  static CallResult get(const wire::Result& v) {
    CallResult result;
    result.status = one_of(v.status(), CallStatus::Stopped, "a status");
    result.version = get(v.version());
    result.root = get(v.root());
    result.who = workers(v.who());
    result.shard = get(v.shard());
    for (const wire::Span& span : v.lost()) result.lost.push_back(get(span));
    result.revoked = v.revoked();
    result.safe = v.safe();
    result.reason = v.reason();
    return result;
  }
  static Decision get(const wire::Decision& v) {
    return {v.n(), v.generation(), get(v.call()), get(v.result()), v.finished(), get(v.end())};
  }
  static ReadGrant get(const wire::ReadGrant& v) {
    return {WorkerId(v.reader()), v.incarnation(), get(v.version()), v.plan()};
  }
  static std::vector<ReadGrant> get(const wire::Grants& v) {
    std::vector<ReadGrant> result;
    for (const wire::ReadGrant& grant : v.grants()) result.push_back(get(grant));
    return result;
  }
  static Holding get(const wire::Holding& v) {
    Holding holding;
    holding.version = get(v.version());
    holding.root = get(v.root());
    holding.shard = get(v.shard());
    holding.state = one_of(v.state(), HoldingState::Hidden, "the state of a holding");
    holding.verified = get(v.verified());
    holding.withdrawn = v.withdrawn();
    holding.runs = v.runs();
    holding.retention = get(v.retention());
    if (v.has_digests()) holding.digests = get(v.digests());
    return holding;
  }
  static Demand get(const wire::Demand& v) {
    Demand demand;
    demand.model = v.model();
    demand.version = get(v.version());
    demand.block_size = Bytes(v.block_size());
    demand.verify = v.verify();
    for (const std::uint64_t bytes : v.block_bytes()) demand.block_bytes.emplace_back(bytes);
    for (const wire::DemandWorker& worker : v.workers()) {
      demand.workers.push_back(
          {NodeId(worker.node()), worker.group(), Bytes(worker.memory_free()), worker.may_serve()});
    }
    for (const wire::BlockClass& c : v.classes()) {
      BlockClass block_class;
      for (const wire::Span& span : c.blocks()) block_class.blocks.push_back(get(span));
      block_class.holders = workers(c.holders());
      block_class.receivers = workers(c.receivers());
      demand.classes.push_back(std::move(block_class));
    }
    return demand;
  }
  static Plan get(const wire::Plan& v) {
    Plan plan;
    plan.format = v.format();
    plan.topology = get(v.topology());
    plan.demand = get(v.demand());
    for (const wire::Stripe& s : v.stripes()) {
      Stripe stripe;
      stripe.block_class = ClassId(s.block_class());
      stripe.blocks = {s.first(), s.step(), s.end()};
      for (const wire::PlanEdge& e : s.edges()) {
        stripe.edges.push_back({WorkerId(e.child()), WorkerId(e.parent()), WorkerId(e.alternate()),
                                get(e.path()), e.window()});
      }
      plan.stripes.push_back(std::move(stripe));
    }
    return plan;
  }
  // What the tables rely on: workers and ports that are there. (They check stripes themselves.)
  void check_ids(const Plan& plan, const Demand& demand) const {
    const std::size_t nodes = router_->topology().nodes().size();
    const auto worker = [&](WorkerId id) { return id.index() < demand.workers.size(); };
    const auto port = [&](NodeId id) { return !id.valid() || id.index() < nodes; };
    for (const Stripe& stripe : plan.stripes) {
      for (const Edge& edge : stripe.edges) {
        if (!worker(edge.child) || !worker(edge.parent) ||
            (edge.alternate.valid() && !worker(edge.alternate))) {
          bad("an edge names a worker that the demand does not have");
        }
        if (!port(edge.path.source_port) || !port(edge.path.destination_port)) {
          bad("a path names a port that the topology does not have");
        }
      }
    }
  }
  TransferRef get(const wire::Transfer& v) {
    if (!v.has_body()) {
      const auto known = received_.find(v.id());
      if (known == received_.end()) bad("transfer {} was never explained", v.id());
      return known->second;
    }
    if (router_ == nullptr) bad("a transfer where none is expected");
    auto transfer = std::make_shared<PlannedTransfer>();
    transfer->id = v.id();
    transfer->revision = v.body().revision();
    transfer->space = SpaceId(v.body().space());
    transfer->version = get(v.body().version());
    transfer->root = get(v.body().root());
    transfer->retention = get(v.body().retention());
    auto demand = std::make_shared<const Demand>(get(v.body().demand()));
    auto plan = std::make_shared<const Plan>(get(v.body().plan()));
    check_ids(*plan, *demand);
    try {
      validate(*demand, router_->topology());
      transfer->tables = std::make_shared<const UpdateTables>(
          *demand, *plan, router_,
          std::vector<std::uint64_t>(v.body().digests().begin(), v.body().digests().end()),
          transfer_number(v.id()));
    } catch (const Error& error) {
      bad("transfer {}: {}", v.id(), error.what());
    }
    if (static_cast<std::size_t>(v.body().shards_size()) != demand->workers.size()) {
      bad("transfer {} names {} shards for {} workers", v.id(), v.body().shards_size(),
          demand->workers.size());
    }
    for (const wire::Shard& shard : v.body().shards()) transfer->shards.push_back(get(shard));
    transfer->addresses.assign(v.body().addresses().begin(), v.body().addresses().end());
    transfer->addresses.resize(demand->workers.size());
    transfer->demand = std::move(demand);
    transfer->plan = std::move(plan);
    received_[v.id()] = transfer;
    return transfer;
  }
  WorkerReport get(const wire::Report& v) {
    WorkerReport report;
    report.card = get(v.card());
    report.epoch = v.epoch();
    report.lineage = v.lineage();
    report.generation = v.generation();
    report.over = v.over();
    report.decision = get(v.decision());
    if (v.has_fetch()) {
      report.fetch = OpenFetch{v.fetch().n(), get(v.fetch().call()), until(v.fetch().deadline())};
    }
    for (const wire::Holding& holding : v.holdings()) report.holdings.push_back(get(holding));
    for (const wire::ReadGrant& grant : v.grants()) report.grants.push_back(get(grant));
    for (const wire::OpenTransfer& open : v.transfers()) {
      report.transfers.push_back({get(open.transfer()), edges(open.edges()), open.stopping()});
    }
    report.leaving = v.leaving();
    return report;
  }

  WorkerMessage message(const wire::FromWorker& v) {
    switch (v.kind_case()) {
      case wire::FromWorker::kPublish:
        return Publish{v.publish().call(), get(v.publish().version()), get(v.publish().digests()),
                       until(v.publish().deadline())};
      case wire::FromWorker::kUnpublish:
        return AskUnpublish{v.unpublish().call(), get(v.unpublish().version()),
                            until(v.unpublish().deadline())};
      case wire::FromWorker::kFetch:
        return AskFetch{v.fetch().n(), v.fetch().generation(), get(v.fetch().call()),
                        until(v.fetch().deadline())};
      case wire::FromWorker::kCancel:
        return AskCancel{v.cancel().value()};
      case wire::FromWorker::kWithdraw:
        return AskWithdraw{v.withdraw().call(), get(v.withdraw().version())};
      case wire::FromWorker::kRetain:
        return AskRetain{v.retain().call(), get(v.retain().version()), get(v.retain().retention()),
                         until(v.retain().deadline())};
      case wire::FromWorker::kRelease:
        return AskRelease{v.release().call(), get(v.release().version())};
      case wire::FromWorker::kInstalled:
        return AskInstalled{v.installed().call(), get(v.installed().version()),
                            get(v.installed().root()), v.installed().groups(),
                            until(v.installed().deadline())};
      case wire::FromWorker::kLineage:
        return AskLineage{v.lineage().value()};
      case wire::FromWorker::kLeave:
        return AskLeave{v.leave().value(), until(v.leave().deadline())};
      case wire::FromWorker::kCallEnded:
        return CallEnded{v.call_ended().value()};
      case wire::FromWorker::kCleared:
        return Cleared{get(v.cleared().version()), v.cleared().revoked()};
      case wire::FromWorker::kClearFailed:
        return ClearFailed{get(v.clear_failed().version()), workers(v.clear_failed().readers())};
      case wire::FromWorker::kGranted:
        return granted(v.granted());
      case wire::FromWorker::kGrantsGone:
        return GrantsGone{get(v.grants_gone())};
      case wire::FromWorker::kProgress:
        return Progress{v.progress().plan(), get(v.progress().version()),
                        get(v.progress().verified()), v.progress().told(), v.progress().n()};
      case wire::FromWorker::kFilled:
        return Filled{v.filled().plan(), get(v.filled().version())};
      case wire::FromWorker::kStopped:
        return TransferStopped{v.stopped().plan(), get(v.stopped().version()),
                               get(v.stopped().verified())};
      case wire::FromWorker::kSwitched:
        return Switched{v.switched().plan(), StripeId(v.switched().stripe()),
                        WorkerId(v.switched().from()), WorkerId(v.switched().to()),
                        cause(v.switched())};
      case wire::FromWorker::kParentWanted:
        return ParentWanted{v.parent_wanted().plan(), StripeId(v.parent_wanted().stripe()),
                            v.parent_wanted().first_missing(), WorkerId(v.parent_wanted().from()),
                            cause(v.parent_wanted())};
      case wire::FromWorker::kSlow:
        return SourceIsSlow{v.slow().plan(), StripeId(v.slow().stripe()),
                            WorkerId(v.slow().from())};
      case wire::FromWorker::KIND_NOT_SET:
        break;
    }
    bad("a message of a kind that is not known here");
  }
  static FailureKind cause(const wire::StripeNews& v) {
    return one_of(v.cause(), FailureKind::NoProgress, "a cause");
  }
  static Granted granted(const wire::Granted& v) {
    if (v.readers_size() != v.access_size()) {
      bad("{} readers and {} accesses", v.readers_size(), v.access_size());
    }
    Granted result{v.plan(), workers(v.readers()), {}, workers(v.refused())};
    for (const std::string& bytes : v.access()) result.access.push_back(access(bytes));
    return result;
  }
  template <class Repeated>
  static std::vector<SourceAccess> sources(const Repeated& from) {
    std::vector<SourceAccess> result;
    for (const wire::SourceAccess& source : from) {
      result.push_back({WorkerId(source.source()), access(source.access())});
    }
    return result;
  }

  CoordinatorMessage message(const wire::FromCoordinator& v) {
    switch (v.kind_case()) {
      case wire::FromCoordinator::kAnswer:
        return Answer{v.answer().call(), get(v.answer().result())};
      case wire::FromCoordinator::kDecided:
        return Decided{get(v.decided())};
      case wire::FromCoordinator::kDone:
        return FetchDone{v.done().n(), v.done().generation(), get(v.done().result())};
      case wire::FromCoordinator::kGeneration:
        return GenerationIs{v.generation().value()};
      case wire::FromCoordinator::kClear:
        return Clear{get(v.clear().version()),
                     one_of(v.clear().reason(), ClearReason::Forget, "a reason"),
                     one_of(v.clear().on_deadline(), OnDeadline::Revoke, "on_deadline"),
                     until(v.clear().deadline())};
      case wire::FromCoordinator::kUnhide:
        return Unhide{get(v.unhide())};
      case wire::FromCoordinator::kGrantReads: {
        GrantReads result{get(v.grant_reads().transfer()), {}};
        for (const wire::Reader& reader : v.grant_reads().readers()) {
          result.readers.push_back(
              {WorkerId(reader.reader()), reader.incarnation(), edges(reader.edges())});
        }
        return result;
      }
      case wire::FromCoordinator::kEndReads:
        return EndReads{get(v.end_reads())};
      case wire::FromCoordinator::kBegin:
        return Begin{get(v.begin().transfer()),
                     one_of(v.begin().destination(), Destination::Shadow, "a destination"),
                     sources(v.begin().sources()), edges(v.begin().edges())};
      case wire::FromCoordinator::kChange: {
        Change result{
            v.change().plan(), {}, edges(v.change().edges()), sources(v.change().sources())};
        for (const std::uint32_t stripe : v.change().drops()) result.drops.emplace_back(stripe);
        return result;
      }
      case wire::FromCoordinator::kStop:
        return Stop{v.stop().value()};
      case wire::FromCoordinator::kTell:
        return Tell{get(v.tell().version()), v.tell().n()};
      case wire::FromCoordinator::kNote:
        return Note{get(v.note().version()), v.note().withdrawn(), get(v.note().retention())};
      case wire::FromCoordinator::kLeaveNow:
        return LeaveNow{};
      case wire::FromCoordinator::KIND_NOT_SET:
        break;
    }
    bad("a message of a kind that is not known here");
  }

  template <class Message, class From>
  Frame<Message> frame(const From& v) {
    Frame<Message> result;
    result.key = {v.key().epoch(), v.key().incarnation()};
    result.sequence = v.sequence();
    result.acknowledged = v.acknowledged();
    if (v.has_message()) result.payload = std::make_shared<const Message>(message(v.message()));
    return result;
  }

 private:
  // A deadline from what was left of it.
  [[nodiscard]] Time until(std::int64_t left) const {
    const Time time(left);
    if (time == Time::never()) return time;
    constexpr Time kMost = seconds(std::int64_t{30} * 24 * 3600);
    if (time > kMost || time < Time(0) - kMost)
      bad("a deadline that is {} s away", Time(left).seconds());
    return now_ + time;
  }

  const Router* router_;
  std::map<PlanNumber, TransferRef>& received_;
  Time now_;
};

template <class Proto, class Result, class Read>
tl::expected<Result, BadFrame> decode(std::string_view bytes, const Read& read) {
  if (bytes.size() > kMostFrameBytes) {
    return tl::unexpected(BadFrame{
        fmt::format("a frame of {} bytes; {} are allowed", bytes.size(), kMostFrameBytes)});
  }
  Proto proto;
  if (!proto.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) {
    return tl::unexpected(BadFrame{"not a frame of this protocol"});
  }
  try {
    return read(proto);
  } catch (const BadFrame& problem) {
    return tl::unexpected(problem);
  }
}

}  // namespace

tl::expected<ToCoordinator, BadFrame> CatalogCodec::decode_to_coordinator(std::string_view bytes,
                                                                          Time now) {
  return decode<wire::ToCoordinator, ToCoordinator>(
      bytes, [&](const wire::ToCoordinator& proto) -> ToCoordinator {
        Decoder decoder(router_, received_, now);
        if (proto.kind_case() == wire::ToCoordinator::kHello) {
          return Hello{proto.hello().incarnation(),
                       std::make_shared<const WorkerReport>(decoder.get(proto.hello().report())),
                       proto.hello().greeting()};
        }
        if (proto.kind_case() != wire::ToCoordinator::kFrame) Decoder::bad("an empty frame");
        return decoder.frame<WorkerMessage>(proto.frame());
      });
}

tl::expected<ToWorker, BadFrame> CatalogCodec::decode_to_worker(std::string_view bytes, Time now) {
  return decode<wire::ToWorker, ToWorker>(bytes, [&](const wire::ToWorker& proto) -> ToWorker {
    Decoder decoder(router_, received_, now);
    switch (proto.kind_case()) {
      case wire::ToWorker::kWelcome:
        return Welcome{proto.welcome().epoch(), proto.welcome().incarnation(),
                       proto.welcome().generation()};
      case wire::ToWorker::kFenced:
        return FencedOff{proto.fenced().epoch(), proto.fenced().incarnation(),
                         proto.fenced().largest()};
      case wire::ToWorker::kUnknown:
        return UnknownSession{proto.unknown().epoch(), proto.unknown().incarnation()};
      case wire::ToWorker::kFrame:
        return decoder.frame<CoordinatorMessage>(proto.frame());
      case wire::ToWorker::KIND_NOT_SET:
        break;
    }
    Decoder::bad("an empty frame");
  });
}

}  // namespace holdfast::real
