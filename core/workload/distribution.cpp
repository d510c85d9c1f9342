#include "core/workload/distribution.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <utility>

namespace holdfast {
namespace {

// P(Z <= z) of a standard normal.
double normal_below(double z) {
  return 0.5 * std::erfc(-z / std::sqrt(2.0));
}

// The inverse: Acklam's rational approximation (relative error 1.2e-9), made exact to rounding by
// one step of Halley's method.
double normal_quantile(double p) {
  constexpr double kA[] = {-3.969683028665376e+01, 2.209460984245205e+02,  -2.759285104469687e+02,
                           1.383577518672690e+02,  -3.066479806614716e+01, 2.506628277459239e+00};
  constexpr double kB[] = {-5.447609879822406e+01, 1.615858368580409e+02, -1.556989798598866e+02,
                           6.680131188771972e+01, -1.328068155288572e+01};
  constexpr double kC[] = {-7.784894002430293e-03, -3.223964580411365e-01, -2.400758277161838e+00,
                           -2.549732539343734e+00, 4.374664141464968e+00,  2.938163982698783e+00};
  constexpr double kD[] = {7.784695709041462e-03, 3.224671290700398e-01, 2.445134137142996e+00,
                           3.754408661907416e+00};
  constexpr double kTail = 0.02425;
  const double side = std::min(p, 1 - p);
  double x = 0;
  if (side < kTail) {
    const double q = std::sqrt(-2 * std::log(side));
    x = (((((kC[0] * q + kC[1]) * q + kC[2]) * q + kC[3]) * q + kC[4]) * q + kC[5]) /
        ((((kD[0] * q + kD[1]) * q + kD[2]) * q + kD[3]) * q + 1);
  } else {
    const double q = side - 0.5;
    const double r = q * q;
    x = (((((kA[0] * r + kA[1]) * r + kA[2]) * r + kA[3]) * r + kA[4]) * r + kA[5]) * q /
        (((((kB[0] * r + kB[1]) * r + kB[2]) * r + kB[3]) * r + kB[4]) * r + 1);
  }
  const double error = normal_below(x) - side;
  const double step = error * std::sqrt(2 * 3.14159265358979323846) * std::exp(x * x / 2);
  x -= step / (1 + x * step / 2);
  return p <= 0.5 ? x : -x;
}

// Mean of min(X, most).
double mean_of(const Lognormal& shape, double most) {
  const double mean = shape.median * std::exp(shape.sigma * shape.sigma / 2);
  if (std::isinf(most)) return mean;
  if (shape.sigma == 0) return std::min(shape.median, most);
  const double z = std::log(most / shape.median) / shape.sigma;
  return mean * normal_below(z - shape.sigma) + most * normal_below(-z);
}

double mean_of(const Pareto& shape, double most) {
  if (std::isinf(most)) {
    return shape.shape > 1 ? shape.least * shape.shape / (shape.shape - 1) : most;
  }
  if (shape.shape == 1) return shape.least * (1 + std::log(most / shape.least));
  const double rest = std::pow(most / shape.least, 1 - shape.shape);
  return shape.least * (1 + (rest - 1) / (1 - shape.shape));
}

double mean_of(const Exponential& shape, double most) {
  return std::isinf(most) ? shape.mean : -shape.mean * std::expm1(-most / shape.mean);
}

double mean_of(const Table& shape, double /*most*/) {
  double sum = 0;
  for (const Table::Entry& entry : shape.entries) sum += entry.value * entry.share;
  return sum / 1e6;
}

}  // namespace

Distribution Distribution::lognormal(double median, double sigma, double most) {
  return {Lognormal{median, sigma}, most};
}

Distribution Distribution::pareto(double least, double shape, double most) {
  return {Pareto{least, shape}, most};
}

Distribution Distribution::exponential(double mean, double most) {
  return {Exponential{mean}, most};
}

Distribution Distribution::table(std::vector<Table::Entry> entries) {
  std::vector<double> upto;
  std::uint64_t sum = 0;
  for (const Table::Entry& entry : entries) {
    sum += entry.share;
    upto.push_back(static_cast<double>(sum) / 1e6);
  }
  const double most = entries.back().value;
  Distribution made(Table{std::move(entries)}, most);
  made.upto_ = std::move(upto);
  return made;
}

double Distribution::quantile(double p) const {
  if (const auto* const table = std::get_if<Table>(&shape_)) {
    const auto at = std::lower_bound(upto_.begin(), upto_.end(), p);
    const auto index = std::min(static_cast<std::size_t>(at - upto_.begin()), upto_.size() - 1);
    return table->entries[index].value;
  }
  double value = 0;
  if (const auto* const lognormal = std::get_if<Lognormal>(&shape_)) {
    value = lognormal->median * std::exp(lognormal->sigma * normal_quantile(p));
  } else if (const auto* const pareto = std::get_if<Pareto>(&shape_)) {
    value = pareto->least * std::pow(1 - p, -1 / pareto->shape);
  } else {
    value = -std::get<Exponential>(shape_).mean * std::log1p(-p);
  }
  return std::min(value, most_);
}

double Distribution::mean() const {
  return std::visit([this](const auto& shape) { return mean_of(shape, most_); }, shape_);
}

}  // namespace holdfast
