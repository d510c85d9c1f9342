// What is drawn has the mean and the quantiles that the formulas say, within what chance allows.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "core/workload/distribution.hpp"

namespace holdfast {
namespace {

struct Case {
  std::string name;
  Distribution distribution;
};

std::vector<Case> cases() {
  return {{"lognormal", Distribution::lognormal(4000, 1.0)},
          {"lognormal, cut", Distribution::lognormal(4000, 1.2, 16'384)},
          {"lognormal, narrow", Distribution::lognormal(100, 0.01)},
          {"constant", Distribution::lognormal(7, 0)},
          {"pareto", Distribution::pareto(500, 3.5)},
          {"pareto, cut", Distribution::pareto(500, 1.1, 32'768)},
          {"pareto of shape 1, cut", Distribution::pareto(500, 1, 32'768)},
          {"exponential", Distribution::exponential(3600)},
          {"exponential, cut", Distribution::exponential(3600, 4000)},
          {"table", Distribution::table({{100, 500'000}, {2000, 400'000}, {32'768, 100'000}})}};
}

std::vector<double> draws(const Distribution& distribution, std::uint64_t seed, std::size_t count) {
  Random random(seed);
  std::vector<double> values(count);
  for (double& value : values) value = distribution.draw(random);
  return values;
}

// Standard errors between the drawn and the true value; five happen once in two million.
constexpr double kErrors = 5;

TEST(Distribution, HasTheMeanOfItsFormula) {
  constexpr std::uint64_t kSeed = 20'260'410;
  constexpr std::size_t kDraws = 200'000;
  for (const auto& [name, distribution] : cases()) {
    SCOPED_TRACE(name + ", seed " + std::to_string(kSeed));
    const std::vector<double> values = draws(distribution, kSeed, kDraws);
    double sum = 0;
    for (const double value : values) sum += value;
    const double mean = sum / kDraws;
    double square = 0;
    for (const double value : values) square += (value - mean) * (value - mean);
    const double error = std::sqrt(square / kDraws / kDraws);
    RecordProperty(name, std::to_string((mean - distribution.mean()) / (error + 1e-300)));
    EXPECT_NEAR(mean, distribution.mean(), kErrors * error + 1e-9 * mean);
  }
}

// The number of draws up to the quantile of p is binomial, whatever the distribution.
TEST(Distribution, HasTheQuantilesOfItsFormula) {
  constexpr std::uint64_t kSeed = 7;
  constexpr std::size_t kDraws = 100'000;
  for (const auto& [name, distribution] : cases()) {
    const std::vector<double> values = draws(distribution, kSeed, kDraws);
    for (const double p : {0.001, 0.1, 0.5, 0.9, 0.99, 0.999}) {
      SCOPED_TRACE(name + ", p = " + std::to_string(p) + ", seed " + std::to_string(kSeed));
      const double x = distribution.quantile(p);
      const auto upto = [&](auto compare) {
        return static_cast<double>(std::count_if(values.begin(), values.end(), compare)) / kDraws;
      };
      const double tolerance = kErrors * std::sqrt(p * (1 - p) / kDraws);
      // Atoms (a table, a limit) lie on both sides.
      EXPECT_GE(upto([x](double v) { return v <= x * (1 + 1e-12); }), p - tolerance);
      EXPECT_LE(upto([x](double v) { return v < x * (1 - 1e-12); }), p + tolerance);
    }
  }
}

TEST(Distribution, KnowsQuantilesOfTextbooks) {
  // z(0.975) = 1.959963984540054, z(0.001) = -3.090232306167813
  const Distribution normal = Distribution::lognormal(1, 1);
  EXPECT_NEAR(std::log(normal.quantile(0.975)), 1.959963984540054, 1e-12);
  EXPECT_NEAR(std::log(normal.quantile(0.001)), -3.090232306167813, 1e-12);
  EXPECT_NEAR(std::log(normal.quantile(0.5)), 0, 1e-15);
  EXPECT_NEAR(Distribution::pareto(2, 2).quantile(0.75), 4, 1e-12);
  EXPECT_NEAR(Distribution::exponential(1).quantile(1 - std::exp(-2.0)), 2, 1e-12);
  EXPECT_DOUBLE_EQ(Distribution::lognormal(10, 1).mean(), 10 * std::exp(0.5));
  EXPECT_DOUBLE_EQ(Distribution::pareto(3, 1.5).mean(), 9);
  EXPECT_TRUE(std::isinf(Distribution::pareto(3, 1).mean()));
}

TEST(Distribution, ATableGivesItsValuesAlone) {
  const Distribution table = Distribution::table({{1, 250'000}, {5, 250'000}, {9, 500'000}});
  EXPECT_EQ(table.quantile(0.1), 1);
  EXPECT_EQ(table.quantile(0.25), 1);
  EXPECT_EQ(table.quantile(0.2500001), 5);
  EXPECT_EQ(table.quantile(0.5), 5);
  EXPECT_EQ(table.quantile(0.9999999), 9);
  EXPECT_DOUBLE_EQ(table.mean(), 6);
}

TEST(Distribution, NothingExceedsItsLimit) {
  for (const double value : draws(Distribution::pareto(1, 0.5, 40), 3, 10'000)) {
    EXPECT_LE(value, 40);
    EXPECT_GE(value, 1);
  }
}

TEST(Random, RepeatsAndKeepsStreamsApart) {
  Random a(5, 1);
  Random same(5, 1);
  Random other(5, 2);
  Random seeded(6, 1);
  for (int i = 0; i < 100; ++i) {
    const std::uint64_t value = a.bits();
    EXPECT_EQ(value, same.bits());
    EXPECT_NE(value, other.bits());
    EXPECT_NE(value, seeded.bits());
  }
}

// Neighbouring seeds and streams are as good as any: their first numbers do not depend on each
// other (correlation within five standard errors) and are uniform.
TEST(Random, NeighbouringStreamsAreIndependent) {
  constexpr std::size_t kStreams = 50'000;
  double sum = 0;
  double product = 0;
  double before = Random(1, 0).uniform() - 0.5;
  for (std::uint64_t stream = 1; stream <= kStreams; ++stream) {
    const double now = Random(1, stream).uniform() - 0.5;
    sum += now;
    product += now * before;
    before = now;
  }
  EXPECT_NEAR(sum / kStreams, 0, 5 * std::sqrt(1.0 / 12 / kStreams));
  EXPECT_NEAR(product / kStreams, 0, 5 * (1.0 / 12) / std::sqrt(double{kStreams}));
}

}  // namespace
}  // namespace holdfast
