// Memory in the host's RAM.
//
// Jobs are done by one helper thread, in the order they were given. A digest or a copy of a block
// takes milliseconds; done by the calling thread it would hold up the reads that this worker serves
// to others, and done there in slices it would still take the time away from them. One thread is
// enough: a digest runs at memory bandwidth, and blocks of one worker come one after the other.
// While a completion waits to be polled, the WakeUp is up, so that Transport::wait returns.
//
//   TcpTransport transport(self, {});
//   HostMemory memory(transport.regions(), transport.wake_up());
//
// Extents must lie inside their regions, and the bytes must be left alone until the completion:
// the caller's duty. Several threads must not call at once.
#pragma once

#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>
#include <vector>

#include "core/engine/memory.hpp"
#include "real/region_table.hpp"
#include "real/wake_up.hpp"

namespace holdfast::real {

class HostMemory final : public Memory {
 public:
  // Both must outlive it. Throws std::system_error if there can be no more threads.
  HostMemory(const RegionTable& regions, WakeUp& wake_up);
  // Ends after the job under way; jobs that wait are forgotten.
  ~HostMemory() override;

  void digest(JobId id, RegionId region, std::span<const Extent> extents) override;
  void gather(JobId id, RegionId region, std::span<const Extent> extents, RegionId target,
              std::uint64_t target_offset) override;
  void scatter(JobId id, RegionId source, std::uint64_t source_offset, RegionId region,
               std::span<const Extent> extents) override;
  std::size_t poll(std::span<JobDone> out) override;

 private:
  enum class Kind { Digest, Gather, Scatter };
  struct Job {
    JobId id = 0;
    Kind kind = Kind::Digest;
    std::vector<std::span<std::byte>> parts;
    std::span<std::byte> packed;  // of a gather or scatter
  };

  [[nodiscard]] std::vector<std::span<std::byte>> parts(RegionId region,
                                                        std::span<const Extent> extents) const;
  [[nodiscard]] static JobDone carry_out(const Job& job);
  void move(Kind kind, JobId id, RegionId region, std::span<const Extent> extents, RegionId packed,
            std::uint64_t offset);
  void submit(Job job);
  void work();

  const RegionTable& regions_;
  WakeUp& wake_up_;
  std::mutex mutex_;
  std::condition_variable given_;
  std::deque<Job> jobs_;
  std::deque<JobDone> done_;
  bool stop_ = false;
  std::thread thread_;
};

}  // namespace holdfast::real
