#include "core/io/other_traffic.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/io/scenario.hpp"
#include "tests/io/scenario_samples.hpp"

namespace holdfast {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Four hosts of two GPUs and a NIC, two in each of two datacenters; links "h0.gpu0.link",
// "h0.mem.link", "h0.nic.link" (PCIe) and "h0.uplink" (NIC to switch).
const Topology& machine() {
  static const Topology topology = samples::machine(4, 2);
  return topology;
}

std::vector<OtherTraffic> parse(const std::string& text) {
  const YamlDocument document = YamlDocument::parse(text, "s.yaml");
  return read_other_traffic(document.root());
}

std::vector<std::string> chosen(const std::string& entry) {
  std::vector<std::string> names;
  for (const LinkId link : links_of(parse("- " + entry).at(0), machine())) {
    names.push_back(machine().link(link).name);
  }
  return names;
}

TEST(OtherTraffic, ChoosesLinksByKindPlaceAndName) {
  EXPECT_THAT(chosen("{kind: nic, share: 30%}"),
              ElementsAre("h0.uplink", "h1.uplink", "h2.uplink", "h3.uplink"));
  EXPECT_THAT(chosen("{kind: nic, at: dc1, share: 30%}"), ElementsAre("h2.uplink", "h3.uplink"));
  EXPECT_THAT(chosen("{kind: nic, at: ['h0', 'h[3-9]'], share: 30%}"),
              ElementsAre("h0.uplink", "h3.uplink"));
  EXPECT_THAT(chosen("{kind: pcie, at: h1.gpu0, share: 30%}"), ElementsAre("h1.gpu0.link"));
  EXPECT_THAT(chosen("{at: h1.nic, share: 30%}"), ElementsAre("h1.nic.link", "h1.uplink"));
  EXPECT_THAT(chosen("{links: 'h*.uplink', at: dc0, share: 30%}"),
              ElementsAre("h0.uplink", "h1.uplink"));
  EXPECT_THAT(chosen("{kind: memory, links: '*.*.link', share: 30%}"),
              ElementsAre("h0.mem.link", "h1.mem.link", "h2.mem.link", "h3.mem.link"));
}

TEST(OtherTraffic, SaysWhatItChooses) {
  EXPECT_EQ(to_string(parse("- {kind: nic, share: 1%}")[0]), "nic");
  EXPECT_EQ(to_string(parse("- {kind: wan, at: [a, b], share: 1%}")[0]), "wan at 'a', 'b'");
  EXPECT_EQ(to_string(parse("- {links: 'x*', share: 1%}")[0]), "links called 'x*'");
}

TEST(OtherTraffic, SharesAddUp) {
  const auto traffic =
      parse("- {kind: nic, share: 30%}\n- {at: h1.nic, share: 20%}\n- {kind: nic, share: 0.5%}\n");
  const Topology left = without_other_traffic(machine(), traffic);
  const auto capacity = [&left](const char* name) {
    return left.link(left.find_link(name)).capacity;
  };
  EXPECT_EQ(capacity("h0.uplink"), Rate(695'000'000));
  EXPECT_EQ(capacity("h1.uplink"), Rate(495'000'000));
  EXPECT_EQ(capacity("h1.nic.link"), Rate(800'000'000));
  EXPECT_EQ(capacity("h0.nic.link"), Rate(1'000'000'000));
  EXPECT_NE(left.hash(), machine().hash());
}

TEST(OtherTraffic, SaysWhichNumbersNothingHas) {
  std::vector<std::string> warnings;
  (void)without_other_traffic(machine(),
                              parse("- {kind: nic, at: 'h[2-5]', share: 30%}\n"
                                    "- {links: 'h[0-9].uplink', share: 1%}\n"),
                              &warnings);
  EXPECT_THAT(warnings,
              ElementsAre("s.yaml:1:19: 'h[2-5]' names more than there is: no node or domain has "
                          "4-5 of '[2-5]'",
                          "s.yaml:2:11: 'h[0-9].uplink' names more than there is: no link has 4-9 "
                          "of '[0-9]'"));
}

struct Wrong {
  const char* text;
  ErrorCode code;
  int line;
  int column;
  const char* message;
};

const Wrong kWrong[] = {
    {"[]", ErrorCode::BadValue, 1, 1, "leave the key away"},
    {"- {share: 30%}", ErrorCode::MissingKey, 1, 4, "say which links"},
    {"- {kind: nic}", ErrorCode::MissingKey, 1, 4, "share"},
    {"- {kind: nics, share: 30%}", ErrorCode::BadValue, 1, 10, "nic"},
    {"- {kind: nic, share: 0.3}", ErrorCode::BadUnit, 1, 22, "'50%'"},
    {"- {kind: nic, share: 0%}", ErrorCode::BadUnit, 1, 22, "above 0%"},
    {"- {kind: nic, share: 100%}", ErrorCode::BadValue, 1, 22, "leaves nothing"},
    {"- {kind: nic, share: 30%, node: a}", ErrorCode::UnknownKey, 1, 27, "node"},
    {"- {at: [], share: 30%}", ErrorCode::BadValue, 1, 8, "at least one"},
    {"- {at: 'h[3-1]', share: 30%}", ErrorCode::BadValue, 1, 8, "write '1-3'"},
    {"- {kind: wan, share: 30%}", ErrorCode::BadValue, 1, 4, "has no wan"},
    {"- {kind: nic, at: [h0, h9], share: 30%}", ErrorCode::UnknownName, 1, 24, "'h9'"},
    {"- {links: h0.uplnk, share: 30%}", ErrorCode::UnknownName, 1, 11, "did you mean 'h0.uplink'"},
    {"- {links: 'x*', share: 30%}", ErrorCode::UnknownName, 1, 11, "matches no link"},
    {"- {kind: nic, at: h0.gpu0, share: 30%}", ErrorCode::BadValue, 1, 4, "nic at 'h0.gpu0'"},
    {"- {kind: nic, share: 60%}\n- {at: h0, share: 40%}", ErrorCode::BadValue, 2, 4,
     "100% of link 'h0.uplink'"},
};

TEST(OtherTraffic, RefusesWithPlaceAndAdvice) {
  for (const Wrong& wrong : kWrong) {
    SCOPED_TRACE(wrong.text);
    try {
      (void)without_other_traffic(machine(), parse(wrong.text));
      ADD_FAILURE() << "accepted";
    } catch (const Error& error) {
      EXPECT_EQ(to_string(error.code()), std::string(to_string(wrong.code))) << error.what();
      EXPECT_EQ(error.place().file, "s.yaml");
      EXPECT_EQ(error.place().line, wrong.line) << error.what();
      EXPECT_EQ(error.place().column, wrong.column) << error.what();
      EXPECT_THAT(error.message(), HasSubstr(wrong.message));
    }
  }
}

}  // namespace
}  // namespace holdfast
