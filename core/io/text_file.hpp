// Reading a whole file, with a limit.
#pragma once

#include <cstdint>
#include <string>

namespace holdfast {

// Throws Error: FileNotFound, FileUnreadable (a folder, no permission), LimitExceeded above `most`
// bytes.
[[nodiscard]] std::string read_text_file(const std::string& path, std::uint64_t most);

}  // namespace holdfast
