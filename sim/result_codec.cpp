#include "sim/result_codec.hpp"

#include <cstring>

#include "core/error.hpp"

namespace holdfast::sim {
namespace {

class Writer {
 public:
  void number(std::uint64_t value) {
    const auto* first = reinterpret_cast<const std::byte*>(&value);
    bytes.insert(bytes.end(), first, first + sizeof(value));
  }
  void text(const std::string& value) {
    number(value.size());
    const auto* first = reinterpret_cast<const std::byte*>(value.data());
    bytes.insert(bytes.end(), first, first + value.size());
  }
  void time(Time value) { number(static_cast<std::uint64_t>(value.picoseconds())); }

  std::vector<std::byte> bytes;
};

class Reader {
 public:
  explicit Reader(std::span<const std::byte> bytes) : bytes_(bytes) {}

  std::uint64_t number() {
    std::uint64_t value = 0;
    std::memcpy(&value, take(sizeof(value)).data(), sizeof(value));
    return value;
  }
  std::uint32_t id() { return static_cast<std::uint32_t>(number()); }
  Time time() { return Time(static_cast<std::int64_t>(number())); }
  std::string text() {
    const auto part = take(number());
    return {reinterpret_cast<const char*>(part.data()), part.size()};
  }
  // A number of entries, each of which takes at least eight bytes.
  std::size_t count() {
    const std::uint64_t value = number();
    if (value > bytes_.size() / sizeof(std::uint64_t)) refuse();
    return value;
  }
  void end() const {
    if (!bytes_.empty()) refuse();
  }

 private:
  std::span<const std::byte> take(std::uint64_t size) {
    if (size > bytes_.size()) refuse();
    const auto part = bytes_.first(size);
    bytes_ = bytes_.subspan(size);
    return part;
  }
  [[noreturn]] static void refuse() {
    throw Error(ErrorCode::BadSyntax, "the simulation process sent an incomplete result");
  }
  std::span<const std::byte> bytes_;
};

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
  out.number(result.channels.size());
  for (const ChannelUse& use : result.channels) {
    out.number(use.channel.value());
    out.number(use.total.count());
    out.number(use.bins.size());
    for (const Bytes bin : use.bins) out.number(bin.count());
  }
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
  result.channels.resize(in.count());
  for (ChannelUse& use : result.channels) {
    use.channel = ChannelId(in.id());
    use.total = Bytes(in.number());
    use.bins.resize(in.count());
    for (Bytes& bin : use.bins) bin = Bytes(in.number());
  }
  result.events.resize(in.count());
  for (TraceEvent& event : result.events) event = read_event(in);
  if (in.number() != 0) result.failure = in.text();
  if (in.number() != 0) result.plan = read_plan(in);
  in.end();
  return result;
}

}  // namespace holdfast::sim
