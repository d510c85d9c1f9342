#include "real/tcp_transport.hpp"

#include <fmt/format.h>
#include <sys/epoll.h>

#include <algorithm>
#include <array>

#include "core/error.hpp"
#include "real/clock.hpp"
#include "real/tcp_readers.hpp"
#include "real/tcp_source.hpp"

namespace holdfast::real {
namespace {

constexpr int kMostEvents = 64;
constexpr std::uint32_t kMostReads = 4096;
constexpr Time kNow = Time{};

const TcpOptions& checked(WorkerId self, const TcpOptions& options) {
  const auto require = [](bool condition, const char* message) {
    if (!condition) throw Error(ErrorCode::BadValue, message);
  };
  require(self.valid(), "a transport needs a worker's id");
  require(options.limits.reads_in_flight >= 1 && options.limits.reads_in_flight <= kMostReads,
          "reads in flight must be 1 to 4096");
  require(options.limits.pieces_per_read >= 1 && options.limits.pieces_per_read <= kMaxPieces,
          "pieces of a read must be 1 to 1024");
  require(options.frame_bytes >= 1 && options.frame_bytes <= kMaxDataBytes,
          "a frame must have 1 to 262144 bytes");
  require(options.heartbeat > kNow && options.handshake > kNow && options.revoke > kNow,
          "heartbeat, handshake and revoke must be longer than nothing");
  require(options.silence > options.heartbeat, "silence must be longer than heartbeat");
  return options;
}

}  // namespace

const char* to_string(PeerLoss loss) {
  switch (loss) {
    case PeerLoss::None:
      return "none";
    case PeerLoss::Closed:
      return "closed";
    case PeerLoss::BadAddress:
      return "bad address";
    case PeerLoss::Unreachable:
      return "unreachable";
    case PeerLoss::Reset:
      return "reset";
    case PeerLoss::Silent:
      return "silent";
    case PeerLoss::HandshakeTimeout:
      return "handshake timeout";
    case PeerLoss::BadFrame:
      return "bad frame";
    case PeerLoss::WrongWorker:
      return "wrong worker";
    case PeerLoss::StaleInstance:
      return "stale instance";
    case PeerLoss::StaleIncarnation:
      return "stale incarnation";
  }
  return "unknown";
}

struct TcpTransport::State {
  State(WorkerId self, const TcpOptions& options)
      : core(self, checked(self, options)),
        source(core, listen_on(options.listen, options.anywhere)),
        readers(core) {
    core.watch(wake.descriptor(), LinkKind::WakeUp, 0, true);
    next_pulse = steady_now() + pulse();
  }

  // One round: what has come, what can be sent, what is over. Waits at most until `until` for the
  // first of it.
  void progress(Time until);
  void take(const epoll_event& event, Time now);
  [[nodiscard]] Time pulse() const { return core.options.heartbeat / 4; }

  TcpCore core;
  TcpSource source;
  TcpReaders readers;
  WakeUp wake;
  std::string address;
  Time next_pulse;
  bool watched = false;  // a watched descriptor is readable
};

void TcpTransport::State::take(const epoll_event& event, Time now) {
  const auto number = static_cast<std::uint32_t>(event.data.u64);
  const bool input = (event.events & ~static_cast<std::uint32_t>(EPOLLOUT)) != 0;
  const bool output = (event.events & (EPOLLOUT | EPOLLERR | EPOLLHUP)) != 0;
  switch (static_cast<LinkKind>(event.data.u64 >> 32U)) {
    case LinkKind::Listener:
      return source.accept_all();
    case LinkKind::WakeUp:
      return wake.drain();
    case LinkKind::Watched:
      watched = true;
      return;
    case LinkKind::Peer:
      return readers.ready(number, input, output, now);
    case LinkKind::Accepted:
      return source.ready(number, input, output, now);
  }
}

void TcpTransport::State::progress(Time until) {
  Time now = steady_now();
  if (!source.busy(now) && !readers.busy()) {
    until = std::min({until, next_pulse, source.next_time(), readers.next_time()});
    if (until > now) wait_readable(core.epoll.get(), until - now);
    now = steady_now();
  }
  std::array<epoll_event, kMostEvents> events;
  const int count = ::epoll_wait(core.epoll.get(), events.data(), kMostEvents, 0);
  for (int i = 0; i < count; ++i) take(events[static_cast<std::size_t>(i)], now);
  readers.send_round();
  source.send_round(now);
  now = steady_now();
  readers.on_time(now);
  source.on_time(now);
  if (now >= next_pulse) {
    next_pulse = now + pulse();
    readers.check_pulses(now);
    source.check_pulses(now);
  }
}

TcpTransport::TcpTransport(WorkerId self, const TcpOptions& options)
    : state_(std::make_unique<State>(self, options)) {
  state_->address =
      fmt::format("{}#{:016x}", state_->source.listening_address(), state_->core.instance);
}

TcpTransport::~TcpTransport() = default;

const std::string& TcpTransport::address() const {
  return state_->address;
}
const RegionTable& TcpTransport::regions() const {
  return state_->core.regions;
}
WakeUp& TcpTransport::wake_up() {
  return state_->wake;
}
void TcpTransport::watch(int descriptor) {
  state_->core.watch(descriptor, LinkKind::Watched, 0, true);
}
void TcpTransport::unwatch(int descriptor) {
  ::epoll_ctl(state_->core.epoll.get(), EPOLL_CTL_DEL, descriptor, nullptr);
}
PeerLoss TcpTransport::loss(PeerId peer) const {
  return state_->readers.loss(peer);
}
std::size_t TcpTransport::readers() const {
  return state_->source.readers();
}

RegionId TcpTransport::add_region(std::span<std::byte> memory, Bytes size) {
  return state_->core.regions.add(memory.first(std::min(memory.size(), size.count())));
}

PeerId TcpTransport::open(const Endpoint& endpoint, std::uint64_t nonce) {
  return state_->readers.open(endpoint, nonce);
}

void TcpTransport::close(PeerId peer) {
  state_->readers.close(peer);
}

PeerLimits TcpTransport::limits(PeerId) const {
  return state_->core.options.limits;
}

Access TcpTransport::allow(WorkerId reader, Version version, RegionId region) {
  return state_->source.allow(reader, version, region);
}

void TcpTransport::revoke(WorkerId reader, Version version) {
  state_->source.revoke(reader, version, steady_now());
}

Posted TcpTransport::read(const ReadRequest& request) {
  return state_->readers.read(request, steady_now());
}

void TcpTransport::cancel(OpId id) {
  state_->readers.cancel(id);
}

bool TcpTransport::send(PeerId peer, std::span<const std::byte> payload) {
  return state_->readers.send(peer, payload);
}

std::size_t TcpTransport::poll(std::span<TransportEvent> out) {
  std::deque<TransportEvent>& inbox = state_->core.inbox;
  if (inbox.empty()) state_->progress(kNow);
  const std::size_t count = std::min(out.size(), inbox.size());
  std::move(inbox.begin(), inbox.begin() + static_cast<std::ptrdiff_t>(count), out.begin());
  inbox.erase(inbox.begin(), inbox.begin() + static_cast<std::ptrdiff_t>(count));
  return count;
}

void TcpTransport::wait(Time until) {
  State& state = *state_;
  state.watched = false;
  while (state.core.inbox.empty() && !state.wake.raised() && !state.watched &&
         steady_now() < until) {
    state.progress(until);
  }
}

Time TcpTransport::now() const {
  return steady_now();
}

}  // namespace holdfast::real
