#include "core/storm/story.hpp"

#include <fmt/format.h>

#include <cstring>

namespace holdfast::storm {

void Story::say(const Stage& stage, const std::string& what) {
  lines_.push_back(fmt::format("{:12.6f} s  {}", stage.now().seconds(), what));
}

void Story::started(const Stage& stage, WorkerId worker) {
  say(stage, fmt::format("worker {} starts", worker.value()));
}
void Story::died(const Stage& stage, WorkerId worker) {
  say(stage, fmt::format("worker {} dies", worker.value()));
}
void Story::coordinator_started(const Stage& stage) {
  say(stage, "a coordinator starts");
}
void Story::coordinator_died(const Stage& stage) {
  say(stage, "the coordinator dies");
}
void Story::broke(const Stage& stage, const Fault& /*fault*/, const std::string& what) {
  say(stage, "fault: " + what);
}

void Story::call_made(const Stage& stage, const CallSight& call) {
  say(stage, fmt::format("worker {} asks ({}): {}, until {:.6f} s", call.worker.value(), call.id,
                         describe(*call.call), call.deadline.seconds()));
}

void Story::call_ended(const Stage& stage, const CallSight& call, const CallResult& result) {
  say(stage,
      fmt::format("worker {} is told ({}): {}{}", call.worker.value(), call.id, to_string(result),
                  result.version == Version{} ? "" : " " + to_string(result.version)));
}

void Story::wrote(const Stage& stage, WorkerId worker, SlotNumber slot, const Content* content) {
  say(stage,
      fmt::format("worker {} writes {} into buffer {}", worker.value(),
                  content == nullptr ? std::string("anything")
                                     : fmt::format("{}{}", to_string(content->version),
                                                   content->variant == 0 ? "" : " (other bytes)"),
                  slot));
}

void Story::before_agent(const Stage& stage, const AgentSight& sight) {
  static constexpr const char* kQuiet[] = {"Time", "Transfers", "Acknowledgement", "Call"};
  for (const char* quiet : kQuiet) {
    if (std::strcmp(sight.event, quiet) == 0) return;
  }
  say(stage, fmt::format("worker {} gets {}", sight.worker.value(), sight.event));
}
void Story::after_agent(const Stage& /*stage*/, const AgentSight& /*sight*/) {}

void Story::after_coordinator(const Stage& stage, const CoordinatorSight& sight) {
  if (std::strcmp(sight.event, "Heartbeat") != 0 && std::strcmp(sight.event, "Time") != 0) {
    say(stage, sight.worker.valid() ? fmt::format("the coordinator gets {} from worker {}",
                                                  sight.event, sight.worker.value())
                                    : fmt::format("the coordinator gets {}", sight.event));
  }
  for (const CoordinatorCommand& command : sight.commands) {
    if (const auto* plan = std::get_if<MakePlan>(&command)) {
      say(stage, fmt::format("the coordinator wants plan {:x}", plan->id));
    } else if (const auto* repair = std::get_if<MakeRepair>(&command)) {
      say(stage,
          fmt::format("the coordinator wants repair {} of plan {:x}", repair->request, repair->id));
    } else if (const auto* join = std::get_if<MakeJoin>(&command)) {
      say(stage,
          fmt::format("the coordinator wants join {} of plan {:x}", join->request, join->id));
    }
  }
}

namespace {

std::string fate_of(const Fate& fate) {
  if (fate.cut) return "cut off: ";
  if (fate.copies == 0) return "lost: ";
  return fmt::format("{}{}", fate.late ? "late: " : "", fate.copies > 1 ? "twice: " : "");
}

}  // namespace

void Story::sent(const Stage& stage, WorkerId worker, const ToCoordinator& frame,
                 const Fate& fate) {
  const std::string head = fmt::format("{}worker {} ->", fate_of(fate), worker.value());
  if (const auto* hello = std::get_if<Hello>(&frame)) {
    return say(stage, fmt::format("{} Hello (incarnation {}, epoch {})", head, hello->incarnation,
                                  hello->report->epoch));
  }
  const auto& inner = std::get<WorkerFrame>(frame);
  if (!inner.payload) return;
  say(stage, fmt::format("{} [{}] {}", head, inner.sequence, describe(*inner.payload)));
}

void Story::sent(const Stage& stage, WorkerId worker, const ToWorker& frame, const Fate& fate) {
  const std::string head = fmt::format("{}-> worker {}:", fate_of(fate), worker.value());
  if (const auto* welcome = std::get_if<Welcome>(&frame)) {
    return say(stage, fmt::format("{} Welcome (epoch {}, generation {})", head, welcome->epoch,
                                  welcome->generation));
  }
  if (const auto* fenced = std::get_if<FencedOff>(&frame)) {
    return say(stage, fmt::format("{} incarnation {} is fenced off", head, fenced->incarnation));
  }
  if (std::holds_alternative<UnknownSession>(frame)) {
    return say(stage, head + " unknown session");
  }
  const auto& inner = std::get<CoordinatorFrame>(frame);
  if (!inner.payload) return;
  say(stage, fmt::format("{} [{}] {}", head, inner.sequence, describe(*inner.payload)));
}

void Story::read(const Stage& stage, const ReadSight& sight) {
  static constexpr const char* kDoes[] = {"asks worker {} for {} bytes (read {:x})",
                                          "is served by worker {}: {} bytes (read {:x})",
                                          "has from worker {} {} bytes (read {:x})", nullptr};
  const char* does = kDoes[static_cast<std::size_t>(sight.kind)];
  if (does == nullptr) return;
  std::uint64_t bytes = 0;
  for (const Piece& piece : sight.pieces) bytes += piece.bytes;
  say(stage, fmt::format("worker {} {}", sight.reader.value(),
                         fmt::format(fmt::runtime(does), sight.source.value(), bytes, sight.id)));
}

void Story::calmed(const Stage& stage) {
  say(stage, "all faults are over");
}
void Story::ended(const Stage& stage) {
  say(stage, "the end");
}

}  // namespace holdfast::storm
