// TCP sockets of both address families, without names to resolve.
//
// Addresses are texts: "127.0.0.1:4711", "[::1]:4711". Port 0 asks the system for one.
#pragma once

#include <netinet/in.h>
#include <sys/socket.h>

#include <optional>
#include <string>
#include <string_view>

#include "core/units.hpp"
#include "real/descriptor.hpp"

namespace holdfast::real {

struct SocketAddress {
  sockaddr_storage storage{};
  socklen_t length = 0;

  // 127.0.0.0/8 or ::1: what never leaves the machine.
  [[nodiscard]] bool loopback() const;
  [[nodiscard]] int family() const { return storage.ss_family; }
};

[[nodiscard]] Parsed<SocketAddress> parse_address(std::string_view text);
[[nodiscard]] std::string to_string(const SocketAddress& address);

// A non-blocking listener. Throws Error(BadValue) for a text that is no address and for an address
// other than loopback unless `anywhere`; Error(Unsupported) if the system refuses, with its reason.
[[nodiscard]] Descriptor listen_on(const std::string& address, bool anywhere);
// The address that a listener has got, its port included.
[[nodiscard]] SocketAddress bound_address(const Descriptor& listener);

// Begins to connect, without blocking; an invalid descriptor if the system refuses at once.
[[nodiscard]] Descriptor start_connect(const SocketAddress& address);
// Takes the next connection from a listener's queue; invalid if there is none (`errno` says why).
[[nodiscard]] Descriptor accept_from(const Descriptor& listener);

// Closes at once: what waits in the send buffer is thrown away and the other side is told by a
// reset.
void cut(Descriptor& socket);

// Waits until the descriptor is readable or the length of time is over, exact to the system's
// timers rather than to milliseconds. A signal may end it early.
void wait_readable(int descriptor, Time most);

}  // namespace holdfast::real
