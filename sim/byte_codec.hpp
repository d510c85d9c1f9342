// Plain values as bytes, between a process and its forked child (same program, same machine).
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/error.hpp"
#include "core/units.hpp"
#include "sim/simulation.hpp"

namespace holdfast::sim {

class ByteWriter {
 public:
  void number(std::uint64_t value) {
    const auto* first = reinterpret_cast<const std::byte*>(&value);
    bytes.insert(bytes.end(), first, first + sizeof(value));
  }
  void text(const std::string& value) {
    number(value.size());
    const auto* first = reinterpret_cast<const std::byte*>(value.data());
    bytes.insert(bytes.end(), first, first + value.size());
  }
  void maybe(const std::optional<Time>& value) {
    number(value ? 1 : 0);
    if (value) time(*value);
  }
  void time(Time value) { number(static_cast<std::uint64_t>(value.picoseconds())); }

  std::vector<std::byte> bytes;
};

// Throws Error(BadSyntax) on bytes that ByteWriter did not make.
class ByteReader {
 public:
  explicit ByteReader(std::span<const std::byte> bytes) : bytes_(bytes) {}

  std::uint64_t number() {
    std::uint64_t value = 0;
    std::memcpy(&value, take(sizeof(value)).data(), sizeof(value));
    return value;
  }
  std::uint32_t id() { return static_cast<std::uint32_t>(number()); }
  Time time() { return Time(static_cast<std::int64_t>(number())); }
  std::optional<Time> maybe() {
    if (number() == 0) return std::nullopt;
    return time();
  }
  std::string text() {
    const auto part = take(number());
    return {reinterpret_cast<const char*>(part.data()), part.size()};
  }
  // A number of entries, each of which takes at least eight bytes.
  std::size_t count() {
    const std::uint64_t value = number();
    if (value > bytes_.size() / sizeof(std::uint64_t)) refuse();
    return value;
  }
  void end() const {
    if (!bytes_.empty()) refuse();
  }

 private:
  std::span<const std::byte> take(std::uint64_t size) {
    if (size > bytes_.size()) refuse();
    const auto part = bytes_.first(size);
    bytes_ = bytes_.subspan(size);
    return part;
  }
  [[noreturn]] static void refuse() {
    throw Error(ErrorCode::BadSyntax, "the simulation process sent an incomplete result");
  }
  std::span<const std::byte> bytes_;
};

void write_channels(ByteWriter& out, const std::vector<ChannelUse>& channels);
[[nodiscard]] std::vector<ChannelUse> read_channels(ByteReader& in);

}  // namespace holdfast::sim
