// What limits a run, for one constructed run of each kind.
#include "core/io/compare.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include <fmt/format.h>

#include "core/io/compare_reasons.hpp"
#include "core/io/compare_stall.hpp"

namespace holdfast {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr Rate kRate(1'000'000'000);

// 10 s, bound 10 s; one link, "h0.nic >", busy all the time: 10 GB in 10 bins.
RunFigures at_the_bound() {
  RunFigures run;
  run.policy = "auto";
  run.planner = "chain";
  run.makespan = seconds(10);
  run.bound = seconds(10);
  run.cut = {"domain", "h1", Bytes(10'000'000'000), kRate, {"h0.nic >"}, 1};
  run.blocks = 100;
  run.block_size = Bytes(100'000'000);
  run.detail.depth = 3;
  BusyLink link;
  link.link = "h0.nic >";
  link.kind = "nic";
  link.bytes = Bytes(10'000'000'000);
  link.capacity = kRate;
  link.usual = kRate;
  link.streams = 4;
  link.largest_stream = Bytes(2'500'000'000);
  link.leaves = DomainCrossing{
      "h0", Level::Host, "trainer[0]", Bytes(10'000'000'000), Bytes(10'000'000'000), kRate};
  run.detail.busiest = {link};
  run.links = {{"h0.nic >", kRate, link.bytes, std::vector<Bytes>(10, Bytes(1'000'000'000))}};
  return run;
}

std::vector<LimitKind> kinds_of(const std::vector<Limit>& limits) {
  std::vector<LimitKind> kinds;
  for (const Limit& limit : limits) kinds.push_back(limit.kind);
  return kinds;
}

TEST(Limits, TheBound) {
  const RunFigures run = at_the_bound();
  const auto limits = limits_of(run);
  ASSERT_THAT(kinds_of(limits), ElementsAre(LimitKind::Bound));
  EXPECT_EQ(limits[0].time, seconds(10));
  EXPECT_EQ(limits[0].share, 1);
  EXPECT_THAT(limits[0].text, HasSubstr("10.0 GB for h1 must cross 'h0.nic >', at 1.00 GB/s"));
  EXPECT_EQ(headline_of(run, limits), "at the bound (100.0 %)");
}

// The bound would take 2 s: its bytes leave the host five times.
TEST(Limits, Sharing) {
  RunFigures run = at_the_bound();
  run.bound = seconds(2);
  run.detail.busiest[0].leaves->minimum = Bytes(2'000'000'000);
  const auto limits = limits_of(run);
  ASSERT_THAT(kinds_of(limits), ElementsAre(LimitKind::Sharing, LimitKind::Bound));
  EXPECT_EQ(limits[0].time, seconds(8));
  EXPECT_THAT(limits[0].text, HasSubstr("'h0.nic >' (nic), is busy for 10.0 s, 100.0 %"));
  EXPECT_THAT(limits[0].text, HasSubstr("10.0 GB leave host 'h0' (trainer[0]), 5.0 times the 2.00 "
                                        "GB that must"));
  EXPECT_EQ(headline_of(run, limits),
            "20.0 % of the bound; most is lost to links that carry the same bytes several times");
}

TEST(Limits, SharingBetweenTwoDomains) {
  RunFigures run = at_the_bound();
  run.bound = seconds(5);
  BusyLink& link = run.detail.busiest[0];
  link.leaves->minimum = Bytes(5'000'000'000);
  link.enters = link.leaves;
  link.enters->domain = "h1";
  link.enters->who = "";
  EXPECT_THAT(limits_of(run)[1].text + limits_of(run)[0].text,
              HasSubstr("10.0 GB cross from host 'h0' (trainer[0]) to host 'h1', 2.0 times"));
}

// A domain that only passes on: the domains of its level together.
TEST(Limits, SharingOfALevel) {
  RunFigures run = at_the_bound();
  run.bound = seconds(2);
  run.detail.busiest[0].leaves->minimum = Bytes();
  LevelCrossing all;
  all.level = Level::Host;
  all.bytes = Bytes(30'000'000'000);
  all.minimum = Bytes(10'000'000'000);
  run.detail.crossings = {all};
  const auto limits = limits_of(run);
  EXPECT_EQ(limits[0].kind, LimitKind::Sharing);
  EXPECT_THAT(limits[0].text, HasSubstr("30.0 GB enter all hosts together, 3.0 times the 10.0 GB"));
  run.detail.crossings.clear();
  run.detail.busiest[0].enters = run.detail.busiest[0].leaves;
  EXPECT_THAT(limits_of(run)[0].text, HasSubstr("where nothing is missing"));
}

TEST(Limits, ASlowLink) {
  RunFigures run = at_the_bound();
  run.bound = seconds(4);
  run.detail.busiest[0].usual = Rate(2'500'000'000);
  const auto limits = limits_of(run);
  ASSERT_THAT(kinds_of(limits), ElementsAre(LimitKind::SlowLink, LimitKind::Bound));
  EXPECT_THAT(limits[0].text, HasSubstr("links like it usually have 2.50 GB/s"));
}

// As a tree that does not know datacenters: the slow line would not hold without the copies.
TEST(Limits, CopiesThatCrossComeBeforeASlowLink) {
  RunFigures run = at_the_bound();
  run.bound = seconds(1);
  BusyLink& link = run.detail.busiest[0];
  link.usual = Rate(5'000'000'000);
  link.leaves->level = Level::Datacenter;
  link.leaves->minimum = Bytes(2'500'000'000);
  link.enters = link.leaves;
  link.enters->domain = "dc1";
  link.enters->minimum = Bytes(3'000'000'000);
  const auto limits = limits_of(run);
  ASSERT_THAT(kinds_of(limits), ElementsAre(LimitKind::Sharing, LimitKind::Bound));
  EXPECT_LT(limits[0].text.find("4.0 times the 2.50 GB that must"),
            limits[0].text.find("links like it usually have 5.00 GB/s"));
  EXPECT_THAT(headline_of(run, limits), HasSubstr("carry the same bytes several times"));

  // Twice out, to two others that are each entered once: nothing crosses a border again.
  link.enters->minimum = link.enters->bytes;
  EXPECT_EQ(limits_of(run)[0].kind, LimitKind::SlowLink);
  // But once all that enters is more than must, wherever that is.
  LevelCrossing all;
  all.level = Level::Datacenter;
  all.bytes = Bytes(15'000'000'000);
  all.minimum = Bytes(10'000'000'000);
  run.detail.crossings = {all};
  EXPECT_EQ(limits_of(run)[0].kind, LimitKind::Sharing);
  run.detail.crossings[0].level = Level::Host;
  EXPECT_EQ(limits_of(run)[0].kind, LimitKind::SlowLink);
}

// Three streams of 900 MB/s on a line of 12.5 GB/s, 30 of them one after the other. By its bytes a
// NIC is busier.
TEST(Limits, TooFewStreamsAtATime) {
  RunFigures run = at_the_bound();
  run.bound = seconds(4);
  run.detail.busiest[0].bytes = Bytes(4'000'000'000);
  BusyLink line;
  line.link = "wan >";
  line.kind = "wan";
  line.capacity = Rate(12'500'000'000);
  line.usual = line.capacity;
  line.streams = 30;
  line.largest_stream = Bytes(900'000'000);
  line.stream_cap = Rate(900'000'000);
  LinkTraffic traffic{"wan >", line.capacity, {}, std::vector<Bytes>(10, Bytes(2'700'000'000))};
  traffic.bins[9] = Bytes(1'300'000'000);
  for (const Bytes bin : traffic.bins) traffic.bytes += bin;
  line.bytes = traffic.bytes;
  run.detail.busiest.push_back(line);
  run.links.push_back(traffic);
  const auto limits = limits_of(run);
  ASSERT_THAT(kinds_of(limits), ElementsAre(LimitKind::Streams, LimitKind::Bound, LimitKind::Fill));
  EXPECT_THAT(limits[0].text, HasSubstr("about 3 streams of 900 MB/s carry it at a time, where 14 "
                                        "would fill it"));
  EXPECT_EQ(headline_of(run, limits), "40.0 % of the bound; most is lost to too few streams");
}

TEST(Limits, StreamsAreTooFewOnlyBelowTheCapacityAndNearWholeNumbers) {
  BusyLink link;
  link.capacity = Rate(1'000);
  link.stream_cap = Rate(100);
  const auto at_once = [&](std::vector<Bytes> bins) {
    const auto time = seconds(static_cast<std::int64_t>(bins.size()));
    const auto streams = streams_at_once(link, {"a", link.capacity, {}, std::move(bins)}, time);
    return streams ? streams->count : 0;
  };
  using B = Bytes;
  EXPECT_EQ(at_once({B(300), B(300), B(200), B(0), B(305)}), 3U);
  EXPECT_EQ(at_once({B(300), B(300), B(990), B(300)}), 0U);  // it can be full
  EXPECT_EQ(at_once({B(330), B(340), B(350), B(300)}), 0U);  // something else sets its pace
  EXPECT_EQ(at_once({B(0), B(0), B(0), B(0)}), 0U);
  EXPECT_EQ(at_once({B(300), B(300)}), 0U);
  link.streams = 2;  // so three cannot be
  EXPECT_EQ(at_once({B(300), B(300), B(300), B(300)}), 0U);
  link.stream_cap = std::nullopt;
  EXPECT_EQ(at_once({B(300), B(300), B(300), B(300)}), 0U);
}

TEST(Limits, TooFewStreams) {
  RunFigures run = at_the_bound();
  run.bound = seconds(4);
  BusyLink& link = run.detail.busiest[0];
  link.capacity = Rate(2'500'000'000);
  link.usual = link.capacity;
  link.stream_cap = Rate(250'000'000);
  const auto limits = limits_of(run);
  ASSERT_THAT(kinds_of(limits), ElementsAre(LimitKind::Streams, LimitKind::Bound));
  EXPECT_THAT(limits[0].text, HasSubstr("10.0 GB at 1.00 GB/s; the largest of its 4 streams "
                                        "carries 2.50 GB and gets no more than 250 MB/s"));
}

TEST(Limits, AnUnevenSpread) {
  RunFigures run = at_the_bound();
  run.bound = seconds(4);
  run.detail.busiest[0].leaves->capacity = Rate(4'000'000'000);
  const auto limits = limits_of(run);
  ASSERT_THAT(kinds_of(limits), ElementsAre(LimitKind::Uneven, LimitKind::Bound));
  EXPECT_THAT(limits[0].text, HasSubstr("spread over all links of host 'h0' (trainer[0]) it would "
                                        "take 2.50 s"));
}

TEST(Limits, NoReasonThatIsKnown) {
  RunFigures run = at_the_bound();
  run.bound = seconds(4);
  EXPECT_THAT(kinds_of(limits_of(run)), ElementsAre(LimitKind::Busy, LimitKind::Bound));
}

TEST(Limits, Verification) {
  RunFigures run = at_the_bound();
  run.bound = seconds(4);
  run.detail.busiest[0].bytes = Bytes(3'000'000'000);
  run.detail.digest = DigestLoad{"h1.gpu0", Bytes(9'000'000'000), kRate};
  const auto limits = limits_of(run);
  EXPECT_THAT(kinds_of(limits),
              ElementsAre(LimitKind::Digest, LimitKind::Bound, LimitKind::Waiting));
  EXPECT_THAT(limits[0].text, HasSubstr("'h1.gpu0' verifies for 9.00 s, 90.0 %"));
}

// 3 s idle at the start, 1 s at the end.
TEST(Limits, TheFillOfThePipeline) {
  RunFigures run = at_the_bound();
  run.bound = seconds(6);
  run.detail.busiest[0].bytes = Bytes(6'000'000'000);
  run.links[0].bytes = Bytes(6'000'000'000);
  for (const std::size_t bin : {0U, 1U, 2U, 9U}) run.links[0].bins[bin] = Bytes();
  const auto limits = limits_of(run);
  ASSERT_THAT(kinds_of(limits), ElementsAre(LimitKind::Bound, LimitKind::Fill));
  EXPECT_EQ(limits[1].time, seconds(4));
  EXPECT_THAT(limits[1].text, HasSubstr("rests for 3.00 s at the start and 1.00 s at the end"));
  EXPECT_THAT(limits[1].text, HasSubstr("up to 3 reads one after the other, 100 blocks of up to "
                                        "100 MB"));
  EXPECT_EQ(headline_of(run, limits),
            "60.0 % of the bound; most is lost to the fill of its pipeline");
}

TEST(Limits, WaitsInBetween) {
  RunFigures run = at_the_bound();
  run.bound = seconds(7);
  run.jitter = 0.05;
  run.detail.busiest[0].bytes = Bytes(7'000'000'000);
  run.links[0].bytes = Bytes(7'000'000'000);
  for (const std::size_t bin : {3U, 4U, 7U}) run.links[0].bins[bin] = Bytes();
  const auto limits = limits_of(run);
  ASSERT_THAT(kinds_of(limits), ElementsAre(LimitKind::Bound, LimitKind::Waiting));
  EXPECT_THAT(limits[1].text, HasSubstr("rests for 3.00 s in between"));
  EXPECT_THAT(limits[1].text, HasSubstr("vary by up to 5.0 %"));
}

TEST(Limits, AFailure) {
  RunFigures run = at_the_bound();
  run.makespan = std::nullopt;
  run.failure = "ReadTimeout";
  const auto limits = limits_of(run);
  ASSERT_THAT(kinds_of(limits), ElementsAre(LimitKind::Failure));
  EXPECT_EQ(limits[0].text, "ReadTimeout");
  EXPECT_EQ(headline_of(run, limits), "failed");
}

TEST(Limits, RestsNeedBins) {
  EXPECT_FALSE(rests_of({"a", kRate, Bytes(5), {Bytes(5)}}, kRate, seconds(1)));
  const auto rests = rests_of({"a", kRate, Bytes(0), {Bytes(0), Bytes(0)}}, kRate, seconds(1));
  ASSERT_TRUE(rests);
  EXPECT_EQ(rests->before, seconds(1));
}

// Whatever the figures: shares lie in [0, 1], the bound is never left out, and the parts add up to
// the makespan but for those below 1 % each.
TEST(Limits, AddUpToTheMakespan) {
  for (std::uint64_t seed = 1; seed <= 2'000; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937_64 random(seed);
    const auto below = [&](std::uint64_t n) { return random() % n; };
    RunFigures run = at_the_bound();
    run.bound = Time(static_cast<std::int64_t>(below(11'000'000'000'000)));
    BusyLink& link = run.detail.busiest[0];
    link.bytes = Bytes(below(12'000'000'000));
    link.usual = Rate(1 + below(3'000'000'000));
    link.leaves->minimum = Bytes(below(2) * below(10'000'000'000));
    link.leaves->capacity = Rate(1 + below(8'000'000'000));
    if (below(2) == 0) link.stream_cap = Rate(1 + below(1'000'000'000));
    if (below(3) == 0) link.enters = link.leaves;
    if (below(3) == 0) {
      run.detail.digest = DigestLoad{"w", Bytes(below(12'000'000'000)), kRate};
    }
    for (Bytes& bin : run.links[0].bins) bin = Bytes(below(1'100'000'000));
    if (below(5) == 0) run.links.clear();
    if (below(5) == 0) run.detail.busiest.clear();
    double sum = 0;
    bool bound = false;
    for (const Limit& limit : limits_of(run)) {
      EXPECT_GE(limit.share, 0);
      EXPECT_LE(limit.share, 1);
      EXPECT_FALSE(limit.text.empty());
      EXPECT_EQ(limit.text.find("inf"), std::string::npos) << limit.text;
      sum += limit.share;
      bound = bound || limit.kind == LimitKind::Bound;
    }
    EXPECT_TRUE(bound);
    EXPECT_GE(sum, 0.98);
    EXPECT_LE(sum, 1 + 1e-9);
  }
}

// The makespan is at its bound, most GPUs are not: the near ones could be done long before.
TEST(Stall, NamesTheGroupsThatWaitLonger) {
  RunFigures run = at_the_bound();
  run.stall_fraction = 0.25;
  GroupWait near{
      "near", "rollout", 31, 248, seconds(1), seconds(9), milliseconds(500), milliseconds(600),
      1'500};
  GroupWait far{"far", "rollout", 1, 8, seconds(10), seconds(10), seconds(9), seconds(9), 300};
  GroupWait fast{"fast", "rollout", 8, 64, seconds(1), seconds(1), seconds(1), seconds(1), 10};
  run.detail.waits = {fast, far, near};
  const auto words = stall_words(run);
  ASSERT_TRUE(words);
  EXPECT_EQ(*words,
            "GPUs wait 4.0 times what they must, 1810 GPU-seconds more: 'near' (rollout, 31 "
            "replicas) is complete after 1.00 s to 9.00 s, its own bound is 500 ms to 600 ms (83 % "
            "of the excess); 'far' (rollout, 1 replica) is complete after 10.0 s, its own bound is "
            "9.00 s (17 % of the excess)");
  const Comparison both = compare({Results{"a", "s", {}, "", "", {}, 0, 0, {}, {run}, {}}}, 3);
  EXPECT_EQ(both.runs[0].stall, words);
  run.stall_fraction = 0.95;  // not clearly lower
  EXPECT_FALSE(stall_words(run));
  run.stall_fraction = std::nullopt;
  EXPECT_FALSE(stall_words(run));
  run.stall_fraction = 0.25;
  run.detail.waits.clear();
  EXPECT_FALSE(stall_words(run));
  run.detail.waits = {near};
  run.makespan = std::nullopt;
  EXPECT_FALSE(stall_words(run));
}

Results folder_of(const std::string& folder, std::vector<RunFigures> runs) {
  Results results;
  results.folder = folder;
  results.scenario = "s";
  results.runs = std::move(runs);
  return results;
}

TEST(Compare, NamesRunsByWhatTellsThemApart) {
  RunFigures star = at_the_bound();
  star.policy = "star";
  const Comparison both =
      compare({folder_of("x/a/", {star, at_the_bound()}), folder_of("x/b", {at_the_bound()})}, 3);
  ASSERT_EQ(both.runs.size(), 3U);
  EXPECT_EQ(both.runs[0].label, "star@a");
  EXPECT_EQ(both.runs[1].label, "auto@a");
  EXPECT_EQ(both.runs[2].label, "auto@b");
  EXPECT_THAT(both.warnings, IsEmpty());
  const Comparison single = compare({folder_of("x/a/", {star, at_the_bound()})}, 3);
  EXPECT_EQ(single.runs[0].label, "star");
  EXPECT_EQ(single.runs[1].label, "auto");
  const Comparison alike =
      compare({folder_of("x/a", {at_the_bound()}), folder_of("y/a", {at_the_bound()})}, 3);
  EXPECT_EQ(alike.runs[0].label, "auto@x/a");
  EXPECT_EQ(alike.runs[1].label, "auto@y/a");
}

TEST(Compare, SaysWhatDiffers) {
  Results first = folder_of("a", {at_the_bound()});
  Results other = folder_of("b", {at_the_bound()});
  other.inputs.scenario.low = 1;
  EXPECT_THAT(compare({first, other}, 3).warnings,
              ElementsAre(HasSubstr("topology, model, demand and options are the same")));
  other.inputs.topology.low = 1;
  other.inputs.demand.low = 1;
  EXPECT_THAT(compare({first, other}, 3).warnings,
              ElementsAre(::testing::AllOf(HasSubstr("the topology"), HasSubstr("which blocks"))));
  other.scenario = "t";
  EXPECT_THAT(compare({first, other}, 3).warnings,
              ElementsAre(HasSubstr("answer different questions")));
}

// Options are named with their values; what they explain is not told a second time.
TEST(Compare, SaysWhichOptionsDiffer) {
  Results first = folder_of("a", {at_the_bound()});
  first.runs[0].block_size = Bytes(8 << 20);
  Results other = first;
  other.folder = "b";
  other.inputs.scenario.low = 1;
  other.inputs.demand.low = 1;
  other.inputs.manifest.low = 1;
  other.runs[0].block_size = Bytes(32 << 20);
  EXPECT_THAT(compare({first, other}, 3).warnings,
              ElementsAre("the block size differs: 8 MiB in 'a', 32 MiB in 'b'"));
  other.replicas = 1;
  EXPECT_THAT(compare({first, other}, 3).warnings,
              ElementsAre(HasSubstr("who holds and wants which blocks"), HasSubstr("32 MiB")));

  other = first;
  other.folder = "b";
  other.inputs.topology.low = 1;
  other.other_traffic = {"30 % of nic", "50 % of wan"};
  other.runs[0].jitter = 0.05;
  other.runs[0].objective = "stall";
  first.runs[0].objective = "makespan";
  other.runs[0].seed = 7;
  Results third = other;
  third.folder = "c";
  third.runs[0].seed = 8;
  EXPECT_THAT(compare({first, other, third}, 3).warnings,
              ElementsAre("jitter differs: none in 'a', 5 % in 'b' and 'c'",
                          "the objective differs: makespan in 'a', stall in 'b' and 'c'",
                          "other traffic differs: none in 'a', 30 % of nic and 50 % of wan in 'b' "
                          "and 'c'",
                          "the seed differs: 0 in 'a', 7 in 'b', 8 in 'c'"));
  other.topology = "t";  // which no option explains
  EXPECT_THAT(compare({first, other}, 3).warnings[0], HasSubstr("the topology"));
}

TEST(Compare, SaysTheReaderCapOfGreedyAlone) {
  Results first = folder_of("a", {at_the_bound()});
  Results capped = folder_of("b", {at_the_bound()});
  capped.runs[0].policy = "greedy";
  capped.runs[0].reader_cap = 2;
  EXPECT_THAT(compare({first, capped}, 3).warnings, IsEmpty());
  std::vector<Results> folders = {capped};
  for (const char* name : {"c", "d", "e", "f"}) {
    folders.push_back(capped);
    folders.back().folder = name;
    folders.back().runs[0].reader_cap = std::nullopt;
  }
  EXPECT_THAT(compare(folders, 3).warnings,
              ElementsAre("the reader cap of greedy differs: 2 in 'b', none in 'c', 'd' and 2 "
                          "more"));
}

TEST(Compare, TellsTheRangeOfALinksUse) {
  const LinkRange range = range_of({"x", {std::nullopt, 0.25, 0.75, 0.125, 0.75}});
  EXPECT_EQ(range.busiest, 2U);
  EXPECT_EQ(range.most, 0.75);
  EXPECT_EQ(range.least, 0.125);
  EXPECT_EQ(range.runs, 4U);
}

TEST(Compare, PutsTheBusiestLinksOfEachRunInOneTable) {
  RunFigures one = at_the_bound();
  one.links.push_back({"x", kRate, Bytes(5'000'000'000), {Bytes(5'000'000'000)}});
  RunFigures two = at_the_bound();
  two.links = {{"x", kRate, Bytes(9'000'000'000), {Bytes(9'000'000'000)}},
               {"y", kRate, Bytes(1'000'000'000), {Bytes(1'000'000'000)}}};
  const Comparison both = compare({folder_of("a", {one}), folder_of("b", {two})}, 1);
  ASSERT_EQ(both.links.size(), 2U);  // the busiest one of each
  EXPECT_EQ(both.links[0].link, "h0.nic >");
  EXPECT_THAT(both.links[0].used, ElementsAre(1.0, std::nullopt));
  EXPECT_EQ(both.links[1].link, "x");
  EXPECT_THAT(both.links[1].used, ElementsAre(0.5, 0.9));
}

}  // namespace
}  // namespace holdfast
