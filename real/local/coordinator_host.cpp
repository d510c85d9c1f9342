#include "real/local/coordinator_host.hpp"

#include <algorithm>

#include "real/clock.hpp"

namespace holdfast::real {

PlannerThread::PlannerThread(const Topology& topology, Policy policy, const PlanOptions& options,
                             WakeUp& wake)
    : topology_(topology), policy_(policy), options_(options), wake_(wake), thread_([this] {
        work();
      }) {}

PlannerThread::~PlannerThread() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  asked_.notify_one();
  thread_.join();
}

void PlannerThread::ask(CoordinatorCommand question) {
  {
    const std::lock_guard lock(mutex_);
    questions_.push_back(std::move(question));
  }
  asked_.notify_one();
}

std::vector<CoordinatorEvent> PlannerThread::take() {
  const std::lock_guard lock(mutex_);
  return std::exchange(answers_, {});
}

void PlannerThread::work() {
  const Router router(topology_);
  for (;;) {
    CoordinatorCommand question;
    {
      std::unique_lock lock(mutex_);
      asked_.wait(lock, [this] { return stop_ || !questions_.empty(); });
      if (stop_) return;
      question = std::move(questions_.front());
      questions_.pop_front();
    }
    auto answer = answer_question(router, question, policy_, options_);
    if (!answer) continue;
    {
      const std::lock_guard lock(mutex_);
      answers_.push_back(std::move(*answer));
    }
    wake_.raise();
  }
}

CoordinatorHost::CoordinatorHost(const Topology& topology, std::vector<NodeId> roster,
                                 std::vector<std::shared_ptr<const ModelSpace>> spaces,
                                 const CoordinatorConfig& config, Policy policy,
                                 const PlanOptions& options,
                                 std::function<void(const Plan&)> planned)
    : server_({}),
      router_(topology),
      coordinator_(topology, std::move(roster), std::move(spaces), config),
      planner_(topology, policy, options, server_.wake_up()),
      planned_(std::move(planned)),
      next_(steady_now()) {
  step(CoordinatorTimePassed{});
}

void CoordinatorHost::run_once(Time until) {
  server_.wait(std::min(until, next_));
  std::vector<ControlEvent> events(64);
  for (std::size_t n = server_.poll(events); n != 0; n = server_.poll(events)) {
    for (std::size_t i = 0; i < n; ++i) take(events[i]);
  }
  for (CoordinatorEvent& answer : planner_.take()) step(answer);
  if (next_ <= steady_now()) step(CoordinatorTimePassed{});
}

void CoordinatorHost::take(const ControlEvent& event) {
  switch (event.kind) {
    case ControlEvent::Kind::Connected:
      codecs_.insert_or_assign(event.worker, CatalogCodec(&router_));
      break;
    case ControlEvent::Kind::Message: {
      auto frame = codecs_.at(event.worker)
                       .decode_to_coordinator({reinterpret_cast<const char*>(event.payload.data()),
                                               event.payload.size()},
                                              steady_now());
      if (frame) {
        step(FromWorker{event.worker, std::move(*frame)});
      } else {
        // Whoever sends what makes no sense starts anew.
        server_.disconnect(event.worker);
      }
      break;
    }
    case ControlEvent::Kind::Disconnected:
    case ControlEvent::Kind::Unreachable:
      codecs_.erase(event.worker);
      break;
  }
}

void CoordinatorHost::step(const CoordinatorEvent& event) {
  if (const auto* made = std::get_if<PlanMade>(&event); made != nullptr && made->plan && planned_) {
    planned_(*made->plan);
  }
  commands_.clear();
  next_ = coordinator_.step(event, steady_now(), commands_);
  for (CoordinatorCommand& command : commands_) {
    if (auto* send = std::get_if<SendToWorker>(&command)) {
      const auto codec = codecs_.find(send->worker);
      if (codec == codecs_.end()) continue;  // not connected: the session sends it again
      const std::string bytes = codec->second.encode(send->frame, steady_now());
      server_.send(send->worker, std::as_bytes(std::span(bytes)));
    } else {
      planner_.ask(std::move(command));
    }
  }
}

}  // namespace holdfast::real
