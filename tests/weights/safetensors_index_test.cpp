#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "core/error.hpp"
#include "core/io/safetensors.hpp"
#include "tests/weights/safetensors_files.hpp"

namespace holdfast {
namespace {

using ::testing::HasSubstr;

Error refusal(std::string_view text) {
  try {
    static_cast<void>(read_safetensors_index(text, "model.safetensors.index.json"));
  } catch (const Error& error) {
    return error;
  }
  ADD_FAILURE() << "not refused: " << text;
  return Error(ErrorCode::Unsupported, "");
}

std::string listing(const std::string& file) {
  return "{\"weight_map\":\n{\"a\": \"" + file + "\"}}";
}

TEST(SafetensorsIndex, Reads) {
  const SafetensorsIndex index = read_safetensors_index(
      R"({"metadata": {"total_size": 18446744073709551615, "more": [{"total_size": "no"}]},
          "weight_map": {"b": "x.safetensors", "a": "y.safetensors"}, "other": {"a": [1]}})",
      "f");
  ASSERT_EQ(index.entries.size(), 2U);
  EXPECT_EQ(index.entries[0].tensor, "a");
  EXPECT_EQ(index.entries[0].file, "y.safetensors");
  EXPECT_EQ(index.total_size, 18446744073709551615U);
  EXPECT_EQ(read_safetensors_index(R"({"weight_map":{}})", "f").total_size, std::nullopt);
  // Written by a program that divided.
  EXPECT_EQ(read_safetensors_index(R"({"metadata":{"total_size":1.6e10},"weight_map":{}})", "f")
                .total_size,
            16'000'000'000U);
}

TEST(SafetensorsIndex, RefusesFilesElsewhere) {
  for (const char* file :
       {"/etc/x.safetensors", "../x.safetensors", "a/x.safetensors", "a/../x.safetensors",
        "..\\\\x.safetensors", "c:x.safetensors", "..", "", ".", ".safetensors", "..safetensors",
        "x.bin", "x.safetensors/", "x\\u0000.safetensors", "x.safetensors\\u0000"}) {
    SCOPED_TRACE(file);
    const Error error = refusal(listing(file));
    EXPECT_EQ(error.code(), ErrorCode::BadValue);
    EXPECT_EQ(to_string(error.place()), "model.safetensors.index.json:2:7 (at /weight_map/a)");
  }
  EXPECT_NO_THROW(static_cast<void>(read_safetensors_index(listing("a..b.safetensors"), "f")));
}

TEST(SafetensorsIndex, RefusesWhatMakesNoSense) {
  EXPECT_EQ(refusal("{}").code(), ErrorCode::MissingKey);
  EXPECT_EQ(refusal(R"({"other":{"weight_map":{}}})").code(), ErrorCode::MissingKey);
  for (const char* text : {"[]", "1", "null", R"({"weight_map":1})", R"({"weight_map":[]})",
                           R"({"weight_map":{"a":1}})", R"({"weight_map":{"a":{}}})",
                           R"({"weight_map":{"a":["x.safetensors"]}})",
                           R"({"metadata":{"total_size":-1},"weight_map":{}})",
                           R"({"metadata":{"total_size":"1"},"weight_map":{}})",
                           R"({"metadata":{"total_size":1.5},"weight_map":{}})",
                           R"({"metadata":{"total_size":1e300},"weight_map":{}})"}) {
    SCOPED_TRACE(text);
    EXPECT_EQ(refusal(text).code(), ErrorCode::BadValue);
  }
  EXPECT_EQ(refusal(R"({"weight_map":{"":"x.safetensors"}})").code(), ErrorCode::BadWeights);
  EXPECT_EQ(refusal(R"({"weight_map":{"a":"x.safetensors","a":"x.safetensors"}})").code(),
            ErrorCode::Duplicate);
  EXPECT_EQ(refusal(R"({"weight_map":{},"weight_map":{}})").code(), ErrorCode::Duplicate);
  EXPECT_EQ(refusal(R"({"weight_map":{)").code(), ErrorCode::BadSyntax);
}

class Sharded : public ::testing::Test {
 protected:
  Sharded() {
    write_file("one.safetensors",
               R"({"b":{"dtype":"BF16","shape":[2],"data_offsets":[0,4]},)"
               R"("a":{"dtype":"U8","shape":[3],"data_offsets":[4,7]}})",
               7);
    write_file("two.safetensors", R"({"c":{"dtype":"U8","shape":[5],"data_offsets":[0,5]}})", 5);
  }
  void write_file(const char* name, const std::string& header, std::uint64_t data) {
    write_sparse(directory_.path() / name, with_length(header), 8 + header.size() + data);
  }
  void write_index(const std::string& text) {
    std::ofstream(directory_.path() / "model.safetensors.index.json") << text;
  }
  Manifest read() { return read_safetensors(directory_.path() / "model.safetensors.index.json"); }
  std::string refused() {
    try {
      static_cast<void>(read());
    } catch (const Error& error) {
      return error.what();
    }
    return "not refused";
  }

  TemporaryDirectory directory_;
};

TEST_F(Sharded, ReadsEachFilesHeader) {
  write_index(R"({"metadata":{"total_size":12},"weight_map":{"a":"one.safetensors",
                  "b":"one.safetensors","c":"two.safetensors"}})");
  const Manifest manifest = read();
  ASSERT_EQ(manifest.tensors().size(), 3U);
  EXPECT_EQ(manifest.tensors()[2].name, "c");
  EXPECT_EQ(manifest.total(), Bytes(12));
  EXPECT_EQ(manifest.model(), directory_.path().filename().string());
  EXPECT_EQ(read_safetensors(directory_.path()).hash(), manifest.hash());
}

TEST_F(Sharded, IndexAndFilesMustAgree) {
  write_index(R"({"metadata":{"total_size":13},"weight_map":{"a":"one.safetensors",
                  "b":"one.safetensors","c":"two.safetensors"}})");
  EXPECT_THAT(refused(), HasSubstr("(at /metadata/total_size): total_size is 13"));
  write_index(R"({"weight_map":{"a":"one.safetensors","c":"two.safetensors"}})");
  EXPECT_THAT(refused(), HasSubstr("'b' is in, but is not listed in, 'one.safetensors'"));
  write_index(
      R"({"weight_map":{"a":"one.safetensors","b":"two.safetensors","c":"two.safetensors"}})");
  EXPECT_THAT(refused(), HasSubstr("'b' is in, but is not listed in, 'one.safetensors'"));
  write_index(R"({"weight_map":{"a":"one.safetensors","b":"one.safetensors","c":"two.safetensors",
                  "d":"two.safetensors"}})");
  EXPECT_THAT(refused(), HasSubstr("'d' is listed in, but is not in, 'two.safetensors'"));
  write_index(R"({"weight_map":{"A":"two.safetensors","c":"two.safetensors"}})");
  EXPECT_THAT(refused(), HasSubstr("'A' is listed in, but is not in, 'two.safetensors'"));
}

TEST_F(Sharded, ErrorsOfAFileNameThatFile) {
  write_index(R"({"weight_map":{"a":"three.safetensors"}})");
  EXPECT_THAT(refused(), HasSubstr("three.safetensors: there is no such file"));
  write_file("three.safetensors", R"({"a":{}})", 0);
  EXPECT_THAT(refused(), HasSubstr("three.safetensors (at /a) (byte 13)"));
  write_index(R"({"weight_map":{}})");
  EXPECT_THAT(refused(), HasSubstr("no bytes"));
}

}  // namespace
}  // namespace holdfast
