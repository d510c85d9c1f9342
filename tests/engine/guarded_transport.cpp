#include "tests/engine/guarded_transport.hpp"

#include <fmt/format.h>

namespace holdfast::testing {
namespace {

bool touches(const std::map<std::uint64_t, std::uint64_t>& ranges, std::uint64_t begin,
             std::uint64_t end) {
  auto next = ranges.lower_bound(begin);
  if (next != ranges.end() && next->first < end) return true;
  return next != ranges.begin() && (--next)->second > begin;
}

}  // namespace

Posted GuardedTransport::read(const ReadRequest& request) {
  const Posted posted = inner().read(request);
  if (posted != Posted::Posted) return posted;
  const auto note = [&](std::string what) {
    if (broken_.empty()) broken_ = std::move(what);
  };
  if (open_.contains(request.id)) note(fmt::format("op {:x} is open twice", request.id));
  for (const Piece& piece : request.pieces) {
    const std::uint64_t end = piece.local_offset + piece.bytes;
    if (touches(sealed_, piece.local_offset, end)) {
      note(fmt::format("byte {} is verified and read again", piece.local_offset));
    }
    if (touches(busy_, piece.local_offset, end)) {
      note(fmt::format("byte {} has two reads", piece.local_offset));
    }
    busy_[piece.local_offset] = end;
    open_[request.id].push_back(piece.local_offset);
  }
  return posted;
}

std::size_t GuardedTransport::poll(std::span<TransportEvent> out) {
  const std::size_t count = inner().poll(out);
  for (std::size_t i = 0; i < count; ++i) {
    const auto* done = std::get_if<ReadDone>(&out[i]);
    if (done == nullptr) continue;
    const auto read = open_.find(done->id);
    if (read == open_.end()) {
      if (broken_.empty()) broken_ = fmt::format("op {:x} is done and was not open", done->id);
      continue;
    }
    for (const std::uint64_t begin : read->second) busy_.erase(begin);
    open_.erase(read);
  }
  return count;
}

}  // namespace holdfast::testing
