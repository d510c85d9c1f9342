#include <sys/epoll.h>

#include <algorithm>
#include <array>

#include "core/error.hpp"
#include "core/quote.hpp"
#include "real/clock.hpp"
#include "real/control_channel.hpp"

namespace holdfast::real {

ControlClient::ControlClient(WorkerId self, std::uint64_t incarnation, const std::string& address,
                             const ControlOptions& options)
    : self_(self),
      incarnation_(incarnation),
      options_(options),
      epoll_(::epoll_create1(EPOLL_CLOEXEC)),
      pause_(options.retry),
      next_try_(steady_now()),
      next_pulse_(next_try_),
      give_up_at_(next_try_ + options.give_up) {
  const auto parsed = parse_address(address);
  if (!parsed) throw Error(ErrorCode::BadValue, parsed.error());
  if (!options.anywhere && !parsed->loopback()) {
    throw Error(ErrorCode::BadValue, "the coordinator at " + quote(address) +
                                         " is on another machine, and the channel is neither "
                                         "encrypted nor authenticated; use 127.0.0.1 or [::1]");
  }
  if (!epoll_.valid()) {
    throw Error(ErrorCode::Unsupported, "the system gives no epoll descriptor (too many open?)");
  }
  address_ = *parsed;
  connect();
}

ControlClient::~ControlClient() = default;

void ControlClient::connect() {
  Descriptor socket = start_connect(address_);
  epoll_event event{};
  event.events = EPOLLIN | EPOLLOUT;
  if (!socket.valid() || ::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, socket.get(), &event) != 0) {
    next_try_ = steady_now() + pause_;
    pause_ = std::min(pause_ * 2, options_.retry_most);
    return;
  }
  stream_ = std::make_unique<ControlStream>(std::move(socket));
  stream_->add_hello({self_, incarnation_});
}

bool ControlClient::send(std::span<const std::byte> payload) {
  if (!recognised_ || payload.size() > kMaxControl ||
      stream_->waiting() + payload.size() > options_.waiting.count()) {
    return false;
  }
  stream_->add(ControlStream::Type::Payload, payload);
  flush();
  return true;
}

std::size_t ControlClient::poll(std::span<ControlEvent> out) {
  progress(Time{});
  const std::size_t count = std::min(out.size(), events_.size());
  std::move(events_.begin(), events_.begin() + static_cast<std::ptrdiff_t>(count), out.begin());
  events_.erase(events_.begin(), events_.begin() + static_cast<std::ptrdiff_t>(count));
  return count;
}

void ControlClient::wait(Time until) {
  while (events_.empty() && steady_now() < until) progress(until);
}

Time ControlClient::next_time() const {
  Time next = stream_ == nullptr ? next_try_ : next_pulse_;
  if (!recognised_) next = std::min(next, give_up_at_);
  return next;
}

void ControlClient::progress(Time until) {
  Time now = steady_now();
  if (until > now && events_.empty()) {
    wait_readable(epoll_.get(), std::min(until, next_time()) - now);
    now = steady_now();
  }
  if (stream_ == nullptr && now >= next_try_) connect();
  if (stream_ != nullptr) {
    receive();
    flush();
  }
  if (stream_ != nullptr && now >= next_pulse_) {
    next_pulse_ = now + options_.heartbeat / 4;
    if (stream_->check_pulse(now, options_.heartbeat, options_.silence, options_.handshake,
                             recognised_) == ControlStream::State::Broken) {
      lose();
    } else {
      flush();
    }
  }
  if (!recognised_ && now >= give_up_at_) {
    give_up_at_ = now + options_.give_up;
    events_.push_back({ControlEvent::Kind::Unreachable, self_, incarnation_, {}});
  }
}

void ControlClient::receive() {
  // What came before the connection broke counts.
  [[maybe_unused]] const auto state = stream_->receive(steady_now());
  while (const auto frame = stream_->next_frame()) {
    if (!take(frame->type, frame->payload)) return lose();
  }
  if (stream_->broken()) lose();
}

bool ControlClient::take(ControlStream::Type type, std::span<const std::byte> payload) {
  if (recognised_ == (type == ControlStream::Type::Welcome)) return false;
  switch (type) {
    case ControlStream::Type::Welcome:
      recognised_ = true;
      pause_ = options_.retry;
      events_.push_back({ControlEvent::Kind::Connected, self_, incarnation_, {}});
      return true;
    case ControlStream::Type::Payload:
      events_.push_back(
          {ControlEvent::Kind::Message, self_, incarnation_, {payload.begin(), payload.end()}});
      return true;
    case ControlStream::Type::Ping:
      stream_->add(ControlStream::Type::Pong, {});
      return true;
    default:
      return type == ControlStream::Type::Pong;
  }
}

void ControlClient::flush() {
  if (stream_ == nullptr) return;
  if (stream_->flush() == ControlStream::State::Broken) return lose();
  epoll_event event{};
  event.events = EPOLLIN | (stream_->waiting() != 0 ? EPOLLOUT : 0U);
  ::epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, stream_->descriptor(), &event);
}

void ControlClient::lose() {
  const Time now = steady_now();
  ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, stream_->descriptor(), nullptr);
  stream_.reset();
  if (recognised_) {
    events_.push_back({ControlEvent::Kind::Disconnected, self_, incarnation_, {}});
    give_up_at_ = now + options_.give_up;
  }
  recognised_ = false;
  next_try_ = now + pause_;
  pause_ = std::min(pause_ * 2, options_.retry_most);
}

}  // namespace holdfast::real
