#include "core/io/compare_inputs.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include <fmt/format.h>

namespace holdfast {
namespace {

// As scenarios say it where that is a whole number, so that sizes that differ look different.
std::string size_words(Bytes size) {
  constexpr std::array kUnits{
      std::pair(std::uint64_t{1} << 30, "GiB"), std::pair(std::uint64_t{1} << 20, "MiB"),
      std::pair(std::uint64_t{1} << 10, "KiB"), std::pair(std::uint64_t{1'000'000'000}, "GB"),
      std::pair(std::uint64_t{1'000'000}, "MB")};
  for (const auto& unit : kUnits) {
    if (size > Bytes() && size.count() % unit.first == 0) {
      return fmt::format("{} {}", size.count() / unit.first, unit.second);
    }
  }
  return fmt::format("{} bytes", size.count());
}

// All runs of a folder are of one scenario: the first one tells for them.
std::string block_size(const Results& results) {
  return size_words(results.runs.front().block_size);
}
std::string jitter(const Results& results) {
  const double share = results.runs.front().jitter;
  return share > 0 ? fmt::format("{:.6g} %", share * 100) : "none";
}
std::string objective(const Results& results) {
  return results.runs.front().objective;
}
std::string seed(const Results& results) {
  return fmt::format("{}", results.runs.front().seed);
}
std::string other_traffic(const Results& results) {
  return results.other_traffic.empty()
             ? "none"
             : fmt::format("{}", fmt::join(results.other_traffic, " and "));
}
// Nothing for a folder without a run of `greedy`: it has no such option.
std::string reader_cap(const Results& results) {
  for (const RunFigures& run : results.runs) {
    if (run.policy != "greedy") continue;
    return run.reader_cap ? fmt::format("{}", *run.reader_cap) : "none";
  }
  return "";
}

struct Option {
  const char* name;
  std::string (*value)(const Results&);
};
constexpr std::array kOptions{Option{"the block size", block_size},
                              Option{"jitter", jitter},
                              Option{"the objective", objective},
                              Option{"other traffic", other_traffic},
                              Option{"the reader cap of greedy", reader_cap},
                              Option{"the seed", seed}};

// "'a'", "'a' and 'b'", "'a', 'b' and 5 more".
std::string names_of(const std::vector<std::string>& folders) {
  constexpr std::size_t kMost = 3;
  if (folders.size() == 1) return fmt::format("'{}'", folders[0]);
  const std::size_t shown = folders.size() > kMost ? kMost - 1 : folders.size() - 1;
  std::string text;
  for (std::size_t f = 0; f < shown; ++f) {
    text += fmt::format("{}'{}'", f == 0 ? "" : ", ", folders[f]);
  }
  return folders.size() > kMost ? fmt::format("{} and {} more", text, folders.size() - shown)
                                : fmt::format("{} and '{}'", text, folders.back());
}

// Nothing where all have the same value. Values stand in the order in which they come first.
std::string difference(const Option& option, std::span<const Results> folders) {
  std::vector<std::pair<std::string, std::vector<std::string>>> values;
  for (const Results& results : folders) {
    if (results.scenario != folders.front().scenario) continue;
    const std::string value = option.value(results);
    if (value.empty()) continue;
    auto found = std::find_if(values.begin(), values.end(),
                              [&](const auto& entry) { return entry.first == value; });
    if (found == values.end()) found = values.insert(found, {value, {}});
    found->second.push_back(results.folder);
  }
  if (values.size() < 2) return "";
  std::string text;
  for (const auto& [value, names] : values) {
    text += fmt::format("{}{} in {}", text.empty() ? "" : ", ", value, names_of(names));
  }
  return fmt::format("{} differs: {}", option.name, text);
}

// What no option explains. Hashes cannot tell more where an option changes what they are of.
std::vector<std::string> unexplained(const Results& a, const Results& b) {
  std::vector<std::string> differ;
  const bool other_blocks = block_size(a) != block_size(b);
  if (a.topology != b.topology ||
      (a.inputs.topology != b.inputs.topology && other_traffic(a) == other_traffic(b))) {
    differ.emplace_back("the topology");
  }
  if (a.model != b.model || a.model_bytes != b.model_bytes ||
      (a.inputs.manifest != b.inputs.manifest && !other_blocks)) {
    differ.emplace_back("the model");
  }
  if (a.workers != b.workers || a.replicas != b.replicas ||
      (a.inputs.demand != b.inputs.demand && !other_blocks)) {
    differ.emplace_back("who holds and wants which blocks");
  }
  return differ;
}

bool same_options(const Results& a, const Results& b) {
  return std::all_of(kOptions.begin(), kOptions.end(), [&](const Option& option) {
    const std::string left = option.value(a);
    const std::string right = option.value(b);
    return left.empty() || right.empty() || left == right;
  });
}

}  // namespace

std::vector<std::string> differences(std::span<const Results> folders) {
  std::vector<std::string> sentences;
  if (folders.empty()) return sentences;
  const Results& first = folders.front();
  for (const Results& other : folders) {
    if (other.scenario != first.scenario) {
      sentences.push_back(fmt::format(
          "'{}' is of scenario '{}' and '{}' of '{}': these answer different questions; "
          "shares may be compared, times may not",
          other.folder, other.scenario, first.folder, first.scenario));
      continue;
    }
    const std::vector<std::string> differ = unexplained(first, other);
    if (!differ.empty()) {
      sentences.push_back(
          fmt::format("'{}' and '{}' differ in {}: times may not be "
                      "compared as if only the policy differed",
                      other.folder, first.folder, fmt::join(differ, ", ")));
    } else if (other.inputs.scenario != first.inputs.scenario && same_options(first, other)) {
      sentences.push_back(
          fmt::format("'{}' and '{}' are of scenario files that differ, but topology, model, "
                      "demand and options are the same",
                      other.folder, first.folder));
    }
  }
  for (const Option& option : kOptions) {
    const std::string text = difference(option, folders);
    if (!text.empty()) sentences.push_back(text);
  }
  return sentences;
}

}  // namespace holdfast
