#include "core/io/atomic_file.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "core/error.hpp"

namespace holdfast {
namespace {

namespace fs = std::filesystem;

class AtomicFileTest : public ::testing::Test {
 protected:
  AtomicFileTest() {
    fs::remove_all(folder_);
    fs::create_directories(folder_);
  }
  ~AtomicFileTest() override { fs::remove_all(folder_); }

  static std::string text_of(const fs::path& path) {
    std::stringstream text;
    text << std::ifstream(path).rdbuf();
    return text.str();
  }
  [[nodiscard]] std::size_t files() const {
    return static_cast<std::size_t>(std::distance(fs::directory_iterator(folder_), {}));
  }
  static ErrorCode refusal(const fs::path& path) {
    try {
      replace_file(path.string(), "text");
    } catch (const Error& error) {
      EXPECT_EQ(error.place().file, path.string());
      return error.code();
    }
    return ErrorCode::NoEffect;
  }

  fs::path folder_ = fs::temp_directory_path() / "holdfast-atomic-file-test";
};

TEST_F(AtomicFileTest, CreatesAndReplaces) {
  const fs::path path = folder_ / "file";
  replace_file(path.string(), "first text");
  EXPECT_EQ(text_of(path), "first text");
  replace_file(path.string(), "second");
  EXPECT_EQ(text_of(path), "second");
  EXPECT_EQ(files(), 1U);
}

TEST_F(AtomicFileTest, WhoHasTheOldFileOpenKeepsReadingIt) {
  const fs::path path = folder_ / "file";
  replace_file(path.string(), "first text");
  std::ifstream open(path);
  replace_file(path.string(), "second");
  std::stringstream text;
  text << open.rdbuf();
  EXPECT_EQ(text.str(), "first text");
}

TEST_F(AtomicFileTest, FollowsSymbolicLinks) {
  const fs::path path = folder_ / "file";
  replace_file(path.string(), "first");
  fs::create_symlink(path, folder_ / "link");
  replace_file((folder_ / "link").string(), "second");
  EXPECT_TRUE(fs::is_symlink(folder_ / "link"));
  EXPECT_EQ(text_of(path), "second");
}

TEST_F(AtomicFileTest, RefusesAndLeavesNothingBehind) {
  fs::create_directories(folder_ / "inner");
  EXPECT_EQ(refusal(folder_ / "inner"), ErrorCode::FileUnwritable);
  EXPECT_EQ(refusal(folder_ / "nowhere" / "file"), ErrorCode::FileUnwritable);
  EXPECT_EQ(refusal("/dev/null"), ErrorCode::FileUnwritable);
  EXPECT_EQ(files(), 1U);
}

}  // namespace
}  // namespace holdfast
