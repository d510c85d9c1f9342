#include "real/control_stream.hpp"

#include <array>
#include <cerrno>
#include <cstring>

#include "real/clock.hpp"

namespace holdfast::real {
namespace {

constexpr std::size_t kHead = 8;
constexpr std::size_t kPortion = 64 * 1024;            // of one receive
constexpr std::uint64_t kMagic = 0x314c545243464648U;  // "HFFCRTL1"
constexpr std::size_t kHelloBytes = 20;

void put32(std::uint32_t value, std::vector<std::byte>& out) {
  for (int i = 0; i < 4; ++i) out.push_back(static_cast<std::byte>((value >> (8 * i)) & 0xffU));
}
void put64(std::uint64_t value, std::vector<std::byte>& out) {
  put32(static_cast<std::uint32_t>(value), out);
  put32(static_cast<std::uint32_t>(value >> 32U), out);
}
std::uint32_t get32(std::span<const std::byte> bytes) {
  std::uint32_t value = 0;
  for (std::size_t i = 0; i < 4; ++i) value |= std::uint32_t(bytes[i]) << (8 * i);
  return value;
}
std::uint64_t get64(std::span<const std::byte> bytes) {
  return get32(bytes) | (std::uint64_t{get32(bytes.subspan(4))} << 32U);
}

std::size_t most_of(ControlStream::Type type) {
  switch (type) {
    case ControlStream::Type::Hello:
      return kHelloBytes;
    case ControlStream::Type::Payload:
      return kMaxControl;
    default:
      return 0;
  }
}

}  // namespace

ControlStream::ControlStream(Descriptor socket)
    : socket_(std::move(socket)), opened_(steady_now()), heard_(opened_) {}

void ControlStream::add(Type type, std::span<const std::byte> payload) {
  put32(static_cast<std::uint32_t>(payload.size()), output_);
  put32(static_cast<std::uint32_t>(type), output_);
  output_.insert(output_.end(), payload.begin(), payload.end());
}

void ControlStream::add_hello(const ControlHello& hello) {
  std::vector<std::byte> payload;
  put64(kMagic, payload);
  put32(hello.worker.value(), payload);
  put64(hello.incarnation, payload);
  add(Type::Hello, payload);
}

std::optional<ControlHello> ControlStream::decode_hello(std::span<const std::byte> payload) {
  if (payload.size() != kHelloBytes || get64(payload) != kMagic) return std::nullopt;
  const ControlHello hello{WorkerId(get32(payload.subspan(8))), get64(payload.subspan(12))};
  if (!hello.worker.valid()) return std::nullopt;
  return hello;
}

ControlStream::State ControlStream::flush() {
  while (waiting() != 0) {
    const ssize_t sent =
        ::send(socket_.get(), output_.data() + sent_, waiting(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent < 0) {
      const bool later = errno == EAGAIN || errno == EINTR || errno == ENOTCONN;
      if (!later) broken_ = true;
      break;
    }
    sent_ += static_cast<std::size_t>(sent);
  }
  if (waiting() == 0) {
    output_.clear();
    sent_ = 0;
  } else if (sent_ > output_.size() / 2) {
    output_.erase(output_.begin(), output_.begin() + static_cast<std::ptrdiff_t>(sent_));
    sent_ = 0;
  }
  return broken_ ? State::Broken : State::Good;
}

ControlStream::State ControlStream::receive(Time now) {
  if (taken_ != 0) {
    input_.erase(input_.begin(), input_.begin() + static_cast<std::ptrdiff_t>(taken_));
    taken_ = 0;
  }
  const std::size_t had = input_.size();
  input_.resize(had + kPortion);
  const ssize_t got = ::recv(socket_.get(), input_.data() + had, kPortion, MSG_DONTWAIT);
  const int error = errno;
  input_.resize(had + (got > 0 ? static_cast<std::size_t>(got) : 0));
  if (got > 0) {
    heard_ = now;
    pinged_ = false;
  } else if (got == 0 || (error != EAGAIN && error != EINTR)) {
    broken_ = true;
  }
  return broken_ ? State::Broken : State::Good;
}

std::optional<ControlStream::Frame> ControlStream::next_frame() {
  const auto rest = std::span<const std::byte>(input_).subspan(taken_);
  if (rest.size() < kHead) return std::nullopt;
  const std::size_t length = get32(rest);
  const std::uint32_t type = get32(rest.subspan(4));
  const bool known = type >= static_cast<std::uint32_t>(Type::Hello) &&
                     type <= static_cast<std::uint32_t>(Type::Pong);
  if (!known || length > most_of(static_cast<Type>(type))) {
    broken_ = true;
    return std::nullopt;
  }
  if (rest.size() < kHead + length) return std::nullopt;
  taken_ += kHead + length;
  return Frame{static_cast<Type>(type), rest.subspan(kHead, length)};
}

ControlStream::State ControlStream::check_pulse(Time now, Time heartbeat, Time silence,
                                                Time handshake, bool recognised) {
  if (!recognised) return now - opened_ > handshake ? State::Broken : State::Good;
  const Time quiet = now - heard_;
  if (quiet > silence) return State::Broken;
  if (quiet >= heartbeat / 2 && !pinged_) {
    add(Type::Ping, {});
    pinged_ = true;
  }
  return State::Good;
}

}  // namespace holdfast::real
