// Shared by the readers of safetensors headers and indexes; not for other code.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace holdfast {

inline constexpr std::size_t kSafetensorsPrefix = 8;  // bytes of the header's length

// The header's length from the first 8 bytes, checked against the limit and the file's size.
[[nodiscard]] std::uint64_t safetensors_header_length(std::span<const std::byte> bytes,
                                                      std::uint64_t file_size,
                                                      const std::string& file);

}  // namespace holdfast
