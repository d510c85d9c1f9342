// A lower limit on the time of any plan, with the cut that proves it. Computed apart from any
// planner: it shares nothing with them beyond the types, and its flows may route freely.
//
// For a set S of receivers (each receiver alone; each group, host, rack, pod and datacenter merged
// to one sink), the distinct bytes that S wants and that nobody in S holds must cross into S. With
// source -> one node per class (capacity: its bytes that must cross) -> the class's holders outside
// S -> the links of the topology -> S, the smallest T such that capacities times T carry all bytes
// is a lower bound (parametric maximum flow; in closed form where the structure allows). Because
// switches do not copy, also for each domain D: T >= (missing bytes of all receivers in D) /
// (outgoing capacity of the endpoints in D that may serve + capacity of the links into D). Where
// some holders lie in a domain around S and some beyond it, what the former can send and what
// enters the domain are one cut. Each bound adds the least unavoidable latency: the shortest way
// from a holder to S, twice (request and data; nothing starts before it is asked for), and the
// digest of the last block.
//
// A worker that has a class to itself in its host gets it, or gives it away, over its links other
// than NVLink: the only relays of a block are those who want it, which flows that merge all classes
// of a set do not see. Where host memory serves, flows are looked at in a second network as well,
// in which NICs and GPUs share its way to the PCIe switches (bound_graph.hpp).
//
// Free routing stays within what hardware does: GPUs and host memory never relay without being
// receivers themselves, and where NVLink joins the GPUs of a host they do not also read each other
// over PCIe (see the README, "What the model says of a host").
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/plan/demand.hpp"
#include "core/topology/topology.hpp"

namespace holdfast {

enum class CutKind {
  Receiver,  // one worker
  Group,     // the workers of one group
  Domain,    // the receivers of one domain, of all, or of all outside a domain
  Copies,    // all missing bytes of a domain against what can serve or enter
  Digest,    // a worker's missing bytes against its digest rate
};

[[nodiscard]] const char* to_string(CutKind kind);

// What proves a bound: bytes that must cross, and what they must cross. T >= latency + bytes /
// capacity, rounded down to a picosecond.
//
// Receiver, Group, Domain: the channels separate every holder outside S that may serve one of the
// classes from S, and nobody in S holds them. Copies: each byte delivered in the domain leaves an
// endpoint there that may serve, or enters the domain; with `unit`, each byte delivered to a domain
// of that level that does not hold it leaves another one of them, or enters. Digest: no channels.
struct Cut {
  CutKind kind = CutKind::Receiver;
  // Name of the worker's node or domain; "group 3"; "outside NAME" for the receivers outside a
  // domain that holds the classes; "all receivers".
  std::string sink;
  std::vector<WorkerId> receivers;  // S: ascending
  std::vector<ClassId> classes;     // whose bytes are counted: ascending
  std::optional<Level> unit;        // Copies: see above
  Bytes bytes;                      // that must cross
  std::vector<ChannelId> channels;  // the cut's links: ascending
  Rate capacity;                    // of all of them, or the digest rate
  Time latency;                     // unavoidable, beside the bytes
  Time time;                        // the bound; never() if nothing carries the bytes
};

// Whether some plan is known to reach the bound up to the fill of its pipeline; lower_bound() does
// not know any plan and says Unknown.
enum class Attainable { Unknown, Proven };

struct Bound {
  Cut cut;                     // the one that proves the bound on the makespan
  std::vector<Time> by_group;  // by group number: no plan makes this group complete earlier; zero
                               // for a group that misses nothing
  Attainable attainable = Attainable::Unknown;
  [[nodiscard]] Time time() const { return cut.time; }
};

// How hard to look for the tightest cut of each set of receivers. Every answer is a lower bound.
enum class BoundMode {
  Auto,        // Exact where that is cheap (up to about 80 GPUs), else Structured
  Exact,       // a maximum flow through the whole topology for each set
  Structured,  // exact inside the hosts of S and inside those of the holders, the rest merged; and
               // closed forms for what enters and leaves each domain
};

// Throws Error(BadValue) naming the node if blocks are verified and a receiver's digest rate is
// zero. Of equal cuts the first found stands: host by host (by number) its receivers, its groups
// and the host itself; groups over several hosts; racks, pods, datacenters; all receivers; copies;
// digests. The time does not depend on the order of nodes and links.
//
// Structured: near-linear in nodes + links + receivers for topologies whose hosts are alike (a flow
// inside a host is computed once for like sinks); at worst a maximum flow through one host a sink.
[[nodiscard]] Bound lower_bound(const Topology& topology, const Demand& demand,
                                BoundMode mode = BoundMode::Auto);

// Adds a certificate up again from the topology and the demand alone, by a different way: takes the
// cut's channels away and checks that no holder of a counted class reaches S, that S misses the
// counted classes and these have so many bytes, and that capacity, latency and time follow. Returns
// what is wrong, or nothing. O((links log nodes + receivers) x distinct sets of holders).
[[nodiscard]] std::optional<std::string> refute(const Cut& cut, const Topology& topology,
                                                const Demand& demand);

}  // namespace holdfast
