#include "sim/result_codec.hpp"

#include "sim/byte_codec.hpp"

namespace holdfast::sim {
namespace {

using Writer = ByteWriter;
using Reader = ByteReader;

void write(Writer& out, const TraceEvent& event) {
  out.time(event.at);
  out.number(static_cast<std::uint64_t>(event.kind));
  out.number(event.worker.value());
  out.number(event.percent);
  out.number(event.stripe.value());
  out.number(event.block.value());
  out.number(event.source.value());
  out.text(event.text);
}

TraceEvent read_event(Reader& in) {
  TraceEvent event;
  event.at = in.time();
  event.kind = static_cast<TraceKind>(in.number());
  event.worker = WorkerId(in.id());
  event.percent = in.id();
  event.stripe = StripeId(in.id());
  event.block = BlockId(in.id());
  event.source = WorkerId(in.id());
  event.text = in.text();
  return event;
}

void write(Writer& out, const Hash128& hash) {
  out.number(hash.high);
  out.number(hash.low);
}

void write(Writer& out, const Plan& plan) {
  out.number(plan.format);
  write(out, plan.topology);
  write(out, plan.demand);
  out.number(plan.stripes.size());
  for (const Stripe& stripe : plan.stripes) {
    out.number(stripe.block_class.value());
    out.number(stripe.blocks.first);
    out.number(stripe.blocks.step);
    out.number(stripe.blocks.end);
    out.number(stripe.edges.size());
    for (const Edge& edge : stripe.edges) {
      out.number(edge.child.value());
      out.number(edge.parent.value());
      out.number(edge.alternate.value());
      out.number(edge.path.source_port.value());
      out.number(edge.path.destination_port.value());
      out.number(edge.path.stream);
      out.number(edge.window);
    }
  }
}

Edge read_edge(Reader& in) {
  Edge edge;
  edge.child = WorkerId(in.id());
  edge.parent = WorkerId(in.id());
  edge.alternate = WorkerId(in.id());
  edge.path.source_port = NodeId(in.id());
  edge.path.destination_port = NodeId(in.id());
  edge.path.stream = in.id();
  edge.window = in.id();
  return edge;
}

Plan read_plan(Reader& in) {
  Plan plan;
  plan.format = in.id();
  for (Hash128* hash : {&plan.topology, &plan.demand}) {
    hash->high = in.number();
    hash->low = in.number();
  }
  plan.stripes.resize(in.count());
  for (Stripe& stripe : plan.stripes) {
    stripe.block_class = ClassId(in.id());
    stripe.blocks.first = in.id();
    stripe.blocks.step = in.id();
    stripe.blocks.end = in.id();
    stripe.edges.resize(in.count());
    for (Edge& edge : stripe.edges) edge = read_edge(in);
  }
  return plan;
}

}  // namespace

void write_channels(ByteWriter& out, const std::vector<ChannelUse>& channels) {
  out.number(channels.size());
  for (const ChannelUse& use : channels) {
    out.number(use.channel.value());
    out.number(use.total.count());
    out.number(use.bins.size());
    for (const Bytes bin : use.bins) out.number(bin.count());
  }
}

std::vector<ChannelUse> read_channels(ByteReader& in) {
  std::vector<ChannelUse> channels(in.count());
  for (ChannelUse& use : channels) {
    use.channel = ChannelId(in.id());
    use.total = Bytes(in.number());
    use.bins.resize(in.count());
    for (Bytes& bin : use.bins) bin = Bytes(in.number());
  }
  return channels;
}

std::vector<std::byte> encode_result(const SimulationResult& result) {
  Writer out;
  out.number(static_cast<std::uint64_t>(result.sharing));
  out.time(result.sharing_step);
  out.time(result.makespan);
  out.number(result.completed.size());
  for (const Time time : result.completed) out.time(time);
  out.number(result.moved.gpu.count());
  out.number(result.moved.nic.count());
  out.number(result.moved.wan.count());
  out.number(result.deliveries);
  write_channels(out, result.channels);
  out.number(result.events.size());
  for (const TraceEvent& event : result.events) write(out, event);
  out.number(result.failure ? 1 : 0);
  if (result.failure) out.text(*result.failure);
  out.number(result.plan ? 1 : 0);
  if (result.plan) write(out, *result.plan);
  return std::move(out.bytes);
}

SimulationResult decode_result(std::span<const std::byte> bytes) {
  Reader in(bytes);
  SimulationResult result;
  result.sharing = static_cast<Sharing>(in.number());
  result.sharing_step = in.time();
  result.makespan = in.time();
  result.completed.resize(in.count());
  for (Time& time : result.completed) time = in.time();
  result.moved.gpu = Bytes(in.number());
  result.moved.nic = Bytes(in.number());
  result.moved.wan = Bytes(in.number());
  result.deliveries = in.number();
  result.channels = read_channels(in);
  result.events.resize(in.count());
  for (TraceEvent& event : result.events) event = read_event(in);
  if (in.number() != 0) result.failure = in.text();
  if (in.number() != 0) result.plan = read_plan(in);
  in.end();
  return result;
}

}  // namespace holdfast::sim
