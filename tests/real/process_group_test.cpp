// The program is its own child: what it does there is the first argument's word.
#include "real/process_group.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <array>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <thread>

#include "core/error.hpp"
#include "real/clock.hpp"
#include "real/socket.hpp"

namespace holdfast::real {
namespace {

struct Pipe {
  Pipe() {
    int ends[2];
    EXPECT_EQ(::pipe2(ends, O_CLOEXEC), 0);
    out = Descriptor(ends[0]);
    in = Descriptor(ends[1]);
  }
  Descriptor out;
  Descriptor in;
};

std::string read_all(int descriptor) {
  std::string text;
  std::array<char, 256> some;
  for (;;) {
    const ssize_t got = ::read(descriptor, some.data(), some.size());
    if (got <= 0) return text;
    text.append(some.data(), static_cast<std::size_t>(got));
  }
}

bool alive(pid_t pid) {
  return ::kill(pid, 0) == 0;
}

TEST(ProcessGroup, ArgumentsStatusAndDescriptorsArrive) {
  Pipe first;
  Pipe second;
  ProcessGroup group;
  // Given in an order in which the numbers get in each other's way.
  EXPECT_EQ(group.start({"say", "one word", "7"}, {second.in.get(), first.in.get()}), 0U);
  first.in.reset();
  second.in.reset();
  EXPECT_EQ(read_all(second.out.get()), "one word");
  EXPECT_EQ(read_all(first.out.get()), "3 4 ");
  const auto ended = group.wait_ended(seconds(30));
  ASSERT_TRUE(ended);
  EXPECT_EQ(ended->process, 0U);
  EXPECT_EQ(to_string(*ended), "exit status 7");
  EXPECT_EQ(group.running(), 0U);
  EXPECT_FALSE(group.wait_ended(seconds(30)));
}

TEST(ProcessGroup, KilledOnDemandAndReaped) {
  ProcessGroup group;
  for (int i = 0; i < 4; ++i) group.start({"sleep"}, {});
  EXPECT_FALSE(group.next_ended());
  group.kill(2);
  wait_readable(group.descriptor(2), seconds(30));
  const auto ended = group.next_ended();
  ASSERT_TRUE(ended);
  EXPECT_EQ(ended->process, 2U);
  EXPECT_EQ(to_string(*ended), "signal 9 (Killed)");
  EXPECT_FALSE(group.is_running(2));
  EXPECT_FALSE(alive(group.pid(2)));
  group.kill(2);  // nothing happens
  EXPECT_EQ(group.running(), 3U);
}

TEST(ProcessGroup, StopIsPoliteThenNot) {
  Pipe ready;
  ProcessGroup group;
  const std::size_t polite = group.start({"sleep"}, {});
  const std::size_t stubborn = group.start({"stubborn"}, {ready.in.get()});
  ready.in.reset();
  std::array<char, 1> byte;
  EXPECT_EQ(::read(ready.out.get(), byte.data(), 1), 1);
  group.stop(milliseconds(200));
  EXPECT_EQ(group.running(), 0U);
  EXPECT_FALSE(alive(group.pid(polite)));
  EXPECT_FALSE(alive(group.pid(stubborn)));
}

// Neither the group's end nor the parent's leaves anybody behind.
TEST(ProcessGroup, NobodyIsLeft) {
  pid_t pid = -1;
  {
    ProcessGroup group;
    pid = group.pid(group.start({"stubborn"}, {}));
  }
  EXPECT_FALSE(alive(pid));

  Pipe told;
  ProcessGroup group;
  group.start({"parent"}, {told.in.get()});
  told.in.reset();
  pid_t grandchild = -1;
  ASSERT_EQ(::read(told.out.get(), &grandchild, sizeof grandchild),
            static_cast<ssize_t>(sizeof grandchild));
  group.kill(0);
  EXPECT_TRUE(group.wait_ended(seconds(30)));
  // The grandchild holds the pipe: its end is the grandchild's.
  EXPECT_EQ(read_all(told.out.get()), "");
}

int child(int argc, char** argv) {
  const std::string what = argv[1];
  if (what == "say" && argc == 4) {
    std::string open;  // descriptors beyond the standard streams
    for (int d = 3; d < 1000; ++d) {
      if (::fcntl(d, F_GETFD) >= 0) open += std::to_string(d) + " ";
    }
    const bool said =
        ::write(3, argv[2], std::strlen(argv[2])) > 0 && ::write(4, open.data(), open.size()) > 0;
    return said ? std::atoi(argv[3]) : 1;
  }
  if (what == "stubborn") {
    ::signal(SIGTERM, SIG_IGN);
    [[maybe_unused]] const auto written = ::write(3, "x", 1);
  }
  if (what == "parent") {
    ProcessGroup group;
    const pid_t pid = group.pid(group.start({"sleep"}, {3}));
    [[maybe_unused]] const auto written = ::write(3, &pid, sizeof pid);
    ::pause();
  }
  ::alarm(120);  // should all else fail
  for (;;) ::pause();
}

}  // namespace
}  // namespace holdfast::real

int main(int argc, char** argv) {
  if (argc > 1 && argv[1][0] != '-') return holdfast::real::child(argc, argv);
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
