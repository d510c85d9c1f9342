#include "core/nearest.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>

namespace holdfast {
namespace {

std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> before(b.size() + 1);
  std::vector<std::size_t> last(b.size() + 1);
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(last.begin(), last.end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t replace = last[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, replace});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        row[j] = std::min(row[j], before[j - 2] + 1);
      }
    }
    before.swap(last);
    last.swap(row);
  }
  return last[b.size()];
}

// The shortest candidate that begins with the word, which must be of some length to say anything.
std::optional<std::string> completion(std::string_view word,
                                      const std::vector<std::string>& candidates) {
  constexpr std::size_t kShortest = 3;
  std::optional<std::string> best;
  if (word.size() < kShortest) return best;
  for (const std::string& candidate : candidates) {
    const bool begins = std::string_view(candidate).substr(0, word.size()) == word;
    if (begins && (!best || candidate.size() < best->size())) best = candidate;
  }
  return best;
}

}  // namespace

std::optional<std::string> nearest(std::string_view word,
                                   const std::vector<std::string>& candidates) {
  // A hostile name of megabytes must not cost quadratic time for the sake of a hint.
  constexpr std::size_t kLongestWord = 100;
  if (word.empty() || word.size() > kLongestWord) return std::nullopt;
  std::optional<std::string> best;
  std::size_t best_distance = word.size() / 2 + 1;
  for (const std::string& candidate : candidates) {
    // The distance is at least the difference of the lengths.
    const std::size_t longer = std::max(candidate.size(), word.size());
    if (longer - std::min(candidate.size(), word.size()) >= best_distance) continue;
    const std::size_t distance = edit_distance(word, candidate);
    if (distance < best_distance) {
      best = candidate;
      best_distance = distance;
    }
  }
  return best;
}

std::string suggestion(std::string_view word, const std::vector<std::string>& candidates,
                       std::size_t most) {
  auto meant = completion(word, candidates);
  if (!meant) meant = nearest(word, candidates);
  if (meant) return fmt::format("; did you mean '{}'?", *meant);
  if (candidates.empty()) return "";
  const auto end =
      candidates.begin() + static_cast<std::ptrdiff_t>(std::min(most, candidates.size()));
  return fmt::format("; known: {}{}", fmt::join(candidates.begin(), end, ", "),
                     candidates.size() > most ? ", ..." : "");
}

}  // namespace holdfast
