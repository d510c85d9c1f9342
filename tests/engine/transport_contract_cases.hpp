// The cases of the contract suite. Included by transport_contract.hpp only.
#pragma once

#include <algorithm>
#include <cstring>

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

// Rules 3 and 4: done exactly once, Ok, with the bytes of the source in place and nothing beside.
TEST_P(TransportContract, ReadBringsTheBytesOnce) {
  const auto network = GetParam().make(2);
  OneSource(*network, 1).run([](Reader& r) {
    EXPECT_EQ(r.read(9, kContractBlock, kContractBlock), Posted::Posted);
    EXPECT_TRUE(r.client.wait([&] { return !r.client.reads().empty(); }, r.unit * 100));
    EXPECT_EQ(r.client.status(9), ReadStatus::Ok);
    if (r.client.reads().empty()) return;
    EXPECT_EQ(r.client.reads()[0].bytes, Bytes(kContractBlock));
    EXPECT_TRUE(r.same(kContractBlock, kContractBlock));
    EXPECT_TRUE(r.untouched(0, kContractBlock));
    EXPECT_TRUE(r.untouched(2 * kContractBlock, kContractBlock));
    r.client.rest(r.unit * 10);
    EXPECT_EQ(r.client.count(9), 1U);
  });
}

// Pieces of different sizes, source and destination in different orders.
TEST_P(TransportContract, PiecesAreGathered) {
  const auto network = GetParam().make(2);
  OneSource(*network, 1).run([](Reader& r) {
    if (r.transport.limits(r.peer).pieces_per_read < 3) return;
    const std::array<Piece, 3> pieces{Piece{100, 5000, 1000}, Piece{7000, 20, 1},
                                      Piece{3, 900, 2077}};
    ReadRequest request;
    request.id = 1;
    request.peer = r.peer;
    request.access = r.access;
    request.region = r.region;
    request.pieces = pieces;
    EXPECT_EQ(r.transport.read(request), Posted::Posted);
    EXPECT_TRUE(r.client.wait([&] { return !r.client.reads().empty(); }, r.unit * 100));
    EXPECT_EQ(r.client.status(1), ReadStatus::Ok);
    if (r.client.reads().empty()) return;
    EXPECT_EQ(r.client.reads()[0].bytes, Bytes(3078));
    if (r.local.empty()) return;
    for (const Piece& piece : pieces) {
      EXPECT_EQ(std::memcmp(r.local.data() + piece.local_offset,
                            r.remote.data() + piece.remote_offset, piece.bytes),
                0);
    }
    EXPECT_TRUE(r.untouched(0, 20));
    EXPECT_TRUE(r.untouched(21, 879));
    EXPECT_TRUE(r.untouched(2977, 2023));
    EXPECT_TRUE(r.untouched(6000, 1000));
  });
}

// Rule 7.
TEST_P(TransportContract, ReadsOfOnePeerCompleteInOrder) {
  const auto network = GetParam().make(2);
  OneSource(*network, 1).run([](Reader& r) {
    constexpr std::uint64_t kReads = 16;
    std::uint64_t posted = 0;
    for (std::uint64_t i = 0; i < kReads;) {
      const Posted answer = r.read(100 + i, i * kContractBlock, kContractBlock);
      EXPECT_NE(answer, Posted::PeerGone);
      if (answer == Posted::Posted) {
        ++posted;
        ++i;
      } else {
        const std::size_t before = r.client.reads().size();
        EXPECT_TRUE(r.client.wait([&] { return r.client.reads().size() > before; }, r.unit * 100));
      }
    }
    EXPECT_TRUE(r.client.wait([&] { return r.client.reads().size() == posted; }, r.unit * 1000));
    for (std::size_t i = 0; i < r.client.reads().size(); ++i) {
      EXPECT_EQ(r.client.reads()[i].id, 100 + i);
      EXPECT_EQ(r.client.reads()[i].status, ReadStatus::Ok);
    }
    EXPECT_TRUE(r.same(0, OneSource::kSize));
  });
}

// Rule 3: a refused read never completes, and there is room again after a completion.
TEST_P(TransportContract, TooManyReadsAreRefused) {
  const auto network = GetParam().make(2);
  OneSource(*network, 1).run([](Reader& r) {
    const std::uint32_t limit = r.transport.limits(r.peer).reads_in_flight;
    EXPECT_GT(limit, 0U);
    constexpr std::uint32_t kMost = 1 << 16;
    if (limit > kMost) return;
    const std::uint64_t bytes = OneSource::kSize / std::uint64_t{limit + 1};
    for (std::uint64_t i = 0; i < limit; ++i) {
      EXPECT_EQ(r.read(i, i * bytes, bytes), Posted::Posted);
    }
    EXPECT_EQ(r.read(limit, limit * bytes, bytes), Posted::WouldBlock);
    EXPECT_TRUE(r.client.wait([&] { return !r.client.reads().empty(); }, r.unit * 1000));
    EXPECT_EQ(r.read(limit + 1, limit * bytes, bytes), Posted::Posted);
    EXPECT_TRUE(
        r.client.wait([&] { return r.client.reads().size() == limit + 1; }, r.unit * 10000));
    EXPECT_EQ(r.client.count(limit), 0U);
    EXPECT_EQ(r.client.count(limit + 1), 1U);
    EXPECT_TRUE(r.same(0, (limit + 1) * bytes));
  });
}

// Rule 9, and 5: what is late completes with DeadlineExceeded, not before its deadline, and the
// range stays as it then is.
TEST_P(TransportContract, DeadlinesAreKept) {
  const auto network = GetParam().make(2);
  OneSource(*network, 1).run([](Reader& r) {
    const Time now = r.transport.now();
    const Time deadline = now + nanoseconds(1);
    EXPECT_EQ(r.read(1, 0, OneSource::kSize, deadline), Posted::Posted);
    EXPECT_EQ(r.read(2, 0, 0, now + r.unit * 10000), Posted::Posted);
    EXPECT_TRUE(r.client.wait([&] { return r.client.count(1) == 1; }, r.unit * 100));
    EXPECT_EQ(r.client.status(1), ReadStatus::DeadlineExceeded);
    EXPECT_GE(r.transport.now(), deadline);
    std::fill(r.local.begin(), r.local.end(), kContractPoison);
    r.client.rest(r.unit * 200);
    EXPECT_TRUE(r.untouched(0, OneSource::kSize)) << "the range was touched after ReadDone";
    EXPECT_EQ(r.client.count(1), 1U);
  });
}

// Rule 10 and 5: cancelled reads complete once; the range is left alone.
TEST_P(TransportContract, CancelledReadsComplete) {
  const auto network = GetParam().make(2);
  OneSource(*network, 1).run([](Reader& r) {
    EXPECT_EQ(r.read(1, 0, OneSource::kSize), Posted::Posted);
    r.transport.cancel(1);
    r.transport.cancel(1);
    r.transport.cancel(77);  // unknown: nothing happens
    EXPECT_TRUE(r.client.wait([&] { return r.client.count(1) != 0; }, r.unit * 100));
    EXPECT_EQ(r.client.status(1), ReadStatus::Cancelled);
    std::fill(r.local.begin(), r.local.end(), kContractPoison);
    r.client.rest(r.unit * 200);
    EXPECT_TRUE(r.untouched(0, OneSource::kSize));
    EXPECT_EQ(r.client.reads().size(), 1U);
  });
}

TEST_P(TransportContract, CloseCompletesWhatIsOpen) {
  const auto network = GetParam().make(2);
  OneSource(*network, 1).run([](Reader& r) {
    EXPECT_EQ(r.read(1, 0, OneSource::kSize / 2), Posted::Posted);
    EXPECT_EQ(r.read(2, OneSource::kSize / 2, OneSource::kSize / 2), Posted::Posted);
    r.transport.close(r.peer);
    EXPECT_TRUE(r.client.wait([&] { return r.client.reads().size() == 2; }, r.unit * 100));
    EXPECT_EQ(r.client.status(1), ReadStatus::Cancelled);
    EXPECT_EQ(r.client.status(2), ReadStatus::Cancelled);
    EXPECT_EQ(r.read(3, 0, 1), Posted::PeerGone);
    const std::array<std::byte, 1> payload{};
    EXPECT_FALSE(r.transport.send(r.peer, payload));
    r.client.rest(r.unit * 200);
    EXPECT_EQ(r.client.reads().size(), 2U);
    EXPECT_TRUE(r.client.lost().empty());
  });
}

TEST_P(TransportContract, RangesAreChecked) {
  const auto network = GetParam().make(2);
  OneSource(*network, 1).run([](Reader& r) {
    const auto read = [&](OpId id, Piece piece) {
      const std::array<Piece, 1> pieces{piece};
      ReadRequest request;
      request.id = id;
      request.peer = r.peer;
      request.access = r.access;
      request.region = r.region;
      request.pieces = pieces;
      EXPECT_EQ(r.transport.read(request), Posted::Posted);
      EXPECT_TRUE(r.client.wait([&] { return r.client.count(id) == 1; }, r.unit * 100));
      EXPECT_EQ(r.client.status(id), ReadStatus::OutOfRange);
    };
    constexpr std::uint64_t kAll = ~std::uint64_t{0};
    read(1, {OneSource::kSize - 1, 0, 2});  // remote
    read(2, {0, OneSource::kSize - 1, 2});  // local
    read(3, {kAll, 0, 2});                  // wraps around
    read(4, {0, kAll - 1, 3});
    EXPECT_TRUE(r.untouched(0, OneSource::kSize));
  });
}

TEST_P(TransportContract, AccessIsChecked) {
  const auto network = GetParam().make(3);
  Access of_first;
  OneSource(*network, 2).run([&](Reader& r) {
    if (r.self == WorkerId(1U)) {
      of_first = r.access;
      r.client.rest(r.unit * 100);
      return;
    }
    r.client.rest(r.unit * 10);
    const auto denied = [&](OpId id, const Access& access) {
      const std::array<Piece, 1> pieces{Piece{0, 0, 10}};
      ReadRequest request;
      request.id = id;
      request.peer = r.peer;
      request.access = access;
      request.region = r.region;
      request.pieces = pieces;
      EXPECT_EQ(r.transport.read(request), Posted::Posted);
      EXPECT_TRUE(r.client.wait([&] { return r.client.count(id) == 1; }, r.unit * 100));
      EXPECT_EQ(r.client.status(id), ReadStatus::AccessDenied) << "access " << id;
    };
    denied(1, Access{});
    denied(2, of_first);  // another reader's
    Access changed = r.access;
    for (std::size_t i = 0; i < changed.size; ++i) changed.bytes[i] ^= std::byte{0xff};
    denied(3, changed);
    EXPECT_TRUE(r.untouched(10, OneSource::kSize - 10));
  });
}

// After Revoked nothing leaves, whatever was under way; other readers and versions go on.
TEST_P(TransportContract, NothingLeavesAfterRevoked) {
  const auto network = GetParam().make(3);
  bool revoke_now = false;
  bool revoked = false;
  std::span<std::byte> source;
  OneSource(*network, 2)
      .run(
          [&](Reader& r) {
            if (r.self == WorkerId(2U)) {
              EXPECT_TRUE(r.client.wait_for(revoked, r.unit));
              EXPECT_EQ(r.read(5, 0, 100), Posted::Posted);
              EXPECT_TRUE(r.client.wait([&] { return r.client.count(5) == 1; }, r.unit * 100));
              EXPECT_EQ(r.client.status(5), ReadStatus::Ok);
              return;
            }
            source = r.remote;
            for (std::uint64_t i = 0; i < 16; ++i) {
              EXPECT_NE(r.read(100 + i, i * kContractBlock, kContractBlock), Posted::PeerGone);
            }
            // In the middle of it: some have come, one is being served, some wait.
            EXPECT_TRUE(r.client.wait([&] { return !r.client.reads().empty(); }, r.unit * 100));
            revoke_now = true;
            EXPECT_TRUE(r.client.wait_for(revoked, r.unit));
            const auto all_done = [&] {
              for (const ReadDone& done : r.client.reads()) {
                if (done.status != ReadStatus::Ok) return true;
              }
              return r.client.reads().size() == 16;
            };
            EXPECT_TRUE(r.client.wait(all_done, r.unit * 1000));
            r.client.rest(r.unit * 200);
            for (const ReadDone& done : r.client.reads()) {
              if (done.status == ReadStatus::Ok && !r.local.empty()) {
                const std::uint64_t offset = (done.id - 100) * kContractBlock;
                for (std::uint64_t k = 0; k < kContractBlock; ++k) {
                  if (r.local[offset + k] == pattern(OneSource::kSeed, offset + k)) continue;
                  ADD_FAILURE() << "read " << done.id << " has bytes written after Revoked";
                  break;
                }
              }
            }
            const std::size_t before = r.client.reads().size();
            EXPECT_EQ(r.read(200, 0, 10), Posted::Posted);
            EXPECT_TRUE(
                r.client.wait([&] { return r.client.reads().size() > before; }, r.unit * 100));
            EXPECT_EQ(r.client.status(200), ReadStatus::AccessDenied);
          },
          [&](Transport& transport, Client& client) {
            EXPECT_TRUE(client.wait_for(revoke_now, nanoseconds(500)));
            transport.revoke(WorkerId(1U), Version{3, 13});  // another version: no effect
            transport.revoke(WorkerId(1U), kContractVersion);
            EXPECT_TRUE(client.wait([&] { return client.revoked().size() == 2; }, seconds(10)));
            for (const Revoked& event : client.revoked()) EXPECT_EQ(event.reader, WorkerId(1U));
            // Worker 2 reads the first 100 bytes later on: they are written anew as they were.
            std::fill(source.begin(), source.end(), std::byte{0});
            fill(source.first(std::min<std::size_t>(source.size(), 100)), OneSource::kSeed);
            revoked = true;
          });
}

TEST_P(TransportContract, MessagesArriveWithSenderAndBytes) {
  const auto network = GetParam().make(2);
  if (!network->reliable_messages()) GTEST_SKIP() << "this transport may lose messages";
  OneSource(*network, 1)
      .run(
          [](Reader& r) {
            std::vector<std::byte> payload(Transport::kMaxMessage);
            fill(payload, 5);
            EXPECT_TRUE(r.transport.send(r.peer, payload));
            EXPECT_TRUE(r.transport.send(r.peer, std::span(payload).first(1)));
            r.client.rest(r.unit * 50);
          },
          [](Transport&, Client& client) {
            EXPECT_TRUE(client.wait([&] { return client.messages().size() == 2; }, seconds(10)));
            if (client.messages().size() != 2) return;
            std::vector<std::byte> payload(Transport::kMaxMessage);
            fill(payload, 5);
            EXPECT_EQ(client.messages()[0].from, WorkerId(1U));
            EXPECT_EQ(client.messages()[0].payload, payload);
            EXPECT_EQ(client.messages()[1].payload.size(), 1U);
          });
}

// Rule 2 and wait's own contract: it returns at `until`, not before, when nothing happens; at once
// when something is there; when something comes.
TEST_P(TransportContract, WaitReturnsInTime) {
  const auto network = GetParam().make(2);
  OneSource(*network, 1).run([](Reader& r) {
    const Time until = r.transport.now() + r.unit * 3;
    r.client.rest(r.unit * 3);
    EXPECT_GE(r.transport.now(), until);
    r.transport.wait(r.transport.now());  // returns
    EXPECT_EQ(r.read(1, 0, kContractBlock), Posted::Posted);
    const Time far = r.transport.now() + seconds(1000);
    std::array<TransportEvent, 1> event;
    while (r.transport.now() < far && r.transport.poll(event) == 0) r.transport.wait(far);
    EXPECT_LT(r.transport.now(), far);
    EXPECT_TRUE(std::holds_alternative<ReadDone>(event[0]));
  });
}

// Many readers share a source: nobody starves or fails. They begin together, as nearly as they can:
// over a real network who comes first has the source to itself until the others are there.
TEST_P(TransportContract, ManyReadersShareASource) {
  constexpr std::size_t kReaders = 64;
  const auto network = GetParam().make(kReaders + 1);
  std::vector<Time> finished;
  std::size_t present = 0;
  bool begin = false;
  bool all_finished = false;
  Time start = Time::never();
  OneSource(*network, kReaders).run([&](Reader& r) {
    constexpr std::uint64_t kReads = 32;
    constexpr std::uint64_t kBytes = OneSource::kSize / kReads;
    EXPECT_EQ(r.read(kReads, 0, 0), Posted::Posted);  // the connection is there
    EXPECT_TRUE(r.client.wait([&] { return r.client.reads().size() == 1; }, r.unit * 1000));
    begin = ++present == kReaders;
    EXPECT_TRUE(r.client.wait_for(begin, r.unit / 8));
    start = std::min(start, r.transport.now());
    std::uint64_t next = 0;
    while (r.client.reads().size() < kReads + 1) {
      while (next < kReads && next < r.client.reads().size() + 7 &&
             r.read(next, next * kBytes, kBytes, r.transport.now() + r.unit * 10000) ==
                 Posted::Posted) {
        ++next;
      }
      const std::size_t before = r.client.reads().size();
      if (!r.client.wait([&] { return r.client.reads().size() > before; }, r.unit * 20000)) {
        ADD_FAILURE() << "reader " << r.self.value() << " starves";
        return;
      }
    }
    finished.push_back(r.transport.now());
    const bool is_last = finished.size() == kReaders;
    if (is_last) all_finished = true;
    EXPECT_TRUE(r.client.wait_for(all_finished, r.unit * 10));  // looking takes others' time
    for (const ReadDone& done : r.client.reads()) EXPECT_EQ(done.status, ReadStatus::Ok);
    EXPECT_TRUE(r.same(0, OneSource::kSize));
    if (!is_last) return;
    const auto [first, last] = std::minmax_element(finished.begin(), finished.end());
    EXPECT_GE((*first - start).seconds(), 0.9 * (*last - start).seconds())
        << "the readers' shares differ by more than a tenth";
  });
}

// Rule 10 with a dead source: open reads complete with PeerGone, PeerLost is told once, then
// nothing.
TEST_P(TransportContract, DeadSourcesAreNoticed) {
  const auto network = GetParam().make(3);
  if (!network->can_kill()) GTEST_SKIP() << "this network cannot kill a worker";
  bool victim_ready = false;
  bool noticed = false;
  Access access;
  std::vector<ContractNetwork::Body> bodies;
  bodies.emplace_back([&](Transport& transport, Memory&, WorkerId) {
    const auto memory = network->memory(WorkerId(0U), Bytes(OneSource::kSize));
    const RegionId region = transport.add_region(memory, Bytes(OneSource::kSize));
    access = transport.allow(WorkerId(1U), kContractVersion, region);
    victim_ready = true;
    transport.wait(transport.now() + seconds(1000));
  });
  bodies.emplace_back([&](Transport& transport, Memory& memory, WorkerId self) {
    Client client(transport, memory);
    const Time unit = network->estimate(Bytes(kContractBlock));
    const auto local = network->memory(self, Bytes(OneSource::kSize));
    std::fill(local.begin(), local.end(), kContractPoison);
    const RegionId region = transport.add_region(local, Bytes(OneSource::kSize));
    EXPECT_TRUE(client.wait_for(victim_ready, unit));
    const PeerId peer = transport.open(network->endpoint(self, WorkerId(0U)), 1);
    Reader r{transport, client, self, peer, access, region, local, {}, unit};
    EXPECT_EQ(r.read(1, 0, OneSource::kSize / 2), Posted::Posted);
    EXPECT_EQ(r.read(2, OneSource::kSize / 2, OneSource::kSize / 2), Posted::Posted);
    network->kill(WorkerId(0U));
    EXPECT_TRUE(client.wait([&] { return client.reads().size() == 2 && !client.lost().empty(); },
                            seconds(100)));
    EXPECT_EQ(client.status(1), ReadStatus::PeerGone);
    EXPECT_EQ(client.status(2), ReadStatus::PeerGone);
    noticed = true;
    if (!client.lost().empty()) {
      EXPECT_EQ(client.lost()[0].peer, peer);
      EXPECT_EQ(client.lost()[0].worker, WorkerId(0U));
    }
    EXPECT_EQ(r.read(3, 0, 1), Posted::PeerGone);
    const std::array<std::byte, 1> payload{};
    EXPECT_FALSE(transport.send(peer, payload));
    std::fill(local.begin(), local.end(), kContractPoison);
    client.rest(unit * 200);
    EXPECT_TRUE(r.untouched(0, OneSource::kSize));
    EXPECT_EQ(client.reads().size(), 2U);
    EXPECT_EQ(client.lost().size(), 1U);
  });
  bodies.emplace_back([&](Transport& transport, Memory& memory, WorkerId self) {
    // Somebody who connects to the dead hears of it too.
    Client client(transport, memory);
    EXPECT_TRUE(client.wait_for(noticed, network->estimate(Bytes(kContractBlock))));
    transport.open(network->endpoint(self, WorkerId(0U)), 1);
    EXPECT_TRUE(client.wait([&] { return client.lost().size() == 1; }, seconds(100)));
  });
  network->run(bodies);
}

// Memory: each job completes exactly once; a completion ends `wait`; digests are those of
// digest.hpp.
TEST_P(TransportContract, MemoryDigestsGathersScatters) {
  const auto network = GetParam().make(1);
  const bool real = network->real_bytes();
  std::vector<ContractNetwork::Body> bodies;
  bodies.emplace_back([&](Transport& transport, Memory& memory, WorkerId self) {
    Client client(transport, memory);
    const Bytes size(300'000);
    const auto bytes = network->memory(self, size);
    fill(bytes, 1);
    const RegionId region = transport.add_region(bytes, size);
    const std::array<Extent, 3> extents{Extent{200'000, 70'000}, Extent{0, 1}, Extent{5, 80'000}};
    memory.digest(7, region, extents);
    memory.digest(8, region, std::span(extents).first(1));
    EXPECT_TRUE(client.wait([&] { return client.jobs().size() == 2; }, seconds(100)));
    std::vector<std::byte> packed;
    for (const Extent& extent : extents) {
      if (!real) break;
      const auto part = bytes.subspan(extent.offset, extent.bytes);
      packed.insert(packed.end(), part.begin(), part.end());
    }
    for (const JobDone& job : client.jobs()) {
      EXPECT_TRUE(job.id == 7 || job.id == 8);
      if (!real) continue;
      const auto expected = job.id == 7 ? std::span<const std::byte>(packed)
                                        : std::span<const std::byte>(packed).first(70'000);
      EXPECT_EQ(job.digest, block_digest(expected));
    }
    const std::array<Extent, 2> small{Extent{10, 100}, Extent{500, 50}};
    std::vector<std::byte> target(1000, kContractPoison);
    const RegionId staging =
        transport.add_region(real ? std::span(target) : std::span<std::byte>{}, Bytes(1000));
    memory.gather(9, region, small, staging, 40);
    EXPECT_TRUE(client.wait([&] { return client.jobs().size() == 3; }, seconds(100)));
    if (real) {
      EXPECT_EQ(target[39], kContractPoison);
      EXPECT_EQ(std::memcmp(target.data() + 40, bytes.data() + 10, 100), 0);
      EXPECT_EQ(std::memcmp(target.data() + 140, bytes.data() + 500, 50), 0);
      EXPECT_EQ(target[190], kContractPoison);
    }
    const std::array<Extent, 2> elsewhere{Extent{100'000, 20}, Extent{110'000, 130}};
    memory.scatter(10, staging, 40, region, elsewhere);
    EXPECT_TRUE(client.wait([&] { return client.jobs().size() == 4; }, seconds(100)));
    if (real) {
      EXPECT_EQ(std::memcmp(bytes.data() + 100'000, target.data() + 40, 20), 0);
      EXPECT_EQ(std::memcmp(bytes.data() + 110'000, target.data() + 60, 130), 0);
    }
    client.rest(milliseconds(1));
    EXPECT_EQ(client.jobs().size(), 4U);
  });
  network->run(bodies);
}

}  // namespace holdfast::testing
