// Work in a forked child: what it sends comes back in frames, and how it ends.
//
//   ChildProcess child([](ChildProcess::Channel& out) { out.send(1, bytes); });
//   while (auto frame = child.next(minutes)) ...
//
// The child never returns from its work: it leaves with _exit, so that neither buffers nor
// destructors of the parent run twice. It dies with its parent. What it prints is kept, the last 4
// KiB of it.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace holdfast::sim {

class ChildProcess {
 public:
  // The child's end of the pipe.
  class Channel {
   public:
    explicit Channel(int descriptor) : descriptor_(descriptor) {}
    // Leaves the process if the parent no longer reads.
    void send(std::uint8_t kind, std::span<const std::byte> payload);

   private:
    int descriptor_;
  };

  struct Frame {
    std::uint8_t kind = 0;
    std::vector<std::byte> payload;
  };

  // Forks. Throws Error(Unsupported) if the system does not let it.
  explicit ChildProcess(const std::function<void(Channel&)>& work);
  // Kills the child if it is still there, and reaps it.
  ~ChildProcess();
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;

  // The next frame; nothing once the child has closed the pipe, or if it sent nothing for
  // `silence_ms` (then `silent` says so).
  [[nodiscard]] std::optional<Frame> next(int silence_ms);
  [[nodiscard]] bool silent() const { return silent_; }

  // Waits for the end: "exit status 3", "signal 6 (Aborted)" and what it printed. Kills it first if
  // it was silent.
  [[nodiscard]] std::string how_it_ended();

 private:
  void drain_output();
  bool fill(std::size_t size, int silence_ms);
  void reap();

  pid_t pid_ = -1;
  int frames_ = -1;  // read ends
  int output_ = -1;
  int status_ = 0;
  bool silent_ = false;
  std::vector<std::byte> buffer_;
  std::string printed_;
};

}  // namespace holdfast::sim
