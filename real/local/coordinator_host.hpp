// Runs a Coordinator on real time: frames over a ControlServer, plans in a thread of their own.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "core/catalog/coordinator.hpp"
#include "core/catalog/planning.hpp"
#include "real/control/catalog_codec.hpp"
#include "real/control_channel.hpp"

namespace holdfast::real {

// Answers one question after the other, in its own thread with its own routing tables.
class PlannerThread {
 public:
  // `wake` is raised when an answer is there. The topology must outlive it.
  PlannerThread(const Topology& topology, Policy policy, const PlanOptions& options, WakeUp& wake);
  // Ends after the question under way.
  ~PlannerThread();
  PlannerThread(const PlannerThread&) = delete;
  PlannerThread& operator=(const PlannerThread&) = delete;

  // Precondition: it asks the planner something.
  void ask(CoordinatorCommand question);
  // Answers that have come since the last call.
  [[nodiscard]] std::vector<CoordinatorEvent> take();

 private:
  void work();

  const Topology& topology_;
  Policy policy_;
  PlanOptions options_;
  WakeUp& wake_;
  std::mutex mutex_;
  std::condition_variable asked_;
  std::deque<CoordinatorCommand> questions_;
  std::vector<CoordinatorEvent> answers_;
  bool stop_ = false;
  std::thread thread_;
};

class CoordinatorHost {
 public:
  // `planned` hears of each plan. The topology must outlive the host.
  CoordinatorHost(const Topology& topology, std::vector<NodeId> roster,
                  std::vector<std::shared_ptr<const ModelSpace>> spaces,
                  const CoordinatorConfig& config, Policy policy, const PlanOptions& options,
                  std::function<void(const Plan&)> planned);

  [[nodiscard]] const std::string& address() const { return server_.address(); }
  [[nodiscard]] WakeUp& wake_up() { return server_.wake_up(); }
  [[nodiscard]] const Coordinator& coordinator() const { return coordinator_; }
  // Takes in what is there; waits for more, at most until `until`.
  void run_once(Time until);

 private:
  void step(const CoordinatorEvent& event);
  void take(const ControlEvent& event);

  ControlServer server_;
  Router router_;
  Coordinator coordinator_;
  PlannerThread planner_;
  std::function<void(const Plan&)> planned_;
  std::map<WorkerId, CatalogCodec> codecs_;  // one a connection
  Time next_;
  std::vector<CoordinatorCommand> commands_;
};

}  // namespace holdfast::real
