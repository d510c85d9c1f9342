#include "core/engine/loop.hpp"

#include <algorithm>
#include <array>
#include <limits>

namespace holdfast {
namespace {

constexpr std::size_t kBatch = 16;

JobId job_of(EdgeBlock at) {
  return (JobId{at.edge} << 32) | at.index;
}
EdgeBlock block_of(JobId job) {
  return {static_cast<EdgeNumber>(job >> 32), static_cast<std::uint32_t>(job)};
}

// The way back of a path: for messages from a parent to its child.
Path turned(const Path& path) {
  return {path.destination_port, path.source_port, path.stream};
}

// Moves pieces from `pieces`, after the first `skip` bytes, into `part`: as much as one read takes.
// Returns the bytes.
std::uint64_t cut_part(std::span<const Piece> pieces, std::uint64_t skip, const PeerLimits& limits,
                       std::vector<Piece>& part) {
  part.clear();
  std::uint64_t room = limits.bytes_per_read.count();
  for (Piece piece : pieces) {
    if (skip >= piece.bytes) {
      skip -= piece.bytes;
      continue;
    }
    if (room == 0 || part.size() == limits.pieces_per_read) break;
    const std::uint64_t bytes = std::min(piece.bytes - skip, room);
    part.push_back({piece.remote_offset + skip, piece.local_offset + skip, bytes});
    room -= bytes;
    skip = 0;
  }
  return limits.bytes_per_read.count() - room;
}

}  // namespace

WorkerLoop::WorkerLoop(const LoopSetup& setup)
    : setup_(setup), next_(std::numeric_limits<std::int64_t>::min()) {
  sources_.reserve(setup.engine.assignments());
}

bool WorkerLoop::pump() {
  std::array<TransportEvent, kBatch> events;
  std::array<JobDone, kBatch> jobs;
  if (!failure_ && (setup_.engine.fresh() || next_ <= setup_.transport.now())) {
    if (rests_ != 0) post_rests();
    if (!failure_) step(TimePassed{});
  }
  bool more = true;
  while (more && !failure_) {
    const std::size_t polled = setup_.transport.poll(events);
    for (std::size_t i = 0; i < polled && !failure_; ++i) take(events[i]);
    const std::size_t done = setup_.memory.poll(jobs);
    for (std::size_t i = 0; i < done && !failure_; ++i) {
      step(BlockDigested{block_of(jobs[i].id), jobs[i].digest});
    }
    more = polled != 0 || done != 0;
  }
  return !failure_;
}

std::optional<EngineFailure> WorkerLoop::run(const std::function<bool(const WorkerEngine&)>& stop) {
  while (pump()) {
    if (stop ? stop(setup_.engine) : setup_.engine.told_everything()) return std::nullopt;
    setup_.transport.wait(next_);
  }
  return failure_;
}

void WorkerLoop::take(TransportEvent& event) {
  if (const auto* done = std::get_if<ReadDone>(&event)) {
    read_done(*done);
  } else if (const auto* message = std::get_if<MessageReceived>(&event)) {
    step(MessageFrom{message->from, message->payload});
  } else if (const auto* lost = std::get_if<PeerLost>(&event)) {
    std::erase_if(connections_, [&](const Connection& c) { return c.peer == lost->peer; });
    step(WorkerLost{lost->worker});
  }
}

// One event, and what the carrying out of its commands brings about at once.
void WorkerLoop::step(const EngineEvent& event) {
  step_once(event);
  for (std::size_t i = 0; i < refused_.size() && !failure_; ++i) step_once(refused_[i]);
  for (const PostRefused& refused : refused_) sources_[refused.at.edge].refusing = false;
  refused_.clear();
  if (rests_ != 0) next_ = std::min(next_, setup_.transport.now() + kRestInterval);
}

void WorkerLoop::step_once(const EngineEvent& event) {
  commands_.clear();
  next_ = setup_.engine.step(event, setup_.transport.now(), commands_);
  for (const EngineCommand& command : commands_) carry_out(command);
}

void WorkerLoop::carry_out(const EngineCommand& command) {
  if (const auto* read = std::get_if<ReadBlock>(&command)) {
    start_block(*read);
  } else if (const auto* wanted = std::get_if<DigestBlock>(&command)) {
    digest(*wanted);
  } else if (const auto* message = std::get_if<SendMessage>(&command)) {
    send(*message);
  } else if (const auto* counted = std::get_if<BlockVerified>(&command)) {
    if (setup_.observer != nullptr) {
      setup_.observer->block_verified(setup_.engine, counted->at, counted->block,
                                      setup_.transport.now());
    }
  } else if (std::holds_alternative<Completed>(command)) {
    if (setup_.observer != nullptr) {
      setup_.observer->completed(setup_.engine, setup_.transport.now());
    }
  } else if (const auto* failed = std::get_if<Failed>(&command)) {
    failure_ = failed->failure;
    if (setup_.observer != nullptr) {
      setup_.observer->failed(failed->failure, setup_.transport.now());
    }
  }
}

WorkerLoop::Source& WorkerLoop::source_of(EdgeNumber edge) {
  while (sources_.size() <= edge) sources_.emplace_back();
  Source& source = sources_[edge];
  if (source.peer.valid()) return source;
  const Assignment assignment = setup_.engine.assignment(edge);
  for (EdgeNumber e = 0; e < sources_.size(); ++e) {
    if (!sources_[e].peer.valid()) continue;
    const Assignment other = setup_.engine.assignment(e);
    if (other.parent != assignment.parent || other.path != assignment.path) continue;
    source.peer = sources_[e].peer;
    source.access = sources_[e].access;
    return source;
  }
  source.access = setup_.grants.access(setup_.engine.worker(), assignment.parent);
  source.peer = setup_.transport.open(
      {assignment.parent, assignment.path, setup_.grants.address(assignment.parent)}, setup_.nonce);
  return source;
}

void WorkerLoop::start_block(const ReadBlock& command) {
  Source& source = source_of(command.at.edge);
  if (source.refusing || source.waiting != kNone) {
    source.refusing = true;
    refused_.push_back({command.at, Posted::WouldBlock});
    return;
  }
  if (free_.empty()) {
    free_.push_back(static_cast<std::uint32_t>(open_.size()));
    open_.emplace_back();
  }
  const std::uint32_t slot = free_.back();
  free_.pop_back();
  OpenBlock& open = open_[slot];
  open = OpenBlock{};
  open.at = command.at;
  open.block = command.block;
  open.deadline = command.deadline;
  open.in_use = true;
  const Posted posted = post(slot);
  if (posted == Posted::Posted) return;
  if (open.posted == 0) {
    open.in_use = false;
    free_.push_back(slot);
    source.refusing = true;
    refused_.push_back({command.at, posted});
  } else if (posted == Posted::WouldBlock) {
    open.rest_waits = true;
    source.waiting = slot;
    ++rests_;
  } else {
    open.status = ReadStatus::PeerGone;  // told when the reads that were posted are done
  }
}

// Posts what is not yet posted of a block, in as many reads as the limits ask for.
Posted WorkerLoop::post(std::uint32_t slot) {
  OpenBlock& open = open_[slot];
  const Source& source = sources_[open.at.edge];
  const WorkerId parent = setup_.engine.assignment(open.at.edge).parent;
  remote_.clear();
  local_.clear();
  pieces_.clear();
  setup_.placement.append_extents(parent, open.block, remote_);
  setup_.placement.append_extents(setup_.engine.worker(), open.block, local_);
  append_pieces(remote_, local_, pieces_);
  const PeerLimits limits = setup_.transport.limits(source.peer);
  for (;;) {
    const std::uint64_t bytes = cut_part(pieces_, open.posted, limits, part_);
    if (bytes == 0) return Posted::Posted;
    ReadRequest request;
    request.id = (OpId{slot} << 32) | open.next_op;
    request.peer = source.peer;
    request.access = source.access;
    request.region = setup_.region;
    request.pieces = part_;
    request.deadline = open.deadline;
    const Posted posted = setup_.transport.read(request);
    if (posted == Posted::WouldBlock) ++stats_.refused;
    if (posted != Posted::Posted) return posted;
    ++stats_.reads;
    ++open.next_op;
    ++open.reads;
    open.posted += bytes;
  }
}

// A completion made room: the rests of blocks go first.
void WorkerLoop::post_rests() {
  for (std::size_t e = 0; e < sources_.size(); ++e) {
    const std::uint32_t slot = sources_[e].waiting;
    if (slot == kNone) continue;
    const Posted posted = post(slot);
    if (posted == Posted::WouldBlock) continue;
    if (posted == Posted::PeerGone) open_[slot].status = ReadStatus::PeerGone;
    open_[slot].rest_waits = false;
    sources_[e].waiting = kNone;
    --rests_;
    finish_if_done(slot);
  }
}

void WorkerLoop::read_done(const ReadDone& done) {
  const auto slot = static_cast<std::uint32_t>(done.id >> 32);
  OpenBlock& open = open_[slot];
  --open.reads;
  stats_.bytes_read += done.bytes;
  if (done.status != ReadStatus::Ok && open.status == ReadStatus::Ok) {
    open.status = done.status;
    if (open.rest_waits) {
      open.rest_waits = false;
      sources_[open.at.edge].waiting = kNone;
      --rests_;
    }
  }
  if (rests_ != 0) post_rests();
  if (open_[slot].in_use) finish_if_done(slot);
}

void WorkerLoop::finish_if_done(std::uint32_t slot) {
  OpenBlock& open = open_[slot];
  if (open.reads != 0 || open.rest_waits) return;
  open.in_use = false;
  free_.push_back(slot);
  const BlockRead event{open.at, open.status};
  step(event);
}

void WorkerLoop::digest(const DigestBlock& command) {
  local_.clear();
  setup_.placement.append_extents(setup_.engine.worker(), command.block, local_);
  setup_.memory.digest(job_of(command.at), setup_.region, local_);
}

void WorkerLoop::send(const SendMessage& message) {
  std::array<std::byte, kMaxMessageBytes> buffer;
  const std::size_t length = setup_.engine.write_message(message, buffer);
  const PeerId peer = message.ask ? peer_of_parent(message) : peer_of_child(message);
  // A peer that is gone announces itself with PeerLost.
  setup_.transport.send(peer, std::span(buffer).first(length));
  ++stats_.messages_sent;
}

PeerId WorkerLoop::peer_of_parent(const SendMessage& message) {
  for (EdgeNumber e = 0; e < setup_.engine.assignments(); ++e) {
    const Assignment assignment = setup_.engine.assignment(e);
    if (assignment.parent == message.to && assignment.stripe == message.stripe) {
      return source_of(e).peer;
    }
  }
  return {};
}

PeerId WorkerLoop::peer_of_child(const SendMessage& message) {
  const auto at = std::lower_bound(
      connections_.begin(), connections_.end(), message.to,
      [](const Connection& connection, WorkerId worker) { return connection.worker < worker; });
  if (at != connections_.end() && at->worker == message.to) return at->peer;
  Path path;
  const TableEdge* edge = setup_.engine.tables().edge(message.stripe, message.to);
  if (edge != nullptr && edge->parent == setup_.engine.worker()) {
    path = edge->path;
  } else {
    for (std::size_t c = 0; c < setup_.engine.children(); ++c) {
      if (setup_.engine.child(c).worker == message.to) path = setup_.engine.child(c).path;
    }
  }
  const PeerId peer = setup_.transport.open(
      {message.to, turned(path), setup_.grants.address(message.to)}, setup_.nonce);
  connections_.insert(at, {message.to, peer});
  return peer;
}

std::optional<EngineFailure> run_worker(const LoopSetup& setup,
                                        const std::function<bool(const WorkerEngine&)>& stop) {
  WorkerLoop loop(setup);
  return loop.run(stop);
}

}  // namespace holdfast
