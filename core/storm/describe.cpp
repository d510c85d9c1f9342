// Calls, messages and worlds in words.
#include <fmt/format.h>

#include "core/storm/story.hpp"

namespace holdfast::storm {
namespace {

template <class... Cases>
struct Overloaded : Cases... {
  using Cases::operator()...;
};
template <class... Cases>
Overloaded(Cases...) -> Overloaded<Cases...>;

std::string of_version(const char* what, const Version& version) {
  return fmt::format("{} {}", what, to_string(version));
}

std::string of_set(const BlockSet& set) {
  return fmt::format("{} of {} blocks", set.count(), set.size());
}

std::string list_of(const std::vector<WorkerId>& workers) {
  std::string text;
  for (const WorkerId worker : workers) {
    text += fmt::format("{}{}", text.empty() ? "" : ", ", worker.value());
  }
  return text.empty() ? "nobody" : text;
}

std::string list_of(const std::vector<ReadGrant>& grants) {
  std::string text;
  for (const ReadGrant& grant : grants) {
    text += fmt::format("{}worker {} ({}) of {}", text.empty() ? "" : ", ", grant.reader.value(),
                        grant.incarnation, to_string(grant.version));
  }
  return text;
}

std::string list_of(const std::vector<LiveEdge>& edges) {
  std::string text;
  for (const LiveEdge& edge : edges) {
    text +=
        fmt::format("{}stripe {}: {} from {} at block {}", text.empty() ? "" : "; ",
                    edge.stripe.value(), edge.child.value(), edge.parent.value(), edge.from_block);
  }
  return text;
}

std::string list_of(const std::vector<SourceAccess>& sources) {
  std::vector<WorkerId> workers;
  for (const SourceAccess& source : sources) workers.push_back(source.source);
  return list_of(workers);
}

std::string words_of(const FetchCall& call) {
  return fmt::format("fetch {}, {}{}",
                     call.version ? to_string(*call.version) : std::string("the latest"),
                     call.destination == Destination::InPlace ? "in place" : "shadow",
                     call.on_newer == OnNewer::Restart ? ", restart" : "");
}

std::string words_of(const Decision& decision) {
  return fmt::format("fetch {} of generation {} ({}): {} {}", decision.n, decision.generation,
                     words_of(decision.call), to_string(decision.result),
                     to_string(decision.result.version));
}

const char* words_of(ClearReason reason) {
  switch (reason) {
    case ClearReason::Fetch:
      return "for a fetch";
    case ClearReason::Unpublish:
      return "for its owner";
    case ClearReason::Leave:
      return "for a leave";
    case ClearReason::Forget:
      return "to forget it";
  }
  return "";
}

}  // namespace

std::string describe(const Call& call) {
  return std::visit(
      Overloaded{
          [](const PublishCall& c) { return of_version("publish", c.version); },
          [](const UnpublishCall& c) {
            return of_version(
                c.on_deadline == OnDeadline::Revoke ? "unpublish (revoke)" : "unpublish (fail)",
                c.version);
          },
          [](const FetchCall& c) { return words_of(c); },
          [](const CancelCall& c) { return fmt::format("cancel call {}", c.fetch); },
          [](const WithdrawCall& c) { return of_version("withdraw", c.version); },
          [](const RetainCall& c) {
            return fmt::format("retain {} in {} {}s", to_string(c.version), c.copies,
                               to_string(c.level));
          },
          [](const ReleaseCall& c) { return of_version("release", c.version); },
          [](const InstalledCall& c) {
            return fmt::format("wait until {} groups run {}", c.groups, to_string(c.version));
          },
          [](const LineageCall&) { return std::string("a new lineage"); },
          [](const LeaveCall&) { return std::string("leave"); },
      },
      call);
}

std::string describe(const WorkerMessage& message) {
  const std::string more = std::visit(
      Overloaded{
          [](const Publish& m) { return to_string(m.version); },
          [](const AskUnpublish& m) { return to_string(m.version); },
          [](const AskFetch& m) {
            return fmt::format("{} of generation {}: {}", m.n, m.generation, words_of(m.call));
          },
          [](const Granted& m) {
            return fmt::format("plan {:x}: {}; refused {}", m.plan, list_of(m.readers),
                               list_of(m.refused));
          },
          [](const GrantsGone& m) { return list_of(m.grants); },
          [](const Progress& m) {
            return fmt::format("{}: {}", to_string(m.version), of_set(m.verified));
          },
          [](const Filled& m) { return fmt::format("plan {:x}", m.plan); },
          [](const TransferStopped& m) {
            return fmt::format("plan {:x}: {}", m.plan, of_set(m.verified));
          },
          [](const Cleared& m) { return to_string(m.version); },
          [](const ClearFailed& m) {
            return fmt::format("{}: read by {}", to_string(m.version), list_of(m.readers));
          },
          [](const Switched& m) {
            return fmt::format("plan {:x}, stripe {}: from {} to {}", m.plan, m.stripe.value(),
                               m.from.value(), m.to.value());
          },
          [](const ParentWanted& m) {
            return fmt::format("plan {:x}, stripe {} from block {}: lost {} ({})", m.plan,
                               m.stripe.value(), m.first_missing, m.lost.value(),
                               to_string(m.cause));
          },
          [](const SourceIsSlow& m) {
            return fmt::format("plan {:x}: worker {}", m.plan, m.source.value());
          },
          [](const auto&) { return std::string(); },
      },
      message);
  return more.empty() ? name_of(message) : fmt::format("{} {}", name_of(message), more);
}

std::string describe(const CoordinatorMessage& message) {
  const std::string more = std::visit(
      Overloaded{
          [](const Answer& m) {
            return fmt::format("to call {}: {}", m.call, to_string(m.result));
          },
          [](const Decided& m) { return words_of(m.decision); },
          [](const FetchDone& m) {
            return fmt::format("{}: {} {}", m.n, to_string(m.result), to_string(m.result.version));
          },
          [](const GenerationIs& m) { return fmt::format("{}", m.generation); },
          [](const Clear& m) {
            return fmt::format("{} {} until {}", to_string(m.version), words_of(m.reason),
                               to_string(m.deadline));
          },
          [](const Unhide& m) { return to_string(m.version); },
          [](const GrantReads& m) {
            std::string text =
                fmt::format("plan {:x} of {}:", m.transfer->id, to_string(m.transfer->version));
            for (const GrantedReader& reader : m.readers) {
              text += fmt::format(" {} ({})", reader.reader.value(), reader.incarnation);
              if (!reader.edges.empty()) text += " [" + list_of(reader.edges) + "]";
            }
            return text;
          },
          [](const EndReads& m) { return list_of(m.grants); },
          [](const Begin& m) {
            return fmt::format("plan {:x} of {} from {}{}{}", m.transfer->id,
                               to_string(m.transfer->version), list_of(m.sources),
                               m.edges.empty() ? "" : "; ", list_of(m.edges));
          },
          [](const Change& m) {
            return fmt::format("plan {:x}: {} drops; {}", m.plan, m.drops.size(), list_of(m.edges));
          },
          [](const Stop& m) { return fmt::format("plan {:x}", m.plan); },
          [](const Tell& m) { return to_string(m.version); },
          [](const Note& m) {
            return fmt::format("{}{}, keep {}", to_string(m.version),
                               m.withdrawn ? " withdrawn" : "", m.retention.copies);
          },
          [](const LeaveNow&) { return std::string(); },
      },
      message);
  return more.empty() ? name_of(message) : fmt::format("{} {}", name_of(message), more);
}

std::vector<std::string> describe(const World& world) {
  std::vector<std::string> lines;
  for (std::size_t s = 0; s < world.spaces.size(); ++s) {
    lines.push_back(fmt::format("job {}: {} blocks of up to {}", s, world.spaces[s]->blocks(),
                                to_string(world.spaces[s]->block_size())));
  }
  for (std::size_t g = 0; g < world.groups.size(); ++g) {
    const WorldGroup& group = world.groups[g];
    const WorkerCard& card = world.cards[group.members[0].index()];
    lines.push_back(fmt::format("group {}: {}, job {}, {}, {}, {} buffer{}: workers {}", g,
                                group.trainer ? "trainer" : "rollout", group.space.value(),
                                world.spaces[group.space.index()]->layout_name(group.layout),
                                card.reliable ? "reliable" : "spot", card.slots,
                                card.slots == 1 ? "" : "s", list_of(group.members)));
  }
  for (const WorkerId worker : world.memories) {
    const WorkerCard& card = world.cards[worker.index()];
    lines.push_back(fmt::format("worker {}: host memory, job {}, {}, {}", worker.value(),
                                card.space.value(), card.reliable ? "reliable" : "spot",
                                to_string(card.budget)));
  }
  for (std::size_t w = 0; w < world.cards.size(); ++w) {
    lines.push_back(
        fmt::format("worker {} is {}", w, world.topology->node(world.cards[w].node).name));
  }
  lines.push_back(
      fmt::format("policy {}; detection {}, rebuild {}, planning up to {}, session window {}",
                  to_string(world.policy), to_string(world.coordinator.detection),
                  to_string(world.coordinator.rebuild_time), to_string(world.times.most_planning),
                  world.coordinator.session.window));
  return lines;
}

}  // namespace holdfast::storm
