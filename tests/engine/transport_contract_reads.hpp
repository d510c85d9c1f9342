// The contract suite: reads, deadlines, access. Included by transport_contract.hpp only.
#pragma once

#include "tests/engine/transport_contract_support.hpp"

namespace holdfast::testing {

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

}  // namespace holdfast::testing
