#include "real/process_group.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <system_error>

#include "core/error.hpp"
#include "real/clock.hpp"

namespace holdfast::real {
namespace {

constexpr const char* kSelf = "/proc/self/exe";

[[noreturn]] void refuse(const char* what) {
  const int error = errno;
  throw Error(ErrorCode::Unsupported,
              fmt::format("cannot {}: {}", what, std::generic_category().message(error)));
}

// In the child, between fork and exec: only what may be called there.
[[noreturn]] void become(pid_t parent, char* const* arguments, const std::vector<int>& given,
                         std::vector<int>& moved) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(126);  // it was gone before we asked
  const int count = static_cast<int>(given.size());
  const int first = ProcessGroup::kFirstDescriptor;
  // Out of the way first: a number that is wanted may be one that is given.
  for (std::size_t i = 0; i < given.size(); ++i) {
    moved[i] = ::fcntl(given[i], F_DUPFD_CLOEXEC, first + count);
    if (moved[i] < 0) ::_exit(126);
  }
  for (int i = 0; i < count; ++i) {
    if (::dup2(moved[static_cast<std::size_t>(i)], first + i) < 0) ::_exit(126);
  }
  ::syscall(SYS_close_range, static_cast<unsigned>(first + count), ~0U, 0U);
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  ::execv(kSelf, arguments);
  ::_exit(127);
}

}  // namespace

std::string to_string(const ProcessEnd& end) {
  if (end.signal == 0) return fmt::format("exit status {}", end.status);
  return fmt::format("signal {} ({})", end.signal, ::strsignal(end.signal));
}

ProcessGroup::ProcessGroup() = default;

ProcessGroup::~ProcessGroup() {
  signal_all(SIGKILL);
  for (Child& child : children_) {
    while (child.running && ::waitpid(child.pid, nullptr, 0) < 0 && errno == EINTR) {
    }
  }
}

std::size_t ProcessGroup::start(const std::vector<std::string>& arguments,
                                const std::vector<int>& descriptors) {
  std::vector<std::string> words{kSelf};
  words.insert(words.end(), arguments.begin(), arguments.end());
  std::vector<char*> pointers;
  for (std::string& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  std::vector<int> moved(descriptors.size());
  children_.reserve(children_.size() + 1);  // nothing may throw once there is a child

  const pid_t parent = ::getpid();
  const pid_t pid = ::fork();
  if (pid < 0) refuse("start a process");
  if (pid == 0) become(parent, pointers.data(), descriptors, moved);
  Child child;
  child.pid = pid;
  child.handle = Descriptor(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0U)));
  if (!child.handle.valid()) {
    const int error = errno;
    ::kill(pid, SIGKILL);
    ::waitpid(pid, nullptr, 0);
    errno = error;
    refuse("watch a process");
  }
  child.running = true;
  children_.push_back(std::move(child));
  return children_.size() - 1;
}

std::size_t ProcessGroup::running() const {
  return static_cast<std::size_t>(std::count_if(children_.begin(), children_.end(),
                                                [](const Child& child) { return child.running; }));
}

void ProcessGroup::kill(std::size_t process) {
  // Not reaped yet, so the number cannot be another's.
  if (children_[process].running) ::kill(children_[process].pid, SIGKILL);
}

void ProcessGroup::signal_all(int signal) {
  for (const Child& child : children_) {
    if (child.running) ::kill(child.pid, signal);
  }
}

std::optional<ProcessEnd> ProcessGroup::next_ended() {
  for (std::size_t i = 0; i < children_.size(); ++i) {
    Child& child = children_[i];
    int status = 0;
    if (!child.running || ::waitpid(child.pid, &status, WNOHANG) != child.pid) continue;
    child.running = false;
    ProcessEnd end;
    end.process = i;
    if (WIFSIGNALED(status)) {
      end.signal = WTERMSIG(status);
    } else {
      end.status = WEXITSTATUS(status);
    }
    return end;
  }
  return std::nullopt;
}

std::optional<ProcessEnd> ProcessGroup::wait_ended(Time most) {
  const Time end = steady_now() + std::min(most, seconds(86400));
  for (;;) {
    if (auto ended = next_ended()) return ended;
    const Time left = end - steady_now();
    if (left <= Time{} || running() == 0) return std::nullopt;
    std::vector<pollfd> handles;
    for (const Child& child : children_) {
      if (child.running) handles.push_back({child.handle.get(), POLLIN, 0});
    }
    const int milliseconds = static_cast<int>(left.picoseconds() / 1'000'000'000) + 1;
    ::poll(handles.data(), handles.size(), milliseconds);
  }
}

void ProcessGroup::stop(Time grace) {
  signal_all(SIGTERM);
  const Time end = steady_now() + grace;
  while (running() != 0 && wait_ended(end - steady_now())) {
  }
  signal_all(SIGKILL);
  while (running() != 0) {
    if (!wait_ended(seconds(60))) return;  // stuck in the kernel: the destructor waits on
  }
}

}  // namespace holdfast::real
