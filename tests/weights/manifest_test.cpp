#include "core/weights/manifest.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "core/error.hpp"

namespace holdfast {
namespace {

using ::testing::HasSubstr;

std::string refusal(std::vector<Tensor> tensors) {
  try {
    const Manifest manifest("m", std::move(tensors));
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::BadWeights);
    return error.message();
  }
  ADD_FAILURE() << "not refused";
  return "";
}

TEST(Manifest, SortsByNameByteWise) {
  const Manifest manifest("m", {{"b", DType::F32, {2}},
                                {"\xc3\xa9", DType::U8, {1}},  // after every ASCII name
                                {"a", DType::BF16, {3, 5}},
                                {"B", DType::I64, {}}});
  ASSERT_EQ(manifest.tensors().size(), 4U);
  EXPECT_EQ(manifest.tensors()[0].name, "B");
  EXPECT_EQ(manifest.tensors()[3].name, "\xc3\xa9");
  EXPECT_EQ(manifest.offset(0), 0U);
  EXPECT_EQ(manifest.offset(1), 8U);
  EXPECT_EQ(manifest.offset(2), 38U);
  EXPECT_EQ(manifest.bytes(1), Bytes(30));
  EXPECT_EQ(manifest.total(), Bytes(47));
}

TEST(Manifest, KeepsTensorsWithoutBytes) {
  const std::uint64_t huge = std::numeric_limits<std::uint64_t>::max();
  const Manifest manifest("m", {{"none", DType::F32, {huge, huge, 0}}, {"one", DType::U8, {1}}});
  EXPECT_EQ(manifest.tensors().size(), 2U);
  EXPECT_EQ(manifest.bytes(0), Bytes(0));
  EXPECT_EQ(manifest.total(), Bytes(1));
}

TEST(Manifest, Refuses) {
  EXPECT_THAT(refusal({{"a", DType::U8, {1}}, {"a", DType::U8, {2}}}),
              HasSubstr("'a' is there twice"));
  EXPECT_THAT(refusal({{"", DType::U8, {1}}}), HasSubstr("no name"));
  EXPECT_THAT(refusal({}), HasSubstr("no bytes"));
  EXPECT_THAT(refusal({{"a", DType::U8, {0}}}), HasSubstr("no bytes"));
  const std::uint64_t half = std::uint64_t{1} << 63;
  EXPECT_THAT(refusal({{"a", DType::U8, {half, 2}}}), HasSubstr("size of the tensor"));
  EXPECT_THAT(refusal({{"a", DType::BF16, {half}}}), HasSubstr("size of the tensor"));
  EXPECT_THAT(refusal({{"a", DType::U8, {half}}, {"b", DType::U8, {half}}}),
              HasSubstr("size of the model"));
  // One byte less is the greatest model.
  const Manifest greatest("m", {{"a", DType::U8, {half}}, {"b", DType::U8, {half - 1}}});
  EXPECT_EQ(greatest.total(), Bytes(std::numeric_limits<std::uint64_t>::max()));
}

TEST(Manifest, HashDependsOnEverythingButTheOrder) {
  const std::vector<Tensor> tensors{{"a", DType::F16, {2, 3}}, {"b", DType::U8, {4}}};
  const Hash128 hash = Manifest("m", tensors).hash();
  EXPECT_EQ(Manifest("m", {tensors[1], tensors[0]}).hash(), hash);
  EXPECT_NE(Manifest("n", tensors).hash(), hash);
  EXPECT_NE(Manifest("m", {{"a", DType::BF16, {2, 3}}, tensors[1]}).hash(), hash);
  EXPECT_NE(Manifest("m", {{"a", DType::F16, {3, 2}}, tensors[1]}).hash(), hash);
  EXPECT_NE(Manifest("m", {{"c", DType::F16, {2, 3}}, tensors[1]}).hash(), hash);
  EXPECT_NE(Manifest("m", {{"a", DType::F16, {2, 3, 1}}, tensors[1]}).hash(), hash);
  EXPECT_NE(Manifest("m", {tensors[0]}).hash(), hash);
}

TEST(DType, NamesGoThereAndBack) {
  for (int i = 0; i <= static_cast<int>(DType::C64); ++i) {
    const auto dtype = static_cast<DType>(i);
    EXPECT_EQ(parse_dtype(to_string(dtype)), dtype);
  }
  EXPECT_EQ(parse_dtype("BF16"), DType::BF16);
  EXPECT_EQ(parse_dtype("F8_E4M3"), DType::F8E4M3);
  EXPECT_EQ(parse_dtype("bf16"), std::nullopt);
  EXPECT_EQ(parse_dtype("F4"), std::nullopt);
  EXPECT_EQ(bytes_of(DType::Bool), 1U);
  EXPECT_EQ(bytes_of(DType::F8E5M2), 1U);
  EXPECT_EQ(bytes_of(DType::BF16), 2U);
  EXPECT_EQ(bytes_of(DType::U32), 4U);
  EXPECT_EQ(bytes_of(DType::F64), 8U);
}

}  // namespace
}  // namespace holdfast
