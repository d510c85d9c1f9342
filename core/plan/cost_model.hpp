// Predicts how long a plan takes, without simulating it.
#pragma once

#include <vector>

#include "core/plan/demand.hpp"
#include "core/plan/plan.hpp"
#include "core/topology/router.hpp"

namespace holdfast {

struct Prediction {
  Time makespan;
  double stall = 0;            // seconds: over receiving groups, GPUs x their last completion
  ChannelId busiest;           // the channel that takes longest for what it carries
  Time busiest_time;           // its bytes / its capacity
  Time fill;                   // what the pipeline's depth adds
  std::vector<Bytes> carried;  // by channel
};

// O(edges x route length).
[[nodiscard]] Prediction predict(const Plan& plan, const Demand& demand, const Router& router);

}  // namespace holdfast
