#include <algorithm>
#include <cstring>

#include "core/engine/virtual_state.hpp"

namespace holdfast::virtual_network {

RegionId VirtualTransport::add_region(std::span<std::byte> memory, Bytes size) {
  self().regions.push_back({memory, size});
  return RegionId(self().regions.size() - 1);
}

// Peers are never reused and know the life of the worker they lead to, so that `nonce` has nothing
// to tell apart.
PeerId VirtualTransport::open(const Endpoint& endpoint, std::uint64_t /*nonce*/) {
  const auto number = static_cast<std::uint32_t>(state_.peers.size());
  Peer peer;
  peer.owner = self_;
  peer.remote = endpoint.worker;
  if (endpoint.worker.index() < state_.workers.size()) {
    peer.remote_life = state_.workers[endpoint.worker.index()].life;
  }
  state_.peers.push_back(std::move(peer));
  peers_.push_back(number);
  const bool there = endpoint.worker.index() < state_.workers.size() &&
                     state_.workers[endpoint.worker.index()].alive;
  if (!there) {
    state_.schedule(state_.now + state_.options.detection, EventKind::PeerLost, number);
  }
  return PeerId(number);
}

void VirtualTransport::close(PeerId peer) {
  Peer& closing = state_.peers[peer.index()];
  if (closing.closed || closing.lost) return;
  state_.fail_all(peer.value(), ReadStatus::Cancelled);
  closing.closed = true;
}

PeerLimits VirtualTransport::limits(PeerId /*peer*/) const {
  return state_.options.limits;
}

Access VirtualTransport::allow(WorkerId reader, Version version, RegionId region) {
  Grant grant{reader, version, region, state_.random(), false};
  const std::uint64_t number = self().grants.size();
  Access access;
  std::memcpy(access.bytes.data(), &number, sizeof number);
  std::memcpy(access.bytes.data() + sizeof number, &grant.secret, sizeof grant.secret);
  access.size = sizeof number + sizeof grant.secret;
  self().grants.push_back(grant);
  return access;
}

// Each read is admitted again when its bytes are to leave: once the grants are marked, none leaves.
void VirtualTransport::revoke(WorkerId reader, Version version) {
  for (Grant& grant : self().grants) {
    if (grant.reader == reader && grant.version == version) grant.revoked = true;
  }
  self().revokes.push_back({reader, version});
  state_.schedule(state_.now, EventKind::Revoked, self_.value(), self().life);
}

Posted VirtualTransport::read(const ReadRequest& request) {
  if (!self().alive) return Posted::PeerGone;
  return state_.post(request.peer.value(), request);
}

void VirtualTransport::cancel(OpId id) {
  for (const std::uint32_t peer : peers_) {
    for (const std::uint32_t slot : state_.peers[peer].open) {
      if (state_.reads[slot].id == id) return state_.cancel(slot);
    }
  }
}

bool VirtualTransport::send(PeerId peer, std::span<const std::byte> payload) {
  const Peer& to = state_.peers[peer.index()];
  if (!self().alive || to.closed || to.lost || payload.size() > kMaxMessage) return false;
  if (to.remote.index() < state_.workers.size()) state_.send(to, payload);
  return true;
}

std::size_t VirtualTransport::poll(std::span<TransportEvent> out) {
  std::deque<TransportEvent>& inbox = self().inbox;
  const std::size_t count = std::min(out.size(), inbox.size());
  for (std::size_t i = 0; i < count; ++i) {
    out[i] = std::move(inbox.front());
    inbox.pop_front();
  }
  return count;
}

void VirtualTransport::wait(Time until) {
  if (state_.wait) return state_.wait(self_, until);
  state_.run_until_ready(self_, until);
}

Time VirtualTransport::now() const {
  return state_.now;
}

}  // namespace holdfast::virtual_network
