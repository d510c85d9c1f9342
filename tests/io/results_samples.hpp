// A small update with a run whose figures can be added up by hand.
#pragma once

#include "core/io/results.hpp"
#include "tests/io/scenario_samples.hpp"

namespace holdfast::samples {

struct Results {
  Results() {
    scenario.name = "sample";
    scenario.assumptions = {"perfect network"};
    std::vector<Bytes> blocks(4, Bytes(1'000));
    DemandBuilder builder("model", {1, 1}, Bytes(1'000), blocks);
    const auto add = [&](const char* name, std::uint32_t group) {
      return builder.add_worker({topology.find_node(name), group, Bytes(1 << 20), true});
    };
    const WorkerId holder = add("h0.gpu0", 0);
    builder.holds(holder, {BlockId(0U), 4});
    builder.wants(add("h1.gpu0", 1), {BlockId(0U), 2});
    builder.wants(add("h1.gpu1", 1), {BlockId(2U), 2});
    builder.wants(add("h2.gpu0", 2), {BlockId(0U), 2});
    const WorkerId done = add("h2.gpu1", 2);
    builder.wants(done, {BlockId(2U), 2});
    builder.holds(done, {BlockId(2U), 2});
    task.demand = std::move(builder).build();
    task.replicas = {{"trainer[0]", Role::Trainer, false},
                     {"rollout[0]", Role::Rollout, true},
                     {"rollout[1]", Role::Rollout, true}};
    task.model_bytes = Bytes(4'000);
    bound.by_group = {Time(), seconds(2), milliseconds(2'500)};
    bound.cut.time = milliseconds(2'500);
    bound.cut.sink = "h1";
    bound.cut.channels.assign(40, ChannelId(0));
  }

  [[nodiscard]] ResultsContext context() const {
    return {scenario, topology, task, bound, {1, 2}, {3, 4}, {"a warning"}};
  }

  [[nodiscard]] RunRecord run() const {
    RunRecord run;
    run.backend = "simgrid";
    run.policy = "auto";
    run.planner = "chain";
    run.predicted = seconds(4);
    run.makespan = seconds(5);
    run.completed = {Time(), seconds(3), seconds(5), seconds(4), Time()};
    run.moved = {Bytes(6'000), Bytes(6'000), Bytes(0)};
    run.deliveries = 6;
    run.links = {{ChannelId(2), {Bytes(500), Bytes(1'500)}}};
    run.events = {
        {Time(), RunEventKind::Start, WorkerId(1U), 0, {}, {}, {}, {}},
        {picoseconds(1),
         RunEventKind::BlockDone,
         WorkerId(1U),
         0,
         StripeId(0U),
         BlockId(1U),
         WorkerId(0U),
         {}},
        {seconds(1), RunEventKind::Progress, WorkerId(1U), 50, {}, {}, {}, {}},
        {seconds(3), RunEventKind::End, WorkerId(1U), 0, {}, {}, {}, {}},
        {seconds(4), RunEventKind::Fault, WorkerId(2U), 0, {}, {}, {}, "lost \"x\"\n"},
    };
    return run;
  }

  Topology topology = machine(4, 4);
  Scenario scenario;
  UpdateTask task;
  Bound bound;
};

}  // namespace holdfast::samples
