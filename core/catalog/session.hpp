// Reliable delivery between one incarnation of a worker and one epoch of the coordinator, over a
// network that loses, doubles, delays and reorders: every payload arrives exactly once and in the
// order in which it was sent, as long as frames get through now and then.
//
// A session is passive: it has no clock and no thread, and sends nothing by itself. Both ends use
// the same type, with Out and In exchanged:
//
//   Session<Command, Report> to_worker({epoch, incarnation}, config);
//   to_worker.send(command, now);
//   to_worker.due(now, frames);                      // carry them; again at next_deadline()
//   to_worker.receive(frame, now, reports);          // reports: what is there now, in order
//
// How it works. Payloads are numbered from 0. A frame carries at most one of them and always the
// count of payloads that its sender has received in order; that count is the only acknowledgement.
// An acknowledgement without anything to ride on waits for `ack_delay`, or goes at once when half a
// window is not acknowledged yet. One timer covers all frames in flight: it starts with the first
// of them, starts anew when an acknowledgement moves on, and when it fires all frames in flight are
// sent again and the time-out doubles, up to a cap. Payloads that come early wait at the receiver.
//
// Invariants:
//   1. at most `window` frames are in flight; what is sent beyond that queues, without a limit of
//      its own (`queued` tells the caller, who may limit);
//   2. with nothing unacknowledged and no acknowledgement owed there is no deadline, and the
//   session
//      owns no memory but itself;
//   3. the count of what was received never falls; nothing is delivered twice.
//
// A frame of another key changes nothing: whether it comes from a worker that is gone or from an
// epoch that is over is for the caller to judge. A new epoch or incarnation takes a new session;
// what was not acknowledged in the old one may or may not have arrived.
//
// Complexity: send and receive O(1) amortised, due O(frames that it returns). `now` never falls.
// Deterministic. Not thread-safe. Payloads are immutable and shared, never copied.
#pragma once

#include <algorithm>
#include <cassert>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "core/units.hpp"

namespace holdfast {

// Whom a session joins. Epochs and incarnations only grow.
struct SessionKey {
  std::uint64_t epoch = 0;
  std::uint64_t incarnation = 0;
  friend constexpr auto operator<=>(const SessionKey&, const SessionKey&) = default;
};

template <class Payload>
struct Frame {
  SessionKey key;
  std::uint64_t sequence = 0;              // of the payload; without one it means nothing
  std::uint64_t acknowledged = 0;          // the sender has received all payloads below this one
  std::shared_ptr<const Payload> payload;  // null: an acknowledgement alone
};

struct SessionConfig {
  // How long an acknowledgement waits for a frame to ride on. Well below `timeout`, or frames are
  // sent twice for nothing.
  Time ack_delay = milliseconds(20);
  // Until frames in flight are sent again for the first time. Above a round trip plus ack_delay.
  Time timeout = milliseconds(200);
  // The time-out doubles up to this while nothing is heard.
  Time timeout_cap = seconds(2);
  // Frames in flight. The receiver keeps as many that came early: both ends use the same window.
  std::uint32_t window = 64;
};
// Throws Error(BadValue) unless window >= 1 and 0 <= ack_delay < timeout <= timeout_cap.
void validate(const SessionConfig& config);

enum class FrameAnswer {
  Taken,       // also where it brought nothing new
  OtherKey,    // belongs to another session: nothing changed
  Impossible,  // acknowledges what was never sent: nothing changed
};
[[nodiscard]] const char* to_string(FrameAnswer answer);

template <class Out, class In>
class Session {
 public:
  // Precondition: validate(config) does not throw.
  Session(SessionKey key, const SessionConfig& config)
      : key_(key), config_(config), wait_(config.timeout) {}

  // Takes a payload (not null); `due` returns it as soon as the window allows.
  void send(std::shared_ptr<const Out> payload, Time now) {
    assert(payload);
    sent_.push_back(std::move(payload));
    open_window(now);
  }

  // Takes in a frame and appends the payloads that are now complete up to them, in order.
  FrameAnswer receive(const Frame<In>& frame, Time now,
                      std::vector<std::shared_ptr<const In>>& delivered) {
    if (frame.key != key_) return FrameAnswer::OtherKey;
    if (frame.acknowledged > next_) return FrameAnswer::Impossible;
    acknowledge(frame.acknowledged, now);
    if (frame.payload) take(frame, now, delivered);
    return FrameAnswer::Taken;
  }

  // Appends the frames to carry now: new ones, those in flight again if their time is out, and an
  // acknowledgement where one is owed and no other frame carries it.
  void due(Time now, std::vector<Frame<Out>>& frames) {
    const std::size_t before = frames.size();
    if (resend_at_ <= now) {
      for (std::uint64_t sequence = first_; sequence < next_; ++sequence) emit(sequence, frames);
      wait_ = std::min(wait_ * 2, config_.timeout_cap);
      resend_at_ = now + wait_;
    }
    while (may_send()) {
      if (next_ == first_) resend_at_ = now + wait_;
      emit(next_++, frames);
    }
    send_at_ = Time::never();
    if (ack_at_ <= now && frames.size() == before) {
      frames.push_back({key_, next_, received_, nullptr});
    }
    if (frames.size() > before) {
      ack_at_ = Time::never();
      told_ = received_;
    }
  }

  // When `due` has something to return at the latest; Time::never() if nothing is waited for. At
  // or before the last `now` if it has something already.
  [[nodiscard]] Time next_deadline() const { return std::min({resend_at_, send_at_, ack_at_}); }

  [[nodiscard]] const SessionKey& key() const { return key_; }
  // Payloads that were sent and are not known to have arrived, those that queue included.
  [[nodiscard]] std::uint64_t unacknowledged() const { return sent_.size() - head_; }
  // Of these, payloads that wait for the window.
  [[nodiscard]] std::uint64_t queued() const { return unacknowledged() - (next_ - first_); }
  // Payloads delivered so far.
  [[nodiscard]] std::uint64_t received() const { return received_; }
  // With what it owns, payloads excluded.
  [[nodiscard]] std::size_t memory_bytes() const {
    return sizeof(*this) + sent_.capacity() * sizeof(sent_[0]) +
           early_.capacity() * sizeof(early_[0]);
  }

 private:
  [[nodiscard]] bool may_send() const { return queued() > 0 && next_ - first_ < config_.window; }

  void open_window(Time now) {
    if (may_send()) send_at_ = std::min(send_at_, now);
  }

  void emit(std::uint64_t sequence, std::vector<Frame<Out>>& frames) const {
    const std::size_t index = head_ + static_cast<std::size_t>(sequence - first_);
    frames.push_back({key_, sequence, received_, sent_[index]});
  }

  void acknowledge(std::uint64_t count, Time now) {
    if (count <= first_) return;
    for (; first_ < count; ++first_) sent_[head_++].reset();
    wait_ = config_.timeout;
    resend_at_ = first_ == next_ ? Time::never() : now + wait_;
    if (head_ == sent_.size()) {
      decltype(sent_)().swap(sent_);
      head_ = 0;
    } else if (head_ * 2 > sent_.size()) {
      sent_.erase(sent_.begin(), sent_.begin() + static_cast<std::ptrdiff_t>(head_));
      head_ = 0;
    }
    open_window(now);
  }

  void take(const Frame<In>& frame, Time now, std::vector<std::shared_ptr<const In>>& delivered) {
    // A frame that arrives again is acknowledged again: what acknowledged it may be lost.
    ack_at_ = std::min(ack_at_, now + config_.ack_delay);
    if (frame.sequence < received_ || frame.sequence - received_ >= config_.window) return;
    const auto ahead = static_cast<std::size_t>(frame.sequence - received_);
    if (ahead > 0) {
      if (ahead >= early_.size()) early_.resize(ahead + 1);
      early_[ahead] = frame.payload;
      return;
    }
    delivered.push_back(frame.payload);
    std::size_t taken = 1;
    for (; taken < early_.size() && early_[taken]; ++taken) {
      delivered.push_back(std::move(early_[taken]));
    }
    received_ += taken;
    if (taken >= early_.size()) {
      decltype(early_)().swap(early_);
    } else {
      early_.erase(early_.begin(), early_.begin() + static_cast<std::ptrdiff_t>(taken));
    }
    if (received_ - told_ >= (config_.window + 1) / 2) ack_at_ = now;
  }

  SessionKey key_;
  SessionConfig config_;

  // Sending: sent_[head_ + i] is payload first_ + i; those below next_ are in flight.
  std::vector<std::shared_ptr<const Out>> sent_;
  std::size_t head_ = 0;
  std::uint64_t first_ = 0;  // the first that is not acknowledged
  std::uint64_t next_ = 0;   // the first that was never in a frame
  Time wait_;                // the time-out that is due next
  Time resend_at_ = Time::never();
  Time send_at_ = Time::never();  // a payload may go since then

  // Receiving: early_[i] is payload received_ + i or null; the one at 0 is always null.
  std::vector<std::shared_ptr<const In>> early_;
  std::uint64_t received_ = 0;
  std::uint64_t told_ = 0;  // the last count that a frame carried
  Time ack_at_ = Time::never();
};

}  // namespace holdfast
