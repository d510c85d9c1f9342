#include "core/io/compare_limits.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "core/io/compare_reasons.hpp"

namespace holdfast {
namespace {

constexpr double kAtTheBound = 0.95;
constexpr double kWorthTelling = 0.01;  // of the makespan

// Bytes over time; at least one byte a second.
Rate rate_of(Bytes bytes, Time time) {
  const double rate = static_cast<double>(bytes.count()) / exact_seconds(time);
  return Rate(std::max<std::uint64_t>(1, static_cast<std::uint64_t>(std::min(rate, 1e18))));
}

std::string percent(double share) {
  return fmt::format("{:.1f} %", share * 100);
}

// Those of the rests that matter: "5.60 ms at the start and 2.86 ms at the end".
std::string words_of(const Rests& rests) {
  const double all = (rests.before + rests.between + rests.after).seconds();
  std::vector<std::string> words;
  for (const auto& [time, when] :
       {std::pair(rests.before, "at the start"), std::pair(rests.between, "in between"),
        std::pair(rests.after, "at the end")}) {
    if (time.seconds() >= 0.05 * all && time > Time()) {
      words.push_back(fmt::format("{} {}", rounded(time), when));
    }
  }
  if (words.size() < 2) return words.empty() ? "no time" : words[0];
  const std::string last = words.back();
  words.pop_back();
  return fmt::format("{} and {}", fmt::join(words, ", "), last);
}

class Explainer {
 public:
  explicit Explainer(const RunFigures& run) : run_(run), makespan_(*run.makespan) {
    find_busiest();
    busy_ = link_busy_;
    by_digest_ = run.detail.digest && run.detail.digest->busy() > busy_;
    if (by_digest_) busy_ = run.detail.digest->busy();
    // A flow that jitter made shorter may carry more than the link's capacity says.
    busy_ = std::min(busy_, makespan_);
    bound_ = std::min(run.bound, makespan_);
  }

  std::vector<Limit> explain() {
    add(LimitKind::Bound, bound_, bound_text());
    if (busy_ > bound_) add_excess();
    add_rest(makespan_ - std::max(busy_, bound_));
    const bool at_bound = share(bound_) >= kAtTheBound;
    std::stable_sort(limits_.begin() + (at_bound ? 1 : 0), limits_.end(),
                     [](const Limit& a, const Limit& b) { return a.time > b.time; });
    return std::move(limits_);
  }

 private:
  [[nodiscard]] double share(Time time) const {
    return exact_seconds(time) / exact_seconds(makespan_);
  }

  // The first of the summary's list, but for a line that few streams hold back for longer.
  void find_busiest() {
    for (const BusyLink& link : run_.detail.busiest) {
      if (busiest_ == nullptr) {
        busiest_ = &link;
        link_busy_ = link.busy();
      }
      const LinkTraffic* traffic = link.stream_cap ? traffic_of(link) : nullptr;
      const auto streams =
          traffic == nullptr ? std::nullopt : streams_at_once(link, *traffic, makespan_);
      if (!streams) continue;
      // Not much longer is no reason to take another link, or to say other words of the same.
      const Time busy = transfer_time(link.bytes, streams->rate);
      if (busy.seconds() < 1.05 * link_busy_.seconds()) continue;
      busiest_ = &link;
      link_busy_ = busy;
      streams_ = streams;
    }
  }

  void add(LimitKind kind, Time time, std::string text) {
    if (kind == LimitKind::Bound || share(time) >= kWorthTelling) {
      limits_.push_back({kind, time, share(time), std::move(text)});
    }
  }

  [[nodiscard]] std::string bound_text() const {
    const CutFigures& cut = run_.cut;
    const std::string first = cut.channels.empty() ? "" : cut.channels.front();
    return fmt::format(
        "the bound, which no plan beats: {}",
        cut_words(cut.kind, cut.bytes, cut.sink, first, cut.channel_count, cut.capacity));
  }

  [[nodiscard]] std::string busiest_text() const {
    return fmt::format("the busiest link, '{}' ({}), is busy for {}, {} of the makespan: {} at {}",
                       busiest_->link, busiest_->kind, rounded(link_busy_),
                       percent(std::min(1.0, share(link_busy_))), rounded(busiest_->bytes),
                       rounded(rate_of(busiest_->bytes, link_busy_)));
  }

  void add_excess() {
    if (by_digest_) {
      const DigestLoad& load = *run_.detail.digest;
      add(LimitKind::Digest, busy_ - bound_,
          fmt::format("'{}' verifies for {}, {} of the makespan: {} at {}", load.worker,
                      rounded(busy_), percent(share(busy_)), rounded(load.bytes),
                      rounded(load.rate)));
      return;
    }
    const std::vector<Reason> reasons = reasons_of(*busiest_, run_.detail, streams_);
    std::string text = busiest_text();
    for (const Reason& reason : reasons) text += "; " + reason.text;
    add(reasons.empty() ? LimitKind::Busy : reasons.front().kind, busy_ - bound_, std::move(text));
  }

  [[nodiscard]] const LinkTraffic* traffic_of(const BusyLink& link) const {
    const auto found = std::find_if(run_.links.begin(), run_.links.end(),
                                    [&](const LinkTraffic& l) { return l.link == link.link; });
    return found == run_.links.end() ? nullptr : &*found;
  }

  void add_rest(Time rest) {
    if (by_digest_) {
      add(LimitKind::Waiting, rest,
          fmt::format("'{}' waits for its blocks", run_.detail.digest->worker));
      return;
    }
    const LinkTraffic* traffic = busiest_ == nullptr ? nullptr : traffic_of(*busiest_);
    if (traffic == nullptr) {
      add(LimitKind::Waiting, rest, "nothing crosses a link");
      return;
    }
    const Rate usable = rate_of(busiest_->bytes, link_busy_);
    const std::string pipeline =
        fmt::format("up to {} reads one after the other, {} blocks of up to {}", run_.detail.depth,
                    run_.blocks, rounded(run_.block_size));
    const std::string busy =
        busy_ > bound_ ? fmt::format("'{}'", busiest_->link) : busiest_text() + "; it";
    const auto rests = rests_of(*traffic, usable, makespan_);
    if (!rests) {
      add(LimitKind::Fill, rest,
          fmt::format("{} rests for {} in all while the pipeline fills, drains or waits: {}", busy,
                      rounded(makespan_ - std::min(makespan_, link_busy_)), pipeline));
      return;
    }
    const bool fills = rests->before + rests->after >= rests->between;
    const std::string times = fmt::format("{} rests for {}", busy, words_of(*rests));
    const std::string varying =
        run_.jitter > 0 ? fmt::format(", whose times vary by up to {}", percent(run_.jitter)) : "";
    add(fills ? LimitKind::Fill : LimitKind::Waiting, rest,
        fmt::format("{}: {}: {}{}", times,
                    fills ? "the pipeline fills and drains"
                          : "it waits for blocks that come another way, or its readers do",
                    pipeline, varying));
  }

  const RunFigures& run_;
  Time makespan_;
  Time bound_;
  const BusyLink* busiest_ = nullptr;
  Time link_busy_;                        // of that one
  std::optional<StreamsAtOnce> streams_;  // where they are too few to fill it
  Time busy_;                             // of what is busy longest
  bool by_digest_ = false;                // and that is a digest
  std::vector<Limit> limits_;
};

// What a run loses most to.
const char* loss_words(LimitKind kind) {
  switch (kind) {
    case LimitKind::Sharing:
      return "links that carry the same bytes several times";
    case LimitKind::SlowLink:
      return "a slow link";
    case LimitKind::Streams:
      return "too few streams";
    case LimitKind::Uneven:
      return "an uneven spread over links";
    case LimitKind::Busy:
      return "its busiest link";
    case LimitKind::Digest:
      return "verification";
    case LimitKind::Fill:
      return "the fill of its pipeline";
    case LimitKind::Waiting:
      return "waits in the middle of the run";
    case LimitKind::Failure:
    case LimitKind::Bound:
      break;
  }
  return "nothing in particular";
}

}  // namespace

std::optional<Rests> rests_of(const LinkTraffic& link, Rate usable, Time makespan) {
  const std::size_t bins = link.bins.size();
  if (bins < 2) return std::nullopt;
  const double width = makespan.seconds() / static_cast<double>(bins);
  const double most = width * static_cast<double>(usable.bytes_per_second());
  const auto used = [&](std::size_t b) {
    return std::min(1.0, static_cast<double>(link.bins[b].count()) / most);
  };
  double fullest = 0;
  for (std::size_t b = 0; b < bins; ++b) fullest = std::max(fullest, used(b));
  const auto full = [&](std::size_t b) { return used(b) > 0 && used(b) >= 0.9 * fullest; };
  std::size_t first = 0;
  while (first < bins && !full(first)) ++first;
  std::size_t last = bins;
  while (last > first && !full(last - 1)) --last;
  double before = 0;
  double between = 0;
  double after = 0;
  for (std::size_t b = 0; b < bins; ++b) {
    (b < first ? before : b < last ? between : after) += width * (1 - used(b));
  }
  return Rests{time_from_seconds(before), time_from_seconds(between), time_from_seconds(after)};
}

std::vector<Limit> limits_of(const RunFigures& run) {
  if (!run.makespan) {
    return {{LimitKind::Failure, Time(), 0, run.failure.value_or("")}};
  }
  return Explainer(run).explain();
}

std::string headline_of(const RunFigures& run, const std::vector<Limit>& limits) {
  if (!run.makespan) {
    return "failed";
  }
  const double share = *run.bound_fraction();
  if (share >= kAtTheBound) {
    return fmt::format("at the bound ({})", percent(share));
  }
  const auto other = std::find_if(limits.begin(), limits.end(), [](const Limit& limit) {
    return limit.kind != LimitKind::Bound;
  });
  return fmt::format("{} of the bound; most is lost to {}", percent(share),
                     loss_words(other == limits.end() ? LimitKind::Bound : other->kind));
}

const char* to_string(LimitKind kind) {
  switch (kind) {
    case LimitKind::Failure:
      return "failure";
    case LimitKind::Bound:
      return "bound";
    case LimitKind::Sharing:
      return "sharing";
    case LimitKind::SlowLink:
      return "slow_link";
    case LimitKind::Streams:
      return "streams";
    case LimitKind::Uneven:
      return "uneven";
    case LimitKind::Busy:
      return "busy";
    case LimitKind::Digest:
      return "digest";
    case LimitKind::Fill:
      return "fill";
    case LimitKind::Waiting:
      return "waiting";
  }
  return "unknown";
}

}  // namespace holdfast
