#include "sim/storm_ports.hpp"

#include <algorithm>

#include "core/engine/digest.hpp"

namespace holdfast::sim {
namespace {

constexpr std::byte kPoison{0xa5};

}  // namespace

class StormPorts::Port final : public Transport {
 public:
  Port(StormPorts& ports, WorkerId self) : ports_(ports), self_(self) {}

  RegionId add_region(std::span<std::byte> memory, Bytes size) override {
    worker().regions.push_back(memory);
    return inner().add_region({}, size);
  }
  PeerId open(const Endpoint& endpoint, std::uint64_t nonce) override {
    const PeerId peer = inner().open(endpoint, nonce);
    worker().opened[peer] = {++ports_.openings_, endpoint.worker};
    return peer;
  }
  void close(PeerId peer) override {
    worker().opened.erase(peer);
    inner().close(peer);
  }
  [[nodiscard]] PeerLimits limits(PeerId peer) const override { return inner().limits(peer); }
  Access allow(WorkerId reader, Version version, RegionId region) override {
    return inner().allow(reader, version, region);
  }
  void revoke(WorkerId reader, Version version) override { inner().revoke(reader, version); }

  Posted read(const ReadRequest& request) override {
    const Posted posted = inner().read(request);
    if (posted != Posted::Posted) return posted;
    Read& read = worker().reads[request.id];
    read.number = ++ports_.reads_;
    read.region = request.region;
    read.pieces.assign(request.pieces.begin(), request.pieces.end());
    ReadMoment moment;
    moment.id = request.id;
    moment.source = worker().opened[request.peer].other;
    moment.reader = self_;
    ports_.show(ReadSight::Kind::Posted, moment, read);
    return posted;
  }
  void cancel(OpId id) override { ports_.cancel_later(self_, id); }

  bool send(PeerId peer, std::span<const std::byte> payload) override {
    if (payload.size() > kMaxMessage || worker().opened.count(peer) == 0) return false;
    const MessageFaults& faults = ports_.message_faults_;
    const bool lost = ports_.dice_.chance(faults.lost_per_mille);
    const bool doubled = ports_.dice_.chance(faults.doubled_per_mille);
    if (lost) return true;
    for (int copies = doubled ? 2 : 1; copies > 0; --copies) {
      ports_.send_later(self_, peer, payload);
    }
    return true;
  }

  std::size_t poll(std::span<TransportEvent> out) override {
    const std::size_t count = inner().poll(out);
    for (const TransportEvent& event : out.first(count)) {
      if (const auto* lost = std::get_if<PeerLost>(&event)) worker().opened.erase(lost->peer);
    }
    return count;
  }
  void wait(Time until) override { inner().wait(until); }
  [[nodiscard]] Time now() const override { return inner().now(); }

 private:
  [[nodiscard]] Worker& worker() { return ports_.workers_[self_.index()]; }
  [[nodiscard]] Transport& inner() const { return ports_.network_.transport(self_); }

  StormPorts& ports_;
  WorkerId self_;
};

class StormPorts::Store final : public Memory {
 public:
  Store(StormPorts& ports, WorkerId self) : ports_(ports), self_(self) {}

  void digest(JobId id, RegionId region, std::span<const Extent> extents) override {
    worker().jobs[id] = {Job::Kind::Digest, region, {extents.begin(), extents.end()}, {}, 0};
    inner().digest(id, region, extents);
  }
  void gather(JobId id, RegionId region, std::span<const Extent> extents, RegionId target,
              std::uint64_t target_offset) override {
    worker().jobs[id] = {
        Job::Kind::Gather, region, {extents.begin(), extents.end()}, target, target_offset};
    inner().gather(id, region, extents, target, target_offset);
  }
  void scatter(JobId id, RegionId source, std::uint64_t source_offset, RegionId region,
               std::span<const Extent> extents) override {
    worker().jobs[id] = {
        Job::Kind::Scatter, region, {extents.begin(), extents.end()}, source, source_offset};
    inner().scatter(id, source, source_offset, region, extents);
  }
  // The clock has not moved since they were done.
  std::size_t poll(std::span<JobDone> out) override {
    const std::size_t count = inner().poll(out);
    for (JobDone& done : out.first(count)) done.digest = ports_.finish(worker(), done.id);
    return count;
  }

 private:
  [[nodiscard]] Worker& worker() { return ports_.workers_[self_.index()]; }
  [[nodiscard]] Memory& inner() const { return ports_.network_.memory(self_); }

  StormPorts& ports_;
  WorkerId self_;
};

StormPorts::StormPorts(SimNetwork& network, std::size_t workers, std::uint64_t seed,
                       Time cancelling)
    : network_(network), dice_(seed, 0x51), cancelling_(cancelling), workers_(workers) {
  for (std::size_t w = 0; w < workers; ++w) {
    workers_[w].port = std::make_unique<Port>(*this, WorkerId(w));
    workers_[w].store = std::make_unique<Store>(*this, WorkerId(w));
  }
  network_.watch_reads([this](const ReadMoment& moment) { happen(moment); });
}

StormPorts::~StormPorts() {
  network_.watch_reads({});
}

Transport& StormPorts::transport(WorkerId worker) {
  return *workers_[worker.index()].port;
}
Memory& StormPorts::memory(WorkerId worker) {
  return *workers_[worker.index()].store;
}

void StormPorts::kill(WorkerId worker) {
  Worker& dead = workers_[worker.index()];
  dead.reads.clear();
  dead.jobs.clear();
  dead.opened.clear();
  dead.corrupt_after = 0;
  network_.kill(worker);
  dead.regions.clear();
}

void StormPorts::restart(WorkerId worker) {
  network_.restart(worker);
}

void StormPorts::corrupt(WorkerId source, std::uint64_t skip) {
  workers_[source.index()].corrupt_after = skip + 1;
}

// --- Reads ---------------------------------------------------------------------------------------

void StormPorts::happen(const ReadMoment& moment) {
  auto& reads = workers_[moment.reader.index()].reads;
  const auto found = reads.find(moment.id);
  if (found == reads.end()) return;  // of a reader that is being killed
  if (moment.kind == ReadMoment::Kind::Left) return take_from_source(moment, found->second);
  put_into_reader(moment, found->second);
  show(ReadSight::Kind::Ended, moment, found->second);
  reads.erase(found);
}

void StormPorts::take_from_source(const ReadMoment& moment, Read& read) {
  Worker& source = workers_[moment.source.index()];
  const std::span<std::byte> region = source.regions[moment.region.index()];
  read.bytes.clear();
  for (const Piece& piece : read.pieces) {
    const auto bytes = region.subspan(piece.remote_offset, piece.bytes);
    read.bytes.insert(read.bytes.end(), bytes.begin(), bytes.end());
  }
  show(ReadSight::Kind::Served, moment, read);
  const bool corrupt = source.corrupt_after != 0 && --source.corrupt_after == 0;
  if (!corrupt || read.bytes.empty()) return;
  read.bytes[dice_.below(read.bytes.size())] ^= static_cast<std::byte>(dice_.between(1, 255));
}

void StormPorts::put_into_reader(const ReadMoment& moment, Read& read) {
  if (moment.status == ReadStatus::OutOfRange) return;
  const std::span<std::byte> region = workers_[moment.reader.index()].regions[read.region.index()];
  std::size_t from = 0;
  for (const Piece& piece : read.pieces) {
    const auto into = region.subspan(piece.local_offset, piece.bytes);
    if (moment.status == ReadStatus::Ok) {
      std::copy_n(read.bytes.begin() + static_cast<std::ptrdiff_t>(from), into.size(),
                  into.begin());
    } else {
      std::fill(into.begin(), into.end(), kPoison);
    }
    from += into.size();
  }
  if (moment.status == ReadStatus::Ok) show(ReadSight::Kind::Arrived, moment, read);
}

void StormPorts::show(ReadSight::Kind kind, const ReadMoment& moment, const Read& read) {
  if (!watcher_) return;
  const bool served = kind == ReadSight::Kind::Served;
  watcher_({kind, moment.id, moment.source, moment.reader, moment.version, moment.region,
            read.region, read.pieces,
            served ? std::span<const std::byte>(read.bytes) : std::span<const std::byte>{}});
}

// Like a queue that has to be drained first.
void StormPorts::cancel_later(WorkerId reader, OpId id) {
  const auto& reads = workers_[reader.index()].reads;
  const auto found = reads.find(id);
  if (found == reads.end()) return;
  const Time delay = dice_.between(Time{}, cancelling_);
  if (delay == Time{}) {
    network_.transport(reader).cancel(id);
    return;
  }
  network_.call_at(network_.now() + delay, [this, reader, id, number = found->second.number] {
    const auto& open = workers_[reader.index()].reads;
    const auto at = open.find(id);
    if (at != open.end() && at->second.number == number) network_.transport(reader).cancel(id);
  });
}

// --- Words ---------------------------------------------------------------------------------------

void StormPorts::send_later(WorkerId from, PeerId peer, std::span<const std::byte> payload) {
  const Time delay = dice_.between(Time{}, message_faults_.jitter);
  if (delay == Time{}) {
    static_cast<void>(network_.transport(from).send(peer, payload));
    return;
  }
  const std::uint64_t opening = workers_[from.index()].opened[peer].number;
  network_.call_at(
      network_.now() + delay,
      [this, from, peer, opening, kept = std::vector<std::byte>(payload.begin(), payload.end())] {
        const auto& opened = workers_[from.index()].opened;
        const auto found = opened.find(peer);
        if (found == opened.end() || found->second.number != opening) return;
        static_cast<void>(network_.transport(from).send(peer, kept));
      });
}

// --- Jobs ----------------------------------------------------------------------------------------

// The digest; zero for other jobs.
std::uint64_t StormPorts::finish(Worker& worker, JobId id) {
  const auto found = worker.jobs.find(id);
  const Job job = std::move(found->second);
  worker.jobs.erase(found);
  const std::span<std::byte> region = worker.regions[job.region.index()];
  BlockDigester digester;
  std::uint64_t at = job.packed_offset;
  for (const Extent& extent : job.extents) {
    const auto part = region.subspan(extent.offset, extent.bytes);
    if (job.kind == Job::Kind::Digest) {
      digester.add(part);
      continue;
    }
    const auto packed = worker.regions[job.packed.index()].subspan(at, extent.bytes);
    at += extent.bytes;
    if (job.kind == Job::Kind::Gather) {
      std::copy(part.begin(), part.end(), packed.begin());
    } else {
      std::copy(packed.begin(), packed.end(), part.begin());
    }
  }
  return job.kind == Job::Kind::Digest ? digester.finish() : 0;
}

}  // namespace holdfast::sim
