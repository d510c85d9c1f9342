#include "real/tcp_link.hpp"

#include <sys/epoll.h>
#include <sys/random.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "core/error.hpp"
#include "real/clock.hpp"

namespace holdfast::real {
namespace {

constexpr std::size_t kMostVectors = 64;

}  // namespace

TcpCore::TcpCore(WorkerId worker, const TcpOptions& given)
    : self(worker), options(given), instance(random()), epoll(::epoll_create1(EPOLL_CLOEXEC)) {
  if (!epoll.valid()) {
    throw Error(ErrorCode::Unsupported, "the system gives no epoll descriptor (too many open?)");
  }
  scratch.resize(kMaxDataBytes);
}

bool TcpCore::watch(int descriptor, LinkKind kind, std::uint32_t number, bool must) {
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.u64 = link_tag(kind, number);
  const bool taken = ::epoll_ctl(epoll.get(), EPOLL_CTL_ADD, descriptor, &event) == 0;
  if (!taken && must) {
    throw Error(ErrorCode::Unsupported, "the system does not watch a descriptor (epoll)");
  }
  return taken;
}

std::uint64_t TcpCore::random() {
  std::uint64_t value = 0;
  // At most 256 bytes are never cut short once the system's pool is ready; until then it waits.
  while (::getrandom(&value, sizeof value, 0) != static_cast<ssize_t>(sizeof value)) {
  }
  return value;
}

Link::Link(TcpCore& core, Descriptor socket, LinkKind kind, std::uint32_t number)
    : opened(steady_now()),
      heard(opened),
      core_(core),
      socket_(std::move(socket)),
      input_(kind == LinkKind::Peer ? Side::Reader : Side::Source),
      tag_(link_tag(kind, number)) {
  valid_ = core_.watch(socket_.get(), kind, number, false);
}

void Link::stage() {
  staged_.clear();
  sent_ = 0;
  staged_.swap(next_);
}

Link::Sent Link::send(std::span<const iovec> payload) {
  std::array<iovec, kMostVectors + 1> vectors;
  std::size_t count = 0;
  const std::size_t head = staged_.size() - sent_;
  if (head != 0) vectors[count++] = {staged_.data() + sent_, head};
  std::uint64_t wanted = head;
  for (const iovec& part : payload.first(std::min(payload.size(), kMostVectors))) {
    vectors[count++] = part;
    wanted += part.iov_len;
  }
  if (count == 0) return {};
  msghdr message{};
  message.msg_iov = vectors.data();
  message.msg_iovlen = count;
  const ssize_t sent = ::sendmsg(socket_.get(), &message, MSG_NOSIGNAL | MSG_DONTWAIT);
  if (sent < 0) {
    const bool later = errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR;
    return {later ? Result::Blocked : Result::Failed, 0};
  }
  const auto bytes = static_cast<std::uint64_t>(sent);
  const std::uint64_t of_head = std::min<std::uint64_t>(bytes, head);
  sent_ += of_head;
  return {bytes == wanted ? Result::Done : Result::Blocked, bytes - of_head};
}

void Link::want(bool input, bool output) {
  if (input == reading_ && output == writing_) return;
  reading_ = input;
  writing_ = output;
  epoll_event event{};
  event.events = (input ? EPOLLIN : 0U) | (output ? EPOLLOUT : 0U);
  event.data.u64 = tag_;
  ::epoll_ctl(core_.epoll.get(), EPOLL_CTL_MOD, socket_.get(), &event);
}

void Link::forget() {
  if (socket_.valid()) ::epoll_ctl(core_.epoll.get(), EPOLL_CTL_DEL, socket_.get(), nullptr);
}

PeerLoss check_pulse(Link& link, const TcpOptions& options, bool recognised, Time now) {
  if (!recognised) {
    return now - link.opened > options.handshake ? PeerLoss::HandshakeTimeout : PeerLoss::None;
  }
  const Time quiet = now - link.heard;
  if (quiet > options.silence) return PeerLoss::Silent;
  if (quiet >= options.heartbeat / 2 && !link.pinged && !link.overfull()) {
    append_header({FrameType::Ping, 0, 0, 0}, link.out());
    link.pinged = true;
  }
  return PeerLoss::None;
}

}  // namespace holdfast::real
