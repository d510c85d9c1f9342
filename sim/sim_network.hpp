// Transports and memories of many workers over one simulated network.
//
// Model of a read. The request takes the latency of the path to its source, which checks the
// permission. Reads of one connection are served one after the other, each as one flow over the
// links of the path, in the order of their posts; the next begins in the instant in which the one
// before ends, if its request is there. The bytes are there one latency after the end of the flow.
// A connection is one stream: the least stream cap on its way bounds it. Jitter: block_jitter.hpp.
// A message takes the latency and no bandwidth. A memory digests one job after the other at its
// node's digest rate, gathers and scatters at once; every digest is zero.
//
// Bytes are not real: regions have a size only. Messages arrive once, in order.
//
// Faults, all at run time: links get slower, go down and come back (`limit`); workers die and live
// again, with nothing of what they had (`kill`, `restart`); nothing gets from some workers to
// others
// (`cut`). A path does not change for a link that is down. What is on the way then:
//   - a message is lost if its way is closed, or its receiver another one, when it is sent or when
//     it would arrive;
//   - reads over a closed way stand still, and go on where they were if it opens again; what has
//     left its source arrives. (What had moved is counted in whole bytes.)
//   - a connection is reported lost when its other end has been dead, or its way closed, for
//     `detection`, but not before one latency. A restart does not bring it back.
//
// Three ways to run it: `run` calls a handler for each worker that has something to poll (one stack
// for everyone: what a large simulation uses), `run_actors` gives each worker an actor that may
// block in Transport::wait, `run_one_actor` gives all of them one, which says how far time may go.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "core/engine/memory.hpp"
#include "core/engine/transport.hpp"
#include "sim/block_jitter.hpp"
#include "sim/flow_network.hpp"
#include "sim/route_table.hpp"

namespace holdfast::sim {

struct Meters {
  std::uint32_t bins = 50;
  bool single_bin_inside_hosts = false;
  Time expected;  // a lower estimate of the makespan
};

// The platform cannot grow: either it has the links of the paths that are known beforehand, without
// those that can never bind, or every link of the topology that is up.
enum class PlatformLinks { OfPaths, All };

// Above so many connections in one set that is coupled by common links, SimGrid, which shares the
// links of the whole set anew whenever one of its flows begins or ends, gives way to our own
// solver.
inline constexpr std::size_t kMostCoupledForSimgrid = 512;
// Our own solver makes rates fair at every change until it has computed so many of them (some ten
// seconds); from then on at most once in this part of the time that a block takes at best between
// hosts. The count, not the clock, decides: the same run gives the same result everywhere.
inline constexpr std::uint64_t kExactRates = 30'000'000;
inline constexpr std::int64_t kStepsOfBlock = 50;

struct NetworkOptions {
  // Nothing: SimGrid's best, or MaxMin by the rule above; with PlatformLinks::All, whose
  // connections are not known beforehand, all workers count as coupled.
  std::optional<FlowDriver> driver;
  BlockJitter jitter;
  PlatformLinks links = PlatformLinks::OfPaths;
  Bytes block;               // the largest, for the step
  std::optional<Time> step;  // from the start, see fair_flows.hpp; nothing: by the rule above
  Time detection = {};       // of a connection's loss
};

// A read at the moment when its last byte has left the source, or when it ends.
struct ReadMoment {
  enum class Kind { Left, Ended };
  Kind kind = Kind::Left;
  OpId id = 0;
  WorkerId source;
  WorkerId reader;
  Version version;                     // Left: of the permission
  RegionId region;                     // Left: of the source
  ReadStatus status = ReadStatus::Ok;  // Ended
};

// What is left of a link's capacity, each way, in millionths; zero: it is down.
struct LinkShare {
  LinkId link;
  std::uint32_t share = 0;
};
using CutId = std::uint32_t;
inline constexpr std::size_t kMostCuts = 64;  // at a time

class SimNetwork {
 public:
  // `nodes`: the endpoint of each worker. `paths`: all those over which data will be read; a peer
  // opened along another path carries messages, and refuses reads with PeerGone. With
  // PlatformLinks::All every path carries data, and none needs to be named.
  // O(nodes + paths x route length), with all links also O(links).
  SimNetwork(const Router& router, std::span<const NodeId> nodes, std::span<const DataPath> paths,
             const Meters& meters = {}, const NetworkOptions& options = {});
  ~SimNetwork();
  SimNetwork(const SimNetwork&) = delete;
  SimNetwork& operator=(const SimNetwork&) = delete;

  [[nodiscard]] Transport& transport(WorkerId worker);
  [[nodiscard]] Memory& memory(WorkerId worker);
  [[nodiscard]] Time now() const;

  // Calls `ready` for each worker at time zero, and again whenever there is something to poll or
  // the time of its last `wake_at` has come; until `stop`. `idle` is called when nothing can happen
  // any more.
  void run(std::function<void(WorkerId)> ready, std::function<void()> idle);
  void wake_at(WorkerId worker, Time at);
  // Calls `what` once at `at`, in `run`.
  void call_at(Time at, std::function<void()> what);
  void stop();

  using Body = std::function<void(Transport&, Memory&, WorkerId)>;
  void run_actors(std::span<const Body> bodies);

  // Runs `body` in one actor; returns when it has. What it throws comes through.
  void run_one_actor(const std::function<void()>& body);
  // In its body: returns when some worker is ready (it has something to poll), at once if one is;
  // or at `until`, when everything else of that instant has happened; or, if that is never, when
  // nothing can happen any more.
  void wait(Time until);
  [[nodiscard]] bool any_ready() const;
  // Workers that became ready since the last call, each once, in the order in which they did.
  [[nodiscard]] std::vector<WorkerId> take_ready();

  // Called at each of these moments; must not call back. Those of a worker that is being killed are
  // shown as well.
  void watch_reads(std::function<void(const ReadMoment&)> watcher);

  // The worker is gone: what it reads stops, its readers hear PeerLost. Nothing if it is dead.
  void kill(WorkerId worker);
  // It lives again: without regions, permissions and connections. Precondition: it is dead, and
  // has no actor of its own.
  void restart(WorkerId worker);
  [[nodiscard]] bool alive(WorkerId worker) const;

  // Of the links' nominal capacities; replaces what was said before. Precondition:
  // PlatformLinks::All; a link that the topology has as down stays so. O(links + flows on them),
  // and O(open connections x route length) where one goes down or comes back.
  void limit(std::span<const LinkShare> links);
  // From now on nothing gets from a worker of `from` to one of `to`; reads between the two stand
  // still either way. Throws Error(LimitExceeded) above kMostCuts. O(open connections).
  CutId cut(std::span<const WorkerId> from, std::span<const WorkerId> to);
  void heal(CutId cut);

  // Payload, aborted reads included.
  struct Moved {
    Bytes gpu;
    Bytes nic;
    Bytes wan;
  };
  [[nodiscard]] const Moved& moved() const;

  [[nodiscard]] FlowDriver driver() const;
  // That of the rates, if it has come into use; zero: they were fair at every change.
  [[nodiscard]] Time step_used() const;

  struct Use {
    ChannelId channel;
    Bytes total;
    std::vector<Bytes> bins;
  };
  // Channels that carried something, ascending. `makespan`: not before now.
  [[nodiscard]] std::vector<Use> channel_use(Time makespan) const;

  struct State;

 private:
  std::unique_ptr<State> state_;
};

}  // namespace holdfast::sim
