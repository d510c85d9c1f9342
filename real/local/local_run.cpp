#include "real/local/local_run.hpp"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <deque>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include "core/error.hpp"
#include "real/clock.hpp"
#include "real/local/coordinator_host.hpp"
#include "real/local/json_lines.hpp"
#include "real/process_group.hpp"

namespace holdfast::real {
namespace {

using nlohmann::json;

// Of the versions that a run publishes; simulation takes the same.
constexpr std::uint64_t kLineage = 1;

// One end of a socket pair each.
std::pair<Descriptor, Descriptor> socket_pair() {
  std::array<int, 2> ends{};
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0) {
    throw Error(ErrorCode::Unsupported,
                fmt::format("no socket to a worker process: {}", std::strerror(errno)));
  }
  return {Descriptor(ends[0]), Descriptor(ends[1])};
}

// Tells the coordinator's loop that a worker has said something, or ended.
class Listener {
 public:
  Listener(std::vector<int> descriptors, WakeUp& wake)
      : descriptors_(std::move(descriptors)), wake_(wake), thread_([this] { work(); }) {}
  ~Listener() {
    stop_ = true;
    thread_.join();
  }
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;
  // What was there has been taken: listen again.
  void resume() { told_ = false; }

 private:
  void work() {
    constexpr int kLookMs = 20;
    std::vector<pollfd> polled;
    for (const int descriptor : descriptors_) polled.push_back({descriptor, POLLIN, 0});
    while (!stop_) {
      if (told_) {
        std::this_thread::sleep_for(std::chrono::microseconds(200));
        continue;
      }
      if (::poll(polled.data(), polled.size(), kLookMs) <= 0) continue;
      told_ = true;
      wake_.raise();
    }
  }

  std::vector<int> descriptors_;
  WakeUp& wake_;
  std::atomic<bool> stop_{false};
  std::atomic<bool> told_{false};
  std::thread thread_;
};

class LocalRun {
 public:
  explicit LocalRun(const LocalRunSetup& setup)
      : setup_(setup),
        host_(*setup.topology, setup.roster, {setup.space}, setup.coordinator, setup.policy,
              setup.plan, [this](const Plan& plan) { result_.plans.push_back(hash_of(plan)); }),
        start_(steady_now()) {}

  LocalRunResult carry_out() {
    start_workers();
    std::vector<int> descriptors;
    for (const Child& child : children_) descriptors.push_back(child.socket.get());
    for (std::size_t i = 0; i < children_.size(); ++i) {
      descriptors.push_back(processes_.descriptor(i));
    }
    Listener listener(descriptors, host_.wake_up());
    listener_ = &listener;
    if (wait("the workers to meet the coordinator", [&] { return all(&Child::ready); })) {
      for (std::uint32_t update = 1; update <= setup_.updates && !result_.failure; ++update) {
        carry_out(update);
      }
    }
    stopping_ = true;
    for (Child& child : children_) child.lines.send({{"do", "stop"}});
    const Time end = steady_now() + seconds(10);
    while (processes_.running() != 0 && steady_now() < end) look(steady_now() + milliseconds(50));
    listener_ = nullptr;
    processes_.stop(seconds(1));
    return std::move(result_);
  }

 private:
  struct Child {
    Descriptor socket;
    JsonLines lines;
    WorkerId worker;
    bool ready = false;
    bool gone = false;
    bool killed = false;
    std::string last_words{};      // of what it could not go on after
    std::optional<json> ended;     // of the open call
    std::optional<json> verified;  // the last answer
  };

  void say(const std::string& line) {
    if (setup_.progress) setup_.progress(line);
  }
  void fail(std::string text) {
    if (!result_.failure) result_.failure = std::move(text);
  }
  void note(WorkerId worker, const char* kind, std::string text) {
    if (stopping_) return;
    result_.events.push_back({steady_now() - start_, worker, kind, std::move(text)});
  }
  [[nodiscard]] bool all(bool Child::*flag) const {
    return std::all_of(children_.begin(), children_.end(),
                       [&](const Child& child) { return child.gone || child.*flag; });
  }
  // Every member lives.
  [[nodiscard]] bool whole(const LocalGroup& group) const {
    return std::none_of(group.members.begin(), group.members.end(),
                        [&](WorkerId w) { return children_[w.index()].gone; });
  }
  template <class Visit>
  void each_member(bool LocalGroup::*part, const Visit& visit) {
    for (const LocalGroup& group : setup_.groups) {
      if (!(group.*part) || !whole(group)) continue;
      for (const WorkerId member : group.members) visit(group, children_[member.index()]);
    }
  }

  void start_workers() {
    for (std::uint32_t i = 0; i < setup_.cards.size(); ++i) {
      auto [mine, its] = socket_pair();
      std::vector<std::string> arguments = setup_.worker_arguments;
      for (std::string& argument : arguments) {
        if (argument == "WORKER") argument = std::to_string(i);
        if (argument == "COORDINATOR") argument = host_.address();
      }
      processes_.start(arguments, {its.get()});
      const int descriptor = mine.get();
      children_.push_back(
          {std::move(mine), JsonLines(descriptor), WorkerId(i), false, false, false, {}, {}, {}});
    }
  }

  // Takes in what workers and coordinator have to say, at most until then.
  void look(Time until) {
    host_.run_once(until);
    for (Child& child : children_) {
      if (child.gone) continue;
      std::deque<json> lines;
      const bool open = child.lines.receive(lines);
      for (const json& line : lines) take(child, line);
      if (!open) child.gone = true;
    }
    while (const auto ended = processes_.next_ended()) {
      Child& child = children_[ended->process];
      child.gone = true;
      if (!child.killed && (ended->status != 0 || ended->signal != 0)) {
        fail(fmt::format("worker {} ended with {}{}{}", child.worker.value(), to_string(*ended),
                         child.last_words.empty() ? "" : ": ", child.last_words));
      }
    }
    if (listener_ != nullptr) listener_->resume();
  }

  bool wait(const char* what, const std::function<bool()>& holds) {
    const Time end = steady_now() + setup_.patience;
    while (!holds() && !result_.failure) {
      if (steady_now() >= end) {
        std::string missing;
        for (const Child& child : children_) {
          if (!child.gone && !child.ready) missing += fmt::format(" {}", child.worker.value());
        }
        fail(fmt::format("waited {} for {}{}", rounded(setup_.patience), what,
                         missing.empty() ? "" : "; missing: workers" + missing));
        break;
      }
      look(std::min(end, steady_now() + milliseconds(100)));
    }
    return !result_.failure;
  }

  void take(Child& child, const json& line) {
    const std::string is = line.value("is", "");
    if (is == "ready") {
      child.ready = true;
    } else if (is == "ended") {
      child.ended = line;
      note(child.worker, "call", fmt::format("{}: {}", call_, line.value("words", "")));
    } else if (is == "runs") {
      note(child.worker, "runs",
           line.contains("number") ? fmt::format("{}.{}", line.value("lineage", std::uint64_t{0}),
                                                 line.value("number", std::uint64_t{0}))
                                   : std::string("nothing"));
    } else if (is == "block") {
      deliver(child, line);
    } else if (is == "verified") {
      child.verified = line;
    } else if (is == "failed") {
      // A transfer's end is the protocol's business; what the worker cannot go on after ends it.
      child.last_words = line.value("words", "");
      note(child.worker, "failed", child.last_words);
    }
  }

  void deliver(const Child& child, const json& line) {
    const BlockId block(line.value("block", std::uint32_t{0}));
    const WorkerId source(line.value("source", std::uint32_t{0}));
    auto& deliveries = result_.deliveries[update_];
    if (!received_.insert({child.worker, block}).second) ++result_.repeated;
    deliveries.insert({child.worker, block, source});
    for (const LocalKill& kill : setup_.kills) {
      if (kill.update != update_ || children_[kill.worker.index()].killed) continue;
      if (received_.size() * 1'000'000 < wanted_blocks_ * kill.share) continue;
      Child& victim = children_[kill.worker.index()];
      victim.killed = true;
      processes_.kill(kill.worker.index());
      result_.killed.push_back(kill.worker);
      note(kill.worker, "killed", "");
      say(fmt::format("worker {} killed after {} of {} blocks", kill.worker.value(),
                      received_.size(), wanted_blocks_));
    }
  }

  // One call by every member of such groups, until all of them have ended it.
  bool call(const char* name, bool LocalGroup::*part, json order) {
    call_ = fmt::format("{} {}.{}", name, kLineage, update_);
    const std::uint64_t number = ++calls_;
    order["do"] = name;
    order["call"] = number;
    order["within"] = static_cast<std::int64_t>(setup_.patience.seconds());
    each_member(part, [&](const LocalGroup&, Child& child) {
      child.ended.reset();
      child.lines.send(order);
    });
    const bool done = wait(name, [&] {
      bool all_ended = true;
      each_member(part, [&](const LocalGroup&, Child& child) {
        all_ended = all_ended && child.ended && child.ended->value("call", CallId{0}) == number;
      });
      return all_ended;
    });
    if (!done) return false;
    each_member(part, [&](const LocalGroup& group, Child& child) {
      if (child.ended->value("status", "") == "Ok") return;
      fail(fmt::format("{} of worker {} ({}): {}", name, child.worker.value(), group.name,
                       child.ended->value("words", "")));
    });
    return !result_.failure;
  }

  void carry_out(std::uint32_t update) {
    update_ = update;
    received_.clear();
    wanted_blocks_ = 0;
    each_member(&LocalGroup::fetches, [&](const LocalGroup&, Child& child) {
      wanted_blocks_ += setup_.space->blocks(setup_.cards[child.worker.index()].shard);
    });
    const json version{{"lineage", kLineage}, {"number", update}};
    if (!call("publish", &LocalGroup::publishes, version)) return;
    const Time began = steady_now();
    if (!call("fetch", &LocalGroup::fetches, json::object())) return;
    result_.update_times.push_back(steady_now() - began);
    say(fmt::format("version {}.{} fetched in {}", kLineage, update,
                    rounded(result_.update_times.back())));
    if (!verify(version)) return;
    if (update < setup_.updates) call("unpublish", &LocalGroup::publishes, version);
  }

  bool verify(json version) {
    version["do"] = "verify";
    each_member(&LocalGroup::fetches, [&](const LocalGroup&, Child& child) {
      child.verified.reset();
      child.lines.send(version);
    });
    const bool done = wait("the bytes to be verified", [&] {
      bool all_told = true;
      each_member(&LocalGroup::fetches,
                  [&](const LocalGroup&, Child& child) { all_told = all_told && child.verified; });
      return all_told;
    });
    if (!done) return false;
    std::set<std::string> names;
    each_member(&LocalGroup::fetches, [&](const LocalGroup& group, Child& child) {
      if (child.verified->contains("wrong")) {
        fail(fmt::format("wrong bytes at worker {} ({}): {}", child.worker.value(), group.name,
                         child.verified->value("wrong", "")));
      }
      names.insert(group.name);
    });
    result_.verified.insert(result_.verified.end(), names.begin(), names.end());
    return !result_.failure;
  }

  const LocalRunSetup& setup_;
  LocalRunResult result_;
  CoordinatorHost host_;
  ProcessGroup processes_;
  std::deque<Child> children_;
  Listener* listener_ = nullptr;
  Time start_;
  std::string call_;  // what is asked of workers now: "fetch 1.2"
  bool stopping_ = false;
  std::uint64_t calls_ = 0;
  std::uint32_t update_ = 0;
  std::set<std::pair<WorkerId, BlockId>> received_;
  std::uint64_t wanted_blocks_ = 0;
};

}  // namespace

LocalRunResult run_local(const LocalRunSetup& setup) {
  return LocalRun(setup).carry_out();
}

}  // namespace holdfast::real
