// How a TcpSource sends: whose turn it is, and what a frame is made of.
#include <algorithm>

#include "real/tcp_source.hpp"

namespace holdfast::real {
namespace {

// What a rate limit may catch up after a pause.
constexpr Time kBurst = milliseconds(1);

}  // namespace

void TcpSource::want_turn(std::uint32_t number, Connection& connection) {
  const bool something =
      !connection.link.drained() || connection.frame_left != 0 || !connection.calls.empty();
  if (!something || connection.link.in_turn) return;
  connection.link.in_turn = true;
  turns_.push_back(number);
}

void TcpSource::send_round(Time now) {
  std::vector<std::uint32_t> kept;  // must wait for the rate, and come first then
  for (std::size_t n = turns_.size(); n != 0; --n) {
    const std::uint32_t number = turns_.front();
    turns_.pop_front();
    const auto found = connections_.find(number);
    if (found == connections_.end()) continue;
    Connection& connection = *found->second;
    const Turn turn = serve(connection, now);
    if (turn == Turn::Broken) {
      drop(number);
    } else if (turn == Turn::Finished) {
      connections_.erase(found);  // by an orderly close: it shall hear why
    } else if (turn == Turn::More) {
      turns_.push_back(number);
    } else if (turn == Turn::Paced) {
      kept.push_back(number);
    } else {
      connection.link.in_turn = false;
      if (turn == Turn::Blocked) connection.link.want_output(true);
    }
  }
  turns_.insert(turns_.begin(), kept.begin(), kept.end());
}

// At most one frame of data, and all that stands before and behind it.
TcpSource::Turn TcpSource::serve(Connection& connection, Time now) {
  Link& link = connection.link;
  bool started = connection.frame_left != 0;
  for (;;) {
    if (link.staged_done() && connection.frame_left == 0) {
      const bool waiting = !connection.calls.empty();
      if (link.drained() && !waiting) {
        return connection.refused ? Turn::Finished : Turn::Idle;
      }
      link.stage();
      if (waiting && !started && !paced(now)) {
        started = start_frame(connection, now);
      } else if (link.staged_done()) {
        return started ? Turn::More : Turn::Paced;
      }
    }
    vectors_.clear();
    gather(connection, vectors_);
    const Link::Sent sent = link.send(vectors_);
    if (sent.result == Link::Result::Failed) return Turn::Broken;
    sent_payload(connection, sent.payload);
    if (!link.wants_input() && !link.overfull()) link.want_input(true);
    if (sent.result == Link::Result::Blocked) return Turn::Blocked;
  }
}

// Appends the header of the first call's next frame, or the end of a call without bytes. True if a
// frame is under way.
bool TcpSource::start_frame(Connection& connection, Time now) {
  Call& call = connection.calls.front();
  std::vector<std::byte>& staged = connection.link.staged();
  if (call.not_yet == 0) {
    append_header({FrameType::Done, static_cast<std::uint8_t>(ReadStatus::Ok), 0, call.sequence},
                  staged);
    connection.calls.pop_front();
    return false;
  }
  const auto bytes =
      static_cast<std::uint32_t>(std::min<std::uint64_t>(call.not_yet, core_.options.frame_bytes));
  append_header({FrameType::Data, 0, bytes, call.sequence}, staged);
  connection.frame_left = bytes;
  connection.frame_void = false;
  call.not_yet -= bytes;
  if (core_.options.rate > Rate{}) {
    pace_ = std::max(pace_, now - kBurst) + transfer_time(Bytes(bytes), core_.options.rate);
  }
  return true;
}

void TcpSource::gather(const Connection& connection, std::vector<iovec>& out) const {
  std::uint64_t left = connection.frame_left;
  if (left == 0) return;
  if (connection.frame_void) {
    out.push_back({const_cast<std::byte*>(zeros_.data()), left});
    return;
  }
  const Call& call = connection.calls.front();
  std::uint64_t within = call.within;
  constexpr std::size_t kMost = 64;
  for (std::size_t e = call.extent; left != 0 && out.size() < kMost; ++e, within = 0) {
    const std::uint64_t bytes = std::min(left, call.extents[e].bytes - within);
    if (bytes == 0) continue;
    const auto part = core_.regions.part(call.region, call.extents[e].offset + within, bytes);
    out.push_back({part.data(), part.size()});
    left -= bytes;
  }
}

void TcpSource::sent_payload(Connection& connection, std::uint64_t bytes) {
  connection.frame_left -= static_cast<std::uint32_t>(bytes);
  if (connection.frame_void || bytes == 0) return;
  Call& call = connection.calls.front();
  while (bytes != 0) {
    const std::uint64_t part = std::min(bytes, call.extents[call.extent].bytes - call.within);
    call.within += part;
    bytes -= part;
    if (call.within == call.extents[call.extent].bytes) {
      ++call.extent;
      call.within = 0;
    }
  }
  if (connection.frame_left == 0 && call.not_yet == 0) {
    end_call(connection, 0, ReadStatus::Ok);
  }
}

}  // namespace holdfast::real
