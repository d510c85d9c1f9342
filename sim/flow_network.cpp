#include "sim/flow_network.hpp"

#include <simgrid/s4u.hpp>  // first: the others lean on it

#include <simgrid/version.h>
#include <simgrid/kernel/Timer.hpp>
#include <simgrid/kernel/resource/Model.hpp>
#include <simgrid/kernel/routing/NetZoneImpl.hpp>
#include <simgrid/simix.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <unordered_map>

#include "core/error.hpp"
#include "sim/fair_flows.hpp"

namespace kernel = simgrid::kernel;
namespace s4u = simgrid::s4u;

#define HOLDFAST_SIMGRID_3_32 (SIMGRID_VERSION_MAJOR == 3 && SIMGRID_VERSION_MINOR == 32)

#if HOLDFAST_SIMGRID_3_32
namespace simgrid::kernel::resource {
// The head of SimGrid 3.32's network model, whose header is not installed: enough of its virtual
// functions, in its order, to call `communicate`. The calls before it are never made.
class NetworkModel : public Model {
 public:
  using Model::Model;
  virtual void* create_link(const std::string& name, const std::vector<double>& bandwidths) = 0;
  virtual void* create_wifi_link(const std::string& name,
                                 const std::vector<double>& bandwidths) = 0;
  // `rate` below zero: without bound.
  virtual Action* communicate(s4u::Host* from, s4u::Host* to, double bytes, double rate) = 0;
};
}  // namespace simgrid::kernel::resource
#endif

namespace holdfast::sim {
namespace {

// SimGrid asks for the route when a flow starts: whatever its two hosts are, the answer is the list
// of links that was set right before. So two hosts do for any platform.
class RouteZone final : public kernel::routing::NetZoneImpl {
 public:
  explicit RouteZone(const std::string& name) : NetZoneImpl(name) {}
  void set_route(std::vector<kernel::resource::StandardLinkImpl*>& links) { links_.swap(links); }

 private:
  void get_local_route(const kernel::routing::NetPoint* /*from*/,
                       const kernel::routing::NetPoint* /*to*/, kernel::routing::Route* into,
                       double* /*latency*/) override {
    into->link_list_.insert(into->link_list_.end(), links_.begin(), links_.end());
  }
  std::vector<kernel::resource::StandardLinkImpl*> links_;
};

void configure() {
  xbt_log_control_set("root.thresh:warning");
  s4u::Engine::set_config("network/model:CM02");
  s4u::Engine::set_config("network/crosstraffic:0");
  s4u::Engine::set_config("network/TCP-gamma:1e30");
  s4u::Engine::set_config("surf/precision:1e-12");
  s4u::Engine::set_config("maxmin/precision:1e-12");
  s4u::Engine::set_config("contexts/factory:raw");
}

// Never deleted: SimGrid ends with the process.
s4u::Engine* make_engine() {
  static std::array<char, 9> name{"holdfast"};
  int count = 1;
  std::array<char*, 2> arguments{name.data(), nullptr};
  return new s4u::Engine(&count, arguments.data());
}

}  // namespace

FlowDriver best_flow_driver() {
#if HOLDFAST_SIMGRID_3_32
  return FlowDriver::KernelAction;
#else
  return FlowDriver::DirectComm;
#endif
}

struct FlowNetwork::Impl {
  static constexpr double kNoCap = -1.0;
  struct Flow {
    kernel::resource::Action* action = nullptr;
    s4u::CommPtr comm;  // DirectComm
    std::uint64_t bytes = 0;
    double cap = kNoCap;
  };
  struct Retired {
    s4u::CommPtr comm;
    double since = 0;
  };

  FlowDriver driver;
  std::optional<FairFlows> own;  // MaxMin; then everything of SimGrid is unused
  s4u::Engine* engine = nullptr;
  RouteZone* zone = nullptr;  // owned by SimGrid
  s4u::Host* from = nullptr;
  s4u::Host* to = nullptr;
  kernel::resource::Model* model = nullptr;
  std::vector<kernel::resource::StandardLinkImpl*> links;
  std::vector<s4u::Link*> handles;                         // the same links
  std::vector<kernel::resource::StandardLinkImpl*> route;  // scratch
  std::function<void(std::span<const FlowId>)> handler;

  std::vector<Flow> flows;  // by id
  std::unordered_map<const void*, FlowId> by_action;
  std::vector<FlowId> ended;
  std::vector<FlowId> ended_now;  // scratch
  std::vector<kernel::resource::Action*> dead;
  std::vector<Retired> retired;

  kernel::timer::Timer* timer = nullptr;
  Time wake = Time::never();
  Time reached;  // at least: a timer's own time, free of rounding
  bool capacities_change = false;
  bool instant_due = false;
  bool stopped = false;
  s4u::ActorPtr main;
  std::vector<s4u::ActorPtr> actors;

  void build(std::span<const Rate> capacities);
  void ended_by_simgrid(const void* action);
  void schedule_instant();
  void instant();
  void start(FlowId id, double cap);
  void retire(Flow& flow) {
    retired.push_back({std::move(flow.comm), s4u::Engine::get_clock()});
    flow.comm = nullptr;
  }
  void clean_up();
};

void FlowNetwork::Impl::build(std::span<const Rate> capacities) {
  engine = make_engine();
  configure();
  zone = new RouteZone("flows");
  zone->set_parent(nullptr);
  from = zone->create_host("from", {1e9});
  to = zone->create_host("to", {1e9});
  links.reserve(capacities.size());
  handles.reserve(capacities.size());
  for (std::size_t i = 0; i < capacities.size(); ++i) {
    s4u::Link* link = zone->create_link(std::to_string(i),
                                        {static_cast<double>(capacities[i].bytes_per_second())});
    link->set_latency(0.0);
    link->seal();
    links.push_back(link->get_impl());
    handles.push_back(link);
  }
  zone->seal();
  for (kernel::resource::Model* candidate : engine->get_all_models()) {
    if (candidate->get_name() == "Network_CM02") model = candidate;
  }
  if (model == nullptr) {
    throw Error(ErrorCode::Unsupported,
                "this SimGrid has no network model named Network_CM02; use version 3.32");
  }
  s4u::Link::on_communication_state_change_cb(
      [this](kernel::resource::NetworkAction& action, kernel::resource::Action::State) {
        ended_by_simgrid(&action);
      });
}

// A flow's action changed its state. Runs in the middle of SimGrid's update: only notes it.
void FlowNetwork::Impl::ended_by_simgrid(const void* action) {
  const auto at = by_action.find(action);
  if (at == by_action.end()) return;
  Flow& flow = flows[at->second];
  const auto state = flow.action->get_state();
  if (state != kernel::resource::Action::State::FINISHED &&
      state != kernel::resource::Action::State::FAILED) {
    return;
  }
  ended.push_back(at->second);
  if (driver == FlowDriver::KernelAction) {
    dead.push_back(flow.action);
  } else {
    retire(flow);
  }
  flow.action = nullptr;
  by_action.erase(at);
  schedule_instant();
}

void FlowNetwork::Impl::schedule_instant() {
  if (instant_due) return;
  instant_due = true;
  kernel::timer::Timer::set(s4u::Engine::get_clock(), [this] {
    instant_due = false;
    instant();
  });
}

// Frees what ended: before rates are shared anew, so that it no longer counts.
void FlowNetwork::Impl::clean_up() {
  for (kernel::resource::Action* action : dead) action->unref();
  dead.clear();
  // SimGrid still works on a comm in the instant in which it ends.
  const double clock = s4u::Engine::get_clock();
  std::erase_if(retired, [clock](const Retired& comm) { return comm.since < clock; });
}

void FlowNetwork::Impl::instant() {
  clean_up();
  if (stopped) return;
  ended_now.clear();
  ended_now.swap(ended);
  handler(ended_now);
}

void FlowNetwork::Impl::start(FlowId id, double cap) {
  zone->set_route(route);
  Flow& flow = flows[id];
  if (driver == FlowDriver::KernelAction) {
#if HOLDFAST_SIMGRID_3_32
    flow.action = static_cast<kernel::resource::NetworkModel*>(model)->communicate(
        from, to, static_cast<double>(flow.bytes), cap);
#endif
  } else {
    flow.comm = s4u::Comm::sendto_init(from, to);
    flow.comm->set_payload_size(flow.bytes);
    flow.comm->start();
    flow.action = &model->get_started_action_set()->back();
    if (cap > 0) flow.action->set_bound(cap);
  }
  flow.cap = cap;
  if (capacities_change) flow.action->set_bound(cap);
  by_action.emplace(flow.action, id);
}

FlowNetwork::FlowNetwork(std::span<const Rate> capacities, FlowDriver driver, const FlowStep& step)
    : impl_(std::make_unique<Impl>()) {
  if (driver == FlowDriver::KernelAction && best_flow_driver() != driver) {
    throw Error(ErrorCode::Unsupported, "flows as kernel actions need SimGrid 3.32");
  }
  impl_->driver = driver;
  if (driver == FlowDriver::MaxMin) {
    impl_->own.emplace(capacities, step.step, step.exact_rates);
  } else {
    impl_->build(capacities);
  }
}

// SimGrid's engine is left alone: it lives as long as the process.
FlowNetwork::~FlowNetwork() = default;

void FlowNetwork::set_handler(std::function<void(std::span<const FlowId>)> handler) {
  impl_->handler = std::move(handler);
}

Time FlowNetwork::now() const {
  if (impl_->own) return impl_->own->now();
  return std::max(impl_->reached, time_from_seconds(s4u::Engine::get_clock()));
}

void FlowNetwork::start(FlowId id, std::span<const std::uint32_t> links, Bytes bytes,
                        std::optional<Rate> cap) {
  Impl& impl = *impl_;
  if (impl.own) {
    impl.own->start(id, links, bytes, cap);
    return;
  }
  if (impl.flows.size() <= id) impl.flows.resize(std::max<std::size_t>(id + 1, 2 * id));
  impl.flows[id].bytes = bytes.count();
  impl.route.clear();
  for (const std::uint32_t link : links) impl.route.push_back(impl.links[link]);
  const double rate = cap ? static_cast<double>(cap->bytes_per_second()) : Impl::kNoCap;
  kernel::actor::simcall_answered([&] { impl.start(id, rate); });
}

Bytes FlowNetwork::cancel(FlowId id) {
  Impl& impl = *impl_;
  if (impl.own) return impl.own->cancel(id);
  Impl::Flow& flow = impl.flows[id];
  if (flow.action == nullptr) {  // it ended in this instant
    std::erase(impl.ended, id);
    return Bytes(flow.bytes);
  }
  double left = 0;
  kernel::actor::simcall_answered([&] {
    left = flow.action->get_remains();
    impl.by_action.erase(flow.action);
    if (impl.driver == FlowDriver::KernelAction) {
      flow.action->cancel();
      impl.dead.push_back(flow.action);
    } else {
      flow.comm->cancel();
      impl.retire(flow);
    }
    flow.action = nullptr;
  });
  impl.schedule_instant();
  const auto remaining = static_cast<std::uint64_t>(std::llround(std::max(left, 0.0)));
  return Bytes(flow.bytes - std::min(flow.bytes, remaining));
}

void FlowNetwork::set_capacity(std::uint32_t link, Rate capacity) {
  if (impl_->own) {
    impl_->own->set_capacity(link, capacity);
    return;
  }
  Impl& impl = *impl_;
  impl.handles[link]->set_bandwidth(static_cast<double>(capacity.bytes_per_second()));
  if (!impl.capacities_change) {
    // SimGrid bounds a flow by what its narrowest link has when it starts.
    impl.capacities_change = true;
    kernel::actor::simcall_answered([&impl] {
      for (Impl::Flow& flow : impl.flows) {
        if (flow.action != nullptr) flow.action->set_bound(flow.cap);
      }
    });
  }
  impl.schedule_instant();
}

std::size_t FlowNetwork::live() const {
  return impl_->own ? impl_->own->live() : impl_->by_action.size();
}

Time FlowNetwork::step_used() const {
  return impl_->own ? impl_->own->step_used() : Time();
}

void FlowNetwork::wake_at(Time at) {
  Impl& impl = *impl_;
  if (impl.own) {
    impl.own->wake_at(at);
    return;
  }
  if (impl.wake == at) return;
  if (impl.timer != nullptr) impl.timer->remove();
  impl.timer = nullptr;
  impl.wake = at;
  if (at == Time::never()) return;
  // Sums of its steps bring SimGrid's clock past this very instant by a rounding now and then; a
  // timer that lies behind it ends the process.
  const double date = std::max(at.seconds(), s4u::Engine::get_clock());
  impl.timer = kernel::timer::Timer::set(date, [&impl] {
    impl.timer = nullptr;
    impl.reached = std::max(impl.reached, impl.wake);
    impl.wake = Time::never();
    impl.instant();
  });
}

void FlowNetwork::run() {
  Impl& impl = *impl_;
  if (impl.own) {
    impl.own->run(impl.handler);
    return;
  }
  // An actor that sleeps keeps SimGrid going while flows run and no timer is set.
  impl.main = s4u::Actor::create("main", impl.from, [&impl] {
    impl.schedule_instant();
    if (!impl.stopped) s4u::this_actor::suspend();
  });
  impl.engine->run();
}

void FlowNetwork::stop() {
  wake_at(Time::never());
  if (impl_->own) impl_->own->stop();
  impl_->stopped = true;
  if (impl_->main) impl_->main->resume();
}

void FlowNetwork::run_actors(std::span<const std::function<void()>> bodies) {
  if (impl_->own) {
    throw Error(ErrorCode::Unsupported, "actors need SimGrid: choose another driver of flows");
  }
  for (const std::function<void()>& body : bodies) {
    impl_->actors.push_back(s4u::Actor::create("worker", impl_->from, body));
  }
  impl_->engine->run();
}

void FlowNetwork::block() {
  s4u::this_actor::suspend();
}
void FlowNetwork::unblock(std::size_t actor) {
  impl_->actors[actor]->resume();
}
void FlowNetwork::kill(std::size_t actor) {
  impl_->actors[actor]->kill();
}

}  // namespace holdfast::sim
