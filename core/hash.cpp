#include "core/hash.hpp"

#include <fmt/format.h>
#include <xxhash.h>

#include <array>
#include <charconv>

#include "core/quote.hpp"

namespace holdfast {

std::string to_string(const Hash128& hash) {
  return fmt::format("{:016x}{:016x}", hash.high, hash.low);
}

Parsed<Hash128> parse_hash(std::string_view text) {
  const auto half = [&](std::size_t at, std::uint64_t& value) {
    const char* first = text.data() + at;
    const auto [end, status] = std::from_chars(first, first + 16, value, 16);
    return status == std::errc() && end == first + 16;
  };
  Hash128 hash;
  if (text.size() != 32 || !half(0, hash.high) || !half(16, hash.low)) {
    return tl::unexpected(
        fmt::format("{} is not a hash; write 32 hexadecimal digits", quote(text)));
  }
  return hash;
}

CanonicalHasher& CanonicalHasher::add(std::uint64_t value) {
  std::array<char, 8> little_endian{};
  for (std::size_t i = 0; i < little_endian.size(); ++i) {
    little_endian[i] = static_cast<char>((value >> (8 * i)) & 0xffU);
  }
  bytes_.insert(bytes_.end(), little_endian.begin(), little_endian.end());
  return *this;
}

CanonicalHasher& CanonicalHasher::add(std::string_view text) {
  add(std::uint64_t{text.size()});
  bytes_.insert(bytes_.end(), text.begin(), text.end());
  return *this;
}

Hash128 CanonicalHasher::finish() const {
  const XXH128_hash_t hash = XXH3_128bits(bytes_.data(), bytes_.size());
  return {hash.high64, hash.low64};
}

}  // namespace holdfast
