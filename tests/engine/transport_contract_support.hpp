// What the cases of the contract suite share: patterns, a view of one body's events, and a source
// that serves readers.
#pragma once

#include <algorithm>
#include <array>
#include <functional>
#include <vector>

#include "tests/engine/transport_contract.hpp"

namespace holdfast::testing {

inline constexpr Version kContractVersion{3, 14};
inline constexpr std::byte kContractPoison{0xcd};

inline std::byte pattern(std::uint64_t seed, std::uint64_t offset) {
  std::uint64_t z = (offset / 8 + 1) * 0x9e3779b97f4a7c15U + seed;
  z = (z ^ (z >> 30U)) * 0xbf58476d1ce4e5b9U;
  return static_cast<std::byte>((z >> (8 * (offset % 8))) & 0xffU);
}

inline void fill(std::span<std::byte> memory, std::uint64_t seed) {
  for (std::size_t i = 0; i < memory.size(); ++i) memory[i] = pattern(seed, i);
}

// One body's view: collects what poll brings, waits for what a test wants to see.
class Client {
 public:
  Client(Transport& transport, Memory& memory) : transport_(transport), memory_(memory) {}

  void poll() {
    std::array<TransportEvent, 7> events;
    for (std::size_t n = transport_.poll(events); n != 0; n = transport_.poll(events)) {
      EXPECT_LE(n, events.size());
      for (std::size_t i = 0; i < n; ++i) take(events[i]);
    }
    std::array<JobDone, 3> jobs;
    for (std::size_t n = memory_.poll(jobs); n != 0; n = memory_.poll(jobs)) {
      EXPECT_LE(n, jobs.size());
      jobs_.insert(jobs_.end(), jobs.begin(), jobs.begin() + static_cast<std::ptrdiff_t>(n));
    }
  }
  // Until `done` or for at most `most`; true if done.
  bool wait(const std::function<bool()>& done, Time most) {
    const Time end = transport_.now() + most;
    for (;;) {
      poll();
      if (done()) return true;
      if (transport_.now() >= end) return false;
      transport_.wait(end);
    }
  }
  void rest(Time time) {
    wait([] { return false; }, time);
  }
  // For something that another body does: looks again every `pause`.
  bool wait_for(const bool& flag, Time pause) {
    constexpr int kTries = 10'000;
    for (int i = 0; i < kTries && !flag; ++i) {
      transport_.wait(transport_.now() + pause);
      poll();
    }
    return flag;
  }

  [[nodiscard]] const std::vector<ReadDone>& reads() const { return reads_; }
  [[nodiscard]] const std::vector<MessageReceived>& messages() const { return messages_; }
  [[nodiscard]] const std::vector<Revoked>& revoked() const { return revoked_; }
  [[nodiscard]] const std::vector<PeerLost>& lost() const { return lost_; }
  [[nodiscard]] const std::vector<JobDone>& jobs() const { return jobs_; }
  [[nodiscard]] std::size_t count(OpId id) const {
    return static_cast<std::size_t>(std::count_if(
        reads_.begin(), reads_.end(), [&](const ReadDone& done) { return done.id == id; }));
  }
  [[nodiscard]] ReadStatus status(OpId id) const {
    for (const ReadDone& done : reads_) {
      if (done.id == id) return done.status;
    }
    ADD_FAILURE() << "read " << id << " is not done";
    return ReadStatus::Cancelled;
  }

 private:
  void take(TransportEvent& event) {
    if (auto* done = std::get_if<ReadDone>(&event)) reads_.push_back(*done);
    if (auto* message = std::get_if<MessageReceived>(&event)) {
      messages_.push_back(std::move(*message));
    }
    if (auto* revoked = std::get_if<Revoked>(&event)) revoked_.push_back(*revoked);
    if (auto* lost = std::get_if<PeerLost>(&event)) lost_.push_back(*lost);
  }

  Transport& transport_;
  Memory& memory_;
  std::vector<ReadDone> reads_;
  std::vector<MessageReceived> messages_;
  std::vector<Revoked> revoked_;
  std::vector<PeerLost> lost_;
  std::vector<JobDone> jobs_;
};

// Worker 0 serves one region of kSize bytes to all others, until they have all said that they are
// done; the others run `reader` with all they need.
class OneSource {
 public:
  static constexpr std::uint64_t kSize = 1 << 20;
  static constexpr std::uint64_t kBlock = 1 << 16;

  struct Reader {
    Transport& transport;
    Client& client;
    WorkerId self;
    PeerId peer;
    Access access;
    RegionId region;
    std::span<std::byte> local;   // empty where bytes are not real
    std::span<std::byte> remote;  // the source's
    Time unit;                    // for one block

    // Reads `bytes` at `offset` to the same place.
    [[nodiscard]] Posted read(OpId id, std::uint64_t offset, std::uint64_t bytes,
                              Time deadline = Time::never()) const {
      const std::array<Piece, 1> pieces{Piece{offset, offset, bytes}};
      ReadRequest request;
      request.id = id;
      request.peer = peer;
      request.access = access;
      request.region = region;
      request.pieces = pieces;
      request.deadline = deadline;
      return transport.read(request);
    }
    [[nodiscard]] bool same(std::uint64_t offset, std::uint64_t bytes) const {
      return local.empty() ||
             std::equal(local.begin() + static_cast<std::ptrdiff_t>(offset),
                        local.begin() + static_cast<std::ptrdiff_t>(offset + bytes),
                        remote.begin() + static_cast<std::ptrdiff_t>(offset));
    }
    [[nodiscard]] bool untouched(std::uint64_t offset, std::uint64_t bytes) const {
      for (std::uint64_t i = offset; i < offset + bytes && !local.empty(); ++i) {
        if (local[i] != kContractPoison) return false;
      }
      return true;
    }
  };
  using ReaderBody = std::function<void(Reader&)>;
  using SourceBody = std::function<void(Transport&, Client&)>;

  OneSource(ContractNetwork& network, std::size_t readers) : network_(network) {
    access_.resize(readers + 1);
    allowed_ = false;
  }

  // `source` runs after access was granted; worker 0 then stays until the readers are done.
  void run(const ReaderBody& reader, const SourceBody& source = {}) {
    std::vector<ContractNetwork::Body> bodies;
    bodies.emplace_back([&](Transport& transport, Memory& memory, WorkerId) {
      Client client(transport, memory);
      serve(transport, client, source);
    });
    for (std::size_t r = 1; r < access_.size(); ++r) {
      bodies.emplace_back([&](Transport& transport, Memory& memory, WorkerId self) {
        Client client(transport, memory);
        body(transport, client, self, reader);
        ++done_;
        all_done_ = done_ + 1 == access_.size();
      });
    }
    network_.run(bodies);
  }

  static constexpr std::uint64_t kSeed = 42;

 private:
  void serve(Transport& transport, Client& client, const SourceBody& source) {
    source_memory_ = network_.memory(WorkerId(0U), Bytes(kSize));
    fill(source_memory_, kSeed);
    const RegionId region = transport.add_region(source_memory_, Bytes(kSize));
    for (std::size_t r = 1; r < access_.size(); ++r) {
      access_[r] = transport.allow(WorkerId(r), kContractVersion, region);
    }
    allowed_ = true;
    if (source) source(transport, client);
    EXPECT_TRUE(client.wait_for(all_done_, network_.estimate(Bytes(kBlock))));
  }

  void body(Transport& transport, Client& client, WorkerId self, const ReaderBody& reader) {
    const Time unit = network_.estimate(Bytes(kBlock));
    const std::span<std::byte> local = network_.memory(self, Bytes(kSize));
    std::fill(local.begin(), local.end(), kContractPoison);
    const RegionId region = transport.add_region(local, Bytes(kSize));
    EXPECT_TRUE(client.wait_for(allowed_, unit));
    const PeerId peer = transport.open(network_.endpoint(self, WorkerId(0U)), 7);
    Reader view{transport, client, self,           peer, access_[self.index()],
                region,    local,  source_memory_, unit};
    reader(view);
  }

  ContractNetwork& network_;
  std::vector<Access> access_;
  std::span<std::byte> source_memory_;
  bool allowed_ = false;
  bool all_done_ = false;
  std::size_t done_ = 0;
};

using Reader = OneSource::Reader;
inline constexpr std::uint64_t kContractBlock = OneSource::kBlock;

}  // namespace holdfast::testing
