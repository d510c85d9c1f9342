#include "real/tcp_source.hpp"

#include <sys/epoll.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace holdfast::real {
namespace {

constexpr std::size_t kMostAccepts = 64;                    // in one go
constexpr std::size_t kAccessBytes = 24;                    // number of the grant, token
constexpr std::size_t kMostWorkers = std::size_t{1} << 16;  // whose incarnations are remembered

// Takes the same time wherever they differ.
bool same_token(const std::byte* a, const std::byte* b, std::size_t bytes) {
  std::byte difference{};
  for (std::size_t i = 0; i < bytes; ++i) difference |= a[i] ^ b[i];
  return difference == std::byte{};
}

}  // namespace

TcpSource::TcpSource(TcpCore& core, Descriptor listener)
    : core_(core), listener_(std::move(listener)), zeros_(kMaxDataBytes) {
  core_.watch(listener_.get(), LinkKind::Listener, 0, true);
}

Access TcpSource::allow(WorkerId reader, Version version, RegionId region) {
  Grant grant{reader, version, region, {}};
  for (const std::size_t half : {std::size_t{0}, std::size_t{8}}) {
    const std::uint64_t bits = TcpCore::random();
    std::memcpy(grant.token.data() + half, &bits, sizeof bits);
  }
  const std::uint64_t number = next_grant_++;
  Access access;
  access.size = kAccessBytes;
  std::memcpy(access.bytes.data(), &number, sizeof number);
  std::copy(grant.token.begin(), grant.token.end(), access.bytes.begin() + sizeof number);
  grants_.emplace(number, grant);
  return access;
}

ReadStatus TcpSource::admit(const Connection& connection, const ReadCall& call,
                            std::uint64_t& grant) const {
  if (call.access.size != kAccessBytes) return ReadStatus::AccessDenied;
  std::memcpy(&grant, call.access.bytes.data(), sizeof grant);
  const auto found = grants_.find(grant);
  if (found == grants_.end() || found->second.reader != connection.hello.worker ||
      !same_token(found->second.token.data(), call.access.bytes.data() + sizeof grant,
                  found->second.token.size())) {
    return ReadStatus::AccessDenied;
  }
  for (const Extent& extent : call.extents) {
    if (!core_.regions.inside(found->second.region, extent.offset, extent.bytes)) {
      return ReadStatus::OutOfRange;
    }
  }
  return ReadStatus::Ok;
}

void TcpSource::accept_all() {
  for (std::size_t n = 0; n < kMostAccepts; ++n) {
    Descriptor socket = accept_from(listener_);
    if (!socket.valid()) {
      if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
        // It would be readable for ever; check_pulses tries again.
        ::epoll_ctl(core_.epoll.get(), EPOLL_CTL_DEL, listener_.get(), nullptr);
        listening_ = false;
      }
      return;
    }
    if (connections_.size() >= core_.options.connections) continue;
    const std::uint32_t number = next_number_++;
    auto connection = std::make_unique<Connection>(core_, std::move(socket), number);
    if (connection->link.valid()) connections_.emplace(number, std::move(connection));
  }
}

void TcpSource::ready(std::uint32_t number, bool input, bool output, Time now) {
  const auto found = connections_.find(number);
  if (found == connections_.end()) return;
  if (output) {
    found->second->link.want_output(false);
    want_turn(number, *found->second);
  }
  if (input) feed(number, now);
}

void TcpSource::feed(std::uint32_t number, Time now) {
  Connection& connection = *connections_.at(number);
  Link& link = connection.link;
  const ssize_t got = ::recv(link.descriptor(), core_.scratch.data(), core_.scratch.size(), 0);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (got <= 0) return drop(number);
  link.heard = now;
  link.pinged = false;
  auto bytes = std::span<const std::byte>(core_.scratch).first(static_cast<std::size_t>(got));
  while (!bytes.empty()) {
    const std::span<std::byte> room = link.input().room();
    const std::size_t part = std::min(room.size(), bytes.size());
    std::copy_n(bytes.begin(), part, room.begin());
    bytes = bytes.subspan(part);
    const FrameInput::Got what = link.input().filled(part);
    if (what == FrameInput::Got::Broken) return drop(number);
    if (what == FrameInput::Got::Frame && !take(number)) return drop(number);
  }
  if (link.overfull()) link.want_input(false);
  want_turn(number, connection);
}

// False for what must not come.
bool TcpSource::take(std::uint32_t number) {
  Connection& connection = *connections_.at(number);
  const FrameHeader& header = connection.link.input().header();
  if (connection.refused) return true;
  if (connection.recognised == (header.type == FrameType::Hello)) return false;
  switch (header.type) {
    case FrameType::Hello:
      return greet(number);
    case FrameType::Read:
      return take_read(connection);
    case FrameType::Cancel:
      take_cancel(connection, header.sequence);
      return true;
    case FrameType::Fenced:
      if (header.sequence > connection.fence) return false;
      take_fenced(number, header.sequence);
      return true;
    case FrameType::Message: {
      const auto payload = connection.link.input().payload();
      core_.tell(MessageReceived{connection.hello.worker, {payload.begin(), payload.end()}});
      return true;
    }
    case FrameType::Ping:
      append_header({FrameType::Pong, 0, 0, header.sequence}, connection.link.out());
      return true;
    default:
      return header.type == FrameType::Pong;
  }
}

bool TcpSource::greet(std::uint32_t number) {
  Connection& connection = *connections_.at(number);
  const auto hello = decode_hello(connection.link.input().payload());
  if (!hello) return false;
  connection.hello = *hello;
  if (hello->target != core_.self) {
    refuse(connection, Refusal::WrongWorker);
    return true;
  }
  if (hello->instance != 0 && hello->instance != core_.instance) {
    refuse(connection, Refusal::StaleInstance);
    return true;
  }
  if (incarnations_.size() >= kMostWorkers && !incarnations_.contains(hello->worker.value())) {
    return false;
  }
  std::uint64_t& latest = incarnations_[hello->worker.value()];
  if (hello->incarnation < latest) {
    refuse(connection, Refusal::StaleIncarnation);
    return true;
  }
  if (hello->incarnation > latest) {
    latest = hello->incarnation;
    std::vector<std::uint32_t> former;
    for (const auto& [other, its] : connections_) {
      if (its->recognised && its->hello.worker == hello->worker) former.push_back(other);
    }
    for (const std::uint32_t other : former) drop(other);
  }
  connection.recognised = true;
  append_welcome({core_.self, core_.options.incarnation, hello->nonce, core_.instance},
                 connection.link.out());
  return true;
}

void TcpSource::refuse(Connection& connection, Refusal why) {
  connection.refused = true;
  append_header({FrameType::Refuse, static_cast<std::uint8_t>(why), 0, 0}, connection.link.out());
}

bool TcpSource::take_read(Connection& connection) {
  auto call = decode_read(connection.link.input().payload());
  if (!call || connection.calls.size() >= core_.options.limits.reads_in_flight) return false;
  const std::uint64_t sequence = connection.link.input().header().sequence;
  std::uint64_t number = 0;
  if (const ReadStatus status = admit(connection, *call, number); status != ReadStatus::Ok) {
    append_header({FrameType::Done, static_cast<std::uint8_t>(status), 0, sequence},
                  connection.link.out());
    return true;
  }
  Call added;
  added.sequence = sequence;
  added.grant = number;
  added.region = grants_.at(number).region;
  added.extents = std::move(call->extents);
  for (const Extent& extent : added.extents) added.not_yet += extent.bytes;
  connection.calls.push_back(std::move(added));
  return true;
}

void TcpSource::take_cancel(Connection& connection, std::uint64_t sequence) {
  for (std::size_t at = 0; at < connection.calls.size(); ++at) {
    if (connection.calls[at].sequence != sequence) continue;
    return end_call(connection, at, ReadStatus::Cancelled);
  }
}

void TcpSource::end_call(Connection& connection, std::size_t at, ReadStatus status) {
  if (at == 0 && connection.frame_left != 0) connection.frame_void = true;
  append_header(
      {FrameType::Done, static_cast<std::uint8_t>(status), 0, connection.calls[at].sequence},
      connection.link.out());
  connection.calls.erase(connection.calls.begin() + static_cast<std::ptrdiff_t>(at));
}

void TcpSource::revoke(WorkerId reader, Version version, Time now) {
  std::set<std::uint64_t> gone;
  for (auto it = grants_.begin(); it != grants_.end();) {
    if (it->second.reader == reader && it->second.version == version) {
      gone.insert(it->first);
      it = grants_.erase(it);
    } else {
      ++it;
    }
  }
  Revoke revoke{{reader, version}, now + core_.options.revoke, {}};
  // An earlier one of the same may not be through.
  for (const Revoke& other : revokes_) {
    if (other.event.reader != reader || other.event.version != version) continue;
    revoke.fences.insert(other.fences.begin(), other.fences.end());
  }
  for (const auto& [number, connection] : connections_) {
    if (gone.empty() || !connection->recognised || connection->hello.worker != reader) continue;
    for (std::size_t at = connection->calls.size(); at-- != 0;) {
      if (!gone.contains(connection->calls[at].grant)) continue;
      end_call(*connection, at, ReadStatus::AccessDenied);
    }
    append_header({FrameType::Fence, 0, 0, ++connection->fence}, connection->link.out());
    revoke.fences.emplace(number, connection->fence);
    want_turn(number, *connection);
  }
  revokes_.push_back(std::move(revoke));
  finish_revokes();
}

void TcpSource::take_fenced(std::uint32_t number, std::uint64_t sequence) {
  for (Revoke& revoke : revokes_) revoke.fences.erase({number, sequence});
  finish_revokes();
}

void TcpSource::finish_revokes() {
  std::erase_if(revokes_, [&](const Revoke& revoke) {
    if (!revoke.fences.empty()) return false;
    core_.tell(revoke.event);
    return true;
  });
}

void TcpSource::on_time(Time now) {
  std::vector<std::uint32_t> late;
  for (const Revoke& revoke : revokes_) {
    if (revoke.deadline > now) continue;
    for (const auto& [number, sequence] : revoke.fences) late.push_back(number);
  }
  for (const std::uint32_t number : late) drop(number);
}

Time TcpSource::next_time() const {
  Time next = Time::never();
  for (const Revoke& revoke : revokes_) next = std::min(next, revoke.deadline);
  if (!turns_.empty()) next = std::min(next, pace_);
  return next;
}

void TcpSource::check_pulses(Time now) {
  if (!listening_) {
    listening_ = core_.watch(listener_.get(), LinkKind::Listener, 0, false);
  }
  std::vector<std::uint32_t> lost;
  for (const auto& [number, connection] : connections_) {
    if (check_pulse(connection->link, core_.options, connection->recognised, now) !=
        PeerLoss::None) {
      lost.push_back(number);
    } else {
      want_turn(number, *connection);
    }
  }
  for (const std::uint32_t number : lost) drop(number);
}

std::size_t TcpSource::readers() const {
  return static_cast<std::size_t>(
      std::count_if(connections_.begin(), connections_.end(),
                    [](const auto& entry) { return entry.second->recognised; }));
}

// By a reset: what the kernel holds must not leave any more, and who waits for a fence may go on.
void TcpSource::drop(std::uint32_t number) {
  const auto found = connections_.find(number);
  if (found == connections_.end()) return;
  found->second->link.reset();
  connections_.erase(found);
  for (Revoke& revoke : revokes_) {
    std::erase_if(revoke.fences, [&](const auto& fence) { return fence.first == number; });
  }
  finish_revokes();
}

}  // namespace holdfast::real
