// Transports and memories over a SimNetwork that carry real bytes: a storm's oracle compares them.
//
// SimNetwork says when bytes leave and arrive; here they are copied at those two moments, from the
// source's memory as it is when the last byte leaves, into the reader's when the read ends. A read
// that fails leaves its range in the worst state that the contract allows. Digests are of the bytes
// that lie there. By seed bytes are corrupted, words between workers are lost, doubled and delayed,
// and cancelled reads go on for a while, which SimNetwork by itself never does.
//
// Used in SimNetwork::run_one_actor. Deterministic.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "core/engine/read_sight.hpp"
#include "core/storm/dice.hpp"
#include "sim/sim_network.hpp"

namespace holdfast::sim {

struct MessageFaults {
  std::uint32_t lost_per_mille = 0;
  std::uint32_t doubled_per_mille = 0;
  Time jitter;  // up to that much later
};

class StormPorts {
 public:
  // Borrows the network, of which it takes the one watcher of reads. `cancelling`: from a cancel to
  // the read's end at most; it may still succeed.
  StormPorts(SimNetwork& network, std::size_t workers, std::uint64_t seed, Time cancelling = {});
  ~StormPorts();

  [[nodiscard]] Transport& transport(WorkerId worker);
  [[nodiscard]] Memory& memory(WorkerId worker);

  // As the network's: call these instead. What was registered may go when `kill` has returned.
  void kill(WorkerId worker);
  void restart(WorkerId worker);

  // One byte of the read after the next `skip` reads that leave `source` is wrong when it arrives.
  void corrupt(WorkerId source, std::uint64_t skip);
  void set_message_faults(const MessageFaults& faults) { message_faults_ = faults; }
  // At most one; must not call back.
  void watch(std::function<void(const ReadSight&)> watcher) { watcher_ = std::move(watcher); }

 private:
  class Port;
  class Store;
  struct Read {
    std::uint64_t number = 0;  // its id may be used again when it has ended
    RegionId region;
    std::vector<Piece> pieces;
    std::vector<std::byte> bytes;  // on their way
  };
  struct Job {
    enum class Kind { Digest, Gather, Scatter };
    Kind kind = Kind::Digest;
    RegionId region;
    std::vector<Extent> extents;
    RegionId packed;  // the other one of a gather or scatter
    std::uint64_t packed_offset = 0;
  };
  struct Opened {
    std::uint64_t number = 0;  // a peer's own may be given to another once it is closed
    WorkerId other;
  };
  struct Worker {
    std::vector<std::span<std::byte>> regions;
    std::map<OpId, Read> reads;
    std::map<JobId, Job> jobs;
    std::map<PeerId, Opened> opened;
    std::uint64_t corrupt_after = 0;  // 1 + reads to skip; 0: none
    std::unique_ptr<Port> port;
    std::unique_ptr<Store> store;
  };

  void happen(const ReadMoment& moment);
  void take_from_source(const ReadMoment& moment, Read& read);
  void put_into_reader(const ReadMoment& moment, Read& read);
  void show(ReadSight::Kind kind, const ReadMoment& moment, const Read& read);
  void cancel_later(WorkerId reader, OpId id);
  void send_later(WorkerId from, PeerId peer, std::span<const std::byte> payload);
  [[nodiscard]] std::uint64_t finish(Worker& worker, JobId id);

  SimNetwork& network_;
  storm::Dice dice_;
  MessageFaults message_faults_;
  Time cancelling_;
  std::uint64_t openings_ = 0;
  std::uint64_t reads_ = 0;
  std::function<void(const ReadSight&)> watcher_;
  std::vector<Worker> workers_;
};

}  // namespace holdfast::sim
