#include "core/io/safetensors.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <fstream>

#include "core/error.hpp"
#include "tests/weights/safetensors_files.hpp"

namespace holdfast {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

Manifest parse(const std::string& file, std::uint64_t size) {
  return read_safetensors_header(std::as_bytes(std::span(file)), size, "m");
}

// A header over `data` bytes of data that are not there: only the file's size says that they are.
Manifest parse_header(const std::string& header, std::uint64_t data) {
  return parse(with_length(header), 8 + header.size() + data);
}

Error refusal(const std::string& header, std::uint64_t data) {
  try {
    static_cast<void>(parse_header(header, data));
  } catch (const Error& error) {
    return error;
  }
  ADD_FAILURE() << "not refused: " << header;
  return Error(ErrorCode::Unsupported, "");
}

constexpr const char* kGood =
    R"({"__metadata__":{"format":"pt"},"b":{"dtype":"BF16","shape":[2,3],"data_offsets":[4,16]},)"
    R"("a":{"data_offsets":[0,4],"dtype":"F32","shape":[]},)"
    R"("none":{"dtype":"F32","shape":[5,0],"data_offsets":[4,4]}}   )";

TEST(Safetensors, ReadsAHeader) {
  const Manifest manifest = parse_header(kGood, 16);
  EXPECT_EQ(manifest.model(), "m");
  ASSERT_EQ(manifest.tensors().size(), 3U);
  EXPECT_EQ(manifest.tensors()[0].name, "a");
  EXPECT_EQ(manifest.tensors()[0].dtype, DType::F32);
  EXPECT_TRUE(manifest.tensors()[0].shape.empty());
  EXPECT_EQ(manifest.tensors()[1].dtype, DType::BF16);
  EXPECT_THAT(manifest.tensors()[1].shape, ElementsAre(2, 3));
  EXPECT_THAT(manifest.tensors()[2].shape, ElementsAre(5, 0));
  EXPECT_EQ(manifest.total(), Bytes(16));
}

TEST(Safetensors, RefusesEveryTruncationAndExtension) {
  const std::string header = kGood;
  const std::string whole = with_length(header) + std::string(16, 'x');
  EXPECT_NO_THROW(parse(whole, whole.size()));
  for (std::size_t size = 0; size < whole.size(); ++size) {
    EXPECT_THROW(parse(whole.substr(0, size), size), Error) << size;
  }
  EXPECT_THROW(parse(whole + "x", whole.size() + 1), Error);
  // The beginning that was read may be shorter than the file, but not than the header.
  EXPECT_NO_THROW(parse(whole.substr(0, 8 + header.size()), whole.size()));
  EXPECT_THROW(parse(whole.substr(0, 7 + header.size()), whole.size()), Error);
}

TEST(Safetensors, NeverAcceptsADamagedStructure) {
  // Any one byte of the header changed: either refused or another valid header, never a crash; the
  // size of what is accepted is always the data's.
  const std::string whole = with_length(kGood);
  int refused = 0;
  for (std::size_t i = 0; i < whole.size(); ++i) {
    for (const char c : {'\0', '"', '{', '}', '9', ',', '\xff', ' '}) {
      std::string damaged = whole;
      if (damaged[i] == c) continue;
      damaged[i] = c;
      try {
        EXPECT_EQ(parse(damaged, whole.size() + 16).total(), Bytes(16));
      } catch (const Error&) {
        ++refused;
      }
    }
  }
  EXPECT_GT(refused, 1000);
}

TEST(Safetensors, RefusesBadLengths) {
  std::string file = with_length("{}");
  const std::uint64_t limit = 100'000'001;
  std::memcpy(file.data(), &limit, 8);
  try {
    static_cast<void>(parse(file, std::uint64_t{1} << 40));
    ADD_FAILURE() << "not refused";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::LimitExceeded);
    EXPECT_EQ(error.place().offset, 0U);
  }
  const std::uint64_t greater = 11;
  std::memcpy(file.data(), &greater, 8);
  try {
    static_cast<void>(parse(file, 18));
    ADD_FAILURE() << "not refused";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::BadSyntax);
    EXPECT_EQ(error.place().offset, 0U);
  }
  EXPECT_EQ(refusal("", 0).place().offset, 8U);
  EXPECT_EQ(refusal(" {}", 0).place().offset, 8U);
}

struct Bad {
  const char* what;
  const char* header;
  std::uint64_t data;
  ErrorCode code;
  const char* message;
};

const Bad kBad[] = {
    {"overlap",
     R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]},"b":{"dtype":"U8","shape":[4],"data_offsets":[3,7]}})",
     7, ErrorCode::BadWeights, "overlap"},
    {"the same place",
     R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]},"b":{"dtype":"U8","shape":[4],"data_offsets":[0,4]}})",
     4, ErrorCode::BadWeights, "overlap"},
    {"hole",
     R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]},"b":{"dtype":"U8","shape":[4],"data_offsets":[5,9]}})",
     9, ErrorCode::BadWeights, "holes"},
    {"hole at the start", R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[1,5]}})", 5,
     ErrorCode::BadWeights, "holes"},
    {"bytes at the end", R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]}})", 5,
     ErrorCode::BadWeights, "nothing else"},
    {"beyond the end", R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]}})", 3,
     ErrorCode::BadWeights, "truncated"},
    {"backwards", R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[4,0]}})", 4,
     ErrorCode::BadWeights, "ends before"},
    {"size", R"({"a":{"dtype":"U8","shape":[5],"data_offsets":[0,4]}})", 4, ErrorCode::BadWeights,
     "make 5 bytes"},
    {"overflow", R"({"a":{"dtype":"F32","shape":[4294967296,4294967296],"data_offsets":[0,0]}})", 0,
     ErrorCode::BadWeights, "more than 2^64"},
    {"wrapped offsets",
     R"({"a":{"dtype":"U8","shape":[2],"data_offsets":[18446744073709551615,1]}})", 1,
     ErrorCode::BadWeights, "ends before"},
    {"offset above 64 bits",
     R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,18446744073709551616]}})", 1,
     ErrorCode::BadValue, "no 64-bit"},
    {"negative", R"({"a":{"dtype":"U8","shape":[-1],"data_offsets":[0,1]}})", 1,
     ErrorCode::BadValue, "negative"},
    {"real", R"({"a":{"dtype":"U8","shape":[1.0],"data_offsets":[0,1]}})", 1, ErrorCode::BadValue,
     "no 64-bit integer"},
    {"text for a number", R"({"a":{"dtype":"U8","shape":["1"],"data_offsets":[0,1]}})", 1,
     ErrorCode::BadValue, "a string, where a whole number"},
    {"one offset", R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0]}})", 1, ErrorCode::BadValue,
     "two numbers"},
    {"three offsets", R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1,2]}})", 1,
     ErrorCode::BadValue, "more than two"},
    {"no dtype", R"({"a":{"shape":[1],"data_offsets":[0,1]}})", 1, ErrorCode::MissingKey,
     "no dtype"},
    {"no shape", R"({"a":{"dtype":"U8","data_offsets":[0,1]}})", 1, ErrorCode::MissingKey,
     "no shape"},
    {"no offsets", R"({"a":{"dtype":"U8","shape":[1]}})", 1, ErrorCode::MissingKey,
     "no data_offsets"},
    {"what the tensor before had",
     R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},"b":{}})", 1, ErrorCode::MissingKey,
     "no dtype"},
    {"unknown dtype", R"({"a":{"dtype":"F4","shape":[2],"data_offsets":[0,1]}})", 1,
     ErrorCode::Unsupported, "'F4'"},
    {"unknown key", R"({"a":{"dtype":"U8","shapes":[2],"data_offsets":[0,1]}})", 1,
     ErrorCode::UnknownKey, "did you mean 'shape'"},
    {"unknown key of text", R"({"a":{"type":"U8","shape":[2],"data_offsets":[0,1]}})", 1,
     ErrorCode::UnknownKey, "did you mean 'dtype'"},
    {"tensor twice",
     R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},"a":{"dtype":"U8","shape":[1],"data_offsets":[1,2]}})",
     2, ErrorCode::Duplicate, "'a' is there twice"},
    {"key twice", R"({"a":{"dtype":"U8","dtype":"U8","shape":[1],"data_offsets":[0,1]}})", 1,
     ErrorCode::Duplicate, "'dtype'"},
    {"metadata twice",
     R"({"__metadata__":{},"__metadata__":{},"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}})",
     1, ErrorCode::Duplicate, "__metadata__"},
    {"metadata not text",
     R"({"__metadata__":{"x":1},"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}})", 1,
     ErrorCode::BadValue, "a number, where a string"},
    {"nested metadata", R"({"__metadata__":{"x":{"y":"z"}}})", 0, ErrorCode::BadValue,
     "an object, where a string"},
    {"metadata as text", R"({"__metadata__":"x"})", 0, ErrorCode::BadValue, "an object of strings"},
    {"tensor as a number", R"({"a":1})", 0, ErrorCode::BadValue, "a tensor's object"},
    {"tensor as an array", R"({"a":[]})", 0, ErrorCode::BadValue, "a tensor's object"},
    {"dtype as an object", R"({"a":{"dtype":{}}})", 0, ErrorCode::BadValue, "a string"},
    {"dtype as an array", R"({"a":{"dtype":[]}})", 0, ErrorCode::BadValue, "a string"},
    {"shape as a number", R"({"a":{"shape":4}})", 0, ErrorCode::BadValue, "an array of numbers"},
    {"nested shape", R"({"a":{"shape":[[1]]}})", 0, ErrorCode::BadValue, "a whole number"},
    {"no name", R"({"":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}})", 1, ErrorCode::BadWeights,
     "no name"},
    {"no tensors", "{}", 0, ErrorCode::BadWeights, "no bytes"},
    {"not closed", R"({"a":{"dtype":"U8")", 0, ErrorCode::BadSyntax, "JSON"},
    {"two documents", "{}{}", 0, ErrorCode::BadSyntax, "follows"},
    {"not UTF-8", "{\"\xff\":{}}", 0, ErrorCode::BadSyntax, "UTF-8"},
};

TEST(Safetensors, RefusesHostileHeaders) {
  for (const Bad& bad : kBad) {
    SCOPED_TRACE(bad.what);
    const Error error = refusal(bad.header, bad.data);
    EXPECT_EQ(error.code(), bad.code);
    EXPECT_THAT(error.message(), HasSubstr(bad.message));
    if (std::string(bad.what) != "no tensors") {
      ASSERT_TRUE(error.place().offset.has_value());
      EXPECT_GE(*error.place().offset, 8U);
      EXPECT_LE(*error.place().offset, 8 + std::strlen(bad.header));
    }
  }
}

TEST(Safetensors, SaysWhere) {
  const std::string header = R"({"a/b":{"dtype":"U8","shape":[1,-1],"data_offsets":[0,1]}})";
  const Error error = refusal(header, 1);
  EXPECT_EQ(error.place().offset, 8 + header.find("-1"));
  EXPECT_EQ(error.place().pointer, "/a~1b/shape/1");
}

TEST(Safetensors, LimitsDimensionsAndDepth) {
  std::string ones = "1";
  for (int i = 1; i < 64; ++i) ones += ",1";
  const auto header = [](const std::string& shape) {
    return R"({"a":{"dtype":"U8","shape":[)" + shape + R"(],"data_offsets":[0,1]}})";
  };
  EXPECT_NO_THROW(parse_header(header(ones), 1));
  EXPECT_EQ(refusal(header(ones + ",1"), 1).code(), ErrorCode::LimitExceeded);
  EXPECT_THROW(parse_header("{\"a\":" + std::string(1'000'000, '['), 0), Error);
  EXPECT_THROW(parse_header(header(std::string(1'000'000, '[')), 0), Error);
}

TEST(Safetensors, NamesAreEscapedInMessages) {
  const Error error = refusal("{\"a\\u001b[31m\\n\":{}}", 0);
  EXPECT_EQ(std::string(error.what()).find('\x1b'), std::string::npos);
  EXPECT_EQ(std::string(error.what()).find('\n'), std::string::npos);
}

// A sparse file: 5 GiB of data in one tensor, so that sizes and offsets exceed 32 bits.
TEST(Safetensors, ReadsFilesAboveFourGibibytes) {
  const TemporaryDirectory directory;
  const std::string header =
      R"({"big":{"dtype":"F32","shape":[1342177280],"data_offsets":[0,5368709120]}})";
  const auto path = directory.path() / "huge.safetensors";
  write_sparse(path, with_length(header), 8 + header.size() + 5'368'709'120);
  const Manifest manifest = read_safetensors(path);
  EXPECT_EQ(manifest.total(), Bytes(5'368'709'120));
  EXPECT_EQ(manifest.model(), "huge");
  std::filesystem::resize_file(path, 8 + header.size() + 1'073'741'824);  // the same modulo 2^32
  EXPECT_THROW(static_cast<void>(read_safetensors(path)), Error);
}

TEST(Safetensors, NamesTheModel) {
  const TemporaryDirectory directory;
  const std::string header = R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}})";
  const auto folder = directory.path() / "my-model";
  std::filesystem::create_directory(folder);
  write_sparse(folder / "model.safetensors", with_length(header), 9 + header.size());
  EXPECT_EQ(read_safetensors(folder / "model.safetensors").model(), "my-model");
  EXPECT_EQ(read_safetensors(folder).model(), "my-model");
}

TEST(Safetensors, RefusesWhatIsNotAFile) {
  const TemporaryDirectory directory;
  const auto code = [](const std::filesystem::path& path) {
    try {
      static_cast<void>(read_safetensors(path));
    } catch (const Error& error) {
      EXPECT_EQ(error.place().file.find(path.string()), 0U);
      return error.code();
    }
    ADD_FAILURE() << "not refused";
    return ErrorCode::Unsupported;
  };
  EXPECT_EQ(code(directory.path() / "none.safetensors"), ErrorCode::FileNotFound);
  EXPECT_EQ(code(directory.path()), ErrorCode::FileNotFound);
  EXPECT_EQ(code(directory.path() / "model.bin"), ErrorCode::BadValue);
  EXPECT_EQ(code(directory.path() / ".safetensors"), ErrorCode::BadValue);
  std::filesystem::create_symlink("/dev/zero", directory.path() / "zero.safetensors");
  EXPECT_EQ(code(directory.path() / "zero.safetensors"), ErrorCode::FileUnreadable);
  std::ofstream(directory.path() / "empty.safetensors").flush();
  EXPECT_EQ(code(directory.path() / "empty.safetensors"), ErrorCode::BadSyntax);
}

}  // namespace
}  // namespace holdfast
