#include <algorithm>

#include "core/engine/digest.hpp"
#include "core/engine/virtual_state.hpp"

namespace holdfast::virtual_network {
namespace {

std::span<std::byte> part(const Worker& worker, RegionId region, const Extent& extent) {
  const std::span<std::byte> memory = worker.regions[region.index()].memory;
  return memory.empty() ? memory : memory.subspan(extent.offset, extent.bytes);
}

// Zero for a region that has only a size.
std::uint64_t digest_of(const Worker& worker, const Job& job) {
  if (worker.regions[job.region.index()].memory.empty()) return 0;
  BlockDigester digester;
  for (const Extent& extent : job.extents) digester.add(part(worker, job.region, extent));
  return digester.finish();
}

void move(const Worker& worker, const Job& job, bool gather) {
  std::uint64_t at = job.target_offset;
  for (const Extent& extent : job.extents) {
    const auto scattered = part(worker, job.region, extent);
    const auto packed = part(worker, job.target, {at, extent.bytes});
    if (scattered.empty() || packed.empty()) return;
    if (gather) {
      std::copy(scattered.begin(), scattered.end(), packed.begin());
    } else {
      std::copy(packed.begin(), packed.end(), scattered.begin());
    }
    at += extent.bytes;
  }
}

}  // namespace

void VirtualMemory::digest(JobId id, RegionId region, std::span<const Extent> extents) {
  Job job;
  job.id = id;
  job.region = region;
  job.extents.assign(extents.begin(), extents.end());
  state_.submit(self_, std::move(job));
}

void VirtualMemory::gather(JobId id, RegionId region, std::span<const Extent> extents,
                           RegionId target, std::uint64_t target_offset) {
  state_.submit(
      self_,
      {id, region, {extents.begin(), extents.end()}, target, target_offset, Job::Kind::Gather});
}

void VirtualMemory::scatter(JobId id, RegionId source, std::uint64_t source_offset, RegionId region,
                            std::span<const Extent> extents) {
  state_.submit(
      self_,
      {id, region, {extents.begin(), extents.end()}, source, source_offset, Job::Kind::Scatter});
}

std::size_t VirtualMemory::poll(std::span<JobDone> out) {
  std::deque<JobDone>& done = state_.workers[self_.index()].done;
  const std::size_t count = std::min(out.size(), done.size());
  std::copy_n(done.begin(), count, out.begin());
  done.erase(done.begin(), done.begin() + static_cast<std::ptrdiff_t>(count));
  return count;
}

}  // namespace holdfast::virtual_network

namespace holdfast {

using namespace virtual_network;

void VirtualNetwork::State::submit(WorkerId worker, Job job) {
  Worker& w = workers[worker.index()];
  if (!w.alive) return;
  std::uint64_t bytes = 0;
  for (const Extent& extent : job.extents) bytes += extent.bytes;
  Time time;
  if (options.digest_rate > Rate{}) time = transfer_time(Bytes(bytes), options.digest_rate);
  w.memory_free = std::max(w.memory_free, now) + time;
  w.jobs.push_back(std::move(job));
  schedule(w.memory_free, EventKind::JobDone, worker.value(), w.life);
}

void VirtualNetwork::State::job_done(WorkerId worker) {
  Worker& w = workers[worker.index()];
  if (!w.alive) return;
  const Job job = std::move(w.jobs.front());
  w.jobs.pop_front();
  JobDone done{job.id, 0};
  if (job.kind == Job::Kind::Digest) {
    done.digest = digest_of(w, job);
  } else {
    move(w, job, job.kind == Job::Kind::Gather);
  }
  w.done.push_back(done);
  announce(worker);
}

void VirtualNetwork::State::run_until_ready(WorkerId worker, Time until) {
  const Worker& w = workers[worker.index()];
  while (w.alive && w.inbox.empty() && w.done.empty()) {
    const Time next = network.next_event();
    if (next > until) return network.advance(until);
    if (!network.step()) return;
  }
}

}  // namespace holdfast
