// The online baseline with joins and deaths: GreedyPolicy's rules (core/plan/greedy.hpp), which are
// what the TensorHub paper describes of its reads, for a set of workers that changes.
//
// Assumed
//   - A reference server answers each request for the next piece (64 blocks): the nearest source
//     that is usable, then the least loaded, then the lowest id. Request and answer take the
//     latency of the way to it and back; while a fault stops it, or no way leads there, requests
//     wait.
//   - Usable for a piece is a live, not hidden worker that holds it, has received it, or was given
//   it
//     before the reader and passes blocks on as they arrive.
//   - A reader whose source is lost, which it notices after the network's detection time, asks
//   again
//     for the rest of the piece; what it has it keeps. Who finds no source waits until one is
//     there.
//   - Who is being read from drains first: an in-place fetch or an unpublish waits for its readers.
//   - Holders that publish a version after the first fetch of it do not serve it.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "core/plan/path_chooser.hpp"
#include "core/plan/plan_space.hpp"
#include "sim/control_ways.hpp"
#include "sim/direct_service.hpp"

namespace holdfast::sim {

struct GreedyOptions {
  DirectOptions direct;
  std::optional<std::uint32_t> reader_cap;  // of a source; nothing: as many as come
  NodeId server_at;  // an endpoint of its host; invalid: the first member of the first group
};

class GreedyService final : public DirectService {
 public:
  GreedyService(const Router& router, ServiceSetup setup, const GreedyOptions& options);
  ~GreedyService() override;

 private:
  struct Session;
  struct Request {
    StripeId stripe;
    WorkerId source;     // invalid: none yet
    bool again = false;  // its source was lost
  };

  void fetch_begins(GroupId group) override;
  void fetch_given_up(GroupId group) override;
  void group_started(GroupId group) override;
  void worker_stopped(WorkerId worker) override;
  [[nodiscard]] bool is_read(GroupId group) const override;
  void cut_readers(GroupId group) override;
  void assigned_done(DirectTransfer& transfer, WorkerId reader) override;
  void source_lost(DirectTransfer& transfer, WorkerId reader, StripeId stripe,
                   std::uint32_t first_missing, WorkerId lost) override;

  Session& session(const Version& version, SpaceId space);
  Session* session_of(const DirectTransfer& transfer);
  void take_out(WorkerId worker);
  void ask(WorkerId reader);
  void look_again(WorkerId reader);
  void serve_waiting();
  bool decide(WorkerId reader);
  bool decide_for(Session& session, WorkerId reader, StripeId stripe);
  void give(Session& session, WorkerId reader, StripeId stripe, WorkerId source, bool has_all);
  void close_request(WorkerId reader);
  [[nodiscard]] bool reachable(WorkerId worker) const;
  [[nodiscard]] bool usable(const Session& session, StripeId stripe, WorkerId source) const;

  std::optional<std::uint32_t> cap_;
  ControlWays ways_;
  std::map<Version, std::unique_ptr<Session>> sessions_;
  std::vector<std::optional<Request>> open_;  // by worker
  std::vector<std::uint32_t> readers_;        // by worker: open requests that it serves
  std::vector<std::uint64_t> life_;           // by worker: rises when what it asked is void
  std::deque<WorkerId> waiting_;              // found no source, since longest first
};

}  // namespace holdfast::sim
