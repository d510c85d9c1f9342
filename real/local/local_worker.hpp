// A worker process of a local run: the agent and its loop over TCP and host memory, with real
// bytes, told by its parent what to ask for.
//
// Parent and child speak in lines of JSON over one socket. Parent to child:
//   {"do": "publish", "call": 1, "lineage": 0, "number": 1, "within": 30}   fills the buffer first
//   {"do": "fetch", "call": 2, "within": 30}                                the latest
//   {"do": "unpublish", "call": 3, "lineage": 0, "number": 1, "within": 30}
//   {"do": "verify", "lineage": 0, "number": 1}
//   {"do": "stop"}
// Child to parent:
//   {"is": "ready"}                          it has a session with the coordinator
//   {"is": "ended", "call": 1, "status": "Ok", "lineage": 0, "number": 1, "words": "..."}
//   {"is": "runs", "lineage": 0, "number": 1} or {"is": "runs"}
//   {"is": "block", "block": 12, "source": 3}
//   {"is": "verified", "wrong": "..."}       without `wrong`: every byte is right
//   {"is": "failed", "words": "..."}
// Destinations are filled with kPoison before a byte of a version comes. What was fetched is
// verified by WeightBytes, which knows nothing of blocks.
#pragma once

#include <memory>
#include <string>

#include "core/catalog/agent.hpp"
#include "core/weights/manifest.hpp"
#include "core/weights/weight_map.hpp"

namespace holdfast::real {

struct LocalWorkerSetup {
  WorkerId worker;
  WorkerCard card;  // without its address
  std::shared_ptr<const ModelSpace> space;
  const Manifest& manifest;  // both outlive the run
  const WeightMap& map;
  const Router& router;
  AgentConfig agent;
  std::string coordinator;  // ControlServer::address
  int parent = -1;          // the socket, owned by the caller
  bool verify = true;       // blocks are digested
};

// Until the parent says stop or is gone. Returns the exit status: 0, or 1 where something failed
// that it could not tell. Throws Error(Unsupported) where the system does not let it begin.
int run_local_worker(const LocalWorkerSetup& setup);

}  // namespace holdfast::real
