#include "core/io/plan_json.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "core/error.hpp"
#include "core/plan/checker.hpp"
#include "tests/plan/plan_fixtures.hpp"

namespace holdfast {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

template <class Call>
Error error_of(Call&& call) {
  try {
    call();
  } catch (const Error& error) {
    return error;
  }
  ADD_FAILURE() << "no error";
  return Error(ErrorCode::BadValue, "none");
}

Error parse_error(const std::string& text) {
  return error_of([&] { (void)parse_plan(text, "p.json"); });
}

// The text with its only occurrence of `from` replaced.
std::string with(std::string text, const std::string& from, const std::string& to) {
  const std::size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  if (at == std::string::npos) return text;
  EXPECT_EQ(text.find(from, at + 1), std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

class PlanJsonTest : public ::testing::Test {
 protected:
  PlanJsonTest() {
    const Demand demand = fixtures::broadcast_demand(cluster_, 5);
    file_ = make_plan_file(fixtures::chain_plan(router_, demand, 2), demand, cluster_.topology);
    text_ = to_json(file_);
  }
  fixtures::Cluster cluster_ = fixtures::cluster(2, 2);
  Router router_{cluster_.topology};
  PlanFile file_;
  std::string text_;
};

TEST_F(PlanJsonTest, LooksLikeThis) {
  // The file as a person sees it; hashes are those of the topology and the demand.
  const std::string expected = "{\"format\": 1,\n \"plan\": {\"format\": 1,\n  \"topology\": \"" +
                               to_string(cluster_.topology.hash()) + "\",\n  \"demand\": \"" +
                               to_string(hash_of(file_.demand)) +
                               R"(",
  "stripes": [
   {"class": 0, "blocks": {"first": 0, "step": 2, "end": 5},
    "edges": [
     [1,0,null,5,8,0,2],
     [2,1,0,9,15,0,2],
     [3,2,0,14,17,0,2]]},
   {"class": 0, "blocks": {"first": 1, "step": 2, "end": 5},
    "edges": [
     [1,0,null,5,8,0,2],
     [2,1,0,9,15,0,2],
     [3,2,0,14,17,0,2]]}]},
 "demand": {"model": "model",
  "version": {"lineage": 1, "number": 2},
  "block_size": 1000,
  "verify": true,
  "block_bytes": [[1000,4],[10,1]],
  "workers": [
   {"node": 5, "name": "h0g0", "group": 0, "memory_free": 1000000000, "may_serve": true},
   {"node": 8, "name": "h0g1", "group": 1, "memory_free": 1000000000, "may_serve": true},
   {"node": 14, "name": "h1g0", "group": 2, "memory_free": 1000000000, "may_serve": true},
   {"node": 17, "name": "h1g1", "group": 3, "memory_free": 1000000000, "may_serve": true}],
  "classes": [
   {"blocks": [[0,5]],
    "holders": [0],
    "receivers": [1,2,3]}]}}
)";
  EXPECT_EQ(text_, expected);
}

TEST_F(PlanJsonTest, RoundTripIsExact) {
  const PlanFile read = parse_plan(text_, "p.json");
  EXPECT_EQ(read, file_);
  EXPECT_EQ(hash_of(read.plan), hash_of(file_.plan));
  EXPECT_EQ(hash_of(read.demand), hash_of(file_.demand));
  EXPECT_EQ(to_json(read), text_);
  EXPECT_NO_THROW(validate(read, cluster_.topology));
  EXPECT_THAT(check(read.plan, read.demand, router_), IsEmpty());
}

TEST_F(PlanJsonTest, RoundTripKeepsTheExtremes) {
  constexpr std::uint32_t kMost = 0xffffffffU;
  file_.plan.format = kMost;
  file_.plan.stripes[0] = {
      ClassId(), {kMost, 0, kMost}, {{WorkerId(), WorkerId(), WorkerId(), {}, kMost}}};
  file_.plan.stripes[1].edges.clear();
  file_.plan.stripes[1].block_class = ClassId(kMost - 1);
  file_.demand.model = "a \"model\" \\ with\n\x01 and \xc3\xa9";
  file_.demand.version = {~std::uint64_t{0}, ~std::uint64_t{0}};
  file_.demand.block_size = Bytes(~std::uint64_t{0});
  file_.demand.block_bytes = {Bytes(0), Bytes(~std::uint64_t{0}), Bytes(0)};
  file_.demand.workers[0].memory_free = Bytes(~std::uint64_t{0});
  file_.demand.workers[0].may_serve = false;
  file_.demand.verify = false;
  file_.demand.classes.push_back({});
  EXPECT_EQ(parse_plan(to_json(file_), "p.json"), file_);
  file_.demand.block_bytes.clear();
  file_.demand.workers.clear();
  file_.demand.classes.clear();
  file_.node_names.clear();
  file_.plan.stripes.clear();
  EXPECT_EQ(parse_plan(to_json(file_), "p.json"), file_);
}

TEST(PlanJsonProperty, RoundTripsRandomPlans) {
  const fixtures::Cluster cluster = fixtures::cluster(3, 2);
  const Router router(cluster.topology);
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    SCOPED_TRACE(::testing::Message() << "seed " << seed);
    fixtures::Random random(seed);
    const Demand demand = fixtures::random_demand(cluster, random);
    const PlanFile file =
        make_plan_file(fixtures::random_plan(router, demand, random), demand, cluster.topology);
    EXPECT_EQ(parse_plan(to_json(file), "p.json"), file);
  }
}

TEST_F(PlanJsonTest, TheOrderOfKeysDoesNotMatter) {
  std::string text = with(text_, "\"model\": \"model\",\n", "");
  text = with(text, "\"verify\": true,", "\"verify\": true, \"model\": \"model\",");
  EXPECT_EQ(parse_plan(text, "p.json"), file_);
}

TEST_F(PlanJsonTest, RefusesWithPlaceAndWhatToWrite) {
  struct Case {
    std::string from;
    std::string to;
    ErrorCode code;
    std::string what;  // place and message
  };
  const std::vector<Case> cases = {
      {"{\"format\": 1,\n \"plan\"", "{\"format\": 2,\n \"plan\"", ErrorCode::Unsupported,
       "p.json:1:12 (at /format): a plan file of format 2; this version reads format 1"},
      {"\"verify\": true,", "\"verify\": yes,", ErrorCode::BadSyntax, "p.json:19:"},
      {"\"verify\": true,", "\"verify\": 1,", ErrorCode::BadValue,
       "p.json:19:13 (at /demand/verify): this is a number; write true or false"},
      {"\"verify\"", "\"verfy\"", ErrorCode::UnknownKey,
       "(at /demand/verfy): unknown key 'verfy'; did you mean 'verify'?"},
      {"  \"verify\": true,\n", "", ErrorCode::MissingKey,
       "(at /demand): the key 'verify' is missing; write true or false"},
      {"\"verify\": true,", "\"verify\": true, \"verify\": false,", ErrorCode::Duplicate,
       "'verify' is there twice"},
      {"\"block_size\": 1000", "\"block_size\": -1", ErrorCode::BadValue,
       "this is a negative number; write an integer from 0 to 18446744073709551615"},
      {"\"block_size\": 1000", "\"block_size\": 1e3", ErrorCode::BadValue, "no 64-bit integer"},
      {"\"block_size\": 1000", "\"block_size\": 18446744073709551616", ErrorCode::BadValue,
       "no 64-bit integer"},
      {"\"block_size\": 1000", "\"block_size\": \"1000\"", ErrorCode::BadValue, "this is a string"},
      {"\"block_size\": 1000", "\"block_size\": [1000]", ErrorCode::BadValue,
       "(at /demand/block_size): this is an array; write an integer"},
      {"[[1000,4],[10,1]]", "[[1000,4],[10]]", ErrorCode::BadValue,
       "(at /demand/block_bytes/1): 1 values; write an array of 2 values (bytes, count)"},
      {"[[1000,4],[10,1]]", "[[1000,4],[10,1,7]]", ErrorCode::BadValue,
       "(at /demand/block_bytes/1/2): too many values; write an array of 2"},
      {"[[1000,4],[10,1]]", "[[1000,4],10]", ErrorCode::BadValue,
       "(at /demand/block_bytes/1): this is a number; write an array of 2 values"},
      {"[[1000,4],[10,1]]", "[[1000,4],[10,0]]", ErrorCode::BadValue,
       "(at /demand/block_bytes/1/1): this is 0; write an integer from 1"},
      {"[[1000,4],[10,1]]", "[[1000,4294967295]]", ErrorCode::LimitExceeded,
       "(at /demand/block_bytes/0): more than 16777216 blocks"},
      {"[[0,5]]", "[[0,5.0]]", ErrorCode::BadValue, "(at /demand/classes/0/blocks/0/1)"},
      {"\"receivers\": [1,2,3]", "\"receivers\": [1,4294967296,3]", ErrorCode::BadValue,
       "(at /demand/classes/0/receivers/1): this is 4294967296; write an integer from 0 to "
       "4294967295"},
      {"\"receivers\": [1,2,3]", "\"receivers\": {}", ErrorCode::BadValue,
       "(at /demand/classes/0/receivers): this is an object; write an array"},
      {"\"receivers\": [1,2,3]", "\"receivers\": null", ErrorCode::BadValue, "this is null"},
      {to_string(hash_of(file_.demand)), "abc", ErrorCode::BadValue,
       "(at /plan/demand): 'abc' is not a hash; write 32 hexadecimal digits"},
      {"[3,2,0,14,17,0,2]]},\n", "[3,2,4294967295,14,17,0,2]]},\n", ErrorCode::BadValue,
       "p.json:10:11 (at /plan/stripes/0/edges/2/2): this is 4294967295; write an integer from 0 "
       "to "
       "4294967294 or null"},
      {"[3,2,0,14,17,0,2]]},\n", "[3,2,0,14,17,0]]},\n", ErrorCode::BadValue,
       "p.json:10:6 (at /plan/stripes/0/edges/2): 6 values; write an array of 7 values (child, "
       "parent, alternate, source_port, destination_port, stream, window)"},
  };
  for (const Case& it : cases) {
    SCOPED_TRACE(it.from + " -> " + it.to);
    const Error error = parse_error(with(text_, it.from, it.to));
    EXPECT_EQ(error.code(), it.code) << error.what();
    EXPECT_THAT(error.what(), StartsWith("p.json:"));
    EXPECT_THAT(error.what(), HasSubstr(it.what));
  }
}

TEST_F(PlanJsonTest, RefusesWhatIsNoPlanFile) {
  EXPECT_EQ(parse_error("").code(), ErrorCode::BadSyntax);
  EXPECT_EQ(parse_error("[]").code(), ErrorCode::BadValue);
  EXPECT_EQ(parse_error("7").code(), ErrorCode::BadValue);
  EXPECT_THAT(parse_error("7").what(), HasSubstr("write an object with format, plan, demand"));
  EXPECT_EQ(parse_error("{}").code(), ErrorCode::MissingKey);
  EXPECT_EQ(parse_error(text_ + "x").code(), ErrorCode::BadSyntax);
  EXPECT_EQ(parse_error(std::string(100'000, '[')).code(), ErrorCode::BadValue);
  EXPECT_EQ(parse_error(std::string(kPlanFileMost + 1, ' ')).code(), ErrorCode::LimitExceeded);
  for (std::size_t length = 0; length + 1 < text_.size(); length += 7) {
    EXPECT_THROW((void)parse_plan(text_.substr(0, length), "p.json"), Error) << length;
  }
}

TEST_F(PlanJsonTest, ValidateNamesAnotherTopology) {
  file_.node_names[2] = "h7g0";
  const Error error = error_of([&] { validate(file_, cluster_.topology); });
  EXPECT_EQ(error.code(), ErrorCode::UnknownName);
  EXPECT_EQ(error.place().pointer, "/demand/workers/2/name");
  EXPECT_THAT(error.message(), HasSubstr("node 14 is 'h7g0' here and 'h1g0' in topology"));
  file_.demand.workers[2].node = NodeId(9'999U);
  EXPECT_EQ(error_of([&] { validate(file_, cluster_.topology); }).code(), ErrorCode::BadPlan);
}

TEST_F(PlanJsonTest, RefusesToWriteWhatItCouldNotRead) {
  PlanFile nameless = file_;
  nameless.node_names.pop_back();
  EXPECT_EQ(error_of([&] { (void)to_json(nameless); }).code(), ErrorCode::BadValue);
  file_.demand.model = "\xff\xfe";
  EXPECT_EQ(error_of([&] { (void)to_json(file_); }).code(), ErrorCode::BadValue);
  file_.demand.model = "model";
  const std::vector<Edge> edges(3'000'000, file_.plan.stripes[0].edges[0]);
  file_.plan.stripes[0].edges = edges;
  EXPECT_EQ(error_of([&] { (void)to_json(file_); }).code(), ErrorCode::LimitExceeded);
}

TEST_F(PlanJsonTest, WritesAndReadsFiles) {
  const auto folder = std::filesystem::temp_directory_path() / "holdfast-plan-json-test";
  std::filesystem::remove_all(folder);
  std::filesystem::create_directories(folder);
  const std::string path = (folder / "plan.json").string();
  EXPECT_EQ(error_of([&] { (void)read_plan(path); }).code(), ErrorCode::FileNotFound);
  std::ofstream(path) << "old";
  write_plan(path, file_);
  EXPECT_EQ(read_plan(path), file_);
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder), {}), 1);
  std::filesystem::remove_all(folder);
}

// What the schema refuses and accepts, by a validator that is not ours.
TEST_F(PlanJsonTest, AgreesWithTheSchema) {
  if (std::system("python3 -c 'import jsonschema' >/dev/null 2>&1") != 0) {
    GTEST_SKIP() << "python3 with jsonschema is not installed (python3-jsonschema)";
  }
  const std::vector<std::pair<std::string, std::string>> changes = {
      {"{\"format\": 1,\n \"plan\"", "{\"format\": 2,\n \"plan\""},
      {"\"verify\": true,", "\"verify\": 1,"},
      {"\"verify\"", "\"verfy\""},
      {"  \"verify\": true,\n", ""},
      {"\"block_size\": 1000", "\"block_size\": -1"},
      {"\"block_size\": 1000", "\"block_size\": 18446744073709551616"},
      {"[[1000,4],[10,1]]", "[[1000,4],[10]]"},
      {"[[1000,4],[10,1]]", "[[1000,4],[10,1,7]]"},
      {"[[1000,4],[10,1]]", "[[1000,4],[10,0]]"},
      {"[[0,5]]", "[[0,5.5]]"},
      {"\"receivers\": [1,2,3]", "\"receivers\": [1,4294967296,3]"},
      {to_string(hash_of(file_.demand)), "abc"},
      {"[3,2,0,14,17,0,2]]},\n", "[3,2,4294967295,14,17,0,2]]},\n"},
      {"[3,2,0,14,17,0,2]]},\n", "[3,2,0,14,17,0]]},\n"},
      {"[3,2,0,14,17,0,2]]},\n", "[3,null,0,14,17,0,2]]},\n"},
  };
  const auto folder = std::filesystem::temp_directory_path() / "holdfast-plan-schema-test";
  std::filesystem::remove_all(folder);
  std::filesystem::create_directories(folder);
  const std::string command = std::string("python3 ") + HOLDFAST_SOURCE_DIR +
                              "/tests/io/validate_json.py " + HOLDFAST_SOURCE_DIR +
                              "/core/io/schemas/plan.schema.json ";
  const std::string good = (folder / "good.json").string();
  std::ofstream(good) << text_;
  EXPECT_EQ(std::system((command + good).c_str()), 0);
  std::string bad;
  for (std::size_t i = 0; i < changes.size(); ++i) {
    const std::string text = with(text_, changes[i].first, changes[i].second);
    EXPECT_THROW((void)parse_plan(text, "p.json"), Error) << changes[i].second;
    bad += (folder / ("bad" + std::to_string(i) + ".json ")).string();
    std::ofstream(folder / ("bad" + std::to_string(i) + ".json")) << text;
  }
  EXPECT_EQ(WEXITSTATUS(std::system((command + bad).c_str())), 1);
  std::filesystem::remove_all(folder);
}

// 2,048 hosts of 8 GPUs, each GPU wants everything: 16 stripes with an edge for each GPU.
TEST(PlanJsonScale, APlanForThousandsOfGpusFits) {
  const fixtures::Cluster cluster = fixtures::cluster(2'048, 8);
  const Router router(cluster.topology);
  const Demand demand = fixtures::broadcast_demand(cluster, 8 * 1'024);
  const PlanFile file =
      make_plan_file(fixtures::chain_plan(router, demand, 16), demand, cluster.topology);
  const std::string text = to_json(file);
  RecordProperty("bytes", std::to_string(text.size()));
  EXPECT_LT(text.size(), kPlanFileMost);
  EXPECT_EQ(parse_plan(text, "p.json"), file);
}

}  // namespace
}  // namespace holdfast
