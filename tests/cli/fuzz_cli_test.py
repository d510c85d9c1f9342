"""End-to-end tests of `holdfast fuzz`.

Usage: fuzz_cli_test.py HOLDFAST SOURCE_DIR
"""

import json

from cli_case import CliCase, jsonschema, main, validate


class FuzzCliTest(CliCase):
    def test_fuzz_is_deterministic_and_follows_its_schema(self):
        answers = [json.loads(self.run_it("fuzz", "--seeds", "0..5", "--json", *jobs).stdout)
                   for jobs in ([], ["--jobs", "2"])]
        for answer in answers:
            if jsonschema is not None:
                validate([answer], "fuzz")
            self.assertEqual((answer["seeds"], answer["failed"], answer["failures"]), (6, 0, []))
            del answer["wall_s"], answer["median_s"]
        self.assertEqual(*answers)
        for table in answers[0]["cells"].values():
            reached = sum(map(sum, table["counts"]))
            self.assertGreater(reached, 100)
            self.assertEqual(len(table["counts"]), len(table["events"]))
            self.assertTrue(all(len(row) == len(table["states"]) for row in table["counts"]))
        text = self.run_it("fuzz", "--seeds", "0..5", "--cells").stdout
        self.assertRegex(text, r"\n6 seeds, 0 failed; ")
        self.assertIn("never reached: ", text)
        self.assertLessEqual(max(map(len, text.splitlines())), 100)

    def test_fuzz_tells_and_replays_a_seed(self):
        clean = "seed=2 tasks=0-3 faults=-"
        runs = [json.loads(self.run_it("fuzz", "--replay", clean, "--json", *story).stdout)
                for story in ([], [], ["--story"])]
        if jsonschema is not None:
            validate(runs, "fuzz")
        self.assertEqual(runs[0], runs[1])
        self.assertEqual(runs[0]["recipe"], clean)
        self.assertEqual((runs[0]["rule"], runs[0]["story"]), (None, []))
        self.assertGreater(len(runs[2]["story"]), 10)
        self.assertEqual(runs[0]["trace"], runs[2]["trace"])
        text = self.run_it("fuzz", "--replay", clean).stdout
        self.assertRegex(text, rf"^{clean}: \d+ steps until .* trace {runs[0]['trace']}\n$")
        whole = self.run_it("fuzz", "--seeds", "2", "--story").stdout
        self.assertIn("seed=2: ", whole.splitlines()[-1])
        self.assertGreater(len(whole.splitlines()), len(text.splitlines()) + 10)

    def test_every_twentieth_seed_runs_on_simgrid(self):
        # Processes of their own, each with its memory somewhere else.
        runs = [json.loads(self.run_it("fuzz", "--replay", recipe, "--json", *story).stdout)
                for recipe, story in (("seed=40", []), ("seed=40", ["--story"]),
                                      ("seed=40 wire=simgrid", []), ("seed=40 wire=virtual", []))]
        if jsonschema is not None:
            validate(runs, "fuzz")
        traces = [run["trace"] for run in runs]
        self.assertEqual(traces[0], traces[1])
        self.assertEqual(traces[0], traces[2])
        self.assertNotEqual(traces[0], traces[3])
        self.assertEqual(runs[2]["recipe"], "seed=40 wire=simgrid")
        self.assertEqual(runs[1]["story"][0], "blocks and words between workers go over SimGrid")
        self.assertGreater(len(runs[1]["story"]), 10)
        text = self.run_it("fuzz", "--seeds", "40", "--story").stdout
        self.assertIn("over SimGrid", text.splitlines()[0])
        self.assertIn(traces[0], text.splitlines()[-1])

    def test_fuzz_refuses_what_is_no_seed_and_no_recipe(self):
        for arguments, expected in (
                (["--seeds", "3..1"], r"--seeds: '3\.\.1' is no range of seeds; .* \[BadValue\]"),
                (["--seeds", "1..x"], r"--seeds: "), (["--seeds", "-1"], r""),
                (["--seeds", ""], r"--seeds"), (["--seeds", "0..99999999999"], r"--seeds: "),
                (["--seeds", "0..1", "--story"], r"--story: a story is of one seed"),
                (["--replay", ""], r"--replay: a recipe needs seed=NUMBER"),
                (["--replay", "tasks=0"], r"--replay: a recipe needs seed=NUMBER"),
                (["--replay", "seed=x"], r"--replay: 'x' is no seed"),
                (["--replay", "seed=1 tasks=5-3"], r"--replay: '5-3' is no ascending list"),
                (["--replay", "seed=1 wire=tin"], r"--replay: 'tin' is no network"),
                (["--replay", "seed=1 task=5"], r"--replay: 'task' is not known here"),
                (["--replay", "seed=1", "--seeds", "1"], r"--replay"),
                (["--jobs", "0"], r"--jobs")):
            done = self.run_it("fuzz", *arguments, status=2)
            self.assertRegex(done.stderr, "^holdfast: error: .*" + expected)
            self.assertEqual(done.stdout, "")


if __name__ == "__main__":
    main()
