#include "sim/child_process.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <exception>
#include <utility>

#include "core/error.hpp"

namespace holdfast::sim {
namespace {

constexpr std::size_t kKept = 4096;
constexpr std::size_t kHeader = 1 + sizeof(std::uint64_t);

void close_if_open(int& descriptor) {
  if (descriptor >= 0) close(descriptor);
  descriptor = -1;
}

// {read end, write end}
std::array<int, 2> make_pipe() {
  std::array<int, 2> ends{-1, -1};
  if (pipe2(ends.data(), O_CLOEXEC) != 0) {
    throw Error(ErrorCode::Unsupported,
                fmt::format("cannot make a pipe to a simulation process: {}", strerror(errno)));
  }
  return ends;
}

// Leaves the process if nobody reads any more.
void write_all(int descriptor, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t written = write(descriptor, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) _exit(4);
    bytes = bytes.subspan(static_cast<std::size_t>(written));
  }
}

[[noreturn]] void be_child(const std::function<void(ChildProcess::Channel&)>& work, int frames,
                           int output, pid_t parent) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(1);
  std::signal(SIGPIPE, SIG_IGN);
  dup2(output, STDOUT_FILENO);
  dup2(output, STDERR_FILENO);
  try {
    ChildProcess::Channel channel(frames);
    work(channel);
  } catch (const std::exception& error) {
    std::fputs(error.what(), stderr);
    std::fflush(nullptr);
    _exit(3);
  }
  std::fflush(nullptr);
  _exit(0);
}

}  // namespace

void ChildProcess::Channel::send(std::uint8_t kind, std::span<const std::byte> payload) {
  std::array<std::byte, kHeader> header;
  const std::uint64_t size = payload.size();
  header[0] = std::byte{kind};
  std::memcpy(header.data() + 1, &size, sizeof(size));
  write_all(descriptor_, header);
  write_all(descriptor_, payload);
}

ChildProcess::ChildProcess(const std::function<void(Channel&)>& work) {
  std::array<int, 2> frames = make_pipe();
  std::array<int, 2> output{-1, -1};
  const auto close_all = [&] {
    for (int* descriptor : {&frames[0], &frames[1], &output[0], &output[1]}) {
      close_if_open(*descriptor);
    }
  };
  try {
    output = make_pipe();
  } catch (...) {
    close_all();
    throw;
  }
  std::fflush(nullptr);  // what is buffered now must not come out of both processes
  const pid_t parent = getpid();
  pid_ = fork();
  if (pid_ < 0) {
    const int reason = errno;
    close_all();
    throw Error(ErrorCode::Unsupported,
                fmt::format("cannot start a simulation process: {}", strerror(reason)));
  }
  if (pid_ == 0) {
    close_if_open(frames[0]);
    close_if_open(output[0]);
    be_child(work, frames[1], output[1], parent);
  }
  close_if_open(frames[1]);
  close_if_open(output[1]);
  frames_ = frames[0];
  output_ = output[0];
  fcntl(output_, F_SETFL, O_NONBLOCK);
}

ChildProcess::~ChildProcess() {
  if (pid_ > 0) kill(pid_, SIGKILL);
  reap();
  close_if_open(frames_);
  close_if_open(output_);
}

void ChildProcess::reap() {
  if (pid_ <= 0) return;
  while (waitpid(pid_, &status_, 0) < 0 && errno == EINTR) {
  }
  pid_ = -1;
}

void ChildProcess::drain_output() {
  std::array<char, 1024> part;
  while (output_ >= 0) {
    const ssize_t got = read(output_, part.data(), part.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && errno == EAGAIN) return;
    if (got <= 0) {
      close_if_open(output_);
      return;
    }
    printed_.append(part.data(), static_cast<std::size_t>(got));
    if (printed_.size() > kKept) printed_.erase(0, printed_.size() - kKept);
  }
}

// Reads until the buffer holds `size` bytes. False at the end of the pipe and after a silence.
bool ChildProcess::fill(std::size_t size, int silence_ms) {
  constexpr std::size_t kPart = std::size_t{1} << 16;
  while (buffer_.size() < size) {
    std::array<pollfd, 2> watched{pollfd{frames_, POLLIN, 0}, pollfd{output_, POLLIN, 0}};
    const int ready = poll(watched.data(), watched.size(), silence_ms);
    if (ready < 0 && errno == EINTR) continue;
    if (ready == 0) {
      silent_ = true;
      return false;
    }
    if (watched[1].revents != 0) drain_output();
    if (watched[0].revents == 0) continue;
    const std::size_t before = buffer_.size();
    buffer_.resize(before + kPart);
    const ssize_t got = read(frames_, buffer_.data() + before, kPart);
    buffer_.resize(before + static_cast<std::size_t>(got > 0 ? got : 0));
    if (got == 0 || (got < 0 && errno != EINTR)) return false;
  }
  return true;
}

std::optional<ChildProcess::Frame> ChildProcess::next(int silence_ms) {
  if (!fill(kHeader, silence_ms)) return std::nullopt;
  Frame frame;
  frame.kind = std::to_integer<std::uint8_t>(buffer_[0]);
  std::uint64_t size = 0;
  std::memcpy(&size, buffer_.data() + 1, sizeof(size));
  if (!fill(kHeader + size, silence_ms)) return std::nullopt;
  const auto first = buffer_.begin() + kHeader;
  const auto last = first + static_cast<std::ptrdiff_t>(size);
  frame.payload.assign(first, last);
  buffer_.erase(buffer_.begin(), last);
  return frame;
}

std::string ChildProcess::how_it_ended() {
  if (silent_ && pid_ > 0) kill(pid_, SIGKILL);
  reap();
  drain_output();
  std::string text;
  if (silent_) {
    text = "no sign of life, killed";
  } else if (WIFSIGNALED(status_)) {
    text = fmt::format("signal {} ({})", WTERMSIG(status_), strsignal(WTERMSIG(status_)));
  } else {
    text = fmt::format("exit status {}", WEXITSTATUS(status_));
  }
  return printed_.empty() ? text + ", it printed nothing" : text + ", it printed: " + printed_;
}

}  // namespace holdfast::sim
