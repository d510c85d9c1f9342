#include <algorithm>
#include <array>

#include "core/catalog/coordinator_state.hpp"

namespace holdfast {
namespace {

const char* name_of_phase(std::size_t phase) {
  constexpr std::array kNames = {"Idle",     "Collecting", "Securing",
                                 "Clearing", "Waiting",    "Filling"};
  return kNames[phase];
}

}  // namespace

std::vector<Coordinator::VersionView> Coordinator::versions() const {
  std::vector<VersionView> result;
  for (const auto& [key, version] : state_->versions) {
    VersionView view;
    view.space = key.first;
    view.version = key.second;
    view.root = version.root;
    view.published = version.published;
    view.withdrawn = version.withdrawn;
    view.fetchable = state_->fetchable(version);
    view.retention = version.retention;
    view.safe = version.safe;
    view.reason = version.reason;
    for (const WorkerId worker : version.holders) {
      const State::Holder* holder = state_->holder_of(worker, key);
      (holder->hidden           ? view.hidden
       : holder->verified.all() ? view.holders
                                : view.filling)
          .push_back(worker);
    }
    result.push_back(std::move(view));
  }
  return result;
}

std::vector<Coordinator::GroupView> Coordinator::groups() const {
  std::vector<GroupView> result;
  for (std::uint32_t g = 0; g < state_->groups.size(); ++g) {
    const State::Group& group = state_->groups[g];
    if (!group.known) continue;
    GroupView view;
    view.group = GroupId(g);
    view.generation = group.generation;
    view.open = group.phase != State::Phase::Idle;
    view.fetches = group.last.n + (group.phase == State::Phase::Collecting ? 1 : 0);
    view.phase = name_of_phase(static_cast<std::size_t>(group.phase));
    view.runs = group.runs;
    result.push_back(std::move(view));
  }
  return result;
}

bool Coordinator::alive(WorkerId worker) const {
  return state_->alive(worker);
}
std::size_t Coordinator::grants() const {
  return state_->grants;
}
std::size_t Coordinator::open_transfers() const {
  return state_->transfers.size();
}

}  // namespace holdfast
