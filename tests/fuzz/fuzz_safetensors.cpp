// The safetensors readers: whatever the input, a manifest that holds together or an Error.
//
// The first byte chooses: odd, an index; even, a file, whose size is that of the input plus the
// number in the next four bytes, so that headers of large files are reached too.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>
#include <string_view>

#include "core/error.hpp"
#include "core/io/safetensors.hpp"
#include "core/weights/weight_map.hpp"

namespace {

void check(bool holds) {
  if (!holds) std::abort();
}

void read_index(std::string_view text) {
  const auto index = holdfast::read_safetensors_index(text, "index");
  for (const auto& entry : index.entries) {
    check(!entry.tensor.empty());
    check(entry.file.find('/') == std::string::npos && entry.file.ends_with(".safetensors"));
  }
}

void read_header(std::span<const std::byte> bytes, std::uint64_t file_size) {
  const holdfast::Manifest manifest = holdfast::read_safetensors_header(bytes, file_size, "file");
  check(manifest.total().count() < file_size);
  const holdfast::WeightMap map(manifest, {{"one", 1}, {"two", 2}}, holdfast::Bytes(1 << 16));
  holdfast::Bytes total;
  for (std::size_t block = 0; block < map.blocks(); ++block) {
    total += map.bytes_of(holdfast::BlockId(block));
  }
  check(total == manifest.total());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  constexpr std::size_t kChoice = 5;
  if (size < kChoice) return 0;
  const std::span<const std::byte> input = std::as_bytes(std::span(data, size)).subspan(kChoice);
  std::uint64_t more = 0;
  for (std::size_t i = 1; i < kChoice; ++i) more = more << 8U | data[i];
  try {
    if ((data[0] & 1U) != 0) {
      read_index({reinterpret_cast<const char*>(input.data()), input.size()});
    } else {
      read_header(input, input.size() + more);
    }
  } catch (const holdfast::Error&) {
  }
  return 0;
}
