#!/usr/bin/env python3
"""Whether one policy beats another in a scenario with a workload, seed by seed.

    tests/quality/paired_seeds.py build/release/holdfast scenarios/paper-cross-dc.yaml --seeds 10

Runs both policies with each seed, which draws the same rollouts, members and faults for both, and
prints the mean of the paired differences of a figure with its 95 % interval (Student's t).

Where `greedy` is compared with, it plays at its best: each of --caps is tried first as its
`reader_cap`, with the first --cap-seeds seeds, and the cap with the lowest mean goes on.
"""

import argparse
import concurrent.futures
import json
import math
import os
import re
import subprocess
import sys
import tempfile

# Two-sided 95 % quantiles of Student's t, by degrees of freedom from 1.
T95 = [12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160,
       2.145, 2.131, 2.120, 2.110, 2.101, 2.093]
AT_ONCE = 2  # processes: each is one thread


def replaced(pattern, text, new, what):
    text, count = re.subn(pattern, new, text, flags=re.MULTILINE)
    if count != 1:
        sys.exit(f"the scenario needs exactly one {what} to be given a reader cap")
    return text


def with_cap(scenario, cap, folder):
    """A copy of the scenario file in `folder` whose options have that `reader_cap`."""
    with open(scenario, encoding="utf-8") as file:
        text = file.read()
    home = os.path.dirname(os.path.abspath(scenario))
    text = replaced(r"^topology: (\S+)$", text,
                    lambda found: f"topology: {os.path.join(home, found[1])}", "line 'topology:'")
    text = replaced(r"^options: \{(?!.*reader_cap)", text, f"options: {{reader_cap: {cap}, ",
                    "line 'options: {...}' without 'reader_cap'")
    path = os.path.join(folder, f"cap-{cap}.yaml")
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
    return path


def figures(holdfast, key, runs):
    """The figure of each (scenario, policy, seed), in that order."""
    def one(run):
        scenario, policy, seed = run
        done = subprocess.run([holdfast, "simulate", scenario, "--policy", policy,
                               "--seed", str(seed), "--trace", "none", "--json"],
                              capture_output=True, text=True, check=False)
        if done.returncode != 0:
            sys.exit(f"policy {policy}, seed {seed}:\n{done.stderr}")
        return json.loads(done.stdout)["runs"][0][key]

    with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
        return list(pool.map(one, runs))


def best_cap(given, folder):
    """The scenario with greedy's best reader cap; prints the figure of every cap."""
    seeds = range(1, given.cap_seeds + 1)
    scenarios = [with_cap(given.scenario, cap, folder) for cap in given.caps]
    found = figures(given.holdfast, given.figure,
                    [(scenario, "greedy", seed) for scenario in scenarios for seed in seeds])
    means = []
    for number, cap in enumerate(given.caps):
        own = found[number * len(seeds):(number + 1) * len(seeds)]
        means.append(sum(own) / len(own))
        print(f"greedy, reader_cap {cap}: {means[-1]:.6g} (mean of seeds 1 to {len(seeds)})",
              flush=True)
    best = means.index(min(means))
    print(f"greedy's best reader_cap: {given.caps[best]}", flush=True)
    return scenarios[best]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("holdfast")
    parser.add_argument("scenario")
    parser.add_argument("--seeds", type=int, default=10, choices=range(2, len(T95) + 2))
    parser.add_argument("--ours", default="auto")
    parser.add_argument("--theirs", default="greedy")
    parser.add_argument("--figure", default="gpu_stall_s")
    parser.add_argument("--caps", nargs="+", default=["1", "2", "3", "4", "6", "8", "16", "none"])
    parser.add_argument("--cap-seeds", type=int, default=1, choices=range(1, len(T95) + 2))
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        theirs_in = given.scenario
        if given.theirs == "greedy":
            theirs_in = best_cap(given, folder)
        seeds = range(1, given.seeds + 1)
        found = figures(given.holdfast, given.figure,
                        [run for seed in seeds for run in ((given.scenario, given.ours, seed),
                                                           (theirs_in, given.theirs, seed))])
    pairs = list(zip(found[::2], found[1::2]))
    for seed, (ours, theirs) in zip(seeds, pairs):
        print(f"seed {seed}: {given.ours} {ours:.6g}, {given.theirs} {theirs:.6g}")
    differences = [theirs - ours for ours, theirs in pairs]
    count = len(differences)
    mean = sum(differences) / count
    deviation = math.sqrt(sum((d - mean) ** 2 for d in differences) / (count - 1))
    half = T95[count - 2] * deviation / math.sqrt(count)
    print(f"{given.theirs} - {given.ours}: {mean:.6g}, 95 % interval {mean - half:.6g} to "
          f"{mean + half:.6g}")
    if len(set(pairs)) == 1:
        print("All pairs are alike: the seed draws nothing that this figure depends on.")


if __name__ == "__main__":
    main()
