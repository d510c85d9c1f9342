#include "core/catalog/session.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "core/error.hpp"

namespace holdfast {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

using ToWorker = Session<std::string, int>;
using ToCoordinator = Session<int, std::string>;

constexpr SessionKey kKey{3, 7};

Time ms(std::int64_t n) {
  return milliseconds(n);
}
std::shared_ptr<const std::string> text(std::string_view s) {
  return std::make_shared<const std::string>(s);
}
std::shared_ptr<const int> number(int n) {
  return std::make_shared<const int>(n);
}

template <class Out, class In>
std::vector<Frame<Out>> due(Session<Out, In>& session, Time now) {
  std::vector<Frame<Out>> frames;
  session.due(now, frames);
  return frames;
}
template <class Out, class In>
std::vector<In> receive(Session<Out, In>& session, const Frame<In>& frame, Time now) {
  std::vector<std::shared_ptr<const In>> delivered;
  EXPECT_EQ(session.receive(frame, now, delivered), FrameAnswer::Taken);
  std::vector<In> values;
  for (const auto& payload : delivered) values.push_back(*payload);
  return values;
}
template <class Payload>
std::vector<std::uint64_t> sequences(const std::vector<Frame<Payload>>& frames) {
  std::vector<std::uint64_t> found;
  for (const auto& frame : frames) found.push_back(frame.sequence);
  return found;
}

TEST(Session, IsSilentWithoutAnythingToSay) {
  ToWorker session(kKey, {});
  EXPECT_EQ(session.next_deadline(), Time::never());
  EXPECT_THAT(due(session, ms(5)), IsEmpty());
  EXPECT_EQ(session.memory_bytes(), sizeof(session));
  // A coordinator keeps one for each of 16,384 workers.
  EXPECT_LE(sizeof(session), 192U);
}

TEST(Session, SendsOnceAndAcknowledgesAfterTheDelay) {
  ToWorker a(kKey, {});
  ToCoordinator b(kKey, {});
  a.send(text("go"), ms(0));
  EXPECT_LE(a.next_deadline(), ms(0));
  const auto sent = due(a, ms(0));
  ASSERT_EQ(sent.size(), 1U);
  EXPECT_EQ(a.next_deadline(), ms(200));
  EXPECT_EQ(a.unacknowledged(), 1U);

  EXPECT_THAT(receive(b, sent[0], ms(1)), ElementsAre("go"));
  EXPECT_EQ(b.received(), 1U);
  EXPECT_EQ(b.next_deadline(), ms(21));
  EXPECT_THAT(due(b, ms(20)), IsEmpty());
  const auto acknowledgement = due(b, ms(21));
  ASSERT_EQ(acknowledgement.size(), 1U);
  EXPECT_EQ(acknowledgement[0].payload, nullptr);
  EXPECT_EQ(acknowledgement[0].acknowledged, 1U);
  EXPECT_EQ(b.next_deadline(), Time::never());

  EXPECT_THAT(receive(a, acknowledgement[0], ms(22)), IsEmpty());
  EXPECT_EQ(a.unacknowledged(), 0U);
  EXPECT_EQ(a.next_deadline(), Time::never());
  EXPECT_EQ(a.memory_bytes(), sizeof(a));
  EXPECT_EQ(b.memory_bytes(), sizeof(b));
}

TEST(Session, AcknowledgesOnWhatItSends) {
  ToWorker a(kKey, {});
  ToCoordinator b(kKey, {});
  a.send(text("go"), ms(0));
  receive(b, due(a, ms(0)).at(0), ms(1));
  b.send(number(5), ms(2));
  const auto reply = due(b, ms(2));
  ASSERT_EQ(reply.size(), 1U);
  EXPECT_EQ(reply[0].acknowledged, 1U);
  EXPECT_EQ(b.next_deadline(), ms(202));  // its own payload; no acknowledgement is owed
  EXPECT_THAT(receive(a, reply[0], ms(3)), ElementsAre(5));
  EXPECT_EQ(a.unacknowledged(), 0U);
}

TEST(Session, SendsAgainEverMoreSlowly) {
  ToWorker a(kKey, {});
  a.send(text("go"), ms(0));
  due(a, ms(0));
  std::int64_t at = 0;
  for (const std::int64_t wait : {200, 400, 800, 1600, 2000, 2000}) {
    at += wait;
    EXPECT_EQ(a.next_deadline(), ms(at));
    EXPECT_THAT(due(a, ms(at - 1)), IsEmpty());
    EXPECT_THAT(sequences(due(a, ms(at))), ElementsAre(0));
  }
  // News from the other end brings the first time-out back, for what is left.
  a.send(text("on"), ms(at));
  EXPECT_THAT(sequences(due(a, ms(at))), ElementsAre(1));
  receive(a, Frame<int>{kKey, 0, 1, nullptr}, ms(at + 10));
  EXPECT_EQ(a.next_deadline(), ms(at + 210));
  EXPECT_THAT(sequences(due(a, ms(at + 210))), ElementsAre(1));
  EXPECT_EQ(a.next_deadline(), ms(at + 610));
}

TEST(Session, AnOldAcknowledgementDoesNotPutOffTheTimeOut) {
  ToWorker a(kKey, {});
  a.send(text("go"), ms(0));
  due(a, ms(0));
  receive(a, Frame<int>{kKey, 0, 0, nullptr}, ms(150));
  EXPECT_EQ(a.next_deadline(), ms(200));
}

// Whoever goes on sending must not put off the repair of what was lost, nor the acknowledgement of
// what comes in.
TEST(Session, TrafficPutsNothingOff) {
  ToWorker a(kKey, {});
  ToCoordinator b(kKey, {});
  for (std::int64_t at = 0; at < 200; at += 10) {
    a.send(text("go"), ms(at));
    const auto frames = due(a, ms(at));
    ASSERT_EQ(frames.size(), 1U);
    if (at < 20) receive(b, frames[0], ms(at + 1));
  }
  EXPECT_EQ(a.next_deadline(), ms(200));
  EXPECT_EQ(b.next_deadline(), ms(21));
  // What is sent when an acknowledgement is due carries it: there is no second frame.
  b.send(number(1), ms(21));
  const auto frames = due(b, ms(21));
  ASSERT_EQ(frames.size(), 1U);
  EXPECT_EQ(frames[0].acknowledged, 2U);
}

TEST(Session, KeepsToItsWindow) {
  SessionConfig config;
  config.window = 3;
  ToWorker a(kKey, config);
  for (const char* word : {"a", "b", "c", "d", "e"}) a.send(text(word), ms(0));
  EXPECT_THAT(sequences(due(a, ms(0))), ElementsAre(0, 1, 2));
  EXPECT_EQ(a.queued(), 2U);
  EXPECT_EQ(a.unacknowledged(), 5U);
  EXPECT_EQ(a.next_deadline(), ms(200));
  receive(a, Frame<int>{kKey, 0, 1, nullptr}, ms(9));
  EXPECT_LE(a.next_deadline(), ms(9));
  EXPECT_THAT(sequences(due(a, ms(9))), ElementsAre(3));
  EXPECT_EQ(a.queued(), 1U);
  // A time-out sends what is in flight, not what queues.
  EXPECT_THAT(sequences(due(a, ms(209))), ElementsAre(1, 2, 3));
}

TEST(Session, DeliversInOrderAndOnce) {
  ToWorker a(kKey, {});
  ToCoordinator b(kKey, {});
  for (const char* word : {"a", "b", "c", "d"}) a.send(text(word), ms(0));
  const auto sent = due(a, ms(0));
  EXPECT_THAT(receive(b, sent[2], ms(1)), IsEmpty());
  EXPECT_THAT(receive(b, sent[2], ms(1)), IsEmpty());
  EXPECT_THAT(receive(b, sent[1], ms(1)), IsEmpty());
  EXPECT_THAT(receive(b, sent[0], ms(1)), ElementsAre("a", "b", "c"));
  EXPECT_THAT(receive(b, sent[0], ms(1)), IsEmpty());
  EXPECT_THAT(receive(b, sent[2], ms(1)), IsEmpty());
  EXPECT_EQ(b.memory_bytes(), sizeof(b));
  EXPECT_THAT(receive(b, sent[3], ms(1)), ElementsAre("d"));
}

TEST(Session, AcknowledgesAgainWhatComesAgain) {
  ToWorker a(kKey, {});
  ToCoordinator b(kKey, {});
  a.send(text("go"), ms(0));
  receive(b, due(a, ms(0)).at(0), ms(1));
  EXPECT_EQ(due(b, ms(21)).size(), 1U);  // lost on the way
  receive(b, due(a, ms(200)).at(0), ms(201));
  EXPECT_EQ(b.next_deadline(), ms(221));
  EXPECT_EQ(due(b, ms(221)).at(0).acknowledged, 1U);
}

TEST(Session, AcknowledgesHalfAWindowAtOnce) {
  SessionConfig config;
  config.window = 4;
  ToWorker a(kKey, config);
  ToCoordinator b(kKey, config);
  for (const char* word : {"a", "b", "c", "d"}) a.send(text(word), ms(0));
  const auto sent = due(a, ms(0));
  receive(b, sent[0], ms(1));
  EXPECT_EQ(b.next_deadline(), ms(21));
  receive(b, sent[1], ms(2));
  EXPECT_EQ(b.next_deadline(), ms(2));
  EXPECT_EQ(due(b, ms(2)).at(0).acknowledged, 2U);
  receive(b, sent[2], ms(3));
  EXPECT_EQ(b.next_deadline(), ms(23));
}

TEST(Session, RefusesFramesOfOtherSessionsByValue) {
  ToWorker a(kKey, {});
  a.send(text("go"), ms(0));
  due(a, ms(0));
  std::vector<std::shared_ptr<const int>> delivered;
  for (const SessionKey other : {SessionKey{2, 7}, SessionKey{4, 7}, SessionKey{3, 6}}) {
    EXPECT_EQ(a.receive({other, 0, 1, number(1)}, ms(1), delivered), FrameAnswer::OtherKey);
  }
  EXPECT_EQ(a.receive({kKey, 0, 2, number(1)}, ms(1), delivered), FrameAnswer::Impossible);
  EXPECT_THAT(delivered, IsEmpty());
  EXPECT_EQ(a.received(), 0U);
  EXPECT_EQ(a.unacknowledged(), 1U);
  EXPECT_EQ(a.next_deadline(), ms(200));
}

// Who does not keep to the window cannot make the receiver keep more than that.
TEST(Session, IgnoresPayloadsBeyondTheWindow) {
  SessionConfig config;
  config.window = 4;
  ToCoordinator b(kKey, config);
  EXPECT_THAT(receive(b, {kKey, 4, 0, text("e")}, ms(1)), IsEmpty());
  EXPECT_THAT(receive(b, {kKey, ~0ULL, 0, text("z")}, ms(1)), IsEmpty());
  EXPECT_EQ(b.memory_bytes(), sizeof(b));
  EXPECT_THAT(receive(b, {kKey, 3, 0, text("d")}, ms(1)), IsEmpty());
  EXPECT_GT(b.memory_bytes(), sizeof(b));
}

TEST(SessionConfig, RefusesWhatCannotWork) {
  EXPECT_NO_THROW(validate(SessionConfig{}));
  const auto message = [](SessionConfig config) -> std::string {
    try {
      validate(config);
    } catch (const Error& error) {
      return error.message();
    }
    return "accepted";
  };
  EXPECT_THAT(message({ms(20), ms(200), ms(2000), 0}), HasSubstr("window"));
  EXPECT_THAT(message({ms(200), ms(200), ms(2000), 1}), HasSubstr("200ms, 200ms, 2s"));
  EXPECT_THAT(message({ms(-1), ms(200), ms(2000), 1}), HasSubstr("0 <= ack_delay"));
  EXPECT_THAT(message({ms(20), ms(200), ms(199), 1}), HasSubstr("timeout_cap"));
  EXPECT_EQ(message({ms(0), ms(1), ms(1), 1}), "accepted");
}

}  // namespace
}  // namespace holdfast
