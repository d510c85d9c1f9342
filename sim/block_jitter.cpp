#include "sim/block_jitter.hpp"

#include <algorithm>

#include "core/mix.hpp"

namespace holdfast::sim {
namespace {

__extension__ using Wide = __int128;

// Over a running value: every bit of either reaches every bit of the result.
std::uint64_t mixed(std::uint64_t state, std::uint64_t value) {
  return holdfast::mixed((state ^ value) + kGolden);
}

}  // namespace

std::uint64_t BlockJitter::connection(WorkerId reader, WorkerId source, const Path& path) const {
  std::uint64_t key = mixed(seed_, (std::uint64_t{reader.value()} << 32) | source.value());
  key = mixed(key, (std::uint64_t{path.source_port.value()} << 32) | path.destination_port.value());
  return mixed(key, path.stream);
}

Bytes BlockJitter::amount(Bytes bytes, std::uint64_t connection, std::uint64_t offset) const {
  if (width_ == 0 || bytes == Bytes(0)) return bytes;
  // An odd number of 2^-32, between -1 and 1: as many above zero as below it.
  const std::uint64_t draw = mixed(connection, offset) >> 32;
  const std::int64_t x = 2 * static_cast<std::int64_t>(draw) + 1 - (std::int64_t{1} << 32);
  const auto scale = Wide{1'000'000} << 32;
  const Wide change = Wide{static_cast<std::int64_t>(bytes.count())} * width_ * x;
  const Wide nearest = (change + (change < 0 ? -scale : scale) / 2) / scale;
  const Wide amount = Wide{static_cast<std::int64_t>(bytes.count())} + nearest;
  return Bytes(static_cast<std::uint64_t>(std::max<Wide>(1, amount)));
}

Bytes payload_of(Bytes bytes, Bytes moved, Bytes amount) {
  if (amount == bytes) return moved;
  const auto exact = Wide{static_cast<std::int64_t>(bytes.count())} *
                     static_cast<std::int64_t>(moved.count()) /
                     static_cast<std::int64_t>(amount.count());
  return std::min(bytes, Bytes(static_cast<std::uint64_t>(exact)));
}

}  // namespace holdfast::sim
