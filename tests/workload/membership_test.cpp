#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/workload/membership.hpp"

namespace holdfast {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

MemberEvent event(std::int64_t at, MemberEventKind kind, std::uint32_t seat,
                  std::int64_t gone = 0) {
  return {seconds(at), kind, seat, seconds(gone)};
}

SpotProcess fixed_lives(double life) {
  SpotProcess process;
  process.lifetime = Distribution::lognormal(life, 0);
  return process;
}

TEST(SpotEvents, StartWithTheInitialSeatsAndTellThem) {
  SpotProcess process = fixed_lives(100);
  process.initial = 2;
  process.notice = seconds(30);
  EXPECT_THAT(
      spot_events(process, 4, seconds(1000), 1),
      ElementsAre(event(0, MemberEventKind::Join, 0), event(0, MemberEventKind::Join, 1),
                  event(70, MemberEventKind::Notice, 0, 100),
                  event(70, MemberEventKind::Notice, 1, 100), event(100, MemberEventKind::Kill, 0),
                  event(100, MemberEventKind::Kill, 1)));
}

TEST(SpotEvents, ALifeShorterThanItsNoticeIsToldAtOnce) {
  SpotProcess process = fixed_lives(10);
  process.initial = 1;
  process.notice = seconds(30);
  EXPECT_THAT(
      spot_events(process, 1, seconds(1000), 1),
      ElementsAre(event(0, MemberEventKind::Join, 0), event(0, MemberEventKind::Notice, 0, 10),
                  event(10, MemberEventKind::Kill, 0)));
}

TEST(SpotEvents, EndAtTheHorizonAndWithTheSeats) {
  SpotProcess process = fixed_lives(100);
  process.initial = 9;
  EXPECT_THAT(spot_events(process, 1, seconds(100), 1),
              ElementsAre(event(0, MemberEventKind::Join, 0)));
  EXPECT_THAT(spot_events(process, 0, seconds(100), 1), IsEmpty());
  EXPECT_THAT(spot_events(process, 1, seconds(0), 1), IsEmpty());
}

TEST(MemberFault, NamesTheFirstEventThatCannotBe) {
  const auto message = [](std::vector<MemberEvent> events) {
    const auto fault = fault_of(events, {0, 1});
    return fault ? std::to_string(fault->index) + ": " + fault->message : "fine";
  };
  EXPECT_EQ(message({event(1, MemberEventKind::Join, 0), event(2, MemberEventKind::Notice, 0),
                     event(2, MemberEventKind::Leave, 0), event(3, MemberEventKind::Join, 0),
                     event(4, MemberEventKind::Kill, 1)}),
            "fine");
  EXPECT_THAT(message({event(1, MemberEventKind::Join, 1)}), HasSubstr("0: it is there already"));
  EXPECT_THAT(message({event(1, MemberEventKind::Kill, 0)}), HasSubstr("0: it is not there"));
  EXPECT_THAT(message({event(1, MemberEventKind::Notice, 1), event(2, MemberEventKind::Notice, 1)}),
              HasSubstr("1: it has had its notice"));
  EXPECT_THAT(message({event(2, MemberEventKind::Kill, 1), event(1, MemberEventKind::Join, 0)}),
              HasSubstr("1: the time is before"));
  EXPECT_THAT(message({event(2, MemberEventKind::Join, 2)}), HasSubstr("0: there is no such seat"));
}

TEST(MemberEventKind, NamesAreRead) {
  for (const auto kind : {MemberEventKind::Join, MemberEventKind::Notice, MemberEventKind::Leave,
                          MemberEventKind::Kill}) {
    EXPECT_EQ(parse_member_event(to_string(kind)), kind);
  }
  EXPECT_THAT(parse_member_event("joins").error(), HasSubstr("did you mean 'join'?"));
}

}  // namespace
}  // namespace holdfast
