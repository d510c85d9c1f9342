#include <sys/epoll.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "core/error.hpp"
#include "real/clock.hpp"
#include "real/control_channel.hpp"

namespace holdfast::real {
namespace {

constexpr std::uint64_t kListener = ~std::uint64_t{0};
constexpr std::uint64_t kWakeUp = kListener - 1;
constexpr std::size_t kMostAccepts = 64;                    // in one go
constexpr std::size_t kMostWorkers = std::size_t{1} << 17;  // whose incarnations are remembered

bool watch(const Descriptor& epoll, int descriptor, std::uint64_t tag) {
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.u64 = tag;
  return ::epoll_ctl(epoll.get(), EPOLL_CTL_ADD, descriptor, &event) == 0;
}

}  // namespace

struct ControlServer::Connection {
  explicit Connection(Descriptor socket) : stream(std::move(socket)) {}
  ControlStream stream;
  ControlHello hello;
  bool recognised = false;
  bool writing = false;  // epoll is asked for output
};

ControlServer::ControlServer(const ControlOptions& options)
    : options_(options),
      listener_(listen_on(options.listen, options.anywhere)),
      address_(to_string(bound_address(listener_))),
      epoll_(::epoll_create1(EPOLL_CLOEXEC)),
      next_pulse_(steady_now() + options.heartbeat / 4) {
  if (!epoll_.valid() || !watch(epoll_, listener_.get(), kListener) ||
      !watch(epoll_, wake_.descriptor(), kWakeUp)) {
    throw Error(ErrorCode::Unsupported, "the system gives no epoll descriptor (too many open?)");
  }
}

ControlServer::~ControlServer() = default;

bool ControlServer::connected(WorkerId worker) const {
  return workers_.contains(worker.value());
}

bool ControlServer::send(WorkerId worker, std::span<const std::byte> payload) {
  const auto found = workers_.find(worker.value());
  if (found == workers_.end() || payload.size() > kMaxControl) return false;
  Connection& connection = *connections_.at(found->second);
  if (connection.stream.waiting() + payload.size() > options_.waiting.count()) return false;
  connection.stream.add(ControlStream::Type::Payload, payload);
  return true;
}

void ControlServer::disconnect(WorkerId worker) {
  const auto found = workers_.find(worker.value());
  if (found != workers_.end()) drop(found->second);
}

std::size_t ControlServer::poll(std::span<ControlEvent> out) {
  progress(Time{});
  const std::size_t count = std::min(out.size(), events_.size());
  std::move(events_.begin(), events_.begin() + static_cast<std::ptrdiff_t>(count), out.begin());
  events_.erase(events_.begin(), events_.begin() + static_cast<std::ptrdiff_t>(count));
  return count;
}

void ControlServer::wait(Time until) {
  while (events_.empty() && !wake_.raised() && steady_now() < until) progress(until);
  wake_.lower();
}

void ControlServer::progress(Time until) {
  std::vector<std::uint32_t> broken;
  const auto flush_all = [&] {
    for (const auto& [number, connection] : connections_) {
      if (connection->stream.waiting() == 0 && !connection->writing) continue;
      if (connection->stream.flush() == ControlStream::State::Broken) {
        broken.push_back(number);
        continue;
      }
      const bool more = connection->stream.waiting() != 0;
      if (more == connection->writing) continue;
      connection->writing = more;
      epoll_event event{};
      event.events = EPOLLIN | (more ? EPOLLOUT : 0U);
      event.data.u64 = number;
      ::epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, connection->stream.descriptor(), &event);
    }
    for (const std::uint32_t number : broken) drop(number);
    broken.clear();
  };
  flush_all();
  const Time now = steady_now();
  if (until > now && events_.empty()) {
    wait_readable(epoll_.get(), std::min(until, next_pulse_) - now);
  }
  std::array<epoll_event, 64> ready;
  const int count = ::epoll_wait(epoll_.get(), ready.data(), static_cast<int>(ready.size()), 0);
  for (int i = 0; i < count; ++i) {
    const epoll_event& event = ready[static_cast<std::size_t>(i)];
    if (event.data.u64 == kListener) {
      accept_all();
    } else if (event.data.u64 == kWakeUp) {
      wake_.drain();
    } else if ((event.events & ~static_cast<std::uint32_t>(EPOLLOUT)) != 0) {
      receive(static_cast<std::uint32_t>(event.data.u64));
    }
  }
  if (steady_now() >= next_pulse_) check_pulses();
  flush_all();
}

void ControlServer::accept_all() {
  for (std::size_t n = 0; n < kMostAccepts; ++n) {
    Descriptor socket = accept_from(listener_);
    if (!socket.valid()) {
      if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
        // It would be readable for ever; check_pulses tries again.
        ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, listener_.get(), nullptr);
        listening_ = false;
      }
      return;
    }
    if (connections_.size() >= options_.connections) continue;
    const std::uint32_t number = next_number_++;
    if (!watch(epoll_, socket.get(), number)) continue;
    connections_.emplace(number, std::make_unique<Connection>(std::move(socket)));
  }
}

void ControlServer::receive(std::uint32_t number) {
  const auto found = connections_.find(number);
  if (found == connections_.end()) return;
  ControlStream& stream = found->second->stream;
  // What came before the connection broke counts.
  [[maybe_unused]] const auto state = stream.receive(steady_now());
  while (const auto frame = stream.next_frame()) {
    if (!take(number, frame->type, frame->payload)) return drop(number);
  }
  if (stream.broken()) drop(number);
}

// False for what must not come.
bool ControlServer::take(std::uint32_t number, ControlStream::Type type,
                         std::span<const std::byte> payload) {
  Connection& connection = *connections_.at(number);
  if (connection.recognised == (type == ControlStream::Type::Hello)) return false;
  switch (type) {
    case ControlStream::Type::Hello:
      return greet(number, payload);
    case ControlStream::Type::Payload:
      events_.push_back({ControlEvent::Kind::Message,
                         connection.hello.worker,
                         connection.hello.incarnation,
                         {payload.begin(), payload.end()}});
      return true;
    case ControlStream::Type::Ping:
      // Who asks without end and takes no answer is left.
      if (connection.stream.waiting() > options_.waiting.count()) return false;
      connection.stream.add(ControlStream::Type::Pong, {});
      return true;
    default:
      return type == ControlStream::Type::Pong;
  }
}

bool ControlServer::greet(std::uint32_t number, std::span<const std::byte> payload) {
  const auto hello = ControlStream::decode_hello(payload);
  if (!hello) return false;
  const std::uint32_t worker = hello->worker.value();
  if (incarnations_.size() >= kMostWorkers && !incarnations_.contains(worker)) return false;
  std::uint64_t& latest = incarnations_[worker];
  if (hello->incarnation < latest) return false;
  latest = hello->incarnation;
  const auto former = workers_.find(worker);
  if (former != workers_.end()) drop(former->second);
  Connection& connection = *connections_.at(number);
  connection.hello = *hello;
  connection.recognised = true;
  workers_[worker] = number;
  connection.stream.add(ControlStream::Type::Welcome, {});
  events_.push_back({ControlEvent::Kind::Connected, hello->worker, hello->incarnation, {}});
  return true;
}

void ControlServer::drop(std::uint32_t number) {
  const auto found = connections_.find(number);
  if (found == connections_.end()) return;
  if (found->second->recognised) {
    const ControlHello& hello = found->second->hello;
    events_.push_back({ControlEvent::Kind::Disconnected, hello.worker, hello.incarnation, {}});
    workers_.erase(hello.worker.value());
  }
  ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, found->second->stream.descriptor(), nullptr);
  connections_.erase(found);
}

void ControlServer::check_pulses() {
  const Time now = steady_now();
  next_pulse_ = now + options_.heartbeat / 4;
  if (!listening_) listening_ = watch(epoll_, listener_.get(), kListener);
  std::vector<std::uint32_t> broken;
  for (const auto& [number, connection] : connections_) {
    if (connection->stream.check_pulse(now, options_.heartbeat, options_.silence,
                                       options_.handshake,
                                       connection->recognised) == ControlStream::State::Broken) {
      broken.push_back(number);
    }
  }
  for (const std::uint32_t number : broken) drop(number);
}

}  // namespace holdfast::real
