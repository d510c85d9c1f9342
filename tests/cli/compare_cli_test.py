"""End-to-end tests of `holdfast compare`.

Usage: compare_cli_test.py HOLDFAST SOURCE_DIR
"""

import json
import os

from cli_case import SOURCE, CliCase, jsonschema, main, validate


class CompareCliTest(CliCase):
    def compare(self, *arguments):
        """The answer for programs, validated."""
        answer = json.loads(self.run_it("compare", *arguments, "--json").stdout)
        if jsonschema is not None:
            validate([answer], "compare")
        return answer

    def test_compare_says_what_limits(self):
        out = self.path("out")
        self.run_it("simulate", f"{SOURCE}/scenarios/quickstart.yaml", "--policy", "star,auto",
                    "--out", out)
        text = self.run_it("compare", out).stdout
        flat = " ".join(text.split())
        # The star: the trainer's NICs send every byte fifteen times.
        self.assertIn("star: 6.7 % of the bound; most is lost to links that carry the same bytes "
                      "several times", flat)
        self.assertRegex(flat, r"the busiest link, 'h0\.nic\d--switch >' \(nic\), is busy for "
                               r"5\.29 s, 100\.0 % of the makespan")
        self.assertIn("2.12 TB leave host 'h0' (trainer[0]), 15.0 times the 141 GB that must", flat)
        # The best plan: the cut, then the fill of the pipeline.
        self.assertIn("auto: at the bound", flat)
        self.assertIn("must cross 8 links", flat)
        self.assertIn("the pipeline fills and drains", flat)
        for line in text.splitlines():
            self.assertEqual(line, line.rstrip())

        star, auto = self.compare(out)["runs"]
        self.assertEqual([limit["kind"] for limit in star["limits"]], ["sharing", "bound"])
        self.assertEqual([limit["kind"] for limit in auto["limits"]], ["bound", "fill"])
        for run in (star, auto):
            self.assertAlmostEqual(sum(limit["share"] for limit in run["limits"]), 1, delta=0.02)
            into_hosts = next(c for c in run["crossings"]
                              if (c["level"], c["direction"]) == ("host", "in"))
            self.assertEqual(into_hosts["bytes"], run["bytes_moved"]["nic"])
            self.assertEqual(into_hosts["minimum"], run["bytes_minimum"]["nic"])

    def test_compare_across_datacenters(self):
        out = self.path("out")
        scenario = f"{SOURCE}/scenarios/cross-datacenter.yaml"
        self.run_it("simulate", scenario, "--policy", "chain,two_tree,auto", "--out", out)
        chain, two_tree, auto = self.compare(out)["runs"]
        self.assertEqual(chain["limits"][1]["kind"], "streams")
        self.assertEqual(two_tree["limits"][1]["kind"], "sharing")
        self.assertEqual(auto["limits"][0]["kind"], "bound")
        for run in (chain, two_tree, auto):
            self.assertEqual(run["busiest_links"][0]["kind"], "wan")
            into = sum(c["bytes"] for c in run["crossings"]
                       if (c["level"], c["direction"]) == ("datacenter", "in"))
            self.assertEqual(into, run["bytes_moved"]["wan"])

    def test_compare_names_copies_before_slow_lines(self):
        out = self.path("out")
        scenario = f"{SOURCE}/scenarios/three-datacenters.yaml"
        self.run_it("simulate", scenario, "--policy", "two_tree,binomial", "--out", out)
        for run in self.compare(out)["runs"]:
            limit = run["limits"][0]
            self.assertEqual(limit["kind"], "sharing")
            self.assertLess(limit["text"].index("that must"), limit["text"].index("usually have"))
            self.assertEqual([wait["group"] for wait in run["group_waits"]],
                             ["near", "second", "third"])
        # The near ones could be done long before the makespan.
        two_tree, binomial = self.compare(out)["runs"]
        self.assertIn("'near' (rollout, 31 replicas) is complete after", two_tree["stall"])
        self.assertIsNone(binomial["stall"])  # 9 % where the makespan has 18 %
        self.assertIn("    stall           GPUs wait", self.run_it("compare", out).stdout)

    def test_compare_shows_ranges_of_many_runs(self):
        folders = [self.path(f"run{run}") for run in range(7)]
        for folder, policy in zip(folders, ["chain"] * 6 + ["star"]):
            self.run_it("simulate", self.scenario(), "--policy", policy, "--out", folder)
        six = self.run_it("compare", *folders[:6]).stdout
        self.assertRegex(six, r"\nlink +chain@run0 .* chain@run5\n")
        seven = self.run_it("compare", *folders).stdout
        self.assertRegex(seven, r"\nlink +busiest in +used +least +in runs\n")
        self.assertRegex(seven, r"\n\S+ [<>] +star@run6 +[\d.]+ % +[\d.]+ % +7\n")

    def test_compare_counts_streams_at_a_time(self):
        with open(f"{SOURCE}/scenarios/cross-datacenter.yaml", encoding="utf-8") as file:
            text = file.read()
        for old, new in [("../topologies", f"{SOURCE}/topologies"), ("256}", "256, reader_cap: 2}"),
                         ("[chain, two_tree, auto]", "greedy")]:
            self.assertIn(old, text)
            text = text.replace(old, new)
        out = self.path("out")
        self.run_it("simulate", self.write("capped.yaml", text), "--out", out)
        limit = self.compare(out)["runs"][0]["limits"][1]
        self.assertEqual(limit["kind"], "streams")
        self.assertIn("about 8 streams of 1.25 GB/s carry it at a time, where 10 would fill it",
                      limit["text"])

    def test_compare_puts_folders_side_by_side(self):
        path = self.scenario("blocks_per_eighth: 8", "blocks_per_eighth: 8, jitter: 5%")
        for seed in "34":
            self.run_it("simulate", path, "--policy", "chain,star", "--seed", seed, "--out",
                        self.path("seed" + seed))
        both = [self.path("seed3"), self.path("seed4")]
        done = self.run_it("compare", *both)
        self.assertRegex(" ".join(done.stderr.split()),
                         r"the seed differs: 3 in '[^']*seed3', 4 in '[^']*seed4'$")
        for label in ("chain@seed3", "star@seed4"):
            self.assertIn(label, done.stdout)
        self.assertEqual([run["seed"] for run in self.compare(*both)["runs"]], [3, 3, 4, 4])
        # Another machine is said so, and another question even more.
        left = self.scenario("holders:", "other_traffic: [{kind: nic, share: 50%}]\nholders:")
        self.run_it("simulate", left, "--policy", "chain", "--out", self.path("left"))
        done = self.run_it("compare", both[0], self.path("left"))
        self.assertIn("chain@left", done.stdout)
        warnings = self.compare(both[0], self.path("left"))["warnings"]
        self.assertEqual([text.split(" differs: ")[0] for text in warnings],
                         ["jitter", "other traffic", "the seed"])
        self.assertIn("none in", warnings[1])
        self.assertIn("50 % of nic in", warnings[1])
        sized = self.scenario("blocks_per_eighth: 8", "block_size: 2MiB")
        self.run_it("simulate", sized, "--policy", "chain", "--out", self.path("sized"))
        warnings = self.compare(self.path("sized"), self.path("left"))["warnings"]
        self.assertTrue(warnings[0].startswith("the block size differs: 2 MiB in"), warnings)
        other = self.scenario("name: small", "name: other")
        self.run_it("simulate", other, "--policy", "chain", "--out", self.path("other"))
        self.assertIn("different questions",
                      self.run_it("compare", both[0], self.path("other")).stderr)

    def test_compare_refuses_wrong_folders(self):
        out = self.path("out")
        self.run_it("simulate", self.scenario(), "--policy", "chain", "--out", out)
        os.mkdir(self.path("empty"))
        summary = self.read("out", "summary.json")
        links = self.read("out", "links.csv")
        cases = [
            ([], "DIR"),
            ([self.path("nowhere")], "no folder"),
            ([self.path("s.yaml")], "no folder"),
            ([self.path("empty")], "no summary.json in this folder; name one that"),
            ([out, self.path("nowhere")], "no folder"),
            ([out, out + "/"], "named twice"),
            ([out, "--top", "0"], "--top"),
        ]
        for arguments, message in cases:
            done = self.run_it("compare", *arguments, status=2)
            self.assertIn(message, done.stderr)
            self.assertEqual(done.stdout, "")
        for name, text, message in [
                ("summary.json", summary.replace('"depth"', '"deep"'), r"at /runs/0\).*'depth'"),
                ("summary.json", summary[:100], r"summary\.json:\d+:\d+ .*not well-formed"),
                ("links.csv", links[:-5], r"links\.csv:\d+:\d+: .*middle of a row"),
                ("links.csv", links.replace("chain,", "star,"), r"links\.csv: .*different runs")]:
            self.write("out/summary.json", summary)
            self.write("out/links.csv", links)
            self.write("out/" + name, text)
            done = self.run_it("compare", out, status=2)
            self.assertRegex(done.stderr, message)
            self.assertEqual(done.stdout, "")


if __name__ == "__main__":
    main()
