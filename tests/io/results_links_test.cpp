#include "core/io/results_links.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <sstream>

#include "core/io/results.hpp"
#include "tests/io/results_samples.hpp"

namespace holdfast {
namespace {

using ::testing::HasSubstr;

const std::string kHead = "policy,link,start_s,end_s,bytes,capacity_bytes_per_s\n";

std::vector<PolicyTraffic> parse(const std::string& text) {
  std::istringstream in(text);
  return read_links(in, "links.csv");
}

TEST(ResultsLinks, ReadsRowsIntoLinks) {
  const auto all = parse(kHead +
                         "star,a >,0,1.5,10,7\n"
                         "star,a >,1.5,3,20,7\n"
                         "star,\"b,\"\"c\"\" <\",0,3,5,9\n"
                         "chain,a >,0,0.000000000001,1,7\n");
  ASSERT_EQ(all.size(), 2U);
  EXPECT_EQ(all[0].policy, "star");
  EXPECT_EQ(all[0].end, seconds(3));
  ASSERT_EQ(all[0].links.size(), 2U);
  EXPECT_EQ(all[0].links[0].link, "a >");
  EXPECT_EQ(all[0].links[0].bytes, Bytes(30));
  EXPECT_EQ(all[0].links[0].capacity, Rate(7));
  EXPECT_EQ(all[0].links[0].bins, (std::vector<Bytes>{Bytes(10), Bytes(20)}));
  EXPECT_EQ(all[0].links[1].link, "b,\"c\" <");
  EXPECT_EQ(all[1].end, picoseconds(1));
  EXPECT_TRUE(parse(kHead).empty());
}

struct Wrong {
  const char* rows;
  ErrorCode code;
  int line;
  int column;
  const char* message;
};

const Wrong kWrong[] = {
    {"a,l,0,1,1,1", ErrorCode::BadSyntax, 2, 12, "in the middle of a row"},
    {"a,l,0,1,1\n", ErrorCode::BadSyntax, 2, 10, "6 fields"},
    {"a,l,0,1,1,1,\n", ErrorCode::BadSyntax, 2, 12, "6 fields"},
    {"\n", ErrorCode::BadSyntax, 2, 1, "6 fields"},
    {",l,0,1,1,1\n", ErrorCode::BadValue, 2, 1, "policy has a name"},
    {"a,,0,1,1,1\n", ErrorCode::BadValue, 2, 3, "link has a name"},
    {"a,\"l,0,1,1,1\n", ErrorCode::BadSyntax, 2, 3, "never closed"},
    {"a,l\"m,0,1,1,1\n", ErrorCode::BadSyntax, 2, 3, "must be quoted"},
    {"a,\"l\"m,0,1,1,1\n", ErrorCode::BadSyntax, 2, 6, "6 fields"},
    {"a,l,-1,1,1,1\n", ErrorCode::BadValue, 2, 5, "seconds"},
    {"a,l,0,1e3,1,1\n", ErrorCode::BadValue, 2, 7, "seconds"},
    {"a,l,0,1.,1,1\n", ErrorCode::BadValue, 2, 7, "seconds"},
    {"a,l,0,.5,1,1\n", ErrorCode::BadValue, 2, 7, "seconds"},
    {"a,l,0,0.0000000000001,1,1\n", ErrorCode::BadValue, 2, 7, "twelve decimals"},
    {"a,l,0,99999999,1,1\n", ErrorCode::BadValue, 2, 7, "seconds"},
    {"a,l,1,2,1,1\n", ErrorCode::BadValue, 2, 5, "begins at 0"},
    {"a,l,0,1,1.5,1\n", ErrorCode::BadValue, 2, 9, "whole number"},
    {"a,l,0,1,99999999999999999999,1\n", ErrorCode::BadValue, 2, 9, "64 bits"},
    {"a,l,0,1,1,0\n", ErrorCode::BadValue, 2, 11, "above zero"},
    {"a,l,0,2,1,1\na,l,2,1,1,1\n", ErrorCode::BadValue, 3, 7, "before it begins"},
    {"a,l,0,1,1,1\na,l,2,3,1,1\n", ErrorCode::BadValue, 3, 5, "where the one before ends"},
    {"a,l,0,1,1,1\na,l,1,2,1,2\n", ErrorCode::BadValue, 3, 11, "another capacity"},
    {"a,l,0,1,18446744073709551615,1\na,l,1,2,1,1\n", ErrorCode::LimitExceeded, 3, 9, "64 bits"},
    {"a,l,0,1,1,1\na,m,0,2,1,1\n", ErrorCode::BadValue, 3, 1, "end at another time"},
    {"a,l,0,1,1,1\na,m,0,1,1,1\na,l,0,1,1,1\n", ErrorCode::Duplicate, 4, 3, "stand together"},
    {"a,l,0,1,1,1\nb,l,0,1,1,1\na,m,0,1,1,1\n", ErrorCode::Duplicate, 4, 1, "stand together"},
};

TEST(ResultsLinks, RefusesWithLineAndColumn) {
  for (const Wrong& wrong : kWrong) {
    SCOPED_TRACE(wrong.rows);
    try {
      (void)parse(kHead + wrong.rows);
      ADD_FAILURE() << "accepted";
    } catch (const Error& error) {
      EXPECT_EQ(to_string(error.code()), std::string(to_string(wrong.code))) << error.what();
      EXPECT_EQ(error.place().file, "links.csv");
      EXPECT_EQ(error.place().line, wrong.line) << error.what();
      EXPECT_EQ(error.place().column, wrong.column) << error.what();
      EXPECT_THAT(error.message(), HasSubstr(wrong.message));
    }
  }
  for (const char* text : {"", "policy\n", "x"}) EXPECT_THROW((void)parse(text), Error) << text;
  EXPECT_THROW((void)parse(kHead + std::string(70'000, 'x') + "\n"), Error);
}

// A machine whose links have the names that a CSV file likes least.
Topology odd_machine(std::mt19937_64& random) {
  const std::string letters = "ab,\"' ;|<>\t\\\xc3\xa4";
  TopologyBuilder builder("odd");
  const NodeId core = builder.add_node({"core", NodeKind::Switch, {}, {}, {}, true});
  for (int i = 0; i < 6; ++i) {
    const NodeId leaf =
        builder.add_node({"leaf" + std::to_string(i), NodeKind::Switch, {}, {}, {}, true});
    std::string name = std::to_string(i);
    for (std::uint64_t k = random() % 8; k > 0; --k) name += letters[random() % letters.size()];
    builder.add_link(
        {name, core, leaf, LinkKind::Fabric, Rate(1 + random() % 1'000'000), {}, {}, true});
  }
  return builder.build();
}

std::string random_file(std::mt19937_64& random, std::vector<RunRecord>& runs) {
  const samples::Results sample;
  const Topology topology = odd_machine(random);
  const ResultsContext context{sample.scenario, topology, sample.task, sample.bound, {}, {}, {}};
  for (const char* policy : {"star", "a,b"}) {
    RunRecord run;
    run.policy = policy;
    run.makespan = Time(static_cast<std::int64_t>(1 + random() % 9'000'000'000'000'000'000U));
    for (std::uint32_t channel = 0; channel < topology.channels(); ++channel) {
      if (random() % 3 == 0) continue;
      LinkUse use{ChannelId(channel), std::vector<Bytes>(1 + random() % 4)};
      for (Bytes& bin : use.bins) bin = Bytes(random() >> (4 + random() % 60));
      run.links.push_back(std::move(use));
    }
    runs.push_back(std::move(run));
  }
  std::ostringstream out;
  write_links(out, context, runs);
  return out.str();
}

TEST(ResultsLinks, ReadsWhatWasWritten) {
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937_64 random(seed);
    std::vector<RunRecord> runs;
    const auto all = parse(random_file(random, runs));
    std::erase_if(runs, [](const RunRecord& run) { return run.links.empty(); });
    ASSERT_EQ(all.size(), runs.size());
    for (std::size_t r = 0; r < runs.size(); ++r) {
      EXPECT_EQ(all[r].policy, runs[r].policy);
      EXPECT_EQ(all[r].end, runs[r].makespan);
      ASSERT_EQ(all[r].links.size(), runs[r].links.size());
      for (std::size_t l = 0; l < all[r].links.size(); ++l) {
        EXPECT_EQ(all[r].links[l].bins, runs[r].links[l].bins);
      }
    }
  }
}

// Damaged files are read, or refused with the line: nothing else happens.
TEST(ResultsLinks, SurvivesDamage) {
  const std::string alphabet = "0123456789.,\"\n><-e a";
  int refused = 0;
  for (std::uint64_t seed = 1; seed <= 2'000; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937_64 random(seed);
    std::vector<RunRecord> runs;
    std::string text = random_file(random, runs);
    for (std::uint64_t k = 1 + random() % 3; k > 0; --k) {
      const std::size_t at = random() % text.size();
      switch (random() % 4) {
        case 0:
          text[at] = alphabet[random() % alphabet.size()];
          break;
        case 1:
          text.insert(at, 1, alphabet[random() % alphabet.size()]);
          break;
        case 2:
          text.erase(at, 1 + random() % 20);
          break;
        default:
          text.resize(at + 1);
      }
    }
    try {
      for (const PolicyTraffic& policy : parse(text)) {
        for (const LinkTraffic& link : policy.links) {
          Bytes sum;
          for (const Bytes bin : link.bins) sum += bin;
          EXPECT_EQ(sum, link.bytes);
          EXPECT_GT(link.capacity, Rate(0));
        }
      }
    } catch (const Error& error) {
      ++refused;
      EXPECT_GT(error.place().line, 0) << error.what();
      EXPECT_GT(error.place().column, 0) << error.what();
    }
  }
  EXPECT_GT(refused, 1'500);  // most damage shows
}

}  // namespace
}  // namespace holdfast
