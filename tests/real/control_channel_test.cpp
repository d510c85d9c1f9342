#include "real/control_channel.hpp"

#include <gtest/gtest.h>

#include <functional>
#include <random>
#include <thread>

#include "core/error.hpp"
#include "real/clock.hpp"
#include "real/tcp_transport.hpp"

namespace holdfast::real {
namespace {

using Kind = ControlEvent::Kind;

std::vector<std::byte> message(std::uint64_t seed, std::size_t size) {
  std::mt19937_64 random(seed);
  std::vector<std::byte> bytes(size);
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(random());
  return bytes;
}

template <class End>
struct Inbox {
  explicit Inbox(End& of) : end(of) {}
  void poll() {
    std::array<ControlEvent, 3> some;
    for (std::size_t n = end.poll(some); n != 0; n = end.poll(some)) {
      for (std::size_t i = 0; i < n; ++i) events.push_back(std::move(some[i]));
    }
  }
  [[nodiscard]] std::size_t count(Kind kind) const {
    return static_cast<std::size_t>(
        std::count_if(events.begin(), events.end(),
                      [&](const ControlEvent& event) { return event.kind == kind; }));
  }
  End& end;
  std::vector<ControlEvent> events;
};

bool until(const std::function<void()>& poll, const std::function<bool()>& holds) {
  const Time end = steady_now() + seconds(30);
  while (!holds()) {
    if (steady_now() > end) return false;
    poll();
    std::this_thread::sleep_for(std::chrono::microseconds(100));
  }
  return true;
}

// All sizes, both ways, in order, the largest included.
TEST(ControlChannel, MessagesArriveInOrder) {
  ControlServer server({});
  Inbox at_server(server);
  ControlClient client(WorkerId(5U), 2, server.address(), {});
  Inbox at_client(client);
  const auto poll = [&] {
    at_server.poll();
    at_client.poll();
  };
  EXPECT_FALSE(client.send(message(0, 1)));
  EXPECT_TRUE(until(poll, [&] { return client.connected() && server.connected(WorkerId(5U)); }));
  const std::vector<std::size_t> sizes{0, 1, 7, 4096, 100'000, kMaxControl, 3, kMaxControl};
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    EXPECT_TRUE(client.send(message(i, sizes[i])));
    EXPECT_TRUE(server.send(WorkerId(5U), message(i + 100, sizes[i])));
  }
  EXPECT_FALSE(client.send(message(0, kMaxControl + 1)));
  EXPECT_FALSE(server.send(WorkerId(5U), message(0, kMaxControl + 1)));
  EXPECT_FALSE(server.send(WorkerId(6U), message(0, 1)));
  EXPECT_TRUE(until(poll, [&] {
    return at_server.events.size() == sizes.size() + 1 &&
           at_client.events.size() == sizes.size() + 1;
  }));
  EXPECT_EQ(at_server.events[0].kind, Kind::Connected);
  EXPECT_EQ(at_client.events[0].kind, Kind::Connected);
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    EXPECT_EQ(at_server.events[i + 1].worker, WorkerId(5U));
    EXPECT_EQ(at_server.events[i + 1].incarnation, 2U);
    EXPECT_EQ(at_server.events[i + 1].payload, message(i, sizes[i])) << i;
    EXPECT_EQ(at_client.events[i + 1].payload, message(i + 100, sizes[i])) << i;
  }
}

// The server goes and comes back on its port: clients notice and connect anew.
TEST(ControlChannel, ClientsComeBack) {
  ControlOptions options;
  options.give_up = milliseconds(150);
  auto server = std::make_unique<ControlServer>(options);
  options.listen = server->address();
  ControlClient client(WorkerId(1U), 0, options.listen, options);
  Inbox at_client(client);
  EXPECT_TRUE(until(
      [&] {
        at_client.poll();
        std::array<ControlEvent, 1> some;
        server->poll(some);
      },
      [&] { return client.connected(); }));
  server.reset();
  EXPECT_TRUE(
      until([&] { at_client.poll(); }, [&] { return at_client.count(Kind::Unreachable) == 2; }));
  EXPECT_EQ(at_client.count(Kind::Disconnected), 1U);
  EXPECT_FALSE(client.send({}));
  server = std::make_unique<ControlServer>(options);
  Inbox at_server(*server);
  EXPECT_TRUE(until(
      [&] {
        at_client.poll();
        at_server.poll();
      },
      [&] { return at_client.count(Kind::Connected) == 2; }));
  EXPECT_TRUE(client.send(message(1, 10)));
  EXPECT_TRUE(
      until([&] { at_server.poll(); }, [&] { return at_server.count(Kind::Message) == 1; }));
}

// A later incarnation replaces the former; an earlier one is refused. Who is disconnected hears it.
TEST(ControlChannel, IncarnationsReplace) {
  ControlServer server({});
  Inbox at_server(server);
  ControlOptions options;
  options.retry = seconds(60);
  ControlClient first(WorkerId(1U), 3, server.address(), options);
  Inbox at_first(first);
  const auto poll = [&] {
    at_server.poll();
    at_first.poll();
  };
  EXPECT_TRUE(until(poll, [&] { return first.connected(); }));
  ControlClient second(WorkerId(1U), 4, server.address(), options);
  Inbox at_second(second);
  EXPECT_TRUE(until(
      [&] {
        poll();
        at_second.poll();
      },
      [&] { return second.connected() && at_first.count(Kind::Disconnected) == 1; }));
  ASSERT_EQ(at_server.events.size(), 3U);
  EXPECT_EQ(at_server.events[1].kind, Kind::Disconnected);
  EXPECT_EQ(at_server.events[1].incarnation, 3U);
  EXPECT_EQ(at_server.events[2].kind, Kind::Connected);
  EXPECT_EQ(at_server.events[2].incarnation, 4U);
  options.give_up = milliseconds(300);
  ControlClient late(WorkerId(1U), 3, server.address(), options);
  Inbox at_late(late);
  EXPECT_TRUE(until(
      [&] {
        poll();
        at_late.poll();
        at_second.poll();
      },
      [&] { return at_late.count(Kind::Unreachable) == 1; }));
  EXPECT_TRUE(second.connected());
  server.disconnect(WorkerId(1U));
  EXPECT_TRUE(until(
      [&] {
        at_server.poll();
        at_second.poll();
      },
      [&] { return at_second.count(Kind::Disconnected) == 1; }));
}

// Silence in both directions, and garbage.
TEST(ControlChannel, SilentAndFalsePeersAreLeft) {
  ControlOptions options;
  options.heartbeat = milliseconds(200);
  options.silence = milliseconds(1500);
  options.handshake = seconds(1);
  options.retry = seconds(60);
  ControlServer server(options);
  Inbox at_server(server);
  ControlClient client(WorkerId(1U), 0, server.address(), options);
  Inbox at_client(client);
  const auto poll = [&] {
    at_server.poll();
    at_client.poll();
  };
  EXPECT_TRUE(until(poll, [&] { return client.connected(); }));
  const Time idle = steady_now() + milliseconds(2000);
  EXPECT_TRUE(until(poll, [&] { return steady_now() > idle; }));
  EXPECT_EQ(at_server.count(Kind::Disconnected), 0U);

  const std::uint64_t seed = std::random_device{}();
  for (std::uint64_t i = 0; i < 20; ++i) {
    const Descriptor raw = start_connect(*parse_address(server.address()));
    auto bytes = message(seed + i, 200);
    if (i % 2 == 0) bytes[1] |= std::byte{0x80};  // a length beyond all limits, surely
    if (i == 0) bytes.clear();                    // says nothing
    EXPECT_TRUE(until(poll, [&] {
      return ::send(raw.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL) ==
             static_cast<ssize_t>(bytes.size());
    }));
    EXPECT_TRUE(until(poll,
                      [&] {
                        std::byte answer{};
                        const ssize_t got = ::recv(raw.get(), &answer, 1, MSG_DONTWAIT);
                        return got == 0 || (got < 0 && errno != EAGAIN);
                      }))
        << "seed " << seed << " round " << i;
  }
  EXPECT_TRUE(client.connected());
  // The client stops: the server hears nothing.
  EXPECT_TRUE(
      until([&] { at_server.poll(); }, [&] { return at_server.count(Kind::Disconnected) == 1; }));
}

TEST(ControlChannel, OthersThanLoopbackAreRefused) {
  ControlOptions options;
  EXPECT_THROW(ControlClient(WorkerId(1U), 0, "10.0.0.1:5", options), Error);
  EXPECT_THROW(ControlClient(WorkerId(1U), 0, "nonsense", options), Error);
  options.listen = "0.0.0.0:0";
  EXPECT_THROW(ControlServer{options}, Error);
}

// A worker's thread waits for its transport and for the coordinator at once; another thread ends
// the coordinator's wait.
TEST(ControlChannel, OneThreadWaitsForAll) {
  ControlServer server({});
  std::thread coordinator([&] {
    Inbox inbox(server);
    while (inbox.count(Kind::Message) == 0) {
      server.wait(steady_now() + seconds(30));
      inbox.poll();
    }
    EXPECT_TRUE(server.send(WorkerId(2U), inbox.events.back().payload));
    server.wait(steady_now() + milliseconds(50));  // sends
    server.wait(steady_now() + seconds(1000));     // until it is woken
    inbox.poll();
  });
  TcpTransport transport(WorkerId(2U));
  ControlClient client(WorkerId(2U), 0, server.address(), {});
  Inbox inbox(client);
  transport.watch(client.descriptor());
  bool sent = false;
  const Time end = steady_now() + seconds(60);
  while (inbox.count(Kind::Message) == 0 && steady_now() < end) {
    inbox.poll();
    if (client.connected() && !sent) sent = client.send(message(1, 50'000));
    if (inbox.count(Kind::Message) == 0) transport.wait(std::min(end, client.next_time()));
  }
  EXPECT_EQ(inbox.count(Kind::Message), 1U);
  transport.unwatch(client.descriptor());
  std::this_thread::sleep_for(std::chrono::milliseconds(60));
  server.wake_up().raise();
  coordinator.join();
}

}  // namespace
}  // namespace holdfast::real
