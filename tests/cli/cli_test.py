"""End-to-end tests of the command `holdfast`: exit statuses, messages, files.

Usage: cli_test.py HOLDFAST SOURCE_DIR
"""

import csv
import json
import os
import re
import subprocess

from cli_case import HOLDFAST, SOURCE, CliCase, jsonschema, main, validate


class CliTest(CliCase):
    # -- usage ------------------------------------------------------------------------------------

    def test_version_and_help(self):
        self.assertRegex(self.run_it("--version").stdout, r"^holdfast \d+\.\d+\.\d+\n$")
        for arguments in (["--help"], ["simulate", "--help"], ["topo", "show", "--help"]):
            self.assertIn("Usage", self.run_it(*arguments).stdout)

    def test_wrong_usage_is_wrong_input(self):
        for arguments in ([], ["simulat"], ["simulate"], ["simulate", "a", "b"], ["topo"],
                          ["check", "plan.json"], ["simulate", "a", "--trace", "all"],
                          ["simulate", "a", "--seed", "x"], ["simulate", "a", "--seed", "-1"],
                          ["simulate", "a", "--seed=-1"], ["simulate", "a", "--nonsense"]):
            done = self.run_it(*arguments, status=2)
            self.assertRegex(done.stderr, r"^holdfast: error: ")
            self.assertEqual(done.stdout, "")
        self.assertIn("--seed", self.run_it("simulate", "a", "--seed", "-1", status=2).stderr)
        for arguments, known in ((["simulat", "a.yaml"], "'simulate'"), (["topo", "shw"], "'show'")):
            self.assertIn(f"did you mean {known}", self.run_it(*arguments, status=2).stderr)

    def test_wrong_input_is_named(self):
        cases = [
            ("nmae: x\nname: small", "name: small", r"s\.yaml:2:1: .*'name'.* \[UnknownKey\]"),
            ("layout: tp8", "layout: tp4", r"s\.yaml:8:\d+: .*tp4.* \[UnknownName\]"),
            ("hosts: 'h[1-33]x'", "hosts: 'h[1-3]'", r"s\.yaml:9:\d+: .* \[UnknownName\]"),
            ("policy: [two_treee]", "policy: [star, chain, two_tree]",
             r"s\.yaml:12:\d+: .*two_tree.* \[UnknownName\]"),
            ("blocks_per_eighth: 0", "blocks_per_eighth: 8", r"s\.yaml:13:\d+: .*\[BadValue\]"),
        ]
        for replace, find, expected in cases:
            for command in ("simulate", "plan"):
                done = self.run_it(command, self.scenario(find, replace), status=2)
                self.assertRegex(done.stderr, r"^holdfast: error: .*" + expected)
                self.assertEqual(done.stdout, "")
        self.run_it("simulate", self.path("nowhere.yaml"), status=2)
        self.run_it("simulate", self.folder.name, status=2)
        done = self.run_it("simulate", self.scenario(), "--policy", "two_tre", status=2)
        self.assertIn("two_tree", done.stderr)

    def test_names_cannot_command_the_terminal(self):
        done = self.run_it("simulate", self.path("a\x1b[31m\nb.yaml"), status=2)
        self.assertNotIn("\x1b", done.stderr)
        self.assertEqual(done.stderr.count("\n"), 1)

    def test_warnings_go_to_stderr_and_into_the_summary(self):
        path = self.scenario("tp4: {tensor_parallel: 4}",
                             "tp4: {tensor_parallel: 4}, tp8: {tensor_parallel: 8}")
        done = self.run_it("simulate", path, "--policy", "chain", "--json")
        self.assertRegex(done.stderr, r"^holdfast: warning: .*s\.yaml:6:\d+: layout 'tp8'")
        self.assertEqual(len(json.loads(done.stdout)["warnings"]), 1)

    # -- simulate ---------------------------------------------------------------------------------

    def test_simulate_prints_a_table(self):
        done = self.run_it("simulate", self.scenario())
        lines = done.stdout.splitlines()
        self.assertEqual(lines[0], "small")
        header = next(i for i, line in enumerate(lines) if line.startswith("policy"))
        self.assertEqual([line.split()[0] for line in lines[header + 1:]],
                         ["star", "chain", "two_tree"])
        self.assertLessEqual(max(map(len, lines)), 100)
        self.assertEqual(done.stderr, "")  # no progress in a pipe

    def test_results_follow_the_schemas(self):
        if jsonschema is None:
            self.skipTest("python3-jsonschema is not installed")
        for trace in ("none", "worker", "block"):
            self.run_it("simulate", self.scenario(), "--out", self.path("out"), "--trace", trace)
            summary = json.loads(self.read("out", "summary.json"))
            validate([summary], "summary")
            trace_json = json.loads(self.read("out", "trace.json"))
            validate([trace_json], "trace")
            events = [json.loads(line) for line in self.read("out", "events.jsonl").splitlines()]
            validate(events, "events")
            kinds = {event["event"] for event in events}
            self.assertEqual(kinds >= {"start", "end"}, trace != "none")
            self.assertEqual("block" in kinds, trace == "block")
            rows = list(csv.DictReader(self.read("out", "links.csv").splitlines()))
            for row in rows:
                for key in ("start_s", "end_s"):
                    row[key] = float(row[key])
                for key in ("bytes", "capacity_bytes_per_s"):
                    row[key] = int(row[key])
            validate(rows, "links")
            self.check_figures(summary, events, rows)

    def check_figures(self, summary, events, rows):
        """What the files say about one another."""
        self.assertEqual([run["policy"] for run in summary["runs"]],
                         ["star", "chain", "two_tree"])
        for run in summary["runs"]:
            self.assertGreaterEqual(run["makespan_s"], run["bound_s"])
            self.assertAlmostEqual(run["bound_fraction"], run["bound_s"] / run["makespan_s"], 12)
            self.assertGreaterEqual(run["bytes_moved"]["gpu"], run["bytes_minimum"]["gpu"])
            self.assertGreaterEqual(run["bytes_moved"]["nic"], run["bytes_minimum"]["nic"])
            self.assertEqual(run["bytes_moved"]["gpu"], run["bytes_minimum"]["gpu"])
            self.assertEqual(run["gpu_stall_s"], run["rollout_stall_s"])
            self.assertLessEqual(run["rollout_stall_s"], run["makespan_s"] * 24 * (1 + 1e-12))
            ends = [e["at_s"] for e in events
                    if e["event"] == "end" and e["policy"] == run["policy"]]
            if ends:
                self.assertEqual(len(ends), 24)
                self.assertAlmostEqual(max(ends), run["makespan_s"], 11)
            blocks = [e for e in events if e["event"] == "block" and e["policy"] == run["policy"]]
            self.assertIn(len(blocks), (0, run["deliveries"]))
            mine = [row for row in rows if row["policy"] == run["policy"]]
            for row in mine:
                # A bin cannot carry more than its length allows, blocks on its edges aside.
                most = row["capacity_bytes_per_s"] * (row["end_s"] - row["start_s"])
                self.assertLessEqual(row["bytes"], most * 1.000001 + 2 * run["block_size"])
            self.assertTrue(mine)

    def test_the_same_input_gives_the_same_bytes(self):
        path = self.scenario()
        for out in ("a", "b"):
            self.run_it("simulate", path, "--out", self.path(out), "--trace", "block")
        for name in ("events.jsonl", "links.csv", "trace.json"):
            self.assertEqual(self.read("a", name), self.read("b", name), name)
        changing = re.compile(r'"(wall_s|peak_rss_bytes)": [^,\n]*')
        a, b = (changing.sub("", self.read(out, "summary.json")) for out in ("a", "b"))
        self.assertEqual(a, b)

    def test_the_json_answer_is_the_summary(self):
        done = self.run_it("simulate", self.scenario(), "--json", "--out", self.path("out"),
                           "--policy", "chain")
        self.assertEqual(done.stdout, self.read("out", "summary.json"))

    def test_a_folder_of_somebody_else_is_left_alone(self):
        os.mkdir(self.path("out"))
        self.write("out/precious.txt", "mine")
        done = self.run_it("simulate", self.scenario(), "--out", self.path("out"), status=2)
        self.assertIn("holds no results of holdfast", done.stderr)
        self.assertEqual(os.listdir(self.path("out")), ["precious.txt"])
        self.run_it("simulate", self.scenario(), "--out", self.write("file", ""), status=2)

    def test_results_may_be_replaced(self):
        for policy in ("chain", "star"):
            self.run_it("simulate", self.scenario(), "--out", self.path("out"), "--policy", policy)
        self.assertEqual(json.loads(self.read("out", "summary.json"))["runs"][0]["policy"], "star")
        self.assertEqual(sorted(os.listdir(self.path("out"))),
                         ["events.jsonl", "links.csv", "summary.json", "trace.json"])

    def test_huge_block_traces_are_refused(self):
        path = self.scenario("blocks_per_eighth: 8", "block_size: 4KiB")
        done = self.run_it("simulate", path, "--trace", "block", status=2)
        self.assertIn("--force", done.stderr)

    def test_a_shadow_update_stalls_nobody(self):
        path = self.scenario("receivers: [rollout]", "receivers: [rollout], destination: shadow")
        run = json.loads(self.run_it("simulate", path, "--json", "--policy", "chain").stdout)["runs"]
        self.assertEqual(run[0]["rollout_stall_s"], 0)
        self.assertIsNone(run[0]["stall_fraction"])

    def test_a_full_disk_fails_the_run(self):
        if not os.path.exists("/dev/full"):
            self.skipTest("there is no /dev/full here")
        with open("/dev/full", "w", encoding="utf-8") as full:
            done = subprocess.run([HOLDFAST, "--version"], stdout=full, stderr=subprocess.PIPE,
                                  text=True, check=False, timeout=60)
        self.assertEqual(done.returncode, 1)
        self.assertIn("could not be written", done.stderr)

    # -- plan and check ---------------------------------------------------------------------------

    def test_plan_and_check(self):
        topology = f"{SOURCE}/topologies/h100-16-hosts.yaml"
        plan = self.path("plan.json")
        done = self.run_it("plan", self.scenario(), "--policy", "two_tree", "--out", plan)
        self.assertIn("No plan takes less than", done.stdout)
        self.assertIn("accepted", self.run_it("check", plan, "--topology", topology).stdout)
        answer = json.loads(self.run_it("check", plan, "--topology", topology, "--json").stdout)
        self.assertTrue(answer["accepted"])
        answers = [answer]

        # Another topology, and each kind of damage.
        other = f"{SOURCE}/topologies/h100-1-host.yaml"
        done = self.run_it("check", plan, "--topology", other, status=1)
        self.assertIn("refused: 1 violation\n", done.stdout)
        self.assertRegex(done.stdout, r"/plan/topology: the plan was made for topology [0-9a-f]{32}, "
                                      r"and this is 'h100-1-host', .*\[WrongTopology\]")
        with open(plan, encoding="utf-8") as file:
            good = json.load(file)
        damaged = json.loads(json.dumps(good))
        lost = damaged["plan"]["stripes"][0]["edges"].pop()
        damaged["plan"]["stripes"][0]["blocks"]["step"] += 1
        del lost
        path = self.write("damaged.json", json.dumps(damaged))
        answer = json.loads(self.run_it("check", path, "--topology", topology, "--json",
                                        status=1).stdout)
        self.assertFalse(answer["accepted"])
        if jsonschema is not None:
            validate([*answers, answer], "check-answer")
        self.assertIn("MissingBlock", {v["code"] for v in answer["violations"]})
        self.assertIn("MissingBlock", self.run_it("check", path, "--topology", topology,
                                                  status=1).stdout)

    def test_other_traffic_is_kept_everywhere(self):
        # Blocks so small that nothing but the NICs takes time.
        text = self.read(self.scenario("blocks_per_eighth: 8", "blocks_per_eighth: 512"))
        text = text.replace("gpus: ['h0.gpu[0-3]']", "hosts: h0")
        share = "other_traffic: [{kind: nic, share: 50%}]\n"
        whole = self.write("whole.yaml", text)
        left = self.write("left.yaml", text + share)
        runs = {}
        for path in (whole, left):
            self.run_it("simulate", path, "--policy", "two_tree", "--out", self.path("out"))
            runs[path] = json.loads(self.read("out", "summary.json"))["runs"][0]
        for key in ("makespan_s", "bound_s", "predicted_s"):
            self.assertAlmostEqual(runs[left][key] / runs[whole][key], 2, delta=0.05, msg=key)
        nics = [row for row in csv.DictReader(self.read("out", "links.csv").splitlines())
                if "--switch" in row["link"]]
        self.assertEqual({row["capacity_bytes_per_s"] for row in nics}, {"25000000000"})

        # A plan for what is left is no plan for the whole machine, and the message says what to do.
        plan = self.path("plan.json")
        self.run_it("plan", left, "--policy", "two_tree", "--out", plan)
        topology = f"{SOURCE}/topologies/h100-16-hosts.yaml"
        done = self.run_it("check", plan, "--topology", topology, status=1)
        self.assertIn("--scenario", done.stdout)
        self.assertIn("accepted", self.run_it("check", plan, "--scenario", left).stdout)
        done = self.run_it("check", plan, "--scenario", whole, status=1)
        self.assertRegex(done.stdout, r"'other_traffic'.* may differ .*plan the scenario again "
                                      r"\[WrongTopology\]")
        more = self.write("more.yaml", text + share + "verify: false\n")
        self.assertIn("WrongDemand", self.run_it("check", plan, "--scenario", more,
                                                 status=1).stdout)
        for arguments in ([], ["--topology", topology, "--scenario", left]):
            self.assertIn("--scenario", self.run_it("check", plan, *arguments, status=2).stderr)

    def test_options_count_for_the_policies_that_run(self):
        options = "blocks_per_eighth: 8, objective: stall, reader_cap: 2"
        for own, given, ignored in (("chain", "auto", ["reader_cap"]),
                                    ("chain", "greedy", ["objective"]),
                                    ("chain", "auto,greedy", []),
                                    ("[auto, greedy]", "chain", ["objective", "reader_cap"])):
            text = self.read(self.scenario("[star, chain, two_tree]", own))
            path = self.write("s.yaml", text.replace("blocks_per_eighth: 8", options))
            done = self.run_it("simulate", path, "--policy", given, "--json")
            warnings = json.loads(done.stdout)["warnings"]
            self.assertEqual([w.split("'")[1] for w in warnings], ignored, given)
            self.assertEqual(done.stderr.count("no effect"), len(ignored))

    def test_greedy_is_simulated_and_not_planned(self):
        path = self.scenario("policy: [star, chain, two_tree]", "policy: [greedy, chain]")
        self.run_it("simulate", path, "--out", self.path("out"))
        summary = json.loads(self.read("out", "summary.json"))
        if jsonschema is not None:
            validate([summary], "summary")
        greedy, chain = summary["runs"]
        self.assertIsNone(greedy["predicted_s"])
        self.assertGreater(chain["predicted_s"], 0)
        self.assertEqual(greedy["deliveries"], chain["deliveries"])
        # Each receiver reads each piece of 64 blocks over an edge of its own.
        self.assertGreaterEqual(greedy["edges"], chain["edges"])
        self.assertNotEqual(greedy["plan_hash"], "0" * 32)
        # Among others it is left out of plans, and said to be; alone it is refused.
        for arguments in ([], ["--policy", "all"]):
            done = self.run_it("plan", path, "--json", *arguments)
            self.assertRegex(done.stderr, r"warning: policy 'greedy' is left out: .*simulate")
            answer = json.loads(done.stdout)
            policies = [p["policy"] for p in answer["plans"]]
            self.assertIn("chain", policies)
            self.assertNotIn("greedy", policies)
            self.assertIn("'greedy' is left out", answer["warnings"][-1])
        self.run_it("plan", path, "--out", self.path("plan.json"))
        alone = self.scenario("policy: [star, chain, two_tree]", "policy: greedy", "alone.yaml")
        for arguments in ([path, "--policy", "greedy"], [alone]):
            done = self.run_it("plan", *arguments, status=2)
            self.assertIn("holdfast simulate", done.stderr)
            self.assertEqual(done.stdout, "")
        done = self.run_it("simulate", self.scenario(), "--policy", "all", "--json")
        self.assertIn("greedy", [r["policy"] for r in json.loads(done.stdout)["runs"]])
        capped = self.scenario("blocks_per_eighth: 8", "blocks_per_eighth: 8, reader_cap: 1")
        done = self.run_it("simulate", capped, "--policy", "greedy", "--json")
        self.assertEqual(json.loads(done.stdout)["runs"][0]["planner"], "greedy cap 1")

    def test_jitter_draws_by_seed(self):
        path = self.scenario("blocks_per_eighth: 8", "blocks_per_eighth: 8, jitter: 5%")
        def makespan(*arguments):
            done = self.run_it("simulate", path, "--policy", "chain", "--json", *arguments)
            self.assertEqual(done.stderr, "")
            summary = json.loads(done.stdout)
            if jsonschema is not None:
                validate([summary], "summary")
            self.assertEqual(summary["runs"][0]["jitter"], 0.05)
            return summary["runs"][0]["makespan_s"]
        self.assertEqual(makespan("--seed", "3"), makespan("--seed", "3"))
        self.assertNotEqual(makespan("--seed", "3"), makespan("--seed", "4"))
        self.assertEqual(makespan(), makespan("--seed", "0"))
        done = self.run_it("simulate", self.scenario(), "--policy", "chain", "--seed", "3")
        self.assertIn("--seed has no effect", done.stderr)

    def test_unreadable_plans_are_wrong_input(self):
        topology = f"{SOURCE}/topologies/h100-16-hosts.yaml"
        for text in ("", "{", "[]", "{\"format\": 1}", "{\"format\": 99}"):
            path = self.write("plan.json", text)
            done = self.run_it("check", path, "--topology", topology, status=2)
            self.assertIn("plan.json", done.stderr)
        self.run_it("check", self.path("none.json"), "--topology", topology, status=2)

    def test_a_plan_file_holds_one_plan(self):
        done = self.run_it("plan", self.scenario(), "--out", self.path("plan.json"), status=2)
        self.assertIn("--policy", done.stderr)
        self.assertFalse(os.path.exists(self.path("plan.json")))

    def test_a_plan_replaces_only_a_plan(self):
        scenario = self.scenario()
        before = self.read("s.yaml")
        done = self.run_it("plan", scenario, "--policy", "star", "--out", scenario, status=2)
        self.assertIn("no plan file", done.stderr)
        self.assertEqual(self.read("s.yaml"), before)
        for policy in ("star", "chain"):
            self.run_it("plan", scenario, "--policy", policy, "--out", self.path("plan.json"))

    def test_receivers_that_nothing_reaches_are_wrong_input(self):
        with open(f"{SOURCE}/topologies/h100-16-hosts.yaml", encoding="utf-8") as file:
            topology = file.read() + "overrides:\n  - {node: switch, up: false}\n"
        self.write("t.yaml", topology)
        path = self.scenario(f"{SOURCE}/topologies/h100-16-hosts.yaml", self.path("t.yaml"))
        for command in ("simulate", "plan"):
            self.assertRegex(self.run_it(command, path, status=2).stderr,
                             r"s\.yaml:11:\d+: nothing that is up joins")

    def test_a_slow_link_makes_a_slow_run(self):
        with open(f"{SOURCE}/topologies/h100-16-hosts.yaml", encoding="utf-8") as file:
            topology = file.read() + "overrides:\n  - {link: h1.nic3--switch, capacity: 1MB/s}\n"
        self.write("t.yaml", topology)
        path = self.scenario(f"{SOURCE}/topologies/h100-16-hosts.yaml", self.path("t.yaml"))
        run = json.loads(self.run_it("simulate", path, "--json", "--policy", "chain").stdout)["runs"]
        self.assertGreater(run[0]["makespan_s"], 600)

    def test_a_pipe_is_no_input_file(self):
        os.mkfifo(self.path("pipe"))
        self.assertIn("pipe", self.run_it("topo", "show", self.path("pipe"), status=2).stderr)

    def test_a_folder_that_cannot_be_made_is_refused_before_the_run(self):
        out = os.path.join(self.write("file", ""), "x")
        self.assertIn("cannot be created",
                      self.run_it("simulate", self.scenario(), "--out", out, status=2).stderr)

    def test_complementary_parts_are_everything(self):
        path = self.scenario("holders: [trainer]",
                             "holders: [{group: rollout, replicas: [0], part: {first: 50%}}, "
                             "{group: rollout, replicas: [1], part: {last: 50%}}]")
        done = self.run_it("simulate", path, "--policy", "star")
        self.assertIn("bound", done.stdout)

    def test_plan_for_programs(self):
        answer = json.loads(self.run_it("plan", self.scenario(), "--json").stdout)
        self.assertEqual([p["policy"] for p in answer["plans"]], ["star", "chain", "two_tree"])
        if jsonschema is not None:
            validate([answer], "plan-answer")
        for entry in answer["plans"]:
            self.assertGreaterEqual(entry["predicted_s"] * (1 + 1e-9), answer["bound_s"])

    # -- topo -------------------------------------------------------------------------------------

    def test_topo_show(self):
        for name in sorted(os.listdir(f"{SOURCE}/topologies")):
            path = f"{SOURCE}/topologies/{name}"
            self.assertIn("GPU", self.run_it("topo", "show", path).stdout.upper())
            json.loads(self.run_it("topo", "show", path, "--json").stdout)
            dot = self.run_it("topo", "show", path, "--dot").stdout
            self.assertTrue(dot.startswith("graph ") and dot.endswith("}\n"), name)
        self.run_it("topo", "show", path, "--dot", "--json", status=2)
        path = self.write("t.yaml", "format: 1\nname: t\nlinkz: []\n")
        self.assertRegex(self.run_it("topo", "show", path, status=2).stderr, r"t\.yaml:3:1: ")

    # -- the scenarios that come with the program --------------------------------------------------

    def test_quickstart(self):
        done = self.run_it("simulate", f"{SOURCE}/scenarios/quickstart.yaml", "--out",
                           self.path("out"))
        self.assertEqual(done.stderr, "")
        runs = {run["policy"]: run for run in json.loads(self.read("out", "summary.json"))["runs"]}
        self.assertLess(runs["star"]["bound_fraction"], 0.1)
        self.assertGreater(runs["auto"]["bound_fraction"], 0.9)
        self.assertGreaterEqual(runs["two_tree"]["bound_fraction"],
                                runs["chain"]["bound_fraction"])


if __name__ == "__main__":
    main()
