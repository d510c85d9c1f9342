#include "real/socket.hpp"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/tcp.h>
#include <poll.h>

#include <cerrno>
#include <charconv>
#include <cstring>
#include <system_error>

#include "core/error.hpp"
#include "core/quote.hpp"

namespace holdfast::real {
namespace {

// Bytes that the kernel holds unsent beyond what is under way: enough to keep a fast line busy
// between two turns, little enough that a revoked read's bytes are soon gone.
constexpr int kUnsentBytes = 512 * 1024;

std::string system_reason(int error) {
  return std::generic_category().message(error);
}

void set_up(int socket) {
  const int on = 1;
  ::setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  ::setsockopt(socket, IPPROTO_TCP, TCP_NOTSENT_LOWAT, &kUnsentBytes, sizeof kUnsentBytes);
}

std::optional<std::uint16_t> parse_port(std::string_view text) {
  std::uint16_t port = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), port);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return port;
}

}  // namespace

bool SocketAddress::loopback() const {
  if (family() == AF_INET) {
    sockaddr_in in{};
    std::memcpy(&in, &storage, sizeof in);
    return (ntohl(in.sin_addr.s_addr) >> 24U) == 127;
  }
  sockaddr_in6 in6{};
  std::memcpy(&in6, &storage, sizeof in6);
  return std::memcmp(&in6.sin6_addr, &in6addr_loopback, sizeof in6addr_loopback) == 0;
}

Parsed<SocketAddress> parse_address(std::string_view text) {
  const auto wrong = [&] {
    return tl::make_unexpected(
        fmt::format("{} is no address: write 127.0.0.1:4711 or [::1]:4711", quote(text)));
  };
  const std::size_t colon = text.rfind(':');
  if (colon == std::string_view::npos) return wrong();
  const auto port = parse_port(text.substr(colon + 1));
  std::string host(text.substr(0, colon));
  if (!port) return wrong();
  SocketAddress address;
  if (host.size() > 2 && host.front() == '[' && host.back() == ']') {
    host = host.substr(1, host.size() - 2);
    sockaddr_in6 in6{};
    in6.sin6_family = AF_INET6;
    in6.sin6_port = htons(*port);
    if (::inet_pton(AF_INET6, host.c_str(), &in6.sin6_addr) != 1) return wrong();
    std::memcpy(&address.storage, &in6, sizeof in6);
    address.length = sizeof in6;
    return address;
  }
  sockaddr_in in{};
  in.sin_family = AF_INET;
  in.sin_port = htons(*port);
  if (::inet_pton(AF_INET, host.c_str(), &in.sin_addr) != 1) return wrong();
  std::memcpy(&address.storage, &in, sizeof in);
  address.length = sizeof in;
  return address;
}

std::string to_string(const SocketAddress& address) {
  char text[INET6_ADDRSTRLEN] = {};
  if (address.family() == AF_INET6) {
    sockaddr_in6 in6{};
    std::memcpy(&in6, &address.storage, sizeof in6);
    ::inet_ntop(AF_INET6, &in6.sin6_addr, text, sizeof text);
    return fmt::format("[{}]:{}", text, ntohs(in6.sin6_port));
  }
  sockaddr_in in{};
  std::memcpy(&in, &address.storage, sizeof in);
  ::inet_ntop(AF_INET, &in.sin_addr, text, sizeof text);
  return fmt::format("{}:{}", text, ntohs(in.sin_port));
}

Descriptor listen_on(const std::string& text, bool anywhere) {
  const auto address = parse_address(text);
  if (!address) throw Error(ErrorCode::BadValue, address.error());
  if (!anywhere && !address->loopback()) {
    throw Error(ErrorCode::BadValue,
                fmt::format("{} can be reached from other machines, and connections are neither "
                            "encrypted nor authenticated; listen on 127.0.0.1 or [::1]",
                            quote(text)));
  }
  const auto refuse = [&] {
    const int error = errno;
    throw Error(ErrorCode::Unsupported,
                fmt::format("cannot listen on {}: {}", quote(text), system_reason(error)));
  };
  Descriptor socket(::socket(address->family(), SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!socket.valid()) refuse();
  const int on = 1;
  ::setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  sockaddr_storage storage = address->storage;
  if (::bind(socket.get(), reinterpret_cast<const sockaddr*>(&storage), address->length) != 0) {
    refuse();
  }
  if (::listen(socket.get(), SOMAXCONN) != 0) refuse();
  return socket;
}

SocketAddress bound_address(const Descriptor& listener) {
  SocketAddress address;
  address.length = sizeof address.storage;
  ::getsockname(listener.get(), reinterpret_cast<sockaddr*>(&address.storage), &address.length);
  return address;
}

Descriptor start_connect(const SocketAddress& address) {
  Descriptor socket(::socket(address.family(), SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!socket.valid()) return {};
  set_up(socket.get());
  const auto* name = reinterpret_cast<const sockaddr*>(&address.storage);
  if (::connect(socket.get(), name, address.length) != 0 && errno != EINPROGRESS) return {};
  return socket;
}

Descriptor accept_from(const Descriptor& listener) {
  Descriptor socket(::accept4(listener.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
  if (socket.valid()) set_up(socket.get());
  return socket;
}

void cut(Descriptor& socket) {
  if (!socket.valid()) return;
  const linger now{1, 0};
  ::setsockopt(socket.get(), SOL_SOCKET, SO_LINGER, &now, sizeof now);
  socket.reset();
}

void wait_readable(int descriptor, Time most) {
  if (most < Time{}) most = Time{};
  constexpr Time kDay = seconds(86400);
  const std::int64_t nanos = (most < kDay ? most : kDay).picoseconds() / 1000 + 1;  // not early
  const timespec length{nanos / 1'000'000'000, nanos % 1'000'000'000};
  pollfd entry{descriptor, POLLIN, 0};
  ::ppoll(&entry, 1, &length, nullptr);
}

}  // namespace holdfast::real
