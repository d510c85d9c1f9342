// What failures and late joiners cost an update of many replicas, beside what is allowed.
//
//   build/release/fault_quality [--racks 8] [--hosts 16] [--blocks 256] [--detection 100ms,1s,5s]
//                               [--only TEXT] [--json]
//   build/release/fault_quality --quiet 60s [--hosts 16]      what heartbeats cost in wall time
//
// A 70B model (141 GB) with TP=8 on hosts of eight GPUs with 400 Gb/s each, racks without
// oversubscription; the first host publishes, all others fetch at once, policy `auto`. A detection
// time D is both that of lost connections and of silent workers (of these at least three
// heartbeats). Extra is the last survivor's completion less the same without a fault.
#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <chrono>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "tests/sim/service_world.hpp"

namespace holdfast::quality {
namespace {

using sim::GroupCall;
using sim::ProtocolOptions;
using sim::ProtocolService;
using sim::testing::Recorder;
using sim::testing::ServiceWorld;

constexpr Version kVersion{1, 1};
constexpr Time kLong = seconds(600);
constexpr std::uint64_t kModelBytes = 141'107'412'992;
constexpr std::uint32_t kGpus = 8;

struct Arguments {
  std::uint32_t racks = 8;
  std::uint32_t hosts = 16;
  std::uint32_t blocks = 256;
  std::vector<std::string> detection{"100ms", "1s", "5s"};
  std::string only;
  std::string quiet;
  bool json = false;
};

testing_support::ClusterShape shape_of(const Arguments& arguments) {
  testing_support::ClusterShape shape;
  shape.racks = arguments.racks;
  shape.hosts = arguments.hosts;
  shape.gpus = kGpus;
  shape.nics = kGpus;
  shape.uplink_rate = Rate(50'000'000'000ULL * kGpus * arguments.hosts);
  return shape;
}

constexpr double kNever = 2;  // more than all

// What happens when that part of the first groups' blocks has arrived.
struct Event {
  double share = 0.5;
  std::function<void(ProtocolService&, ServiceWorld&)> what;
  std::optional<std::uint32_t> joiner;  // fetches then, and not at the start
};

struct Outcome {
  Time makespan;               // of those who fetched at the start and live
  Time last_block;             // theirs
  std::optional<Time> joined;  // how long the joiner took
  std::uint32_t failed = 0;    // fetches of groups that live
  double wall_s = 0;
  Bytes moved;
};

class Update {
 public:
  Update(const Arguments& arguments, Time detection, const Event& event)
      : world_(shape_of(arguments), arguments.blocks,
               Bytes(kModelBytes / kGpus / arguments.blocks)),
        event_(event),
        options_(world_.options(detection)) {
    service_.emplace(world_.router, world_.setup, options_);
    seen_.emplace(*service_);
  }

  Outcome run() {
    const auto start = std::chrono::steady_clock::now();
    seen_->on_end = [this](GroupId group, GroupCall call, const CallResult& result) {
      ended(group, call, result);
    };
    seen_->on_delivery = [this] { delivered(); };
    service_->call_at(kLong, [this] { service_->stop(); });
    service_->run(*seen_, [this] {
      for (std::uint32_t g = 0; g < world_.groups(); ++g) service_->start(GroupId(g));
      publish_ = service_->call(GroupId(0U), PublishCall{kVersion}, kLong);
    });
    outcome_.moved = service_->moved().gpu;
    outcome_.wall_s =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    return outcome_;
  }

 private:
  void ended(GroupId group, GroupCall call, const CallResult& result) {
    if (call == publish_) {
      begun_ = service_->now();
      for (std::uint32_t g = 1; g < world_.groups(); ++g) {
        if (event_.joiner != g) open_.insert(service_->call(GroupId(g), FetchCall{}, kLong));
      }
      return;
    }
    const Time took = service_->now() - (call == join_ ? asked_ : begun_);
    open_.erase(call);
    if (result.status == CallStatus::Ok) {
      if (call == join_) {
        outcome_.joined = took;
      } else {
        outcome_.makespan = std::max(outcome_.makespan, took);
      }
    } else if (service_->running(group)) {
      ++outcome_.failed;
    }
    if (open_.empty() && (happened_ || event_.share == kNever)) service_->stop();
  }

  void delivered() {
    outcome_.last_block = service_->now() - begun_;
    const double total =
        static_cast<double>(world_.setup.spaces.front()->blocks()) * (world_.groups() - 1);
    if (happened_ || static_cast<double>(seen_->delivered) < event_.share * total) return;
    happened_ = true;
    if (event_.joiner) {
      asked_ = service_->now();
      join_ = service_->call(GroupId(*event_.joiner), FetchCall{}, kLong);
      open_.insert(join_);
    }
    if (event_.what) event_.what(*service_, world_);
  }

  ServiceWorld world_;
  Event event_;
  ProtocolOptions options_;
  std::optional<ProtocolService> service_;
  std::optional<Recorder> seen_;
  GroupCall publish_ = 0;
  GroupCall join_ = 0;
  std::set<GroupCall> open_;
  Time begun_;
  Time asked_;
  bool happened_ = false;
  Outcome outcome_;
};

class Table {
 public:
  explicit Table(const Arguments& arguments) : arguments_(arguments) {}

  [[nodiscard]] bool wanted(const std::string& name) const {
    return name.find(arguments_.only) != std::string::npos;
  }
  void add(const std::string& name, Time detection, const Outcome& with, double extra,
           double allowed, const char* unit) {
    const bool reached = with.failed == 0 && extra <= allowed;
    rows_.push_back({{"case", name},
                     {"detection_s", detection.seconds()},
                     {"makespan_s", with.makespan.seconds()},
                     {"value", extra},
                     {"allowed", allowed},
                     {"unit", unit},
                     {"failed_fetches", with.failed},
                     {"reached", reached},
                     {"wall_s", with.wall_s}});
    if (arguments_.json) return;
    fmt::print("{:<34} {:>6.2f} s {:>9.4f} s {:>9.4f} {:<5} allowed {:>8.4f}  {}{} ({:.1f} s)\n",
               name, detection.seconds(), with.makespan.seconds(), extra, unit, allowed,
               reached ? "reached" : "NOT REACHED",
               with.failed == 0 ? "" : fmt::format(", {} fetches failed", with.failed),
               with.wall_s);
    std::fflush(stdout);
  }
  void print() const {
    if (arguments_.json) fmt::print("{}\n", rows_.dump(2));
  }

 private:
  const Arguments& arguments_;
  nlohmann::json rows_ = nlohmann::json::array();
};

// Host `number` in the order of the racks is group `number`.
void measure(const Arguments& arguments) {
  Table table(arguments);
  const std::uint32_t groups = arguments.racks * arguments.hosts;
  const Outcome calm = Update(arguments, milliseconds(100), {0.5, {}, {}}).run();
  const double whole = calm.makespan.seconds();
  table.add("no fault", milliseconds(100), calm, whole, 1e9, "s");
  for (const std::string& text : arguments.detection) {
    const auto detection = parse_time(text);
    if (!detection) throw CLI::ValidationError("--detection", detection.error());
    const double least = detection->seconds();
    if (table.wanted("source dies")) {
      // The worst of three: one in the trainer's rack, one in the middle, one at the end.
      for (const std::uint32_t victim : {1U, groups / 2, groups - 1}) {
        const Event event{
            0.5, [victim](ProtocolService& s, ServiceWorld&) { s.kill(GroupId(victim)); }, {}};
        const Outcome with = Update(arguments, *detection, event).run();
        table.add(fmt::format("source dies (replica {})", victim), *detection, with,
                  with.makespan.seconds() - whole, least + 0.05 * whole, "s");
      }
    }
    if (table.wanted("rack dies")) {
      const Event event{
          0.5, [](ProtocolService& s, ServiceWorld& w) { s.apply(w.domain_dies("d0.r1")); }, {}};
      const Outcome with = Update(arguments, *detection, event).run();
      table.add(fmt::format("rack dies ({} hosts)", arguments.hosts), *detection, with,
                with.makespan.seconds() - whole, least + 0.10 * whole, "s");
    }
  }
  if (table.wanted("coordinator")) {
    const Event event{0.5,
                      [](ProtocolService& s, ServiceWorld&) {
                        s.stop_coordinator();
                        s.call_at(s.now() + seconds(5), [&s] { s.start_coordinator(); });
                      },
                      {}};
    const Outcome with = Update(arguments, milliseconds(100), event).run();
    table.add("coordinator down for 5 s, last block", milliseconds(100), with,
              with.last_block.seconds() - calm.last_block.seconds(), 0.0, "s");
  }
  if (table.wanted("joiner")) {
    const std::uint32_t joiner = groups - 1;
    const Outcome without = Update(arguments, milliseconds(100), {kNever, {}, joiner}).run();
    const Outcome with = Update(arguments, milliseconds(100), {0.5, {}, joiner}).run();
    const double alone = static_cast<double>(kModelBytes) / kGpus / 50e9;
    table.add("late joiner, NIC time / its time", milliseconds(100), with,
              -alone / with.joined.value_or(Time::never()).seconds(), -0.9, "");
    table.add("late joiner, others later by", milliseconds(100), with,
              with.makespan.seconds() / without.makespan.seconds() - 1, 0.02, "");
  }
  table.print();
}

// Nothing but heartbeats.
void measure_quiet(const Arguments& arguments) {
  const auto length = parse_time(arguments.quiet);
  if (!length) throw CLI::ValidationError("--quiet", length.error());
  ServiceWorld world(shape_of(arguments), 4, Bytes(1 << 20));
  const ProtocolOptions options = world.options(seconds(1));
  ProtocolService service(world.router, world.setup, options);
  Recorder seen(service);
  service.call_at(*length, [&] { service.stop(); });
  const auto start = std::chrono::steady_clock::now();
  service.run(seen, [&] {
    for (std::uint32_t g = 0; g < world.groups(); ++g) service.start(GroupId(g));
  });
  const double wall =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  nlohmann::json row{{"workers", arguments.racks * arguments.hosts * kGpus},
                     {"simulated_s", length->seconds()},
                     {"wall_s", wall},
                     {"frames_up", service.traffic().to_coordinator},
                     {"frames_down", service.traffic().to_workers}};
  fmt::print("{}\n", row.dump());
}

}  // namespace
}  // namespace holdfast::quality

int main(int argc, char** argv) {
  holdfast::quality::Arguments arguments;
  CLI::App app("What failures cost an update");
  app.add_option("--racks", arguments.racks);
  app.add_option("--hosts", arguments.hosts, "of a rack");
  app.add_option("--blocks", arguments.blocks, "of a shard");
  app.add_option("--detection", arguments.detection)->delimiter(',');
  app.add_option("--only", arguments.only);
  app.add_option("--quiet", arguments.quiet);
  app.add_flag("--json", arguments.json);
  CLI11_PARSE(app, argc, argv);
  if (arguments.quiet.empty()) {
    holdfast::quality::measure(arguments);
  } else {
    holdfast::quality::measure_quiet(arguments);
  }
  return 0;
}
