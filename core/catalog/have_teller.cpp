#include "core/catalog/have_teller.hpp"

#include <algorithm>
#include <array>

namespace holdfast {

HaveTeller::HaveTeller(const ModelSpace& space, Transport& transport,
                       std::function<std::string(WorkerId)> address)
    : space_(space), transport_(transport), address_(std::move(address)) {}

void HaveTeller::add(const TransferRef& transfer, const LiveEdge& edge, const Holding* holding,
                     std::uint64_t nonce) {
  if (edge.stripe.index() >= transfer->tables->stripes()) return;
  const Path back{edge.path.destination_port, edge.path.source_port, edge.path.stream};
  std::erase_if(children_, [&](const Child& c) {
    const bool same = c.transfer->id == transfer->id && c.edge.stripe == edge.stripe &&
                      c.edge.child == edge.child;
    if (same && c.peer.valid()) transport_.close(c.peer);
    return same;
  });
  children_.push_back(
      {transfer, edge, transport_.open({edge.child, back, address_(edge.child)}, nonce)});
  if (holding != nullptr) tell(children_.back(), *holding, 0);
}

bool HaveTeller::take(const MessageReceived& message,
                      const std::vector<std::optional<Holding>>& holdings) {
  const auto decoded = decode_message(message.payload);
  const Ask* ask = decoded ? std::get_if<Ask>(&*decoded) : nullptr;
  if (ask == nullptr) return false;
  const auto child = std::find_if(children_.begin(), children_.end(), [&](const Child& c) {
    const UpdateTables& tables = *c.transfer->tables;
    return c.edge.child == message.from && c.edge.stripe == ask->about.stripe &&
           tables.version() == ask->about.version && tables.transfer() == ask->about.transfer;
  });
  if (child == children_.end()) return false;
  for (const auto& holding : holdings) {
    if (holding && holding->version == ask->about.version) tell(*child, *holding, ask->first);
  }
  return true;
}

// In messages of at most kMaxHaveBlocks. Blocks that are not here are zero bits, which say nothing.
void HaveTeller::tell(const Child& child, const Holding& holding, std::uint32_t from) {
  if (!child.peer.valid()) return;
  const UpdateTables& tables = *child.transfer->tables;
  const std::span<const BlockId> blocks = tables.blocks(child.edge.stripe);
  const auto end = static_cast<std::uint32_t>(blocks.size());
  const MessageSubject about{tables.version(), tables.transfer(), child.edge.stripe};
  std::array<std::byte, kMaxMessageBytes> buffer;
  std::vector<std::uint64_t> words;
  for (std::uint32_t first = from / 64 * 64; first < end; first += kMaxHaveBlocks) {
    const std::uint32_t count = std::min(kMaxHaveBlocks, end - first);
    words.assign((count + 63) / 64, 0);
    for (std::uint32_t i = 0; i < count; ++i) {
      const auto number = space_.number(holding.shard, blocks[first + i]);
      if (number && holding.verified.has(*number)) words[i / 64] |= std::uint64_t{1} << (i % 64);
    }
    const std::size_t length = encode_have(about, first, count, words, buffer);
    // A peer that is gone announces itself with PeerLost.
    (void)transport_.send(child.peer, std::span(buffer).first(length));
  }
}

std::vector<LiveEdge> HaveTeller::remove(PlanNumber plan) {
  std::vector<LiveEdge> edges;
  std::erase_if(children_, [&](const Child& c) {
    if (c.transfer->id != plan) return false;
    if (c.peer.valid()) transport_.close(c.peer);
    edges.push_back(c.edge);
    return true;
  });
  return edges;
}

void HaveTeller::lose(PeerId peer) {
  for (Child& child : children_) {
    if (child.peer == peer) child.peer = PeerId();
  }
}

}  // namespace holdfast
