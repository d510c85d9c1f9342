#include "core/engine/transfer_loop.hpp"

#include <algorithm>
#include <array>
#include <limits>

namespace holdfast {
namespace {

// An OpId is slot, open slot, number of the read within the block; a JobId is slot, edge, block.
constexpr unsigned kSlotShift = 48;
constexpr unsigned kOpenShift = 24;
constexpr std::uint64_t kOpenMask = (1ULL << kOpenShift) - 1;
constexpr unsigned kEdgeShift = 28;
constexpr std::uint64_t kIndexMask = (1ULL << kEdgeShift) - 1;
constexpr std::uint64_t kEdgeMask = (1ULL << (kSlotShift - kEdgeShift)) - 1;

OpId op_of(std::uint16_t slot, std::uint32_t open_slot, std::uint32_t op) {
  return (OpId{slot} << kSlotShift) | (OpId{open_slot} << kOpenShift) | op;
}
JobId job_of(std::uint16_t slot, EdgeBlock at) {
  return (JobId{slot} << kSlotShift) | (JobId{at.edge} << kEdgeShift) | at.index;
}
EdgeBlock block_of(JobId job) {
  return {static_cast<EdgeNumber>((job >> kEdgeShift) & kEdgeMask),
          static_cast<std::uint32_t>(job & kIndexMask)};
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

TransferLoop::TransferLoop(const LoopSetup& setup, std::uint16_t slot)
    : setup_(setup), slot_(slot), next_(std::numeric_limits<std::int64_t>::min()) {
  sources_.reserve(setup.engine.assignments());
}

bool TransferLoop::pump() {
  if (stopped_ || failure_) return !failure_;
  if (setup_.engine.fresh() || next_ <= setup_.transport.now()) {
    if (rests_ != 0) post_rests();
    if (!failure_) step(TimePassed{});
  }
  return !failure_;
}

bool TransferLoop::take(const TransportEvent& event) {
  if (const auto* done = std::get_if<ReadDone>(&event)) {
    if (slot_of(done->id) != slot_) return false;
    read_done(*done);
    return true;
  }
  if (const auto* message = std::get_if<MessageReceived>(&event)) {
    const auto about = subject_of(message->payload);
    const UpdateTables& tables = setup_.engine.tables();
    if (!about || about->version != tables.version() || about->transfer != tables.transfer()) {
      return false;
    }
    if (!stopped_ && !failure_) step(MessageFrom{message->from, message->payload});
    return true;
  }
  const auto* lost = std::get_if<PeerLost>(&event);
  if (lost == nullptr || !owns(lost->peer)) return false;
  peer_lost(*lost);
  return true;
}

bool TransferLoop::take(const JobDone& job) {
  if (slot_of(job.id) != slot_) return false;
  --jobs_;
  if (!stopped_ && !failure_) step(BlockDigested{block_of(job.id), job.digest});
  return true;
}

void TransferLoop::lose(WorkerId worker) {
  if (!stopped_ && !failure_) step(WorkerLost{worker});
}

// One event, and what the carrying out of its commands brings about at once.
void TransferLoop::step(const EngineEvent& event) {
  step_once(event);
  for (std::size_t i = 0; i < at_once_.size() && !failure_; ++i) {
    const EngineEvent next = at_once_[i];  // a copy: the vector grows meanwhile
    step_once(next);
  }
  for (const EngineEvent& one : at_once_) {
    const auto* refused = std::get_if<PostRefused>(&one);
    if (refused != nullptr) sources_[refused->at.edge].refusing = false;
  }
  at_once_.clear();
  if (rests_ != 0) next_ = std::min(next_, setup_.transport.now() + kRestInterval);
}

void TransferLoop::step_once(const EngineEvent& event) {
  commands_.clear();
  next_ = setup_.engine.step(event, setup_.transport.now(), commands_);
  for (const EngineCommand& command : commands_) carry_out(command);
}

void TransferLoop::carry_out(const EngineCommand& command) {
  if (const auto* read = std::get_if<ReadBlock>(&command)) {
    start_block(*read);
  } else if (const auto* wanted = std::get_if<DigestBlock>(&command)) {
    digest(*wanted);
  } else if (const auto* message = std::get_if<SendMessage>(&command)) {
    send(*message);
  } else if (const auto* cancelled = std::get_if<CancelReads>(&command)) {
    cancel(*cancelled);
  } else {
    observe(command);
  }
}

void TransferLoop::observe(const EngineCommand& command) {
  const WorkerEngine& engine = setup_.engine;
  const Time now = setup_.transport.now();
  if (const auto* failed = std::get_if<Failed>(&command)) failure_ = failed->failure;
  if (LoopObserver* observer = setup_.observer) {
    if (const auto* counted = std::get_if<BlockVerified>(&command)) {
      observer->block_verified(engine, counted->at, counted->block, now);
    } else if (std::holds_alternative<Completed>(command)) {
      observer->completed(engine, now);
    } else if (failure_) {
      observer->failed(*failure_, now);
    }
  }
  if (SourceObserver* observer = setup_.sources) {
    if (const auto* turned_to = std::get_if<Reparented>(&command)) {
      observer->reparented(engine, *turned_to, now);
    } else if (const auto* wanted = std::get_if<NeedParent>(&command)) {
      observer->parent_needed(engine, *wanted, now);
    } else if (const auto* slow = std::get_if<SlowSource>(&command)) {
      observer->slow_source(engine, *slow, now);
    } else if (const auto* bad = std::get_if<BadDigest>(&command)) {
      observer->bad_digest(engine, *bad, now);
    }
  }
}

// --- Connections ---------------------------------------------------------------------------------

TransferLoop::Source& TransferLoop::source_of(EdgeNumber edge) {
  if (sources_.size() <= edge) sources_.resize(edge + 1);
  const Assignment assignment = setup_.engine.assignment(edge);
  const Source& known = sources_[edge];
  const bool same = known.parent == assignment.parent && known.path == assignment.path;
  if (!same || !known.peer.valid()) {
    leave(edge);
    connect(edge, assignment.parent, assignment.path);
  }
  Source& source = sources_[edge];
  if (source.denied) {
    source.denied = false;
    source.access = setup_.grants.access(setup_.engine.worker(), source.parent);
  }
  return source;
}

// Assignments with one parent and path share a connection: its reads are then served in the order
// in which the blocks became known, and count as one among the flows that share a link.
void TransferLoop::connect(EdgeNumber edge, WorkerId parent, const Path& path) {
  Source& source = sources_[edge];
  source.parent = parent;
  source.path = path;
  const auto shared = std::find_if(sources_.begin(), sources_.end(), [&](const Source& other) {
    return other.peer.valid() && other.parent == parent && other.path == path;
  });
  if (shared != sources_.end()) {
    source.peer = shared->peer;
    source.access = shared->access;
    source.denied = shared->denied;
    return;
  }
  source.denied = false;
  source.access = setup_.grants.access(setup_.engine.worker(), parent);
  source.peer = setup_.transport.open({parent, path, setup_.grants.address(parent)}, setup_.nonce);
}

// The assignment reads there no more: the last one closes the connection.
void TransferLoop::leave(EdgeNumber edge) {
  const PeerId peer = sources_[edge].peer;
  sources_[edge].peer = {};
  if (!peer.valid()) return;
  const bool used = std::any_of(sources_.begin(), sources_.end(),
                                [&](const Source& other) { return other.peer == peer; });
  if (!used) setup_.transport.close(peer);
}

PeerId TransferLoop::peer_of_child(const SendMessage& message) {
  const auto at = std::lower_bound(
      connections_.begin(), connections_.end(), message.to,
      [](const Connection& connection, WorkerId worker) { return connection.worker < worker; });
  if (at != connections_.end() && at->worker == message.to) return at->peer;
  Path path;
  const TableEdge* edge = setup_.engine.tables().edge(message.stripe, message.to);
  if (edge != nullptr && edge->parent == setup_.engine.worker()) {
    path = edge->path;
  } else {
    // A holder whose plan's child turned to it knows nothing of it but the plan.
    if (edge != nullptr && edge->alternate == setup_.engine.worker()) path = edge->alternate_path;
    for (std::size_t c = 0; c < setup_.engine.children(); ++c) {
      if (setup_.engine.child(c).worker == message.to) path = setup_.engine.child(c).path;
    }
  }
  const PeerId peer = setup_.transport.open(
      {message.to, turned(path), setup_.grants.address(message.to)}, setup_.nonce);
  connections_.insert(at, {message.to, peer});
  return peer;
}

bool TransferLoop::owns(PeerId peer) const {
  const auto is = [&](const auto& one) { return one.peer == peer; };
  return std::any_of(sources_.begin(), sources_.end(), is) ||
         std::any_of(connections_.begin(), connections_.end(), is);
}

// Open reads of the peer still complete; rests that wait for it have no one to wait for.
void TransferLoop::peer_lost(const PeerLost& lost) {
  std::erase_if(connections_, [&](const Connection& c) { return c.peer == lost.peer; });
  for (Source& source : sources_) {
    if (source.peer != lost.peer) continue;
    source.peer = {};
    if (source.waiting == kNone) continue;
    const std::uint32_t open_slot = source.waiting;
    drop_rest(open_[open_slot], ReadStatus::PeerGone);
    if (open_[open_slot].reads != 0) continue;
    at_once_.emplace_back(BlockRead{open_[open_slot].at, ReadStatus::PeerGone});
    free_slot(open_slot);
  }
  if (stopped_ || failure_) return at_once_.clear();
  step(WorkerLost{lost.worker});
}

void TransferLoop::close_all() {
  for (EdgeNumber e = 0; e < sources_.size(); ++e) leave(e);
  for (const Connection& connection : connections_) setup_.transport.close(connection.peer);
  connections_.clear();
}

// --- Reads ---------------------------------------------------------------------------------------

void TransferLoop::start_block(const ReadBlock& command) {
  Source& source = source_of(command.at.edge);
  if (source.refusing || source.waiting != kNone) {
    source.refusing = true;
    at_once_.emplace_back(PostRefused{command.at, Posted::WouldBlock});
    return;
  }
  if (free_.empty()) {
    free_.push_back(static_cast<std::uint32_t>(open_.size()));
    open_.emplace_back();
  }
  const std::uint32_t open_slot = free_.back();
  free_.pop_back();
  ++open_blocks_;
  OpenBlock& open = open_[open_slot];
  open = OpenBlock{};
  open.at = command.at;
  open.block = command.block;
  open.deadline = command.deadline;
  open.in_use = true;
  const Posted posted = post(open_slot);
  if (posted == Posted::Posted) return;
  if (open.posted == 0) {
    free_slot(open_slot);
    source.refusing = true;
    at_once_.emplace_back(PostRefused{command.at, posted});
  } else if (posted == Posted::WouldBlock) {
    open.rest_waits = true;
    source.waiting = open_slot;
    ++rests_;
  } else {
    open.status = ReadStatus::PeerGone;  // told when the reads that were posted are done
  }
}

// Posts what is not yet posted of a block, in as many reads as the limits ask for.
Posted TransferLoop::post(std::uint32_t open_slot) {
  OpenBlock& open = open_[open_slot];
  const Source& source = sources_[open.at.edge];
  remote_.clear();
  local_.clear();
  pieces_.clear();
  setup_.placement.append_extents(source.parent, open.block, remote_);
  setup_.placement.append_extents(setup_.engine.worker(), open.block, local_);
  append_pieces(remote_, local_, pieces_);
  const PeerLimits limits = setup_.transport.limits(source.peer);
  for (;;) {
    const std::uint64_t bytes = cut_part(pieces_, open.posted, limits, part_);
    if (bytes == 0) return Posted::Posted;
    ReadRequest request;
    request.id = op_of(slot_, open_slot, open.next_op);
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
void TransferLoop::post_rests() {
  for (std::size_t e = 0; e < sources_.size() && !failure_; ++e) {
    const std::uint32_t open_slot = sources_[e].waiting;
    if (open_slot == kNone) continue;
    const Posted posted = post(open_slot);
    if (posted == Posted::WouldBlock) continue;
    drop_rest(open_[open_slot], posted == Posted::PeerGone ? ReadStatus::PeerGone : ReadStatus::Ok);
    finish_if_done(open_slot);
  }
}

void TransferLoop::drop_rest(OpenBlock& open, ReadStatus status) {
  open.rest_waits = false;
  if (open.status == ReadStatus::Ok) open.status = status;
  sources_[open.at.edge].waiting = kNone;
  --rests_;
}

void TransferLoop::read_done(const ReadDone& done) {
  const auto open_slot = static_cast<std::uint32_t>((done.id >> kOpenShift) & kOpenMask);
  OpenBlock& open = open_[open_slot];
  --open.reads;
  stats_.bytes_read += done.bytes;
  if (done.status == ReadStatus::AccessDenied) {
    const PeerId peer = sources_[open.at.edge].peer;
    for (Source& source : sources_) source.denied = source.denied || source.peer == peer;
  }
  if (done.status != ReadStatus::Ok && open.status == ReadStatus::Ok) {
    open.status = done.status;
    if (open.rest_waits) drop_rest(open, done.status);
  }
  if (rests_ != 0 && !stopped_ && !failure_) post_rests();
  if (open_[open_slot].in_use) finish_if_done(open_slot);
}

void TransferLoop::finish_if_done(std::uint32_t open_slot) {
  const OpenBlock& open = open_[open_slot];
  if (open.reads != 0 || open.rest_waits) return;
  const BlockRead event{open.at, open.status};
  free_slot(open_slot);
  if (!stopped_ && !failure_) step(event);
  if (stopped_ && open_blocks_ == 0) close_all();
}

void TransferLoop::free_slot(std::uint32_t open_slot) {
  open_[open_slot].in_use = false;
  free_.push_back(open_slot);
  --open_blocks_;
}

// A command: what it brings about at once is told to the engine after this step.
void TransferLoop::cancel(const CancelReads& command) {
  for (std::uint32_t s = 0; s < open_.size(); ++s) {
    if (!open_[s].in_use || open_[s].at.edge != command.edge) continue;
    const EdgeBlock at = open_[s].at;
    cancel_block(s);
    if (open_[s].reads != 0) continue;
    at_once_.emplace_back(BlockRead{at, ReadStatus::Cancelled});
    free_slot(s);
  }
}

// Reads of the block that are done already do not mind.
void TransferLoop::cancel_block(std::uint32_t open_slot) {
  OpenBlock& open = open_[open_slot];
  if (open.rest_waits) drop_rest(open, ReadStatus::Cancelled);
  if (open.reads == 0) return;
  for (std::uint32_t op = 0; op < open.next_op; ++op) {
    setup_.transport.cancel(op_of(slot_, open_slot, op));
  }
}

void TransferLoop::stop() {
  if (stopped_) return;
  stopped_ = true;
  next_ = Time::never();
  for (std::uint32_t s = 0; s < open_.size(); ++s) {
    if (!open_[s].in_use) continue;
    cancel_block(s);
    if (open_[s].reads == 0) free_slot(s);
  }
  if (open_blocks_ == 0) close_all();
}

void TransferLoop::digest(const DigestBlock& command) {
  local_.clear();
  setup_.placement.append_extents(setup_.engine.worker(), command.block, local_);
  ++jobs_;
  setup_.memory.digest(job_of(slot_, command.at), setup_.region, local_);
}

void TransferLoop::send(const SendMessage& message) {
  std::array<std::byte, kMaxMessageBytes> buffer;
  const std::size_t length = setup_.engine.write_message(message, buffer);
  const PeerId peer = message.ask ? source_of(message.edge).peer : peer_of_child(message);
  // A peer that is gone announces itself with PeerLost.
  setup_.transport.send(peer, std::span(buffer).first(length));
  ++stats_.messages_sent;
}

}  // namespace holdfast
