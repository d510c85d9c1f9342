#include "real/control/catalog_codec.hpp"
#include "real/control/catalog_wire.hpp"

namespace holdfast::real {
namespace {

// Writes values into messages. `told`: transfers whose bodies have crossed.
class Encoder {
 public:
  Encoder(std::set<std::pair<PlanNumber, std::uint32_t>>& told, Time now)
      : told_(told), now_(now) {}

  void put(const Version& v, wire::Version& out) {
    out.set_lineage(v.lineage);
    out.set_number(v.number);
  }
  void put(const Hash128& v, wire::Hash& out) {
    out.set_high(v.high);
    out.set_low(v.low);
  }
  void put(const ShardId& v, wire::Shard& out) {
    out.set_layout(v.layout);
    out.set_rank(v.rank);
  }
  void put(const Retention& v, wire::Retention& out) {
    out.set_copies(v.copies);
    out.set_level(static_cast<std::uint32_t>(v.level));
  }
  void put(const Path& v, wire::Path& out) {
    out.set_source_port(v.source_port.value());
    out.set_destination_port(v.destination_port.value());
    out.set_stream(v.stream);
  }
  void put(const BlockSet& v, wire::Blocks& out) {
    out.set_size(v.size());
    for (const std::uint64_t word : v.words()) out.add_words(word);
  }
  void put(const std::shared_ptr<const std::vector<std::uint64_t>>& v, wire::Digests& out) {
    for (const std::uint64_t digest : *v) out.add_values(digest);
  }
  void put(const LiveEdge& v, wire::Edge& out) {
    out.set_stripe(v.stripe.value());
    out.set_child(v.child.value());
    out.set_parent(v.parent.value());
    out.set_alternate(v.alternate.value());
    out.set_from_block(v.from_block);
    out.set_window(v.window);
    put(v.path, *out.mutable_path());
    put(v.alternate_path, *out.mutable_alternate_path());
    out.set_parent_has_all(v.parent_has_all);
    out.set_alternate_has_all(v.alternate_has_all);
    out.set_have_interval(v.have_interval.picoseconds());
  }
  void put(const WorkerCard& v, wire::Card& out) {
    out.set_node(v.node.value());
    out.set_space(v.space.value());
    out.set_host_memory(v.host_memory);
    out.set_reliable(v.reliable);
    out.set_group(v.group.value());
    put(v.shard, *out.mutable_shard());
    out.set_slots(v.slots);
    out.set_budget(v.budget.count());
    out.set_address(v.address);
  }
  void put(const FetchCall& v, wire::FetchCall& out) {
    if (v.version) put(*v.version, *out.mutable_version());
    out.set_destination(static_cast<std::uint32_t>(v.destination));
    out.set_on_newer(static_cast<std::uint32_t>(v.on_newer));
  }
  void put(const BlockSpan& v, wire::Span& out) {
    out.set_first(v.first.value());
    out.set_count(v.count);
  }
  void put(const CallResult& v, wire::Result& out) {
    out.set_status(static_cast<std::uint32_t>(v.status));
    put(v.version, *out.mutable_version());
    put(v.root, *out.mutable_root());
    for (const WorkerId who : v.who) out.add_who(who.value());
    put(v.shard, *out.mutable_shard());
    for (const BlockSpan& span : v.lost) put(span, *out.add_lost());
    out.set_revoked(v.revoked);
    out.set_safe(v.safe);
    out.set_reason(v.reason);
  }
  void put(const Decision& v, wire::Decision& out) {
    out.set_n(v.n);
    out.set_generation(v.generation);
    put(v.call, *out.mutable_call());
    put(v.result, *out.mutable_result());
    out.set_finished(v.finished);
    put(v.end, *out.mutable_end());
  }
  void put(const ReadGrant& v, wire::ReadGrant& out) {
    out.set_reader(v.reader.value());
    out.set_incarnation(v.incarnation);
    put(v.version, *out.mutable_version());
    out.set_plan(v.plan);
  }
  void put(const Holding& v, wire::Holding& out) {
    put(v.version, *out.mutable_version());
    put(v.root, *out.mutable_root());
    put(v.shard, *out.mutable_shard());
    out.set_state(static_cast<std::uint32_t>(v.state));
    put(v.verified, *out.mutable_verified());
    out.set_withdrawn(v.withdrawn);
    out.set_runs(v.runs);
    put(v.retention, *out.mutable_retention());
    if (v.digests) put(v.digests, *out.mutable_digests());
  }
  void put(const Plan& v, wire::Plan& out) {
    out.set_format(v.format);
    put(v.topology, *out.mutable_topology());
    put(v.demand, *out.mutable_demand());
    for (const Stripe& stripe : v.stripes) {
      wire::Stripe& s = *out.add_stripes();
      s.set_block_class(stripe.block_class.value());
      s.set_first(stripe.blocks.first);
      s.set_step(stripe.blocks.step);
      s.set_end(stripe.blocks.end);
      for (const Edge& edge : stripe.edges) {
        wire::PlanEdge& e = *s.add_edges();
        e.set_child(edge.child.value());
        e.set_parent(edge.parent.value());
        e.set_alternate(edge.alternate.value());
        put(edge.path, *e.mutable_path());
        e.set_window(edge.window);
      }
    }
  }
  void put(const Demand& v, wire::Demand& out) {
    out.set_model(v.model);
    put(v.version, *out.mutable_version());
    out.set_block_size(v.block_size.count());
    out.set_verify(v.verify);
    for (const Bytes bytes : v.block_bytes) out.add_block_bytes(bytes.count());
    for (const DemandWorker& worker : v.workers) {
      wire::DemandWorker& w = *out.add_workers();
      w.set_node(worker.node.value());
      w.set_group(worker.group);
      w.set_memory_free(worker.memory_free.count());
      w.set_may_serve(worker.may_serve);
    }
    for (const BlockClass& c : v.classes) {
      wire::BlockClass& to = *out.add_classes();
      for (const BlockSpan& span : c.blocks) put(span, *to.add_blocks());
      for (const WorkerId id : c.holders) to.add_holders(id.value());
      for (const WorkerId id : c.receivers) to.add_receivers(id.value());
    }
  }
  void put(const TransferRef& v, wire::Transfer& out) {
    out.set_id(v->id);
    if (!told_.emplace(v->id, v->revision).second) return;
    wire::TransferBody& body = *out.mutable_body();
    body.set_space(v->space.value());
    body.set_revision(v->revision);
    put(v->version, *body.mutable_version());
    put(v->root, *body.mutable_root());
    put(v->retention, *body.mutable_retention());
    put(*v->demand, *body.mutable_demand());
    put(*v->plan, *body.mutable_plan());
    for (std::uint32_t b = 0; b < v->demand->block_bytes.size(); ++b) {
      body.add_digests(v->tables->digest(BlockId(b)));
    }
    for (const ShardId& shard : v->shards) put(shard, *body.add_shards());
    for (const std::string& address : v->addresses) body.add_addresses(address);
  }
  void put(const WorkerReport& v, wire::Report& out) {
    put(v.card, *out.mutable_card());
    out.set_epoch(v.epoch);
    out.set_lineage(v.lineage);
    out.set_generation(v.generation);
    out.set_over(v.over);
    put(v.decision, *out.mutable_decision());
    if (v.fetch) {
      out.mutable_fetch()->set_n(v.fetch->n);
      put(v.fetch->call, *out.mutable_fetch()->mutable_call());
      out.mutable_fetch()->set_deadline(left(v.fetch->deadline));
    }
    for (const Holding& holding : v.holdings) put(holding, *out.add_holdings());
    for (const ReadGrant& grant : v.grants) put(grant, *out.add_grants());
    for (const OpenTransfer& open : v.transfers) {
      wire::OpenTransfer& to = *out.add_transfers();
      put(open.transfer, *to.mutable_transfer());
      for (const LiveEdge& edge : open.edges) put(edge, *to.add_edges());
      to.set_stopping(open.stopping);
    }
    out.set_leaving(v.leaving);
  }

  // --- Worker messages ------------------------------------------------------------------------
  void message(const Publish& m, wire::FromWorker& out) {
    wire::Publish& to = *out.mutable_publish();
    to.set_call(m.call);
    put(m.version, *to.mutable_version());
    put(m.digests, *to.mutable_digests());
    to.set_deadline(left(m.deadline));
  }
  void call(CallId call, const Version& version, Time deadline, wire::CallOnVersion& to) {
    to.set_call(call);
    put(version, *to.mutable_version());
    to.set_deadline(left(deadline));
  }
  void message(const AskUnpublish& m, wire::FromWorker& out) {
    call(m.call, m.version, m.deadline, *out.mutable_unpublish());
  }
  void message(const AskFetch& m, wire::FromWorker& out) {
    wire::AskFetch& to = *out.mutable_fetch();
    to.set_n(m.n);
    to.set_generation(m.generation);
    put(m.call, *to.mutable_call());
    to.set_deadline(left(m.deadline));
  }
  void message(const AskCancel& m, wire::FromWorker& out) { out.mutable_cancel()->set_value(m.n); }
  void message(const AskWithdraw& m, wire::FromWorker& out) {
    call(m.call, m.version, Time::never(), *out.mutable_withdraw());
  }
  void message(const AskRetain& m, wire::FromWorker& out) {
    wire::AskRetain& to = *out.mutable_retain();
    to.set_call(m.call);
    put(m.version, *to.mutable_version());
    put(m.retention, *to.mutable_retention());
    to.set_deadline(left(m.deadline));
  }
  void message(const AskRelease& m, wire::FromWorker& out) {
    call(m.call, m.version, Time::never(), *out.mutable_release());
  }
  void message(const AskInstalled& m, wire::FromWorker& out) {
    wire::AskInstalled& to = *out.mutable_installed();
    to.set_call(m.call);
    put(m.version, *to.mutable_version());
    put(m.root, *to.mutable_root());
    to.set_groups(m.groups);
    to.set_deadline(left(m.deadline));
  }
  void message(const AskLineage& m, wire::FromWorker& out) {
    out.mutable_lineage()->set_value(m.call);
  }
  void message(const AskLeave& m, wire::FromWorker& out) {
    out.mutable_leave()->set_value(m.call);
    out.mutable_leave()->set_deadline(left(m.deadline));
  }
  void message(const CallEnded& m, wire::FromWorker& out) {
    out.mutable_call_ended()->set_value(m.call);
  }
  void message(const Cleared& m, wire::FromWorker& out) {
    put(m.version, *out.mutable_cleared()->mutable_version());
    out.mutable_cleared()->set_revoked(m.revoked);
  }
  void message(const ClearFailed& m, wire::FromWorker& out) {
    put(m.version, *out.mutable_clear_failed()->mutable_version());
    for (const WorkerId id : m.readers) out.mutable_clear_failed()->add_readers(id.value());
  }
  void message(const Granted& m, wire::FromWorker& out) {
    wire::Granted& to = *out.mutable_granted();
    to.set_plan(m.plan);
    for (const WorkerId id : m.readers) to.add_readers(id.value());
    for (const Access& access : m.access) to.add_access(access.bytes.data(), access.size);
    for (const WorkerId id : m.refused) to.add_refused(id.value());
  }
  void message(const GrantsGone& m, wire::FromWorker& out) {
    out.mutable_grants_gone();
    for (const ReadGrant& grant : m.grants) put(grant, *out.mutable_grants_gone()->add_grants());
  }
  void message(const Progress& m, wire::FromWorker& out) {
    wire::Progress& to = *out.mutable_progress();
    to.set_plan(m.plan);
    put(m.version, *to.mutable_version());
    put(m.verified, *to.mutable_verified());
    to.set_told(m.told);
    to.set_n(m.n);
  }
  void message(const Filled& m, wire::FromWorker& out) {
    out.mutable_filled()->set_plan(m.plan);
    put(m.version, *out.mutable_filled()->mutable_version());
  }
  void message(const TransferStopped& m, wire::FromWorker& out) {
    wire::Progress& to = *out.mutable_stopped();
    to.set_plan(m.plan);
    put(m.version, *to.mutable_version());
    put(m.verified, *to.mutable_verified());
  }
  void message(const Switched& m, wire::FromWorker& out) {
    wire::StripeNews& to = *out.mutable_switched();
    to.set_plan(m.plan);
    to.set_stripe(m.stripe.value());
    to.set_from(m.from.value());
    to.set_to(m.to.value());
    to.set_cause(static_cast<std::uint32_t>(m.cause));
  }
  void message(const ParentWanted& m, wire::FromWorker& out) {
    wire::StripeNews& to = *out.mutable_parent_wanted();
    to.set_plan(m.plan);
    to.set_stripe(m.stripe.value());
    to.set_first_missing(m.first_missing);
    to.set_from(m.lost.value());
    to.set_cause(static_cast<std::uint32_t>(m.cause));
  }
  void message(const SourceIsSlow& m, wire::FromWorker& out) {
    wire::StripeNews& to = *out.mutable_slow();
    to.set_plan(m.plan);
    to.set_stripe(m.stripe.value());
    to.set_from(m.source.value());
  }

  // --- Coordinator messages -------------------------------------------------------------------
  void message(const Answer& m, wire::FromCoordinator& out) {
    out.mutable_answer()->set_call(m.call);
    put(m.result, *out.mutable_answer()->mutable_result());
  }
  void message(const Decided& m, wire::FromCoordinator& out) {
    put(m.decision, *out.mutable_decided());
  }
  void message(const FetchDone& m, wire::FromCoordinator& out) {
    out.mutable_done()->set_n(m.n);
    out.mutable_done()->set_generation(m.generation);
    put(m.result, *out.mutable_done()->mutable_result());
  }
  void message(const GenerationIs& m, wire::FromCoordinator& out) {
    out.mutable_generation()->set_value(m.generation);
  }
  void message(const Clear& m, wire::FromCoordinator& out) {
    wire::ClearOrder& to = *out.mutable_clear();
    put(m.version, *to.mutable_version());
    to.set_reason(static_cast<std::uint32_t>(m.reason));
    to.set_on_deadline(static_cast<std::uint32_t>(m.on_deadline));
    to.set_deadline(left(m.deadline));
  }
  void message(const Unhide& m, wire::FromCoordinator& out) {
    put(m.version, *out.mutable_unhide());
  }
  void message(const GrantReads& m, wire::FromCoordinator& out) {
    wire::GrantReads& to = *out.mutable_grant_reads();
    put(m.transfer, *to.mutable_transfer());
    for (const GrantedReader& reader : m.readers) {
      wire::Reader& r = *to.add_readers();
      r.set_reader(reader.reader.value());
      r.set_incarnation(reader.incarnation);
      for (const LiveEdge& edge : reader.edges) put(edge, *r.add_edges());
    }
  }
  void message(const EndReads& m, wire::FromCoordinator& out) {
    out.mutable_end_reads();
    for (const ReadGrant& grant : m.grants) put(grant, *out.mutable_end_reads()->add_grants());
  }
  void put(const SourceAccess& v, wire::SourceAccess& out) {
    out.set_source(v.source.value());
    out.set_access(v.access.bytes.data(), v.access.size);
  }
  void message(const Begin& m, wire::FromCoordinator& out) {
    wire::Begin& to = *out.mutable_begin();
    put(m.transfer, *to.mutable_transfer());
    to.set_destination(static_cast<std::uint32_t>(m.destination));
    for (const SourceAccess& source : m.sources) put(source, *to.add_sources());
    for (const LiveEdge& edge : m.edges) put(edge, *to.add_edges());
  }
  void message(const Change& m, wire::FromCoordinator& out) {
    wire::Change& to = *out.mutable_change();
    to.set_plan(m.plan);
    for (const StripeId stripe : m.drops) to.add_drops(stripe.value());
    for (const LiveEdge& edge : m.edges) put(edge, *to.add_edges());
    for (const SourceAccess& source : m.sources) put(source, *to.add_sources());
  }
  void message(const Stop& m, wire::FromCoordinator& out) { out.mutable_stop()->set_value(m.plan); }
  void message(const Tell& m, wire::FromCoordinator& out) {
    put(m.version, *out.mutable_tell()->mutable_version());
    out.mutable_tell()->set_n(m.n);
  }
  void message(const Note& m, wire::FromCoordinator& out) {
    put(m.version, *out.mutable_note()->mutable_version());
    out.mutable_note()->set_withdrawn(m.withdrawn);
    put(m.retention, *out.mutable_note()->mutable_retention());
  }
  void message(const LeaveNow& /*m*/, wire::FromCoordinator& out) { out.set_leave_now(true); }

  template <class Message, class Out>
  void frame(const Frame<Message>& v, Out& out) {
    out.mutable_key()->set_epoch(v.key.epoch);
    out.mutable_key()->set_incarnation(v.key.incarnation);
    out.set_sequence(v.sequence);
    out.set_acknowledged(v.acknowledged);
    if (!v.payload) return;
    std::visit([&](const auto& m) { message(m, *out.mutable_message()); }, *v.payload);
  }

 private:
  // What is left until a deadline.
  [[nodiscard]] std::int64_t left(Time deadline) const {
    return (deadline == Time::never() ? deadline : deadline - now_).picoseconds();
  }

  std::set<std::pair<PlanNumber, std::uint32_t>>& told_;
  Time now_;
};

}  // namespace

std::string CatalogCodec::encode(const ToCoordinator& frame, Time now) {
  wire::ToCoordinator out;
  Encoder encoder(told_, now);
  if (const auto* hello = std::get_if<Hello>(&frame)) {
    out.mutable_hello()->set_incarnation(hello->incarnation);
    out.mutable_hello()->set_greeting(hello->greeting);
    encoder.put(*hello->report, *out.mutable_hello()->mutable_report());
  } else {
    encoder.frame(std::get<WorkerFrame>(frame), *out.mutable_frame());
  }
  return out.SerializeAsString();
}

std::string CatalogCodec::encode(const ToWorker& frame, Time now) {
  wire::ToWorker out;
  Encoder encoder(told_, now);
  if (const auto* welcome = std::get_if<Welcome>(&frame)) {
    out.mutable_welcome()->set_epoch(welcome->epoch);
    out.mutable_welcome()->set_incarnation(welcome->incarnation);
    out.mutable_welcome()->set_generation(welcome->generation);
  } else if (const auto* fenced = std::get_if<FencedOff>(&frame)) {
    out.mutable_fenced()->set_epoch(fenced->epoch);
    out.mutable_fenced()->set_incarnation(fenced->incarnation);
    out.mutable_fenced()->set_largest(fenced->largest);
  } else if (const auto* unknown = std::get_if<UnknownSession>(&frame)) {
    out.mutable_unknown()->set_epoch(unknown->epoch);
    out.mutable_unknown()->set_incarnation(unknown->incarnation);
  } else {
    encoder.frame(std::get<CoordinatorFrame>(frame), *out.mutable_frame());
  }
  return out.SerializeAsString();
}

}  // namespace holdfast::real
