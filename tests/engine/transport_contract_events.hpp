// The contract suite: revoking, messages, waiting, peers that die, memory. Included by
// transport_contract.hpp only.
#pragma once

#include <cstring>

#include "tests/engine/transport_contract_support.hpp"

namespace holdfast::testing {

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
