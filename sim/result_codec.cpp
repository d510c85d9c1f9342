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

}  // namespace

std::vector<std::byte> encode_result(const SimulationResult& result) {
  Writer out;
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
  return std::move(out.bytes);
}

SimulationResult decode_result(std::span<const std::byte> bytes) {
  Reader in(bytes);
  SimulationResult result;
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
  in.end();
  return result;
}

}  // namespace holdfast::sim
