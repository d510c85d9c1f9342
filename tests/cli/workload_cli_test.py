"""End-to-end tests of scenarios with workloads: `holdfast simulate`.

Usage: workload_cli_test.py HOLDFAST SOURCE_DIR
"""

import csv
import json

from cli_case import SOURCE, CliCase, jsonschema, main, validate

WORKLOAD = """format: 1
name: paper-elastic-small
topology: {source}/topologies/h100-16-hosts.yaml
model: {{preset: qwen2.5-7b}}
layouts: {{tp4: {{tensor_parallel: 4}}}}
groups:
  trainer: {{place: {{gpus: ['h0.gpu[0-3]']}}, layout: tp4, role: trainer}}
  rollout: {{place: {{hosts: 'h[1-2]'}}, layout: tp4, role: rollout}}
  spot: {{place: {{hosts: 'h[3-4]'}}, layout: tp4, role: rollout, reliability: spot}}
workload:
  kind: elastic
  trainers: trainer
  rollouts: [rollout, spot]
  loop: asynchronous
  steps: 2
  step_time: 10s
  write_time: 1s
  batch: 16
  lengths: {{lognormal: {{median: 200, sigma: 1.0}}, most: 2000}}
  token_time: 20ms
  slots: 8
  partial_rollouts: true
  members: {{initial: 3, arrivals: 30/min, lifetime: {{exponential: {{mean: 20s}}}}, notice: 2s}}
retain: {{copies: 2, level: host, versions: 1}}
faults:
  - {{kind: host, target: h1, action: kill, at_transfer: 50%, update: 2, restart_after: 3s}}
policy: [auto, greedy]
options: {{blocks_per_eighth: 8}}
seed: 3
"""


class WorkloadCliTest(CliCase):
    def workload(self, find="", replace="", name="w.yaml"):
        text = WORKLOAD.format(source=SOURCE)
        self.assertIn(find, text)
        return self.write(name, text.replace(find, replace) if find else text)

    def test_a_workload_is_run(self):
        done = self.run_it("simulate", self.workload(), "--out", self.path("out"), "--trace",
                           "block")
        self.assertLessEqual(max(map(len, done.stdout.splitlines())), 100)
        self.assertIn("Failures with auto", done.stdout)
        summary = json.loads(self.read("out", "summary.json"))
        events = [json.loads(line) for line in self.read("out", "events.jsonl").splitlines()]
        rows = list(csv.DictReader(self.read("out", "links.csv").splitlines()))
        for row in rows:
            row["start_s"], row["end_s"] = float(row["start_s"]), float(row["end_s"])
            row["bytes"] = int(row["bytes"])
            row["capacity_bytes_per_s"] = int(row["capacity_bytes_per_s"])
        if jsonschema is not None:
            validate([summary], "summary")
            validate(events, "events")
            validate(rows, "links")
            validate([json.loads(self.read("out", "trace.json"))], "trace")
        for run in summary["runs"]:
            self.assertEqual(run["workload"]["versions"], 3)
            self.assertGreaterEqual(len(run["updates"]), 3)
            self.assertIn("host", [failure["kind"] for failure in run["failures"]])
            stalls = run["workload"]["stalls"]
            self.assertEqual([stall["group"] for stall in stalls], ["trainer", "rollout", "spot"])
            self.assertAlmostEqual(sum(stall["rollout_stall_s"] for stall in stalls),
                                   run["rollout_stall_s"], places=6)
            self.assertLessEqual(run["bound_fraction"], 1)
            self.assertLessEqual(run["stall_fraction"], 1)
            for update in run["updates"]:
                if update["makespan_s"] is not None:
                    self.assertLessEqual(update["bound_s"], update["makespan_s"])
            own = [event for event in events if event["policy"] == run["policy"]]
            times = [event["at_s"] for event in own]
            self.assertEqual(times, sorted(times))
            ends = [event["message"] for event in own if event["event"] == "call"
                    and event["worker"] == "h0.gpu0"]
            self.assertEqual([end for end in ends if end.startswith("publish")],
                             [f"publish 1.{n}: Ok: version 1.{n}" for n in (1, 2, 3)])
        self.assertTrue(summary["runs"][0]["workload"]["plans"])

    def test_names_that_are_not_there_are_refused_before_anything_runs(self):
        at = "kind: host, target: h1,"
        for find, replace, place, what in (
                (at, "kind: host, target: h99,", r"w.yaml:26:\d+", "h99"),
                (at, "kind: worker, target: h1.gpu99,", r"w.yaml:26:\d+", "gpu99")):
            done = self.run_it("simulate", self.workload(find, replace), status=2)
            self.assertEqual(done.stdout, "")
            errors = [line for line in done.stderr.splitlines() if "error: " in line]
            self.assertEqual(len(errors), 1, done.stderr)
            self.assertRegex(errors[0], f"error: .*{place}: .*{what}")

    def test_a_workload_is_deterministic_by_seed(self):
        def figures(*arguments):
            done = self.run_it("simulate", self.workload(), "--json", "--policy", "auto",
                               *arguments)
            run = json.loads(done.stdout)["runs"][0]
            for key in ("wall_s", "peak_rss_bytes", "seed"):
                del run[key]
            return run
        once = figures()
        self.assertEqual(once, figures())
        self.assertEqual(once, figures("--seed", "3"))
        self.assertNotEqual(once, figures("--seed", "4"))

    def test_baselines_run_workloads_and_are_compared_with_the_paper(self):
        quiet = self.workload("faults:\n  - {kind: host, target: h1, action: kill, "
                              "at_transfer: 50%, update: 2, restart_after: 3s}\n", "")
        folders = []
        for name, find, replace in (("one", "", ""), ("two", "mean: 20s", "mean: 40s")):
            text = self.read(quiet)
            path = self.write(f"{name}.yaml", text.replace(find, replace) if find else text)
            folders.append(self.path(name))
            done = self.run_it("simulate", path, "--policy", "auto,ucx,nccl,store", "--out",
                               folders[-1])
            for policy in ("auto", "ucx", "nccl", "store"):
                self.assertIn(f"\n{policy}: 3 versions", done.stdout)
        answer = json.loads(self.run_it("compare", *folders, "--json").stdout)
        if jsonschema is not None:
            validate([answer], "compare")
        (surface,) = answer["paper"]
        self.assertEqual(surface["baseline"], "ucx")
        self.assertEqual(surface["axes"], ["lifetime"])
        self.assertEqual(sorted(point["values"][0] for point in surface["points"]),
                         ["20s", "40s"])
        self.assertTrue(all(point["ratio"] > 0 for point in surface["points"]))
        self.assertIn("published 4.8x", surface["place"])
        self.assertIn("published 4.8x", self.run_it("compare", *folders).stdout)


if __name__ == "__main__":
    main()
