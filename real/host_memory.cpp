#include "real/host_memory.hpp"

#include <algorithm>
#include <cstring>

#include "core/engine/digest.hpp"

namespace holdfast::real {

HostMemory::HostMemory(const RegionTable& regions, WakeUp& wake_up)
    : regions_(regions), wake_up_(wake_up), thread_([this] { work(); }) {}

HostMemory::~HostMemory() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  given_.notify_one();
  thread_.join();
}

std::vector<std::span<std::byte>> HostMemory::parts(RegionId region,
                                                    std::span<const Extent> extents) const {
  std::vector<std::span<std::byte>> parts;
  parts.reserve(extents.size());
  for (const Extent& extent : extents) {
    parts.push_back(regions_.part(region, extent.offset, extent.bytes));
  }
  return parts;
}

void HostMemory::digest(JobId id, RegionId region, std::span<const Extent> extents) {
  submit({id, Kind::Digest, parts(region, extents), {}});
}

void HostMemory::gather(JobId id, RegionId region, std::span<const Extent> extents, RegionId target,
                        std::uint64_t target_offset) {
  move(Kind::Gather, id, region, extents, target, target_offset);
}

void HostMemory::scatter(JobId id, RegionId source, std::uint64_t source_offset, RegionId region,
                         std::span<const Extent> extents) {
  move(Kind::Scatter, id, region, extents, source, source_offset);
}

void HostMemory::move(Kind kind, JobId id, RegionId region, std::span<const Extent> extents,
                      RegionId packed, std::uint64_t offset) {
  std::uint64_t total = 0;
  for (const Extent& extent : extents) total += extent.bytes;
  submit({id, kind, parts(region, extents), regions_.part(packed, offset, total)});
}

void HostMemory::submit(Job job) {
  {
    const std::lock_guard lock(mutex_);
    jobs_.push_back(std::move(job));
  }
  given_.notify_one();
}

std::size_t HostMemory::poll(std::span<JobDone> out) {
  const std::lock_guard lock(mutex_);
  const std::size_t count = std::min(out.size(), done_.size());
  std::copy_n(done_.begin(), count, out.begin());
  done_.erase(done_.begin(), done_.begin() + static_cast<std::ptrdiff_t>(count));
  if (done_.empty()) wake_up_.lower();
  return count;
}

JobDone HostMemory::carry_out(const Job& job) {
  if (job.kind == Kind::Digest) {
    BlockDigester digester;
    for (const std::span<std::byte> part : job.parts) digester.add(part);
    return {job.id, digester.finish()};
  }
  std::byte* packed = job.packed.data();
  for (const std::span<std::byte> part : job.parts) {
    if (part.empty()) continue;
    if (job.kind == Kind::Gather) {
      std::memcpy(packed, part.data(), part.size());
    } else {
      std::memcpy(part.data(), packed, part.size());
    }
    packed += part.size();
  }
  return {job.id, 0};
}

void HostMemory::work() {
  std::unique_lock lock(mutex_);
  for (;;) {
    given_.wait(lock, [this] { return stop_ || !jobs_.empty(); });
    if (stop_) return;
    const Job job = std::move(jobs_.front());
    jobs_.pop_front();
    lock.unlock();
    const JobDone done = carry_out(job);
    lock.lock();
    done_.push_back(done);
    wake_up_.raise();  // under the lock: `poll` lowers it there
  }
}

}  // namespace holdfast::real
