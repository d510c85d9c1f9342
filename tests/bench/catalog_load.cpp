#include "tests/bench/catalog_load.hpp"

#include <ctime>
#include <stdexcept>

namespace holdfast::bench {

namespace {

constexpr std::uint32_t kBlocks = 256;  // of a shard

std::shared_ptr<const ModelSpace> make_space() {
  auto space = std::make_shared<ModelSpace>("job", "model", Bytes(16 << 20),
                                            std::vector<Bytes>(kBlocks * kGpus, Bytes(16 << 20)));
  std::vector<std::vector<BlockSpan>> shards;
  for (std::uint32_t r = 0; r < kGpus; ++r) shards.push_back({{BlockId(r * kBlocks), kBlocks}});
  space->add_layout("tp8", std::move(shards));
  return space;
}

std::vector<NodeId> endpoints(const Topology& topology) {
  std::vector<NodeId> found;
  for (std::size_t n = 0; n < topology.nodes().size(); ++n) {
    if (is_endpoint(topology.nodes()[n].kind)) found.emplace_back(n);
  }
  return found;
}

// Of this thread: what others do on the machine does not count.
double cpu_seconds() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

bool idle(std::uint32_t group) {
  return group % 4 == 3;
}

}  // namespace

CatalogLoad::CatalogLoad(std::uint32_t hosts)
    : groups_(hosts),
      topology_(make_topology(hosts)),
      router_(topology_),
      space_(make_space()),
      roster_(endpoints(topology_)),
      clients_(roster_.size()),
      coordinator_(topology_, roster_, {space_}, {}),
      fetches_(hosts),
      unfinished_(hosts) {
  for (std::uint32_t i = 0; i < clients_.size(); ++i) {
    const std::uint32_t rank = i % (kGpus + 1);
    WorkerCard& card = clients_[i].card;
    card.node = roster_[i];
    card.space = SpaceId(0U);
    card.host_memory = rank == kGpus;
    card.shard = card.host_memory ? kWholeModel : ShardId{0, rank};
    if (!card.host_memory) card.group = GroupId(i / (kGpus + 1));
    card.budget = Bytes(card.host_memory ? 1'000'000'000'000 : 0);
  }
  step(CoordinatorTimePassed{});
  for (std::uint32_t i = 0; i < clients_.size(); ++i) hello(WorkerId(i));
  now_ += seconds(2);
  step(CoordinatorTimePassed{});
  for (std::uint32_t group = 0; group < kVersions; ++group) {
    for (std::uint32_t r = 0; r < kGpus; ++r) publish(member(group, r), {0, group + 1});
    answer_all();
  }
  for (std::uint32_t group = kVersions; group < groups_; ++group) {
    if (!idle(group)) start_fetch(group, {0, kVersions});
  }
  answer_all();
  now_ += milliseconds(10);
  step(CoordinatorTimePassed{});
  now_ += milliseconds(10);
  answer_all();
  if (coordinator_.open_transfers() == 0) throw std::runtime_error("nobody receives");
  times_.clear();
  fills_ = true;
}

void CatalogLoad::step(const CoordinatorEvent& event) {
  std::vector<CoordinatorCommand> commands;
  const double start = cpu_seconds();
  coordinator_.step(event, now_, commands);
  times_.push_back(cpu_seconds() - start);
  for (const CoordinatorCommand& command : commands) {
    if (const auto* send = std::get_if<SendToWorker>(&command)) {
      receive(send->worker, send->frame);
    } else if (auto answer = answer_question(router_, command, Policy::Chain, {})) {
      made_.emplace_back(now_ + milliseconds(1), std::move(*answer));
    }
  }
}

void CatalogLoad::hello(WorkerId id) {
  const Client& client = clients_[id.index()];
  auto report = std::make_shared<WorkerReport>();
  report->card = client.card;
  step(FromWorker{id, Hello{client.incarnation, std::move(report)}});
}

void CatalogLoad::heartbeat(WorkerId id) {
  const Client& client = clients_[id.index()];
  if (!client.session) return hello(id);
  step(FromWorker{id, WorkerFrame{client.session->key(), 0, client.session->received(), nullptr}});
}

void CatalogLoad::say(WorkerId id, WorkerMessage message) {
  Client& client = clients_[id.index()];
  if (!client.session) return;
  client.session->send(std::make_shared<const WorkerMessage>(std::move(message)), now_);
  std::vector<WorkerFrame> frames;
  client.session->due(now_, frames);
  for (WorkerFrame& frame : frames) step(FromWorker{id, std::move(frame)});
}

void CatalogLoad::say_next(std::deque<Saying>& sayings) {
  Saying saying = std::move(sayings.front());
  sayings.pop_front();
  say(saying.worker, std::move(saying.message));
}

void CatalogLoad::answer_all() {
  while (!answers_.empty() || !made_.empty()) {
    while (!answers_.empty()) say_next(answers_);
    if (made_.empty()) break;
    now_ = std::max(now_, made_.front().first);
    const CoordinatorEvent event = std::move(made_.front().second);
    made_.pop_front();
    step(event);
  }
}

void CatalogLoad::receive(WorkerId id, const ToWorker& frame) {
  Client& client = clients_[id.index()];
  if (const auto* welcome = std::get_if<Welcome>(&frame)) {
    if (welcome->incarnation != client.incarnation || client.session) return;
    client.generation = welcome->generation;
    client.session = std::make_unique<WorkerSession>(
        SessionKey{welcome->epoch, welcome->incarnation}, SessionConfig{});
  } else if (const auto* of_session = std::get_if<CoordinatorFrame>(&frame)) {
    if (!client.session) return;
    std::vector<CoordinatorMessageRef> messages;
    client.session->receive(*of_session, now_, messages);
    for (const CoordinatorMessageRef& message : messages) obey(id, *message);
  }
}

void CatalogLoad::obey(WorkerId id, const CoordinatorMessage& message) {
  Client& client = clients_[id.index()];
  if (const auto* clear = std::get_if<Clear>(&message)) {
    client.holds.erase(clear->version);
    answers_.push_back({id, Cleared{clear->version, 0}});
  } else if (const auto* granting = std::get_if<GrantReads>(&message)) {
    Granted granted;
    granted.plan = granting->transfer->id;
    for (const GrantedReader& reader : granting->readers) granted.readers.push_back(reader.reader);
    granted.access.resize(granted.readers.size());
    answers_.push_back({id, std::move(granted)});
  } else if (const auto* ending = std::get_if<EndReads>(&message)) {
    answers_.push_back({id, GrantsGone{ending->grants}});
  } else if (const auto* begin = std::get_if<Begin>(&message)) {
    client.plan = begin->transfer->id;
    client.filling = begin->transfer->version;
    client.holds[client.filling] = BlockSet(kBlocks);
    if (fills_) answers_.push_back({id, Filled{client.plan, client.filling}});
  } else if (const auto* stop = std::get_if<Stop>(&message)) {
    answers_.push_back({id, TransferStopped{stop->plan, client.filling, BlockSet(kBlocks)}});
  } else if (const auto* generation = std::get_if<GenerationIs>(&message)) {
    client.generation = generation->generation;
    if (!client.card.host_memory) fetches_[client.card.group.index()] = 0;
  } else if (std::holds_alternative<FetchDone>(message)) {
    std::uint32_t& left = unfinished_[client.card.group.index()];
    if (left > 0) --left;
    ++ended_;
  }
}

void CatalogLoad::start_fetch(std::uint32_t group, Version version) {
  FetchCall call;
  call.version = version;
  ++fetches_[group];
  unfinished_[group] = kGpus;
  for (std::uint32_t r = 0; r < kGpus; ++r) {
    const WorkerId id = member(group, r);
    answers_.push_back({id, AskFetch{fetches_[group], clients_[id.index()].generation, call,
                                     now_ + seconds(1000)}});
  }
}

void CatalogLoad::publish(WorkerId id, Version version) {
  Publish message;
  message.call = ++calls_;
  message.version = version;
  message.digests = std::make_shared<const std::vector<std::uint64_t>>(kBlocks, version.number);
  message.deadline = now_ + seconds(1000);
  clients_[id.index()].holds[version] = BlockSet::full(kBlocks);
  answers_.push_back({id, std::move(message)});
}

// One more block of a worker that receives.
void CatalogLoad::progress() {
  std::uint32_t group = 0;
  do {
    group = kVersions + below(groups_ - kVersions);
  } while (idle(group));
  const WorkerId id = member(group, below(kGpus));
  Client& client = clients_[id.index()];
  BlockSet& verified = client.holds[client.filling];
  if (verified.size() == 0) return heartbeat(id);
  verified.add(below(kBlocks - 1));  // never all
  say(id, Progress{client.plan, client.filling, verified, false});
}

void CatalogLoad::fetch_event() {
  if (answers_.empty()) {
    std::uint32_t group = 0;
    do {
      group = kVersions + below(groups_ - kVersions);
    } while (!idle(group));
    if (unfinished_[group] != 0) return heartbeat(member(group, 0));
    start_fetch(group, {0, 1 + below(kVersions)});
  }
  say_next(answers_);
}

// A member of an idle group comes back as another incarnation, or a trainer publishes once more
// what it has published.
void CatalogLoad::churn() {
  if (below(2) == 0) {
    const std::uint32_t group = below(kVersions);
    publish(member(group, below(kGpus)), {0, group + 1});
    return say_next(answers_);
  }
  std::uint32_t group = 0;
  do {
    group = kVersions + below(groups_ - kVersions);
  } while (!idle(group));
  if (unfinished_[group] != 0) return heartbeat(member(group, 0));
  const WorkerId id = member(group, below(kGpus));
  Client& client = clients_[id.index()];
  ++client.incarnation;
  client.session.reset();
  client.holds.clear();
  hello(id);
}

void CatalogLoad::mixed_event() {
  now_ += microseconds(5);
  if (!made_.empty() && made_.front().first <= now_) {
    const CoordinatorEvent event = std::move(made_.front().second);
    made_.pop_front();
    step(event);
  }
  const std::uint32_t kind = below(100);
  if (kind < 40) return progress();
  if (kind < 70) {
    return heartbeat(WorkerId(below(static_cast<std::uint32_t>(clients_.size()))));
  }
  if (kind < 90) return fetch_event();
  churn();
}

void CatalogLoad::silence(std::uint32_t groups) {
  for (int beat = 0; beat < 4; ++beat) {
    now_ += milliseconds(750) + microseconds(1);
    for (std::uint32_t i = 0; i < clients_.size(); ++i) {
      const std::uint32_t group = i / (kGpus + 1);
      const bool silent =
          group >= kVersions && group < kVersions + groups && i % (kGpus + 1) != kGpus;
      if (!silent) heartbeat(WorkerId(i));
    }
  }
}

}  // namespace holdfast::bench
