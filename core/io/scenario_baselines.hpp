// `baselines` of a scenario: what the policies that stand for other ways of moving weights assume.
//
//   baselines:
//     nccl: {init_time: 5s, algorithm: ring, channels: 1}
//     ucx: {connect_time: 10ms}
//     store: {place: {host_memory: 'h[0-3].mem'}, bandwidth: 20GB/s, put_time: 10ms, get_time:
//     10ms}
//
// Defaults, and where they come from. They are assumptions until somebody measures them beside the
// paper's set-up, and every results file says which were used.
//   nccl.init_time     5 s. Making a communicator takes seconds from some hundred ranks on, since
//   the
//                      bootstrap of NCCL before 2.23 is linear in ranks; reports range from 1 s to
//                      tens of seconds at 1,024 ranks. Paid once, and again at each change of
//                      membership, while everybody waits.
//   nccl.algorithm     ring: what NCCL's broadcast uses; `tree` is its double binary tree, which
//                      NCCL has for all-reduce alone: it is here for a fair upper end.
//   nccl.channels      1 for each NIC: enough for full bandwidth where a channel keeps a NIC busy.
//   ucx.connect_time   10 ms: exchange of addresses and a queue pair of each pair of workers, the
//                      first time that they meet.
//   store.place        the memory of the trainers' hosts, where nothing is said.
//   store.bandwidth    of each of these hosts, in and out each: what their NICs carry, where
//   nothing
//                      is said.
//   store.put_time, store.get_time
//                      10 ms each: serialising and a request to an object store for a shard of some
//                      gigabytes, without the transfer.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "core/error.hpp"
#include "core/io/pattern_list.hpp"
#include "core/plan/planner.hpp"
#include "core/units.hpp"

namespace holdfast {

struct NcclBaseline {
  Time init_time = seconds(5);
  NcclAlgorithm algorithm = NcclAlgorithm::Ring;
  std::uint32_t channels = 1;  // for each NIC
  std::optional<Place> place;  // where it is written
};

struct UcxBaseline {
  Time connect_time = milliseconds(10);
  std::optional<Place> place;
};

struct StoreBaseline {
  std::vector<PlacedPattern> hosts;  // host memories, or domains that stand for those inside;
                                     // empty: of the trainers' hosts
  std::optional<Rate> bandwidth;     // of each, each way; nothing: what its links carry
  Time put_time = milliseconds(10);
  Time get_time = milliseconds(10);
  std::optional<Place> place;
};

struct ScenarioBaselines {
  NcclBaseline nccl;
  UcxBaseline ucx;
  StoreBaseline store;
};

}  // namespace holdfast
