#include "core/io/text_file.hpp"

#include <fmt/format.h>

#include <filesystem>
#include <fstream>

#include "core/error.hpp"

namespace holdfast {

std::string read_text_file(const std::string& path, std::uint64_t most) {
  const auto refuse = [&](ErrorCode code, std::string message) {
    return Error(code, std::move(message), Place{path, 0, 0, {}, {}});
  };
  std::error_code failure;
  const auto status = std::filesystem::status(path, failure);
  if (status.type() == std::filesystem::file_type::not_found) {
    throw refuse(ErrorCode::FileNotFound, "there is no such file");
  }
  if (status.type() == std::filesystem::file_type::fifo ||
      status.type() == std::filesystem::file_type::socket) {
    throw refuse(ErrorCode::FileUnreadable,
                 "this is a pipe or socket, which may never end; name a file");
  }
  if (failure || status.type() == std::filesystem::file_type::directory) {
    throw refuse(ErrorCode::FileUnreadable,
                 failure ? failure.message() : "this is a folder; name a file in it");
  }
  std::ifstream stream(path, std::ios::binary);
  if (!stream) throw refuse(ErrorCode::FileUnreadable, "cannot open the file for reading");
  // The size is not asked for: a pipe has none, and a growing file would lie.
  std::string text;
  constexpr std::size_t kPiece = std::size_t{1} << 16;
  while (stream) {
    const std::size_t before = text.size();
    text.resize(before + kPiece);
    stream.read(text.data() + before, static_cast<std::streamsize>(kPiece));
    text.resize(before + static_cast<std::size_t>(stream.gcount()));
    if (text.size() > most) {
      throw refuse(ErrorCode::LimitExceeded,
                   fmt::format("the file is larger than {} bytes, the limit", most));
    }
  }
  if (stream.bad())
    throw refuse(ErrorCode::FileUnreadable, "the file could not be read to its end");
  return text;
}

}  // namespace holdfast
