#include "real/local/json_lines.hpp"

#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>

namespace holdfast::real {

bool JsonLines::send(const nlohmann::json& value) {
  std::string line = value.dump();
  line += '\n';
  std::size_t sent = 0;
  while (sent < line.size()) {
    const ssize_t n =
        ::send(descriptor_, line.data() + sent, line.size() - sent, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (n > 0) {
      sent += static_cast<std::size_t>(n);
      continue;
    }
    if (n < 0 && errno == EINTR) continue;
    if (n == 0 || (errno != EAGAIN && errno != EWOULDBLOCK)) return false;
    pollfd ready{descriptor_, POLLOUT, 0};
    constexpr int kPatienceMs = 10'000;
    if (::poll(&ready, 1, kPatienceMs) <= 0) return false;
  }
  return true;
}

bool JsonLines::receive(std::deque<nlohmann::json>& out) {
  std::array<char, 16'384> buffer;
  for (;;) {
    const ssize_t n = ::recv(descriptor_, buffer.data(), buffer.size(), MSG_DONTWAIT);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) break;
    if (n <= 0) return false;
    partial_.append(buffer.data(), static_cast<std::size_t>(n));
  }
  std::size_t begin = 0;
  for (std::size_t end = partial_.find('\n'); end != std::string::npos;
       end = partial_.find('\n', begin)) {
    nlohmann::json value =
        nlohmann::json::parse(partial_.begin() + static_cast<long>(begin),
                              partial_.begin() + static_cast<long>(end), nullptr, false);
    if (value.is_discarded()) return false;
    out.push_back(std::move(value));
    begin = end + 1;
  }
  partial_.erase(0, begin);
  return true;
}

}  // namespace holdfast::real
