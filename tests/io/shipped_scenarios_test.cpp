// Every scenario in scenarios/ can be planned as it stands, with each policy that it names; its
// faults and members come to something. Nothing is simulated; plans of more deliveries than the
// checker's limit are not executed block by block.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "core/io/scenario_files.hpp"
#include "core/io/scenario_members.hpp"
#include "core/plan/bound.hpp"
#include "core/plan/checker.hpp"

namespace holdfast {
namespace {

std::vector<std::string> shipped() {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(HOLDFAST_SOURCE_DIR "/scenarios")) {
    if (entry.path().extension() == ".yaml") names.push_back(entry.path().stem().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

class ShippedScenario : public ::testing::TestWithParam<std::string> {};

TEST_P(ShippedScenario, IsPlanned) {
  const LoadedScenario loaded =
      load_scenario(HOLDFAST_SOURCE_DIR "/scenarios/" + GetParam() + ".yaml");
  const Scenario& scenario = loaded.scenario;
  EXPECT_EQ(scenario.name, GetParam());
  EXPECT_FALSE(scenario.teaches.empty());
  EXPECT_FALSE(scenario.assumptions.empty());
  EXPECT_THAT(scenario.warnings, ::testing::IsEmpty());
  std::vector<std::string> warnings;
  const std::vector<FaultRule> rules = rules_of(scenario.faults, loaded.topology, &warnings);
  EXPECT_THAT(warnings, ::testing::IsEmpty());
  EXPECT_NO_THROW((void)make_schedule(rules, loaded.topology, seconds(600), 1));
  const std::vector<Seat> seats = seats_of(scenario, loaded.topology);
  const bool elastic = scenario.workload && scenario.workload->members;
  EXPECT_EQ(seats.empty(), !elastic);
  EXPECT_EQ(members_of(loaded, seats, seconds(600), 1).empty(), !elastic);
  const UpdateTask update = make_update(scenario, loaded.topology, loaded.manifest);
  EXPECT_THAT(update.warnings, ::testing::IsEmpty());
  ASSERT_NO_THROW(validate(update.demand, loaded.topology));
  const Router router(loaded.topology);
  const Time bound = lower_bound(loaded.topology, update.demand).time();
  ASSERT_LT(bound, Time::never());
  for (const Policy policy : scenario.policies) {
    if (is_online(policy)) continue;
    SCOPED_TRACE(to_string(policy));
    const Planned planned =
        make_plan(policy, router, update.demand, {0, scenario.options.objective});
    EXPECT_GE(planned.predicted, bound);
    for (const Violation& violation : check(planned.plan, update.demand, router)) {
      ADD_FAILURE() << violation.pointer << ": " << violation.message;
    }
  }
}

std::string test_name(const ::testing::TestParamInfo<std::string>& scenario) {
  std::string name = scenario.param;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

INSTANTIATE_TEST_SUITE_P(All, ShippedScenario, ::testing::ValuesIn(shipped()), test_name);

}  // namespace
}  // namespace holdfast
