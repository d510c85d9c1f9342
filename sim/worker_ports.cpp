#include "sim/worker_ports.hpp"

#include <algorithm>

namespace holdfast::sim {
namespace {

// Moves from `queue`, of which the first `taken` are gone already, to `out`.
template <class T>
std::size_t take(std::vector<T>& queue, std::size_t& taken, std::span<T> out) {
  const std::size_t count = std::min(out.size(), queue.size() - taken);
  std::move(queue.begin() + static_cast<std::ptrdiff_t>(taken),
            queue.begin() + static_cast<std::ptrdiff_t>(taken + count), out.begin());
  taken += count;
  if (taken == queue.size()) {
    queue.clear();
    taken = 0;
  }
  return count;
}

}  // namespace

RegionId SimTransport::add_region(std::span<std::byte> /*memory*/, Bytes size) {
  std::vector<Bytes>& regions = state_.workers[self_.index()].regions;
  regions.push_back(size);
  return RegionId(regions.size() - 1);
}
PeerId SimTransport::open(const Endpoint& endpoint, std::uint64_t /*nonce*/) {
  return state_.open(self_, endpoint);
}
void SimTransport::close(PeerId peer) {
  state_.close(self_, peer);
}
PeerLimits SimTransport::limits(PeerId /*peer*/) const {
  return kLimits;
}
Access SimTransport::allow(WorkerId reader, Version version, RegionId region) {
  return state_.allow(self_, reader, version, region);
}
void SimTransport::revoke(WorkerId reader, Version version) {
  state_.revoke(self_, reader, version);
}
Posted SimTransport::read(const ReadRequest& request) {
  return state_.read(self_, request);
}
void SimTransport::cancel(OpId id) {
  state_.cancel(self_, id);
}
bool SimTransport::send(PeerId peer, std::span<const std::byte> payload) {
  return state_.send(self_, peer, payload);
}
std::size_t SimTransport::poll(std::span<TransportEvent> out) {
  WorkerState& worker = state_.workers[self_.index()];
  return take(worker.events, worker.taken, out);
}
void SimTransport::wait(Time until) {
  state_.wait(self_, until);
}

// Jobs queue behind each other: a busy period's end follows from its first start and the sum of its
// bytes.
void SimMemory::digest(JobId id, RegionId /*region*/, std::span<const Extent> extents) {
  WorkerState& worker = state_.workers[self_.index()];
  const Time now = state_.flows.now();
  Bytes bytes;
  for (const Extent& extent : extents) bytes += Bytes(extent.bytes);
  if (worker.digest_rate == Rate(0)) {
    state_.job(self_, id, now);
    return;
  }
  if (worker.busy_since + transfer_time(worker.busy_bytes, worker.digest_rate) <= now) {
    worker.busy_since = now;
    worker.busy_bytes = Bytes(0);
  }
  worker.busy_bytes += bytes;
  state_.job(self_, id, worker.busy_since + transfer_time(worker.busy_bytes, worker.digest_rate));
}

void SimMemory::gather(JobId id, RegionId /*region*/, std::span<const Extent> /*extents*/,
                       RegionId /*target*/, std::uint64_t /*target_offset*/) {
  state_.job(self_, id, state_.flows.now());
}
void SimMemory::scatter(JobId id, RegionId /*source*/, std::uint64_t /*source_offset*/,
                        RegionId /*region*/, std::span<const Extent> /*extents*/) {
  state_.job(self_, id, state_.flows.now());
}
std::size_t SimMemory::poll(std::span<JobDone> out) {
  WorkerState& worker = state_.workers[self_.index()];
  return take(worker.jobs, worker.jobs_taken, out);
}

}  // namespace holdfast::sim
