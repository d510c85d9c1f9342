// Worker processes of a local run: started from this same program, watched, ended.
//
//   ProcessGroup group;
//   const std::size_t worker = group.start({"worker", "3"}, {socket.get()});  // there: descriptor
//   3 group.kill(worker);                                                      // kill -9 while
//   (const auto ended = group.next_ended()) ...                        // which, and how
//   group.stop(seconds(5));                                                  // politely, then not
//
// No child survives this object, and none survives this process however it ends: the kernel kills
// them when the thread that started them is gone (PR_SET_PDEATHSIG), so `start` must be called from
// a thread that lives as long as they shall, the main thread say. Children get the standard streams
// and the descriptors that they are given, nothing else. One thread.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "core/units.hpp"
#include "real/descriptor.hpp"

namespace holdfast::real {

// How a process ended.
struct ProcessEnd {
  std::size_t process = 0;  // its number in the group
  int status = 0;           // exit status, if signal is 0
  int signal = 0;
};
// "exit status 3", "signal 9 (Killed)"
[[nodiscard]] std::string to_string(const ProcessEnd& end);

class ProcessGroup {
 public:
  // The number in a child of the first descriptor that it was given; the others follow.
  static constexpr int kFirstDescriptor = 3;

  ProcessGroup();
  // Kills and reaps those that are left: bounded by how long the kernel takes to end a process.
  ~ProcessGroup();
  ProcessGroup(const ProcessGroup&) = delete;
  ProcessGroup& operator=(const ProcessGroup&) = delete;

  // Runs this program (/proc/self/exe) with `arguments` after its name. Returns the child's number:
  // 0, 1, ... Throws Error(Unsupported) if the system does not let it.
  std::size_t start(const std::vector<std::string>& arguments, const std::vector<int>& descriptors);

  [[nodiscard]] std::size_t size() const { return children_.size(); }
  [[nodiscard]] std::size_t running() const;
  [[nodiscard]] bool is_running(std::size_t process) const { return children_[process].running; }
  [[nodiscard]] pid_t pid(std::size_t process) const { return children_[process].pid; }
  // Readable once the child has ended, for epoll.
  [[nodiscard]] int descriptor(std::size_t process) const {
    return children_[process].handle.get();
  }

  // SIGKILL, at once; nothing if it has ended.
  void kill(std::size_t process);
  // Any signal, to those that run.
  void signal_all(int signal);
  // The end of a child that has not been told yet. Never blocks.
  std::optional<ProcessEnd> next_ended();
  // Until a child has ended that has not been told yet, at most for `most`.
  std::optional<ProcessEnd> wait_ended(Time most);
  // SIGTERM to all; SIGKILL to those that still run after `grace`. All are reaped when it returns,
  // and their ends thrown away.
  void stop(Time grace);

 private:
  struct Child {
    pid_t pid = -1;
    Descriptor handle;  // pidfd
    bool running = false;
  };
  std::vector<Child> children_;
};

}  // namespace holdfast::real
