// Writing a file as a whole.
#pragma once

#include <string>
#include <string_view>

namespace holdfast {

// Writes beside `path` and renames, so that whoever opens `path` finds the old text or the new one.
// Throws Error(FileUnwritable): no such folder, no permission, no space, or `path` is there and is
// not a plain file; then nothing is left behind and `path` is as it was. Not durable over a power
// failure by itself.
void replace_file(const std::string& path, std::string_view text);

}  // namespace holdfast
