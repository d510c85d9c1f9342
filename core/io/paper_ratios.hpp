// Our ratios beside those that the paper states (arXiv 2604.09107): how much longer its baseline
// makes GPUs or replicas wait than Holdfast does, in the scenarios named paper-*.
//
// What the paper does not state is assumed, and a ratio is worth what its assumptions are. Folders
// with variants of one scenario make a surface over whatever differs between them; where the
// published value lies on it is said, not sought.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/io/results_reader.hpp"

namespace holdfast {

struct PaperPoint {
  std::string folder;
  std::vector<std::string> values;  // by axis of the surface
  std::optional<double> ratio;      // nothing where one of the two runs is missing or failed
};

struct PaperSurface {
  std::string scenario;  // "paper-elastic"
  std::string what;      // that is compared: "mean fetch of a rollout replica"
  std::string baseline;  // policy
  double published = 0;
  std::vector<std::string> axes;   // names of what differs
  std::vector<PaperPoint> points;  // by ratio
  std::string place;               // in words
};

// The paper's scenarios among the folders, each once, in the order of the folders. Policy `auto`
// and the baseline may have run into different folders of one scenario file. O(folders^2).
[[nodiscard]] std::vector<PaperSurface> paper_surfaces(std::span<const Results> folders);

}  // namespace holdfast
