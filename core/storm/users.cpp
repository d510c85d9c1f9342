#include "core/storm/users.hpp"

#include <algorithm>

namespace holdfast::storm {

Users::Users(const Stage& stage, Desk& desk)
    : stage_(stage), desk_(desk), waiting_(stage.world().groups.size()) {}

void Users::start(const Task& task) {
  if (task.worker.valid()) return perform(task, task.worker);
  const WorldGroup& group = stage_.world().groups[task.group.index()];
  const bool fetches = task.kind == TaskKind::Fetch;
  if (fetches && busy(group)) return;
  for (std::size_t rank = 0; rank < group.members.size(); ++rank) {
    if (fetches) ++waiting_[task.group.index()];
    const Time at = stage_.now() + task.apart * static_cast<std::int64_t>(rank);
    desk_.later(at, task, group.members[rank]);
  }
}

void Users::perform(const Task& task, WorkerId worker) {
  if (task.kind == TaskKind::Fetch) --waiting_[task.group.index()];
  if (stage_.agent(worker) == nullptr) return;
  switch (task.kind) {
    case TaskKind::Publish:
      return publish(task, worker);
    case TaskKind::Unpublish:
      return unpublish(task, worker, false);
    case TaskKind::Fetch:
      return fetch(task, worker);
    default:
      return single(task, worker);
  }
}

CallId Users::make(WorkerId worker, const Call& call, Time patience) {
  const CallId id = next_++;
  const Time deadline = stage_.now() + patience;
  OpenCall open;
  open.worker = worker;
  open.call = call;
  open.deadline = deadline;
  open_.emplace(id, open);
  desk_.call(worker, id, call, deadline);
  return id;
}

bool Users::odd(const Task& task, WorkerId worker) const {
  return task.odd_member < 0xffffffffU &&
         stage_.world().groups[task.group.index()].members[task.odd_member] == worker;
}

// A buffer that holds something is first taken back.
void Users::publish(const Task& task, WorkerId worker) {
  if (odd(task, worker) || unpublishing(worker)) return;
  const auto holdings = stage_.agent(worker)->holdings();
  if (holdings.empty()) return;
  if (holdings[0]) {
    // The same version again is one more replica, if it is the same.
    if (holdings[0]->version == task.version) {
      make(worker, PublishCall{task.version}, task.patience);
      return;
    }
    return unpublish(task, worker, true);
  }
  const Content content{stage_.world().cards[worker.index()].space, task.version,
                        variant_for(task, worker)};
  const bool in_use = std::any_of(open_.begin(), open_.end(), [&](const auto& entry) {
    const OpenCall& open = entry.second;
    return open.worker == worker && (std::holds_alternative<PublishCall>(open.call) ||
                                     std::holds_alternative<FetchCall>(open.call));
  });
  if (!in_use) desk_.write(worker, 0, &content);
  make(worker, PublishCall{task.version}, task.patience);
}

// All ranks of a trainer publish one content under a number: the guarantee assumes it, since each
// shard has bytes of its own and nobody could tell a mixture. So a member writes what another one
// of its group has there; only where none has, what the task says. (Other groups may differ.)
std::uint32_t Users::variant_for(const Task& task, WorkerId worker) const {
  for (const WorkerId member : stage_.world().groups[task.group.index()].members) {
    if (member == worker) continue;
    if (const auto variant = variant_at(member, task.version)) return *variant;
  }
  return task.variant;
}

// Of the version as it lies in the worker's memory, all of it or the blocks that are there.
std::optional<std::uint32_t> Users::variant_at(WorkerId worker, const Version& version) const {
  const Agent* agent = stage_.agent(worker);
  if (agent == nullptr) return std::nullopt;
  const World& world = stage_.world();
  const WorkerCard& card = world.cards[worker.index()];
  const ModelSpace& space = *world.spaces[card.space.index()];
  const auto holdings = agent->holdings();
  for (SlotNumber slot = 0; slot < holdings.size(); ++slot) {
    const auto& holding = holdings[slot];
    // What is being published is not listed before its digests are there.
    const bool written = !holding && slot == 0 && publishing(worker, version);
    if (!written && (!holding || holding->version != version || holding->verified.none())) continue;
    for (const std::uint32_t variant : {0U, 1U}) {
      std::size_t at = 0;
      bool same = true;
      for (std::uint32_t number = 0; number < space.blocks(card.shard); ++number) {
        const BlockId block = space.block(card.shard, number);
        const auto size = static_cast<std::size_t>(space.block_bytes()[block.index()].count());
        const auto bytes = stage_.memory(worker, slot).subspan(at, size);
        at += size;
        if (!written && !holding->verified.has(number)) continue;
        same = same && is_block({card.space, version, variant}, block, bytes);
      }
      if (same) return variant;
    }
  }
  return std::nullopt;
}

bool Users::publishing(WorkerId worker, const Version& version) const {
  return std::any_of(open_.begin(), open_.end(), [&](const auto& entry) {
    const auto* publish = std::get_if<PublishCall>(&entry.second.call);
    return entry.second.worker == worker && publish != nullptr && publish->version == version;
  });
}

void Users::unpublish(const Task& task, WorkerId worker, bool then_publish) {
  const auto holdings = stage_.agent(worker)->holdings();
  for (SlotNumber slot = 0; slot < holdings.size(); ++slot) {
    if (!holdings[slot]) continue;
    const CallId id = next_;  // it may end at once
    OpenCall open;
    open.worker = worker;
    open.call = UnpublishCall{holdings[slot]->version, task.on_deadline};
    open.deadline = stage_.now() + task.patience;
    open.slot = slot;
    if (then_publish) open.afterwards = task;
    ++next_;
    const Call call = open.call;
    const Time deadline = open.deadline;
    open_.emplace(id, open);
    return desk_.call(worker, id, call, deadline);
  }
}

void Users::fetch(const Task& task, WorkerId worker) {
  FetchCall call = task.fetch;
  if (odd(task, worker)) {
    call.version = call.version ? std::nullopt : std::optional<Version>({0, 1});
  }
  make(worker, call, task.patience);
}

void Users::single(const Task& task, WorkerId worker) {
  switch (task.kind) {
    case TaskKind::Cancel:
      if (const auto fetch = open_fetch(worker)) make(worker, CancelCall{*fetch}, task.patience);
      return;
    case TaskKind::Withdraw:
      make(worker, WithdrawCall{task.version}, task.patience);
      return;
    case TaskKind::Retain:
      make(worker, RetainCall{task.version, task.retention.copies, task.retention.level},
           task.patience);
      return;
    case TaskKind::Release:
      make(worker, ReleaseCall{task.version}, task.patience);
      return;
    case TaskKind::Installed: {
      Hash128 root;
      for (const auto& holding : stage_.agent(worker)->holdings()) {
        if (holding && holding->version == task.version) root = holding->root;
      }
      make(worker, InstalledCall{task.version, root, task.groups}, task.patience);
      return;
    }
    case TaskKind::Lineage:
      make(worker, LineageCall{}, task.patience);
      return;
    default:
      make(worker, LeaveCall{}, task.patience);
  }
}

void Users::ended(WorkerId worker, CallId id, const CallResult& result) {
  const auto found = open_.find(id);
  if (found == open_.end()) return;
  const OpenCall open = found->second;
  open_.erase(found);
  if (!std::holds_alternative<UnpublishCall>(open.call)) return;
  if (result.status != CallStatus::Ok) return;
  desk_.write(worker, open.slot, nullptr);
  if (open.afterwards) desk_.later(stage_.now(), *open.afterwards, worker);
}

void Users::died(WorkerId worker) {
  for (auto entry = open_.begin(); entry != open_.end();) {
    entry = entry->second.worker == worker ? open_.erase(entry) : std::next(entry);
  }
}

void Users::fetch_all(Time patience) {
  const World& world = stage_.world();
  for (std::size_t g = 0; g < world.groups.size(); ++g) {
    const WorldGroup& group = world.groups[g];
    const bool whole = std::all_of(group.members.begin(), group.members.end(), [&](WorkerId m) {
      return stage_.agent(m) != nullptr && !stage_.agent(m)->left();
    });
    if (group.trainer || !whole) continue;
    Task task;
    task.group = GroupId(g);
    task.patience = patience;
    start(task);
  }
}

std::optional<CallId> Users::open_fetch(WorkerId worker) const {
  for (const auto& [id, open] : open_) {
    if (open.worker == worker && std::holds_alternative<FetchCall>(open.call)) return id;
  }
  return std::nullopt;
}

// The buffer is not its owner's before the call has returned.
bool Users::unpublishing(WorkerId worker) const {
  return std::any_of(open_.begin(), open_.end(), [&](const auto& entry) {
    return entry.second.worker == worker &&
           std::holds_alternative<UnpublishCall>(entry.second.call);
  });
}

bool Users::fetching(WorkerId worker) const {
  return open_fetch(worker).has_value();
}

bool Users::busy(const WorldGroup& group) const {
  const auto number = static_cast<std::size_t>(&group - stage_.world().groups.data());
  return waiting_[number] > 0 || std::any_of(group.members.begin(), group.members.end(),
                                             [&](WorkerId member) { return fetching(member); });
}

}  // namespace holdfast::storm
