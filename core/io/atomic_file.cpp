#include "core/io/atomic_file.hpp"

#include <fmt/format.h>

#include <filesystem>
#include <fstream>
#include <random>
#include <system_error>
#include <utility>

#include "core/error.hpp"

namespace holdfast {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void refuse(const std::string& path, std::string message) {
  throw Error(ErrorCode::FileUnwritable, std::move(message), Place{path, 0, 0, {}, {}});
}

}  // namespace

void replace_file(const std::string& path, std::string_view text) {
  std::error_code failure;
  // Through a symbolic link the file that it points to is replaced, not the link.
  fs::path target = path;
  if (fs::exists(path, failure)) {
    target = fs::canonical(path, failure);
    if (failure) refuse(path, failure.message());
    if (!fs::is_regular_file(target, failure)) {
      refuse(path, "this is there and is not a plain file; name another");
    }
  }
  // Two programs may write the same file at once.
  fs::path beside = target;
  beside += fmt::format(".{:08x}.partial", std::random_device{}());
  std::ofstream stream(beside, std::ios::binary | std::ios::trunc);
  if (!stream) refuse(path, "cannot create a file in its folder; is the folder there?");
  stream.write(text.data(), static_cast<std::streamsize>(text.size()));
  stream.close();
  if (stream) fs::rename(beside, target, failure);
  if (stream && !failure) return;
  const std::string why = failure ? failure.message() : "not all of it could be written";
  fs::remove(beside, failure);
  refuse(path, why);
}

}  // namespace holdfast
