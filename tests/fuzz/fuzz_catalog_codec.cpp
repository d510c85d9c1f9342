// What comes over the control connection: the decoder takes anything, and what it accepts it writes
// in a way that it accepts again, as the same bytes.
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "real/control/catalog_codec.hpp"

namespace {

using namespace holdfast;
using namespace holdfast::real;

constexpr Time kNow = seconds(1'000);

void require(bool condition) {
  if (!condition) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  CatalogCodec first(nullptr);
  if (const auto frame = first.decode_to_coordinator(bytes, kNow)) {
    const std::string once = CatalogCodec(nullptr).encode(*frame, kNow);
    const auto again = CatalogCodec(nullptr).decode_to_coordinator(once, kNow);
    require(again.has_value());
    require(CatalogCodec(nullptr).encode(*again, kNow) == once);
  }
  if (const auto frame = first.decode_to_worker(bytes, kNow)) {
    const std::string once = CatalogCodec(nullptr).encode(*frame, kNow);
    const auto again = CatalogCodec(nullptr).decode_to_worker(once, kNow);
    require(again.has_value());
    require(CatalogCodec(nullptr).encode(*again, kNow) == once);
  }
  return 0;
}
