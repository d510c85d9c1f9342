// What only a real network does: processes that are killed or stopped, connections that are half
// there, restarts on one port, garbage, more than 4 GiB.
#include <sys/mman.h>
#include <sys/wait.h>

#include <algorithm>
#include <csignal>
#include <random>

#include "real/socket.hpp"
#include "real/wire.hpp"
#include "tests/real/pump.hpp"

namespace holdfast::testing {
namespace {

constexpr std::uint64_t kMiB = 1 << 20;

std::string address_only(const std::string& published) {
  return published.substr(0, published.find('#'));
}

// A socket that is connected and has been told nothing.
real::Descriptor raw_connection(const std::string& published) {
  return real::start_connect(*real::parse_address(address_only(published)));
}

// A process that serves `bytes` of content to workers 1 and 2 until it is killed.
class ServingProcess {
 public:
  ServingProcess(std::uint32_t worker, std::uint64_t bytes, const TcpOptions& options) {
    int ends[2];
    EXPECT_EQ(::pipe(ends), 0);
    pid_ = ::fork();
    if (pid_ == 0) serve(ends[1], worker, bytes, options);
    ::close(ends[1]);
    EXPECT_EQ(::read(ends[0], access_.data(), sizeof access_),
              static_cast<ssize_t>(sizeof access_));
    char text[128] = {};
    EXPECT_GT(::read(ends[0], text, sizeof text - 1), 0);
    address_ = text;
    ::close(ends[0]);
  }
  ~ServingProcess() { end(); }
  ServingProcess(const ServingProcess&) = delete;
  ServingProcess& operator=(const ServingProcess&) = delete;

  void signal(int number) const { ::kill(pid_, number); }
  void end() {
    if (pid_ <= 0) return;
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
    pid_ = -1;
  }
  [[nodiscard]] const Access& access(std::size_t reader) const { return access_[reader]; }
  [[nodiscard]] const std::string& address() const { return address_; }

 private:
  [[noreturn]] static void serve(int out, std::uint32_t worker, std::uint64_t bytes,
                                 const TcpOptions& options) {
    {
      Party party(worker, content_bytes(worker, bytes), options);
      std::array<Access, 3> access;
      for (std::size_t r = 1; r < access.size(); ++r) {
        access[r] = party.transport.allow(WorkerId(r), kPumpVersion, party.region);
      }
      bool told = ::write(out, access.data(), sizeof access) > 0;
      const std::string& address = party.transport.address();
      told = told && ::write(out, address.data(), address.size()) > 0;
      while (told) {  // until it is killed; by itself after two minutes
        party.poll();
        party.transport.wait(party.transport.now() + seconds(1));
        if (party.transport.now() > seconds(120)) break;
      }
    }
    ::_exit(0);
  }

  pid_t pid_ = -1;
  std::array<Access, 3> access_;
  std::string address_;
};

TEST(TcpAddresses, PortZeroIsPublishedAndBothFamiliesWork) {
  for (const char* listen : {"127.0.0.1:0", "[::1]:0"}) {
    TcpOptions options;
    options.listen = listen;
    Party source(0, content_bytes(7, 1000), options);
    EXPECT_EQ(source.transport.address().find(":0#"), std::string::npos);
    EXPECT_NE(source.transport.address().find('#'), std::string::npos);
    Party reader(1, std::vector<std::byte>(1000));  // of the other family, half of the time
    const Access access = source.transport.allow(reader.self, kPumpVersion, source.region);
    const PeerId peer = reader.open(source);
    reader.read(1, peer, access, {0, 0, 1000});
    EXPECT_TRUE(pump({&reader, &source}, [&] { return reader.done(1) != nullptr; }));
    EXPECT_EQ(reader.status(1), "ok");
    EXPECT_EQ(reader.memory, source.memory);
  }
}

TEST(TcpAddresses, OthersThanLoopbackAreRefused) {
  for (const char* listen : {"0.0.0.0:0", "[::]:0", "10.1.2.3:0", "localhost:0", "127.0.0.1",
                             "127.0.0.1:70000", "::1:5", ""}) {
    TcpOptions options;
    options.listen = listen;
    EXPECT_THROW(TcpTransport(WorkerId(0U), options), std::exception) << listen;
  }
  TcpOptions anywhere;
  anywhere.listen = "0.0.0.0:0";
  anywhere.anywhere = true;
  EXPECT_NO_THROW(TcpTransport(WorkerId(0U), anywhere));

  Party reader(1, std::vector<std::byte>(10));
  for (const char* address :
       {"10.1.2.3:99", "[2001:db8::1]:4", "nonsense", "127.0.0.1:9#xyz", ""}) {
    const PeerId peer = reader.transport.open({WorkerId(0U), {}, address}, 1);
    EXPECT_EQ(reader.transport.loss(peer), PeerLoss::BadAddress) << address;
    EXPECT_EQ(reader.read(1, peer, {}, {0, 0, 1}), Posted::PeerGone);
  }
  reader.poll();
  EXPECT_EQ(reader.lost.size(), 5U);
}

TEST(TcpTransport, ReadsWithoutBytes) {
  Party source(0, content_bytes(1, 100));
  Party reader(1, std::vector<std::byte>(100));
  const Access access = source.transport.allow(reader.self, kPumpVersion, source.region);
  const PeerId peer = reader.open(source);
  reader.read(1, peer, access, {100, 100, 0});
  ReadRequest none;
  none.id = 2;
  none.peer = peer;
  none.access = access;
  none.region = reader.region;
  EXPECT_EQ(reader.transport.read(none), Posted::Posted);
  const std::array<Piece, 4> pieces{Piece{0, 50, 0}, Piece{3, 10, 5}, Piece{9, 9, 0},
                                    Piece{90, 20, 10}};
  none.id = 3;
  none.pieces = pieces;
  EXPECT_EQ(reader.transport.read(none), Posted::Posted);
  reader.read(4, peer, access, {101, 0, 0});
  EXPECT_TRUE(pump({&reader, &source}, [&] { return reader.reads.size() == 4; }));
  for (const OpId id : {OpId{1}, OpId{2}, OpId{3}}) EXPECT_EQ(reader.status(id), "ok") << id;
  EXPECT_EQ(reader.status(4), "out of range");
  EXPECT_TRUE(std::equal(reader.memory.begin() + 10, reader.memory.begin() + 15,
                         source.memory.begin() + 3));
  EXPECT_TRUE(std::equal(reader.memory.begin() + 20, reader.memory.begin() + 30,
                         source.memory.begin() + 90));
}

// Offsets beyond 2^32, in memory that is mapped but not there.
TEST(TcpTransport, BeyondFourGiB) {
  constexpr std::uint64_t kSize = std::uint64_t{6} << 30U;
  constexpr std::uint64_t kFar = (std::uint64_t{5} << 30U) + 12345;
  const auto map = [] {
    void* at = ::mmap(nullptr, kSize, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return at == MAP_FAILED ? std::span<std::byte>{}
                            : std::span(static_cast<std::byte*>(at), kSize);
  };
  const std::span<std::byte> far_source = map();
  const std::span<std::byte> far_reader = map();
  if (far_source.empty() || far_reader.empty()) GTEST_SKIP() << "no 12 GiB of address space";
  for (std::uint64_t i = 0; i < kMiB; ++i) far_source[kFar + i] = content(3, i);
  {
    Party source(0, {});
    Party reader(1, {});
    const RegionId at_source = source.transport.add_region(far_source, Bytes(kSize));
    reader.region = reader.transport.add_region(far_reader, Bytes(kSize));
    const Access access = source.transport.allow(reader.self, kPumpVersion, at_source);
    const PeerId peer = reader.open(source);
    reader.read(1, peer, access, {kFar, kSize - kMiB, kMiB});
    reader.read(2, peer, access, {kSize - 1, 5, 2});
    EXPECT_TRUE(pump({&reader, &source}, [&] { return reader.reads.size() == 2; }));
    EXPECT_EQ(reader.status(1), "ok");
    EXPECT_EQ(reader.status(2), "out of range");
    EXPECT_TRUE(std::equal(far_reader.end() - kMiB, far_reader.end(),
                           far_source.begin() + static_cast<std::ptrdiff_t>(kFar)));
    EXPECT_EQ(far_reader[kSize - kMiB - 1], std::byte{0});
  }
  ::munmap(far_source.data(), kSize);
  ::munmap(far_reader.data(), kSize);
}

// A source that is killed in the middle of a read: the read ends with PeerGone, in bounded time;
// the rest comes from another one.
TEST(TcpProcesses, KilledSourceIsSurvived) {
  constexpr std::uint64_t kSize = 8 * kMiB;
  TcpOptions slow = calm();
  slow.rate = Rate(16 * kMiB);
  ServingProcess first(0, kSize, slow);
  ServingProcess second(2, kSize, calm());
  Party reader(1, std::vector<std::byte>(kSize, std::byte{0xcd}));
  const PeerId peer = reader.transport.open({WorkerId(0U), {}, first.address()}, 1);
  constexpr std::uint64_t kPart = kSize / 8;
  for (std::uint64_t i = 0; i < 8; ++i) {
    EXPECT_EQ(reader.read(i, peer, first.access(1), {i * kPart, i * kPart, kPart}), Posted::Posted);
  }
  EXPECT_TRUE(pump({&reader}, [&] { return reader.reads.size() == 2; }));
  first.signal(SIGKILL);
  EXPECT_TRUE(pump({&reader}, [&] { return !reader.lost.empty(); }));
  EXPECT_EQ(reader.transport.loss(peer), PeerLoss::Reset);
  ASSERT_EQ(reader.reads.size(), 8U);
  const PeerId other = reader.transport.open({WorkerId(2U), {}, second.address()}, 1);
  std::size_t gone = 0;
  for (std::uint64_t i = 0; i < 8; ++i) {
    if (reader.status(i) == "ok") continue;
    EXPECT_EQ(reader.status(i), "peer gone");
    ++gone;
    EXPECT_EQ(reader.read(100 + i, other, second.access(1), {i * kPart, i * kPart, kPart}),
              Posted::Posted);
  }
  EXPECT_GT(gone, 0U);
  EXPECT_TRUE(pump({&reader}, [&] { return reader.reads.size() == 8 + gone; }));
  for (std::uint64_t i = 0; i < 8; ++i) {
    const std::uint64_t seed = reader.status(i) == "ok" ? 0 : 2;
    for (std::uint64_t k = i * kPart; k < (i + 1) * kPart; ++k) {
      ASSERT_EQ(reader.memory[k], content(seed, k)) << "byte " << k;
    }
  }
  EXPECT_EQ(reader.lost.size(), 1U);
}

// A process that is stopped keeps its connections: only silence tells.
TEST(TcpProcesses, SilentSourceIsNoticed) {
  ServingProcess source(0, kMiB, calm());
  TcpOptions options;
  options.heartbeat = milliseconds(200);
  options.silence = seconds(2);
  Party reader(1, std::vector<std::byte>(kMiB), options);
  const PeerId peer = reader.transport.open({WorkerId(0U), {}, source.address()}, 1);
  reader.read(1, peer, source.access(1), {0, 0, kMiB});
  EXPECT_TRUE(pump({&reader}, [&] { return reader.done(1) != nullptr; }));
  pump_for({&reader}, milliseconds(2500));  // idle, but alive
  EXPECT_TRUE(reader.lost.empty());
  source.signal(SIGSTOP);
  reader.read(2, peer, source.access(1), {0, 0, kMiB});
  EXPECT_TRUE(pump({&reader}, [&] { return !reader.lost.empty(); }));
  EXPECT_EQ(reader.transport.loss(peer), PeerLoss::Silent);
  EXPECT_EQ(reader.status(2), "peer gone");
}

// Connections that never say who they are, in both directions.
TEST(TcpTransport, HalfOpenConnectionsEnd) {
  TcpOptions options;
  options.handshake = milliseconds(300);
  options.heartbeat = milliseconds(100);
  Party source(0, content_bytes(1, 1000), options);
  const real::Descriptor mute = raw_connection(source.transport.address());
  const real::Descriptor listener = real::listen_on("127.0.0.1:0", false);
  const std::string deaf = to_string(real::bound_address(listener));
  Party reader(1, std::vector<std::byte>(1000), options);
  const PeerId peer = reader.transport.open({WorkerId(5U), {}, deaf}, 1);
  reader.read(1, peer, {}, {0, 0, 10});
  EXPECT_TRUE(pump({&reader, &source}, [&] { return !reader.lost.empty(); }));
  EXPECT_EQ(reader.transport.loss(peer), PeerLoss::HandshakeTimeout);
  EXPECT_EQ(reader.status(1), "peer gone");
  const auto closed = [&] {
    std::byte byte{};
    const ssize_t got = ::recv(mute.get(), &byte, 1, MSG_DONTWAIT);
    return got == 0 || (got < 0 && errno != EAGAIN);
  };
  EXPECT_TRUE(pump({&reader, &source}, closed));
  // Nobody listens there.
  const PeerId nobody = reader.transport.open({WorkerId(5U), {}, "127.0.0.1:1"}, 1);
  EXPECT_TRUE(pump({&reader}, [&] { return reader.lost.size() == 2; }));
  EXPECT_EQ(reader.transport.loss(nobody), PeerLoss::Unreachable);
}

// Who restarts on the same port is not taken for its former self, and neither is a former reader.
TEST(TcpTransport, RestartsAreRecognised) {
  auto source = std::make_unique<Party>(0, content_bytes(1, 1000));
  const std::string before = source->transport.address();
  Party reader(1, std::vector<std::byte>(1000, std::byte{0xcd}));
  const Access access = source->transport.allow(reader.self, kPumpVersion, source->region);
  source.reset();
  TcpOptions options = calm();
  options.listen = address_only(before);
  source = std::make_unique<Party>(0, content_bytes(2, 1000), options);
  const PeerId stale = reader.transport.open({WorkerId(0U), {}, before}, 1);
  reader.read(1, stale, access, {0, 0, 1000});
  const std::array<std::byte, 1> payload{};
  reader.transport.send(stale, payload);
  EXPECT_TRUE(pump({&reader, source.get()}, [&] { return !reader.lost.empty(); }));
  EXPECT_EQ(reader.transport.loss(stale), PeerLoss::StaleInstance);
  EXPECT_EQ(reader.status(1), "peer gone");
  // Without the instance it is found, but the old token is worth nothing.
  const PeerId fresh = reader.transport.open({WorkerId(0U), {}, address_only(before)}, 1);
  reader.read(2, fresh, access, {0, 0, 1000});
  const PeerId wrong = reader.transport.open({WorkerId(9U), {}, address_only(before)}, 1);
  EXPECT_TRUE(pump({&reader, source.get()},
                   [&] { return reader.done(2) != nullptr && reader.lost.size() == 2; }));
  EXPECT_EQ(reader.status(2), "access denied");
  EXPECT_EQ(reader.transport.loss(wrong), PeerLoss::WrongWorker);
  EXPECT_TRUE(source->messages.empty());
  for (const std::byte byte : reader.memory) ASSERT_EQ(byte, std::byte{0xcd});

  TcpOptions reborn = calm();
  reborn.incarnation = 1;
  Party later(1, std::vector<std::byte>(1000), reborn);
  const PeerId of_later = later.open(*source);
  later.transport.send(of_later, payload);
  EXPECT_TRUE(pump({&reader, &later, source.get()}, [&] { return !source->messages.empty(); }));
  EXPECT_TRUE(pump({&reader, &later, source.get()}, [&] { return reader.lost.size() == 3; }));
  EXPECT_EQ(reader.transport.loss(fresh), PeerLoss::Reset);
  const PeerId again = reader.open(*source);
  EXPECT_TRUE(pump({&reader, &later, source.get()}, [&] { return reader.lost.size() == 4; }));
  EXPECT_EQ(reader.transport.loss(again), PeerLoss::StaleIncarnation);
  EXPECT_TRUE(later.lost.empty());
}

// Every token but the right one is refused, at the right worker only.
TEST(TcpTransport, TokensAreNeeded) {
  const std::uint64_t seed = std::random_device{}();
  RecordProperty("seed", std::to_string(seed));
  std::mt19937_64 random(seed);
  Party source(0, content_bytes(1, 1000));
  Party reader(1, std::vector<std::byte>(1000, std::byte{0xcd}));
  const Access right = source.transport.allow(reader.self, kPumpVersion, source.region);
  const PeerId peer = reader.open(source);
  OpId id = 0;
  for (; id < 50; ++id) {
    Access wrong = right;
    if (id % 2 == 0) {
      wrong.bytes[random() % right.size] ^= static_cast<std::byte>(1U << (random() % 8));
    } else {
      wrong.size = static_cast<std::uint8_t>(random() % right.size);
    }
    reader.read(id, peer, wrong, {0, 0, 1000});
    EXPECT_TRUE(pump({&reader, &source}, [&] { return reader.done(id) != nullptr; }));
    EXPECT_EQ(reader.status(id), "access denied") << "seed " << seed;
  }
  for (const std::byte byte : reader.memory) ASSERT_EQ(byte, std::byte{0xcd});
  reader.read(id, peer, right, {0, 0, 1000});
  EXPECT_TRUE(pump({&reader, &source}, [&] { return reader.done(id) != nullptr; }));
  EXPECT_EQ(reader.status(id), "ok");
  EXPECT_EQ(source.transport.allow(reader.self, kPumpVersion, source.region).size, right.size);
}

// While a read is under way: whatever is Ok afterwards was whole before Revoked came.
TEST(TcpTransport, RevokeDuringAReadWaitsForTheReader) {
  TcpOptions slow = calm();
  slow.rate = Rate(16 * kMiB);
  slow.revoke = seconds(60);
  constexpr std::uint64_t kSize = 4 * kMiB;
  Party source(0, content_bytes(1, kSize), slow);
  Party reader(1, std::vector<std::byte>(kSize));
  const Access access = source.transport.allow(reader.self, kPumpVersion, source.region);
  const Access other = source.transport.allow(reader.self, {1, 3}, source.region);
  const PeerId peer = reader.open(source);
  for (std::uint64_t i = 0; i < 4; ++i) reader.read(i, peer, access, {i * kMiB, i * kMiB, kMiB});
  reader.read(4, peer, other, {0, 0, 10});
  EXPECT_TRUE(pump({&reader, &source}, [&] { return reader.done(1) != nullptr; }));
  source.transport.revoke(reader.self, kPumpVersion);
  pump_for({&source}, milliseconds(200));
  EXPECT_TRUE(source.revoked.empty()) << "the reader has not said that it took in what was sent";
  EXPECT_TRUE(pump({&reader, &source}, [&] { return !source.revoked.empty(); }));
  std::fill(source.memory.begin(), source.memory.end(), std::byte{0xee});
  EXPECT_TRUE(pump({&reader, &source}, [&] { return reader.reads.size() == 5; }));
  EXPECT_EQ(reader.status(3), "access denied");
  EXPECT_EQ(reader.status(4), "ok");  // another version, after it
  for (std::uint64_t i = 1; i < 4; ++i) {
    if (reader.status(i) != "ok") continue;
    for (std::uint64_t k = i * kMiB; k < (i + 1) * kMiB; ++k) {
      ASSERT_EQ(reader.memory[k], content(1, k)) << "byte " << k;
    }
  }
  EXPECT_TRUE(reader.lost.empty());
}

// With a frame half gone and no room for the rest: no byte of the region leaves after the call, and
// what else the reader has asked for on that connection goes on.
TEST(TcpTransport, RevokeInTheMiddleOfAFrame) {
  constexpr std::uint64_t kSize = 32 * kMiB;
  TcpOptions patient = calm();
  patient.revoke = seconds(60);
  Party source(0, std::vector<std::byte>(kSize, std::byte{0x11}), patient);
  std::vector<std::byte> more = content_bytes(9, kMiB);
  const RegionId others = source.transport.add_region(more, Bytes(more.size()));
  Party reader(1, std::vector<std::byte>(kSize));
  const Access access = source.transport.allow(reader.self, kPumpVersion, source.region);
  const Access other = source.transport.allow(reader.self, {1, 3}, others);
  const PeerId peer = reader.open(source);
  reader.read(1, peer, access, {0, 0, kSize - kMiB});
  reader.read(2, peer, other, {0, kSize - kMiB, kMiB});
  EXPECT_TRUE(pump({&reader, &source}, [&] { return source.transport.readers() == 1; }));
  reader.poll();
  pump_for({&source}, milliseconds(100));  // until nothing more goes into the socket
  source.transport.revoke(reader.self, kPumpVersion);
  std::fill(source.memory.begin(), source.memory.end(), std::byte{0xee});
  pump_for({&source}, milliseconds(50));
  EXPECT_TRUE(source.revoked.empty());
  EXPECT_TRUE(pump({&reader, &source},
                   [&] { return reader.reads.size() == 2 && !source.revoked.empty(); }));
  EXPECT_EQ(reader.status(1), "access denied");
  EXPECT_EQ(reader.status(2), "ok");
  EXPECT_TRUE(std::equal(more.begin(), more.end(), reader.memory.end() - kMiB));
  const auto leaked = std::find(reader.memory.begin(), reader.memory.end() - kMiB, std::byte{0xee});
  EXPECT_EQ(leaked, reader.memory.end() - kMiB);
  EXPECT_EQ(reader.memory[0], std::byte{0x11});
  EXPECT_TRUE(reader.lost.empty());
}

// A reader that does not answer is cut off at the deadline.
TEST(TcpTransport, RevokeIsBounded) {
  TcpOptions options = calm();
  options.revoke = milliseconds(300);
  constexpr std::uint64_t kSize = 32 * kMiB;
  Party source(0, content_bytes(1, kSize), options);
  Party reader(1, std::vector<std::byte>(kSize, std::byte{0xcd}));
  const Access access = source.transport.allow(reader.self, kPumpVersion, source.region);
  const PeerId peer = reader.open(source);
  reader.read(1, peer, access, {0, 0, kSize});
  EXPECT_TRUE(pump({&reader, &source}, [&] { return source.transport.readers() == 1; }));
  reader.poll();
  source.transport.revoke(reader.self, kPumpVersion);
  EXPECT_TRUE(pump({&source}, [&] { return !source.revoked.empty(); }));
  EXPECT_EQ(source.transport.readers(), 0U);
  EXPECT_TRUE(pump({&reader, &source}, [&] { return !reader.lost.empty(); }));
  EXPECT_TRUE(reader.status(1) == "peer gone" || reader.status(1) == "access denied")
      << reader.status(1);
}

// One that does not read holds up nobody else.
TEST(TcpTransport, SlowReaderBlocksNobody) {
  constexpr std::uint64_t kSize = 32 * kMiB;
  Party source(0, content_bytes(1, kSize));
  Party slow(1, std::vector<std::byte>(kSize));
  Party quick(2, std::vector<std::byte>(kSize));
  const PeerId to_slow = slow.open(source);
  slow.read(1, to_slow, source.transport.allow(slow.self, kPumpVersion, source.region),
            {0, 0, kSize});
  EXPECT_TRUE(pump({&slow, &source}, [&] { return source.transport.readers() == 1; }));
  slow.poll();  // the request goes out; from here on it does nothing
  const PeerId to_quick = quick.open(source);
  quick.read(1, to_quick, source.transport.allow(quick.self, kPumpVersion, source.region),
             {0, 0, kSize});
  EXPECT_TRUE(pump({&quick, &source}, [&] { return quick.done(1) != nullptr; }));
  EXPECT_EQ(quick.status(1), "ok");
  EXPECT_EQ(quick.memory, source.memory);
  EXPECT_EQ(slow.done(1), nullptr);
  EXPECT_TRUE(pump({&slow, &source}, [&] { return slow.done(1) != nullptr; }));
  EXPECT_EQ(slow.memory, source.memory);
}

// Without a rate limit, too, readers share a source evenly.
TEST(TcpTransport, ReadersShareAtFullSpeed) {
  constexpr std::size_t kReaders = 64;
  constexpr std::uint64_t kRead = 256 * 1024;
  constexpr std::uint64_t kReads = 24;
  Party source(1000, content_bytes(1, kRead));
  std::vector<std::unique_ptr<Party>> readers;
  std::vector<Party*> all{&source};
  for (std::uint32_t r = 0; r < kReaders; ++r) {
    readers.push_back(std::make_unique<Party>(r, std::vector<std::byte>(kRead)));
    all.push_back(readers.back().get());
    const Access access = source.transport.allow(readers[r]->self, kPumpVersion, source.region);
    const PeerId peer = readers[r]->open(source);
    for (std::uint64_t i = 0; i < kReads; ++i) readers[r]->read(i, peer, access, {0, 0, kRead});
  }
  const auto someone = [&] {
    return std::any_of(readers.begin(), readers.end(),
                       [](const auto& reader) { return reader->reads.size() == kReads; });
  };
  EXPECT_TRUE(pump(all, someone));
  std::uint64_t total = 0;
  for (const auto& reader : readers) total += reader->reads.size();
  EXPECT_GE(static_cast<double>(total), 0.9 * kReads * kReaders);
  for (const auto& reader : readers) EXPECT_GE(reader->reads.size(), kReads - 4);
}

// Garbage closes the connection that it came on and no other.
TEST(TcpTransport, GarbageEndsOneConnection) {
  const std::uint64_t seed = std::random_device{}();
  RecordProperty("seed", std::to_string(seed));
  std::mt19937_64 random(seed);
  Party source(0, content_bytes(1, 1000));
  Party reader(1, std::vector<std::byte>(1000));
  const Access access = source.transport.allow(reader.self, kPumpVersion, source.region);
  const PeerId peer = reader.open(source);
  EXPECT_TRUE(pump({&reader, &source}, [&] { return source.transport.readers() == 1; }));
  for (std::uint64_t round = 0; round < 60; ++round) {
    const real::Descriptor raw = raw_connection(source.transport.address());
    std::vector<std::byte> bytes;
    if (round % 2 == 0) real::append_hello({WorkerId(7U), source.self, 0, 0, 0}, bytes);
    real::append_read(round, access, {}, bytes);
    const std::size_t from = round % 2 == 0 ? 56 : 0;
    for (std::size_t i = from; i < bytes.size() && round % 3 != 0; i += 1 + random() % 9) {
      bytes[i] = static_cast<std::byte>(random());
    }
    for (int i = 0; i < 100; ++i) bytes.push_back(static_cast<std::byte>(random() | 0x80U));
    pump_for({&source}, microseconds(200));
    EXPECT_EQ(::send(raw.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(bytes.size()));
    EXPECT_TRUE(pump({&source},
                     [&] {
                       std::array<std::byte, 256> answer{};
                       const ssize_t got =
                           ::recv(raw.get(), answer.data(), answer.size(), MSG_DONTWAIT);
                       return got == 0 || (got < 0 && errno != EAGAIN);
                     }))
        << "seed " << seed << " round " << round;
  }
  reader.read(1, peer, access, {0, 0, 1000});
  EXPECT_TRUE(pump({&reader, &source}, [&] { return reader.done(1) != nullptr; }));
  EXPECT_EQ(reader.status(1), "ok");
  EXPECT_EQ(source.transport.readers(), 1U);
}

// A source that sends what it must not: more than was asked, an early end, another's answer.
TEST(TcpTransport, FalseSourcesAreLeft) {
  using real::FrameType;
  Party reader(1, std::vector<std::byte>(1000, std::byte{0xcd}));
  const std::array<std::vector<real::FrameHeader>, 6> cases{{
      {{FrameType::Data, 0, 200, 0}},  // 100 were asked for
      {{FrameType::Done, 0, 0, 0}},    // nothing has come
      {{FrameType::Data, 0, 10, 5}},   // nobody asked
      {{FrameType::Hello, 0, 40, 0}},  // the wrong way
      {{FrameType::Done, 9, 0, 0}},    // no such status
      {{FrameType::Data, 0, 0, 0}},    // no bytes
  }};
  OpId id = 0;
  for (const auto& frames : cases) {
    const real::Descriptor listener = real::listen_on("127.0.0.1:0", false);
    const PeerId peer =
        reader.transport.open({WorkerId(0U), {}, to_string(real::bound_address(listener))}, 77);
    reader.read(++id, peer, {}, {0, 0, 100});
    real::Descriptor socket;
    EXPECT_TRUE(pump({&reader}, [&] {
      socket = real::accept_from(listener);
      return socket.valid();
    }));
    std::vector<std::byte> bytes;
    real::append_welcome({WorkerId(0U), 0, 77, 1}, bytes);
    for (const auto& frame : frames) real::append_header(frame, bytes);
    bytes.resize(bytes.size() + 300);
    EXPECT_GT(::send(socket.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL), 0);
    EXPECT_TRUE(pump({&reader}, [&] { return reader.lost.size() == id; })) << "case " << id;
    EXPECT_EQ(reader.transport.loss(peer), PeerLoss::BadFrame) << "case " << id;
    EXPECT_EQ(reader.status(id), "peer gone");
  }
  for (const std::byte byte : reader.memory) ASSERT_EQ(byte, std::byte{0xcd});
}

}  // namespace
}  // namespace holdfast::testing
