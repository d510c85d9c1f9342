// The baselines that need no machinery of their own: `store`, an object store in the memory of some
// hosts, and `ucx`, point to point from the trainers.
#pragma once

#include <memory>
#include <vector>

#include "sim/protocol_service.hpp"

namespace holdfast::sim {

// `store`: who publishes pushes the version there first, everybody else pulls it from there.
//
// Assumed
//   - Each store host keeps an equal range of the model's blocks, for the last two versions. A
//     publish ends when all of it is there, `put_time` (serialising, the request) included; the
//     trainers may then overwrite theirs without waiting for anybody.
//   - A pull begins `get_time` after it was asked for, and only of versions that are in the store.
//     Every reader of a block reads it from the one host that has it: no relaying, no second
//     source, no copies, so that a store host that dies takes its versions with it until the next
//     publish.
//   - Pushes and pulls are what Holdfast's protocol carries out, so that they share its engine,
//     network and failure handling; that they are planned costs nothing (`planning_time` is zero).
//   - The store's bandwidth is that of its hosts' links.
struct StoreOptions {
  ProtocolOptions protocol;   // `sources`, `stores`, `policy` and `planning_time` are filled in
  std::vector<NodeId> hosts;  // endpoints of host memory: in no group, may be among `memories`
  Time put_time = milliseconds(10);
  Time get_time = milliseconds(10);
};

// The setup's memories keep no copies. Blocks that a store host receives are told with the number
// of the host's memory, if it is one of `memories`, else not at all; as a source it is then
// invalid. Throws Error(BadValue) without hosts, and where a space has fewer blocks than there are
// hosts.
[[nodiscard]] std::unique_ptr<WeightService> make_store_service(const Router& router,
                                                                ServiceSetup setup,
                                                                const StoreOptions& options);

// `ucx`: each receiver reads from the trainers that hold the version, in a star; nobody relays, no
// edge has an alternate. Connections take `connect_time` before bytes move, in place of planning.
// Otherwise it is the protocol.
[[nodiscard]] std::unique_ptr<WeightService> make_ucx_service(const Router& router,
                                                              ServiceSetup setup,
                                                              ProtocolOptions options,
                                                              Time connect_time);

}  // namespace holdfast::sim
