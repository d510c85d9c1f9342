// What the quality table is about: updates on the shipped topologies.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace holdfast::quality {

struct Case {
  std::string name;
  std::string topology;  // a file's name in topologies/, without its ending
  std::string model;
  std::uint32_t tensor_parallel = 1;
  std::string holders;    // the `place` of the group that holds the version
  std::string receivers;  // the `place` of the group that wants it
  std::uint32_t gpus = 0;
};

// For every topology: a model that needs 8 GPUs (TP=8) and one that fits one (TP=1), from one and
// from four holders. Holders are the first host (TP=8) or GPU (TP=1); four of them are the first
// four hosts, or for TP=1 the first four GPUs of one host ("packed") or the first GPU of four hosts
// ("spread").
[[nodiscard]] std::vector<Case> shipped_cases();

// The text of a scenario for a case; `options` is put into its options as it stands.
[[nodiscard]] std::string scenario_text(const Case& c, std::uint32_t blocks,
                                        const std::string& options = "");

}  // namespace holdfast::quality
