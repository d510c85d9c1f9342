// XXH3-128 over a canonical, integer-only encoding: every integer is written as eight
// little-endian bytes, every string as its length and its bytes. Two values are the same exactly
// when the same calls were made on them.
#pragma once

#include <compare>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/units.hpp"

namespace holdfast {

struct Hash128 {
  std::uint64_t high = 0;
  std::uint64_t low = 0;
  friend constexpr auto operator<=>(const Hash128&, const Hash128&) = default;
};

[[nodiscard]] std::string to_string(const Hash128& hash);  // 32 hex digits
[[nodiscard]] Parsed<Hash128> parse_hash(std::string_view text);

class CanonicalHasher {
 public:
  CanonicalHasher& add(std::uint64_t value);
  CanonicalHasher& add(std::string_view text);
  CanonicalHasher& add(Bytes bytes) { return add(bytes.count()); }
  CanonicalHasher& add(Rate rate) { return add(rate.bytes_per_second()); }
  CanonicalHasher& add(Time time) { return add(static_cast<std::uint64_t>(time.picoseconds())); }
  CanonicalHasher& add(const Hash128& hash) { return add(hash.high).add(hash.low); }
  [[nodiscard]] Hash128 finish() const;

 private:
  std::vector<char> bytes_;
};

}  // namespace holdfast
