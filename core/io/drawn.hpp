// What is drawn at random, as scenarios write it: distributions and frequencies.
//
//   lengths: {lognormal: {median: 4000, sigma: 1.0}, most: 32768}      # tokens
//   lengths: {pareto: {least: 500, shape: 1.5}, most: 32768}
//   lengths: {table: [{tokens: 512, share: 90%}, {tokens: 32768, share: 10%}]}
//   lengths: {constant: 2048}
//   lifetime: {exponential: {mean: 2h}, most: 6h}                      # times
//   arrivals: 20/h                                                     # or /day, /min, /s
#pragma once

#include "core/io/yaml_document.hpp"
#include "core/workload/distribution.hpp"

namespace holdfast {

enum class Drawn {
  Tokens,  // whole numbers from 1 to 1e9
  Times,   // with a unit, from 1 ns to 1,000 h; the distribution's values are seconds
};

// Throws Error with the place: BadValue, BadUnit, UnknownKey, MissingKey, NoEffect, LimitExceeded.
// A Pareto distribution whose mean would be infinite needs `most`.
[[nodiscard]] Distribution read_distribution(const YamlValue& value, Drawn drawn);

// In events an hour; above zero and at most 1e9 an hour. Throws Error(BadUnit).
[[nodiscard]] double read_frequency(const YamlValue& value);

}  // namespace holdfast
