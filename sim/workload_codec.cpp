#include "sim/workload_codec.hpp"

#include "sim/byte_codec.hpp"

namespace holdfast::sim {
namespace {

void write(ByteWriter& out, const Version& version) {
  out.number(version.lineage);
  out.number(version.number);
}

Version read_version(ByteReader& in) {
  const std::uint64_t lineage = in.number();
  return {lineage, in.number()};
}

void write(ByteWriter& out, const GroupTime& group) {
  out.number(group.gpus);
  out.number(group.present.size());
  for (const Interval& present : group.present) {
    out.time(present.from);
    out.time(present.to);
  }
  out.number(group.waits.size());
  for (const Wait& wait : group.waits) {
    out.number(static_cast<std::uint64_t>(wait.part));
    out.time(wait.from);
    out.time(wait.to);
  }
}

GroupTime read_group(ByteReader& in) {
  GroupTime group;
  group.gpus = in.number();
  group.present.resize(in.count());
  for (Interval& present : group.present) {
    present.from = in.time();
    present.to = in.time();
  }
  group.waits.resize(in.count());
  for (Wait& wait : group.waits) {
    wait.part = static_cast<StallPart>(in.number());
    wait.from = in.time();
    wait.to = in.time();
  }
  return group;
}

void write(ByteWriter& out, const FetchRecord& fetch) {
  write(out, fetch.version);
  out.number(fetch.group);
  out.number(fetch.gpus);
  out.number(fetch.workers);
  out.number(fetch.in_place ? 1 : 0);
  out.number(fetch.generates ? 1 : 0);
  out.time(fetch.requested);
  out.time(fetch.ended);
  out.number(fetch.completed ? 1 : 0);
  out.time(fetch.bound);
}

FetchRecord read_fetch(ByteReader& in) {
  FetchRecord fetch;
  fetch.version = read_version(in);
  fetch.group = in.id();
  fetch.gpus = in.number();
  fetch.workers = in.id();
  fetch.in_place = in.number() != 0;
  fetch.generates = in.number() != 0;
  fetch.requested = in.time();
  fetch.ended = in.time();
  fetch.completed = in.number() != 0;
  fetch.bound = in.time();
  return fetch;
}

void write(ByteWriter& out, const WorkloadEvent& event) {
  out.time(event.at);
  out.number(static_cast<std::uint64_t>(event.kind));
  out.number(event.worker.value());
  out.number(event.percent);
  out.number(event.block.value());
  out.number(event.source.value());
  out.text(event.text);
}

WorkloadEvent read_event(ByteReader& in) {
  WorkloadEvent event;
  event.at = in.time();
  event.kind = static_cast<WorkloadEventKind>(in.number());
  event.worker = WorkerId(in.id());
  event.percent = in.id();
  event.block = BlockId(in.id());
  event.source = WorkerId(in.id());
  event.text = in.text();
  return event;
}

void write(ByteWriter& out, const WorkloadFailure& failure) {
  out.time(failure.at);
  out.text(failure.kind);
  out.text(failure.who);
  out.maybe(failure.detected_after);
  out.text(failure.consequence);
}

WorkloadFailure read_failure(ByteReader& in) {
  WorkloadFailure failure;
  failure.at = in.time();
  failure.kind = in.text();
  failure.who = in.text();
  failure.detected_after = in.maybe();
  failure.consequence = in.text();
  return failure;
}

void write(ByteWriter& out, const Held& held) {
  out.number(held.group.value());
  write(out, held.version);
  out.time(held.from);
  out.time(held.to);
}

Held read_held(ByteReader& in) {
  Held held;
  held.group = GroupId(in.id());
  held.version = read_version(in);
  held.from = in.time();
  held.to = in.time();
  return held;
}

template <class T>
void write_all(ByteWriter& out, const std::vector<T>& values) {
  out.number(values.size());
  for (const T& value : values) write(out, value);
}

template <class T, class Read>
std::vector<T> read_all(ByteReader& in, const Read& read) {
  std::vector<T> values(in.count());
  for (T& value : values) value = read(in);
  return values;
}

}  // namespace

std::vector<std::byte> encode_outcome(const WorkloadOutcome& outcome) {
  ByteWriter out;
  out.time(outcome.length);
  out.number(static_cast<std::uint64_t>(outcome.driver));
  write_all(out, outcome.groups);
  write_all(out, outcome.fetches);
  write_all(out, outcome.held);
  out.number(outcome.memory_from.size());
  for (const Time from : outcome.memory_from) out.time(from);
  write_all(out, outcome.failures);
  write_all(out, outcome.events);
  for (const Bytes bytes : {outcome.moved.gpu, outcome.moved.nic, outcome.moved.wan}) {
    out.number(bytes.count());
  }
  out.number(outcome.deliveries);
  write_channels(out, outcome.channels);
  out.number(outcome.plans.size());
  for (const Hash128& plan : outcome.plans) {
    out.number(plan.high);
    out.number(plan.low);
  }
  for (const std::uint64_t number :
       {outcome.stripes, outcome.edges, std::uint64_t{outcome.versions}, outcome.finished,
        outcome.stale, outcome.lost}) {
    out.number(number);
  }
  out.number(outcome.failure ? 1 : 0);
  if (outcome.failure) out.text(*outcome.failure);
  return std::move(out.bytes);
}

WorkloadOutcome decode_outcome(std::span<const std::byte> bytes) {
  ByteReader in(bytes);
  WorkloadOutcome outcome;
  outcome.length = in.time();
  outcome.driver = static_cast<FlowDriver>(in.number());
  outcome.groups = read_all<GroupTime>(in, read_group);
  outcome.fetches = read_all<FetchRecord>(in, read_fetch);
  outcome.held = read_all<Held>(in, read_held);
  outcome.memory_from.resize(in.count());
  for (Time& from : outcome.memory_from) from = in.time();
  outcome.failures = read_all<WorkloadFailure>(in, read_failure);
  outcome.events = read_all<WorkloadEvent>(in, read_event);
  for (Bytes* moved : {&outcome.moved.gpu, &outcome.moved.nic, &outcome.moved.wan}) {
    *moved = Bytes(in.number());
  }
  outcome.deliveries = in.number();
  outcome.channels = read_channels(in);
  outcome.plans.resize(in.count());
  for (Hash128& plan : outcome.plans) {
    plan.high = in.number();
    plan.low = in.number();
  }
  outcome.stripes = in.number();
  outcome.edges = in.number();
  outcome.versions = in.id();
  outcome.finished = in.number();
  outcome.stale = in.number();
  outcome.lost = in.number();
  if (in.number() != 0) outcome.failure = in.text();
  in.end();
  return outcome;
}

}  // namespace holdfast::sim
