#include "core/engine/digest.hpp"

#include <xxhash.h>

#include <algorithm>
#include <new>

namespace holdfast {
namespace {

// The canonical bytes of a digest inside an outer hash.
void append_digest(XXH3_state_t* outer, std::uint64_t digest) {
  std::byte bytes[8];
  for (std::size_t i = 0; i < 8; ++i) {
    bytes[i] = static_cast<std::byte>((digest >> (8 * i)) & 0xffU);
  }
  XXH3_64bits_update(outer, bytes, sizeof bytes);
}

struct StateDeleter {
  void operator()(XXH3_state_t* state) const { XXH3_freeState(state); }
};
using StatePointer = std::unique_ptr<XXH3_state_t, StateDeleter>;

StatePointer make_state() {
  StatePointer state(XXH3_createState());
  if (!state) throw std::bad_alloc();
  return state;
}

}  // namespace

struct BlockDigester::State {
  StatePointer piece = make_state();
  StatePointer outer = make_state();
  std::size_t in_piece = 0;  // bytes of the piece that is open
};

BlockDigester::BlockDigester() : state_(std::make_unique<State>()) {
  XXH3_64bits_reset(state_->piece.get());
  XXH3_64bits_reset(state_->outer.get());
}
BlockDigester::~BlockDigester() = default;
BlockDigester::BlockDigester(BlockDigester&&) noexcept = default;
BlockDigester& BlockDigester::operator=(BlockDigester&&) noexcept = default;

void BlockDigester::add(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    if (state_->in_piece == 0 && bytes.size() >= kDigestPiece) {
      append_digest(state_->outer.get(), XXH3_64bits(bytes.data(), kDigestPiece));
      bytes = bytes.subspan(kDigestPiece);
      continue;
    }
    const std::size_t part = std::min(bytes.size(), kDigestPiece - state_->in_piece);
    XXH3_64bits_update(state_->piece.get(), bytes.data(), part);
    state_->in_piece += part;
    bytes = bytes.subspan(part);
    if (state_->in_piece == kDigestPiece) {
      append_digest(state_->outer.get(), XXH3_64bits_digest(state_->piece.get()));
      XXH3_64bits_reset(state_->piece.get());
      state_->in_piece = 0;
    }
  }
}

std::uint64_t BlockDigester::finish() {
  if (state_->in_piece != 0) {
    append_digest(state_->outer.get(), XXH3_64bits_digest(state_->piece.get()));
  }
  const std::uint64_t digest = XXH3_64bits_digest(state_->outer.get());
  XXH3_64bits_reset(state_->piece.get());
  XXH3_64bits_reset(state_->outer.get());
  state_->in_piece = 0;
  return digest;
}

std::uint64_t block_digest(std::span<const std::byte> bytes) {
  BlockDigester digester;
  digester.add(bytes);
  return digester.finish();
}

Hash128 digest_root(std::span<const std::uint64_t> table) {
  const StatePointer state = make_state();
  XXH3_128bits_reset(state.get());
  for (const std::uint64_t digest : table) {
    std::byte bytes[8];
    for (std::size_t i = 0; i < 8; ++i) {
      bytes[i] = static_cast<std::byte>((digest >> (8 * i)) & 0xffU);
    }
    XXH3_128bits_update(state.get(), bytes, sizeof bytes);
  }
  const XXH128_hash_t hash = XXH3_128bits_digest(state.get());
  return {hash.high64, hash.low64};
}

}  // namespace holdfast
