// Distributions of what a workload draws: the tokens of a rollout, the lifetime of a spot worker.
// Values are multiples of a unit that the owner names (tokens, seconds). What would exceed `most`
// is `most`: a context is full, a lease is over.
//
//   Distribution lengths = Distribution::lognormal(4000, 1.0, 32768);  // tokens
//   lengths.quantile(0.5);  // 4000
//   Random random(seed);
//   lengths.draw(random);   // one number of the stream a draw: by inversion
//
// Immutable; safe to use from several threads. Results repeat bit for bit on one machine; between
// standard libraries the last bits of exp and log may differ.
#pragma once

#include <cstdint>
#include <limits>
#include <variant>
#include <vector>

#include "core/workload/random.hpp"

namespace holdfast {

// ln X is normal with mean ln(median) and standard deviation sigma. The rollout lengths of
// reasoning models look like it, with sigma near 1.
struct Lognormal {
  double median = 1;
  double sigma = 1;  // 0: always the median
};

// P(X > x) = (least / x)^shape from `least` on: the heavier tail of the two. Without `most` its
// mean is infinite where shape is at most 1.
struct Pareto {
  double least = 1;
  double shape = 2;
};

// No memory: who has lived long lives as long again.
struct Exponential {
  double mean = 1;
};

// Each value with its share of all draws; shares add up to 1'000'000 millionths.
struct Table {
  struct Entry {
    double value = 0;
    std::uint32_t share = 0;
  };
  std::vector<Entry> entries;  // ascending by value
};

class Distribution {
 public:
  static constexpr double kNoLimit = std::numeric_limits<double>::infinity();

  // Preconditions: values and parameters above zero (sigma and table values may be zero), `most`
  // above zero and not below a Pareto's least; a table is not empty, ascending, and its shares add
  // up to the whole.
  [[nodiscard]] static Distribution lognormal(double median, double sigma, double most = kNoLimit);
  [[nodiscard]] static Distribution pareto(double least, double shape, double most = kNoLimit);
  [[nodiscard]] static Distribution exponential(double mean, double most = kNoLimit);
  [[nodiscard]] static Distribution table(std::vector<Table::Entry> entries);

  [[nodiscard]] double draw(Random& random) const { return quantile(random.uniform()); }
  // The least x with P(X <= x) >= p; 0 < p < 1. O(1), a table O(log entries).
  [[nodiscard]] double quantile(double p) const;
  // In closed form, the limit taken into account; may be infinite.
  [[nodiscard]] double mean() const;
  [[nodiscard]] double most() const { return most_; }

 private:
  using Shape = std::variant<Lognormal, Pareto, Exponential, Table>;
  Distribution(Shape shape, double most) : shape_(std::move(shape)), most_(most) {}

  Shape shape_;
  double most_;
  std::vector<double> upto_;  // of a table: shares added up, by entry
};

}  // namespace holdfast
