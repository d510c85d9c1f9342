#include "core/io/spot_trace.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/io/scenario_samples.hpp"

namespace holdfast {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(SpotTrace, IsRead) {
  const auto rows = parse_spot_trace(
      "# a comment\n\nevent , time,host\r\njoin, 0s ,h0\r\n  # another\nnotice,1.5min,h0\n"
      "kill,2min,h0",
      "t.csv");
  ASSERT_EQ(rows.size(), 3U);
  EXPECT_EQ(rows[0].at, Time());
  EXPECT_EQ(rows[0].who, "h0");
  EXPECT_EQ(rows[0].event, MemberEventKind::Join);
  EXPECT_EQ(rows[1].at, seconds(90));
  EXPECT_EQ(rows[1].event, MemberEventKind::Notice);
  EXPECT_EQ(rows[2].place.line, 7);
}

TEST(SpotTrace, TakesPlainSeconds) {
  const auto rows = parse_spot_trace("time_s,worker,event\n0.25,h0.gpu1,leave\n", "t.csv");
  EXPECT_EQ(rows.at(0).at, milliseconds(250));
}

struct Wrong {
  const char* text;
  const char* what;
};

TEST(SpotTrace, IsRefusedWithItsPlace) {
  const Wrong wrongs[] = {
      {"", "t.csv:1:1: the file is empty"},
      {"# nothing\n", "the file is empty"},
      {"time,event\n", "t.csv:1:1: there is no column 'worker'"},
      {"time,who,event\n", "t.csv:1:6: 'who' is no column"},
      {"time,time_s,worker,event\n", "t.csv:1:6: write one of 'time' and 'time_s'"},
      {"time,worker,event\n1s,h0\n", "t.csv:2:1: 2 cells where the header has 3"},
      {"time,worker,event\n1,h0,join\n", "t.csv:2:1: '1'"},
      {"time_s,worker,event\n1s,h0,join\n", "t.csv:2:1: '1s' is no number of seconds"},
      {"time,worker,event\n-1s,h0,join\n", "t.csv:2:1"},
      {"time,worker,event\n1s,,join\n", "t.csv:2:4: write the name"},
      {"time,worker,event\n1s, h0, joins\n", "t.csv:2:9: 'joins' is not an event"},
      {"time,worker,event\n2s,h0,join\n1s,h0,kill\n", "t.csv:3:1: rows ascend"},
  };
  for (const auto& [text, what] : wrongs) {
    SCOPED_TRACE(text);
    try {
      (void)parse_spot_trace(text, "t.csv");
      ADD_FAILURE() << "accepted";
    } catch (const Error& error) {
      EXPECT_THAT(error.what(), HasSubstr(what));
    }
  }
}

class SpotTraceSeats : public ::testing::Test {
 protected:
  SpotTraceSeats() {
    for (const char* host : {"h0", "h1"}) {
      for (const char* pair : {"01", "23"}) {
        std::vector<NodeId> seat;
        for (const char* gpu = pair; *gpu != '\0'; ++gpu) {
          seat.push_back(topology_.find_node(std::string(host) + ".gpu" + *gpu));
        }
        seats_.push_back(std::move(seat));
      }
    }
  }
  std::vector<MemberEvent> events(const std::string& rows) const {
    const auto parsed = parse_spot_trace("time_s,host,event\n" + rows, "t.csv");
    return member_events(parsed, seats_, topology_);
  }
  std::string refusal(const std::string& rows) const {
    try {
      (void)events(rows);
    } catch (const Error& error) {
      return error.what();
    }
    return "accepted";
  }
  const Topology topology_ = samples::machine(3, 4);
  std::vector<std::vector<NodeId>> seats_;
};

TEST_F(SpotTraceSeats, AHostStandsForItsSeatsAndAWorkerForItsOwn) {
  const auto made = events(
      "0,h1,join\n5,h1.gpu2,notice\n9,h1,kill\n12,h1.gpu3,join\n13,h1.gpu2,"
      "notice\n");
  EXPECT_THAT(made,
              ElementsAre(MemberEvent{seconds(0), MemberEventKind::Join, 2, {}},
                          MemberEvent{seconds(0), MemberEventKind::Join, 3, {}},
                          MemberEvent{seconds(5), MemberEventKind::Notice, 3, seconds(9)},
                          MemberEvent{seconds(9), MemberEventKind::Kill, 2, {}},
                          MemberEvent{seconds(9), MemberEventKind::Kill, 3, {}},
                          MemberEvent{seconds(12), MemberEventKind::Join, 3, {}},
                          MemberEvent{seconds(13), MemberEventKind::Notice, 3, Time::never()}));
}

TEST_F(SpotTraceSeats, WhatCannotBeIsRefusedAtItsRow) {
  EXPECT_THAT(refusal("0,h9,join\n"), HasSubstr("t.csv:2:3: no worker or host is called 'h9'"));
  EXPECT_THAT(refusal("0,h2,join\n"), HasSubstr("t.csv:2:3: 'h2' belongs to no rollout group"));
  EXPECT_THAT(refusal("0,h0,join\n1,h0,leave\n2,h0,kill\n"),
              HasSubstr("t.csv:4:3: 'h0': it is not there"));
  EXPECT_THAT(refusal("0,h0,join\n1,h0.gpu1,join\n"), HasSubstr("t.csv:3:3: 'h0.gpu1': it is th"));
}

}  // namespace
}  // namespace holdfast
